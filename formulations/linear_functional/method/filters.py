"""Regularisation filters: how a candidate is made from the spectrum of its kernel matrix.

A filter is a function of (eigenvalues, level) -> g, with level = n alpha ("mean") or alpha ("sum"). The
candidate of a kernel K = U diag(eigenvalues) U' is b = U diag(g) U' v, with K b on the training points.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np

import kernelopt as ko
from kernelopt.extend import Array, as_float_array, parameters_of, positive, whole

Filter: TypeAlias = Callable[[Array, float], Array]
LAST_DIGITS = 1e-12  # of a quotient, so that one that should be an integer is not rounded up


def checked_arguments(eigenvalues: Any, level: Any) -> tuple[Array, float]:
    """Return the arguments of a filter: non-negative eigenvalues, and a level above zero."""
    values = as_float_array(eigenvalues, "eigenvalues", ndim=1)
    if (values < 0).any():
        raise ko.errors.ParameterError(
            f"eigenvalues must be non-negative, got {values.min():g}. Clip them, if that is round-off."
        )
    return values, positive(level, "level")


def tikhonov(eigenvalues: Array, level: float) -> Array:
    r"""The filter of equation (1): :math:`g(\lambda) = 1 / (\lambda + \text{level})`.

    Parameters
    ----------
    eigenvalues : array of shape (k,)
        lambda >= 0, of the kernel matrix.
    level : float > 0
        The regularisation.

    Examples
    --------
    >>> tikhonov(np.array([1.0, 0.0]), 0.5).round(4)
    array([0.6667, 2.    ])
    """
    eigenvalues, level = checked_arguments(eigenvalues, level)
    return np.asarray(1.0 / (eigenvalues + level))


def iterated_tikhonov(times: int = 2) -> Filter:
    r"""The method of Tikhonov applied `times` times, each time to the residual of the last.

    .. math:: g(\lambda) = \big(1 - (\text{level} / (\lambda + \text{level}))^{times}\big) / \lambda

    Parameters
    ----------
    times : int >= 1, default 2
        1 is `tikhonov`; the qualification, up to which smoothness the rate improves, is `times`.

    Examples
    --------
    >>> iterated_tikhonov(2)(np.array([1.0, 0.0]), 0.5).round(4)
    array([0.8889, 4.    ])
    """
    times = whole(times, "times", wanted="an integer >= 1")

    def filtered(eigenvalues: Array, level: float) -> Array:
        eigenvalues, level = checked_arguments(eigenvalues, level)
        gone = -np.expm1(-times * np.log1p(eigenvalues / level))
        zero = eigenvalues == 0
        return np.where(zero, times / level, gone / np.where(zero, 1.0, eigenvalues))

    return filtered


@parameters_of(tikhonov)
def cut_off(eigenvalues: Array, level: float) -> Array:
    r"""The spectral cut-off: :math:`g(\lambda) = 1/\lambda` for :math:`\lambda \ge` level, else 0.

    Parameters
    ----------
    eigenvalues, level
        As for `tikhonov`.

    Examples
    --------
    >>> cut_off(np.array([2.0, 0.1]), 0.5)
    array([0.5, 0. ])
    """
    eigenvalues, level = checked_arguments(eigenvalues, level)
    kept = eigenvalues >= level
    return np.where(kept, 1.0 / np.where(kept, eigenvalues, 1.0), 0.0)


@parameters_of(tikhonov)
def landweber(eigenvalues: Array, level: float) -> Array:
    r"""The iteration of Landweber from zero, stopped early.

    It is :math:`b \leftarrow b + (v - K b) / \lambda_{\max}`. The number of steps t is
    :math:`\lambda_{\max} / \text{level}`, rounded up, since t steps of length
    :math:`1 / \lambda_{\max}` regularise as Tikhonov's filter does at the level
    :math:`\lambda_{\max} / t`. The filter is
    :math:`g(\lambda) = (1 - (1 - \lambda/\lambda_{\max})^t) / \lambda`.

    Parameters
    ----------
    eigenvalues, level
        As for `tikhonov`.

    Examples
    --------
    Two steps:

    >>> landweber(np.array([1.0, 0.5]), 0.5)
    array([1. , 1.5])
    """
    eigenvalues, level = checked_arguments(eigenvalues, level)
    largest = float(eigenvalues.max(initial=0.0))
    if largest == 0:
        return np.zeros_like(eigenvalues)
    steps = np.ceil(largest / level * (1 - LAST_DIGITS))
    with np.errstate(divide="ignore"):  # log 0 at the largest eigenvalue, which one step fits
        gone = -np.expm1(max(steps, 1.0) * np.log1p(-eigenvalues / largest))
    zero = eigenvalues == 0
    g: Array = np.where(zero, max(steps, 1.0) / largest, gone / np.where(zero, 1.0, eigenvalues))
    return g

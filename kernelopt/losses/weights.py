"""The weights C of a loss: one number, one per sample, or a scalar cvxpy parameter."""

from __future__ import annotations

from typing import TypeAlias

import cvxpy as cp
import numpy as np

from kernelopt.errors import ParameterError, ShapeError
from kernelopt.validation import LARGEST_SQUARED, Array, as_float_array, positive

Weight: TypeAlias = float | Array | cp.Parameter


def checked_weight(C: object, what: str) -> Weight:
    """Return the weight C of a loss after checking it.

    Parameters
    ----------
    C : float > 0, array of shape (n,) or scalar cp.Parameter
        The weight of all samples, or of each.
    what : str
        The name of the argument, for the message.

    Returns
    -------
    float, array of shape (n,) or cp.Parameter
        An array is a copy that is read-only.

    Raises
    ------
    ParameterError, ShapeError, NotFiniteError
        If it is no such weight.

    Examples
    --------
    >>> from kernelopt.extend import weights
    >>> weights.checked_weight(2, "C"), weights.checked_weight([1, 2], "C")
    (2.0, array([1., 2.]))
    """
    if isinstance(C, cp.Parameter):
        if C.size != 1 or not C.is_nonneg():
            found = f"shape {C.shape}" if C.size != 1 else f"sign {C.sign}"
            raise ParameterError(
                f"{what} as a cvxpy parameter must be a non-negative scalar, got {found}. "
                "Create it with cp.Parameter(pos=True)."
            )
        return C
    array = as_float_array(C, what, ndim=1) if is_vector(C) else np.array([positive(C, what)])
    if array.max(initial=0.0) > LARGEST_SQUARED:
        raise ParameterError(
            f"{what} must be at most {LARGEST_SQUARED:g}, since squares of dual variables up to it are "
            f"summed, got {array.max():g}. Choose a smaller one; for labels the limit is hard_margin()."
        )
    if not is_vector(C):
        return float(array[0])
    if array.size == 0 or array.min() <= 0:
        raise ParameterError(
            f"{what} must be positive for every sample, got a smallest value of "
            f"{array.min(initial=np.inf):g}. Leave out the samples that should not count."
        )
    read_only = array.copy()
    read_only.flags.writeable = False
    return read_only


def is_vector(C: object) -> bool:
    """Whether a loss weight is one number per sample, and not a single number.

    Parameters
    ----------
    C : float > 0, array of shape (n,) or scalar cp.Parameter
        A loss weight, which need not be checked.

    Examples
    --------
    >>> from kernelopt.extend import weights
    >>> weights.is_vector([1.0, 2.0]), weights.is_vector(1.0)
    (True, False)
    """
    if isinstance(C, cp.Expression) or not hasattr(C, "__len__") or isinstance(C, str | bytes | dict | set):
        return False
    return not isinstance(C, np.ndarray) or C.ndim > 0 or isinstance(C, np.ma.MaskedArray)


def per_sample(C: Weight, n: int) -> Array:
    """Return the weight of each of the n samples.

    Parameters
    ----------
    C : float > 0, array of shape (n,) or scalar cp.Parameter
        A weight that `checked_weight` has returned.
    n : int
        The number of samples.

    Examples
    --------
    >>> from kernelopt.extend import weights
    >>> weights.per_sample(2.0, 3)
    array([2., 2., 2.])
    """
    if isinstance(C, cp.Parameter):
        if C.value is None:
            raise ParameterError(
                f"the parameter {C.name()} must have a value here, got None. Set its .value before solving."
            )
        return np.full(n, positive(np.asarray(C.value).reshape(()), f"the parameter {C.name()}"))
    if isinstance(C, np.ndarray):
        if C.size != n:
            raise ShapeError(
                f"C must be a number or have one entry per labelled point ({n}), got {C.size}. "
                "Cut the weights to the labelled points."
            )
        return C.copy()  # writeable, as in the other cases
    return np.full(n, C)


def weighted_sum(C: Weight, terms: cp.Expression) -> cp.Expression:
    """Return sum_i C_i terms_i as a cvxpy expression that is DPP in a scalar parameter C.

    Parameters
    ----------
    C : float > 0, array of shape (n,) or scalar cp.Parameter
        A weight that `checked_weight` has returned.
    terms : cvxpy expression of shape (n,)
        The loss of each sample, without its weight.

    Examples
    --------
    >>> import cvxpy as cp
    >>> from kernelopt.extend import weights
    >>> float(weights.weighted_sum(2.0, cp.Constant([1.0, 0.5])).value)
    3.0
    """
    if isinstance(C, np.ndarray):
        return per_sample(C, terms.size) @ terms
    return C * cp.sum(terms)

"""The constrained form along its exponent, or along the weight of its loss."""

from __future__ import annotations

from typing import Any

from numpy.typing import ArrayLike

import kernelopt as ko
from formulations.lp_norm.multiple_kernel_data import HINGE
from formulations.lp_norm.primal import primal
from kernelopt.extend import Method, as_grams, as_list, exponent, positive


def path(
    grams: ko.Grams | ArrayLike,
    y: ArrayLike | None,
    *,
    p: float | ArrayLike = 2.0,
    C: ArrayLike | None = None,
    loss: ko.Loss = HINGE,
    bias: bool | None = None,
    method: str | Method = "auto",
    **options: Any,
) -> ko.Path:
    """Solve `primal` along several exponents p, or along several C, each from the solution before it.

    The optimal value does not increase with p, and does not decrease with C. Every point of the path has
    certified bounds of its own.

    Parameters
    ----------
    grams, y, loss, bias
        As for `primal`. The kernels are read and checked once.
    p : float in [1, inf], or a sequence of them, default 2.0
        A sequence gives the path over p.
    C : sequence of floats > 0, optional
        The path over C at one p: the loss is multiplied by each of them. For the default loss hinge(1.0),
        they are its C.
    method, **options
        As for `kernelopt.path`.

    Returns
    -------
    Path

    Raises
    ------
    ParameterError
        If neither p nor C is a sequence, or if both are.

    Examples
    --------
    >>> import numpy as np
    >>> from formulations import lp_norm
    >>> kernels = [np.eye(2), [[1.0, -1.0], [-1.0, 1.0]]]
    >>> path = lp_norm.path(kernels, [1, -1], p=[1, 2, np.inf], method="block-descent")
    >>> path.values, path.upper.round(4)
    ((1.0, 2.0, inf), array([0.5   , 0.4472, 0.3333]))
    >>> lp_norm.path(kernels, [1, -1], p=1, C=[0.1, 1.0], method="block-descent").upper.round(4)
    array([0.18, 0.5 ])
    """
    stack = as_grams(grams)
    if C is None:
        exponents = [exponent(value) for value in as_list(p, "p", "a list of exponents without C")]
        return ko.path(
            lambda one: primal(stack, y, p=one, loss=loss, bias=bias), exponents, method, name="p", **options
        )
    p = exponent(p)
    factors = [positive(value, "C") for value in as_list(C, "C", "a list of positive numbers")]
    return ko.path(
        lambda factor: primal(stack, y, p=p, loss=loss.scaled(factor), bias=bias),
        factors,
        method,
        name="C",
        **options,
    )

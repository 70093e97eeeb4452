"""Norms and sets of kernel weights."""

from __future__ import annotations

from typing import Any

import cvxpy as cp
import numpy as np

from kernelopt.errors import ParameterError, ShapeError
from kernelopt.validation import positive


def lp_ball(theta: cp.Expression, p: float, radius: Any = 1.0) -> list[cp.Constraint]:
    """The set of weights theta >= 0 with |theta|_p <= radius.

    Parameters
    ----------
    theta : affine cvxpy expression of shape (m,)
    p : float in [1, inf]
        p = 1, 2 and inf are linear or second-order cones; other p are exact power cones.
    radius : float > 0 or cp.Parameter, default 1.0

    Returns
    -------
    list of constraints, labelled "weights >= 0" and "ball"

    Examples
    --------
    >>> import cvxpy as cp, kernelopt as ko
    >>> theta = cp.Variable(2, nonneg=True)
    >>> problem = cp.Problem(cp.Maximize(cp.sum(theta)), ko.lp_ball(theta, 2))
    >>> round(float(problem.solve(solver=cp.CLARABEL)), 5)
    1.41421
    """
    if not isinstance(theta, cp.Expression) or theta.ndim != 1:
        shape = getattr(theta, "shape", type(theta).__name__)
        raise ShapeError(f"theta must be a cvxpy expression of shape (m,), got {shape}. Use cp.Variable(m).")
    size = radius if isinstance(radius, cp.Expression) else positive(radius, "radius")
    signs = [] if theta.is_nonneg() else [(theta >= 0).set_label("weights >= 0")]
    p = exponent(p)
    norm = cp.max(theta) if np.isinf(p) else cp.sum(theta) if p == 1 else p_norm(theta, p)
    return [*signs, (norm <= size).set_label("ball")]


def p_norm(x: cp.Expression, p: float) -> cp.Expression:
    """The norm |x|_p as an exact cone: cvxpy's own `pnorm` approximates p by a fraction by default.

    Parameters
    ----------
    x : cvxpy expression of shape (m,)
    p : float in [1, inf]
        p = 1, 2 and inf are linear or second-order cones, other p are power cones.

    Returns
    -------
    cvxpy expression, scalar and convex

    Examples
    --------
    >>> import cvxpy as cp, kernelopt as ko
    >>> round(float(ko.p_norm(cp.Constant([3.0, 4.0]), 2).value), 6)
    5.0
    """
    p = exponent(p)
    if p == 1:
        return cp.sum(x) if x.is_nonneg() else cp.norm1(x)
    if np.isinf(p):
        return cp.norm_inf(x)
    return cp.norm2(x) if p == 2 else cp.pnorm(x, p, approx=False)


def exponent(p: float, what: str = "p") -> float:
    """Return the exponent of a norm checked, a number in [1, inf]."""
    number = positive(p, what, allow_inf=True) if p == p else p
    if not number >= 1:
        raise ParameterError(
            f"{what} must be at least 1, got {p}. Below 1 the ball is not convex; {what} = 1 is sparse."
        )
    return number

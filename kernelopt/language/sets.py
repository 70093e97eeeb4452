"""Norms and sets of kernel weights."""

from __future__ import annotations

from typing import Any

import cvxpy as cp
import numpy as np

from kernelopt.errors import ParameterError, ShapeError
from kernelopt.validation import as_expression, exponent, positive


class Unpacked(type):
    """The class of a class whose name tells, in cvxpy's message, what was forgotten."""

    def __repr__(cls) -> str:
        return "list of constraints. Write a star before it, as in [*kernelopt.lp_ball(theta, p)]"


class Constraints(list[cp.Constraint], metaclass=Unpacked):
    """The constraints of a set: a list that a problem takes with a star.

    Without the star `cp.Problem` refuses it, and prints its class.
    """


def lp_ball(theta: cp.Expression, p: float, radius: Any = 1.0) -> list[cp.Constraint]:
    r"""The set of weights :math:`\theta \ge 0` with :math:`\|\theta\|_p \le radius`.

    Parameters
    ----------
    theta : affine cvxpy expression of shape (m,)
        The weights, which the ball makes non-negative.
    p : float in [1, inf]
        p = 1, 2 and inf are linear or second-order cones; other p are exact power cones.
    radius : float > 0 or cp.Parameter, default 1.0
        The largest norm of the weights.

    Returns
    -------
    list of constraints, labelled "weights >= 0" and "ball"
        A problem takes it with a star, ``[*kernelopt.lp_ball(theta, p), ...]``.

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
    theta = as_expression(theta, "theta", ndim=1)
    size = checked_radius(radius)
    signs = [] if theta.is_nonneg() else [(theta >= 0).set_label("weights >= 0")]
    p = exponent(p)
    norm = cp.max(theta) if np.isinf(p) else cp.sum(theta) if p == 1 else p_norm(theta, p)
    return Constraints([*signs, (norm <= size).set_label("ball")])


def p_norm(x: cp.Expression, p: float) -> cp.Expression:
    r"""The norm :math:`\|x\|_p` in an exact cone. cvxpy's `pnorm` replaces p by a nearby fraction by default.

    Parameters
    ----------
    x : cvxpy expression of shape (m,)
        The vector.
    p : float in [1, inf]
        p = 1, 2 and inf are linear or second-order cones, other p are power cones.

    Returns
    -------
    cvxpy expression, scalar and convex
        It is zero for x = 0 alone.

    Examples
    --------
    >>> import cvxpy as cp, kernelopt as ko
    >>> round(float(ko.p_norm(cp.Constant([3.0, 4.0]), 2).value), 6)
    5.0
    """
    p, x = exponent(p), as_expression(x, "x", ndim=1)
    if p == 1:
        return cp.sum(x) if x.is_nonneg() else cp.norm1(x)
    if np.isinf(p):
        return cp.norm_inf(x)
    return cp.norm2(x) if p == 2 else cp.pnorm(x, p, approx=False)


def checked_radius(radius: Any) -> Any:
    """Return the radius of a ball, a positive number or a scalar expression such as a parameter."""
    if not isinstance(radius, cp.Expression):
        return positive(radius, "radius")
    if radius.size != 1 or radius.is_complex() or radius.is_nonpos():
        raise ParameterError(
            f"radius must be a positive number or one real cvxpy scalar, got an expression of shape "
            f"{radius.shape} and sign {radius.sign}. Create it with cp.Parameter(pos=True)."
        )
    return radius

"""Sets of kernel weights, as lists of constraints."""

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
    p = positive(p, "p", allow_inf=True) if p == p else p
    if not p >= 1:
        raise ParameterError(
            f"p must be at least 1, got {p}. Below 1 the ball is not convex; p = 1 is sparse."
        )
    size = radius if isinstance(radius, cp.Expression) else positive(radius, "radius")
    if p == 1:
        norm = cp.sum(theta)
    elif np.isinf(p):
        norm = cp.max(theta)
    else:
        norm = cp.norm2(theta) if p == 2 else cp.pnorm(theta, p, approx=False)
    signs = [] if theta.is_nonneg() else [(theta >= 0).set_label("weights >= 0")]
    return [*signs, (norm <= size).set_label("ball")]

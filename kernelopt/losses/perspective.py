"""The dual of a loss times a weight, w l(a / w), as a cvxpy expression in the notation of textbooks."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import cvxpy as cp
import numpy as np

from kernelopt.validation import Array

if TYPE_CHECKING:
    from kernelopt.losses.base import Loss
    from kernelopt.losses.curve import Curve

Stated = tuple[cp.Expression, list[cp.Constraint]]


def curve_perspective(
    curve: Curve,
    alpha: cp.Expression,
    y: Array,
    reach: cp.Expression | None = None,
    divisor: cp.Parameter | None = None,
    weight: cp.Expression | None = None,
) -> Stated:
    """Return w l(alpha / w) and its domain for a loss whose dual is piecewise quadratic; w = 1 for None.

    With the coefficients of `Loss.curve` it is linear'a - sum_i curvature_i a_i^2 / (2 w) - l1'|a| on
    w lower <= a <= w upper. The bounds are multiplied by the parameter `reach`, and the curvature is divided
    by the parameter `divisor`, where there are such.
    """
    linear, curvature, l1, _, _ = curve
    concave = cp.sum(alpha) if (linear == 1).all() else vector(linear, y) @ alpha
    if curvature.any():
        concave = concave - half_square(curvature, alpha, divisor, weight)
    if l1.any():
        uniform = np.ptp(l1) == 0
        concave = concave - (float(l1[0]) * cp.norm1(alpha) if uniform else vector(l1, y) @ cp.abs(alpha))
    if weight is not None:
        reach = weight if reach is None else reach * weight
    return concave, box(alpha, y, curve, reach)


def read_scaling(loss: Loss, y: Array) -> tuple[Curve, cp.Parameter | None, cp.Parameter | None] | None:
    """Return the curve at C = 1, and C where it multiplies the bounds, and where it divides the curvature.

    None where the curve depends on a parameter in another way.
    """
    fields = [name for name, value in vars(loss).items() if isinstance(value, cp.Parameter)]
    if not fields:
        return loss.curve(y), None, None
    one, two = (replace(loss, **dict.fromkeys(fields, c)).curve(y) for c in (1.0, 2.0))  # type: ignore[type-var]
    bounds = [(one.lower, two.lower), (one.upper, two.upper)]
    grows = all(np.array_equal(2 * a, b) for a, b in bounds)  # zero and infinity are twice themselves
    fixed = all(np.array_equal(a, b) for a, b in bounds)
    same, halved = (np.array_equal(one.curvature, c * two.curvature) for c in (1, 2))
    others = np.array_equal(one.linear, two.linear) and np.array_equal(one.l1, two.l1)
    if len(fields) > 1 or not others or not (grows or fixed) or not (same or halved):
        return None
    C = vars(loss)[fields[0]]
    return one, None if fixed else C, None if same else C


def half_square(
    curvature: Array, alpha: cp.Expression, divisor: Any, weight: cp.Expression | None
) -> cp.Expression:
    """Return sum_i curvature_i a_i^2 / (2 w)."""
    uniform = np.ptp(curvature) == 0
    size = float(curvature[0]) if uniform else 1.0
    a = alpha if uniform else cp.multiply(cp.Constant(np.sqrt(curvature), name="c"), alpha)
    if divisor is not None:
        # A quotient by a parameter is not DPP, its reciprocal as a parameter is.
        inverse = cp.CallbackParam(lambda: 1 / divisor.value, (), name=f"1/{divisor.name()}", nonneg=True)
        return size / 2 * inverse * cp.sum_squares(a)
    if weight is None:
        return size / 2 * cp.sum_squares(a)
    return cp.quad_over_lin(a, 2 / size * weight)


def box(alpha: cp.Expression, y: Array, curve: Curve, reach: cp.Expression | None) -> list[cp.Constraint]:
    """Return lower <= a / reach <= upper, for labels in terms of y a where that is simpler."""
    lower, upper, a = curve.lower, curve.upper, alpha
    if (np.abs(y) == 1).all() and (np.ptp(np.nan_to_num(lower)) or np.ptp(np.nan_to_num(upper))):
        lower, upper = np.where(y > 0, lower, -upper), np.where(y > 0, upper, -lower)
        a = cp.multiply(vector(y, y), alpha)
    if np.isfinite(upper).all() and np.array_equal(lower, -upper):
        return [(cp.abs(a) <= bound(upper, reach)).set_label("box")]
    domain: list[cp.Constraint] = []
    for side, label in ((lower, "lower"), (upper, "upper")):
        finite = np.isfinite(side)
        if not finite.any():
            continue
        part = a if finite.all() else a[np.flatnonzero(finite)]
        limit = bound(side[finite], reach)
        domain.append((part >= limit if label == "lower" else part <= limit).set_label(label))
    return domain


def bound(side: Array, reach: cp.Expression | None) -> Any:
    """Return a bound times `reach`, a number where all entries are equal."""
    value: Any = float(side[0]) + 0.0 if np.ptp(side) == 0 else cp.Constant(side, name="C")
    if reach is None or not side.any():
        return value
    return reach if isinstance(value, float) and value == 1 else value * reach


def vector(values: Array, y: Array) -> cp.Constant:
    """Return a constant vector, named y where it is the vector of labels or targets."""
    return cp.Constant(values, name="y" if np.array_equal(values, y) else "c")

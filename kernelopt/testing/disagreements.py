"""Which part of a loss disagrees with the others, and at which prediction."""

from __future__ import annotations

import cvxpy as cp
import numpy as np
from scipy.optimize import minimize_scalar

from kernelopt.losses import Loss
from kernelopt.methods.solve import solve
from kernelopt.validation import Array

AGREE = 1e-5  # relative difference of two values of one loss, computed by different solvers
REACH = 20.0  # of the search for a maximiser of the dual, on a side where its domain is not bounded


def disagreement(loss: Loss, predictions: Array, y: Array) -> str:
    """Return the sample at which the parts of a loss differ most, with their values; empty if none do.

    A part that is alone with its value, while two others agree, is named. Parts that a loss inherits are
    derived from others and are no witnesses.

    Parameters
    ----------
    loss : Loss
    predictions : array of shape (k, n)
        Predictions to try, each with the labels or targets y.
    y : array of shape (n,)
    """
    worst, at, values = 0.0, "", dict[str, float]()
    for t in predictions:
        for i in range(y.size):
            found = values_at(loss, t[[i]], y[[i]])
            spread = max(found.values()) - min(found.values())
            spread /= max(1.0, min(abs(v) for v in found.values()))
            if spread > worst or np.isnan(spread):
                worst, at, values = float(spread), f"t = {t[i]:.6g} and y = {y[i]:.6g}", found
    if not worst > AGREE:
        return ""
    listed = ", ".join(f"`{name}` has {value:.6g}" for name, value in values.items())
    return f"At the prediction {at} {listed}: {verdict(values)}."


def verdict(values: dict[str, float]) -> str:
    """Return in words which value is that of no other part."""
    supporters = {
        name: sum(abs(value - other) <= AGREE * max(1.0, abs(other)) for other in values.values())
        for name, value in values.items()
    }
    most = max(supporters.values())
    odd = [f"`{name}`" for name, count in supporters.items() if count < most]
    if odd and most > len(values) / 2:
        return f"{' and '.join(odd)} {'is' if len(odd) == 1 else 'are'} the odd one out"
    return "one of them is wrong, and no majority of the parts tells which"


def values_at(loss: Loss, t: Array, y: Array) -> dict[str, float]:
    """Return the value of a loss at one sample by each of its parts that is stated independently."""
    summed = loss.expression(cp.Constant(t), y)
    written = solve(cp.Problem(cp.Minimize(summed))).value if summed.variables() else summed.value
    found = {"expression": float(np.ravel(written)[0])}
    if stated(loss, "value"):
        found["value"] = loss.value(t, y)
    if loss.quadratic:
        found["curve"] = of_the_curve(loss, float(t[0]), y)
    if stated(loss, "dual_value"):
        found["dual_value"] = largest(loss, t, y)
    if stated(loss, "dual_expression"):
        alpha = cp.Variable(1)
        gain, domain = loss.dual_expression(alpha, y)
        found["dual_expression"] = solve(cp.Problem(cp.Maximize(gain - t @ alpha), domain)).value
    return found


def stated(loss: Loss, name: str) -> bool:
    """Whether a loss states a part itself."""
    return getattr(type(loss), name) is not getattr(Loss, name)


def of_the_curve(loss: Loss, t: float, y: Array) -> float:
    """Return max_a linear a - curvature/2 a^2 - l1 |a| - t a on [lower, upper], by its stationary points."""
    linear, curvature, l1, lower, upper = (float(part[0]) for part in loss.curve(y))
    slope = linear - t
    ends = {min(max(0.0, lower), upper), *(end for end in (lower, upper) if np.isfinite(end))}
    if curvature > 0:
        ends |= {min(max((slope + side) / curvature, lower), upper) for side in (l1, -l1)}
    elif (slope > l1 and upper == np.inf) or (slope < -l1 and lower == -np.inf):
        return np.inf
    return max(slope * a - curvature * a**2 / 2 - l1 * abs(a) for a in ends)


def largest(loss: Loss, t: Array, y: Array) -> float:
    """Return max_a l(a) - a t by a search on the domain of the dual."""
    _, _, _, lower, upper = loss.curve(y)
    ends = max(float(lower[0]), -REACH), min(float(upper[0]), REACH)

    def negative(a: float) -> float:
        alpha = np.array([a])
        return float(alpha @ t) - loss.dual_value(alpha, y)

    return -float(minimize_scalar(negative, bounds=ends, method="bounded", options={"xatol": 1e-10}).fun)

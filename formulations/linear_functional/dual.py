"""The dual of the second stage, by hand."""

from __future__ import annotations

import cvxpy as cp

from formulations.linear_functional.method.combination import Combination


def dual(stage: Combination) -> cp.Problem:
    """Return the dual over residuals r, one case per row of the table of `functional_strategy`."""
    n, ridge = stage.n, stage.ridge
    r = cp.Variable(n, name="r")
    gain = 2 / n * (stage.v @ r) - cp.sum_squares(r) / n
    s = 2 / n * (stage.X.T @ r)
    if stage.weights == "free":
        if ridge == 0:
            return cp.Problem(cp.Maximize(gain), [(s == 0).set_label("orthogonal")])
        return cp.Problem(cp.Maximize(gain - cp.sum_squares(s) / (4 * ridge)))
    if stage.weights == "nonnegative":
        if ridge == 0:
            return cp.Problem(cp.Maximize(gain), [(s <= 0).set_label("polar cone")])
        return cp.Problem(cp.Maximize(gain - cp.sum_squares(cp.pos(s)) / (4 * ridge)))
    if ridge == 0:
        return cp.Problem(cp.Maximize(gain - cp.max(s)))
    mu = cp.Variable(name="mu")
    return cp.Problem(cp.Maximize(gain - cp.sum_squares(cp.pos(s - mu)) / (4 * ridge) - mu))

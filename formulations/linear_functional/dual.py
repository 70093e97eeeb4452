"""The dual of the second stage, by hand."""

from __future__ import annotations

import cvxpy as cp

from formulations.linear_functional.method.combination import Combination


def dual(stage: Combination) -> cp.Problem:
    r"""The dual over residuals r, one row per set of weights.

    With :math:`D(r) = \tfrac2n r'v - \tfrac1n \|r\|^2` and :math:`s = X'r`:

    ==================  ==========================================  =====================================
    weights             lambda = 0                                  lambda > 0
    ==================  ==========================================  =====================================
    free                max D(r)  s.t.  s = 0                       :math:`D - \|s\|^2/(\lambda n^2)`
    nonnegative         max D(r)  s.t.  s <= 0                      :math:`D - \|s_+\|^2/(\lambda n^2)`
    simplex             :math:`D - \tfrac2n \max_j s_j`             :math:`D - \|(s - n\mu/2)_+\|^2
                                                                    /(\lambda n^2) - \mu`
    ==================  ==========================================  =====================================

    mu is the multiplier of 1'c = 1, of any sign. At the optimum r = v - X c.

    References
    ----------
    .. [1] Pereverzyev, Tkachenko (2017), equation (10) as least squares; the duals are ours.
    """
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

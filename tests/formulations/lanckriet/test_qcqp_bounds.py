"""Lanckriet et al. (2004): the bounds of the QCQP at any candidate."""

from __future__ import annotations

import numpy as np

import kernelopt as ko
from formulations import lanckriet
from tests.every import every
from tests.formulations.lanckriet.cases import KS, TRACE, N, R, Y, alternating, close, learned, n
from tests.formulations.lanckriet.test_sdp import balanced
from tests.problems import solved


def bracket(alpha, mu, tau, C, c, ridge=None):
    """Lanckriet 8.1 to 8.3 from any unsigned alpha and mu; `ridge` is the candidate of a learned tau."""
    # 1. repair alpha
    a = balanced(alpha.copy(), Y, C)
    assert (a >= 0).all() and (a <= C).all() and abs(Y @ a) <= 1e-12 * a.sum()
    # 2. repair mu
    mu = np.maximum(mu, 0)
    if ridge is not None:
        scale = c / (mu @ R + N * max(ridge, 0))
        mu, tau = scale * mu, scale * max(ridge, 0)
    else:
        mu = c * mu / (mu @ R)
    # 3. lower bound
    G = KS[:, :n, :n] * np.outer(Y, Y)
    forms = np.einsum("i,mij,j->m", a, G, a) / R
    Q = c * max(forms.max(), a @ a / N) if ridge is not None else c * forms.max() + tau * a @ a
    s = min(a.sum() / Q, C / a.max())
    lower = 2 * s * a.sum() - s**2 * Q
    if np.isinf(C):
        assert lower == close(a.sum() ** 2 / Q, 1e-12)
    # 4. upper bound
    g = np.tensordot(mu, KS[:, :n, :n], 1) @ (a * Y)
    q = (a * Y) @ g
    tight = (np.sqrt(R) * mu @ np.sqrt(forms * R)) ** 2 / c
    if ridge is None:
        assert tight <= q * (1 + 1e-12)
    if np.isinf(C) and tau == 0:
        b = -(g[Y > 0].min() + g[Y < 0].max()) / 2
        rho = (Y * (g + b)).min()
        return lower, (q / rho**2 if rho > 0 else np.inf), (tight / rho**2 if rho > 0 else np.inf)

    def loss(b):
        slack = np.maximum(1 - Y * (g + b), 0)
        if tau == 0:
            return 2 * C * slack.sum()
        if np.isinf(C):
            return (slack**2).sum() / tau
        return np.where(slack <= tau * C, slack**2 / tau, 2 * C * slack - tau * C**2).sum()

    if tau == 0:
        h = min(loss(b) for b in Y - g)
    else:
        low, high = -10.0, 10.0
        for _ in range(100):
            b = (low + high) / 2
            rising = Y @ np.minimum(np.maximum(1 - Y * (g + b), 0) / tau, C) < 0  # minus the derivative
            low, high = (low, b) if rising else (b, high)
        h = loss(b)
    return lower, q + h, (tight if ridge is None else q) + h


@every(("criterion", "noise"), [*alternating((0.0,)), *alternating((0.1, 1e-3))])
def test_bounds_for_nonnegative_weights_bracket_the_optimum(criterion, noise):
    rng = np.random.default_rng(int(1e4 * noise))
    c, C = TRACE, criterion.get("C", np.inf)
    is_learned = criterion["tau"] == "learned"
    written = lanckriet.qcqp(KS, Y, **criterion, trace=c)
    solution = learned(written)
    programme = written.programmes["qcqp"]().problem
    solved(programme)
    a = np.maximum(programme.var_dict["alpha"].value, 0)  # the solver's own alpha
    for _ in range(1 if noise == 0 else 4):
        noisy_a = a * (1 + noise * rng.normal(size=n)) + 0.1 * noise * rng.normal(size=n)
        noisy_mu = solution.weights * (1 + noise * rng.normal(size=3)) + 0.1 * noise * rng.normal(size=3)
        ridge = solution.tau * (1 + noise * rng.normal()) if is_learned else None
        lower, upper, tight = bracket(noisy_a, noisy_mu, 0.0 if is_learned else criterion["tau"], C, c, ridge)
        assert lower <= solution.upper * (1 + 1e-12) and upper >= solution.lower * (1 - 1e-12)
        assert tight >= solution.lower * (1 - 1e-12) and tight <= upper * (1 + 1e-12) and lower <= tight
        if noise == 0:
            # of first order in the error of alpha: the hard margin's reaches 1.6e-4 with Clarabel's own
            # alpha, and 6e-5 only after the plain SVM at the learned kernel has polished it
            assert (upper - lower) / upper <= 3e-4
            polished = np.abs(written.risks[0].oracle().alpha)
            lower, upper, _ = bracket(
                polished, noisy_mu, 0.0 if is_learned else criterion["tau"], C, c, ridge
            )
            assert (upper - lower) / upper <= 6e-5
        # the language's certificate at the same candidate: true, and its bounds no worse than these
        ours = {"mu": noisy_mu, "tau": ridge}
        candidate = {v: ours[v.name()] for v in written.problem.variables() if v.name() in ours}
        given = ko.certify(written.problem, candidate, alpha=Y * noisy_a)
        assert given.lower <= solution.upper * (1 + 1e-12) and given.upper >= solution.lower * (1 - 1e-12)
        assert given.gap >= 0 and given.route == "closed"

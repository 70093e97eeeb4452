"""Lanckriet et al. (2004): the linear matrix inequality, and weights of any sign."""

from __future__ import annotations

import cvxpy as cp
import numpy as np
import pytest

import kernelopt as ko
from formulations import lanckriet
from tests.every import every
from tests.formulations.lanckriet.cases import (
    CRITERIA,
    KS,
    TRACE,
    N,
    R,
    Y,
    alternating,
    close,
    criteria,
    dual_of_omega,
    learned,
    n,
    omega,
    random_kernels,
    with_learned,
)
from tests.problems import solved

# ----------------------------------------------------------- Lanckriet 2: the linear matrix inequality


@criteria
@pytest.mark.parametrize("m", [3])
def test_multipliers_of_the_lmi(criterion, m):
    # Lanckriet 2.1. The LMI is good to 1e-4 in everything but its value.
    C, tau = criterion["C"], criterion["tau"]
    written = lanckriet.sdp(KS[:m], Y, **criterion, trace=float(R[:m].sum()))
    solution = learned(written)
    programme = written.programmes["sdp"]()
    programme.problem.solve(solver=cp.CLARABEL, warm_start=False)
    parts = programme.problem.var_dict
    lmi, trace, *_ = programme.problem.constraints
    assert solution.value == close(omega(solution.kernel, Y, **criterion))
    assert float(programme.problem.value) == close(solution.value, 1e-5)
    assert written.solve("exact", programme="sdp", tol=1e-6).value == close(solution.value)
    Z = lmi.dual_value
    assert Z[-1, -1] == pytest.approx(1, abs=1e-5)
    a = -Z[:-1, -1] / Z[-1, -1]
    assert programme.recover()[1][0] == pytest.approx(Y * a)
    exact = dual_of_omega(solution.kernel, Y, **criterion)
    assert a == pytest.approx(exact[1], abs=1e-3)
    push = 1 + parts["nu"].value + float(parts["lambda"].value) * Y
    delta = parts["delta"].value if "delta" in parts else np.zeros(n)
    K = solution.kernel[:n, :n]
    G = np.outer(Y, Y) * K + tau * np.eye(n)
    assert (G @ a) == pytest.approx(push - delta, abs=1e-3)
    margins = Y * (K @ (Y * a) - float(parts["lambda"].value))  # b = -lambda
    assert 1 - margins == pytest.approx(tau * a + delta - parts["nu"].value, abs=1e-3)
    assert -float(parts["lambda"].value) == pytest.approx(solution.intercept, abs=1e-3)
    assert parts["nu"].value * a == pytest.approx(np.zeros(n), abs=1e-3)
    assert trace.label == "trace" and np.trace(solution.kernel) == close(R[:m].sum())
    if np.isfinite(C):
        assert delta * (C - a) == pytest.approx(np.zeros(n), abs=1e-3)
        assert delta.max() > 0.1  # some point is at the bound
    if tau == 0 and np.isfinite(C):
        xi = np.maximum(1 - Y * solution.decision_function()[:n], 0)
        assert delta == pytest.approx(xi, abs=1e-3)


@pytest.mark.parametrize("unlabelled", [0, 3])
@pytest.mark.parametrize("y", [[1, 1, 1, 1, -1], [1, -1, 1, -1, 1, -1], [-1, -1, 1]])
def test_the_whole_psd_cone_has_a_closed_form(y, unlabelled):
    # primal: K = c abar abar' / |a|^2; dual: a_i = (1 - ybar y_i) / c; value 4 n+ n- / (n c)
    y, c = np.array(y, dtype=float), 5.0
    size = y.size + unlabelled
    a = (1 - y.mean() * y) / c
    value = 4 * (y > 0).sum() * (y < 0).sum() / (y.size * c)
    bar = np.concatenate([a * y, np.zeros(unlabelled)])
    best = c * np.outer(bar, bar) / (a @ a)
    assert np.trace(best) == close(c)
    assert omega(best, y) == close(value)
    K = cp.Variable((size, size), PSD=True, name="K")
    problem = cp.Problem(cp.Minimize(2 * ko.risk(K, y, ko.hard_margin())), [ko.trace(K) == c])
    given = ko.certify(problem, {K: best}, alpha=a * y)
    assert given.gap <= 1e-9 and given.upper == close(value)
    solution = ko.solve(problem)
    assert solution.gap <= 1e-6 and solution.value == close(value)
    # A gap of 1e-6 determines alpha and K to about its root; the test block is zero.
    assert solution.alpha == pytest.approx(a * y, abs=1e-3)
    assert K.value == pytest.approx(best, abs=1e-3)


# ----------------------------------------------------------------------------- Lanckriet 3: free signs


@every(("criterion", "grams"), alternating(("data", "random")))
def test_free_signs_primal_is_dual(criterion, grams):
    Ks = KS if grams == "data" else random_kernels(N, 4, 6, 5)
    written = lanckriet.sdp(Ks, Y, **criterion, trace=TRACE)
    solution = learned(written)
    assert np.linalg.eigvalsh(solution.kernel)[0] >= -1e-9 * np.linalg.eigvalsh(solution.kernel)[-1]
    dual = written.dual()
    assert solved(dual) == close(solution.value)


def test_free_signs_take_indefinite_kernels():
    # The difference of two kernels: the set of kernels is the same, written with another basis.
    A, B = KS[0], KS[1]
    one = learned(lanckriet.sdp([A, B], Y, C=0.6, trace=TRACE))
    two = learned(lanckriet.sdp([A, B - A], Y, C=0.6, trace=TRACE))
    assert np.linalg.eigvalsh(B - A)[0] < -0.1
    assert two.value == close(one.value)
    assert two.kernel == pytest.approx(one.kernel, abs=1e-3)


SMALL = 8  # points of the cases below: six labelled, kernels of rank five, mean diagonal one


def small_case(seed):
    y = np.where(np.random.default_rng(seed + 50).normal(size=6) > 0, 1.0, -1.0)
    y[:2] = 1.0, -1.0
    return random_kernels(SMALL, 3, 5, seed), y


@every(("criterion", "seed"), [*zip(CRITERIA.values(), (0, 5, 6, 0), strict=True)])
def test_the_multiplier_of_K_is_orthogonal_to_it(criterion, seed):
    Ks, y = small_case(seed)
    written = lanckriet.sdp(Ks, y, **criterion, trace=SMALL)
    solution = learned(written)
    Z = next(c for c in written.problem.constraints if c.label == "K >> 0").dual_value
    assert np.linalg.eigvalsh(Z)[0] >= -1e-6
    assert Z @ solution.kernel == pytest.approx(np.zeros_like(Z), abs=1e-3)
    assert np.linalg.norm(Z) > 1e-2 or seed == 6  # at the border of the cone, but for the last


@pytest.mark.slow
@with_learned
def test_free_signs_are_never_worse_and_sometimes_better(criterion):
    strict = 0
    for seed in range(4):
        Ks, y = small_case(seed)
        free = learned(lanckriet.sdp(Ks, y, **criterion, trace=SMALL))
        tied = learned(lanckriet.qcqp(Ks, y, **criterion, trace=SMALL))
        assert free.value <= tied.value * (1 + 1e-6)
        if free.weights.min() >= -1e-6:
            assert free.value == close(tied.value)
        if free.upper < tied.lower * (1 - 1e-3):  # proved by the bounds
            assert free.weights.min() < -1e-3
            strict += 1
    assert 1 <= strict < 4


@every(("criterion", "drawn"), alternating(((0, 5), (5, 2), (5, 5), (0, 2))))
def test_bounds_for_free_signs_bracket_the_optimum(criterion, drawn):
    # Rank 2: the kernels span six of eight dimensions, so that Q is a true basis.
    seed, rank = drawn
    rng = np.random.default_rng(seed)
    Ks, y = small_case(seed)
    if rank == 2:
        Ks = random_kernels(SMALL, 3, 2, seed)
    c, r = float(SMALL), np.trace(Ks, axis1=1, axis2=2)
    solution = learned(lanckriet.sdp(Ks, y, **criterion, trace=c))
    C, fixed_tau = criterion.get("C", np.inf), criterion["tau"]
    is_learned = fixed_tau == "learned"
    tau = 0.0 if is_learned else fixed_tau
    eigenvalues, vectors = np.linalg.eigh(Ks.sum(axis=0))
    Q = vectors[:, eigenvalues > 1e-10 * eigenvalues[-1]]
    assert Q.shape[1] == (8 if rank == 5 else 6)
    span, *_ = np.linalg.svd(Ks.reshape(3, -1).T, full_matrices=False)

    def complement(M):
        flat = M.ravel() - span @ (span.T @ M.ravel())
        return (flat.reshape(M.shape) + flat.reshape(M.shape).T) / 2

    def lower(a, M):
        bar = np.concatenate([y * a, np.zeros(SMALL - y.size)])
        top = np.linalg.eigvalsh(Q.T @ (np.outer(bar, bar) - M) @ Q)[-1]
        if is_learned:  # tr K + N tau = c: the larger of the two prices
            top = max(top, a @ a / SMALL)
        return 2 * a.sum() - tau * a @ a - c * top

    dual = lanckriet.sdp(Ks, y, **criterion, trace=c).dual()
    value = solved(dual)
    assert value == close(solution.value)
    a = balanced(dual.var_dict["alpha"].value, y, C)
    U = dual.var_dict["U"].value[:-1, :-1]
    M = complement(U - float(dual.var_dict["eta"].value) * np.eye(SMALL))
    # the best M for an alpha is worth finding: with it the bound is tight
    assert solution.value * (1 - 1e-4) <= lower(a, M) <= solution.upper * (1 + 1e-9)
    for _ in range(5):
        other = balanced(a * rng.uniform(0.5, 1.5, y.size), y, C)
        assert lower(other, M + 0.1 * complement(rng.normal(size=M.shape))) <= solution.upper * (1 + 1e-9)

    def upper(mu, ridge):
        total = c / (mu @ r + SMALL * ridge)
        mu, ridge = total * mu, total * ridge
        inner = np.full(3, (c - SMALL * ridge) / r.sum())
        K0 = np.tensordot(inner, Ks, 1)
        values, basis = np.linalg.eigh(Q.T @ K0 @ Q)
        half = Q @ basis * values**-0.5
        s = max(0.0, -np.linalg.eigvalsh(half.T @ np.tensordot(mu, Ks, 1) @ half)[0])
        share = s / (1 + s)
        K = np.tensordot((1 - share) * mu + share * inner, Ks, 1)
        assert np.trace(K) + SMALL * ridge == close(c) and np.linalg.eigvalsh(K)[0] >= -1e-12
        return omega(nearest(K), y, C, ridge if is_learned else tau)

    ridge = solution.tau if is_learned else 0.0
    tight = upper(solution.weights, ridge)
    assert solution.lower * (1 - 1e-7) <= tight <= solution.value * (1 + 1e-4)
    for noise in (1e-3, 0.1):
        rough = upper(solution.weights * (1 + noise * rng.normal(size=3)), ridge)
        assert rough >= solution.lower * (1 - 1e-7)


def nearest(K):
    """K without round-off below zero."""
    eigenvalues, vectors = np.linalg.eigh(K)
    return (vectors * np.maximum(eigenvalues, 0)) @ vectors.T


def balanced(a, y, C):
    """Lanckriet 8.1: clip, then shrink the heavier class; exactly in A_C."""
    a = np.clip(a, 0, C)
    plus, minus = a[y > 0].sum(), a[y < 0].sum()
    a[y > 0] *= min(plus, minus) / plus
    a[y < 0] *= min(plus, minus) / minus
    return a

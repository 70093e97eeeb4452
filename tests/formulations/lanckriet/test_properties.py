"""Lanckriet 3.3, 4.5, 7.3, 8.2 and 8.3 (docs/theory) on random small problems.

Scaling, permutations, duplicates, zero and constant kernels, label flips: the value does not change.
Any alpha in A_C gives a lower bound, any mu >= 0 an upper bound, and any garbage a true certificate.
"""

from __future__ import annotations

import cvxpy as cp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import kernelopt as ko
from formulations import lanckriet
from tests.formulations.lanckriet.cases import KS, N, Y, close, learned, n, omega, random_kernels, vectors
from tests.formulations.lanckriet.test_sdp import balanced
from tests.problems import solved

settings.register_profile("lanckriet", max_examples=4, derandomize=True, deadline=None)
few = settings(settings.get_profile("lanckriet"))
C = 0.4
CRITERIA = [
    {"C": np.inf, "tau": 0.0},
    {"C": C, "tau": 0.0},
    {"C": np.inf, "tau": 0.5},
    {"C": C, "tau": 0.5},
    {"C": np.inf, "tau": "learned"},
]
criteria = st.sampled_from(CRITERIA)
both = st.sampled_from(["nonnegative", "free"])


@st.composite
def problems(draw):
    """Kernels of trace 1 to 20 on N points and the labels of the first n; the first kernel separates."""
    rng = np.random.default_rng(draw(st.integers(0, 10**6)))
    n, m = draw(st.integers(4, 8)), draw(st.integers(1, 3))
    N = n + draw(st.integers(0, 2))
    V = rng.normal(size=(m, N, draw(st.integers(1, 4))))
    Ks = V @ V.transpose(0, 2, 1)
    Ks[0] += np.eye(N)
    Ks *= rng.uniform(1, 20, (m, 1, 1)) / np.trace(Ks, axis1=1, axis2=2)[:, None, None]
    y = np.where(rng.normal(size=n) > 0, 1.0, -1.0)
    y[:2] = 1.0, -1.0
    return Ks, y, rng


def value(Ks, y, criterion, weights="nonnegative", trace=10.0):
    """The value, certified to 1e-6."""
    solution = lanckriet.margin(Ks, y, **criterion, weights=weights, trace=trace).solve(tol=1e-6)
    assert solution.gap <= 1e-6
    return solution.value


def same(one, two, weights):
    # the QCQP's value is far better than its gap; for the LMI two gaps of 1e-6 may add up
    assert one == close(two, 1e-6 if weights == "nonnegative" else 2e-6)


@few
@given(problems(), criteria, both)
def test_what_does_not_change_the_value(problem, criterion, weights):
    """Kernels in other units, one of them twice, a zero kernel, another order, and the classes renamed."""
    Ks, y, rng = problem
    n, N = y.size, len(Ks[0])
    scaled = 10 ** rng.uniform(-1, 1, (len(Ks), 1, 1)) * Ks
    more = np.concatenate([scaled, rng.uniform(0.2, 5) * Ks[-1:], np.zeros_like(Ks[:1])])
    order = np.concatenate([rng.permutation(n), n + rng.permutation(N - n)])
    moved = more[rng.permutation(len(more))][:, order][:, :, order]
    same(value(moved, -y[order[:n]], criterion, weights), value(Ks, y, criterion, weights), weights)


@few
@given(problems(), criteria)
def test_the_constant_kernel_is_worth_nothing(problem, criterion):
    Ks, y, _ = problem
    more = np.concatenate([Ks, np.ones_like(Ks[:1])])
    same(value(more, y, criterion), value(Ks, y, criterion), "nonnegative")


@few
@given(problems(), criteria, both)
def test_more_kernels_and_more_trace_never_hurt(problem, criterion, weights):
    Ks, y, rng = problem
    here = value(Ks, y, criterion, weights)
    v = rng.normal(size=len(Ks[0]))
    assert value(np.concatenate([Ks, [np.outer(v, v)]]), y, criterion, weights) <= here * (1 + 2e-6)
    assert value(Ks, y, criterion, weights, trace=12.0) <= here * (1 + 2e-6)


@few
@given(problems(), criteria)
def test_free_signs_are_never_worse(problem, criterion):
    Ks, y, _ = problem
    assert value(Ks, y, criterion, "free") <= value(Ks, y, criterion) * (1 + 2e-6)


def feasible(rng, y, criterion):
    """A random member of A_C, of any size."""
    bound = criterion["C"]
    return balanced(10 ** rng.uniform(-2, 1) * rng.exponential(size=y.size), y, bound)


@few
@given(problems(), criteria)
def test_any_alpha_gives_a_lower_bound(problem, criterion):
    Ks, y, rng = problem
    N, c, r = len(Ks[0]), 10.0, np.trace(Ks, axis1=1, axis2=2)
    best = value(Ks, y, criterion)
    for _ in range(10):
        a = feasible(rng, y, criterion)
        forms = np.array([(a * y) @ K[: y.size, : y.size] @ (a * y) for K in Ks]) / r
        if criterion["tau"] == "learned":
            lower = 2 * a.sum() - c * max(forms.max(), a @ a / N)
        else:
            lower = 2 * a.sum() - criterion["tau"] * a @ a - c * forms.max()
        assert lower <= best * (1 + 1e-9)


@few
@given(problems(), criteria)
def test_any_weights_give_an_upper_bound(problem, criterion):
    Ks, y, rng = problem
    N, c, r = len(Ks[0]), 10.0, np.trace(Ks, axis1=1, axis2=2)
    best = value(Ks, y, criterion)
    for _ in range(3):
        shares = c * rng.dirichlet(np.ones(len(Ks) + 1))
        tau = shares[-1] / N if criterion["tau"] == "learned" else criterion["tau"]
        mu = shares[:-1] if criterion["tau"] == "learned" else c * shares[:-1] / shares[:-1].sum()
        assert omega(np.tensordot(mu / r, Ks, 1), y, criterion["C"], tau) >= best * (1 - 1e-6)


@few
@given(problems(), criteria, both)
def test_any_garbage_gets_a_true_certificate(problem, criterion, weights):
    Ks, y, rng = problem
    words = lanckriet.margin(Ks, y, **criterion, weights=weights, trace=10.0).problem
    best = value(Ks, y, criterion, weights)
    garbage = {
        v: np.asarray(rng.normal(size=v.shape)) for v in words.variables() if v.name() in ("mu", "tau")
    }
    found = ko.certify(words, garbage, alpha=10 ** rng.uniform(-2, 2) * rng.normal(size=y.size))
    assert found.lower <= best * (1 + 2e-6) and found.upper >= best * (1 - 2e-6)
    assert found.lower <= found.upper


def angles(Ks, y, norm="full"):
    """q_i = y'K_{i,tr}y and S_ij = <K_i, K_j>."""
    labelled = Ks[:, : y.size, : y.size]
    blocks = labelled if norm == "train" else Ks
    return np.einsum("i,mij,j->m", y, labelled, y), np.einsum("aij,bij->ab", blocks, blocks)


@pytest.mark.parametrize("weights", ["nonnegative", "free"])
@pytest.mark.parametrize("seed", range(3))
def test_alignment_is_the_printed_sdp(weights, seed):
    size, y = 8, Y[:6]
    Ks = random_kernels(size, 3, 2, seed)
    solution = learned(lanckriet.alignment(Ks, y, weights=weights))
    mu, A = cp.Variable(3), cp.Variable((size, size), symmetric=True)
    K = cp.sum([mu[i] * Ks[i] for i in range(3)])
    sign = [mu >= 0] if weights == "nonnegative" else [K >> 0]
    target = cp.sum(cp.multiply(np.outer(y, y), K[:6, :6]))
    lmi = [cp.trace(A) <= 1, cp.bmat([[A, K.T], [K, np.eye(size)]]) >> 0]
    assert solved(cp.Problem(cp.Maximize(target), [*lmi, *sign])) == close(solution.value)
    q, S = angles(Ks, y)
    assert solution.weights @ S @ solution.weights == close(1) and q @ solution.weights == close(
        solution.value
    )
    assert solution.weights == pytest.approx(mu.value, abs=1e-3)
    L = np.linalg.cholesky(S)
    short = solved(cp.Problem(cp.Maximize(q @ mu), [cp.norm2(L.T @ mu) <= 1, *sign]))
    assert short == close(solution.value)
    singles = q / np.sqrt(np.diag(S))
    assert solution.value >= max(singles.max(), q.sum() / np.sqrt(S.sum())) * (1 - 1e-9)


def test_free_signs_align_better():
    strict = 0
    for seed in range(6):
        Ks, y = random_kernels(8, 3, 5, seed), Y[:6]
        free = learned(lanckriet.alignment(Ks, y, weights="free"))
        tied = learned(lanckriet.alignment(Ks, y))
        assert free.value >= tied.value * (1 - 1e-6)
        strict += free.lower > tied.upper * (1 + 1e-3)
        assert np.linalg.eigvalsh(free.kernel)[0] >= -1e-8
    assert strict >= 1


@pytest.mark.parametrize("norm", ["full", "train"])
def test_alignment_is_a_quadratic_programme(norm):
    q, S = angles(KS, Y, norm)
    solution = learned(lanckriet.alignment(KS, Y, norm=norm))
    mu = cp.Variable(3)
    value = solved(cp.Problem(cp.Minimize(cp.quad_form(mu, S) - 2 * q @ mu), [mu >= 0]))
    assert value == close(-(solution.value**2))
    assert mu.value / solution.value == pytest.approx(solution.weights, abs=1e-4)
    assert mu.value / solution.value == pytest.approx(solution.weights, rel=1e-3, abs=1e-6)


def test_alignment_of_orthonormal_rank_one_kernels():
    V = vectors("orthonormal", m=6)
    solution = learned(lanckriet.alignment(ko.Grams.rank_one(V), Y))
    q = (V[:n].T @ Y) ** 2
    assert solution.value == close(np.linalg.norm(q))
    assert solution.weights == pytest.approx(q / np.linalg.norm(q), abs=1e-3)  # root of the gap


@pytest.mark.parametrize("norm", ["full", "train"])
@pytest.mark.parametrize("seed", range(3))
def test_alignment_bounds_for_any_weights(norm, seed):
    rng = np.random.default_rng(seed)
    Ks = np.concatenate([KS, random_kernels(N, 2, 3, seed)])
    q, S = angles(Ks, Y, norm)
    solution = lanckriet.alignment(Ks, Y, norm=norm).solve(tol=1e-9)

    def bounds(mu):
        length = np.sqrt(mu @ S @ mu)
        return q @ mu / length, length * (q / (S @ mu)).max()

    for mu in [*rng.uniform(size=(20, 5)), *np.eye(5), solution.weights * rng.uniform(0.999, 1.001, 5)]:
        lower, upper = bounds(mu)
        assert lower <= solution.upper * (1 + 1e-12) and upper >= solution.lower * (1 - 1e-12)
        assert bounds(7 * mu) == pytest.approx((lower, upper), rel=1e-12)
    lower, upper = bounds(solution.weights)
    # the upper bound is of first order in the error of the weights, the root of the gap
    assert lower == close(solution.value) and upper == close(solution.value, 1e-4)


def test_alignment_norms():
    full, train = (learned(lanckriet.alignment(KS, Y, norm=norm)) for norm in ("full", "train"))
    assert train.value > full.value * 1.01  # a smaller norm
    K, L = full.kernel, train.kernel[:n, :n]
    assert np.linalg.norm(K) == close(1) and np.linalg.norm(L) == close(1)
    assert Y @ K[:n, :n] @ Y == close(full.value) and Y @ L @ Y == close(train.value)
    assert train.value / n <= 1
    square = KS[:, :n, :n]
    one, two = (learned(lanckriet.alignment(square, Y, norm=norm)) for norm in ("full", "train"))
    assert one.value == close(two.value) == close(train.value)
    assert one.weights == pytest.approx(two.weights, abs=1e-6)
    ideal = learned(lanckriet.alignment([np.outer(Y, Y), square[0]], Y))
    assert ideal.value / n == close(1)  # the labels' own kernel


@pytest.mark.parametrize("weights", ["nonnegative", "free"])
def test_alignment_has_no_scale(weights):
    plain = learned(lanckriet.alignment(KS, Y, weights=weights))
    s = np.array([1e-6, 5.0, 1e6])
    scaled = learned(lanckriet.alignment(s[:, None, None] * KS, Y, weights=weights))
    flipped = learned(lanckriet.alignment(KS, -Y, weights=weights))
    assert plain.value == close(scaled.value) == close(flipped.value)
    assert s * scaled.weights == pytest.approx(plain.weights, abs=1e-3)
    zero = learned(lanckriet.alignment(np.concatenate([KS, np.zeros((1, N, N))]), Y, weights=weights))
    assert zero.value == close(plain.value) and zero.weights[3] == 0


@pytest.mark.parametrize("weights", ["nonnegative", "free"])
def test_alignment_needs_a_kernel_that_is_aligned(weights):
    y = np.array([1.0, -1, 1, -1])
    constant = np.ones((1, 4, 4))
    with pytest.raises(ValueError, match="none is aligned with the labels. Add a kernel, or centre them"):
        lanckriet.alignment(constant, y, weights=weights)

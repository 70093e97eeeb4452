"""The linear functional strategy: both stages against linear algebra by hand, and what the paper implies.

The facts are Pereverzyev 1.1 to 4.4 (docs/theory).
"""

from __future__ import annotations

import tracemalloc
from dataclasses import replace
from fractions import Fraction
from itertools import combinations, pairwise

import cvxpy as cp
import joblib
import numpy as np
import pytest
from scipy.optimize import nnls

import kernelopt as ko
from formulations import linear_functional as lf
from formulations.linear_functional.method.certificate import stage_certificate
from formulations.linear_functional.method.combination import Combination
from formulations.linear_functional.method.filters import cut_off, iterated_tikhonov, landweber, tikhonov
from formulations.linear_functional.method.spectrum import decomposed, levels
from kernelopt.extend import on_simplex
from tests.every import every
from tests.problems import points, solved, targets

N, ALPHA = 20, 0.03
X = points(N, d=2)
V = targets(N)
KERNELS = [ko.gaussian(0.5), ko.gaussian(1.0), ko.gaussian(4.0), ko.linear(), ko.polynomial(3)]
GRAMS = ko.Grams.from_kernels(KERNELS, X)
KS = np.asarray(GRAMS)
M = len(KERNELS)
CASES = [(w, ridge) for w in ("free", "nonnegative", "simplex") for ridge in (0.0, 0.02)]
cases = pytest.mark.parametrize(("weights", "ridge"), CASES)
COLUMNS = ("training", "leave-one-out", "split")
FILTERS = {"tikhonov": tikhonov, "iterated": iterated_tikhonov(3), "cut-off": cut_off, "landweber": landweber}


def learn(grams=GRAMS, v=V, **options):
    return lf.functional_strategy(grams, v, **{"regularization": ALPHA, **options})


def by_hand(K, v, level):
    return np.linalg.solve(K + level * np.eye(len(K)), v)


# -------------------------------------------------------- the first stage: Pereverzyev 1.1 to 1.4


@pytest.mark.parametrize(("convention", "multiple"), [("mean", N), ("sum", 1)])
@pytest.mark.parametrize("alpha", [0.3, 1e-4, np.linspace(0.01, 1, M)], ids=["large", "small", "each"])
def test_the_candidates_are_the_tikhonov_minimisers(convention, multiple, alpha):
    found = learn(regularization=alpha, convention=convention).candidates
    levels = multiple * np.broadcast_to(alpha, (M,))
    for j, level in enumerate(levels):
        b = found.coefficients[j]
        assert b == pytest.approx(by_hand(KS[j], V, level), rel=1e-6, abs=1e-8)
        assert found.columns[:, j] == pytest.approx(KS[j] @ b, rel=1e-8, abs=1e-8)
        assert V - found.columns[:, j] == pytest.approx(level * b, abs=1e-9)
        assert found.columns[:, j] @ V >= 0


def test_the_first_stage_certifies_itself():
    """Any b is an upper, any r a lower bound; r = n alpha b closes the gap, at alpha v'b."""
    rng = np.random.default_rng(0)
    b = learn().candidates.coefficients[0]
    K = KS[0]

    def above(b):
        return np.sum((V - K @ b) ** 2) / N + ALPHA * b @ K @ b

    def below(r):
        return 2 / N * r @ V - r @ r / N - r @ K @ r / (ALPHA * N**2)

    assert above(b) == pytest.approx(ALPHA * V @ b, rel=1e-10)
    assert below(N * ALPHA * b) == pytest.approx(above(b), rel=1e-10)
    for _ in range(20):
        assert above(b + rng.normal(size=N)) >= above(b) >= below(rng.normal(size=N))
    x = cp.Variable(N)
    problem = cp.Problem(cp.Minimize(cp.sum_squares(V - K @ x) / N + ALPHA * cp.quad_form(x, cp.psd_wrap(K))))
    assert solved(problem) == pytest.approx(above(b), rel=1e-6)


def test_the_scale_of_a_kernel_is_one_over_alpha():
    scaled = learn(3.0 * KS, regularization=3 * ALPHA).candidates
    assert scaled.columns == pytest.approx(learn(KS).candidates.columns, abs=1e-10)
    summed = learn(KS, regularization=N * ALPHA, convention="sum").candidates
    assert summed.columns == pytest.approx(learn(KS).candidates.columns, abs=1e-12)


@pytest.mark.parametrize("name", FILTERS)
def test_low_rank_is_read_from_a_factor_and_changes_nothing(name, monkeypatch):
    """The factor of a pivoted Cholesky, or an eigendecomposition: the same candidates to 1e-7."""
    X = points(60, d=2)
    kernels = [ko.on_columns(ko.gaussian(3.0), 0), ko.linear(), ko.on_columns(ko.polynomial(3), 1)]
    grams, v = ko.Grams.from_kernels(kernels, X), targets(60)
    one = learn(grams, v, filter=FILTERS[name])
    data = one.candidates.data
    assert all(decomposed(grams, j, data, 60 * ALPHA).values.size <= 20 for j in range(3))
    monkeypatch.setattr("formulations.linear_functional.method.spectrum.FACTOR_TOLERANCE", -1.0)
    two = learn(grams, v, filter=FILTERS[name])
    assert decomposed(grams, 0, data, 60 * ALPHA).values.size == 60
    assert one.candidates.columns == pytest.approx(two.candidates.columns, abs=1e-7)


# ----------------------------------------------------------------------- filters: Pereverzyev 1.5


def test_landweber_is_the_iteration():
    for steps in (1, 2, 7, 100):
        K = KS[1]
        top = np.linalg.eigvalsh(K)[-1]
        found = learn(K[None], regularization=top / (N * steps), filter=landweber).candidates
        b = np.zeros(N)
        for _ in range(steps):
            b = b + (V - K @ b) / top
        assert found.coefficients[0] == pytest.approx(b, abs=1e-8)
        closed = V - np.linalg.matrix_power(np.eye(N) - K / top, steps) @ V
        assert found.columns[:, 0] == pytest.approx(closed, abs=1e-10)


def test_iterated_tikhonov_is_the_iteration():
    K = KS[0]
    b = np.zeros(N)
    for times in (1, 2, 3):
        b = b + by_hand(K, V - K @ b, N * ALPHA)
        found = learn(K[None], filter=iterated_tikhonov(times)).candidates
        assert found.coefficients[0] == pytest.approx(b, abs=1e-10)
    assert iterated_tikhonov(1)(np.array([0.0, 2.0]), 0.3) == pytest.approx(
        tikhonov(np.array([0.0, 2.0]), 0.3)
    )


def test_cut_off_projects_on_the_large_eigenvalues():
    values, vectors = np.linalg.eigh(KS[1])
    kept = vectors[:, values >= N * ALPHA]
    found = learn(KS[1][None], filter=cut_off).candidates
    assert 0 < kept.shape[1] < N
    assert found.columns[:, 0] == pytest.approx(kept @ (kept.T @ V), abs=1e-10)


@pytest.mark.parametrize("name", FILTERS)
def test_a_filter_shrinks_and_fits_as_alpha_vanishes(name):
    eigenvalues = np.linspace(0.1, 3, 30)
    last = np.zeros(30)
    for level in (10.0, 1.0, 0.2, 0.05, 1e-6):
        shrunk = eigenvalues * FILTERS[name](eigenvalues, level)
        assert (shrunk >= last - 1e-12).all() and (shrunk <= 1 + 1e-12).all()
        last = shrunk
    assert last == pytest.approx(1.0, abs=1e-4)


# ------------------------------------------- leave-one-out, split, alpha: Pereverzyev 1.6 and 1.7


@pytest.mark.parametrize("intercept", ["none", "column"])
def test_leave_one_out_columns_are_those_of_refitting(intercept):
    found = learn(columns="leave-one-out", intercept=intercept).candidates
    for j, K in enumerate(KS):
        for i in range(N):
            others = np.delete(np.arange(N), i)
            b = by_hand(K[np.ix_(others, others)], V[others], N * ALPHA)  # with the level of all points
            assert found.columns[i, j] == pytest.approx(K[i, others] @ b, abs=1e-8)
    assert found.coefficients == pytest.approx(learn(intercept=intercept).candidates.coefficients)


def test_split_columns_are_predictions_of_held_out_points():
    held = [0, 5, 6, 19]
    strategy = learn(columns="split", held_out=held)
    trained = np.setdiff1d(np.arange(N), held)
    found = strategy.candidates
    for j, K in enumerate(KS):
        b = by_hand(K[np.ix_(trained, trained)], V[trained], trained.size * ALPHA)
        assert found.columns[:, j] == pytest.approx(K[np.ix_(held, trained)] @ b, abs=1e-8)
        assert not found.coefficients[j, held].any()
    c = strategy.solve(solver=cp.CLARABEL).weights
    assert strategy.stage.value(c) == pytest.approx(np.mean((V[held] - found.columns @ c) ** 2))
    assert (learn(columns="split").candidates.data.evaluated == np.arange(2, N, 3)).all()


@pytest.mark.parametrize("rule", ["gcv", "leave-one-out"])
def test_alpha_is_the_best_of_the_grid(rule):
    grid = np.logspace(-5, 1, 9)
    found = learn(regularization=rule, grid=grid).candidates
    for j, K in enumerate(KS):
        scores = []
        for alpha in grid:
            H = K @ np.linalg.inv(K + N * alpha * np.eye(N))
            r = V - H @ V
            if rule == "gcv":
                scores.append(r @ r / N / (1 - np.trace(H) / N) ** 2)
            else:
                scores.append(np.mean((r / (1 - np.diag(H))) ** 2))
        assert found.alpha[j] == pytest.approx(grid[np.argmin(scores)])
        assert found.coefficients[j] == pytest.approx(by_hand(K, V, N * found.alpha[j]), rel=1e-5, abs=1e-6)


def test_the_default_grid_follows_the_scale_of_the_kernel():
    one, two = (learn(scale * KS, regularization="gcv").candidates for scale in (1.0, 100.0))
    assert two.alpha == pytest.approx(100 * one.alpha)
    assert two.columns == pytest.approx(one.columns, abs=1e-7)
    summed = learn(regularization="gcv", convention="sum").candidates
    assert summed.alpha == pytest.approx(N * one.alpha)
    assert (np.diff(levels(KS[0], one.data)) < 0).all()
    assert learn(regularization="gcv", filter=landweber).candidates.columns.shape == (N, M)


# ------------------------------------------------------- the second stage: Pereverzyev 2.1 to 3.2


@cases
@every("columns", COLUMNS)
def test_primal_is_dual_and_certified(weights, ridge, columns):
    strategy = learn(weights=weights, ridge=ridge, columns=columns)
    plain = solved(strategy.problem)
    assert solved(strategy.dual()) == pytest.approx(plain, rel=1e-5, abs=1e-7)
    solution = strategy.solve()
    assert solution.upper - solution.lower <= 1e-7 * max(1.0, solution.upper)
    assert solution.value == pytest.approx(plain, rel=1e-5, abs=1e-7)
    c, stage = solution.weights, strategy.stage
    r, n = stage.v - stage.X @ c, stage.n
    slope = stage.X.T @ r - n * ridge * c  # minus half n times the gradient
    if weights == "free":
        assert slope == pytest.approx(0.0, abs=1e-8)
    elif weights == "nonnegative":
        assert c.min() >= 0 and slope.max() <= 1e-4 and abs(slope @ c) <= 1e-4
    else:
        assert c.min() >= 0 and c.sum() == pytest.approx(1.0, abs=1e-12)
        assert slope @ c == pytest.approx(slope.max(), abs=1e-3)


@cases
def test_bounds_hold_for_any_weights(weights, ridge):
    strategy = learn(weights=weights, ridge=ridge)
    optimum = strategy.solve().value
    rng = np.random.default_rng(1)
    for scale in (0.0, 1e-3, 1.0, 1e4):
        for _ in range(10):
            bounds = strategy.at(scale * rng.normal(size=M)).certificate
            assert bounds.lower <= optimum + 1e-7 and optimum <= bounds.upper + 1e-7


@pytest.mark.parametrize("ridge", [0.0, 0.02])
def test_closed_form_is_the_conic_solution(ridge):
    """Pereverzyev 2.1, with the normal equations that nothing else here forms, and both direct routes."""
    strategy = learn(ridge=ridge, grams=KS[[0, 1, 3]])
    A, n = strategy.stage.X, N
    expected = np.linalg.solve(A.T @ A / n + ridge * np.eye(3), A.T @ V / n)
    conic = strategy.solve(solver=cp.CLARABEL)
    assert conic.solver == "CLARABEL" and conic.weights == pytest.approx(expected, rel=1e-4)
    direct = strategy.solve()
    assert (direct.method, direct.solver) == ("least-squares", "svd")
    for by in ("svd", "qr"):
        solution = strategy.solve_directly(by)
        assert solution.weights == pytest.approx(expected, rel=1e-9)
        assert solution.rank == 3 and 1 <= solution.condition < 1e6
        as_stored = replace(strategy.stage, errors=None)
        assert stage_certificate(as_stored, solution.weights).gap <= 1e-14
        assert solution.gap <= 1e-11  # the columns are known to n units of rounding
        assert solution.decision_function() == pytest.approx(A @ expected, abs=1e-8)


def test_dependent_columns_are_reported_and_weights_shared_or_left_out():
    strategy = learn(np.concatenate([KS[:2], KS[:2], 0 * KS[:1]]))
    svd, qr = strategy.solve_directly(), strategy.solve_directly("qr")
    single = learn(KS[:2]).solve_directly()
    assert svd.rank == qr.rank == single.rank == 2
    assert svd.weights[:2] == pytest.approx(svd.weights[2:4]) and svd.weights[4] == 0
    assert 2 * svd.weights[:2] == pytest.approx(single.weights)
    assert (qr.weights != 0).sum() == 2
    for one in (svd, qr):
        assert one.decision_function() == pytest.approx(single.decision_function(), abs=1e-9)
        assert stage_certificate(replace(strategy.stage, errors=None), one.weights).gap <= 1e-12
        assert one.gap <= 1e-11  # the columns are known to n units of rounding


def test_more_kernels_than_points_interpolate():
    kernels = [ko.gaussian(w) for w in np.linspace(0.2, 2, 3 * N)]
    grams = ko.Grams.from_kernels([ko.on_columns(k, j) for k in kernels for j in (0, 1)], X)
    solution = learn(grams, regularization=1e-3).solve()
    assert solution.value <= 1e-6 and solution.gap <= 1e-6
    assert solution.decision_function() == pytest.approx(V, abs=0.05)


def test_conditioning_grows_as_alpha_vanishes():
    """Every column of a regular kernel tends to v."""
    found = [learn(KS[:2], regularization=10.0**-k).solve_directly(rcond=1e-15) for k in (2, 5, 8)]
    assert found[0].condition < found[1].condition < found[2].condition
    assert found[0].value > found[1].value > found[2].value >= 0


def test_simplex_and_hand_cases():
    assert on_simplex(np.array([2.0, 0.0]), 1.0)[0] == pytest.approx([1, 0])
    assert on_simplex(np.array([0.3, 0.1]), 1.0)[0] == pytest.approx([0.6, 0.4])
    one = learn(KS[:1])
    x = one.candidates.columns[:, 0]
    assert one.solve().weights == pytest.approx([x @ V / (x @ x)])
    nothing = learn(v=np.zeros(N))
    assert nothing.solve().weights == pytest.approx(0.0) and not nothing.candidates.columns.any()
    zero = learn(0 * KS[:2])
    assert zero.solve().value == pytest.approx(V @ V / N) and zero.solve_directly().rank == 0
    assert learn(0 * KS[:2], filter=landweber).solve().weights == pytest.approx(0.0)


def test_the_polar_cone_is_reached_where_targets_do_not_help():
    """A column and its negative: c >= 0 can do all that a free c can, and X'v has both signs."""
    x = points(8, d=1)[:, 0]
    for v in (x + 1, -x, np.ones(8)):
        stage = Combination(np.column_stack([x, -x]), v, 0.0, "nonnegative")
        best = x @ v / (x @ x)
        bounds = stage_certificate(stage, np.maximum([best, -best], 0.0))
        assert bounds.lower == pytest.approx(np.sum((v - x * best) ** 2) / 8, abs=1e-12)
        assert bounds.gap <= 1e-13


# ---------------------------------------------------- bounds in exact arithmetic: Pereverzyev 2.4

KINDS = ("tall", "square", "wide", "nearly dependent", "repeated", "zero column", "exact fit", "spread")


def small_problem(kind, seed):
    """X and v with at most four columns and a few points."""
    rng = np.random.default_rng(seed)
    M = int(rng.integers(2, 5))
    n = {"square": M, "wide": M - 1}.get(kind, M + int(rng.integers(1, 4)))
    X, v = rng.normal(size=(n, M)), rng.normal(size=n)
    if kind == "nearly dependent":
        X[:, -1] = X[:, 0] * (1 + 10.0 ** -rng.integers(2, 17) * rng.normal(size=n))
    elif kind == "repeated":
        X[:, -1] = rng.choice([-2.0, -1.0, 1.0, 0.5]) * X[:, 0]
    elif kind == "zero column":
        X[:, -1] = 0.0
    elif kind == "exact fit":
        X, v = rng.integers(-3, 4, size=(n, M)) + 0.0, np.zeros(n)
        v[:] = X @ rng.integers(0, 3, size=M)
    elif kind == "spread":
        X = X * 10.0 ** rng.integers(-9, 9, size=M)
    return X, v


def exact_solution(A, b):
    """The solution of A x = b in fractions, None where A is singular."""
    A = [[*row, value] for row, value in zip(A, b, strict=True)]
    for k in range(len(A)):
        pivot = next((i for i in range(k, len(A)) if A[i][k]), None)
        if pivot is None:
            return None
        A[k], A[pivot] = A[pivot], A[k]
        for i in range(len(A)):
            if i != k and A[i][k]:
                factor = A[i][k] / A[k][k]
                A[i] = [a - factor * p for a, p in zip(A[i], A[k], strict=True)]
    return [row[-1] / row[k] for k, row in enumerate(A)]


def exact_optimum(X, v, ridge, weights):
    """The least objective over all supports whose stationary point is unique and in the set.

    Without a ridge some optimum has independent columns (on the simplex: affinely independent ones).
    """
    X, v = [[Fraction(x) for x in row] for row in X.tolist()], [Fraction(x) for x in v.tolist()]
    n, M, ridge = len(v), len(X[0]), Fraction(ridge)
    G = [[sum(row[i] * row[j] for row in X) / n + (i == j) * ridge for j in range(M)] for i in range(M)]
    g = [sum(row[i] * value for row, value in zip(X, v, strict=True)) / n for i in range(M)]
    best = None
    for size in range(M + 1):
        for S in combinations(range(M), size):
            A, b = [[G[i][j] for j in S] for i in S], [g[i] for i in S]
            if weights == "simplex":
                A = [[*row, Fraction(1)] for row in A] + [[Fraction(1)] * size + [Fraction(0)]]
                b = [*b, Fraction(1)]
            c = exact_solution(A, b)
            if c is None or (weights != "free" and any(x < 0 for x in c[:size])):
                continue
            c = c[:size]
            r = [value - sum(row[j] * x for j, x in zip(S, c, strict=True))
                 for row, value in zip(X, v, strict=True)]  # fmt: skip
            found = sum(x * x for x in r) / n + ridge * sum(x * x for x in c)
            best = found if best is None else min(best, found)
    return best


def good_weights(stage):
    """Weights near the optimum, found without the code that is tested."""
    M, root = stage.X.shape[1], np.sqrt(stage.n * stage.ridge)
    A, b = np.vstack([stage.X, root * np.eye(M)]), np.concatenate([stage.v, np.zeros(M)])
    if stage.weights == "free":
        return np.linalg.lstsq(A, b, rcond=None)[0]
    if stage.weights == "simplex":
        A, b = np.vstack([A, 1e4 * np.ones(M)]), np.append(b, 1e4)
    return nnls(A, b)[0]


@cases
@every("kind", KINDS)
def test_bounds_hold_in_exact_arithmetic(kind, weights, ridge):
    for seed in range(7):
        X, v = small_problem(kind, seed)
        stage = Combination(X, v, ridge, weights)
        optimum = exact_optimum(X, v, ridge, weights)
        good = good_weights(stage)
        rng = np.random.default_rng(seed)
        for c in (good, good + 1e-7 * rng.normal(size=good.size), rng.normal(size=good.size), 0 * good + 1.0):
            bounds = stage_certificate(stage, c)
            assert Fraction(bounds.lower) <= optimum <= Fraction(bounds.upper)
            assert bounds.gap > 0 or Fraction(bounds.lower) == optimum == Fraction(bounds.upper)


@cases
@every("kind", ["tall", "square", "repeated", "zero column"])
def test_bounds_are_tight_where_the_columns_allow_it(kind, weights, ridge):
    """A gap of a few roundings of |v|^2 at good weights; on the simplex they are good to 1e-8 here."""
    for seed in range(7):
        X, v = small_problem(kind, seed)
        stage = Combination(X, v, ridge, weights)
        bounds = stage_certificate(stage, good_weights(stage))
        assert bounds.gap <= (1e-6 if weights == "simplex" else 1e-14)


def test_numbers_that_overflow_prove_nothing():
    stage = Combination(np.array([[1e200], [1.0]]), np.array([1.0, 1e200]), 0.0, "free")
    bounds = stage_certificate(stage, np.array([1e200]))
    assert bounds.lower == 0.0 and bounds.upper == np.inf


def test_large_numbers_are_projected_on_the_simplex():
    """One is lost in the sum of numbers above 2^53."""
    assert on_simplex(np.array([1e17, 0.0]), 1.0)[0] == pytest.approx([1, 0])
    assert on_simplex(np.array([1e17, 1e17]), 1.0)[0] == pytest.approx([0.5, 0.5])


# ------------------------------------------------------------ invariances: Pereverzyev 4.1 to 4.3


def value(**options):
    return learn(**options).solve().value


def test_values_are_ordered():
    free, cone, simplex = (value(weights=w) for w in ("free", "nonnegative", "simplex"))
    assert free <= cone + 1e-7 and cone <= simplex + 1e-7
    assert simplex <= min(np.mean((V[:, None] - learn().candidates.columns) ** 2, axis=0)) + 1e-6
    nested = [value(grams=KS[:m]) for m in range(1, M + 1)]
    assert all(b <= a + 1e-9 for a, b in pairwise(nested))


def test_a_ridge_costs_and_in_the_end_shrinks_to_nothing():
    ridges = [0.0, 1e-4, 1e-2, 1.0, 1e8]
    values = [value(ridge=ridge) for ridge in ridges]
    assert values == sorted(values)
    assert values[-1] == pytest.approx(V @ V / N, rel=1e-5)


@cases
def test_permutation_permutes_the_weights(weights, ridge):
    order = [3, 0, 4, 2, 1]
    one, two = (learn(g, weights=weights, ridge=ridge).solve() for g in (KS, KS[order]))
    assert two.value == pytest.approx(one.value, rel=1e-5)
    if weights == "free":
        assert two.weights == pytest.approx(one.weights[order], rel=1e-5, abs=1e-7)


def test_scaling_targets_and_columns():
    one, two = learn(KS[:3]).solve(), learn(KS[:3], v=5 * V).solve()
    assert two.weights == pytest.approx(one.weights, rel=1e-8)
    assert two.decision_function() == pytest.approx(5 * one.decision_function())
    strategy = learn(KS[:3])
    mixed = Combination(strategy.stage.X @ np.array([[2.0, 1, 0], [0, -1, 3], [1, 1, 1]]), V, 0.0, "free")
    assert mixed.X @ mixed.directly("svd", 1e-12).c == pytest.approx(strategy.stage.X @ one.weights)
    scaled = Combination(4 * strategy.stage.X, V, 0.0, "free").directly("qr", 1e-12)
    assert 4 * scaled.c == pytest.approx(one.weights)


@pytest.mark.parametrize("columns", COLUMNS)
def test_an_intercept_makes_the_predictions_follow_a_shift(columns):
    for intercept in ("mean", "column"):
        one, two = (learn(KS[[0, 3]], v=V + s, intercept=intercept, columns=columns, regularization=0.5)
                    .solve() for s in (0.0, 7.0))  # fmt: skip
        if intercept == "mean":
            assert two.decision_function() == pytest.approx(one.decision_function() + 7, abs=1e-9)
            assert two.intercept == pytest.approx(one.intercept + 7)
    strategy = learn(KS[[0, 3]], intercept="column")  # against a column of ones
    A = np.column_stack([strategy.candidates.columns, np.ones(N)])
    expected = np.linalg.lstsq(A, V, rcond=None)[0]
    solution = strategy.solve()
    assert [*solution.weights, solution.intercept] == pytest.approx(expected)
    assert solution.decision_function() == pytest.approx(A @ expected)


def test_it_is_no_joint_problem():
    solution = learn(KS[:3]).solve()
    K = np.tensordot(solution.weights, KS[:3], 1)
    assert solution.weights.min() < 0  # and it still predicts anywhere
    assert np.abs(K @ by_hand(K, V, N * ALPHA) - solution.decision_function()).max() > 0.01


# ---------------------------------------------------------------------------- predictions, memory, input


@pytest.mark.parametrize("columns", COLUMNS)
@pytest.mark.parametrize("weights", ["free", "simplex"])
def test_new_points_are_predicted_as_old_ones(columns, weights):
    strategy = learn(columns=columns, weights=weights)
    solution = strategy.solve()
    here = solution.decision_function()
    assert solution.decision_function(KS) == pytest.approx(here, abs=1e-9)
    b = strategy.candidates.coefficients
    assert here == pytest.approx(sum(solution.weights[j] * KS[j] @ b[j] for j in range(M)), abs=1e-9)
    new = points(7, d=2, seed=5)
    cross = GRAMS.cross(new)
    expected = sum(solution.weights[j] * cross[j] @ b[j] for j in range(M))
    assert solution.decision_function(cross) == pytest.approx(expected, abs=1e-9)
    assert solution.alpha.shape == (M, N)
    with pytest.raises(ko.ShapeError, match="cross must have shape"):
        solution.decision_function(cross[1:])


def test_points_without_targets_are_predicted_too():
    solution, short = learn(v=V[:15]).solve(), learn(KS[:, :15, :15], v=V[:15]).solve()
    assert solution.alpha.shape == (M, 15)
    assert solution.decision_function()[:15] == pytest.approx(short.decision_function(), abs=1e-8)
    assert solution.decision_function()[15:] == pytest.approx(
        short.decision_function(KS[:, 15:, :15]), abs=1e-8
    )


def test_baselines_come_from_the_same_candidates():
    strategy = learn()
    average = strategy.at(np.full(M, 1 / M))
    assert average.decision_function() == pytest.approx(strategy.candidates.columns.mean(axis=1), abs=1e-9)
    assert average.lower <= strategy.solve().value <= average.upper
    other = strategy.with_weights("simplex", ridge=0.1)
    assert other.candidates is strategy.candidates and other.solve().weights.sum() == pytest.approx(1)


def test_jobs_change_nothing_and_kernels_are_let_go():
    kernels = [ko.gaussian(w) for w in np.linspace(0.5, 3, 120)]
    grams, v = ko.Grams.from_kernels(kernels, points(300, d=2)), targets(300)
    one = learn(grams, v)
    assert not any(j in grams.storage._cache for j in range(120))
    with joblib.parallel_config(n_jobs=2):
        two = learn(grams, v)
    assert (one.candidates.columns == two.candidates.columns).all()
    tracemalloc.start()
    learn(grams, v)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 45 * 8 * 300**2  # sixteen matrices and factors at a time, and a few to work with


@every(
    ("options", "error", "match"),
    [
        ({"regularization": 0.0}, ko.ParameterError, "regularization must be positive"),
        ({"regularization": [0.1, -1]}, ko.ParameterError, "regularization must be positive"),
        ({"regularization": np.nan}, ko.ParameterError, "regularization must be positive"),
        ({"regularization": [0.1, 0.2]}, ko.ShapeError, r"one per kernel \(5\), got 2 values"),
        ({"regularization": "cv"}, ko.ParameterError, "'gcv' or 'leave-one-out', got 'cv'"),
        ({"regularization": "gcv", "grid": [0.0]}, ko.ParameterError, "grid must be positive"),
        ({"ridge": -1.0}, ko.ParameterError, "ridge must be a non-negative"),
        ({"weights": "positive"}, ko.ParameterError, "weights must be 'free'"),
        ({"columns": "loo"}, ko.ParameterError, "columns must be 'training'"),
        ({"convention": "median"}, ko.ParameterError, "convention must be 'mean' or 'sum'"),
        ({"intercept": True}, ko.ParameterError, "intercept must be 'none'"),
        ({"filter": "tikhonov"}, ko.ParameterError, "filter must be a function"),
        ({"filter": cut_off, "columns": "leave-one-out"}, ko.ParameterError, "filter=tikhonov only"),
        ({"filter": cut_off, "regularization": "leave-one-out"}, ko.ParameterError, "filter=tikhonov only"),
        ({"held_out": [1]}, ko.ParameterError, 'belongs to columns="split"'),
        ({"columns": "split", "held_out": [25]}, ko.ParameterError, "indices of points below 20"),
        ({"columns": "split", "held_out": [1, 1]}, ko.ParameterError, "each point once"),
        ({"columns": "split", "held_out": np.arange(N)}, ko.ShapeError, "points for both stages"),
        ({"v": V[:1], "columns": "leave-one-out"}, ko.ShapeError, "points for both stages"),
        ({"v": [np.inf, 1]}, ko.NotFiniteError, "must be finite"),
        ({"v": np.ones(N + 1)}, ko.ShapeError, "at most 20 entries"),
        ({"grams": KS[:, :3]}, ko.ShapeError, "shape"),
        ({"grams": KS[:0]}, ko.ShapeError, "at least one kernel"),
        ({"grams": np.triu(KS)}, ko.NotSymmetricError, "symmetric"),
        ({"grams": -KS}, ko.NotPSDError, "positive semidefinite"),
        ({"grams": np.full((1, N, N), np.nan)}, ko.NotFiniteError, "finite"),
    ],
)
def test_bad_input_is_refused(options, error, match):
    with pytest.raises(error, match=match):
        learn(**options)


def test_bad_questions_are_refused():
    with pytest.raises(ko.ParameterError, match="times must be an integer >= 1"):
        iterated_tikhonov(0)
    with pytest.raises(ko.MethodError, match='weights="free"'):
        learn(weights="simplex").solve_directly()
    with pytest.raises(ko.ParameterError, match="by must be 'svd' or 'qr'"):
        learn().solve_directly("cholesky")
    with pytest.raises(ko.ParameterError, match="rcond must be below 1"):
        learn().solve_directly(rcond=1.0)
    with pytest.raises(ko.ShapeError, match="weights must be 5 finite numbers"):
        learn().at([1.0])

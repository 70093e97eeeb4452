"""Kernels and features from relative comparisons (Fung et al. 2007): the programme, its dual, its bounds.

The facts are Fung 1.1 to 6.2 (docs/theory).

The oracles are written once more here, with loops: the programme and its dual for scipy's `linprog`, the
closed form of the objective, and the dominance of a matrix.
"""

from __future__ import annotations

import warnings
from functools import cache
from importlib import import_module

import cvxpy as cp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linprog

import kernelopt as ko
from formulations import triplet_lp
from kernelopt.errors import (
    ConditionWarning,
    ConvergenceWarning,
    InputError,
    NotFiniteError,
    NotPSDError,
    NotSymmetricError,
    ParameterError,
    ShapeError,
)
from tests.every import every
from tests.problems import points, solved

path_module = import_module("formulations.triplet_lp.regularization_path")  # the function hides it

CONES = ("dominant", "psd", "nonnegative")
LINEAR = ("dominant", "nonnegative")
TIGHT = 1e-8  # of a linear programme: relative to max(1, value)
CONIC = 2e-6  # of a semidefinite one
cones = pytest.mark.parametrize("cone", CONES)
linear = pytest.mark.parametrize("cone", LINEAR)


def tolerance(cone):
    return CONIC if cone == "psd" else TIGHT


def near(value, other, tolerance):
    return abs(value - other) <= tolerance * max(1.0, abs(other))


# ---------------------------------------------------------------------------------------- data


def blobs(seed, n=14, d=3, T=25):
    """Points of two classes that differ in the first coordinate, and triplets of their labels."""
    rng = np.random.default_rng(seed)
    y = (np.arange(n) >= n // 2).astype(int)
    X = rng.normal(size=(n, d))
    X[:, 0] += 3 * y
    return X, ko.sample_triplets(y, T, random_state=rng)


@cache
def plain(seed, N=12, T=18):
    """Gaussians, the identity and a linear kernel, on more points than the triplets have."""
    X, triplets = blobs(seed, N, 3, T)
    kernels = [ko.gaussian(w) for w in (0.4, 1.0, 2.5)] + [ko.normalized(ko.linear()), ko.identity()]
    return np.asarray(ko.Grams.from_kernels(kernels, X)), triplets, np.arange(5)


@cache
def signed(seed, N=9, T=14):
    """Symmetric matrices of any signature in three groups, and triplets that may contradict each other."""
    rng = np.random.default_rng(seed)
    A = 0.3 * rng.normal(size=(5, N, N))
    diagonal = rng.uniform(0.0, 2.5, size=(5, N))
    K = (A + A.transpose(0, 2, 1)) / 2 + diagonal[:, :, None] * np.eye(N)
    triplets = np.array([rng.permutation(N - 1)[:3] for _ in range(T)])  # the last point is in none
    return np.concatenate([K, np.eye(N)[None]]), triplets, np.array([0, 0, 1, 2, 2, 3])


def semidefinite(seed, N=9, T=14):
    """As `signed`, with positive semidefinite matrices."""
    grams, triplets, groups = signed(seed, N, T)
    low = np.linalg.eigvalsh(grams)[:, 0]
    return grams - np.minimum(low, 0.0)[:, None, None] * np.eye(N), triplets, groups


DATA = {"plain": plain, "signed": signed, "semidefinite": semidefinite}
PRICES = ((0.3, 0.05), (0.05, 0.02), (0.02, 0.0), (0.0, 0.03), (0.0, 0.0))
INSTANCES = [  # 48 of them
    (kind, seed, cone, gamma1, gamma2)
    for kind in DATA
    for seed in (0, 1)
    for cone in LINEAR
    for gamma1, gamma2 in PRICES
    if not (kind == "signed" and cone == "nonnegative")
]
instances = pytest.mark.parametrize(("kind", "seed", "cone", "gamma1", "gamma2"), INSTANCES)


def distance(found):
    """The distance of two bounds relative to max(1, |upper|)."""
    return (found.upper - found.lower) / max(1.0, abs(found.upper))


def quietly(build, *arguments, **options):
    """Build or solve where contradictions and collapse are expected."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConditionWarning)
        return build(*arguments, **options)


def formulated(grams, triplets, groups, **options):
    return quietly(triplet_lp.feature_selection, grams, triplets, groups, **options)


def optimum(grams, triplets, groups, **options):
    """The certified solution, with a check of its bounds."""
    tight = tolerance(options.get("cone", "dominant"))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # near zero the gap is above the distance
        solution = quietly(formulated(grams, triplets, groups, **options).solve, tol=tight)
    assert (solution.status == "optimal") == (solution.gap <= tight) and distance(solution) <= tight
    return solution


# ------------------------------------------------------------------------------------- oracles


def dominance(K, S):
    return np.array([K[i, i] - sum(abs(K[i, j]) for j in S if j != i) for i in S])


def phi(alpha, grams, triplets, groups, gamma1, gamma2, S=None, margin=1.0):
    """The objective in closed form, Fung 1.3."""
    K = sum(a * matrix for a, matrix in zip(alpha, grams, strict=True))
    S = np.unique(triplets) if S is None else S
    total = sum(max(margin - K[i, j] + K[i, k], 0.0) for i, j, k in triplets)
    for f in np.unique(groups):
        total += gamma1 * max(abs(a) for a, g in zip(alpha, groups, strict=True) if g == f)
    return total + gamma2 * sum(K[i, i] for i in S)


def programme(grams, triplets, groups, gamma1, gamma2, cone="dominant", S=None, margin=1.0):
    """The linear programme for scipy: (status, value, alpha). `cone` may also be "both" or "none"."""
    S = np.unique(triplets) if S is None else np.unique(S)
    labels, of = np.unique(groups, return_inverse=True)
    pairs = [(i, j) for a, i in enumerate(S) for j in S[a + 1 :]]
    m, F, P, T = len(grams), len(labels), len(pairs), len(triplets)
    q = np.array([sum(K[i, i] for i in S) for K in grams])
    cost = np.concatenate([gamma2 * q, np.full(F, gamma1), np.zeros(P), np.ones(T)])
    rows, right = [], []

    def at_most(bound, alpha=0.0, s=(), r=(), eps=()):
        row = np.zeros(m + F + P + T)
        row[:m] = alpha
        for start, entries in ((m, s), (m + F, r), (m + F + P, eps)):
            for index, entry in entries:
                row[start + index] += entry
        rows.append(row)
        right.append(bound)

    for t, (i, j, k) in enumerate(triplets):
        at_most(-margin, alpha=-(grams[:, i, j] - grams[:, i, k]), eps=[(t, -1.0)])
    for p in range(m):
        for sign in (1.0, -1.0):
            at_most(0.0, alpha=sign * np.eye(m)[p], s=[(of[p], -1.0)])
    if cone in ("dominant", "both"):
        for index, (i, j) in enumerate(pairs):
            for sign in (1.0, -1.0):
                at_most(0.0, alpha=sign * grams[:, i, j], r=[(index, -1.0)])
        for i in S:
            around = [(index, 1.0) for index, pair in enumerate(pairs) if i in pair]
            at_most(0.0, alpha=-grams[:, i, i], r=around)
    low = 0.0 if cone in ("nonnegative", "both") else None
    bounds = [(low, None)] * m + [(0, None)] * F + [(None, None)] * P + [(0, None)] * T
    found = linprog(cost, A_ub=np.array(rows), b_ub=right, bounds=bounds, method="highs-ds")
    return found.status, found.fun, None if found.x is None else found.x[:m]


def dual_programme(
    grams, triplets, groups, gamma1, gamma2, cone="dominant", S=None, margin=1.0, u_is_one=False
):
    """The dual for scipy, or with u = 1 the least gamma1 of which alpha = 0 is optimal."""
    S = np.unique(triplets) if S is None else np.unique(S)
    labels, of = np.unique(groups, return_inverse=True)
    place = {point: a for a, point in enumerate(S)}
    pairs = [(i, j) for a, i in enumerate(S) for j in S[a + 1 :]] if cone == "dominant" else []
    m, T, n, P = len(grams), len(triplets), len(S) if cone == "dominant" else 0, len(pairs)
    u, v, w = slice(0, T), slice(T, T + n), slice(T + n, T + n + P)
    above, below, price = slice(w.stop, w.stop + m), slice(w.stop + m, w.stop + 2 * m), w.stop + 2 * m
    size = price + 1
    equal, caps = np.zeros((m, size)), []
    for p, K in enumerate(grams):
        equal[p, u] = [K[i, j] - K[i, k] for i, j, k in triplets]
        equal[p, v] = [K[i, i] for i in S[:n]]
        equal[p, w] = [K[i, j] for i, j in pairs]
        equal[p, above.start + p], equal[p, below.start + p] = -1.0, 1.0
    for f in range(len(labels)):
        row = np.zeros(size)
        row[above] = of == f
        row[below] = 0.0 if cone == "nonnegative" else of == f
        row[price] = -1.0
        caps.append(row)
    for index, (i, j) in enumerate(pairs):
        for sign in (1.0, -1.0):
            row = np.zeros(size)
            row[w.start + index] = sign
            row[v.start + place[i]] = row[v.start + place[j]] = -1.0
            caps.append(row)
    q = np.array([sum(K[i, i] for i in S) for K in grams])
    bounds = [(1.0 if u_is_one else 0.0, 1.0)] * T + [(0, None)] * n + [(None, None)] * P
    bounds += [(0, None)] * (2 * m) + [(0, None) if u_is_one else (gamma1, gamma1)]
    cost = np.zeros(size)
    cost[price if u_is_one else u] = 1.0 if u_is_one else -margin
    found = linprog(
        cost, A_eq=equal, b_eq=gamma2 * q, A_ub=np.array(caps), b_ub=np.zeros(len(caps)), bounds=bounds
    )
    assert found.status == 0
    return found.fun if u_is_one else -found.fun


def semidefinite_programme(grams, triplets, groups, gamma1, gamma2, S=None, margin=1.0):
    """The same over K >> 0 on S, in plain cvxpy: the value."""
    S = np.unique(triplets) if S is None else S
    alpha = cp.Variable(len(grams))
    K = sum(alpha[p] * grams[p][np.ix_(S, S)] for p in range(len(grams)))
    gains = cp.hstack(
        [sum(alpha[p] * (M[i, j] - M[i, k]) for p, M in enumerate(grams)) for i, j, k in triplets]
    )
    groups = np.asarray(groups)
    sizes = [cp.norm_inf(alpha[np.flatnonzero(groups == f)]) for f in np.unique(groups)]
    cost = cp.sum(cp.pos(margin - gains)) + gamma1 * sum(sizes) + gamma2 * cp.trace(K)
    return solved(cp.Problem(cp.Minimize(cost), [K >> 0]))


def value_of(cone, grams, triplets, groups, gamma1, gamma2, **options):
    """The optimum by an oracle."""
    if cone == "psd":
        return semidefinite_programme(grams, triplets, groups, gamma1, gamma2, **options)
    status, value, _ = programme(grams, triplets, groups, gamma1, gamma2, cone, **options)
    assert status == 0
    return value


# ------------------------------------------------------------- Fung 1.1 to 2.2: one value, and KKT


@instances
def test_programme_closed_form_and_dual_have_one_value(kind, seed, cone, gamma1, gamma2):
    grams, triplets, groups = DATA[kind](seed)
    solution = optimum(grams, triplets, groups, gamma1=gamma1, gamma2=gamma2, cone=cone)
    status, value, _ = programme(grams, triplets, groups, gamma1, gamma2, cone)
    assert status == 0
    # Where weights cost nothing they are large, and linprog drops entries below 1e-9.
    assert near(solution.value, value, TIGHT if gamma1 + gamma2 > 0 else 1e-6)
    assert near(dual_programme(grams, triplets, groups, gamma1, gamma2, cone), value, TIGHT)
    assert near(phi(solution.weights, grams, triplets, groups, gamma1, gamma2), solution.value, TIGHT)
    assert -TIGHT <= value <= len(triplets) + TIGHT


@linear
@pytest.mark.parametrize("solver", ["HIGHS", "CLARABEL"])
def test_the_explicit_programme_by_other_solvers(solver, cone):
    """As a problem for cvxpy, with all its rows: the same bounds, and the same certificate of a vertex."""
    grams, triplets, groups = plain(4)
    options = {"gamma1": 0.05, "gamma2": 0.02, "cone": cone}
    solution = quietly(formulated(grams, triplets, groups, **options).solve, solver=solver)
    assert solution.solver == solver and solution.status == "optimal"
    assert distance(solution) <= (TIGHT if solver == "HIGHS" else 1e-6)
    assert near(solution.value, optimum(grams, triplets, groups, **options).value, 1e-6)


@pytest.mark.parametrize("kind", DATA)
@pytest.mark.parametrize(("gamma1", "gamma2"), PRICES[:3])
def test_the_semidefinite_programme_and_its_dual_have_one_value(kind, gamma1, gamma2):
    grams, triplets, groups = DATA[kind](0, 7, 8)
    formulation = formulated(grams, triplets, groups, gamma1=gamma1, gamma2=gamma2, cone="psd")
    solution = quietly(formulation.solve)
    value = semidefinite_programme(grams, triplets, groups, gamma1, gamma2)
    assert solution.status == "optimal" and near(solution.value, value, CONIC)
    assert near(solved(formulation.dual()), value, CONIC)
    assert near(phi(solution.weights, grams, triplets, groups, gamma1, gamma2), solution.value, 1e-9)
    S = np.unique(triplets)
    assert np.linalg.eigvalsh(solution.kernel[np.ix_(S, S)])[0] >= -1e-9


@pytest.mark.parametrize("kind", DATA)
def test_design_is_selection_with_groups_of_one(kind):
    grams, triplets, _ = DATA[kind](3)
    options = {"gamma1": 0.04, "gamma2": 0.02}
    one = quietly(quietly(triplet_lp.kernel_design, grams, triplets, **options).solve)
    other = optimum(grams, triplets, np.arange(len(grams)), **options)
    assert one.value == other.value and (one.weights == other.weights).all()
    names = np.array([f"kernel {p}" for p in range(len(grams))])  # labels of any type
    assert optimum(grams, triplets, names, **options).value == other.value


@instances
def test_multipliers_and_weights_are_optimal_together(kind, seed, cone, gamma1, gamma2):
    """Fung 2.2: complementarity, and the slopes z of the groups."""
    grams, triplets, groups = DATA[kind](seed)
    formulation = formulated(grams, triplets, groups, gamma1=gamma1, gamma2=gamma2, cone=cone)
    formulation.problem.solve(solver=cp.HIGHS)  # as the solver leaves it, nothing repaired
    by_name = {v.name(): v.value for v in formulation.problem.variables()}
    prices = {c.label: np.asarray(c.dual_value) for c in formulation.problem.constraints}
    alpha, s, u = by_name["alpha"], by_name["s"], prices["comparisons"]
    K, S, small = np.tensordot(alpha, grams, 1), np.unique(triplets), 1e-7 * max(1.0, abs(alpha).max())
    gains = np.array([K[i, j] - K[i, k] for i, j, k in triplets])
    assert (u >= -1e-7).all() and (u <= 1 + 1e-7).all()
    assert u[gains < 1 - small] == pytest.approx(1.0, abs=1e-7)
    assert u[gains > 1 + small] == pytest.approx(0.0, abs=1e-7)
    z = np.array(
        [sum(a * (M[i, j] - M[i, k]) for a, (i, j, k) in zip(u, triplets, strict=True)) for M in grams]
    )
    z -= gamma2 * grams[:, S, S].sum(axis=1)
    if cone == "dominant":
        v, w = prices["dominance"], prices["below"] - prices["above"]
        first, second = np.triu_indices(S.size, 1)
        first, second = S[first], S[second]
        at = dict(zip(S, v, strict=True))
        reach = np.array([at[i] + at[j] for i, j in zip(first, second, strict=True)])
        off, r = K[first, second], by_name["r"]
        assert (v >= -1e-7).all() and (abs(w) <= reach + 1e-7).all()
        assert v * dominance(K, S) == pytest.approx(0.0, abs=small)
        assert (r - abs(off))[reach > 1e-6] == pytest.approx(0.0, abs=small)
        assert w[abs(off) > 1e-6] == pytest.approx((-np.sign(off) * reach)[abs(off) > 1e-6], abs=1e-6)
        z += np.array([M[S, S] @ v + M[first, second] @ w for M in grams])
    sizes = np.maximum(z, 0.0) if cone == "nonnegative" else abs(z)
    for number, f in enumerate(np.unique(groups)):
        mine = groups == f
        assert sizes[mine].sum() <= gamma1 + 1e-7
        if s[number] > 1e-6:
            largest = abs(alpha[mine]).max()
            if gamma1 > 0:
                assert s[number] == pytest.approx(largest, abs=small)
                assert sizes[mine].sum() == pytest.approx(gamma1, abs=1e-7)
            decided = mine & (sizes > 1e-6)
            assert alpha[decided] == pytest.approx(np.sign(z[decided]) * largest, abs=small)


@pytest.mark.parametrize("seed", range(4))
def test_every_feasible_point_is_positive_semidefinite_on_its_points(seed):
    """Whatever r is above the absolute values: K_ii >= sum r_ij >= sum |K_ij| (no tight r is needed)."""
    grams, triplets, groups = signed(seed)
    formulation = formulated(grams, triplets, groups, gamma1=0.1, gamma2=0.1)
    S, rng = np.unique(triplets), np.random.default_rng(seed)
    direction = rng.normal(size=len(grams))
    K = np.tensordot(direction, grams, 1)
    needed = max(0.0, -dominance(K, S).min()) + 0.5  # of the identity, the last kernel
    direction[-1] += needed
    K = np.tensordot(direction, grams, 1)
    by_name = {v.name(): v for v in formulation.problem.variables()}
    first, second = np.triu_indices(S.size, 1)
    slack = 0.5 / S.size * rng.uniform(size=first.size)
    by_name["alpha"].value, by_name["r"].value = direction, abs(K[S[first], S[second]]) + slack
    labelled = {c.label: c for c in formulation.problem.constraints}
    assert all(labelled[name].violation().max() <= 1e-12 for name in ("above", "below", "dominance"))
    assert np.linalg.eigvalsh(K[np.ix_(S, S)])[0] >= -1e-12


# ------------------------------------------------- Fung 3.1 to 3.6: feasibility, closed forms, collapse


@given(
    seed=st.integers(0, 10**6), exponent=st.integers(-6, 3), cone=st.sampled_from(LINEAR), free=st.booleans()
)
def test_the_optimum_is_between_zero_and_the_margin_of_every_triplet(seed, exponent, cone, free):
    grams, triplets, groups = (semidefinite if cone == "nonnegative" else signed)(seed, 6, 5)
    gamma1, gamma2 = 10.0**exponent, 0.0 if free else 10.0 ** (exponent - 1)
    solution = optimum(grams, triplets, groups, gamma1=gamma1, gamma2=gamma2, cone=cone, margin=0.7)
    assert 0.0 <= solution.value <= 0.7 * len(triplets)


@cones
@every("kind", ["plain", "semidefinite"])
def test_without_prices_it_is_solved_and_never_called_optimal_wrongly(kind, cone):
    grams, triplets, groups = DATA[kind](1, *((8, 10) if cone == "psd" else ()))
    formulation = formulated(grams, triplets, groups, gamma1=0.0, gamma2=0.0, cone=cone)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", (ConditionWarning, ConvergenceWarning))
        solution = formulation.solve("auto" if cone == "psd" else "column-generation")
    value = value_of(cone, grams, triplets, groups, 0.0, 0.0)
    slack = 1e-5 if cone == "psd" else 1e-6  # of the oracle: HiGHS drops entries below 1e-9
    assert solution.lower <= value + slack and solution.upper >= value - slack
    assert near(solution.value, value, slack)  # the point is good in any case
    assert (solution.status == "optimal") == (solution.gap <= 1e-5)
    if cone != "psd":
        assert distance(solution) <= TIGHT


def test_without_a_cone_the_trace_runs_away_and_the_library_refuses():
    """The identity costs gamma1 and earns gamma2 q for a negative weight: unbounded below."""
    grams, triplets, groups = signed(0)
    status, *_ = programme(grams, triplets, groups, 0.01, 0.05, "none")
    assert status == 3  # unbounded, says linprog
    with pytest.raises(ParameterError, match="cone must be .* got 'none'. .*minus infinity"):
        triplet_lp.kernel_design(grams, triplets, gamma1=0.01, gamma2=0.05, cone="none")


def one_kernel(rng):
    """One kernel, dominant or not, and its best weight and value by the closed form."""
    N, T = int(rng.integers(3, 7)), int(rng.integers(1, 8))
    A = rng.normal(size=(N, N))
    K = (A + A.T) / 2
    room = np.array([sum(abs(K[i, j]) for j in range(N) if j != i) for i in range(N)])
    np.fill_diagonal(K, room * rng.uniform(0.95, 1.5, N) if rng.random() < 0.7 else abs(A.diagonal()))
    triplets = np.array([rng.permutation(N)[:3] for _ in range(T)])
    for t, (i, j, k) in enumerate(triplets):
        if K[i, j] < K[i, k] and rng.random() < 0.8:
            triplets[t] = i, k, j
    gamma1, gamma2 = rng.choice([0.0, 0.1, 0.5]), rng.choice([0.0, 0.01, 0.1])
    S = np.unique(triplets)
    a = [0.0]
    d = np.array([K[i, j] - K[i, k] for i, j, k in triplets])
    if dominance(K, S).min() >= 0:
        a += [1 / gain for gain in d if gain > 0]
    values = [np.maximum(1 - x * d, 0).sum() + (gamma1 + gamma2 * K[S, S].sum()) * x for x in a]
    return K, triplets, gamma1, gamma2, min(values)


def test_one_kernel_in_closed_form():
    rng, moved = np.random.default_rng(0), 0
    for _ in range(50):
        K, triplets, gamma1, gamma2, value = one_kernel(rng)
        solution = optimum(K[None], triplets, [0], gamma1=gamma1, gamma2=gamma2)
        assert near(solution.value, value, TIGHT)
        moved += solution.weights[0] != 0
    assert moved >= 15  # not all collapse


def test_two_triplets_by_hand():
    """One kernel with gains 1 and 1/2, weight a and price x a in all: (1 - a)_+ + (1 - a / 2)_+ + x a.

    | x = gamma1 + 4 gamma2 | a | value   | u            |
    | below 1/2             | 2 | 2 x     | (0, 2 x)     |
    | in (1/2, 3/2)         | 1 | 1/2 + x | (x - 1/2, 1) |
    | above 3/2             | 0 | 2       | (1, 1)       |
    """
    L = np.eye(4)
    L[0, 1] = L[1, 0] = 1.0
    L[2, 3] = L[3, 2] = 0.5
    triplets = [[0, 1, 2], [2, 3, 0]]
    for x, a, value, u in (
        (0.3, 2.0, 0.6, (0.0, 0.6)),
        (0.8, 1.0, 1.3, (0.3, 1.0)),
        (1.4, 1.0, 1.9, (0.9, 1.0)),
    ):
        formulation = triplet_lp.kernel_design(L[None], triplets, gamma1=x - 0.2, gamma2=0.05)
        solution = formulation.solve()
        assert solution.value == pytest.approx(value, abs=1e-12)
        assert solution.weights == pytest.approx([a], abs=1e-12)
        assert formulation.problem.constraints[0].dual_value == pytest.approx(u, abs=1e-9)
    with pytest.warns(ConditionWarning, match="zero weights are optimal"):
        assert triplet_lp.kernel_design(L[None], triplets, gamma1=1.4, gamma2=0.05).solve().value == 2.0
    assert triplet_lp.gamma1_max(L[None], triplets, gamma2=0.05) == pytest.approx(1.3, abs=1e-12)


@cones
def test_a_contradictory_pair_costs_twice_the_margin(cone):
    grams, triplets, groups = plain(2)
    for margin in (1.0, 0.4):
        pairs = np.array([t[[0, 2, 1]] for t in triplets[:3]])
        both = np.concatenate([triplets[:3], pairs])
        solution = optimum(grams, both, groups, gamma1=0.0, gamma2=0.01, cone=cone, margin=margin)
        assert solution.value >= 2 * margin * 3 - 1e-6
        K, (i, j, k) = solution.kernel, triplets[0]
        gain = K[i, j] - K[i, k]
        assert max(margin - gain, 0) + max(margin + gain, 0) >= 2 * margin - 1e-12


def test_contradictions_warn_when_built_and_explain_shows_the_cycle():
    grams, _, _ = plain(0)
    triplets = [[0, 1, 2], [3, 4, 5], [0, 2, 1]]
    cycle = "0 is closer to 1 than to 2 (row 0), 0 is closer to 2 than to 1 (row 2)"
    builders = {
        "design": lambda: triplet_lp.kernel_design(grams, triplets, gamma1=0.1, gamma2=0.1),
        "selection": lambda: triplet_lp.feature_selection(
            grams, triplets, np.arange(5), gamma1=0.1, gamma2=0.1
        ),
        "path": lambda: triplet_lp.regularization_path(grams, triplets, gamma2=0.1, size=2),
    }
    for build in builders.values():
        with pytest.warns(ConditionWarning) as raised:
            build()
        assert len(raised) == 1 and cycle in str(raised[0].message)
    formulation = quietly(builders["design"])
    text = str(ko.explain(formulation.problem))
    assert "1 group of pairs with contradictions" in text and cycle in text
    kept = np.delete(triplets, ko.comparisons(triplets).feedback, axis=0)
    without = triplet_lp.kernel_design(grams, kept, gamma1=0.1, gamma2=0.1)
    assert "no contradiction" in str(ko.explain(without.problem))


@cones
@every("kind", ["plain", "semidefinite"])
@every("gamma2", [0.0, 0.02])
def test_zero_weights_are_optimal_exactly_above_gamma1_max(kind, cone, gamma2):
    grams, triplets, groups = DATA[kind](0, 8, 10)
    options = {"gamma2": gamma2, "cone": cone}
    top = triplet_lp.gamma1_max(grams, triplets, groups=groups, **options)
    assert top > 1e-2
    zero = len(triplets)
    with pytest.warns(ConditionWarning, match="zero weights are optimal"):
        above = formulated(grams, triplets, groups, gamma1=1.001 * top, **options).solve()
    assert above.value == zero and (above.weights == 0).all() and above.lower >= zero * (1 - 1e-6)
    below = optimum(grams, triplets, groups, gamma1=0.98 * top, **options)
    assert below.value < zero - 1e-6 * zero and abs(below.weights).max() > 0
    if cone != "psd":
        assert near(dual_programme(grams, triplets, groups, 0.0, gamma2, cone, u_is_one=True), top, TIGHT)


@cones
def test_gamma1_max_agrees_with_bisection(cone):
    """Where the oracle's value first drops below rho T."""
    grams, triplets, groups = semidefinite(1, 7, 8)
    top = triplet_lp.gamma1_max(grams, triplets, gamma2=0.01, groups=groups, cone=cone, margin=2.0)
    low, high = 0.0, 10 * top
    drop = 1e-6 if cone == "psd" else 1e-9
    while high - low > 1e-4 * top:
        middle = (low + high) / 2
        value = value_of(cone, grams, triplets, groups, middle, 0.01, margin=2.0)
        low, high = (middle, high) if value < 2 * len(triplets) * (1 - drop) else (low, middle)
    assert top == pytest.approx(high, rel=2e-3 if cone == "psd" else 2e-4)


def test_broad_kernels_collapse_with_a_warning_and_the_identity_helps():
    X, triplets = blobs(0, 20, 2, 40)
    broad = [ko.gaussian(2.0), ko.gaussian(4.0)]
    prices = {"gamma1": 0.01, "gamma2": 0.01}
    formulation = triplet_lp.kernel_design(ko.Grams.from_kernels(broad, X), triplets, **prices)
    pattern = r"zero weights are optimal.*20 points is severe.*add the identity kernel \(ko.identity\(\).*"
    pattern += r"narrow Gaussians.*lower gamma1 below gamma1_max.*lower gamma2"
    with pytest.warns(ConditionWarning, match=pattern):
        collapsed = formulation.solve()
    assert collapsed.status == "optimal" and collapsed.value == 40.0
    assert (collapsed.weights == 0).all() and (collapsed.kernel == 0).all() and collapsed.is_psd
    assert triplet_lp.gamma1_max(ko.Grams.from_kernels(broad, X), triplets, gamma2=0.01) <= 1e-9
    helped = triplet_lp.kernel_design(ko.Grams.from_kernels([*broad, ko.identity()], X), triplets, **prices)
    solution = helped.solve()  # a warning would be an error
    assert solution.value < 30.0 and solution.weights[2] > 0
    narrow = triplet_lp.kernel_design(
        ko.Grams.from_kernels([*broad, ko.gaussian(0.02)], X), triplets, **prices
    )
    assert narrow.solve().value < 40.0 * 0.9


def test_weak_kernels_collapse_without_the_identity_in_a_group_of_its_own():
    X, triplets = blobs(1, 16, 3, 30)
    weak = ko.per_feature([ko.gaussian(0.5), ko.gaussian(2.0)], 3)
    prices = {"gamma1": 0.05, "gamma2": 0.01}
    alone = triplet_lp.feature_selection(ko.Grams.from_kernels(weak, X), triplets, weak.groups, **prices)
    with pytest.warns(ConditionWarning, match="identity kernel .*in a group of its own"):
        assert alone.solve().value == 30.0
    grams = ko.Grams.from_kernels([*weak, ko.identity()], X)
    solution = triplet_lp.feature_selection(grams, triplets, [*weak.groups, 3], **prices).solve()
    assert solution.value < 25.0 and 3 in triplet_lp.selected(solution, [*weak.groups, 3])


@pytest.mark.parametrize("cone", ["psd", "nonnegative"])
def test_a_high_price_collapses_other_cones_with_remedies_of_their_own(cone):
    grams, triplets, groups = plain(0)
    formulation = formulated(grams, triplets, groups, gamma1=1e3, gamma2=0.1, cone=cone)
    with pytest.warns(ConditionWarning, match="zero weights .*lower gamma1 below gamma1_max") as raised:
        formulation.solve()
    assert "dominance" not in str(raised[0].message)


# ------------------------------------------------------------------ Fung 4.1 to 4.4: invariances and orders


def permuted(grams, triplets, groups, gamma1, gamma2):
    points = np.random.default_rng(1).permutation(grams.shape[1])
    moved = np.empty_like(grams)
    moved[:, points[:, None], points[None]] = grams
    return {"grams": moved, "triplets": points[triplets]}, 1.0, lambda a: a


def kernels_permuted(grams, triplets, groups, gamma1, gamma2):
    order = np.random.default_rng(2).permutation(len(grams))
    return {"grams": grams[order], "groups": groups[order]}, 1.0, lambda a: a[order]


def repeated(grams, triplets, groups, gamma1, gamma2):
    return (
        {"triplets": np.concatenate([triplets] * 3), "gamma1": 3 * gamma1, "gamma2": 3 * gamma2},
        3.0,
        lambda a: a,
    )


TWINS = {  # name: what changes, by how much the value, and what the weights become
    "all kernels and gamma1 scaled": lambda g, t, of, p, q: (
        {"grams": 5 * g, "gamma1": 5 * p},
        1.0,
        lambda a: a / 5,
    ),
    "all kernels scaled down": lambda g, t, of, p, q: (
        {"grams": g / 64, "gamma1": p / 64},
        1.0,
        lambda a: 64 * a,
    ),
    "margin scaled": lambda g, t, of, p, q: ({"margin": 2.5}, 2.5, lambda a: 2.5 * a),
    "triplets repeated": repeated,
    "triplets permuted": lambda g, t, of, p, q: ({"triplets": t[::-1]}, 1.0, lambda a: a),
    "points permuted": permuted,
    "kernels permuted": kernels_permuted,
    "groups renamed": lambda g, t, of, p, q: ({"groups": 10 - 3 * of}, 1.0, lambda a: a),
    "a zero kernel of its own": lambda g, t, of, p, q: (
        {"grams": np.concatenate([g, 0 * g[:1]]), "groups": [*of, 99]},
        1.0,
        lambda a: [*a, 0.0],
    ),
    "points given as they are": lambda g, t, of, p, q: ({"points": np.unique(t)[::-1]}, 1.0, lambda a: a),
}


@cones
@every("twin", TWINS.values(), ids=TWINS)
@every("kind", ["plain", "semidefinite"])
def test_a_clumsy_twin_has_the_same_optimum(kind, cone, twin):
    grams, triplets, groups = DATA[kind](2, 8, 9)
    options = {"gamma1": 0.05, "gamma2": 0.02}
    solution = optimum(grams, triplets, groups, **options, cone=cone)
    changed, factor, mapped = twin(grams, triplets, groups, *options.values())
    given = {"grams": grams, "triplets": triplets, "groups": groups, "cone": cone, **options, **changed}
    other = optimum(**given)
    assert abs(solution.weights).max() > 0
    assert near(other.value, factor * solution.value, max(tolerance(cone), 1e-8))
    # The weights need not be unique: what they become must be optimal too.
    weights = np.asarray(mapped(solution.weights))
    kept = {"S": given.get("points"), "margin": given.get("margin", 1.0)}
    there = (given["grams"], given["triplets"], given["groups"], given["gamma1"], given["gamma2"])
    assert near(phi(weights, *there, **kept), other.value, tolerance(cone))


@every("kind", ["plain", "semidefinite"])
@cones
def test_duplicate_kernels(kind, cone):
    """In a group of its own a copy changes nothing; inside a group the price of the first covers it."""
    grams, triplets, _ = DATA[kind](0, 8, 12)
    options = {"gamma1": 0.08, "gamma2": 0.01, "cone": cone}
    single = np.arange(len(grams))
    value = optimum(grams, triplets, single, **options).value
    twice = np.concatenate([grams, grams])
    own = optimum(twice, triplets, np.arange(2 * len(grams)), **options)
    assert near(own.value, value, tolerance(cone))
    inside = optimum(twice, triplets, np.concatenate([single, single]), **options)
    assert inside.value < value - 1e-4
    # k copies inside each group are one kernel of k times the size: gamma1 / k
    cheaper = optimum(grams, triplets, single, **{**options, "gamma1": 0.04})
    assert near(inside.value, cheaper.value, tolerance(cone))


def test_one_kernel_scaled_is_not_invariant():
    """The price sees the scale of each kernel: normalise them."""
    grams, triplets, groups = plain(2)
    options = {"gamma1": 0.1, "gamma2": 0.01}
    scaled = grams * np.array([1.0, 8.0, 1.0, 1.0, 1.0])[:, None, None]
    assert (
        optimum(scaled, triplets, groups, **options).value
        < optimum(grams, triplets, groups, **options).value - 1e-3
    )


@pytest.mark.parametrize("kind", ["plain", "semidefinite"])
@every("seed", range(4))
def test_values_are_ordered_as_the_sets_are(kind, seed):
    grams, triplets, groups = DATA[kind](seed, 9, 10)
    prices = (0.05, 0.02)
    options = {"gamma1": 0.05, "gamma2": 0.02}
    dominant, psd, nonnegative = (optimum(grams, triplets, groups, cone=c, **options).value for c in CONES)
    both = programme(grams, triplets, groups, *prices, "both")[1]
    assert both >= dominant - 1e-7 and dominant >= psd - 1e-6
    assert both >= nonnegative - 1e-7 and nonnegative >= psd - 1e-6  # the base kernels are PSD


@cones
@every("kind", ["plain", "semidefinite"])
def test_more_points_cost_more(kind, cone):
    grams, triplets, groups = DATA[kind](1)
    triplets = triplets[np.all(triplets < 8, axis=1)]
    S = np.unique(triplets)
    values = []
    for extra in ([], [8], [8, len(grams[0]) - 1]):
        points = np.union1d(S, extra).astype(int)
        solution = optimum(grams, triplets, groups, gamma1=0.03, gamma2=0.02, cone=cone, points=points)
        assert near(
            solution.value, value_of(cone, grams, triplets, groups, 0.03, 0.02, S=points), max(CONIC, TIGHT)
        )
        values.append(solution.value)
    assert values[0] <= values[1] + 1e-6 and values[1] <= values[2] + 1e-6 and values[0] < values[2]


# --------------------------------------------------------------------------- Fung 5.1 and 5.2: certificates


GARBAGE = {
    "normal": lambda rng, shape: rng.normal(size=shape),
    "large": lambda rng, shape: 1e6 * rng.normal(size=shape),
    "small": lambda rng, shape: 1e-6 * rng.normal(size=shape),
    "positive": lambda rng, shape: rng.uniform(size=shape),
    "cauchy": lambda rng, shape: rng.standard_cauchy(size=shape),
    "zero": lambda rng, shape: np.zeros(shape),
    "NaN": lambda rng, shape: np.full(shape, np.nan),
    "infinite": lambda rng, shape: np.where(rng.random(shape) < 0.5, np.inf, -np.inf),
    "enormous": lambda rng, shape: 1e300 * rng.normal(size=shape),
    "nothing": lambda rng, shape: None,
}


def bounds(formulation):
    """The paper's bounds, from what is left in the variables and multipliers of the problem."""
    values = {v.id: v.value for v in formulation.problem.variables()}
    multipliers = {c.label: c.dual_value for c in formulation.problem.constraints}
    return formulation.problem.bounds(values, multipliers)


def put(formulation, values, multipliers):
    for variable in formulation.problem.variables():
        variable.save_value(values(variable.shape))
    for constraint in formulation.problem.constraints:
        for variable in constraint.dual_variables:
            variable.save_value(multipliers(variable.shape))


def check_attained(formulation, certificate):
    """The point of a certificate is feasible and has the value `upper`."""
    assert certificate.feasible
    for variable, value in certificate.point.items():
        variable.save_value(value)
    size = max(1.0, float(abs(formulation.weights.value).max()))
    for constraint in formulation.problem.constraints:
        assert float(np.max(constraint.violation())) <= 1e-9 * size, constraint.label
    assert (formulation.problem.objective.value) == pytest.approx(certificate.upper, rel=1e-9)


@every("garbage", GARBAGE.values(), ids=GARBAGE)
@cones
def test_bounds_hold_for_whatever_is_left_in_the_problem(cone, garbage):
    grams, triplets, groups = semidefinite(0, 7, 8)
    rng = np.random.default_rng(0)
    for gamma1, gamma2 in ((0.05, 0.02), (0.0, 0.02), (0.05, 0.0))[: 1 if cone == "psd" else 3]:
        formulation = formulated(grams, triplets, groups, gamma1=gamma1, gamma2=gamma2, cone=cone)
        value = value_of(cone, grams, triplets, groups, gamma1, gamma2)
        for _ in range(1 if cone == "psd" else 3):
            put(formulation, lambda s: garbage(rng, s), lambda s: garbage(rng, s))
            certificate = quietly(bounds, formulation)
            assert certificate.lower <= value + 1e-7 and value <= certificate.upper + 1e-7
            assert np.isfinite([certificate.lower, certificate.upper]).all()
            assert 0.0 <= certificate.lower or cone == "psd"
            assert certificate.upper <= len(triplets)
            check_attained(formulation, certificate)


@linear
@pytest.mark.parametrize("kind", ["plain", "semidefinite"])
def test_bounds_hold_around_the_optimum(kind, cone):
    """Noise of all sizes on the solver's values and multipliers: valid always, and tight at none."""
    grams, triplets, groups = DATA[kind](1)
    for gamma1, gamma2 in ((0.05, 0.02), (0.05, 0.0), (0.0, 0.02)):
        formulation = formulated(grams, triplets, groups, gamma1=gamma1, gamma2=gamma2, cone=cone)
        formulation.problem.solve(solver=cp.HIGHS)
        value = programme(grams, triplets, groups, gamma1, gamma2, cone)[1]
        values = {v.id: v.value for v in formulation.problem.variables()}
        prices = {c.id: c.dual_value for c in formulation.problem.constraints}
        rng = np.random.default_rng(0)
        for noise in (0.0, 1e-9, 1e-6, 1e-3, 0.1):
            for variable in formulation.problem.variables():
                variable.save_value(values[variable.id] + noise * rng.normal(size=variable.shape))
            for constraint in formulation.problem.constraints:
                dual = prices[constraint.id]
                constraint.dual_variables[0].save_value(dual + noise * rng.normal(size=np.shape(dual)))
            certificate = quietly(bounds, formulation)
            assert certificate.lower <= value + 1e-9 and value <= certificate.upper + 1e-9
            check_attained(formulation, certificate)
            if noise == 0:
                assert distance(certificate) <= TIGHT
            if noise == 1e-9:
                assert certificate.upper <= value + 1e-5


@cones
@pytest.mark.parametrize("kind", ["plain", "semidefinite"])
def test_the_certificate_of_a_solution_is_attained_and_tight(kind, cone):
    grams, triplets, groups = DATA[kind](2, 9, 12)
    formulation = formulated(grams, triplets, groups, gamma1=0.03, gamma2=0.02, cone=cone)
    solution = quietly(formulation.solve)
    assert solution.gap <= tolerance(cone)
    assert solution.certificate.route == "closed" or cone == "psd"  # there a solver's bound may be tighter
    check_attained(formulation, solution.certificate)
    again = quietly(bounds, formulation)  # from what the solve left in the problem
    assert again.gap <= tolerance(cone) and near(again.upper, solution.upper, tolerance(cone))
    stranger = ko.certify(formulation.problem)  # the library's own, which knows nothing of the paper
    assert stranger.lower <= solution.upper + 1e-7 and solution.lower <= stranger.upper + 1e-7


@pytest.mark.parametrize("gamma1", [0.0, 1e-9, 1e-6, 1e-3])
@linear
def test_small_prices_of_many_gaussians_are_certified(cone, gamma1):
    """HiGHS drops entries below 1e-9, so its multipliers miss z = 0 by as much: they are balanced first."""
    X, triplets = blobs(1, 24, 4, 100)
    weak = ko.per_feature([ko.gaussian(w) for w in (0.01, 0.1, 0.5, 2.0)], 4)
    grams = ko.Grams.from_kernels([*weak, ko.identity()], X)
    solution = optimum(grams, triplets, [*weak.groups, 4], gamma1=gamma1, gamma2=0.02, cone=cone)
    assert distance(solution) <= 1e-8


@pytest.mark.parametrize("cone", ["dominant", "psd"])
def test_weights_are_moved_inside_where_no_kernel_alone_is(cone):
    """K_1 = 11' + I / 2 - eps, K_2 = 11': neither is inside (or strictly), their difference is."""
    n = 6
    ones = np.ones((n, n))
    if cone == "dominant":
        grams = np.array([ones + 0.5 * np.eye(n), ones, 0.2 * np.kron(np.eye(2), np.ones((3, 3)))])
    else:
        low = np.diag([1.0, 0, 0, 0, 0, 0])
        grams = np.array([np.eye(n) - 2 * low, 3 * low, 0.2 * np.kron(np.eye(2), np.ones((3, 3)))])
    triplets = np.array([[0, 1, 3], [4, 5, 0], [2, 1, 5]])
    formulation = triplet_lp.kernel_design(grams, triplets, gamma1=0.01, gamma2=0.01, cone=cone)
    solution = formulation.solve()
    assert solution.status == "optimal" and solution.value < 2.9
    formulation.weights.save_value(solution.weights + np.array([-1e-7, 0.0, 1e-7]))
    assert bounds(formulation).upper == pytest.approx(solution.value, abs=1e-4)


# --------------------------------------------------------------- Fung 6.1 and 6.2: the learned kernel


def test_off_its_points_the_kernel_may_be_indefinite_and_says_so():
    """Negative weights: PSD on S by dominance, indefinite on all N."""
    indefinite = 0
    for seed in range(6):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(24, 2))
        triplets = np.array([rng.permutation(8)[:3] for _ in range(12)])
        grams = ko.Grams.from_kernels([*map(ko.gaussian, (0.2, 0.6, 1.5, 4.0)), ko.identity()], X)
        solution = optimum(grams, triplets, np.arange(5), gamma1=0.01, gamma2=0.01)
        S = np.unique(triplets)
        assert np.linalg.eigvalsh(solution.kernel[np.ix_(S, S)])[0] >= -1e-10
        assert dominance(solution.kernel, S).min() >= -1e-10
        spectrum = np.linalg.eigvalsh(solution.kernel)
        assert solution.is_psd == (spectrum[0] >= -1e-8 * abs(spectrum).max())
        indefinite += not solution.is_psd and solution.weights.min() < 0 and spectrum[0] < -1e-3
        safe = optimum(grams, triplets, np.arange(5), gamma1=0.01, gamma2=0.01, cone="nonnegative")
        assert safe.is_psd and (safe.weights >= 0).all()
    assert indefinite >= 1


def test_the_kernel_goes_to_new_points_and_no_machine_does():
    X, triplets = blobs(0)
    new = np.random.default_rng(5).normal(size=(4, 3))
    grams = ko.Grams.from_kernels([ko.gaussian(0.5), ko.gaussian(1.5), ko.identity()], X)
    formulation = triplet_lp.kernel_design(grams, triplets, gamma1=0.02, gamma2=0.02)
    solution = formulation.solve()
    w = solution.weights
    assert w.shape == (3,) and (formulation.weights.value == w).all()
    K = sum(w[p] * grams[p] for p in range(3))
    assert solution.kernel == pytest.approx(K, abs=1e-14)
    assert np.asarray(formulation.kernel.value) == pytest.approx(K, abs=1e-14)
    cross = w[0] * ko.gaussian(0.5)(new, X) + w[1] * ko.gaussian(1.5)(new, X)  # the identity is zero there
    assert solution.kernel_at(grams.cross(new)) == pytest.approx(cross, abs=1e-14)
    for arguments in ((), (grams.cross(new),)):
        with pytest.raises(InputError, match="no machine was learned"):
            solution.decision_function(*arguments)
    with pytest.raises(ShapeError, match="cross must have shape .*m = 3 and N = 14"):
        solution.kernel_at(grams.cross(new)[:2])


# ------------------------------------------------------------------------------- features


def planted(seed, informative):
    """Eight features, of which the informative ones tell two classes apart."""
    rng = np.random.default_rng(seed)
    y = np.repeat([0, 1], 12)
    X = rng.normal(size=(24, 8))
    X[:, informative] += 4 * y[:, None]
    weak = ko.per_feature([ko.gaussian(0.3), ko.gaussian(1.0)], 8)
    grams = ko.Grams.from_kernels([*weak, 30 * ko.identity()], X)  # scaled: dominance is to cost little
    return grams, ko.sample_triplets(y, 150, random_state=rng), [*weak.groups, 8], y


@pytest.mark.parametrize("informative", [[5], [2, 6]])
@cones
def test_planted_features_are_found_and_the_others_are_out(informative, cone):
    grams, triplets, groups, _ = planted(0, informative)
    top = triplet_lp.gamma1_max(grams, triplets, gamma2=0.001, groups=groups, cone=cone)
    share = 0.9 if cone == "dominant" else 0.6
    formulation = formulated(grams, triplets, groups, gamma1=share * top, gamma2=0.001, cone=cone)
    solution = formulation.solve()
    found = triplet_lp.selected(solution, groups).tolist()
    assert [f for f in found if f != 8] == informative
    s = next(v.value for v in formulation.problem.variables() if v.name() == "s")
    others = [f for f in range(8) if f not in informative]
    assert s.shape == (9,) and (s[others] <= 1e-6 * s.max()).all() and (s[informative] > 1e-3 * s.max()).all()


def test_a_selected_kernel_respects_new_triplets():
    """Triplets drawn anew from the labels, of the same points; single weak kernels respect fewer."""
    grams, triplets, groups, y = planted(3, [4])
    solution = optimum(grams, triplets, groups, gamma1=0.5, gamma2=0.01)
    fresh = ko.sample_triplets(y, 500, random_state=99)
    score = ko.triplet_score(solution.kernel, fresh)
    wrong = [ko.triplet_score(grams[p], fresh) for p in range(16) if groups[p] != 4]
    assert score > 0.9 and score > max(wrong) + 0.2


def test_selected_reads_the_largest_weight_of_each_group():
    class Found:
        weights = np.array([0.0, -2.0, 1e-9, 1e-5, 0.5])

    groups = ["b", "a", "a", "c", "d"]
    assert triplet_lp.selected(Found, groups).tolist() == ["a", "c", "d"]
    assert triplet_lp.selected(Found, groups, tol=1e-3).tolist() == ["a", "d"]
    Found.weights = np.zeros(5)
    assert triplet_lp.selected(Found, groups).size == 0


# ------------------------------------------------------------------------------- the path


@cones
@pytest.mark.parametrize("grouped", [False, True])
def test_the_path_is_that_of_separate_solves(cone, grouped):
    grams, triplets, groups = semidefinite(2, 8, 12)
    groups = groups if grouped else None
    size = 4 if cone == "psd" else 12
    path = quietly(
        triplet_lp.regularization_path, grams, triplets, gamma2=0.01, groups=groups, size=size, cone=cone
    )
    top = triplet_lp.gamma1_max(grams, triplets, gamma2=0.01, groups=groups, cone=cone)
    assert path.gamma1 == pytest.approx(top * np.geomspace(1, 1e-3, size), rel=1e-6)
    assert path.weights.shape == (size, len(grams))
    assert (path.gap <= (CONIC if cone == "psd" else 1e-6)).all() and (path.lower <= path.upper).all()
    assert (path.weights[0] == 0).all() and path.upper[0] == len(triplets)
    assert (np.diff(path.upper) <= 1e-6).all() and path.upper[-1] < path.upper[0]  # it falls with gamma1
    assert path.selected()[0].size == 0 and path.selected()[-1].size > 0
    labels = np.arange(len(grams)) if groups is None else groups
    assert (path.groups == labels).all()
    for gamma1, upper in zip(path.gamma1, path.upper, strict=True):
        assert near(
            value_of(cone, grams, triplets, labels, gamma1, 0.01), upper, 5 * CONIC if cone == "psd" else 1e-7
        )


@cones
def test_the_path_of_a_grid_of_ones_own(cone):
    grams, triplets, groups = plain(0, 8, 10)
    grid = [0.05, 0.4, 0.1]
    path = quietly(
        triplet_lp.regularization_path,
        grams,
        triplets,
        gamma2=0.02,
        groups=groups,
        gamma1=grid,
        cone=cone,
        points=np.arange(8),
        margin=2.0,
    )
    assert path.gamma1.tolist() == [0.4, 0.1, 0.05]
    for gamma1, weights, upper in zip(path.gamma1, path.weights, path.upper, strict=True):
        options = {"gamma1": gamma1, "gamma2": 0.02, "cone": cone, "points": np.arange(8), "margin": 2.0}
        assert near(optimum(grams, triplets, groups, **options).value, upper, tolerance(cone))
        value = phi(weights, grams, triplets, groups, gamma1, 0.02, S=np.arange(8), margin=2.0)
        assert near(value, upper, 1e-9)


def test_planted_features_come_first_along_the_path():
    grams, triplets, groups, _ = planted(1, [3])
    path = triplet_lp.regularization_path(grams, triplets, gamma2=0.001, groups=groups)
    first = next(chosen for chosen in path.selected() if np.setdiff1d(chosen, [8]).size)
    assert np.setdiff1d(first, [8]).tolist() == [3]
    assert (path.gap <= 1e-6).all()


def test_every_solve_of_the_path_starts_from_the_last(monkeypatch):
    """One linear programme for the whole grid, which finds most of its rows of dominance once."""
    X, triplets = blobs(1, 20, 3, 60)
    weak = ko.per_feature([ko.gaussian(w) for w in (0.1, 0.5, 2.0)], 3)
    grams, groups = ko.Grams.from_kernels([*weak, ko.identity()], X), [*weak.groups, 3]
    made = []

    class Counted(path_module.Columns):
        def __init__(self, *arguments):
            made.append(self)
            self.rounds = 0
            super().__init__(*arguments)

        def solve(self):
            rounds = super().solve()
            self.rounds += rounds
            return rounds

    monkeypatch.setattr(path_module, "Columns", Counted)
    top = triplet_lp.gamma1_max(grams, triplets, gamma2=0.02, groups=groups)
    grid, made[:] = top * np.geomspace(1, 1e-3, 12), []
    options = {"gamma2": 0.02, "groups": groups}
    path = triplet_lp.regularization_path(grams, triplets, gamma1=grid, **options)
    assert len(made) == 1
    cold = 0
    for gamma1, upper in zip(grid, path.upper, strict=True):
        alone = triplet_lp.regularization_path(grams, triplets, gamma1=[gamma1], **options)
        assert near(alone.upper[0], upper, TIGHT)
        cold += made[-1].rounds
    assert made[0].rounds < cold / 2


def test_the_path_of_a_dictionary_that_never_selects():
    """gamma1_max is zero: the grid shows that, at prices that a free choice of weights would pay."""
    X, triplets = blobs(0, 20, 2, 40)
    broad = ko.Grams.from_kernels([ko.gaussian(2.0), ko.gaussian(4.0)], X)
    with pytest.warns(ConditionWarning, match="no kernel is worth its price"):
        path = triplet_lp.regularization_path(broad, triplets, gamma2=0.01, size=5)
    assert (path.weights == 0).all() and (path.upper == 40).all() and (path.gap <= 1e-6).all()
    assert (path.gamma1 > 1e-6).all()


def test_a_loose_gap_on_the_path_is_said(monkeypatch):
    grams, triplets, _ = plain(0)
    found = ko.Certificate(
        1.0, 2.0, "closed", feasible=True, point={cp.Variable(5, name="alpha"): np.zeros(5)}
    )
    monkeypatch.setattr(path_module, "triplet_certificate", lambda *_: found)
    with pytest.warns(ConvergenceWarning, match="gap at gamma1 = 0.3 is 5.0e-01, above 1e-05"):
        triplet_lp.regularization_path(grams, triplets, gamma2=0.1, gamma1=[0.3])


def test_the_path_is_drawn():
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    grams, triplets, groups = plain(0)
    path = triplet_lp.regularization_path(grams, triplets, gamma2=0.02, groups=groups, size=4)
    _, ax = plt.subplots()
    assert path.plot(ax=ax) is ax
    assert len(ax.lines) == 5 and ax.get_xscale() == "log" and ax.get_xlabel() == "gamma1"
    for line, group in zip(ax.lines, np.unique(groups), strict=True):
        assert line.get_label() == str(group) and (line.get_xdata() == path.gamma1).all()
        assert (line.get_ydata() == abs(path.weights[:, groups == group]).max(axis=1)).all()
    other = path.plot()
    assert other is not ax
    plt.close("all")


# ------------------------------------------------------------------------------- parameters, bad input


@cones
def test_gamma1_may_be_a_parameter(cone):
    grams, triplets, groups = plain(1, 8, 10)
    price = cp.Parameter(nonneg=True)
    formulation = formulated(grams, triplets, groups, gamma1=price, gamma2=0.02, cone=cone)
    for value in (0.3, 0.05):
        price.value = value
        solution = quietly(formulation.solve)
        fixed = optimum(grams, triplets, groups, gamma1=value, gamma2=0.02, cone=cone)
        assert near(solution.value, fixed.value, tolerance(cone))
        assert near(solved(formulation.dual()), fixed.value, 1e-6)


GRAMS, TRIPLETS, GROUPS = plain(0)
GOOD = {"grams": GRAMS, "triplets": TRIPLETS, "groups": GROUPS, "gamma1": 0.1, "gamma2": 0.1}
CALLS = {  # every public function, called with the same words
    "kernel_design": lambda grams, triplets, groups, **rest: triplet_lp.kernel_design(
        grams, triplets, **rest
    ),
    "feature_selection": triplet_lp.feature_selection,
    "gamma1_max": lambda grams, triplets, groups, gamma1, **rest: triplet_lp.gamma1_max(
        grams, triplets, groups=groups, **rest
    ),
    "regularization_path": lambda grams, triplets, groups, gamma1, **rest: triplet_lp.regularization_path(
        grams, triplets, groups=groups, gamma1=[gamma1], **rest
    ),
}


def spoilt(entry, value):
    grams = GRAMS.copy()
    grams[entry] = value
    return grams


def with_row(row):
    return np.concatenate([TRIPLETS[:2], [row]])


BAD = {  # name: (what is wrong, error, message)
    "NaN in a kernel": (
        {"grams": spoilt((1, 0, 2), np.nan)},
        NotFiniteError,
        r"got nan at index \(1, 0, 2\)",
    ),
    "infinite kernel": (
        {"grams": spoilt((2, 3, 3), np.inf)},
        NotFiniteError,
        r"got inf at index \(2, 3, 3\)",
    ),
    "asymmetric kernel": (
        {"grams": spoilt((3, 0, 1), 9.0)},
        NotSymmetricError,
        r"grams\[3\] must be symmetric",
    ),
    "no kernel": ({"grams": GRAMS[:0]}, ShapeError, r"at least one kernel"),
    "one matrix": ({"grams": GRAMS[0]}, ShapeError, r"must have shape \(m, N, N\)"),
    "index out of range": (
        {"triplets": with_row([0, 1, 12])},
        ParameterError,
        r"0..11, got \(0, 1, 12\) in row 2",
    ),
    "negative index": ({"triplets": with_row([0, -1, 2])}, ParameterError, r"got \(0, -1, 2\) in row 2"),
    "repeated index": (
        {"triplets": with_row([4, 1, 4])},
        ParameterError,
        r"different .*\(4, 1, 4\) in row 2",
    ),
    "no triplets": ({"triplets": np.zeros((0, 3), int)}, ShapeError, r"T >= 1, got \(0, 3\)"),
    "pairs": ({"triplets": TRIPLETS[:, :2]}, ShapeError, r"shape \(T, 3\)"),
    "fractions": (
        {"triplets": with_row([0.5, 1, 2])},
        ParameterError,
        r"whole numbers, got \(0.5, 1.0, 2.0\)",
    ),
    "names": ({"triplets": [["a", "b", "c"]]}, ShapeError, r"must hold integers"),
    "negative gamma2": ({"gamma2": -0.1}, ParameterError, r"gamma2 must be a non-negative .*-0.1"),
    "NaN gamma2": ({"gamma2": np.nan}, ParameterError, r"gamma2 must be a non-negative .*nan"),
    "infinite gamma2": (
        {"gamma2": np.inf},
        ParameterError,
        r"gamma2 must be a non-negative finite number, got inf",
    ),
    "wrong cone": (
        {"cone": "dd"},
        ParameterError,
        r"cone must be 'dominant', 'psd' or 'nonnegative', got 'dd'",
    ),
    "no cone": ({"cone": None}, ParameterError, r"cone must be .*got None"),
    "no margin": ({"margin": 0.0}, ParameterError, r"margin must be a positive finite number, got 0"),
    "negative margin": ({"margin": -1.0}, ParameterError, r"margin must be a positive finite number, got -1"),
    "points without a triplet's": (
        {"points": np.setdiff1d(np.arange(12), TRIPLETS[0, 0])},
        ParameterError,
        rf"points must hold those of the triplets, got a set without \[{TRIPLETS[0, 0]}\]",
    ),
    "points out of range": ({"points": np.arange(14)}, ParameterError, r"integers in 0..11"),
    "points that are negative": (
        {"points": np.arange(-1, 12)},
        ParameterError,
        r"integers in 0..11, got \[-1",
    ),
    "points that are floats": ({"points": np.arange(12.0)}, ParameterError, r"integers in 0..11.*float64"),
    "no points": ({"points": []}, ParameterError, r"integers in 0..11"),
    "an indefinite kernel with non-negative weights": (
        {"grams": spoilt((1, TRIPLETS[0, 0], TRIPLETS[0, 0]), -1.0), "cone": "nonnegative"},
        NotPSDError,
        r"K\[1\] must be positive semidefinite",
    ),
}
ONLY = {  # name: (what is wrong, error, message, which functions)
    "negative gamma1": ({"gamma1": -0.1}, r"gamma1 must be a .*number, got -0.1", (0, 1, 3)),
    "NaN gamma1": ({"gamma1": np.nan}, r"gamma1 must be a .*number, got nan", (0, 1, 3)),
    "text gamma1": ({"gamma1": "0.1"}, r"gamma1 must be a .*number, got '0.1'", (0, 1, 3)),
    "zero gamma1 on a path": ({"gamma1": 0.0}, r"gamma1 must be a positive finite number, got 0", (3,)),
    "a parameter of unknown sign": (
        {"gamma1": cp.Parameter(name="price", value=-1.0)},
        r"gamma1 must be a non-negative scalar, got the parameter price .*UNKNOWN.*nonneg=True",
        (0, 1),
    ),
    "a negative parameter": (
        {"gamma1": cp.Parameter(nonpos=True, name="price", value=-1.0)},
        r"gamma1 must be a non-negative scalar.*NONPOSITIVE",
        (0, 1),
    ),
    "a vector of prices": (
        {"gamma1": cp.Parameter(3, nonneg=True)},
        r"gamma1 must be a non-negative scalar, got the parameter .* of shape \(3,\)",
        (0, 1),
    ),
    "groups of another length": (
        {"groups": [0, 0, 1]},
        r"one entry per kernel \(5\), got shape \(3,\)",
        (1, 2, 3),
    ),
    "groups in a matrix": (
        {"groups": np.zeros((5, 1))},
        r"one entry per kernel \(5\), got shape \(5, 1\)",
        (1, 2, 3),
    ),
}


@every("call", CALLS.values(), ids=CALLS)
@every(("wrong", "error", "message"), BAD.values(), ids=BAD)
def test_bad_input_is_named(call, wrong, error, message):
    with pytest.raises(error, match=message) as raised:
        call(**{**GOOD, **wrong})
    assert isinstance(raised.value, InputError) and isinstance(raised.value, ValueError)


@pytest.mark.parametrize(("wrong", "message", "functions"), ONLY.values(), ids=ONLY)
def test_bad_prices_and_groups_are_named(wrong, message, functions):
    for number in functions:
        with pytest.raises(InputError, match=message):
            list(CALLS.values())[number](**{**GOOD, **wrong})


def test_kernel_functions_are_named_where_they_fail():
    grams = ko.Grams.from_kernels([ko.gaussian(1.0), ko.polynomial(200)], 1e6 * np.ones((5, 2)))
    with pytest.raises(NotFiniteError, match="values of polynomial"):
        triplet_lp.kernel_design(grams, [[0, 1, 2]], gamma1=0.1, gamma2=0.1)


def test_noise_in_the_weights_does_not_leave_a_cone_without_inside():
    """Equal points make every K singular: there is nothing inside to move towards, only noise to drop."""
    X = np.repeat(points(6, 2, seed=3), 2, axis=0)
    triplets = [[0, 1, 4], [2, 3, 6], [4, 5, 8]]
    weak = ko.per_feature([ko.gaussian(0.5), ko.gaussian(1.0)], 2)
    grams = ko.Grams.from_kernels(weak, X)
    both = [
        triplet_lp.feature_selection(
            grams, triplets, weak.groups, gamma1=0.1, gamma2=0.001, cone=cone
        ).solve()
        for cone in ("psd", "nonnegative")
    ]
    assert np.abs(both[0].weights).max() > 0.1 and both[0].gap <= 1e-5
    assert both[0].lower <= both[1].upper

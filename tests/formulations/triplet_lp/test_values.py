"""The triplet programme (Fung et al. 2007): closed form, dual and optimality conditions have one value."""

from __future__ import annotations

import cvxpy as cp
import highspy
import numpy as np
import pytest

from formulations import triplet_lp
from tests.every import every
from tests.formulations.triplet_lp.cases import (
    CONES,
    CONIC,
    DATA,
    LINEAR,
    TIGHT,
    distance,
    dominance,
    formulated,
    linear,
    near,
    optimum,
    optimum_of,
    phi,
    plain,
    programme,
    quietly,
    signed,
    tolerance,
    value_of,
)
from tests.problems import solved

PRICES = ((0.3, 0.05), (0.05, 0.02), (0.02, 0.0), (0.0, 0.03), (0.0, 0.0))
INSTANCES = [  # each kind and cone with all prices, on data of one seed or the other in turn
    (kind, k % 2, cone, gamma1, gamma2)
    for kind in DATA
    for cone in LINEAR
    for k, (gamma1, gamma2) in enumerate(PRICES)
    if not (kind == "signed" and cone == "nonnegative")
]
instances = pytest.mark.parametrize(("kind", "seed", "cone", "gamma1", "gamma2"), INSTANCES)


@instances
def test_programme_closed_form_and_dual_have_one_value(kind, seed, cone, gamma1, gamma2):
    grams, triplets, groups = DATA[kind](seed)
    solution = optimum(grams, triplets, groups, gamma1=gamma1, gamma2=gamma2, cone=cone)
    status, value, _ = programme(grams, triplets, groups, gamma1, gamma2, cone)
    assert status == cp.OPTIMAL
    # Where weights cost nothing they are large, and linprog drops entries below 1e-9.
    assert near(solution.value, value, TIGHT if gamma1 + gamma2 > 0 else 1e-6)
    formulation = formulated(grams, triplets, groups, gamma1=gamma1, gamma2=gamma2, cone=cone)
    dual = formulation.dual()
    assert near(dual.solve(solver=cp.HIGHS), value, TIGHT if gamma1 + gamma2 > 0 else 1e-6)
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


@every(("kind", "prices"), [
    (kind, PRICES[at]) for k, kind in enumerate(DATA) for at in range(3) if at != k
])  # fmt: skip
def test_the_semidefinite_programme_and_its_dual_have_one_value(kind, prices):
    (gamma1, gamma2), (grams, triplets, groups) = prices, DATA[kind](0, 7, 8)
    formulation = formulated(grams, triplets, groups, gamma1=gamma1, gamma2=gamma2, cone="psd")
    solution = quietly(formulation.solve)
    value = value_of("psd", grams, triplets, groups, gamma1, gamma2)
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


def test_highs_may_have_run_with_another_number_of_threads():
    """It keeps that number for the process, and refuses a different one."""
    highspy.Highs.resetGlobalScheduler(True)
    earlier = highspy.Highs()
    earlier.setOptionValue("output_flag", False)
    earlier.setOptionValue("threads", 2)
    earlier.addVar(0.0, 1.0)
    earlier.run()
    K = np.array([[[1.0, 1, 0], [1, 1, 0], [0, 0, 1]]])
    assert triplet_lp.gamma1_max(K, [[0, 1, 2]], gamma2=0.1) == pytest.approx(0.7)
    highspy.Highs.resetGlobalScheduler(True)


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


@every(("twin", "kind", "cone"), [
    (twin, ("plain", "semidefinite")[k % 2], CONES[(k + shift) % 3])
    for k, twin in enumerate(TWINS)
    for shift in (0, 1)
    if shift == 0 or CONES[(k + shift) % 3] != "psd"  # those of the linear programmes are cheap
])  # fmt: skip
def test_a_clumsy_twin_has_the_same_optimum(kind, cone, twin):
    grams, triplets, groups = DATA[kind](2, 8, 9)
    options = {"gamma1": 0.05, "gamma2": 0.02}
    solution = optimum_of(kind, (2, 8, 9), **options, cone=cone)
    changed, factor, mapped = TWINS[twin](grams, triplets, groups, *options.values())
    given = {"grams": grams, "triplets": triplets, "groups": groups, "cone": cone, **options, **changed}
    other = optimum(**given)
    assert abs(solution.weights).max() > 0
    assert near(other.value, factor * solution.value, max(tolerance(cone), 1e-8))
    # The weights need not be unique: what they become must be optimal too.
    weights = np.asarray(mapped(solution.weights))
    kept = {"S": given.get("points"), "margin": given.get("margin", 1.0)}
    there = (given["grams"], given["triplets"], given["groups"], given["gamma1"], given["gamma2"])
    assert near(phi(weights, *there, **kept), other.value, tolerance(cone))


@every(("cone", "kind"), [*zip(CONES, ("plain", "semidefinite", "plain"), strict=True)])
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


@every(("kind", "seed"), [("plain", 0), ("semidefinite", 1)])
def test_values_are_ordered_as_the_sets_are(kind, seed):
    grams, triplets, groups = DATA[kind](seed, 9, 10)
    prices = (0.05, 0.02)
    options = {"gamma1": 0.05, "gamma2": 0.02}
    dominant, psd, nonnegative = (optimum(grams, triplets, groups, cone=c, **options).value for c in CONES)
    both = programme(grams, triplets, groups, *prices, "both")[1]
    assert both >= dominant - 1e-7 and dominant >= psd - 1e-6
    assert both >= nonnegative - 1e-7 and nonnegative >= psd - 1e-6  # the base kernels are PSD


@every(("cone", "kind"), [*zip(CONES, ("semidefinite", "plain", "semidefinite"), strict=True)])
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


@every("method", ["column-generation", "exact"])
def test_a_solve_prints_nothing(method, capfd):
    formulated(*plain(0), gamma1=0.05, gamma2=0.02).solve(method)
    assert capfd.readouterr() == ("", "")

"""The triplet programme under scaling, copies and permutations, and the order of its values."""

from __future__ import annotations

import numpy as np

from tests.every import every
from tests.formulations.triplet_lp.cases import (
    CONES,
    CONIC,
    DATA,
    TIGHT,
    near,
    optimum,
    optimum_of,
    phi,
    plain,
    programme,
    tolerance,
    value_of,
)


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

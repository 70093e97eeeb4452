"""The triplet programme: when it is feasible, closed forms, and when all weights vanish."""

from __future__ import annotations

import warnings

import cvxpy as cp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import kernelopt as ko
from formulations import triplet_lp
from kernelopt.errors import ConditionWarning, ConvergenceWarning, ParameterError
from tests.every import every
from tests.formulations.triplet_lp.cases import (
    CONES,
    DATA,
    LINEAR,
    TIGHT,
    blobs,
    cones,
    distance,
    dominance,
    formulated,
    near,
    optimum,
    plain,
    programme,
    quietly,
    semidefinite,
    signed,
    value_of,
)


@given(
    seed=st.integers(0, 10**6), exponent=st.integers(-6, 3), cone=st.sampled_from(LINEAR), free=st.booleans()
)
def test_the_optimum_is_between_zero_and_the_margin_of_every_triplet(seed, exponent, cone, free):
    grams, triplets, groups = (semidefinite if cone == "nonnegative" else signed)(seed, 6, 5)
    gamma1, gamma2 = 10.0**exponent, 0.0 if free else 10.0 ** (exponent - 1)
    solution = optimum(grams, triplets, groups, gamma1=gamma1, gamma2=gamma2, cone=cone, margin=0.7)
    assert 0.0 <= solution.value <= 0.7 * len(triplets)


@pytest.mark.slow
@every(("cone", "kind"), [*zip(CONES, ("plain", "semidefinite", "plain"), strict=True)])
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
    assert status == cp.UNBOUNDED
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
    for _ in range(12):
        K, triplets, gamma1, gamma2, value = one_kernel(rng)
        solution = optimum(K[None], triplets, [0], gamma1=gamma1, gamma2=gamma2)
        assert near(solution.value, value, TIGHT)
        moved += solution.weights[0] != 0
    assert moved >= 4  # not all collapse


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
@every(("kind", "gamma2"), [("plain", 0.0), ("semidefinite", 0.02)])
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

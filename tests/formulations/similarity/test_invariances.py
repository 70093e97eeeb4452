"""Kernels from similarities: orderings and invariances."""

from __future__ import annotations

import numpy as np
import pytest

from formulations import similarity
from tests.every import every
from tests.formulations.similarity.cases import (
    BUILDERS,
    RHO,
    TAU,
    N,
    S,
    Y,
    fidelities,
    in_turn,
    learned,
    near,
    optimum,
    setting,
    within,
)


@every(("fidelity", "traced"), [("l1", True), ("frobenius", False), ("squared_frobenius", True)])
def test_the_programmes_are_ordered(fidelity, traced):
    """EMKL <= ESKL; REKL >= EMKL for the Frobenius norm and its square; one similarity: EMKL = ESKL."""
    values = {name: learned(name, fidelity, 2, traced)[1] for name in BUILDERS}
    assert values["EMKL"].lower <= values["ESKL"].upper
    if fidelity != "l1":
        assert values["REKL"].upper >= values["EMKL"].lower
        assert learned("REKL", fidelity, 1, traced)[1].upper >= learned("ESKL", fidelity, 1, traced)[1].lower
    one, same = (learned(name, fidelity, 1, traced)[1] for name in ("ESKL", "EMKL"))
    assert near(one.value, same.value) and one.kernel == pytest.approx(same.kernel, abs=1e-6)


@every(("name", "fidelity"), [*in_turn("l1"), ("EMKL", "squared_frobenius")])
def test_the_order_of_points_and_the_names_of_classes_do_not_matter(name, fidelity):
    _, solution = learned(name, fidelity)
    order = np.random.default_rng(5).permutation(N)
    build = BUILDERS[name]
    # the points in another order, the classes renamed and the similarities swapped, all at once
    moved = optimum(build(S[::-1, order][:, :, order], -Y[order], **setting(fidelity)), 5e-6)
    assert within(moved.value, solution, 5e-6)
    if fidelity == "squared_frobenius":  # the kernels are unique
        assert moved.kernel == pytest.approx(solution.kernel[order][:, order], abs=5e-3)
        assert moved.decision_function() == pytest.approx(-solution.decision_function()[order], abs=5e-3)


@every(("name", "fidelity"), in_turn("frobenius"))
def test_values_scale(name, fidelity):
    """v(cS, c tau, C/c, rho c^(-1-d)) = v / c, d = 2 for squares and 1 for norms."""
    _, solution = learned(name, fidelity)
    c, d = 2.5, 2 if fidelity == "squared_frobenius" else 1
    scaled = BUILDERS[name](
        c * S, Y, C=1 / c, rho=RHO[fidelity] * c ** (-1 - d), trace=c * TAU, fidelity=fidelity
    )
    assert within(c * optimum(scaled, 5e-6).value, solution, 1e-5)


@fidelities
def test_copies_of_a_similarity_are_a_higher_price(fidelity):
    """For one kernel; not for one kernel per similarity."""
    rho = RHO[fidelity]
    copies = optimum(similarity.single_kernel(np.repeat(S[:1], 3, axis=0), Y, **setting(fidelity)), 5e-6)
    dear = optimum(similarity.single_kernel(S[:1], Y, **setting(fidelity, rho=3 * rho)), 5e-6)
    assert within(dear.value, copies, 5e-6)
    each = optimum(
        similarity.kernel_per_similarity(np.repeat(S[:1], 3, axis=0), Y, **setting(fidelity)), 5e-6
    )
    assert each.upper < copies.lower - 1e-3
    assert copies.upper >= learned("ESKL", fidelity, 1)[1].lower


@every(("name", "fidelity"), in_turn("l1"))
def test_values_do_not_decrease_in_the_price(name, fidelity):
    dear = optimum(BUILDERS[name](S, Y, **setting(fidelity, rho=3 * RHO[fidelity])), 5e-6)
    assert learned(name, fidelity)[1].lower <= dear.upper
    if name == "ESKL":  # a further similarity can only cost
        assert learned("ESKL", fidelity, 1)[1].lower <= learned("ESKL", fidelity, 2)[1].upper

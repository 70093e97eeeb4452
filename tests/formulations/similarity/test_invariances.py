"""Kernels from similarities: orderings and invariances."""

from __future__ import annotations

import cvxpy as cp
import numpy as np
import pytest

import kernelopt as ko
from formulations import similarity
from tests.every import every
from tests.formulations.similarity.cases import (
    BUILDERS,
    FIDELITIES,
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
    psd,
    setting,
    similarities,
    traces,
    within,
)
from tests.problems import labels, solved


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


NINE = similarities(2, 9, seed=1)


@fidelities
@traces
def test_unlabelled_points_enter_through_the_fidelity(fidelity, traced):
    """Kundu 2.1 as an explicit semidefinite programme with f on the labelled points; z padded with 0."""
    n = 6
    given = {"rho": RHO[fidelity], "trace": 4.0 if traced else None, "fidelity": fidelity}
    y = labels(9, seed=1)[:n]
    solution = optimum(similarity.single_kernel(NINE, y, **given), 5e-6)
    K = cp.Variable((9, 9), PSD=True)
    f, b, t = cp.Variable((n, 1)), cp.Variable(), cp.Variable((1, 1))
    distance = {"l1": lambda X: cp.norm1(cp.vec(X, order="F")), "frobenius": lambda X: cp.norm(X, "fro")}.get(
        fidelity, cp.sum_squares
    )
    loss = cp.sum(cp.pos(1 - cp.multiply(y, f[:, 0] + b)))
    objective = loss + t[0, 0] / 2 + RHO[fidelity] * sum(distance(K - T) for T in NINE)
    constraints = [cp.bmat([[K[:n, :n], f], [f.T, t]]) >> 0] + [cp.trace(K) == 4.0] * traced
    assert within(solved(cp.Problem(cp.Minimize(objective), constraints)), solution, 2e-6)
    assert within(solved(similarity.single_kernel(NINE, y, **given).dual()), solution)
    values = solution.decision_function()
    assert values.shape == (9,)
    assert values == pytest.approx(solution.kernel[:, :n] @ solution.alpha + solution.intercept)
    if fidelity == "squared_frobenius":
        closed = similarity.optimal_kernel(NINE, solution.alpha, rho=given["rho"], trace=given["trace"])
        assert solution.kernel == pytest.approx(closed, abs=1e-3)


@pytest.mark.parametrize("name", ["EMKL", "REKL"])
def test_transduction_with_several_kernels(name):
    y = labels(9, seed=1)[:6]
    build = BUILDERS[name]
    for fidelity in FIDELITIES:
        given = {"rho": RHO[fidelity], "trace": 4.0, "fidelity": fidelity}
        formulation = build(NINE, y, **given)
        solution = optimum(formulation, 5e-6)
        assert within(solved(formulation.dual()), solution)
        values = solution.decision_function()
        machine = solution.kernel[:, :6] @ solution.alpha + solution.intercept
        assert values == pytest.approx(machine, abs=np.sqrt(5e-6))  # the root of the gap
        if name == "REKL":
            rows = similarity.spectral_extension(solution, NINE, NINE[:, 6:])
            assert rows == pytest.approx(solution.kernel[6:], abs=1e-9)
            assert rows[:, :6] @ solution.alpha + solution.intercept == pytest.approx(values[6:], abs=1e-3)


@fidelities
@every("m", [1, 2])
def test_the_spectral_extension_reproduces_the_training_rows(fidelity, m):
    """And predicts: f(x_i) from the rows is the decision function."""
    _, solution = learned("REKL", fidelity, m)
    rows = similarity.spectral_extension(solution, S[:m], S[:m, :3])
    assert rows == pytest.approx(solution.kernel[:3], abs=1e-9)
    predicted = rows @ solution.alpha + solution.intercept
    assert predicted == pytest.approx(solution.decision_function()[:3], abs=1e-9)
    stack = []  # the cross kernels of the v_ij v_ij', with v_ij(x) = v_ij's_i(x) / lambda_ij
    for T in S[:m]:
        lam, V = np.linalg.eigh(T)
        stack += [np.outer(T[:3] @ v / eigenvalue, v) for eigenvalue, v in zip(lam, V.T, strict=True)]
    assert solution.decision_function(stack) == pytest.approx(predicted, abs=1e-7)
    assert solution.kernel_at(stack) == pytest.approx(rows, abs=1e-7)


@pytest.mark.parametrize("how", ["denoise", "flip"])
def test_spectral_transforms_extend(how):
    transformed = getattr(similarity, how)(S)
    assert similarity.spectral_extension(how, S, S) == pytest.approx(transformed, abs=1e-12)
    assert similarity.spectral_extension(how, S[0], S[0, 2:4]) == pytest.approx(
        transformed[0, 2:4], abs=1e-12
    )
    mu = np.linalg.eigvalsh(S[0])
    assert similarity.spectral_extension(mu, S[0], S[0]) == pytest.approx(S[0], abs=1e-12)
    low = np.diag([2.0, 0.0, -1.0])  # mu where lambda = 0 has no extension, and is left out
    assert similarity.spectral_extension([1.0, 1, 1], low, low).diagonal().tolist() == [1, 0, 1]


def test_spectral_transforms():
    """Kernels stay; denoise is nearest; flip is sqrt(S'S); shift moves the diagonal."""
    for K in (psd(0), psd(1, rank=3)):
        for transform in (similarity.denoise, similarity.flip, similarity.shift):
            assert transform(K) == pytest.approx(K, abs=1e-12)
    assert similarity.denoise(S).shape == S.shape and similarity.denoise(S[0]).shape == (N, N)
    nearest = cp.Variable((N, N), PSD=True)
    solved(cp.Problem(cp.Minimize(cp.norm(nearest - S[0], "fro"))))
    assert similarity.denoise(S[0]) == pytest.approx(nearest.value, abs=1e-4)
    assert similarity.flip(S[0]) @ similarity.flip(S[0]) == pytest.approx(S[0] @ S[0])
    moved = similarity.shift(S[0]) - S[0]
    assert moved == pytest.approx(-np.linalg.eigvalsh(S[0])[0] * np.eye(N), abs=1e-12)
    assert similarity.shift(ko.Grams.from_array(S)).shape == S.shape
    assert np.linalg.eigvalsh(similarity.shift(S))[:, 0] == pytest.approx(0, abs=1e-12)

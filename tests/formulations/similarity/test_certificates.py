"""Kernels from similarities: bounds for any candidate, and what the fidelities give."""

from __future__ import annotations

import cvxpy as cp
import numpy as np
import pytest

import kernelopt as ko
from formulations import similarity
from kernelopt import InputError
from tests.every import every
from tests.formulations.similarity.cases import (
    BUILDERS,
    FIDELITIES,
    PAIRWISE,
    RHO,
    TAU,
    N,
    S,
    Y,
    learned,
    near,
    omega_10,
    optimum,
    psd,
    setting,
    within,
)
from tests.problems import solved


@pytest.mark.slow
@every(("name", "fidelity", "traced"), PAIRWISE)
def test_bounds_hold_for_garbage(name, fidelity, traced):
    rng = np.random.default_rng([FIDELITIES.index(fidelity), traced])
    formulation, solution = learned(name, fidelity, 2, traced)
    kept = [(v, v.value) for v in formulation.problem.variables()]
    candidate = {
        v: psd(i) if v.ndim == 2 else rng.uniform(0, 1, N)
        for i, v in enumerate(formulation.problem.variables())
        if v.name()[0] in "Km"
    }
    bounds = ko.certify(formulation.problem, candidate=candidate, alpha=rng.normal(size=N))
    assert bounds.lower <= solution.upper + 1e-12 and bounds.upper >= solution.lower - 1e-12
    assert np.isfinite(bounds.upper) and np.isfinite(bounds.lower)
    for v, value in kept:
        v.save_value(value)


def test_bounds_are_found_at_a_small_price():
    """Where rho is far below the other coefficients a large tilt of the multiplier leaves no bound at all."""
    rng = np.random.default_rng(0)
    X, noise = rng.normal(size=(12, 3)), rng.normal(size=(3, 12, 12))
    S = np.exp(-((X[:, None] - X[None]) ** 2).sum(2)) + (noise + noise.transpose(0, 2, 1)) / 2
    formulation = similarity.kernel_per_similarity(
        S, np.sign(X[:, 0]), C=0.01, rho=0.012 / np.abs(S).sum(), trace=similarity.default_trace(S)
    )
    assert formulation.solve("exact", solver="CLARABEL", tol=1e-4).gap <= 1e-4


def test_the_fidelity_may_be_a_function():
    """Weighted l1: equal to "l1" for unit weights, and to its dual with |U| <= W."""
    W = np.random.default_rng(0).uniform(0.5, 2, (N, N))
    W = (W + W.T) / 2
    rho = RHO["l1"]

    def weighted(X):
        return cp.sum(cp.multiply(W, cp.abs(X)))

    plain = similarity.single_kernel(S, Y, **setting("l1") | {"fidelity": lambda X: cp.sum(cp.abs(X))})
    assert within(optimum(plain, 5e-6).value, learned("ESKL", "l1")[1], 5e-6)
    solution = optimum(similarity.single_kernel(S, Y, rho=rho, trace=TAU, fidelity=weighted), 5e-6)
    a, sigma = cp.Variable(N), cp.Variable()
    U = [cp.Variable((N, N), symmetric=True) for _ in S]
    z = cp.reshape(cp.multiply(Y, a), (N, 1), order="F")
    objective = (
        cp.sum(a) - rho * sum(cp.sum(cp.multiply(u, T)) for u, T in zip(U, S, strict=True)) + TAU * sigma
    )
    lmi = cp.bmat([[rho * sum(U) - sigma * np.eye(N), z], [z.T, np.full((1, 1), 2.0)]]) >> 0
    domain = [a >= 0, a <= 1, Y @ a == 0, *(cp.abs(u) <= W for u in U), lmi]
    assert within(solved(cp.Problem(cp.Maximize(objective), domain)), solution)
    free = optimum(similarity.single_kernel(S, Y, rho=rho, trace=None, fidelity=weighted), 5e-6)
    assert free.lower <= solution.upper
    squared = optimum(similarity.restricted_spectral(S, Y, rho=0.2, trace=TAU, fidelity=cp.sum_squares), 5e-6)
    assert within(squared.value, learned("REKL", "squared_frobenius")[1], 5e-6)
    each = optimum(similarity.kernel_per_similarity(S, Y, rho=rho, trace=TAU, fidelity=weighted), 5e-6)
    assert each.lower <= solution.upper
    for learning in (
        similarity.single_kernel(S, Y, rho=rho, trace=TAU, fidelity=weighted),
        similarity.kernel_per_similarity(S, Y, rho=rho, trace=TAU, fidelity=weighted),
        similarity.restricted_spectral(S, Y, rho=rho, trace=TAU, fidelity=cp.norm1),
    ):
        with pytest.raises(
            InputError, match="needs the conjugate of the fidelity, got a function. Use one of"
        ):
            learning.dual()


@pytest.mark.slow
@pytest.mark.parametrize("name", ["ESKL", "REKL", pytest.param("EMKL", marks=pytest.mark.slow)])
def test_kernels_among_the_similarities_are_kept(name):
    """The norm is exact: where it costs more than it can gain, K_i = S_i; the zero matrix is one of them."""
    given = {"rho": 10.0, "trace": None, "fidelity": "frobenius"}
    kernels = np.array([psd(0), psd(1)])[: 1 if name == "ESKL" else 2]
    formulation = BUILDERS[name](kernels, Y, **given)
    solution = optimum(formulation, 5e-6)
    assert within(omega_10(kernels)[0], solution)
    found = [np.asarray(K.value) for K in formulation.risks[0].learner.kernels]
    assert np.array(found) == pytest.approx(kernels, abs=1e-5)
    flat = optimum(BUILDERS[name](np.zeros((2, N, N)), Y, **given), 1e-7)
    assert near(flat.value, 2 * min((Y > 0).sum(), (Y < 0).sum()))  # no kernel: the hinge of an intercept


def test_the_class_of_a_fidelity_is_no_fidelity():
    with pytest.raises(
        ko.errors.ParameterError, match=r"fidelity must be .*got the class l1\. Create one first"
    ) as error:
        similarity.single_kernel(S, Y, rho=1.0, trace=TAU, fidelity=ko.fidelities.l1)
    assert ".." not in str(error.value).replace("...", "")

"""Kernels from similarities (Kundu et al.): primal and dual, closed forms, Omega."""

from __future__ import annotations

import cvxpy as cp
import numpy as np
import pytest
from sklearn.svm import SVC

import kernelopt as ko
from formulations import lp_norm, similarity
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
    builders,
    fidelities,
    learned,
    near,
    omega_10,
    optimum,
    psd,
    setting,
    traces,
    within,
)
from tests.problems import CASES, solved

KINDS = {case.name: case for case in CASES}
LOSSES = (
    "squared_hinge",
    "hard_margin",
    "huberized_hinge",
    "logistic",
    "squared",
    "epsilon_insensitive",
    "one_class",
)


def fidelity_of(fidelity, X):
    return {"l1": np.abs(X).sum(), "frobenius": np.sqrt((X**2).sum())}.get(fidelity, (X**2).sum())


def omega(K, y=Y, C=1.0):
    """The risk at a kernel by its dual, (1), clipped to be positive semidefinite."""
    lam, V = np.linalg.eigh(K)
    L = V * np.sqrt(np.maximum(lam, 0.0))
    a = cp.Variable(y.size)
    objective = cp.sum(a) - cp.sum_squares(L.T @ cp.multiply(y, a)) / 2
    return solved(cp.Problem(cp.Maximize(objective), [a >= 0, a <= C, y @ a == 0]))


def omega_5(kernels, y=Y, C=1.0):
    """(5) at kernels of one trace: the risk, minimised over weights on the simplex."""
    return lp_norm.primal(kernels, y, p=1, loss=ko.hinge(C)).solve("exact").value


@every(("name", "fidelity", "traced"), PAIRWISE)
@every("other", [False, True])
def test_primal_and_dual_have_one_value(name, fidelity, traced, other):
    """Kundu 2.1, 3.4 and 4.1, against their duals by hand: with one similarity and with two."""
    m, traced = (1, not traced) if other else (2, traced)
    formulation, solution = learned(name, fidelity, m, traced)
    assert within(solved(formulation.dual()), solution)


@builders
@fidelities
def test_the_value_is_that_of_the_machine_and_the_fidelity(name, fidelity):
    """The parts of the objective, from the kernels alone."""
    formulation, solution = learned(name, fidelity)
    Ks = [np.asarray(K.value) for K in formulation.risks[0].learner.kernels]
    assert all(near(np.trace(K), TAU, 1e-9) and np.linalg.eigvalsh(K)[0] >= -1e-9 for K in Ks)
    risk = omega(Ks[0]) if name == "ESKL" else omega_10(Ks)[0]
    if name == "REKL":
        spectra = [v.value for v in formulation.problem.variables() if v.name().startswith("mu")]
        differences = [mu - np.linalg.eigvalsh(T) for mu, T in zip(spectra, S, strict=True)]
    else:
        differences = [K - T for K, T in zip(Ks * (1 if len(Ks) == 2 else 2), S, strict=True)]
    distance = RHO[fidelity] * sum(fidelity_of(fidelity, X) for X in differences)
    assert within(risk + distance, solution, 5e-6)


def test_the_machine_is_the_svm_at_the_kernel():
    for fidelity in FIDELITIES:
        _, solution = learned("ESKL", fidelity)
        svm = SVC(C=1.0, kernel="precomputed", tol=1e-10).fit(solution.kernel, Y)
        assert solution.decision_function() == pytest.approx(svm.decision_function(solution.kernel), abs=2e-3)
        assert solution.weights is None and not solution.learned[0].inductive


@every(("name", "kind"), [
    (name, kind) for k, name in enumerate(BUILDERS) for kind in LOSSES[k % 2 :: 2]
])  # fmt: skip
def test_other_losses_have_the_value_of_their_duals(name, kind):
    case = KINDS[kind]
    y, loss = (None if kind == "one_class" else case.y(N)), case.loss(0.7)
    build = BUILDERS[name]
    formulation = build(S, y, **setting("squared_frobenius"), loss=loss)
    assert within(solved(formulation.dual()), optimum(formulation, 5e-6))


def test_without_fidelity_the_labels_are_fitted():
    """rho = 0: K = tau zz' / |z|^2, with the value of max 1'a - tau/2 |a|^2."""
    tau = 2.0
    a = cp.Variable(N)
    value = solved(
        cp.Problem(cp.Maximize(cp.sum(a) - tau / 2 * cp.sum_squares(a)), [a >= 0, a <= 1, Y @ a == 0])
    )
    solution = optimum(similarity.single_kernel(S, Y, rho=0, trace=tau))
    assert within(value, solution)
    z = Y * a.value
    assert solution.kernel == pytest.approx(tau * np.outer(z, z) / (z @ z), abs=2e-3)
    for name in ("ESKL", "EMKL", "REKL"):
        build = BUILDERS[name]
        formulation = build(S, Y, rho=0, trace=tau)
        assert within(solved(formulation.dual()), optimum(formulation, 5e-6))


@traces
@every("m", [1, 2])
def test_the_kernel_is_a_projection_at_alpha(m, traced):
    """Kundu 2.2: the bound that it gives is tight, and below the optimum at any alpha."""
    _, solution = learned("ESKL", "squared_frobenius", m, traced)
    rho, tau = RHO["squared_frobenius"], TAU if traced else None

    def bound(alpha):
        K = similarity.optimal_kernel(S[:m], alpha, rho=rho, trace=tau)
        return Y @ alpha - alpha @ K @ alpha / 2 + rho * ((K - S[:m]) ** 2).sum()

    dual = solution.certificate.alphas[0]  # a machine at a singular kernel has many alphas, the dual has one
    K = similarity.optimal_kernel(S[:m], dual, rho=rho, trace=tau)
    assert solution.kernel == pytest.approx(K, abs=1e-3)
    assert within(bound(dual), solution)
    rng = np.random.default_rng(m)
    for _ in range(20):
        alpha = ko.hinge(1.0).project(Y * rng.uniform(0, 1, N), Y, True)
        assert bound(alpha) <= solution.upper + 1e-9


@pytest.mark.parametrize("tau", [None, 3.0])
def test_the_projection_is_the_nearest_kernel(tau):
    K = cp.Variable((N, N), PSD=True)
    a = np.random.default_rng(0).normal(size=N - 2)
    z = np.pad(a, (0, 2))
    target = S.mean(axis=0) + np.outer(z, z) / (4 * 2 * 0.3)
    constraints = [] if tau is None else [cp.trace(K) == tau]
    solved(cp.Problem(cp.Minimize(cp.sum_squares(K - target)), constraints))
    assert similarity.optimal_kernel(S, a, rho=0.3, trace=tau) == pytest.approx(K.value, abs=1e-4)


@traces
def test_only_the_mean_matters_to_squares(traced):
    _, solution = learned("ESKL", "squared_frobenius", 2, traced)
    rho, mean = RHO["squared_frobenius"], S.mean(axis=0)
    reduced = optimum(
        similarity.single_kernel(mean, Y, **setting("squared_frobenius", traced, rho=2 * rho)), 5e-6
    )
    assert within(reduced.value + rho * ((S - mean) ** 2).sum(), solution, 5e-6)
    assert reduced.kernel == pytest.approx(solution.kernel, abs=1e-3)


def test_a_large_price_projects_the_mean():
    given = setting("squared_frobenius", rho=1e4)
    solution = similarity.single_kernel(S, Y, **given).solve()
    nearest = similarity.optimal_kernel(S, np.zeros(N), rho=1e4, trace=TAU)
    assert solution.kernel == pytest.approx(nearest, abs=1e-3)
    free = similarity.single_kernel(S, Y, **setting("squared_frobenius", False, 1e4)).solve()
    assert free.kernel == pytest.approx(similarity.denoise(S.mean(axis=0)), abs=1e-3)


def test_the_indefinite_svm_is_the_single_kernel_of_squares():
    rho = RHO["squared_frobenius"]
    formulation = similarity.indefinite_svm(S, Y, rho=rho)
    solution, same = optimum(formulation), learned("ESKL", "squared_frobenius", 2, False)[1]
    assert solution.lower <= same.upper and same.lower <= solution.upper
    assert within(solved(formulation.dual()), solution)
    one = optimum(similarity.indefinite_svm(S[0], Y, rho=rho))
    z = one.alpha
    assert one.kernel == pytest.approx(similarity.denoise(S[0] + np.outer(z, z) / (4 * rho)), abs=1e-3)
    assert one.decision_function() == pytest.approx(one.kernel @ z + one.intercept)


@pytest.mark.parametrize("m", [2, 3])
def test_omega_is_the_risk_with_the_largest_norm(m):
    Ks = [psd(seed, rank=4) for seed in range(m)]
    value, gamma, alpha = omega_10(Ks)
    assert near(ko.risk(Ks, Y, ko.hinge(1.0), norm=np.inf).value, value)
    assert similarity.gammas(Ks, alpha) == pytest.approx(gamma, abs=1e-3)
    q = np.sqrt([alpha @ K @ alpha for K in Ks])
    assert near(Y @ alpha - q.sum() ** 2 / 2, value, 1e-5)
    assert similarity.gammas(Ks, np.zeros(N)) == pytest.approx(np.full(m, 1 / m))
    assert similarity.gammas(Ks, alpha[:5]).sum() == pytest.approx(1)


@pytest.mark.parametrize("seed", range(3))
def test_the_definitions_of_omega_are_ordered(seed):
    """Omega_10 <= omega(sum) <= Omega_5 at equal traces; Omega_10(K, .., K) = omega(m^2 K)."""
    Ks = [psd(10 * seed + i, rank=3) for i in range(3)]
    between = omega(sum(Ks))
    assert omega_10(Ks)[0] <= between + 1e-7 and between <= omega_5(Ks) + 1e-7
    assert near(omega_10([Ks[0]] * 3)[0], omega(9 * Ks[0]))
    for one in (omega_10(Ks[:1])[0], omega_5(Ks[:1])):
        assert near(one, omega(Ks[0]), 5e-6)


def test_the_first_definition_is_not_convex_and_the_second_is():
    """Kundu 3.2: A = yy' and B = 11' of one trace, swapped."""
    y = np.array([1.0, 1, 1, -1, -1, -1])
    A, B = np.outer(y, y), np.ones((6, 6))
    middle = [(A + B) / 2] * 2
    assert near(omega_5([A, B], y), 0.5, 1e-5) and near(omega_5([B, A], y), 0.5, 1e-5)
    assert near(omega_5(middle, y), 1.0, 1e-5)
    assert omega_10(middle, y)[0] <= (omega_10([A, B], y)[0] + omega_10([B, A], y)[0]) / 2 + 1e-7
    for seed in range(3):
        left, right = ([psd(20 * seed + i + j) for i in range(2)] for j in (0, 5))
        between = [(K + L) / 2 for K, L in zip(left, right, strict=True)]
        assert omega_10(between)[0] <= (omega_10(left)[0] + omega_10(right)[0]) / 2 + 1e-7


@fidelities
@pytest.mark.parametrize("name", ["EMKL", "REKL"])
def test_the_machine_has_the_weights_one_over_gamma(name, fidelity):
    """f = sum_i K_i z / gamma_i + b: the kernel that moves most weighs least."""
    formulation, solution = learned(name, fidelity)
    Ks = [np.asarray(K.value) for K in formulation.risks[0].learner.kernels]
    gamma = similarity.gammas(Ks, solution.alpha)
    machine = sum(K / g for K, g in zip(Ks, gamma, strict=True))
    assert solution.kernel == pytest.approx(machine, rel=1e-3, abs=1e-3)
    assert np.asarray(formulation.kernel.value) == pytest.approx(solution.kernel, abs=1e-9)
    assert solution.decision_function() == pytest.approx(
        machine @ solution.alpha + solution.intercept, abs=1e-3
    )
    if name == "EMKL":
        parts = solution.learned[0].parts
        assert [1 / part.weights[0] for part in parts] == pytest.approx(gamma, abs=1e-3)
        assert all(part.grams.gram(0) == pytest.approx(K) for part, K in zip(parts, Ks, strict=True))
    else:
        weights = solution.weights.reshape(2, N)
        forms = [w @ (np.linalg.eigh(T)[1].T @ solution.alpha) ** 2 for w, T in zip(weights, S, strict=True)]
        assert np.array(forms) / sum(forms) == pytest.approx(gamma, abs=1e-3)
        mus = np.concatenate([v.value for v in formulation.problem.variables() if v.name()[:2] == "mu"])
        assert solution.weights * np.repeat(gamma, N) == pytest.approx(mus, abs=1e-3)


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

"""Kernels from similarities: every programme against its dual, closed forms, and what the paper proves.

The facts are Kundu 1.1 to 4.2 and 6.1 to 8.3 (docs/theory).
"""

from __future__ import annotations

from functools import cache
from itertools import pairwise

import cvxpy as cp
import numpy as np
import pytest
from sklearn.svm import SVC

import kernelopt as ko
from formulations import lp_norm, similarity
from kernelopt import InputError, LabelError, NotFiniteError, NotSymmetricError, ParameterError, ShapeError
from tests.every import every
from tests.problems import CASES, labels, points, solved

N = 8
Y = labels(N)
FIDELITIES = ("l1", "frobenius", "squared_frobenius")
RHO = {"l1": 0.05, "frobenius": 0.5, "squared_frobenius": 0.2}
BUILDERS = {
    "ESKL": similarity.single_kernel,
    "EMKL": similarity.kernel_per_similarity,
    "REKL": similarity.restricted_spectral,
}
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

builders = pytest.mark.parametrize("name", BUILDERS)
fidelities = pytest.mark.parametrize("fidelity", FIDELITIES)
traces = every("traced", [True, False], ids=["traced", "free"])


def similarities(m=2, n=N, seed=0):
    """m indefinite similarities: a linear kernel, a Gaussian one, and noise on both."""
    X, noise = points(n, seed=seed), np.random.default_rng(seed + 300).normal(size=(2, n, n))
    clean = np.array([X @ X.T / 2, np.exp(-((X[:, None] - X[None]) ** 2).sum(2) / 2)])
    return (clean + 0.3 * (noise + noise.transpose(0, 2, 1)))[:m]


S = similarities()
TAU = similarity.default_trace(S)
NINE = similarities(2, 9, seed=1)


def setting(fidelity, traced=True, rho=None):
    return {
        "rho": RHO[fidelity] if rho is None else rho,
        "trace": TAU if traced else None,
        "fidelity": fidelity,
    }


def optimum(formulation, tol=1e-6):
    solution = formulation.solve(tol=tol)
    assert solution.status == "optimal" and solution.gap <= tol
    return solution


@cache
def learned(name, fidelity, m=2, traced=True):
    """One of the three programmes on the common data, certified."""
    formulation = BUILDERS[name](S[:m], Y, **setting(fidelity, traced))
    return formulation, optimum(formulation, 1e-5)


def near(value, other, tolerance=1e-6):
    return abs(value - other) <= tolerance * max(1.0, abs(other))


def within(value, solution, tolerance=1e-6):
    """Whether a value is in the certified bracket, to a tolerance."""
    slack = tolerance * max(1.0, abs(solution.upper))
    return solution.lower - slack <= value <= solution.upper + slack


def fidelity_of(fidelity, X):
    return {"l1": np.abs(X).sum(), "frobenius": np.sqrt((X**2).sum())}.get(fidelity, (X**2).sum())


def omega(K, y=Y, C=1.0):
    """The risk at a kernel by its dual, (1), clipped to be positive semidefinite."""
    lam, V = np.linalg.eigh(K)
    L = V * np.sqrt(np.maximum(lam, 0.0))
    a = cp.Variable(y.size)
    objective = cp.sum(a) - cp.sum_squares(L.T @ cp.multiply(y, a)) / 2
    return solved(cp.Problem(cp.Maximize(objective), [a >= 0, a <= C, y @ a == 0]))


def omega_10(kernels, y=Y, C=1.0):
    """The max-max of (10), in alpha and gamma jointly; and its gamma and signed alpha."""
    a, gamma = cp.Variable(y.size), cp.Variable(len(kernels), nonneg=True)
    forms = []
    for i, K in enumerate(kernels):
        lam, V = np.linalg.eigh(K)
        L = V * np.sqrt(np.maximum(lam, 0.0))
        forms.append(cp.quad_over_lin(L.T @ cp.multiply(y, a), gamma[i]))
    domain = [a >= 0, a <= C, y @ a == 0, cp.sum(gamma) <= 1]
    value = solved(cp.Problem(cp.Maximize(cp.sum(a) - cp.sum(forms) / 2), domain))
    return value, gamma.value, y * a.value


def omega_5(kernels, y=Y, C=1.0):
    """(5) at kernels of one trace: the risk, minimised over weights on the simplex."""
    return lp_norm.primal(kernels, y, p=1, loss=ko.hinge(C)).solve("exact").value


def psd(seed, n=N, rank=None):
    F = np.random.default_rng(seed).normal(size=(n, rank or n))
    K = F @ F.T
    return K * (n / np.trace(K))


# -------------------------------------------------------------------------------- primal and dual


@builders
@fidelities
@traces
@every("m", [1, 2])
def test_primal_and_dual_have_one_value(name, fidelity, traced, m):
    """Kundu 2.1, 3.4 and 4.1, against their duals by hand."""
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


@builders
@every("kind", LOSSES)
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


# -------------------------------------------------- closed forms of the squares: Kundu 2.2 to 2.5


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


# ---------------------------------------------------------- Omega and its gamma: Kundu 3.1 to 3.5


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


# ----------------------------------------------- orderings, invariances: Kundu 4.2 and 8.1 to 8.3


@fidelities
@traces
def test_the_programmes_are_ordered(fidelity, traced):
    """EMKL <= ESKL; REKL >= EMKL for the Frobenius norm and its square; one similarity: EMKL = ESKL."""
    values = {name: learned(name, fidelity, 2, traced)[1] for name in BUILDERS}
    assert values["EMKL"].lower <= values["ESKL"].upper
    if fidelity != "l1":
        assert values["REKL"].upper >= values["EMKL"].lower
        assert learned("REKL", fidelity, 1, traced)[1].upper >= learned("ESKL", fidelity, 1, traced)[1].lower
    one, same = (learned(name, fidelity, 1, traced)[1] for name in ("ESKL", "EMKL"))
    assert near(one.value, same.value) and one.kernel == pytest.approx(same.kernel, abs=1e-6)


@builders
@fidelities
def test_the_order_of_points_and_the_names_of_classes_do_not_matter(name, fidelity):
    _, solution = learned(name, fidelity)
    order = np.random.default_rng(5).permutation(N)
    build = BUILDERS[name]
    moved = optimum(build(S[:, order][:, :, order], Y[order], **setting(fidelity)), 5e-6)
    other = optimum(build(S, -Y, **setting(fidelity)), 5e-6)
    swapped = optimum(build(S[::-1], Y, **setting(fidelity)), 5e-6)
    assert all(within(v.value, solution, 5e-6) for v in (moved, other, swapped))
    if fidelity == "squared_frobenius":  # the kernels are unique
        assert moved.kernel == pytest.approx(solution.kernel[order][:, order], abs=5e-3)
        assert other.kernel == pytest.approx(solution.kernel, abs=5e-3)
        assert other.decision_function() == pytest.approx(-solution.decision_function(), abs=5e-3)


@builders
@fidelities
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


@builders
@fidelities
def test_values_do_not_decrease_in_the_price(name, fidelity):
    rhos = np.array([0.3, 1.0, 3.0]) * RHO[fidelity]
    found = [optimum(BUILDERS[name](S, Y, **setting(fidelity, rho=rho)), 5e-6) for rho in rhos]
    assert all(a.lower <= b.upper for a, b in pairwise(found))
    if name == "ESKL":  # a further similarity can only cost
        assert learned("ESKL", fidelity, 1)[1].lower <= learned("ESKL", fidelity, 2)[1].upper


# ----------------------------------------------------- transduction, new points: Kundu 7.1 to 7.3


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


# ------------------------------------------------------------------ certificates, fidelities


@builders
@traces
def test_bounds_hold_for_garbage(name, traced):
    rng = np.random.default_rng(0)
    for fidelity in FIDELITIES:
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


# ------------------------------------------------------------------------------- bad input


@builders
@every(
    ("given", "error", "message"),
    [
        (
            {"similarities": S + np.triu(np.ones((N, N)), 1)},
            NotSymmetricError,
            r"similarities\[0\] must be symm",
        ),
        ({"similarities": S + 1e-6 * np.triu(S, 1)}, NotSymmetricError, "symmetric to 1e-08 relative"),
        (
            {"similarities": np.full((2, N, N), np.nan)},
            NotFiniteError,
            "similarities must be finite, got nan",
        ),
        ({"similarities": S[:, :5]}, ShapeError, r"must have shape \(m, N, N\), got \(2, 5, 8\)"),
        ({"similarities": S[0, 0]}, ShapeError, r"must have shape \(m, N, N\), got \(8,\)"),
        ({"similarities": S[0, :5]}, ShapeError, r"must have shape \(m, N, N\), got \(1, 5, 8\)"),
        ({"similarities": S[:0]}, ShapeError, "at least one"),
        ({"similarities": [np.eye(2), np.eye(3)]}, ShapeError, "real matrices of one size, got list"),
        ({"y": Y[:0]}, LabelError, "y must hold both labels, got no label"),
        ({"y": np.arange(8.0)}, LabelError, "labels -1 and \\+1, got 0"),
        ({"y": np.ones(N)}, LabelError, "both labels"),
        ({"y": np.tile(Y, 2)}, ShapeError, "at most 8 entries"),
        ({"y": None}, ShapeError, "needs y, got None"),
        ({"rho": -1.0}, ParameterError, "rho must be a non-negative finite number, got -1"),
        ({"rho": np.nan}, ParameterError, "rho must be"),
        ({"C": 0.0}, ParameterError, "C must be a positive"),
        ({"C": np.inf}, ParameterError, "C must be finite"),
        ({"trace": 0.0}, ParameterError, "trace must be a positive finite number, got 0"),
        ({"trace": "mean"}, ParameterError, "trace must be a positive"),
        ({"trace": None, "rho": 0.0}, ParameterError, "trace must be given where rho is 0, got None"),
        ({"fidelity": "l2"}, ParameterError, "fidelity must be 'l1', 'frobenius'.* got 'l2'"),
        (
            {"fidelity": lambda X: cp.abs(X)},
            ParameterError,
            "must return a convex cvxpy expression of one entry",
        ),
        ({"fidelity": lambda X: -cp.sum_squares(X)}, ParameterError, "must return a convex"),
        ({"fidelity": lambda X: 1.0}, ParameterError, "must return a convex .* got 1.0"),
        ({"loss": "hinge"}, ParameterError, "loss must be a loss such as"),
        ({"loss": ko.logistic(1.0), "C": np.ones(N)}, ParameterError, "Write it into the loss"),
        ({"loss": ko.logistic(1.0), "C": 2.0}, ParameterError, "got C = 2.0 beside loss"),
    ],
)
def test_bad_input_is_refused(name, given, error, message):
    arguments = {"similarities": S, "y": Y, "rho": 1.0, "trace": TAU} | given
    with pytest.raises(error, match=message):
        BUILDERS[name](arguments.pop("similarities"), arguments.pop("y"), **arguments)


def test_bad_input_of_the_helpers_is_refused():
    with pytest.raises(ParameterError, match="some similarity must have a positive eigenvalue"):
        similarity.default_trace(-np.eye(3))
    with pytest.raises(ParameterError, match="rho must be a positive finite number, got 0"):
        similarity.indefinite_svm(S, Y, rho=0)
    with pytest.raises(ShapeError, match="alpha must be finite of shape"):
        similarity.optimal_kernel(S, np.ones(N + 1), rho=1)
    for transform in (similarity.denoise, similarity.flip, similarity.shift):
        with pytest.raises(NotSymmetricError, match=r"similarities\[0\]"):
            transform(np.triu(np.ones((3, 3))))
    extend = similarity.spectral_extension
    with pytest.raises(InputError, match="got 'shift'. The shift has no rule at new points"):
        extend("shift", S, S)
    with pytest.raises(ShapeError, match=r"S_new must be finite of shape \(m, n_new, N\) with m = 2"):
        extend("flip", S, S[:1])
    with pytest.raises(ShapeError, match="mu must be finite of shape"):
        extend(np.ones(N), S, S)
    for name in ("ESKL", "EMKL"):
        with pytest.raises(InputError, match="the kernel must have the eigenvectors of the similarities"):
            extend(learned(name, "frobenius")[1], S, S)
        with pytest.raises(InputError, match="new points need a combination"):
            learned(name, "frobenius")[1].decision_function(S)
    with pytest.raises(InputError, match="the kernel must have the eigenvectors"):
        extend(learned("REKL", "frobenius")[1], S[::-1], S)
    with pytest.raises(ParameterError, match="Call its solve"):
        ko.solve(learned("ESKL", "l1")[0])

"""Mirror descent against exact optima: its bounds, its steps, what the paper prints, and what it refuses."""

from __future__ import annotations

import re
import warnings
from fractions import Fraction
from functools import cache
from itertools import product

import cvxpy as cp
import numpy as np
import pytest
from scipy.linalg import expm, logm

import kernelopt as ko
from formulations import similarity
from kernelopt.certificates.lower.closed import bound_over
from kernelopt.methods.mirror_descent.composite import DualPoint, read_composite
from kernelopt.methods.mirror_descent.dual_averaging import EntropyIterate, Steps
from kernelopt.structure.learning import read_pieces
from kernelopt.structure.parts import Budget
from kernelopt.structure.structure import Structure
from tests.every import every
from tests.problems import CASES, labels, points, solved, stack, targets, why_not

METHOD = "mirror-descent"
N = 10
FORMS = {
    "ESKL": similarity.single_kernel,
    "EMKL": similarity.kernel_per_similarity,
    "REKL": similarity.restricted_spectral,
}
FIDELITIES = ("l1", "frobenius", "squared_frobenius")
RHO = {"l1": 0.05, "frobenius": 0.5, "squared_frobenius": 0.2}

forms = pytest.mark.parametrize("form", FORMS)
fidelities = pytest.mark.parametrize("fidelity", FIDELITIES)


@cache
def similarities(m=2, n=N, seed=0):
    """m indefinite similarities: linear and Gaussian kernels with noise."""
    X, noise = points(n, seed=seed), np.random.default_rng(seed + 300).normal(size=(m, n, n))
    squares = ((X[:, None] - X[None]) ** 2).sum(2)
    clean = [X @ X.T / 2, np.exp(-squares / 2), np.exp(-2 * squares)][:m]
    return np.array(clean) + 0.3 * (noise + noise.transpose(0, 2, 1))


def learning(form, fidelity, m=2, n=N, labelled=None, y=None, **options):
    """A programme of the paper and its dual, written by hand."""
    S = similarities(m, n)
    y = labels(n)[:labelled] if y is None else y
    given = {"rho": RHO.get(fidelity, 0.2), "trace": similarity.default_trace(S), "fidelity": fidelity}
    given |= options
    formulation = FORMS[form](S, y, **given)
    return formulation, formulation.dual


def run(problem, tol=1e-4, **options):
    """A solution, whether the tolerance is met or not."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ko.ConvergenceWarning)
        return ko.solve(problem, METHOD, tol=tol, **options)


def optimum(problem):
    """The value of the explicit problem by Clarabel, which leaves the constraints their multipliers."""
    expansion = ko.expand(problem)
    with np.errstate(all="ignore"):  # |u|^2 / w at the weight zero
        value = solved(expansion.problem)
    expansion.bring_back()
    return value


def check(problem, optimum, gap, **options):
    """Solve to a gap, and compare with the optimum: every report, the point, and the risks."""
    solution = run(problem, tol=gap, **options)
    slack = 2e-6 * max(1.0, abs(optimum))
    assert solution.gap <= gap
    assert all(low - slack <= optimum <= high + slack for _, low, high in solution.history)
    assert solution.history[-1][1:] == pytest.approx((solution.lower, solution.upper), rel=1e-9)
    assert problem.value == solution.value == solution.upper
    assert solution.lower - slack <= float(problem.objective.value) <= solution.upper + 1e-9
    for constraint in problem.constraints:
        assert float(np.max(constraint.violation())) <= 1e-9 * max(1.0, abs(float(constraint.args[1].value)))
    return solution


# ------------------------------------------------------------------- against the exact optimum

GAP = {"l1": 1e-1, "frobenius": 5e-4, "squared_frobenius": 1e-4}


WEIGHTS = np.abs(similarities(1)[0]) + 0.1
FUNCTIONS = {  # all that cvxpy has a subgradient of
    "weighted l1": lambda D: cp.sum(cp.multiply(WEIGHTS, cp.abs(D))) / 4,
    "largest entry": lambda D: cp.max(cp.abs(D)),
    "huber": lambda D: cp.sum(cp.huber(D, 0.3)),
    "spectral norm": lambda D: cp.sigma_max(D),
    "nuclear norm and squares": lambda D: cp.normNuc(D) + cp.sum_squares(D),
}
LOSSES = {
    "logistic": (ko.logistic(), labels(N)),
    "squared": (ko.squared(), targets(N)),
    "epsilon_insensitive": (ko.epsilon_insensitive(2.0, 0.1), targets(N)),
    "squared_hinge": (ko.squared_hinge(), labels(N)),
    "hard_margin": (ko.hard_margin(), labels(N)),
    "one_class": (ko.one_class(0.5), np.ones(N)),
}
# The programme, the fidelity, the gap and other options. Of the pairs of a form and a fidelity, six have all
# labels and the other three points without; a fidelity is a sum over the similarities, whose number is varied
# for one of them. The loss enters through the machine alone.
TABLE = [
    *(("ESKL", fidelity, GAP[fidelity], {}) for fidelity in ("l1", "squared_frobenius")),
    *(("EMKL", fidelity, GAP[fidelity], {}) for fidelity in ("l1", "frobenius")),
    *(("REKL", fidelity, GAP[fidelity], {}) for fidelity in ("frobenius", "squared_frobenius")),
    ("EMKL", "squared_frobenius", 1e-4, {"m": 1}),
    ("ESKL", "frobenius", 1e-3, {"labelled": 8}),
    ("EMKL", "squared_frobenius", 2e-4, {"labelled": 8}),
    ("REKL", "l1", 2e-1, {"labelled": 8}),
    *(("ESKL", "squared_frobenius", 1e-3, {"loss": loss, "y": y}) for loss, y in LOSSES.values()),
    *(
        ("EMKL", "squared_frobenius", 1e-3, dict(zip(("loss", "y"), LOSSES[name], strict=True)))
        for name in ("squared", "one_class")
    ),
    *(("ESKL", FUNCTIONS[name], 1e-1, {}) for name in FUNCTIONS if name != "huber"),
    ("EMKL", FUNCTIONS["huber"], 1e-1, {}),
]


@pytest.mark.parametrize(("form", "fidelity", "gap", "options"), TABLE)
def test_it_brackets_the_exact_optimum(form, fidelity, gap, options):
    formulation, dual = learning(form, fidelity, **options)
    exact = optimum(formulation.problem) if callable(fidelity) else solved(dual())
    solution = check(formulation.problem, exact, gap)
    f = solution.decision_function()
    assert f.shape == (N,) and solution.alpha.shape == (options.get("labelled", N),)
    K = solution.kernel[:, : solution.alpha.size]
    assert f == pytest.approx(K @ solution.alpha + solution.intercept, abs=1e-9)


# ------------------------------------------------------------- other sets, kernels and risks


def spectrahedron(n, total, at_most=False):
    """The matrices of order n whose trace is, or is at most, a number."""
    return Budget({kernel(n=n): np.eye(n).ravel()}, total, at_most)


def kernel(name="K", n=N):
    return cp.Variable((n, n), PSD=True, name=name)


Y, OTHER = labels(N), np.sign(points(N)[:, 1])
S = similarities()
KS = stack(N)


def near(K, k=0):
    return 0.2 * cp.sum_squares(K - S[k])


@pytest.mark.parametrize("size", [3.0, 60.0], ids=["tight", "slack"])
def test_a_trace_may_be_bounded_only(size):
    K = kernel()
    problem = cp.Problem(cp.Minimize(ko.risk(K, Y, ko.hinge()) + near(K)), [cp.trace(K) <= size])
    value, multiplier = optimum(problem), float(problem.constraints[0].dual_value)
    check(problem, value, 1e-4)
    assert (multiplier > 0.01) == (size == 3)
    assert float(problem.constraints[0].dual_value) == pytest.approx(multiplier, abs=1e-2)


@pytest.mark.parametrize("sign", [1, -1])
def test_the_multiplier_of_a_trace_is_that_of_the_exact_method(sign):
    K = kernel()
    size = sign * 2 * cp.trace(K) == sign * 20
    problem = cp.Problem(cp.Minimize(3 * ko.risk(K, Y, ko.hinge()) + near(K) - 1), [size])
    value, multiplier = optimum(problem), float(size.dual_value)
    check(problem, value, 5e-4)
    assert float(size.dual_value) == pytest.approx(multiplier, rel=5e-2)


MU = {
    "simplex": lambda mu: ko.trace(ko.combine(mu, KS)) == N,
    "at most": lambda mu: cp.sum(mu) <= 2,
    "unequal reaches": lambda mu: np.array([1.0, 0.2, 3.0]) @ mu == 1,
}


# The set and the loss do not meet: every loss on one set, every set with one loss.
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_weights_of_kernels(case):
    """l1-MKL is mirror descent with the entropy of vectors."""
    for name in MU if case.name == "hinge" else [list(MU)[CASES.index(case) % len(MU)]]:
        check_weights(case, name)


def check_weights(case, name):
    mu = cp.Variable(3, nonneg=True, name="mu")
    risk = ko.risk(ko.combine(mu, KS), case.y(N), case.loss(1.3))
    problem = cp.Problem(cp.Minimize(risk), [MU[name](mu)])
    solution = check(problem, optimum(problem), 1e-5)
    assert np.array_equal(solution.weights, mu.value)


def combined():
    """Objectives, constraints and gaps: kernels that are sums, several risks, norms, mixed fidelities."""
    mu, tau, K, L = cp.Variable(3, nonneg=True), cp.Variable(1, nonneg=True), kernel("K"), kernel("L")
    sum_of, one, traces = ko.combine(mu, KS), [cp.sum(mu) == 1], [cp.trace(K) == 10, cp.trace(L) <= 12]
    kernels = {
        "ridge": (sum_of + ko.combine(tau, np.eye(N)[None]), [*one, tau[0] <= 0.5]),
        "half": (0.5 * sum_of, one),
        "fixed": (sum_of + 0.1 * np.eye(N), one),
        "first two": (ko.combine(mu[:2] + 0.1, KS[:2]), one),
        "matrix and weights": (sum_of + K, [*one, cp.trace(K) <= 1]),
    }
    found = {name: (ko.risk(total, Y, ko.hinge()), sets, 1e-3) for name, (total, sets) in kernels.items()}
    for second, sets in ((K, traces[:1]), (sum_of, [*traces[:1], *one])):
        other = 0.5 * ko.risk(second, OTHER, ko.squared_hinge())
        found[f"two risks, {len(sets)}"] = (ko.risk(K, Y, ko.hinge()) + other + near(K), sets, 1e-4)
    for norm in (2, 3, np.inf):
        both = ko.risk([K, L], Y, ko.hinge(), norm=norm) + near(K) + near(L, 1)
        found[f"norm {norm}"] = (both, traces, 1e-4)
    mixed = near(K) + 0.4 * cp.norm(K - S[1], "fro") + 0 * cp.norm1(K - S[1])
    found["fidelities"] = (ko.risk(K, Y, ko.hinge()) + mixed, traces[:1], 1e-4)
    return found


@pytest.mark.parametrize("name", combined())
def test_sums_of_kernels_of_risks_and_of_fidelities(name):
    objective, sets, gap = combined()[name]
    problem = cp.Problem(cp.Minimize(objective), sets)
    solution = check(problem, optimum(problem), gap)
    assert len(solution.certificate.alphas) == (2 if "risks" in name else 1)


# ---------------------------------------------------------------------- bounds: Kundu 5.3 and 6.2


@pytest.mark.parametrize("bias", [False, True], ids=["no bias", "bias"])
def test_errors_of_a_minorant_bound_those_of_cancelling_forms(bias):
    """Where K = 11' + small and alpha sums to nearly zero, alpha'K alpha cancels: fractions show it."""
    rng, n = np.random.default_rng(0), 60
    X, y = rng.normal(size=(n, 3)), np.where(np.arange(n) % 2, 1.0, -1.0)
    Ks = np.array([1e6 + np.outer(x, x) for x in X.T])
    mu = cp.Variable(3, nonneg=True)
    kernel = ko.combine(mu, Ks) + 1e6 * np.ones((n, n))
    read = read_composite(
        Structure(cp.Problem(cp.Minimize(ko.risk(kernel, y, ko.hinge(), bias)), [cp.sum(mu) == 1]))
    )
    alpha = y * rng.uniform(0.1, 0.9, size=n)
    alpha = read.trainers[0].project(np.clip(alpha - alpha.mean(), *np.sort([0 * y, y], axis=0)))
    dual = DualPoint([alpha], [np.ones(1)], [], [np.zeros(()), np.zeros(3)])
    minorant = read.minorant(dual)
    (slope,) = minorant.slopes.values()
    a = np.array([Fraction(v) for v in alpha])
    exact = [-(a @ np.vectorize(Fraction, otypes=[object])(K) @ a) / 2 for K in Ks]
    errors = np.array([float(abs(Fraction(g) - e)) for g, e in zip(slope.mid, exact, strict=True)])
    assert 0 < np.linalg.norm(errors) <= np.linalg.norm(slope.rad)
    constant = y @ a - sum(a) ** 2 * 10**6 / 2
    assert abs(Fraction(float(minorant.constant.mid)) - constant) <= minorant.constant.rad


@forms
def test_projection_sharpens_the_bound_of_the_averaged_dual(form):
    """Some 50 times; and the points that come with it are those of a minimum."""
    formulation, dual = learning(form, "squared_frobenius")
    optimum, read = solved(dual()), read_composite(ko.Structure(formulation.problem))
    walk, average, total = Steps([EntropyIterate(piece) for piece in read.pieces]), None, 0.0
    for _ in range(60):
        at = read.evaluate(walk.points, None, 1e-6)
        weight = walk.move(read.affine(at.dual)[1])
        total += weight
        average = at.dual if average is None else average.combined(at.dual, weight / total)
    lower, sharp, nearby = read.sharpened(average, walk.points)
    loose, tight = optimum - bound_over(read.pieces, read.minorant(average)).value, optimum - lower
    assert -1e-6 <= 30 * tight <= loose
    constant, gradients = read.affine(sharp)
    at_points = constant + sum(np.vdot(G, x) for G, x in zip(gradients, nearby, strict=True))
    assert at_points == pytest.approx(lower, rel=1e-9)


@every(
    ("form", "fidelity"),
    [("EMKL", "frobenius"), *product(("ESKL", "REKL"), ("l1", "squared_frobenius"))],
)
def test_minorants_are_below_everywhere(form, fidelity):
    """Any alpha, any gamma, any subgradients; tight where they come from. `affine` has the same midpoints."""
    rng = np.random.default_rng(0)
    read = read_composite(ko.Structure(learning(form, fidelity)[0].problem))

    def anywhere():
        return [piece.project(rng.normal(size=piece.variable.shape)) for piece in read.pieces]

    ats = [read.evaluate(anywhere(), None, 1e-9) for _ in range(3)]
    for _ in range(8):  # the machines of several kernels get better each time
        ats = [read.evaluate(at.points, at, 1e-9) for at in ats]
    for dual in (ats[0].dual.combined(ats[1].dual, 0.3), *(at.dual for at in ats)):
        (constant, gradients), below = read.affine(dual), read.minorant(dual)
        assert below.constant.mid == pytest.approx(constant)
        for piece, G in zip(read.pieces, gradients, strict=True):
            assert below.slopes[piece.variable].mid == pytest.approx(np.ravel(G))
        assert read.least(dual) == pytest.approx(bound_over(read.pieces, below).value, rel=1e-9)
        for at in ats:
            value = constant + sum(np.vdot(G, X) for G, X in zip(gradients, at.points, strict=True))
            assert value <= at.value + 1e-9 * abs(at.value)
            assert dual is not at.dual or value == pytest.approx(at.value, rel=5e-3)


@pytest.mark.parametrize("matrix", [True, False])
@pytest.mark.parametrize("at_most", [True, False])
@pytest.mark.parametrize("size", [0.1, 100.0])
def test_projections_on_pieces(matrix, at_most, size):
    rng = np.random.default_rng(1)
    X = cp.Variable((5, 5), PSD=True) if matrix else cp.Variable(5, nonneg=True)
    r = np.array([1.0, 0.2, 3.0, 1.0, 0.7])
    total = cp.trace(X) if matrix else r @ X
    constraint = total <= size if at_most else total == size
    target = rng.normal(size=X.shape)
    target = target + target.T
    (piece,) = read_pieces(ko.Structure(cp.Problem(cp.Minimize(cp.sum(X)), [constraint])))
    found = piece.project(target)
    solved(cp.Problem(cp.Minimize(cp.sum_squares(X - target)), [constraint]))
    assert found == pytest.approx(X.value, abs=1e-4)
    X.value = found
    assert float(constraint.violation()) <= 1e-12 * size


# ----------------------------------------------------------------------- steps: Kundu 5.1 and 5.4


def test_dual_averaging_is_the_mirror_step():
    """exp(log K - eta G) over its trace, step by step, is exp(- sum of eta G) over its trace."""
    rng = np.random.default_rng(0)
    memory = EntropyIterate(spectrahedron(6, 3.0))
    K = memory.point(0.0)
    assert pytest.approx(np.eye(6) / 2) == K
    for eta in (0.3, 0.1, 0.7):
        G = rng.normal(size=(6, 6))
        G = G + G.T
        K = expm(logm(K) - eta * G)
        K *= 3 / np.trace(K)
        memory.add(G, eta)
        np.testing.assert_allclose(memory.point(1.0), K, atol=1e-12)


def test_a_bounded_trace_has_a_coordinate_of_gradient_zero():
    """The kernel of order n + 1 whose last entry is the slack."""
    G = np.diag([1.0, -2.0, 0.5])
    bounded, whole = (
        EntropyIterate(spectrahedron(3, 2.0, at_most=True)),
        EntropyIterate(spectrahedron(4, 2.0)),
    )
    bounded.add(G, 1.0)
    whole.add(np.diag([1.0, -2.0, 0.5, 0.0]), 1.0)
    np.testing.assert_allclose(bounded.point(0.7), whole.point(0.7)[:3, :3], rtol=1e-14)
    assert bounded.half_range(G) == whole.half_range(np.diag([1.0, -2.0, 0.5, 0.0])) == 1.5
    assert bounded.half_range(np.eye(3)) == 0.5


@pytest.mark.slow
@pytest.mark.parametrize("form", ["ESKL", "EMKL"])
@fidelities
@every("T", [25])
def test_the_bound_of_the_corrected_theorem(form, fidelity, T):
    """min_t f(K_t) - f* <= m tau Lambda sqrt(2 log n / T), Lambda the largest half range of a gradient."""
    formulation, dual = learning(form, fidelity)
    problem, reports = formulation.problem, []
    solution = run(problem, tol=1e-12, step="theorem", max_iterations=T, callback=reports.append)
    read = read_composite(ko.Structure(problem))
    largest = 0.0
    for report in reports:
        at = read.evaluate([report["point"][piece.variable.id] for piece in read.pieces], None, 1e-9)
        spectra = [np.linalg.eigvalsh(G) for G in read.affine(at.dual)[1]]
        largest = max(largest, *(np.ptp(spectrum) / 2 for spectrum in spectra))
    assert len(reports) == T
    tau = len(read.pieces) * similarity.default_trace(S)
    optimum = solved(dual())
    assert solution.upper - optimum <= tau * largest * np.sqrt(2 * np.log(N) / T)


@pytest.mark.slow
@fidelities
def test_the_adaptive_step_is_far_faster(fidelity):
    formulation, dual = learning("ESKL", fidelity)
    adaptive, theorem = (run(formulation.problem, step=s, max_iterations=60) for s in ("adaptive", "theorem"))
    assert 2 * adaptive.gap <= theorem.gap
    assert theorem.lower - 1e-6 <= solved(dual()) <= theorem.upper + 1e-6


# --------------------------------------------------------------- what the paper prints: Kundu 5.2


@pytest.mark.slow
@pytest.mark.parametrize(("fidelity", "reaches"), [("l1", 0.2), ("squared_frobenius", 0.05)])
def test_the_printed_update_stalls(fidelity, reaches):
    """After 300 of the same steps: by how much the best value is above the optimum."""
    formulation, dual = learning("ESKL", fidelity)
    optimum, above = solved(dual()), {}
    for update in ("as-printed", "averaging"):
        options = {"step": "theorem", "update": update, "max_iterations": 300}
        solution = run(formulation.problem, tol=1e-9, **options)
        above[update] = solution.upper - optimum
        half = solution.history[150][2] - optimum
        assert solution.lower <= optimum + 1e-6
        assert update == "averaging" or half <= 1.3 * above[update]  # it does not even move
    assert above["as-printed"] >= 1 and 0 <= above["averaging"] <= reaches


def test_the_printed_update_is_right_for_vectors():
    formulation, _ = learning("REKL", "squared_frobenius")
    options = {"tol": 1e-9, "step": "theorem", "max_iterations": 50}
    printed, right = (run(formulation.problem, update=u, **options) for u in ("as-printed", "averaging"))
    assert [entry[1:] for entry in printed.history] == [entry[1:] for entry in right.history]


def test_the_printed_update_is_right_for_gradients_that_commute_and_are_sorted_alike():
    piece = spectrahedron(4, 1.0)
    printed, right = EntropyIterate(piece, as_printed=True), EntropyIterate(piece)
    Q = np.linalg.qr(np.random.default_rng(0).normal(size=(4, 4)))[0]
    for d in ([-1.0, 0.0, 1.0, 3.0], [0.0, 0.1, 0.2, 0.3], [-2.0, -1.0, 5.0, 6.0]):
        for memory in (printed, right):
            memory.add((Q * d) @ Q.T, 0.2)
        np.testing.assert_allclose(printed.point(1.0), right.point(1.0), atol=1e-13)
    for memory in (printed, right):
        memory.add((Q * [3.0, 1.0, 0.0, -1.0]) @ Q.T, 0.2)  # sorted otherwise: the pairing is arbitrary
    assert np.abs(printed.point(1.0) - right.point(1.0)).max() > 0.1


# ------------------------------------------------------------------------------- how it ends


def test_the_iterations_are_named_with_a_remedy():
    formulation, _ = learning("ESKL", "l1")
    with pytest.warns(ko.ConvergenceWarning, match="ended because 7 iterations were made.*first-order-dual"):
        ko.solve(formulation.problem, METHOD, max_iterations=7)


def test_the_remedy_names_no_method_that_does_not_apply():
    def said(problem):
        with pytest.warns(ko.ConvergenceWarning) as record:
            ko.solve(problem, METHOD, tol=1e-12, max_iterations=2)
        return str(record[-1].message)

    K = kernel()
    logistic = ko.risk(K, np.where(np.arange(K.shape[0]) % 2, 1, -1), ko.logistic())
    text = said(cp.Problem(cp.Minimize(logistic + cp.norm1(cp.vec(K - S[0], order="F"))), [cp.trace(K) == 5]))
    assert "Sums of absolute values" in text and "first-order-dual" not in text
    text = said(cp.Problem(cp.Minimize(logistic + cp.sum_squares(K - S[0])), [cp.trace(K) == 5]))
    assert "absolute values" not in text and "Give kernelopt.solve more max_iterations." in text


def test_one_point_needs_no_step():
    K = kernel(n=1)
    problem = cp.Problem(cp.Minimize(ko.risk(K, [2.0], ko.squared(), bias=False)), [cp.trace(K) == 3])
    solution = ko.solve(problem, METHOD, tol=1e-8)
    assert solution.value == pytest.approx(4 / 2 / (1 + 3), abs=1e-7)  # y^2 / 2 / (1 / C + k)
    assert solution.iterations == 1


def test_without_risks_it_is_a_projection():
    K = kernel()
    problem = cp.Problem(cp.Minimize(cp.sum_squares(K - S[0])), [cp.trace(K) == 5])
    ko.solve(problem, METHOD, tol=1e-8)
    assert K.value == pytest.approx(read_pieces(ko.Structure(problem))[0].project(S[0]), abs=1e-3)


# ----------------------------------------------------------------------- options and obstacles


def obstacles():
    """Objectives, constraints, and what says why they are in the way."""
    K, mu, free = kernel(), cp.Variable(3, nonneg=True, name="mu"), cp.Variable(3, name="free")
    risk, size = ko.risk(K, Y, ko.hinge()), cp.trace(K) == N
    weighted, simplex = ko.risk(ko.combine(mu, KS), Y, ko.hinge()), cp.sum(mu) == 1
    unsigned, part = ko.risk(ko.combine(mu - 0.1, KS), Y, ko.hinge()), ko.risk(K[:5, :5], Y[:5], ko.hinge())
    entries, fit = (K[0, 0] == 1).set_label("corner"), (risk <= 3).set_label("fit")
    blocks = weighted + ko.risk(list(KS), Y, ko.hinge(), norm=1.5)
    price = cp.Parameter(nonneg=True, name="rho")
    no_sign = "free must be a matrix with PSD=True or a vector with nonneg=True"
    below = "the kernel .* must be a PSD variable or a combination with non-negative weights"
    inside = "a risk must enter the objective times a positive number, not inside"
    rows = {
        "free trace": (risk + near(K), [], "no constraint fixes or bounds the trace or the sum of K"),
        "a ball": (weighted, ko.lp_ball(mu, 2), "constraint ball"),
        "an entry": (risk, [size, entries], "constraint corner"),
        "no sign": (cp.sum_squares(free) + weighted, [simplex], no_sign),
        "weights below zero": (unsigned, [simplex], below),
        "a part": (part, [size], "the kernel K.* must be a PSD variable"),
        "a risk squared": (cp.square(risk), [size], inside),
        "a risk bounded": (near(K), [size, fit], "constraint fit"),
        "no subgradient": (
            risk + cp.norm_inf(K - S[0]),
            [size],
            r"no subgradient of norm_inf\(.* in the middle of the set",
        ),
        "a block norm": (blocks, [simplex], "the block norm of a risk must be at least 2, got norm=1.5"),
        "no variable": (ko.risk(KS[0], Y, ko.hinge()), [], "no variable"),
        "no price": (risk + price * near(K), [size], "the parameters rho have no values"),
    }
    found = {name: (cp.Minimize(value), *rest) for name, (value, *rest) in rows.items()}
    return found | {"maximised": (cp.Maximize(-risk), [size], "minimised")}


@pytest.mark.parametrize("kind", obstacles())
def test_what_stands_in_the_way_is_named(kind):
    *parts, said = obstacles()[kind]
    problem = cp.Problem(*parts)
    # Parameters without a value are refused before any method is asked.
    refused = "must have values, got None for rho" if kind == "no price" else f"{METHOD}.*{said}"
    with pytest.raises(ko.KerneloptError, match=refused):
        ko.solve(problem, METHOD)
    assert re.search(said, why_not(METHOD, problem))
    assert all(v.value is None for v in problem.variables())

"""l_p-norm kernel learning: special cases, and other programmes."""

from __future__ import annotations

from itertools import count

import cvxpy as cp
import numpy as np
import pytest
from sklearn.svm import SVC, SVR, OneClassSVM

import kernelopt as ko
from formulations import lanckriet, lp_norm
from formulations.lp_norm.widths import HIGHEST, LOWEST, largest_form
from formulations.machines import scales
from kernelopt import running
from tests.every import every
from tests.formulations.lp_norm.cases import (
    APART,
    EXPONENTS,
    GRAMS,
    KINDS,
    SMOOTH,
    TIGHT,
    TOGETHER,
    N,
    Y,
    alternating,
    blocked,
    factors,
    forms,
    learned,
    loss_of,
    near,
    optimum,
    y_of,
)
from tests.problems import EPS, labels, points, solved, targets


@pytest.mark.parametrize(("C", "tau", "loss"), [
    (1.0, 0.0, ko.hinge(1.0)),
    (np.inf, 0.5, ko.squared_hinge(2.0)),
    (1.0, 0.5, ko.huberized_hinge(1.0, 0.5)),
    (np.inf, 0.0, ko.hard_margin()),
], ids=["1-norm", "2-norm", "general", "hard"])  # fmt: skip
@pytest.mark.parametrize("trace", ["sum", 5.0])
def test_p_1_is_lanckriets_programme(C, tau, loss, trace):
    """On the kernels c K_m / r_m: omega = 2 P and mu_m = c theta_m / r_m."""
    traces = np.trace(GRAMS, axis1=1, axis2=2)
    c = traces.sum() if trace == "sum" else trace
    scales = c / traces
    theirs = optimum(lanckriet.qcqp(GRAMS, Y, C=C, tau=tau, trace=trace))
    ours = optimum(lp_norm.primal(scales[:, None, None] * GRAMS, Y, p=1, loss=loss), TIGHT)
    assert near(2 * ours.upper, theirs.upper, 2e-6)
    assert scales * ours.weights == pytest.approx(theirs.weights, abs=2e-4 * scales.max())


def test_p_1_with_equal_traces_is_the_qcqp_itself():
    grams = GRAMS / np.trace(GRAMS, axis1=1, axis2=2)[:, None, None]
    theirs = optimum(lanckriet.qcqp(grams, Y, C=3.0, trace=1.0))
    ours = optimum(lp_norm.primal(grams, Y, p=1, loss=ko.hinge(3.0)), TIGHT)
    assert near(2 * ours.upper, theirs.upper, 2e-6)
    assert ours.weights == pytest.approx(theirs.weights, abs=1e-4)


def test_p_inf_is_scikit_learns_machine_of_the_sum_kernel():
    K = GRAMS.sum(0)
    theirs = SVC(kernel="precomputed", C=1.0, tol=1e-10).fit(K, Y)
    a = np.zeros(N)
    a[theirs.support_] = theirs.dual_coef_[0]
    ours = learned("hinge", np.inf)
    assert near(Y @ a - a @ K @ a / 2, ours.upper)
    assert ours.decision_function() == pytest.approx(theirs.decision_function(K), abs=1e-4)
    t = targets(N)
    theirs = SVR(kernel="precomputed", C=1.0, epsilon=EPS, tol=1e-10).fit(K, t)
    assert learned("epsilon_insensitive", np.inf).decision_function() == pytest.approx(
        theirs.predict(K), abs=1e-4
    )


@pytest.mark.parametrize("nu", [0.25, 0.6])
def test_p_inf_is_scikit_learns_one_class_machine(nu):
    """Scikit-learn's dual variables sum to nu n, and so its scores are nu n times ours."""
    K = GRAMS.sum(0)
    theirs = OneClassSVM(kernel="precomputed", nu=nu, tol=1e-10).fit(K)
    ours = optimum(lp_norm.one_class(GRAMS, p=np.inf, nu=nu), 1e-6)
    assert nu * N * ours.decision_function() == pytest.approx(theirs.decision_function(K), abs=1e-3)
    assert -nu * N * ours.intercept == pytest.approx(theirs.offset_[0], abs=1e-3)


def test_a_one_class_call_that_was_ended_early_has_a_kernel_and_no_machine(monkeypatch):
    """Nothing was solved: the known point is f = 0 with equal weights, whose objective is zero."""
    readings = count(1)
    monkeypatch.setattr(running, "clock", lambda: 1e-3 * next(readings))  # the same end on any machine
    X = np.random.default_rng(0).normal(size=(300, 3))
    squares = ((X[:, None] - X[None]) ** 2).sum(2)
    grams = np.array([np.exp(-squares / width) for width in (0.3, 1, 3)])
    formulation = lp_norm.one_class(grams, p=2, nu=0.2)
    with pytest.warns(ko.ConvergenceWarning, match="time limit of 0.05 s"):
        solution = formulation.solve(time_limit=0.05)
    assert solution.status == "inaccurate" and solution.certificate.feasible
    assert solution.lower <= solution.upper == solution.value == 0
    assert solution.weights == pytest.approx(np.full(3, 3**-0.5), rel=1e-12)
    assert solution.kernel == pytest.approx(grams.sum(0) / np.sqrt(3), rel=1e-12)
    assert solution.alpha.size == 0 and np.isnan(solution.intercept)
    with pytest.raises(ko.InputError, match="no machine was learned"):
        solution.decision_function(grams[:, :, :2])


def test_a_one_class_machine_of_an_earlier_solve_is_not_taken_for_that_of_an_ended_call():
    formulation = lp_norm.one_class(GRAMS, p=2, nu=0.5)
    assert optimum(formulation, 1e-6).alpha.size == N
    with pytest.warns(ko.ConvergenceWarning, match="time limit"):
        assert formulation.solve(time_limit=1e-6).alpha.size == 0
    assert optimum(formulation, 1e-6).alpha.sum() == pytest.approx(1, abs=1e-6)


@every(
    ("kind", "exponents"),
    [("hinge", EXPONENTS), ("squared", EXPONENTS), *((kind, (1.0, 4 / 3, np.inf)) for kind in KINDS)],
)
def test_the_value_falls_with_p_and_is_continuous(kind, exponents):
    """The unit balls grow with p; the ball of p is inside M^(1 - 1/p) times that of 1, and so on."""
    values = [learned(kind, p).upper for p in exponents]
    assert (np.diff(values) <= 1e-7 * max(1.0, values[0])).all()
    M = len(GRAMS)
    for p, value in zip(exponents, values, strict=True):
        assert value >= values[0] / M ** (1 - 1 / p) - 1e-7  # p -> 1: Lanckriet
        assert value <= values[-1] * M ** (1 / p) + 1e-7 * values[-1]  # p -> inf: the sum kernel


def test_close_exponents_have_close_values():
    """Exact power cones: a rational approximation gives up below p = 1.0005 and above p = 1024."""
    values = {p: solved(lp_norm.primal(GRAMS, Y, p=p).problem) for p in (1.0001, 1.005, 2000.0)}
    assert values[1.0001] == pytest.approx(learned("hinge", 1.0).upper, rel=2e-4)
    assert values[2000.0] == pytest.approx(learned("hinge", np.inf).upper, rel=2e-3)
    for p in (1.005, 2000.0):  # cvxpy cannot evaluate the q-norm of the dual at p = 1.0001
        assert near(solved(lp_norm.primal(GRAMS, Y, p=p).dual()), values[p])


@every(("kind", "p"), [*alternating(SMOOTH, (1.0, 4 / 3, 3.0, np.inf)), *((kind, 4 / 3) for kind in SMOOTH)])
def test_proposition_7_has_one_machine(kind, p):
    """The weights of the block-norm machine are theta, and the predictions are the same."""
    found, block = learned(kind, p), blocked(kind, p)
    assert block.decision_function() == pytest.approx(found.decision_function(), abs=1e-4)
    assert block.weights == pytest.approx(found.weights, abs=1e-3)


def test_the_sum_kernel_is_r_2_and_p_inf():
    for squared in (True, False):
        block = optimum(lp_norm.block_norm(GRAMS, Y, r=2, squared=squared), TIGHT)
        assert near(block.upper, learned("hinge", np.inf).upper, 1e-8)
        assert block.weights == pytest.approx(np.ones(3))


@every(("kind", "r"), [
    *(("hinge", r) for r in (2.5, 4.0, np.inf)),
    *alternating(("squared", "epsilon_insensitive", "one_class"), (2.5, 4.0, np.inf)),
])  # fmt: skip
def test_r_above_2_is_a_maximum_over_weights(kind, r):
    """Kloft 3.3: jointly concave in (alpha, theta), p = r / (r - 2); omega = 1 / theta."""
    y, loss = y_of(kind), loss_of(kind)
    machine = lp_norm.block_norm(GRAMS, y, r=r, loss=loss)
    found = optimum(machine)
    p = 1.0 if np.isinf(r) else r / (r - 2)
    alpha, theta, u = cp.Variable(N), cp.Variable(3, nonneg=True), cp.Variable(3)
    gain, domain = loss.dual_expression(alpha, loss.targets(y, N))
    domain = [*domain, cp.sum(alpha) == 0] if loss.default_bias else domain
    for m, L in enumerate(factors()):  # s_m <= u_m theta_m
        domain.append(cp.SOC(u[m] + theta[m], cp.hstack([2 * L.T @ alpha, u[m] - theta[m]])))
    whole = solved(cp.Problem(cp.Maximize(gain - cp.sum(u) / 2), [*domain, *ko.lp_ball(theta, p)]))
    assert near(whole, found.lower) and near(solved(machine.dual()), found.lower)
    assert near(float(machine.problem.value), found.lower)
    assert found.weights[0] == pytest.approx(1 / theta.value[0], rel=2e-3)  # of the kernel of full rank


def test_the_identity_is_p_2_and_a_diagonal_rescales_the_kernels():
    isotropic = learned("hinge", 2.0)
    found = optimum(lp_norm.non_isotropic(GRAMS, Y, E=np.eye(3)))
    assert near(found.upper, isotropic.upper) and found.weights == pytest.approx(isotropic.weights, abs=1e-3)
    d = np.array([0.5, 1.0, 3.0])
    stretched = optimum(lp_norm.non_isotropic(GRAMS / d[:, None, None], Y, E=np.diag(d**-2.0)))
    assert near(stretched.upper, isotropic.upper)
    assert stretched.weights == pytest.approx(d * isotropic.weights, abs=3e-3)


def printed_dual(alpha, E, y, loss):
    s = forms(alpha)
    return loss.dual_value(alpha, y) - np.sqrt(s @ np.linalg.solve(E, s)) / 2


@pytest.mark.parametrize("kind", SMOOTH)
def test_the_printed_dual_of_the_ellipsoid_holds_for_m_matrices_alone(kind):
    """Kloft 4.1: with positive entries of E it is below the optimum at the only dual solution."""
    y, loss = y_of(kind), loss_of(kind)
    found = optimum(lp_norm.non_isotropic(GRAMS, y, E=TOGETHER, loss=loss))
    assert near(printed_dual(found.alpha, TOGETHER, y, loss), found.upper, 1e-5)
    found = optimum(lp_norm.non_isotropic(GRAMS, y, E=APART, loss=loss))
    assert printed_dual(found.alpha, APART, y, loss) < found.lower - 1e-3


@pytest.mark.parametrize("E", [APART, TOGETHER], ids=["apart", "together"])
def test_the_weights_of_an_ellipsoid_follow_from_its_dual(E):
    """theta = F v / sqrt(v'Fv) >= 0, and theta_m (v_m - s_m) = 0."""
    machine = lp_norm.non_isotropic(GRAMS, Y, E=E, loss=ko.squared_hinge(1.0))
    found, dual = optimum(machine), machine.dual()
    solved(dual)
    variables = {v.name(): v.value for v in dual.variables()}
    v, s = variables["v"], forms(variables["alpha"])
    image = np.linalg.solve(E, v)
    assert image / np.sqrt(v @ image) == pytest.approx(found.weights, abs=2e-3)
    assert (v >= s - 1e-6).all() and found.weights * (v - s) == pytest.approx(np.zeros(3), abs=1e-3)


def test_a_machine_that_is_zero_has_weights_one():
    """Every weights give it; with these its kernel is the sum of the kernels, and predicts like it."""
    risk = ko.risk(list(GRAMS), np.zeros(N), ko.squared(), norm=3)
    assert not risk.oracle().alpha.any() and scales(risk).tolist() == [1.0] * len(GRAMS)


WIDE, BOUNDS = 30, (0.2, 20.0)
PLANE, SIGNS = points(WIDE), labels(WIDE)
FAMILIES = {"gaussian": ko.gaussian, "laplacian": ko.laplacian}


def test_the_bounds_of_the_second_derivative():
    z = np.linspace(0, 50, 2_000_001)
    curve = z * (z - 1) * np.exp(-z)
    assert HIGHEST - 1e-4 <= curve.max() <= HIGHEST and LOWEST - 2e-4 <= -curve.min() <= LOWEST


@every("family", FAMILIES)
def test_the_largest_form_is_below_its_bound_and_near_it(family):
    grid = np.geomspace(*BOUNDS, 201)
    for seed in range(4):
        rng = np.random.default_rng(seed)
        alpha = rng.normal(size=WIDE) * (rng.uniform(size=WIDE) < (0.3 if seed % 2 else 1.0))
        alpha -= alpha.mean() * (seed < 2)
        forms = np.array([alpha @ FAMILIES[family](w)(PLANE) @ alpha for w in grid])
        slack = 1e-3 * forms.max()
        bound, (best, *_) = largest_form(PLANE, alpha, family == "gaussian", *BOUNDS, slack)
        value = alpha @ FAMILIES[family](best)(PLANE) @ alpha
        assert forms.max() <= bound <= value + 1.01 * slack
        assert value <= forms.max() * (1 + 1e-3)


@every(
    "family, loss, y",
    [
        ("gaussian", ko.hinge(1.0), SIGNS),
        ("laplacian", ko.logistic(1.0), SIGNS),
        ("gaussian", ko.epsilon_insensitive(1.0, 0.1), targets(WIDE)),
    ],
)
def test_no_grid_is_better_than_the_lower_bound(family, loss, y):
    found = lp_norm.continuous_width(PLANE, y, bounds=BOUNDS, family=FAMILIES[family], loss=loss)
    assert found.gap <= 1e-3 and found.lower <= found.upper
    kernels = [FAMILIES[family](w) for w in np.geomspace(*BOUNDS, 60)]
    grid = lp_norm.primal(ko.Grams.from_kernels(kernels, PLANE), y, p=1, loss=loss).solve(tol=1e-4)
    assert found.lower <= grid.upper and found.upper <= grid.upper * (1 + 1e-3)
    assert ((found.widths >= BOUNDS[0] * (1 - 1e-12)) & (found.widths <= BOUNDS[1] * (1 + 1e-12))).all()
    assert found.weights.sum() == pytest.approx(1.0) and (np.diff(found.widths) > 0).all()


def test_the_chosen_widths_alone_have_the_value():
    found = lp_norm.continuous_width(PLANE, SIGNS, bounds=BOUNDS)
    grams = ko.Grams.from_kernels([ko.gaussian(w) for w in found.widths], PLANE)
    again = lp_norm.primal(grams, SIGNS, p=1).solve("exact")
    assert again.lower <= found.upper * (1 + 1e-3) and found.lower <= again.upper


def test_too_few_rounds_have_honest_bounds():
    with pytest.warns(ko.ConvergenceWarning, match="over all widths"):
        early = lp_norm.continuous_width(PLANE, SIGNS, bounds=BOUNDS, tol=1e-7, max_rounds=1, method="exact")
    late = lp_norm.continuous_width(PLANE, SIGNS, bounds=BOUNDS)
    assert early.lower <= late.upper and late.lower <= early.upper and early.gap > 1e-7
    assert "ContinuousWidth" in repr(early) and early.rounds == 1


@every(
    "bad, words",
    [
        ({"bounds": (2, 1)}, "low < high"),
        ({"bounds": 1.0}, "bounds"),
        ({"bounds": (0, 1)}, "bounds"),
        ({"bounds": (1, 2), "family": ko.linear}, "family"),
        ({"bounds": (1, 2), "tol": 0}, "tol"),
        ({"bounds": (1, 2), "max_rounds": 0}, "max_rounds"),
    ],
)
def test_wrong_arguments(bad, words):
    with pytest.raises(ko.InputError, match=words):
        lp_norm.continuous_width(PLANE, SIGNS, **bad)

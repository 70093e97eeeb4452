"""The dual of a problem: its value, its text, the way back, and the identities of duality."""

from __future__ import annotations

import re
from contextlib import nullcontext, suppress
from functools import cache
from itertools import pairwise
from pathlib import Path

import cvxpy as cp
import numpy as np
import pytest

import kernelopt as ko
from formulations import lanckriet, lp_norm
from kernelopt.duality.solving import optimize as solve_dual
from tests.collected import problems_built
from tests.duality.generic import ENTRIES, PROBLEMS, RISKS, A, Ks, b, least, most, n, named, pair, y
from tests.every import every
from tests.pages import printed_by, python_blocks
from tests.problems import CASES, sample_weights, solved

ROOT = Path(__file__).parents[2]
TOLERANCE = 1e-6


def close(value, other, tolerance=TOLERANCE):
    return abs(value - other) <= tolerance * max(1.0, abs(other))


@cache
def example(name):
    """A formulation of the catalogue, its dual by hand and the dual that is found, both solved."""
    formulation = ENTRIES[name].example(np.random.default_rng(0))
    by_hand, found = formulation.dual(), ko.dualize(formulation.problem)
    return formulation, by_hand, solved(by_hand), found, optimum(found)


def optimum(dual):
    """The value of a dual, solved until its gap is small."""
    if dual.solution is None:
        dual.check()
    return float(dual.solution.opt_val)


def recovered(dual):
    """Whether the primal point that a dual gives is optimal, and its multipliers are."""
    found = dual.check()
    assert found.gap <= 1e-4 and found.feasibility <= 1e-5 and found.stationarity <= 1e-5
    assert found.complementarity <= 1e-3 * max(1.0, abs(found.dual))


# ------------------------------------------------------------------------------------- catalogue


@every("name", ENTRIES)
def test_the_dual_of_a_formulation_has_the_value_of_the_one_by_hand(name):
    _, _, value, found, own = example(name)
    assert close(own, value)
    assert isinstance(found, ko.Dual) and isinstance(found, cp.Problem) and found.is_dcp()


@every("name", ENTRIES)
def test_the_point_of_the_dual_gives_the_primal(name):
    formulation, _, _, found, _ = example(name)
    recovered(found)
    point = found.recover_primal(assign=False)
    assert set(point) == set(ko.Structure(formulation.problem).user_variables)


@every("name", ["lp_norm.primal", "lanckriet.sdp", "similarity.kernel_per_similarity"])
def test_the_point_is_certified(name):
    formulation, _, _, found, own = example(name)
    assert close(ko.certify(formulation.problem, found.recover_primal(assign=False)).upper, own, 1e-4)


def hand_alpha(name, by_hand, labels):
    """The values of the variables by hand, the unsigned alpha of a margin with its labels."""
    values = {v.name(): (v, np.asarray(v.value)) for v in by_hand.variables()}
    if "alpha" in values and values["alpha"][0].is_nonneg():
        values["alpha"] = (values["alpha"][0], labels * values["alpha"][1])
    return {key: value for key, (_, value) in values.items()}


@every("name", ENTRIES)
def test_variables_of_one_name_have_values_that_are_optimal_for_both(name):
    """Optimal points need not be unique: those by hand are put into the dual that was found."""
    formulation, by_hand, value, found, _ = example(name)
    targets = formulation.risks[0].learner.y if formulation.risks else None
    hand = hand_alpha(name, by_hand, targets)
    shared = [v for v in found.variables() if v.name() in hand]
    if name.startswith(("lp_norm.p", "lp_norm.t", "similarity", "lanckriet.sdp")):
        assert shared
    at_hand = [cp.abs(v - hand[v.name()]) <= 1e-6 for v in shared]
    if at_hand:
        fixed = cp.Problem(found.objective, [*found.constraints, *at_hand])
        assert close(solved(fixed), value, 1e-4)


def test_another_problem_with_the_variables_of_a_dual_leaves_its_answer_alone():
    _, _, _, dual, _ = example("lanckriet.sdp")
    before = dual.check()
    first = dual.variables()[0]
    cp.Problem(cp.Maximize(0), [*dual.constraints, first == 0.5 * first.value]).solve(solver=cp.CLARABEL)
    assert dual.check() == before


def test_without_a_multiplier_the_dual_is_not_optimal():
    """D(lambda) = -1 / (4 lambda) is below the optimum 0; a violation of 1e-8 changes the value by 1e-4."""
    x = cp.Variable(name="x")
    dual = ko.dualize(cp.Problem(cp.Minimize(x), [cp.square(x) <= 0]))
    with pytest.warns(ko.ConvergenceWarning, match="product .* of a slack and its multiplier"):
        value = dual.solve()
    assert value < 0 and dual.status == cp.OPTIMAL_INACCURATE


# -------------------------------------------------------------------------------------- generic


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:Reading from a sparse CVXPY expression")
@every("name", [*PROBLEMS, *RISKS])
def test_the_dual_of_any_convex_problem_has_its_value(name):
    problem, dual = pair(name)
    recovered(dual)
    value = optimum(dual)
    dual.recover_primal()
    at_point = float(problem.objective.value)
    assert close(value, at_point, 1e-4)
    if name != "power cone of many":
        assert close(value, float(solved(problem)) if name != "geometric mean" else at_point, TOLERANCE)


UNIQUE = ["least squares", "quadratic form", "norm ball", "second-order cone", "columns of cones", "NSD",
          "entropy", "exponential cone", "power cone", "spectrahedron", "linear", "bounded",
          "squared", "PSD variable", "block norm, bounded"]  # fmt: skip


@pytest.mark.filterwarnings("ignore::cvxpy.utilities.warn.CvxpyDeprecationWarning")
def test_a_constraint_of_the_class_nonpos():
    x = cp.Variable(2, name="x")
    below = cp.constraints.NonPos(1 - x).set_label("below")
    dual = ko.dualize(cp.Problem(cp.Minimize(x[0] + 3 * x[1]), [below]))
    assert close(optimum(dual), 4.0) and dual.dual_values()["below"] == pytest.approx([1.0, 3.0], abs=1e-6)
    assert repr(dual.dual_values()).startswith("{'below': array([")


@every(("shift", "status"), [(0.0, "optimal"), (1e-3, "optimal_inaccurate")])
def test_the_status_of_a_dual_is_that_of_its_conditions(monkeypatch, shift, status):
    def inaccurate(problem, error):
        solve_dual(problem, lambda: 0.0)
        for constraint, value in problem.solution.dual_vars.items():  # the primal point
            problem.solution.dual_vars[constraint] = value + shift
        problem.solution.status = cp.OPTIMAL_INACCURATE
        problem.unpack(problem.solution)
        error()

    monkeypatch.setattr("kernelopt.duality.dual.optimize", inaccurate)
    x = cp.Variable(2, name="x")
    dual = ko.dualize(cp.Problem(cp.Minimize(cp.sum_squares(x)), [cp.sum(x) == 1, x[0] >= 1]))
    with nullcontext() if status == "optimal" else pytest.warns(ko.ConvergenceWarning, match="gap"):
        dual.solve()
    assert dual.status == status


@every("name", UNIQUE)
def test_multipliers_have_the_signs_of_cvxpy(name):
    problem, dual = pair(name)
    solved(problem)
    found = dual.dual_values()
    for constraint in problem.constraints:
        values = found[constraint] if isinstance(found[constraint], list) else [found[constraint]]
        for value, variable in zip(values, constraint.dual_variables, strict=True):
            assert np.ravel(value) == pytest.approx(np.ravel(variable.value), abs=2e-3, rel=2e-3)
        if constraint.label:
            assert found[constraint.label] is found[constraint]
    with pytest.raises(KeyError):
        found["no such label"]


@every(
    "name", [*list(PROBLEMS)[:12], "entropy", "p-norm", "bounded", "squared", "PSD variable", "free signs"]
)
def test_the_dual_of_the_dual_has_the_value_of_the_primal(name):
    _, dual = pair(name)
    assert close(optimum(ko.dualize(dual)), optimum(dual), 1e-5)


@pytest.mark.slow
@every("name", ENTRIES)
def test_the_dual_of_the_dual_of_a_formulation(name):
    _, _, value, found, _ = example(name)
    assert close(optimum(ko.dualize(found)), value)


# ------------------------------------------------------------------------------------------ text


def text(problem):
    return str(ko.dualize(problem))


@every("name", [*PROBLEMS, *RISKS])
def test_the_text_fits_a_screen_and_holds_no_data(name):
    _, dual = pair(name)
    printed = str(dual)
    words = re.sub(r"m = 1, \.\.\., \d", "", printed)
    assert "True" not in words and "Promote" not in words and "..." not in words
    for name, meaning in dual.meaning.items():
        stem = re.sub(r"\d+$", "", name)
        assert meaning and (
            name in printed or re.search(rf"{re.escape(stem)}1, \.\.\., {re.escape(stem)}", printed)
        )
    assert all(constraint.label for constraint in dual.constraints)


# ------------------------------------------------------------------------------------ parameters


def learned(loss, weight=1.0, radius=1.0, price=None):
    mu = cp.Variable(3, nonneg=True, name="mu")
    risk = weight * ko.risk(ko.combine(mu, Ks), y, loss)
    return cp.Problem(cp.Minimize(risk + (0 if price is None else price(mu))), ko.lp_ball(mu, 3, radius))


def positive(name, value):
    return cp.Parameter(pos=True, name=name, value=value)


C, level, R = positive("C", 1.3), positive("level", 0.3), positive("R", 2.0)
p = cp.Parameter(4, name="p", value=np.arange(1.0, 5))
top = cp.Parameter(2, name="top", value=[1.0, 2.0])
v, w = cp.Variable(4, name="v"), cp.Variable(2, bounds=[0, top], name="w")
fit = cp.sum_squares(A @ v - b) / 2 + cp.sum_squares(v) / 5
PARAMETERS = {  # a problem, values of its parameters, and words of its dual
    **{
        f"C of {loss.__name__}": (lambda loss=loss, *more: learned(loss(C, *more)), {C: (0.7, 2.0)}, "C")
        for loss in (ko.hinge, ko.squared_hinge, ko.logistic)
    },
    "C of huberized_hinge": (lambda: learned(ko.huberized_hinge(C, 0.4)), {C: (0.7, 2.0)}, "C"),
    "any place": (
        lambda: least(cp.norm2(v - p) + level * cp.norm1(v), named(p @ v >= 1, "row"), v <= p),
        {level: (0.3, 1.7), p: (np.arange(1.0, 5), np.array([2.0, 1, 1, 3]))}, "level",
    ),
    "weight of a risk": (
        lambda: learned(ko.hinge(1.0), level, price=cp.sum), {level: (0.5, 2.0)}, "level",
    ),
    "price of a norm": (lambda: least(fit + level * cp.norm1(v)), {level: (0.3, 1.5)}, "|u|_inf <= level"),
    "price of reciprocals": (
        lambda: learned(ko.hinge(1.0), price=lambda mu: level * cp.sum(cp.inv_pos(1 - mu / 2))),
        {level: (0.3, 1.5)}, "2 level sum(sqrt(u))",
    ),
    "bounds": (lambda: most(cp.sum(w), w[0] + 2 * w[1] <= 4), {top: ([1.0, 2.0], [3.0, 0.5])}, "top"),
    "radius": (lambda: learned(ko.hinge(1.0), radius=R), {R: (2.0,)}, "1/2 R |(alpha' K_m alpha)_m|_(3/2)"),
}  # fmt: skip


@every("name", PARAMETERS)
def test_a_dual_keeps_its_parameters(name):
    make, values, words = PARAMETERS[name]
    problem = make()
    dual = ko.dualize(problem)
    assert dual.is_dpp() and words in str(dual)
    for given in zip(*values.values(), strict=True):
        for parameter, value in zip(values, given, strict=True):
            parameter.value = value
        assert close(solved(dual), solved(problem), 1e-5 if C in values else 1e-6)


@pytest.mark.filterwarnings("ignore:The problem includes expressions")
@every("name", ["log_sum_exp", "quad_over_lin", "norm"])
def test_the_rows_of_a_matrix_may_have_parameters_as_weights(name):
    """Also a weight of zero, at which the cost of an atom is that of its domain."""
    M, price = cp.Variable((2, 4), name="M"), cp.Parameter(2, nonneg=True, name="price")
    rows = {
        "log_sum_exp": lambda: cp.log_sum_exp(M, axis=1),
        "quad_over_lin": lambda: cp.quad_over_lin(M - A[:2], 1, axis=1),
        "norm": lambda: cp.norm(M - A[:2], 2, axis=1),
    }[name]()
    problem = cp.Problem(cp.Minimize(price @ rows + cp.sum_squares(M - A[2:4])))
    dual = ko.dualize(problem)
    for price.value in (np.array([1.0, 2.0]), np.array([0.0, 3.0])):
        assert close(solved(dual), solved(problem), 1e-6)
        fixed = cp.Problem(cp.Minimize(price.value @ rows + cp.sum_squares(M - A[2:4])))
        assert close(solved(ko.dualize(fixed)), solved(problem), 1e-6)


@pytest.mark.filterwarnings("ignore:You are solving a parameterized problem that is not DPP")
def test_where_a_problem_is_not_dpp_parameters_take_their_values():
    x, level = cp.Variable(4, name="x"), cp.Parameter(pos=True, name="level", value=0.3)
    problem = cp.Problem(cp.Minimize(level * level * cp.norm2(x) + cp.norm1(x - 1)))
    dual = ko.dualize(problem)
    assert dual.parameters() == [] and close(optimum(dual), solved(problem))


# ------------------------------------------------------------------------------------ identities


@every("case", CASES, ids=lambda case: case.name)
def test_the_dual_is_that_of_the_textbook(case):
    """Against l(a) and its domain as the papers print them, at fixed kernels."""
    C, target = sample_weights(n), case.y(n)
    K = Ks[0] + 0.3 * np.eye(n)
    dual = ko.dualize(cp.Problem(cp.Minimize(ko.risk(K, target, case.loss(C)))))
    a = cp.Variable(n)
    gain, domain = case.dual(a, target, C)
    bias = [cp.sum(a) == 0] if case.loss(C).default_bias else []
    L = np.linalg.cholesky(K)
    assert close(
        solved(dual), solved(cp.Problem(cp.Maximize(gain - cp.sum_squares(L.T @ a) / 2), domain + bias))
    )


@every("case", CASES, ids=lambda case: case.name)
def test_the_perspective_of_the_conjugate_is_that_of_the_loss(case):
    """A risk inside a square has a multiplier for its weight: 1/2 risk^2, with its dual l(a)^2 / 2 scaled."""
    if case.name == "hard_margin":  # the same for every weight: its square is infinite or that of a norm
        return
    K, target, C = Ks[0] + 0.3 * np.eye(n), case.y(n), sample_weights(n)
    mu = cp.Variable(nonneg=True, name="mu")
    risk = ko.risk(mu * K, target, case.loss(C))
    problem = cp.Problem(cp.Minimize(cp.square(risk) / 2), [mu <= 1])
    fixed = ko.dualize(cp.Problem(cp.Minimize(ko.risk(K, target, case.loss(C)))))
    assert close(solved(ko.dualize(problem)), solved(fixed) ** 2 / 2, 1e-5)


def value_at(p, grams=Ks, C=1.0, loss=ko.hinge):
    theta = cp.Variable(len(grams), nonneg=True)
    risk = ko.risk(ko.combine(theta, grams), y, loss(C))
    return solved(ko.dualize(cp.Problem(cp.Minimize(risk), ko.lp_ball(theta, p))))


def test_the_value_does_not_increase_in_p():
    values = [value_at(p) for p in (1, 4 / 3, 2, 3, np.inf)]
    assert all(a >= b - 1e-6 for a, b in pairwise(values))


def test_scaling_the_kernel_is_scaling_the_loss():
    assert close(value_at(2, 3 * Ks, 0.5), value_at(2, Ks, 1.5) / 3)


def test_a_constant_kernel_changes_nothing_where_there_is_an_intercept():
    assert close(value_at(2, np.array([K + 5 for K in Ks[:1]])), value_at(2, Ks[:1]))


def test_p_one_with_equal_traces_is_the_qcqp():
    grams = np.array([K / np.trace(K) for K in Ks])
    assert close(
        2 * value_at(1, grams), solved(ko.dualize(lanckriet.soft_margin(grams, y, trace=1.0).problem))
    )


def test_weak_duality_at_any_feasible_point():
    problem, dual = pair("bounded")
    _ = optimum(dual)
    mu = problem.variables()[0]
    for factor in (1.0, 2.0, 5.0):
        mu.value = factor * dual.recover_primal(assign=False)[mu]
        assert float(problem.objective.value) >= optimum(dual) - 1e-6 or factor < 1


def test_without_a_strictly_feasible_point_nothing_is_called_optimal():
    """min x over [[0, x, 0], [x, z, 0], [0, 0, x + 1]] >> 0 is 0, and its dual is -1."""
    x, z = cp.Variable(name="x"), cp.Variable(name="z")
    matrix = cp.bmat([[0, x, 0], [x, z, 0], [0, 0, x + 1]])
    dual = ko.dualize(cp.Problem(cp.Minimize(x), [(matrix >> 0).set_label("cone")]))
    (Y,) = dual.variables()
    Y.value = np.diag([0.0, 0, 1])  # the only feasible values have Y_33 = 1 - 2 Y_12 and Y_22 = 0
    assert all(c.value() for c in dual.constraints) and float(dual.objective.value) == pytest.approx(-1)
    with suppress(ko.KerneloptError):
        with pytest.warns(ko.ConvergenceWarning, match="gap"):
            found = dual.check()
        assert dual.status == "optimal_inaccurate"
        assert max(found.gap, found.feasibility, found.stationarity, found.complementarity) > 1e-3


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::kernelopt.ConvergenceWarning")
def test_a_problem_with_a_gap_of_duality_is_never_called_optimal():
    x, z = cp.Variable(name="x"), cp.Variable(name="z")
    matrix = cp.bmat([[0, x, 0], [x, z, 0], [0, 0, x + 1]])
    problem = cp.Problem(cp.Minimize(x), [matrix >> 0])
    for one in (problem, ko.dualize(problem)):
        with suppress(ko.SolverError):  # no point within the time is no claim either
            assert ko.solve(one, time_limit=5).status != "optimal"
    found = ko.certify(problem, {x: 0.0, z: 1.0})
    assert found.upper == 0 and found.lower <= -1  # the dual proves no more than its own value


# -------------------------------------------------------------------------------------- the docs


def test_the_page_on_duality_prints_what_it_says():
    """The problems of the other pages and of the examples are dualised where these are run."""
    namespace = {}
    blocks = python_blocks((ROOT / "docs" / "duality.md").read_text(encoding="utf-8"))
    assert len(blocks) == 8
    with problems_built("duality.md") as built:
        for source, said in blocks:
            assert printed_by(source, "duality.md", namespace) == (said or "")
    assert len(built.problems) == 3 and not built.check_duals()


# ---------------------------------------------------------------------------------------- errors


def refused(problem, *words):
    with pytest.raises(ko.errors.DualizationError) as caught:
        ko.dualize(problem)
    for word in words:
        assert word in str(caught.value)
    assert "got" in str(caught.value)


def of(name, f, *shape, **attributes):
    return f(cp.Variable(*shape, name=name, **attributes))


REFUSED = {  # a problem, and words of the message
    "integers": (
        lambda: of("count", lambda x: least(cp.sum(x), x >= 1), 2, integer=True), "count", "integer", "Relax",
    ),
    "booleans": (lambda: of("choice", lambda x: least(x), boolean=True), "choice", "boolean"),
    "complex numbers": (lambda: of("w", lambda x: least(cp.norm(x)), 2, complex=True), "complex", "w"),
    "a concave objective": (lambda: of("x", lambda x: least(cp.sum(cp.sqrt(x))), 2), "convex", "Power"),
    "a concave bound": (lambda: of("x", lambda x: least(cp.norm(x), cp.sqrt(cp.norm(x)) <= 1), 2), "norm"),
    "a risk that is maximised": (
        lambda: of("x", lambda x: most(ko.risk(ko.combine(x, Ks), y, ko.hinge(1.0))), 3, nonneg=True), "Risk",
    ),
    "a cone without a known dual": (
        lambda: of("f", lambda x: least(x, cp.constraints.FiniteSet(x, [1, 2]))), "FiniteSet",
    ),
}  # fmt: skip


@every("name", REFUSED)
def test_what_has_no_dual_is_refused_by_name(name):
    make, *words = REFUSED[name]
    refused(make(), *words)


@pytest.mark.filterwarnings("ignore:You are solving a parameterized problem that is not DPP")
def test_parameters_without_values_are_refused_only_where_they_are_needed():
    x, p = cp.Variable(2, name="x"), cp.Parameter(pos=True, name="p")
    refused(cp.Problem(cp.Minimize(cp.norm(x - p * p))), "p", "value")
    dual = ko.dualize(cp.Problem(cp.Minimize(cp.sum_squares(x)), [cp.sum(x) >= p]))
    p.value = 2.0
    assert close(solved(dual), 2.0)


def test_a_formulation_is_refused_with_the_remedy():
    with pytest.raises(ko.InputError, match=r"\.problem"):
        ko.dualize(lp_norm.primal(Ks, y))


def test_a_dual_made_by_hand_has_no_primal():
    with pytest.raises(ko.InputError, match="dualize"):
        ko.Dual(cp.Maximize(0), []).primal  # noqa: B018
    assert "maximize" in str(ko.Dual(cp.Maximize(0), []))


def test_a_dual_is_solved_by_any_verb():
    """`ko.solve` certifies the dual as any other problem, and the way back starts from its answer."""
    mu = cp.Variable(3, nonneg=True, name="mu")
    dual = ko.dualize(
        cp.Problem(cp.Minimize(ko.risk(ko.combine(mu, Ks), y, ko.hinge(1.0))), ko.lp_ball(mu, 2))
    )
    solution = ko.solve(dual)
    assert solution.gap <= 1e-5 and dual.check().gap <= 1e-4


def test_the_users_problem_is_left_alone():
    mu = cp.Variable(3, nonneg=True, name="mu")
    problem = cp.Problem(cp.Minimize(ko.risk(ko.combine(mu, Ks), y, ko.hinge(1.0))), ko.lp_ball(mu, 2))
    dual = ko.dualize(problem)
    dual.check()
    dual.dual_values()
    assert mu.value is None and problem.status is None and problem.constraints[0].dual_value is None
    dual.recover_primal()
    assert mu.value is not None and problem.status is None

"""Problems beside their duals, derivations and tables of conditions: what they say, and that it is true."""

from __future__ import annotations

import copy
import pickle
import re
from dataclasses import replace
from functools import cache
from importlib import import_module

import cvxpy as cp
import numpy as np
import pytest
from matplotlib.mathtext import MathTextParser

import kernelopt as ko
from formulations import lanckriet, linear_functional, lp_norm, similarity, triplet_lp
from kernelopt.duality.adjoints import ADJOINTS
from kernelopt.duality.conjugates import CONJUGATES
from kernelopt.duality.layout import WIDTH
from kernelopt.duality.tree import leaf, number
from tests.duality.generic import PROBLEMS, RISKS, pair
from tests.every import every

MODULES = (lanckriet, linear_functional, lp_norm, similarity, triplet_lp)
ENTRIES = {entry.name: entry for module in MODULES for entry in module.CATALOGUE}
SEED = 0
TOLERANCE = 1e-6  # of the checks of a derivation: conic solvers stop at 1e-8
PARSER = MathTextParser("agg")
GRAMS = np.array([[[2.0, 0], [0, 2]], [[2, -2], [-2, 2]]])


@cache
def formulation(name):
    return ENTRIES[name].example(np.random.default_rng(SEED))


@cache
def shown(name):
    return ko.show(formulation(name).problem)


@cache
def derived(name):
    return ko.derive(formulation(name).problem, random_state=3)


def two_kernels(p=2.0):
    theta = cp.Variable(2, nonneg=True, name="theta")
    risk = ko.risk(ko.combine(theta, GRAMS), [1, -1], ko.hinge(1.0))
    return cp.Problem(cp.Minimize(risk), ko.lp_ball(theta, p))


def parse(tex):
    """Raise where LaTeX is not valid, whatever its numbers are."""
    parse_once(re.sub(r"\d+(\.\d+)?", "1", tex))


@cache
def parse_once(tex):
    """mathtext knows no matrices, so that their cells are put in a row."""
    matrix = re.compile(r"\\begin\{bmatrix\}((?:(?!\\begin).)*?)\\end\{bmatrix\}")
    while "bmatrix" in tex:
        tex = matrix.sub(lambda found: "(" + found[1].replace("&", ",").replace(r"\\", ";") + ")", tex)
    PARSER.parse(f"${tex}$")


def formulas(statement):
    tags = [part for line in statement.lines for part in line.tag]
    return [statement.value, *statement.variables, *(line.whole for line in statement.lines), *tags]


def text_of(statement):
    return [statement.value.text, *(line.whole.text for line in statement.lines)]


# ------------------------------------------------------------------------------------------- text


@every("name", ENTRIES)
def test_both_problems_fit_a_terminal_and_show_no_data(name):
    printed = str(shown(name))
    assert max(map(len, printed.splitlines())) <= WIDTH
    assert "True" not in printed and "var" not in re.sub(r"[a-z]*variable", "", printed)
    data = formulation(name)
    numbers = re.findall(r"\d+\.\d+", printed)
    assert len(numbers) < 16 and isinstance(data, ko.Formulation)  # prices and traces, no vectors
    for symbol, meaning in shown(name).legend:
        assert symbol and re.match(r"\(\d+|= ", meaning)  # a shape, or a definition


@every("name", ENTRIES)
def test_the_catalogue_is_valid_latex(name):
    for formula in (*formulas(shown(name).primal), *formulas(shown(name).dual)):
        parse(formula.tex)


def test_lp_norm_learning_reads_as_the_problems_of_the_paper():
    """(P) and (D) of Kloft et al. (2011) with hinge and intercept; q = 4 at p = 4/3."""
    both = shown("lp_norm.primal")
    assert text_of(both.primal) == [
        "1/2 f' K(theta)^+ f + sum((1 - y * z)_+)", "z == f + b", "|theta|_(4/3) <= 1", "theta >= 0"
    ]  # fmt: skip
    assert text_of(both.dual) == [
        "y'alpha - 1/2 |(alpha' K_m alpha)_m|_4", "0 <= y * alpha <= 1", "sum(alpha) == 0"
    ]  # fmt: skip
    assert [[t.text for t in line.tag] for line in both.primal.lines] == [["alpha"], ["y[ball]"], []]
    assert [[t.text for t in line.tag] for line in both.dual.lines] == [["box"], ["b"]]
    ((name, value),) = both.where
    assert (name.text, value.text) == ("y[ball]", "1/2 |(alpha' K_m alpha)_m|_4")
    assert r"\|\left(\alpha^\top K_m \alpha\right)_m\|_{4}" in both._repr_latex_()


def test_lanckriets_dual_reads_as_his_qcqp():
    both = shown("lanckriet.soft_margin")
    trace = float(formulation("lanckriet.soft_margin").problem.constraints[0].args[1].value)
    assert text_of(both.dual) == [
        f"2 y'alpha - {trace:.6g} y[trace]",
        "0 <= y * alpha <= 1",
        "sum(alpha) == 0",
        "(alpha' K_m alpha)_m <= y[trace] t",
    ]
    assert dict(both.legend)["t"] == "(3,)  the traces tr K_m"


def test_the_dual_of_a_learned_similarity_reads_as_ours_by_hand():
    both = shown("similarity.indefinite_svm")
    assert text_of(both.dual) == [
        "y'alpha - 0.05 |U0|_F^2 - 0.05 |U1|_F^2 - 0.2 <U0, S0> - 0.2 <U1, S1>",
        "0 <= y * alpha <= 1",
        "sum(alpha) == 0",
        "[0.4 U0 + 0.4 U1, (alpha, 0); (alpha, 0)', 1] >> 0",
    ]
    primal = text_of(both.primal)[0]
    assert primal == "1/2 f' K[0:8, 0:8]^+ f + sum((1 - y * z)_+) + 0.2 |K - S0|_F^2 + 0.2 |K - S1|_F^2"


def test_the_same_matrix_has_one_name_in_both_problems():
    both = shown("triplet_lp.feature_selection")
    names = [name for name, _ in both.legend]
    assert names == ["A1", "A2", "A3", "A4", "A5"]
    assert "A3 alpha <= r" in text_of(both.primal)
    assert "A4' y[dominance] == y[above] + y[below]" in text_of(both.dual)


def test_a_matrix_of_equal_entries_is_no_number():
    x = cp.Variable(3, name="x")
    problem = cp.Problem(cp.Minimize(cp.sum_squares(x)), [np.ones((2, 3)) @ x >= 1])
    assert text_of(ko.show(problem).primal)[1] == "1 <= A1 x"
    problem = cp.Problem(cp.Minimize(cp.sum_squares(x)), [2 * np.ones(3) @ x >= 1])
    assert text_of(ko.show(problem).primal)[1] == "1 <= 2 sum(x)"


def test_two_different_matrices_have_two_names():
    x, A = cp.Variable(3, name="x"), np.arange(6.0).reshape(2, 3)
    B = A.copy()
    B[1, 2] += 1e-6
    found = dict(ko.show(cp.Problem(cp.Minimize(cp.norm1(x)), [A @ x >= 1, B @ x <= 9])).legend)
    assert {"A1", "A2"} <= set(found)


def test_variables_without_a_name_get_one():
    x = cp.Variable(2)
    both = ko.show(cp.Problem(cp.Minimize(cp.sum_squares(x - 1)), [x >= 2]))
    assert [v.text for v in both.primal.variables] == ["x"]


def test_a_dual_by_hand_is_shown_with_its_labels():
    data = formulation("lp_norm.primal")
    both = ko.show(data.problem, data.dual())
    assert both.dual.maximize and not both.where
    assert ["ball"] in [[t.text for t in line.tag] for line in both.primal.lines]
    assert max(map(len, str(both).splitlines())) <= WIDTH


def test_names_and_numbers_in_latex():
    latex = {name: leaf(name).tex for name in ("alpha", "alpha2", "y[group above]", "slack", "S0", "a_b#c")}
    assert latex == {
        "alpha": r"\alpha",
        "alpha2": r"\alpha_{2}",
        "y[group above]": r"y_{\mathrm{group\ above}}",
        "slack": r"\mathrm{slack}",
        "S0": "S_{0}",
        "a_b#c": r"\mathrm{a\_b\#c}",
    }
    assert number(-2.5e-9).tex == r"-2.5\cdot 10^{-9}" and number(0.5).text == "1/2"


@every("name", ["", "a & b", "x\\y{}", "100 %", "<i>$", 'dé~^"`@!;?', "K >> 0"])
def test_any_label_is_valid_latex(name):
    x = cp.Variable(name="x")
    problem = cp.Problem(cp.Minimize(x), [(x >= 1).set_label(name or None)])
    for formula in formulas(ko.show(problem).primal):
        parse(formula.tex)


def test_what_is_no_problem_is_refused():
    with pytest.raises(ko.errors.ParameterError, match=r"dual must be a cvxpy.Problem or None, got 3"):
        ko.show(two_kernels(), 3)
    with pytest.raises(ko.errors.ParameterError, match="problem must be a cvxpy.Problem"):
        ko.derive("problem")


# ------------------------------------------------------------------------------------ derivations


# By default every second one, which is at least one of each paper and of each fidelity and loss.
@pytest.mark.parametrize("part", [0, pytest.param(1, marks=pytest.mark.slow)], ids=["even", "odd"])
def test_the_catalogue_is_derived_and_every_step_holds(part):
    for name in list(ENTRIES)[part::2]:
        check_derivation(name)


def check_derivation(name):
    found = derived(name)
    assert [step.title for step in found.steps if step.residual > TOLERANCE] == []
    assert max(map(len, str(found).splitlines())) <= WIDTH


@pytest.mark.slow
@every("name", ENTRIES)
def test_the_derivations_of_the_catalogue_are_valid_latex(name):
    for formula in (line for step in derived(name).steps for line in step.lines):
        parse(formula.tex)


@pytest.mark.slow
@every("turn, name", enumerate([*PROBLEMS, *RISKS]))
def test_any_problem_is_derived_in_valid_latex_and_every_step_holds(turn, name):
    """mathtext, which is slow, reads every second derivation, and the other problems as displayed."""
    problem, dual = pair(name)
    found = ko.derive(problem, random_state=1)
    assert [step.title for step in found.steps if step.residual > TOLERANCE] == []
    both = ko.show(problem, dual)
    steps = (line for step in found.steps for line in step.lines)
    for formula in steps if turn % 2 else (*formulas(both.primal), *formulas(both.dual)):
        parse(formula.tex)


def test_the_steps_of_lp_norm_learning():
    found = derived("lp_norm.primal")
    texts = [[line.text.strip() for line in step.lines] for step in found.steps]
    assert texts[0] == ["L = 1/2 f' K(theta)^+ f + sum((1 - y * z)_+) + y[ball] (|theta|_(4/3) - 1)"]
    assert texts[1][1:] == [
        "= max over s, alpha of y'alpha - 1/2 theta's",
        "where 0 <= y * alpha <= 1, sum(alpha) == 0, (alpha' K_m alpha)_m <= s, s >= 0",
    ]
    assert texts[2] == ["y[ball] |theta|_(4/3)", "= max over u of theta'u", "where |u|_4 <= y[ball]"]
    assert texts[3] == ["by theta: 1/2 s <= u"]
    assert texts[4:7] == [
        ["s = (alpha' K_m alpha)_m"], ["y[ball] = |u|_4"], ["u = 1/2 (alpha' K_m alpha)_m"]
    ]  # fmt: skip


def test_a_derivation_depends_on_its_seed_alone():
    one, same, other = (str(ko.derive(two_kernels(), seed)) for seed in (1, 1, 2))
    assert one == same and one != other


@every("factor", [0.5, 2.0])
def test_a_wrong_conjugate_is_noticed(factor, monkeypatch):
    """The checks are computed apart from the formulas: a loss with another conjugate does not pass."""

    class wrong(ko.squared_hinge):
        def curve(self, y):
            found = super().curve(y)
            return found._replace(curvature=factor * found.curvature)

    theta = cp.Variable(2, nonneg=True, name="theta")
    risk = ko.risk(ko.combine(theta, GRAMS), [1, -1], wrong(1.0))
    found = ko.derive(cp.Problem(cp.Minimize(risk), ko.lp_ball(theta, 2)))
    assert found.residual > 1e-3
    assert found.steps[1].title == "The minimum over f, b, z" and found.steps[1].residual > 1e-3


def test_a_check_that_no_solver_can_compute_is_a_note(monkeypatch):
    """A derivation is right or wrong apart from what solvers can do."""

    steps = import_module("kernelopt.duality.steps")
    right, whole = steps.maximum_and_value, derived("lp_norm.primal")

    def failing(term):
        if any(v.name() == "alpha" for v in term.variables):
            raise ko.SolverError("a check of the derivation must have an optimum, got CLARABEL: failed.")
        return right(term)

    monkeypatch.setattr(steps, "maximum_and_value", failing)
    found = ko.derive(two_kernels())
    note = (
        "not checked numerically, since a check of the derivation must have an optimum, got CLARABEL: failed"
    )
    assert [bool(step.why_not) for step in found.steps] == [k == 1 for k in range(8)]
    assert np.isnan(found.steps[1].residual) and found.steps[1].checked == note
    assert found.steps[1].lines and found.residual < TOLERANCE  # of the steps that were checked
    assert note[:40] in " ".join(str(found).split()) and f"Check: {note}." in found._repr_latex_()
    assert max(map(len, str(found).splitlines())) <= WIDTH and not any(s.why_not for s in whole.steps)


@every("bound", [1.0, 3.0])
def test_a_problem_without_an_optimum_is_derived_without_checks(bound):
    """x >= 2 and x <= 1 have no common point, and min -x over x >= 3 has no least value."""
    x = cp.Variable(name="x")
    constraints = [(x >= 2).set_label("low"), (x <= bound).set_label("high")] if bound < 2 else [x >= bound]
    found = ko.derive(cp.Problem(cp.Minimize(-x), constraints))
    assert all("must have an optimum" in step.why_not and step.check == "" for step in found.steps)
    assert np.isnan(found.residual) and found.steps[0].lines and found.dual.lines
    assert str(found).count("not checked numerically") == len(found.steps) >= 3


def test_terms_inside_of_a_risk_are_not_checked():
    """A risk without an entry is swept through its expression, whose variables have no values."""
    found = ko.derive(RISKS["fixed kernels, block norm"]())
    assert any("inside of a risk" in step.why_not for step in found.steps)
    assert found.residual < TOLERANCE and not found.steps[-1].why_not


def test_a_wrong_adjoint_is_noticed(monkeypatch):
    """A gradient that is wrong in one matrix is not that of the Lagrangian."""
    right = ADJOINTS["MulExpression"]
    monkeypatch.setitem(ADJOINTS, "MulExpression", lambda node, k, W: 1.3 * right(node, k, W))
    x = cp.Variable(3, name="x")
    problem = cp.Problem(cp.Minimize(cp.sum_squares(np.arange(6.0).reshape(2, 3) @ x - 1) + cp.norm1(x)))
    found = {step.title: step.residual for step in ko.derive(problem).steps}
    assert found["The gradient's equation"] > 1e-4 and found["Weak and strong duality"] > 1e-4


def failed(problem):
    return [step.title for step in ko.derive(problem).steps if step.residual > 1e-4]


def test_a_wrong_entry_of_the_table_is_noticed_at_its_step(monkeypatch):
    """The conjugate of |x|^2 with another factor is no maximum of |x|^2; that of the norm stays right."""
    right = CONJUGATES["quad_over_lin"]

    def wrong(g, u, new):
        found = right(g, u, new)
        return found._replace(cost=1.2 * found.cost)

    monkeypatch.setitem(CONJUGATES, "quad_over_lin", wrong)
    x = cp.Variable(3, name="x")
    problem = cp.Problem(cp.Minimize(cp.sum_squares(x - [1, 2, 3]) + cp.norm1(x)))
    assert failed(problem) == ["The conjugate of |x - b1|^2", "Weak and strong duality"]


def test_a_wrong_rule_is_noticed_at_its_step(monkeypatch):
    """A rule that loses half of the value."""
    board = import_module("kernelopt.duality.board")

    def floor(state):
        if state.gone:
            return None
        v = state.problem().variables()[0]
        return replace(state, value=0.5 * state.value, gone={v.id: (v, v)})

    monkeypatch.setattr(board, "RULES", (floor,))
    x = cp.Variable(3, name="x")
    problem = cp.Problem(cp.Minimize(cp.sum_squares(x - [1, 2, 3]) + cp.norm1(x)))
    assert failed(problem) == ["A variable is at its floor"]


# ------------------------------------------------------------------------------------- conditions


def test_the_conditions_of_a_closed_form():
    """One kernel 2I, labels +-1 and C = 1: alpha = (1/4, -1/4)... at theta = 1 the margin is met."""
    solution = ko.solve(two_kernels(), "exact")
    table = ko.kkt_table(solution)
    where = {(c.kind, c.where): c for c in table.conditions}
    assert table.residual < 1e-6
    assert ("complementarity", "ball") in where and ("subgradient", "risk theta") in where
    assert where["gap", "objective - dual function"].residual == pytest.approx(0, abs=1e-7)


def test_a_poor_point_has_large_residuals_where_they_belong():
    problem = two_kernels()
    theta = next(v for v in problem.variables() if v.name() == "theta")
    poor = ko.certify(problem, {theta: [1.0, 0.0]}, alpha=[0.25, -0.25])

    class Solved:
        certificate = poor

    where = {(c.kind, c.where): c for c in ko.kkt_table(Solved(), problem).conditions}
    assert where["primal feasibility", "ball"].relative < 1e-9
    assert (
        max(c.relative for (kind, _), c in where.items() if kind in ("complementarity", "subgradient")) > 1e-2
    )
    value = where["gap", "objective - dual function"]
    assert value.residual == pytest.approx(poor.upper - poor.lower, rel=1e-4)


def test_a_pickled_solution_needs_its_problem():
    problem = two_kernels()
    solution = ko.solve(problem, "exact")
    assert copy.deepcopy(solution).problem is problem
    other = pickle.loads(pickle.dumps(solution))  # noqa: S301 - our own bytes
    assert other.problem is None
    with pytest.raises(ko.InputError, match=r"Pass kkt_table\(solution, problem\)"):
        ko.kkt_table(other)
    with pytest.raises(ko.InputError, match="solution must be a Solution, got 3"):
        ko.kkt_table(3)
    with pytest.raises(ko.InputError, match="must have a point of this problem, got none for theta"):
        ko.kkt_table(solution, two_kernels())


# -------------------------------------------------------------------------------------- notebooks


def test_tables_in_notebooks_escape_everything():
    x = cp.Variable(2, nonneg=True, name="<b>x</b>")
    problem = cp.Problem(cp.Minimize(cp.sum(x)), [(x >= 1).set_label("<script>")])
    solution = ko.solve(problem)
    tables = [
        solution._repr_html_(), solution.certificate._repr_html_(), ko.kkt_table(solution)._repr_html_(),
        ko.explain(problem)._repr_html_(), ko.expand(problem)._repr_html_(),
    ]  # fmt: skip
    for table in tables:
        assert table.startswith("<table>") and "<script>" not in table and "<b>" not in table
        assert "http" not in table and "src=" not in table and "style=" not in table
    assert "&lt;script&gt;" in tables[2] and "&lt;script&gt;" in tables[4]
    assert f"{solution.value:.9g}" in tables[0] and f"{solution.lower:.9g}" in tables[1]


def test_problems_in_notebooks_are_latex():
    data = formulation("lp_norm.primal")
    dual = ko.dualize(data.problem)
    assert r"\max_{\alpha}" in dual._repr_latex_() and r"\min_{\theta, f, b, z}" in data._repr_latex_()
    assert r"K(\theta) = \sum_m \theta_m\,K_m" in data._repr_latex_()
    steps = derived("lp_norm.primal")._repr_latex_()
    assert steps.count("Check:") == 8 and steps.count(r"\begin{array}") == steps.count(r"\end{array}") == 2

"""Other ways to write the same kernel, and the explicit problem with its multipliers."""

from __future__ import annotations

import warnings

import cvxpy as cp
import numpy as np
import pytest
import scipy.sparse as sp

import kernelopt as ko
from kernelopt.errors import ParameterError
from kernelopt.extend import as_grams
from kernelopt.grams import join
from kernelopt.language.penalty import penalty
from kernelopt.structure import expand
from tests.every import every
from tests.language.cases import (
    FORMS,
    KS,
    RIDGED,
    SPECTRUM,
    C,
    N,
    V,
    W,
    ball_problem,
    cases,
    dual_value,
    weights,
)
from tests.problems import (
    CASES,
    MULTIPLIER_RUNGS,
    labels,
    points,
    solved,
    targets,
)


@pytest.mark.parametrize("norm", [1, 1.5, 2, 3, np.inf])
def test_a_list_of_kernels_of_low_rank(norm):
    """Where alpha'K_m alpha = 0 for some m, alpha alone does not say what f_m is."""
    risk = ko.risk(list(KS), labels(N), ko.hinge(C), norm=norm)
    assert risk.value == pytest.approx(solved(cp.Problem(cp.Minimize(risk))), rel=1e-6)


IDENTITY, SPARSE = np.eye(N), sp.csc_array(V)
SPELLED = {  # name: (kernel of weights mu, the largest weights); all other kernels are smaller
    "spectral, of a sparse matrix": (lambda mu: SPARSE @ cp.diag(mu) @ SPARSE.T, SPECTRUM),
    "plus constant weights, one zero": (lambda mu: ko.combine(mu, KS) + ko.combine([1.0, 0.0, 2.0], KS), W),
    "plus a zero multiple": (lambda mu: ko.combine(mu, KS) + cp.Constant(RIDGED[0]) * 0, W),
    "plus zero": (lambda mu: ko.combine(mu, KS) + cp.Constant(0 * KS[1]), W),
    "minus an identity": (lambda mu: ko.combine(mu, RIDGED) - 0.1 * IDENTITY, W),
    "plus a negative identity": (lambda mu: ko.combine(mu, RIDGED) + (-0.1) * IDENTITY, W),
    "minus a matrix": (lambda mu: ko.combine(mu, RIDGED) - 0.1 * KS[0], W),
    "minus a combination": (
        lambda mu: ko.combine(mu, RIDGED) - ko.combine([0.1, 0, 0], KS) - 0.05 * IDENTITY,
        W,
    ),
    "negated": (lambda mu: -(0.1 * IDENTITY - ko.combine(mu, RIDGED)), W),
}


@pytest.mark.parametrize(("make", "largest"), SPELLED.values(), ids=SPELLED)
def test_another_spelling_of_a_kernel_has_its_risk(make, largest):
    """It may be lowered while it stays positive, and a constant in it may be zero."""
    mu = weights(len(largest), nonneg=True)
    risk = ko.risk(make(mu), labels(N), ko.hinge(C))
    expected = ko.risk(make(cp.Constant(largest)).value, labels(N), ko.hinge(C)).value
    assert solved(cp.Problem(cp.Minimize(risk), [mu <= largest])) == pytest.approx(expected, rel=1e-6)


def test_each_kernel_has_its_own_coordinates_and_weight():
    """Kernels of the rank bounds 2, 7, 0 and 1: sum_i |u_i|^2 / w_i over consecutive parts of u."""
    X = points(N, 2)
    evaluated = ko.Grams.from_kernels([ko.linear(), ko.gaussian(1.0)], X)
    grams = join([(1.0, evaluated), (1.0, as_grams(np.zeros((1, N, N)))), (1.0, ko.Grams.rank_one(X[:, :1]))])
    assert grams.rank_bounds == (2, N, 0, 1)
    w = weights(4, nonneg=True)
    found = penalty(ko.combine(w, grams), N, "")
    (u,) = found.f.variables()
    parts = (0, 0, 2), (1, 2, 2 + N), (3, 2 + N, 3 + N)
    expected = cp.sum([cp.quad_over_lin(u[start:stop], w[i]) for i, start, stop in parts])
    assert str(found.square) == str(expected)
    problems = [cp.Problem(cp.Minimize(s - cp.sum(u)), [w <= 2]) for s in (found.square, expected)]
    one, two = (problem.get_problem_data(cp.CLARABEL)[0] for problem in problems)
    assert (one["A"] != two["A"]).nnz == 0 and one["dims"].soc == two["dims"].soc
    u.value, w.value = np.arange(N + 3.0), np.array([0.5, 2.0, 3.0, 4.0])
    by_hand = 1 / 0.5 + sum(i**2 for i in range(2, N + 2)) / 2 + (N + 2) ** 2 / 4
    assert found.square.value == expected.value == by_hand


def test_parameters_as_weights_may_be_zero():
    w = cp.Parameter(3, nonneg=True)
    risk = ko.risk(ko.combine(w, KS), labels(N), ko.hinge(C))
    problem = cp.Problem(cp.Minimize(risk))
    for value in (W, 3 * W, np.array([0.5, 0.0, 1.0])):
        w.value = value
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # not DPP: compiled anew
            solved(problem)
        expected = ko.risk(np.tensordot(value, KS, 1), labels(N), ko.hinge(C)).value
        assert problem.solution.opt_val == pytest.approx(expected, rel=1e-6)


def test_a_hard_margin_that_no_weights_meet_is_infeasible():
    """Labels that alternate along a line are not separated by a linear kernel."""
    line = np.arange(4.0)
    mu = weights(1, nonneg=True)
    risk = ko.risk(ko.combine(mu, np.outer(line, line)[None]), [1, -1, 1, -1], ko.hard_margin())
    problem = cp.Problem(cp.Minimize(risk), [mu <= 1])
    problem.solve(solver=cp.CLARABEL)
    assert problem.status == cp.INFEASIBLE
    mu.value = [1.0]
    assert risk.value == np.inf


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
@every("name", ["combination", "with ridge", "free sign", "variable list, norm 3"])
def test_expanded_problem_has_the_same_value(case, name):
    form = FORMS[name]()
    risk = ko.risk(form.kernel, case.y(N), case.loss(C), norm=form.norm)
    expansion = expand(cp.Problem(cp.Minimize(risk), list(form.set)))
    expected = dual_value(case, name, risk.learner.bias is not None)
    assert solved(expansion.problem) == pytest.approx(expected, rel=1e-6, abs=1e-6)
    assert not any(isinstance(node, ko.Risk) for node in expansion.problem.objective.args)
    assert expansion.risks[0].risk is risk


def alphas(objective, *extra, **options):
    problem, risk, _ = ball_problem(objective, *extra, **options)
    expansion = expand(problem)
    value = solved(problem)
    assert solved(expansion.problem, MULTIPLIER_RUNGS) == pytest.approx(value, rel=1e-6)
    return expansion, risk


@cases
def test_alpha_is_the_multiplier_of_the_fit(case):
    options = {"y": case.y(N), "loss": case.loss(C)}
    expansion, risk = alphas(lambda r, t: cp.Minimize(r + 0.1 * cp.sum_squares(t)), **options)
    assert expansion.risks[0].weight() == 1.0
    digits = 1e-4 if case.name == "logistic" else 1e-5  # the oracle is an exponential cone there
    assert expansion.risks[0].alpha() == pytest.approx(risk.oracle().alpha, abs=digits)


RATE = cp.Parameter(pos=True, value=0.5)


COMPOSED = {
    "coefficient 2": (lambda r, t: cp.Minimize(2 * r), 2.0),
    "coefficient 2 - (-1)": (lambda r, t: cp.Minimize(2 * r - (-r)), 3.0),
    "divided": (lambda r, t: cp.Minimize(cp.sum(t) + r / 4), 0.25),
    "parameter": (lambda r, t: cp.Minimize(RATE * r), 0.5),
    "Maximize": (lambda r, t: cp.Maximize(-r), 1.0),
    "Maximize, coefficient": (lambda r, t: cp.Maximize(1 - 3 * r), 3.0),
    "square": (lambda r, t: cp.Minimize(cp.square(r)), None),
    "maximum": (lambda r, t: cp.Minimize(cp.maximum(r, 0.1)), 1.0),
}


@pytest.mark.parametrize(("objective", "weight"), COMPOSED.values(), ids=COMPOSED)
@every("loss", [ko.hinge(C), ko.squared_hinge(C)], ids=["hinge", "squared_hinge"])
def test_alpha_is_the_multiplier_divided_by_the_weight(objective, weight, loss):
    expansion, risk = alphas(objective, loss=loss)
    (written,) = expansion.risks
    weight = 2 * risk.value if weight is None else weight
    assert written.weight() == pytest.approx(weight, rel=1e-5)
    assert written.alpha() == pytest.approx(risk.oracle().alpha, abs=1e-5)
    names = [c.label for c in expansion.problem.constraints if c.label is not None]
    assert names[-1] == "fit" and ("risk" in names) == (written.bound is not None)


def test_the_weight_of_a_bounded_risk_is_a_multiplier(least):
    bound = 1.1 * least
    expansion, risk = alphas(lambda r, t: cp.Minimize(cp.sum(t)), lambda r, t: (r <= bound).set_label("cap"))
    (written,) = expansion.risks
    (cap,) = [pair.copy for pair in expansion.constraints if pair.original.label == "cap"]
    assert cap.label == "cap" and written.bound.label == "risk" and written.fit.label == "fit"
    assert written.weight() == pytest.approx(float(cap.dual_value), rel=1e-5) and written.weight() > 0
    assert written.alpha() == pytest.approx(risk.oracle().alpha, abs=1e-4)


def test_a_risk_in_objective_and_constraint_has_the_sum_of_both_weights(least):
    expansion, risk = alphas(
        lambda r, t: cp.Minimize(0.5 * r + cp.sum(t)), lambda r, t: (r <= 1.1 * least).set_label("cap")
    )
    (written,) = expansion.risks
    (cap,) = [pair.copy for pair in expansion.constraints if pair.original.label == "cap"]
    assert written.weight() == pytest.approx(0.5 + float(cap.dual_value), rel=1e-5)
    assert written.alpha() == pytest.approx(risk.oracle().alpha, abs=1e-4)


def test_an_inactive_risk_has_no_alpha():
    expansion, _ = alphas(lambda r, t: cp.Minimize(cp.maximum(r, 100) + 0.1 * cp.sum_squares(t)))
    assert expansion.risks[0].weight() == pytest.approx(0.0, abs=1e-6)
    assert expansion.risks[0].alpha() is None


def test_several_risks_are_numbered():
    second = []

    def objective(r, t):
        second.append(ko.risk(ko.combine(t, RIDGED), targets(N), ko.squared(C)))
        return cp.Minimize(2 * r + cp.square(second[0]))

    expansion, first = alphas(objective)
    assert [written.fit.label for written in expansion.risks] == ["fit 0", "fit 1"]
    assert expansion.risks[0].bound is None and expansion.risks[1].bound.label == "risk 1"
    assert [written.risk for written in expansion.risks] == [first, second[0]]
    for written in expansion.risks:
        assert written.alpha() == pytest.approx(written.risk.oracle().alpha, abs=1e-5)


def test_labels_of_the_user_survive_and_the_problem_stays():
    problem, _, theta = ball_problem(
        lambda r, t: cp.Minimize(r), lambda r, t: (t[0] >= 0.1).set_label("floor")
    )
    expansion = expand(problem)
    assert [pair.copy.label for pair in expansion.constraints] == ["ball", "floor"]
    assert all(p.original is c for p, c in zip(expansion.constraints, problem.constraints, strict=True))
    assert theta.id in [variable.id for variable in expansion.problem.variables()]


@pytest.mark.parametrize("problem", [None, cp.Variable()])
def test_only_problems_are_expanded(problem):
    with pytest.raises(ParameterError, match=r"problem must be a cvxpy\.Problem, got"):
        expand(problem)
    with pytest.raises(ParameterError, match=r"continuous variables.*Relax them"):
        expand(cp.Problem(cp.Minimize(cp.Variable(boolean=True))))


def test_lazy_kernels_arrays_and_matrices_have_one_risk():
    X, y = points(N), labels(N)
    grams = ko.Grams.from_kernels([ko.gaussian(1.0), ko.linear()], X)
    w = [1.0, 0.5]
    kernels = (ko.combine(w, grams), ko.combine(w, np.asarray(grams)), grams.combine(w))
    values = [float(ko.risk(K, y, ko.hinge(C)).value) for K in kernels]
    assert values == pytest.approx(values[:1] * 3, rel=1e-10)

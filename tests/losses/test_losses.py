"""Each loss against its textbook formula: value, conjugate, dual domain, intercept, parameters."""

from __future__ import annotations

import cvxpy as cp
import numpy as np
import pytest
from scipy.optimize import minimize_scalar

import kernelopt as ko
from kernelopt.errors import InputError, LabelError, NotFiniteError, ParameterError, ShapeError
from tests.every import every
from tests.problems import CASES, labels, positive_definite, sample_weights, solved, stack, targets

N = 9
WEIGHTS = {"scalar": 1.5, "per sample": sample_weights(N)}
BOUNDED = [case for case in CASES if case.name != "hard_margin"]
HINGES = [case for case in CASES if case.name in ("hinge", "squared_hinge", "huberized_hinge")]

cases = pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
bounded = pytest.mark.parametrize("case", BOUNDED, ids=lambda case: case.name)
weights = every("C", WEIGHTS.values(), ids=WEIGHTS)


def predictions(case, seed=1):
    """Random predictions; for the hard margin such as it allows."""
    t = 1.5 * np.random.default_rng(seed).normal(size=N)
    return case.y(N) * (1 + np.abs(t)) if case.name == "hard_margin" else t


def each(C):
    return np.broadcast_to(C, N).astype(float)


@cases
@weights
@every("seed", range(4))
def test_value_is_the_textbook_formula(case, C, seed):
    t, y = predictions(case, seed), case.y(N)
    assert case.loss(C).value(t, y) == pytest.approx(case.value(t, y, each(C)), rel=1e-12, abs=1e-14)


@cases
@weights
def test_cvxpy_form_is_convex_and_has_the_same_value(case, C):
    t, y = predictions(case), case.y(N)
    summed = case.loss(C).expression(cp.Constant(t), y)
    assert summed.is_convex() and summed.shape == ()
    assert case.loss(C).expression(cp.Variable(N), y).is_dcp()
    value = solved(cp.Problem(cp.Minimize(summed))) if summed.variables() else float(summed.value)
    assert value == pytest.approx(case.value(t, y, each(C)), rel=1e-7, abs=1e-12)


def test_hard_margin_is_infinite_inside_the_margin():
    y = labels(N)
    loss, inside = ko.hard_margin(), y * np.linspace(0.99, 3, N)
    assert loss.value(inside, y) == np.inf
    assert loss.expression(cp.Constant(inside), y).value == np.inf


@cases
@weights
def test_fenchel_young(case, C):
    """V(t) >= l(a) - a't on the domain, equal at a(t)."""
    loss, y, rng = case.loss(C), case.y(N), np.random.default_rng(3)
    t = predictions(case)
    for _ in range(20):
        a = loss.project(2 * rng.normal(size=N), y, bias=False)
        assert loss.value(t, y) >= loss.dual_value(a, y) - a @ t - 1e-12
    best = loss.response(t, y)
    assert loss.project(best, y, bias=False) == pytest.approx(best, abs=1e-14)
    assert loss.value(t, y) == pytest.approx(loss.dual_value(best, y) - best @ t, rel=1e-12, abs=1e-13)


@cases
@weights
def test_conjugate_is_its_cvxpy_form_and_the_textbook_dual(case, C):
    loss, y, rng = case.loss(C), case.y(N), np.random.default_rng(4)
    alpha = cp.Variable(N)
    concave, domain = loss.dual_expression(alpha, y)
    written, _ = case.dual(alpha, y, each(C))
    assert concave.is_concave() and concave.shape == ()
    for _ in range(5):
        alpha.value = 0.999 * loss.project(2 * rng.normal(size=N), y, bias=False)
        assert concave.value == pytest.approx(loss.dual_value(alpha.value, y), rel=1e-12, abs=1e-13)
        assert written.value == pytest.approx(loss.dual_value(alpha.value, y), rel=1e-12, abs=1e-13)
        assert all(constraint.value(1e-12) for constraint in domain)


@cases
@weights
@every("bias", [False, True], ids=["no bias", "bias"])
def test_dual_expression_has_the_textbook_optimum(case, C, bias):
    """Its domain is the domain: maximising l(a) - |a|^2/2 gives the textbook's number."""
    y, alpha, values = case.y(N), cp.Variable(N), []
    for gain, domain in (case.loss(C).dual_expression(alpha, y), case.dual(alpha, y, each(C))):
        balance = [cp.sum(alpha) == 0] if bias else []
        values.append(solved(cp.Problem(cp.Maximize(gain - cp.sum_squares(alpha) / 2), domain + balance)))
    assert values[0] == pytest.approx(values[1], rel=1e-7, abs=1e-8)


@cases
@weights
@every("bias", [False, True], ids=["no bias", "bias"])
def test_projection_is_the_nearest_point_of_the_domain(case, C, bias):
    loss, y = case.loss(C), case.y(N)
    given = 3 * np.random.default_rng(5).normal(size=N)
    nearest = cp.Variable(N)
    _, domain = case.dual(nearest, y, each(C))
    if case.name == "logistic":  # its domain is implicit in the entropy
        domain = [cp.multiply(y, nearest) >= 0, cp.multiply(y, nearest) <= each(C)]
    solved(cp.Problem(cp.Minimize(cp.sum_squares(nearest - given)), domain + [cp.sum(nearest) == 0] * bias))
    projected = loss.project(given, y, bias)
    assert projected == pytest.approx(nearest.value, abs=1e-6)
    assert loss.project(projected, y, bias) == pytest.approx(projected, abs=1e-12)
    if bias:
        assert abs(projected.sum()) <= 1e-14 * max(1.0, np.abs(projected).sum())


@cases
@every("bias", [False, True], ids=["no bias", "bias"])
def test_projection_of_garbage_is_finite_and_in_the_domain(case, bias):
    garbage = np.array([np.nan, np.inf, -np.inf, 1e300, -1e300, 0.0, 1.0, -1.0, 1e-300])
    y = case.y(N)
    projected = case.loss(1.5).project(garbage, y, bias)
    assert np.isfinite(projected).all()
    assert case.loss(1.5).project(projected, y, bias=False) == pytest.approx(projected, rel=1e-12)
    if bias:
        assert abs(projected.sum()) <= 1e-14 * max(1.0, np.abs(projected).sum())


@bounded
@weights
@every("seed", range(3))
def test_intercept_minimises_the_loss(case, C, seed):
    f, y, loss = predictions(case, seed), case.y(N), case.loss(C)
    b = loss.intercept(f, y)
    found = minimize_scalar(lambda s: case.value(f + s, y, each(C)), (-3, 3), tol=1e-12)
    grid = min(case.value(f + s, y, each(C)) for s in np.linspace(-8, 8, 801))
    assert case.value(f + b, y, each(C)) <= min(found.fun, grid) + 1e-12


@pytest.mark.parametrize("loss", [ko.hinge(2.0), ko.squared_hinge(2.0), ko.hard_margin()], ids=repr)
def test_intercept_is_the_middle_of_several(loss):
    """f = (3, -5) with y = (1, -1) has no loss for -2 <= b <= 4."""
    assert loss.intercept(np.array([3.0, -5.0]), np.array([1.0, -1.0])) == pytest.approx(1.0, abs=1e-9)
    if not isinstance(loss, ko.hinge):
        return
    # Seven points of either label lose for -6 <= b <= 6, the others do for |b| > 2. The weights 0.1 of the
    # former sum to zero only up to rounding, and vanish beside the weights 1e14 in a sum from one end.
    y, lost = np.repeat([1.0, -1.0], 20), np.tile(np.arange(20) < 7, 2)
    f, C = np.where(lost, -5 * y, 3 * y) + 0.5, np.where(lost, 0.1, 1e14)
    assert ko.hinge(C).intercept(f, y) == pytest.approx(-0.5, abs=1e-12)
    tube = ko.epsilon_insensitive(C, 0.25)  # no target of the others is missed for |b| <= 0.25
    assert tube.intercept(f - 0.5, np.where(lost, 5, 3) * y) == pytest.approx(0, abs=1e-12)
    assert ko.hinge(0.1).intercept(f, y) == pytest.approx(-0.5, abs=1e-12)  # as many of either label
    # Of seven and six samples of one weight the slope jumps over zero at a knot of the seventh one.
    some = np.r_[0:7, 20:26]
    assert ko.hinge(0.3).intercept(f[some], y[some]) == pytest.approx(1 + 5 - 0.5, abs=1e-12)
    one_more = C * np.where(
        np.arange(40) < 1, 2, 1
    )  # the slope is 0.1 on the interval: its end is the minimiser
    assert ko.hinge(one_more).intercept(f, y) == pytest.approx(1.5, abs=1e-12)


def test_hard_margin_stretches_f_to_margin_one():
    """f = (4, 1, -1): the best b is -0, between 1 and -1, margin 1; of f/2 it is 1/2."""
    y, f = np.array([1.0, 1.0, -1.0]), np.array([4.0, 1.0, -1.0]) / 2
    value, scale, b = ko.hard_margin().primal(f, 3.0, y, bias=True)
    assert (value, scale, b) == pytest.approx((12.0, 2.0, 0.0))
    assert (y * (scale * f + b)).min() == pytest.approx(1.0)
    shifted = ko.hard_margin().primal(f + 7, 3.0, y, bias=True)
    assert (shifted.value, shifted.scale, shifted.intercept) == pytest.approx((12.0, 2.0, -14.0))
    assert ko.hard_margin().primal(-f, 3.0, y, bias=True).value == np.inf
    assert ko.hard_margin().primal(f + 7, 3.0, y, bias=False).value == np.inf


@cases
@weights
@every("factor", [0.3, 1.0, 4.0])
def test_a_scaled_loss_is_the_loss_times_a_number(case, C, factor):
    """Value, expression, response and conjugate: l of c V at c a is c times l of V at a."""
    loss, y, t = case.loss(C), case.y(N), predictions(case)
    scaled = loss.scaled(factor)
    assert type(scaled) is type(loss) and loss.value(t, y) == case.loss(C).value(t, y)
    assert scaled.value(t, y) == pytest.approx(factor * loss.value(t, y), rel=1e-12, abs=1e-14)
    summed = scaled.expression(cp.Constant(t), y)
    value = solved(cp.Problem(cp.Minimize(summed))) if summed.variables() else float(summed.value)
    assert value == pytest.approx(factor * loss.value(t, y), rel=1e-7, abs=1e-12)
    a = loss.project(2 * np.random.default_rng(6).normal(size=N), y, bias=False)
    assert scaled.project(factor * a, y, bias=False) == pytest.approx(factor * a, abs=1e-14)
    assert scaled.dual_value(factor * a, y) == pytest.approx(
        factor * loss.dual_value(a, y), rel=1e-12, abs=1e-14
    )
    if case.name != "hard_margin":
        assert scaled.response(t, y) == pytest.approx(factor * loss.response(t, y), rel=1e-12, abs=1e-13)


@bounded
def test_a_scaled_loss_takes_a_parameter_at_its_value(case):
    C = cp.Parameter(pos=True)
    loss, y, t = case.loss(C), case.y(N), predictions(case)
    with pytest.raises(ParameterError, match="must have a value here, got None"):
        loss.scaled(2.0)
    C.value = 1.5
    scaled = loss.scaled(2.0)
    C.value = 9.0
    assert scaled.value(t, y) == pytest.approx(2 * case.loss(1.5).value(t, y), rel=1e-12)


@cases
@every("factor", [0.0, -1.0, np.nan, np.inf, "2"])
def test_a_loss_is_scaled_by_a_positive_number(case, factor):
    with pytest.raises(ParameterError, match="factor must be a positive finite number, got"):
        case.loss(1.5).scaled(factor)


def parametrised_risk(case, C):
    theta = cp.Variable(3, nonneg=True)
    risk = ko.risk(ko.combine(theta, stack(N) + 0.1 * np.eye(N)), case.y(N), case.loss(C))
    return risk, cp.Problem(cp.Minimize(risk), ko.lp_ball(theta, 2))


@bounded
def test_a_parameter_can_change_between_solves(case):
    C = cp.Parameter(pos=True)
    risk, problem = parametrised_risk(case, C)
    for value in (0.5, 2.0, 1.0):
        C.value = value
        fresh_risk, fresh = parametrised_risk(case, value)
        assert solved(problem) == pytest.approx(solved(fresh), rel=1e-7)
        assert risk.value == pytest.approx(fresh_risk.value, rel=1e-6)


@pytest.mark.parametrize("case", HINGES, ids=lambda case: case.name)
def test_a_scalar_parameter_keeps_the_hinge_family_dpp(case):
    C = cp.Parameter(pos=True, value=1.0)
    _, problem = parametrised_risk(case, C)
    assert problem.is_dcp(dpp=True)
    fixed = ko.risk(positive_definite(N), case.y(N), case.loss(C))
    assert cp.Problem(cp.Minimize(fixed)).is_dcp(dpp=True)


@bounded
def test_a_parameter_of_zero_means_no_loss_or_is_refused(case):
    C = cp.Parameter(nonneg=True, value=0.0)
    risk = ko.risk(positive_definite(N), case.y(N), case.loss(C))
    try:
        value = risk.value
    except ParameterError:
        value = 0.0
    assert value == pytest.approx(0.0, abs=1e-9)


@bounded
@every(
    ("C", "error", "message"),
    [
        (0.0, ParameterError, "C must be a positive finite number, got 0"),
        (-1.0, ParameterError, "got -1"),
        (np.nan, ParameterError, "got nan"),
        (np.inf, ParameterError, "got inf"),
        (None, ParameterError, "got None"),
        (True, ParameterError, "Pass one number"),
        ("1", ParameterError, "Pass one number"),
        (np.array([1.0, 0.0]), ParameterError, "Leave out the samples"),
        (np.array([1.0, -2.0]), ParameterError, "smallest value of -2"),
        (np.array([1.0, np.nan]), NotFiniteError, r"at index \(1,\)"),
        (np.ones((2, 2)), ShapeError, "Reshape it first"),
        (np.array([]), ParameterError, "positive for every sample"),
        (cp.Parameter(2, pos=True), ParameterError, r"got shape \(2,\). Create it with"),
        (cp.Parameter(), ParameterError, "pos=True"),
    ],
)
def test_bad_weights_are_refused_with_a_remedy(case, C, error, message):
    with pytest.raises(error, match=message):
        case.loss(C)


@every("number", [0.0, -0.1, np.nan, np.inf])
def test_other_parameters_are_in_their_range(number):
    with pytest.raises(ParameterError, match="tau must be a positive finite number"):
        ko.huberized_hinge(1.0, number)
    if number:
        with pytest.raises(ParameterError, match="eps must be a non-negative finite number"):
            ko.epsilon_insensitive(1.0, number)
    assert ko.epsilon_insensitive(1.0, 0.0).value(np.array([1.0]), np.array([3.0])) == 2.0


@bounded
def test_weights_of_the_wrong_length_are_refused(case):
    with pytest.raises(ShapeError, match=r"one entry per labelled point \(9\), got 8"):
        ko.risk(np.eye(N), case.y(N), case.loss(np.ones(8)))


@pytest.mark.parametrize("case", [c for c in CASES if c.kind == "labels"], ids=lambda case: case.name)
@every(
    ("y", "error", "message"),
    [
        ([0, 1, 1], LabelError, r"got 0 at index 0 .*numpy.where"),
        ([1, 1, 1], LabelError, r"got only \+1 on 3 points.*one_class"),
        ([-1, -1, -1], LabelError, r"got only -1"),
        ([1, -1, np.nan], NotFiniteError, "got nan at index"),
        ([[1, -1, 1]], ShapeError, "1 dimension"),
        ([], LabelError, "no label at all"),
        ([1, -1, 1, -1], ShapeError, "at most 3 entries .*got 4"),
        (None, ShapeError, "needs y, got None. Pass the labels"),
        (["a", "b", "a"], LabelError, "Map two classes"),
    ],
)
def test_bad_labels_are_refused_with_a_remedy(case, y, error, message):
    with pytest.raises(error, match=message):
        ko.risk(np.eye(3), y, case.loss(1.0))


@pytest.mark.parametrize("loss", [ko.squared(), ko.epsilon_insensitive()], ids=repr)
@every(
    ("y", "error", "message"),
    [
        ([1.0, np.inf, 0.0], NotFiniteError, "got inf at index"),
        ([], LabelError, "at least one target"),
        ([1.0] * 4, ShapeError, "at most 3 entries"),
        (None, ShapeError, "Pass the targets"),
    ],
)
def test_bad_targets_are_refused_with_a_remedy(loss, y, error, message):
    with pytest.raises(error, match=message):
        ko.risk(np.eye(3), y, loss)


def test_one_class_takes_no_labels_or_marks_the_first_points():
    K = positive_definite(N)
    everyone = ko.risk(K, None, ko.one_class(1.0))
    assert everyone.value == ko.risk(K, np.ones(N), ko.one_class(1.0)).value
    first = ko.risk(K, np.ones(4), ko.one_class(1.0))
    assert first.value == pytest.approx(ko.risk(K[:4, :4], None, ko.one_class(1.0)).value, rel=1e-12)
    with pytest.raises(InputError, match="at most 9 entries"):
        ko.risk(K, np.ones(N + 1), ko.one_class(1.0))
    for y in (labels(N), targets(N), np.zeros(N)):  # they would be ignored
        with pytest.raises(
            ko.errors.LabelError, match="y must be None, or ones for the first points .*one_class"
        ):
            ko.risk(K, y, ko.one_class(1.0))


# ------------------------------------------------------------------------------- the text


@cases
def test_a_loss_is_printed_on_one_short_line(case):
    """With one weight per sample `explain` and errors would print hundreds of numbers."""
    if case.name == "hard_margin":
        assert repr(case.loss(1.0)) == "hard_margin()"
        return
    rest = {"huberized_hinge": ", tau=0.4", "epsilon_insensitive": ", eps=0.2"}.get(case.name, "")
    for C, text in [
        (2, "2.0"),
        (np.linspace(0.5, 2, 200), "[200 values, 0.5 to 2]"),
        (np.full(200, 1 / 3), "[200 values, all 0.333333]"),
        ([0.5, 1.0, 1 / 3], "[0.5, 1.0, 0.3333333333333333]"),
        ([1.0, 2.0, 3.0, 4.0], "[4 values, 1 to 4]"),
        (cp.Parameter(pos=True), "Parameter((), pos=True)"),
    ]:
        assert repr(case.loss(C)) == str(case.loss(C)) == f"{case.name}(C={text}{rest})"


def test_explain_and_errors_shorten_the_weights_of_samples():
    y, K = labels(200), positive_definite(200)
    risk = ko.risk(K, y, ko.hinge(C=np.linspace(0.5, 2, 200)))
    text = str(ko.explain(cp.Problem(cp.Minimize(risk))))
    assert "risk 0: hinge(C=[200 values, 0.5 to 2]) on 200 points" in text and len(text.splitlines()) < 20
    with pytest.raises(ShapeError) as error:
        ko.risk(K, None, ko.hinge(C=np.linspace(0.5, 2, 200)))
    assert len(str(error.value)) < 200
    with pytest.raises(ParameterError, match=r"tau must be .*got \[200 values, all 1\] \(ndarray\)"):
        ko.huberized_hinge(tau=np.ones(200))

"""A result does not depend on the units of kernels, weights, targets and the radius of a ball.

With kernels c K and loss weights C / c a risk is the risk of K and C divided by c, for any weights: 1/2 |f|^2
is divided by c as well. So are the optimum, both bounds and every dual variable.
"""

from __future__ import annotations

from functools import cache
from itertools import cycle, product

import cvxpy as cp
import numpy as np
import pytest

import kernelopt as ko
from kernelopt.certificates.conic.cones import cone_program
from kernelopt.certificates.conic.equilibration import equilibrated
from kernelopt.structure.expansion import expand
from kernelopt.structure.structure import Structure
from kernelopt.structure.units import units
from tests.every import every

LOSSES = {
    "hinge": lambda c: ko.hinge(1 / c),
    "squared_hinge": lambda c: ko.squared_hinge(1 / c),
    "huberized_hinge": lambda c: ko.huberized_hinge(1 / c, 0.5 * c),
    "hard_margin": lambda c: ko.hard_margin(),
    "logistic": lambda c: ko.logistic(1 / c),
    "squared": lambda c: ko.squared(1 / c),
    "epsilon_insensitive": lambda c: ko.epsilon_insensitive(1 / c),
    "one_class": lambda c: ko.one_class(1 / c),
}
FORMS = ("ball", "steep ball", "trace", "free signs", "caps", "two risks", "bounded risk")
APPLY = {
    "exact": FORMS,
    "cutting-plane": ("ball", "trace", "two risks"),
    "interleaved": ("ball", "steep ball"),
    "newton": ("ball", "steep ball"),
    "block-descent": ("ball", "steep ball"),
    "smooth-dual": ("ball", "steep ball"),
    "mirror-descent": ("trace",),
}
QUICK = {("exact", loss, "ball") for loss in LOSSES} | {
    (method, "squared", APPLY[method][0]) for method in APPLY
}
QUICK |= {("exact", "hinge", form) for form in FORMS}
CONIC = ("exact", "hinge", "free signs")
UNITS = (1e-10, 1e10)
MORE_UNITS = (1e-5, 1e5)
TOLERANCE = 1e-9
GAPS = {"caps": 1e-7, "free signs": 2e-7, "bounded risk": 2e-7}  # what conic multipliers prove; else 1e-8
AGREEMENT = {"bounded risk": 5e-9}  # a point on the boundary of what is allowed, by one of several solvers


def sample(n=14):
    rng = np.random.default_rng(3)
    X = rng.normal(size=(n, 3))
    noisy = X[:, 0] + 0.4 * rng.normal(size=n)
    y = np.sign(noisy)
    y[:2] = 1.0, -1.0
    squares = ((X[:, None] - X[None]) ** 2).sum(2)
    stack = np.exp(-squares / np.array([0.5, 2.0, 20.0])[:, None, None])
    return stack * np.array([1.0, 4.0, 0.5])[:, None, None], y, noisy


def learning(loss, form, c=1.0):
    """The problem with kernels c K and weights C / c, and its constraint on the weights."""
    stack, y, noisy = sample()
    targets = None if loss == "one_class" else noisy if loss in ("squared", "epsilon_insensitive") else y
    n = y.size
    mu = cp.Variable(3, name="mu", nonneg=form != "free signs")
    K = ko.combine(mu, c * stack)
    risk = ko.risk(K, targets, LOSSES[loss](c))
    size = {
        "ball": lambda: ko.lp_ball(mu, 2)[-1],
        "steep ball": lambda: ko.lp_ball(mu, 1.5)[-1],
        "caps": lambda: mu <= np.array([0.5, 1e-3, 2.0]),
    }.get(form, lambda: ko.trace(K) == c * n)()
    constraints = [size, *([K >> 0] if form == "free signs" else [])]
    if form == "two risks":
        return cp.Problem(cp.Minimize(risk + 3 * ko.risk(K, noisy, ko.squared(0.1 / c))), constraints), size
    if form == "bounded risk":  # the objective is that of the price, in no unit of the risk
        worst = float(ko.risk(c * stack[0], targets, LOSSES[loss](c)).value)
        limit = risk * c <= 1.01 * worst * c
        return cp.Problem(cp.Minimize(cp.sum(ko.combine(mu, stack).grams.traces @ mu)), [limit]), limit
    return cp.Problem(cp.Minimize(risk), constraints), size


def applies(method, loss, form):
    """Whether a method takes the loss, and the form is finite for it."""
    return not (
        (method == "smooth-dual" and loss in ("hinge", "hard_margin", "epsilon_insensitive", "one_class"))
        or (method, loss) == ("interleaved", "logistic")
        or (form, loss) == ("bounded risk", "hard_margin")
    )


def cases():
    """A few in a large and a small unit in turn; all in all units where the run is exhaustive."""
    turn = cycle(UNITS[::-1])
    for method, forms in APPLY.items():
        for form, loss in (
            (form, loss) for form, loss in product(forms, LOSSES) if applies(method, loss, form)
        ):
            case, name = (method, loss, form), f"{method}-{loss}-{form}"
            if case in QUICK:
                few = UNITS if case == CONIC or (loss, form) == ("hinge", "ball") else (next(turn),)
                # Two seconds; that the explicit problem is the same in every unit is tested below.
                marks = [pytest.mark.slow] if case == CONIC else []
                yield pytest.param(*case, few, marks=marks, id=name)
            yield pytest.param(*case, UNITS + MORE_UNITS, marks=pytest.mark.exhaustive, id=name + "-all")


@pytest.mark.filterwarnings("ignore::kernelopt.ConvergenceWarning")
@pytest.mark.parametrize(("method", "loss", "form", "sizes"), list(cases()))
def test_the_unit_of_the_kernels_is_none_of_the_result(method, loss, form, sizes):
    share = 1.0 if form != "bounded risk" else 0.0  # that objective does not scale
    slow = (method, loss) == ("mirror-descent", "huberized_hinge")  # its iterations end first
    tol = 1e-7 if slow else TOLERANCE
    largest_gap, agreement = GAPS.get(form, 10 * tol), AGREEMENT.get(form, tol)
    problem, _ = learning(loss, form)
    reference = ko.solve(problem, method, tol=tol)
    assert reference.gap <= largest_gap
    for c in sizes:
        problem, _ = learning(loss, form, c)
        found = ko.solve(problem, method, tol=tol)
        factor = c**share
        assert found.gap <= largest_gap
        assert found.value * factor == pytest.approx(reference.value, rel=agreement)
        assert found.lower * factor <= reference.upper * (1 + 1e-12)
        assert reference.lower <= found.upper * factor * (1 + 1e-12)


@pytest.mark.parametrize("form", ["ball", "trace", "free signs"])
@every("loss", LOSSES)
def test_the_explicit_problem_is_the_same_in_every_unit(loss, form):
    """An even power of two leaves every double of the compiled problem as it is, any other its rounding."""

    def compiled(c):
        structure = Structure(learning(loss, form, c)[0])
        data, _, _ = expand(structure.explicit, units(structure)).problem.get_problem_data("CLARABEL")
        return [data["A"].toarray(), data["b"], data["c"], *([data["P"].toarray()] if "P" in data else [])]

    reference = compiled(1.0)
    for c in (2.0**34, 2.0**-34):
        assert all(np.array_equal(a, b) for a, b in zip(compiled(c), reference, strict=True))


def test_multipliers_and_inner_variables_are_those_of_the_user():
    """d value / d trace: the value is divided by c and the trace multiplied by it."""
    duals, alphas = [], []
    for c in (1.0, 1e5):
        problem, size = learning("huberized_hinge", "trace", c)
        solution = ko.solve(problem, "exact", tol=1e-8)
        risk = problem.objective.args[0]
        assert float(risk.args[0].value) == pytest.approx(solution.value, rel=1e-6)
        duals.append(float(size.dual_value) * c**2)
        alphas.append(solution.alpha * c)
    assert duals[0] != 0 and duals[1] == pytest.approx(duals[0], rel=1e-5)
    assert alphas[1] == pytest.approx(alphas[0], abs=1e-5 * np.abs(alphas[0]).max())


@cache
def value_in_a_ball(method, r):
    stack, y, _ = sample()
    mu = cp.Variable(3, nonneg=True)
    risk = ko.risk(ko.combine(mu, stack / r), y, ko.hinge(2.0))
    return ko.solve(cp.Problem(cp.Minimize(risk), ko.lp_ball(mu, 2, r)), method, tol=TOLERANCE).value


@pytest.mark.parametrize("method", ["exact", "cutting-plane", "interleaved", "block-descent"])
@pytest.mark.parametrize("radius", [1e-10, 1e8])
def test_the_unit_of_the_weights_is_none_of_the_result(method, radius):
    assert value_in_a_ball(method, radius) == pytest.approx(value_in_a_ball(method, 1.0), rel=TOLERANCE)


SCALED = {
    "squared": lambda t: ko.squared(3.0),
    "epsilon_insensitive": lambda t: ko.epsilon_insensitive(3.0 * t, 0.1 * t),
}


@cache
def value_of_targets(method, loss, t):
    stack, _, targets = sample()
    mu = cp.Variable(3, nonneg=True)
    risk = ko.risk(ko.combine(mu, stack), t * targets, SCALED[loss](t))
    return ko.solve(cp.Problem(cp.Minimize(risk), ko.lp_ball(mu, 2)), method, tol=TOLERANCE).value


@pytest.mark.parametrize("method", ["exact", "cutting-plane", "interleaved"])
@every("loss, unit", [("squared", 1e-6), ("epsilon_insensitive", 1e6)])
def test_the_unit_of_the_targets_is_none_of_the_result(method, loss, unit):
    plain = value_of_targets(method, loss, 1.0)
    assert value_of_targets(method, loss, unit) / unit**2 == pytest.approx(plain, rel=TOLERANCE)


@pytest.mark.parametrize("loss", ["hinge", "squared", "logistic"])
@pytest.mark.parametrize("seed", [0, *(pytest.param(s, marks=pytest.mark.slow) for s in range(1, 3))])
def test_free_signs_are_certified_at_any_mean_diagonal(loss, seed):
    rng = np.random.default_rng(seed)
    n = 15
    X = rng.normal(size=(n, 3))
    y = np.sign(X[:, 0] + 0.3 * rng.normal(size=n))
    y[:2] = 1.0, -1.0
    squares = ((X[:, None] - X[None]) ** 2).sum(2)
    stack = 1e5 * np.exp(-squares / np.array([0.5, 1.0, 3.0, 10.0])[:, None, None])
    mu = cp.Variable(4)
    K = ko.combine(mu, stack)
    risk = ko.risk(K, y, getattr(ko, loss)(1.0))
    for trace in (n, 1e5 * n):
        solution = ko.solve(cp.Problem(cp.Minimize(risk), [ko.trace(K) == trace, K >> 0]), "exact", tol=1e-6)
        assert solution.gap <= 1e-6


def regression(seed, n=100, m=18):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4))
    y = 100 * (X[:, 0] + np.sin(2 * X[:, 1]) + 0.2 * rng.normal(size=n))
    grams = ko.Grams.from_kernels([ko.gaussian(w) for w in np.logspace(-1, 1, m)], X)
    mu = cp.Variable(m, nonneg=True)
    risk = ko.risk(ko.combine(mu, grams), y, ko.epsilon_insensitive(10, 0.5))
    return cp.Problem(cp.Minimize(risk), ko.lp_ball(mu, 1.5))


@pytest.mark.parametrize("seed", [*range(2), *(pytest.param(s, marks=pytest.mark.slow) for s in range(2, 8))])
def test_the_interior_point_solves_targets_of_size_a_hundred(seed):
    """Without units it failed on half of these: their numbers were from 1e-2 to 1e5."""
    solution = ko.solve(regression(seed), "exact", tol=1e-6)
    assert solution.solver == "CLARABEL" and solution.gap <= 1e-6


@pytest.mark.parametrize("power", [1.0, 2.0**-40, 2.0**30])
def test_equilibrated_programs_are_the_same_but_for_powers_of_two(power):
    x = cp.Variable(3)
    problem = cp.Problem(
        cp.Minimize(cp.norm(x) + 1e6 * cp.max(x) * power),
        [power * 1e-7 * x[0] + x[1] >= 3.0, cp.pnorm(x, 3, approx=False) <= 1e9],
    )
    program = cone_program(problem)
    units = program.by_column([(x, np.full(3, 2.0**20))], np.nan)
    scaled, columns, rows = equilibrated(program, units)
    for factors in (rows, columns):
        assert (np.frexp(factors)[0] == 0.5).all()
    assert np.array_equal(scaled.A.toarray(), rows[:, None] * program.A.toarray() * columns)
    assert np.array_equal(scaled.b, rows * program.b)
    assert np.array_equal(scaled.c, columns * program.c)
    for cone in program.cones:
        assert not np.ptp(cone.of(rows), axis=1).any()  # what a cone of several rows allows
    sizes = np.maximum(np.abs(scaled.A.toarray()).max(axis=1), np.abs(scaled.b))
    assert sizes.max() <= 2

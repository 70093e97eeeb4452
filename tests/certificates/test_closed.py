"""Closed bounds over prices, ellipsoids and products of sets, against conic solves and exact arithmetic."""

from __future__ import annotations

from fractions import Fraction

import cvxpy as cp
import numpy as np
import pytest
import scipy.sparse as sp

import kernelopt as ko
from kernelopt.certificates.lower import choices
from kernelopt.certificates.lower import minorants as sources
from kernelopt.certificates.lower.closed import best_multiple, closed_bound
from kernelopt.certificates.lower.minorants import minorants
from kernelopt.language.learner import on_labelled
from kernelopt.numerics.ball import Ball
from kernelopt.numerics.dual_lengths import shortfall
from kernelopt.structure.learning import read_parts
from kernelopt.structure.powers import read_power
from kernelopt.structure.structure import Structure
from tests.certificates.cases import relaxed_value
from tests.every import every
from tests.exact_fractions import exact

RNG = np.random.default_rng(1)
X = RNG.normal(size=(10, 2))
Y = np.where(X[:, 0] + 0.3 * RNG.normal(size=10) > 0, 1.0, -1.0)
KS = np.asarray(ko.Grams.from_kernels([ko.gaussian(0.5), ko.gaussian(2.0), ko.linear()], X))
E = np.array([[2.0, 0.8, -0.3], [0.8, 1.5, 0.4], [-0.3, 0.4, 1.0]])
L = np.linalg.cholesky(E).T
TIGHT = {"tol_gap_rel": 1e-9, "tol_gap_abs": 1e-9, "tol_feas": 1e-9}

PRICES = {
    "half a square": lambda t: 0.5 * cp.sum_squares(t),
    "square of a 3-norm": lambda t: 0.5 * cp.square(ko.p_norm(t, 3)),
    "square of the sum": lambda t: 0.5 * cp.square(ko.p_norm(t, 1)),
    "square of the largest": lambda t: cp.norm(t, "inf") ** 2 / 2,
    "square of a 2-norm": lambda t: cp.norm(t, 2) ** 2 / 2,
    "powers of entries": lambda t: 0.5 * cp.sum(cp.power(t, 2.5, approx=False)),
    "weighted squares": lambda t: np.array([1.0, 2.0, 3.0]) @ cp.square(t) + 0.1 * cp.sum(t),
    "elastic net": lambda t: 0.3 * cp.sum(t) + 2 * cp.sum_squares(t),
    "inverses": lambda t: 0.25 * cp.sum(cp.inv_pos(1 - 0.5 * t) - 1),
    "barrier": lambda t: 0.01 * cp.sum(cp.inv_pos(t)) + cp.sum_squares(t),
    "quadratic form": lambda t: 0.5 * cp.quad_form(t, E),
    "squares of an image": lambda t: 0.5 * cp.sum_squares(L @ t),
    "a norm": lambda t: 0.5 * cp.norm(t, 2),
    "a sum": lambda t: 0.5 * cp.sum(t),
}
SETS = {
    "quadratic form": lambda t, K: cp.quad_form(t, E) <= 2,
    "squares of an image": lambda t, K: cp.sum_squares(L @ t) <= 2,
    "norm of an image": lambda t, K: 2 * cp.norm(L @ t) - 1 <= 1,
    "frobenius": lambda t, K: ko.frobenius(K) <= 20,
    "squared ball": lambda t, K: cp.norm(t, 3) ** 2 <= 2,
    "weighted ball": lambda t, K: cp.norm(cp.multiply([1.0, 2.0, 0.5], t), 4) <= 1,
}
# Two atoms on one variable have no closed minimum.
CLOSED_PRICES = [name for name in PRICES if name != "barrier"]


def risk_of(K):
    return ko.risk(K, Y, ko.squared_hinge(1.0))


def priced(name):
    theta = cp.Variable(3, nonneg=True, name="theta")
    return cp.Problem(cp.Minimize(risk_of(ko.combine(theta, KS)) + PRICES[name](theta)))


def bounded(name):
    theta = cp.Variable(3, nonneg=True, name="theta")
    K = ko.combine(theta, KS)
    return cp.Problem(cp.Minimize(risk_of(K) + 0.01 * cp.sum(theta)), [SETS[name](theta, K)])


def alphas_of(structure):
    """The machine's alpha at the solution, near it, too short, too long, and far from it."""
    for copy, user in zip(structure.variables, structure.user_variables, strict=True):
        copy.save_value(user.value)
    (term,) = structure.risks
    best = term.learner.train(on_labelled(term.kernels, 10)).alpha
    rng = np.random.default_rng(0)
    return [best, best * (1 + 1e-4 * rng.normal(size=10)), best / 2, 1.3 * best, Y / 10, rng.normal(size=10)]


CASES = [("priced", name) for name in CLOSED_PRICES] + [("bounded", name) for name in SETS]


@pytest.mark.parametrize(("kind", "name"), CASES, ids=[f"{kind}-{name}" for kind, name in CASES])
def test_the_closed_bound_is_the_minimum_of_the_relaxation(kind, name):
    """The relaxation with the positive part of the minorant, by cvxpy: an independent computation.

    At the best alpha, and at two of the five others, by turns.
    """
    problem = {"priced": priced, "bounded": bounded}[kind](name)
    problem.solve(solver=cp.CLARABEL)
    structure = Structure(problem)
    scale = abs(problem.value)
    alphas, turn = alphas_of(structure), CASES.index((kind, name))
    for k in (0, 1 + turn % 5, 1 + (turn + 2) % 5):
        alpha = alphas[k]
        below = minorants(structure, [alpha])
        found = max(closed_bound(structure, below).value, 0.0)
        wanted = relaxed_value(structure, below, **TIGHT)
        assert found <= wanted + 1e-6 * scale
        assert found >= wanted - 1e-6 * scale
        if k == 0:
            assert found == pytest.approx(problem.value, rel=2e-5)


@pytest.mark.parametrize("name", SETS)
def test_the_multipliers_are_those_of_the_problem(name):
    problem = bounded(name)
    problem.solve(solver=cp.CLARABEL)
    by_cvxpy = float(np.ravel(problem.constraints[0].dual_value)[0])
    solution = ko.solve(problem)
    assert solution.certificate.route == "closed"
    assert by_cvxpy > 1e-3
    assert float(np.ravel(problem.constraints[0].dual_value)[0]) == pytest.approx(by_cvxpy, rel=1e-4)


@pytest.mark.parametrize("kind", ["priced", "bounded"])
def test_no_conic_problem_is_solved(kind, monkeypatch):
    problem = priced("square of a 3-norm") if kind == "priced" else bounded("frobenius")
    problem.solve(solver=cp.CLARABEL)

    def refused(*args):
        raise AssertionError("a conic solve")

    monkeypatch.setattr(choices, "conic_bound", refused)
    certificate = ko.certify(problem)
    assert (certificate.route, certificate.gap < 1e-5) == ("closed", True)


def test_balls_of_two_variables_have_a_multiplier_each():
    """Two disjoint sets: the simplex and the ball of two combinations in one risk."""
    mu, nu = cp.Variable(2, nonneg=True, name="mu"), cp.Variable(1, nonneg=True, name="nu")
    K = ko.combine(mu, KS[:2]) + ko.combine(nu, KS[2:])
    problem = cp.Problem(cp.Minimize(risk_of(K)), [cp.sum(mu) == 1, cp.sum_squares(nu) <= 4])
    problem.solve(solver=cp.CLARABEL, **TIGHT)
    by_cvxpy = [float(np.ravel(c.dual_value)[0]) for c in problem.constraints]
    solution = ko.solve(problem)
    assert solution.certificate.route == "closed"
    assert solution.gap <= 1e-6
    ours = [float(np.ravel(c.dual_value)[0]) for c in problem.constraints]
    assert ours == pytest.approx(by_cvxpy, rel=1e-4, abs=1e-6)


def test_the_entries_that_no_price_holds_need_the_smaller_minorant():
    """theta[2] costs nothing: no share of a minorant that falls in it is a bound."""
    theta = cp.Variable(3, nonneg=True, name="theta")
    problem = cp.Problem(cp.Minimize(risk_of(ko.combine(theta, KS)) + cp.sum_squares(theta[:2])))
    structure = Structure(problem)
    found = closed_bound(structure, minorants(structure, [Y / 10]))
    assert found is None or abs(found.value) < 1e-9


@every("seed", range(6))
@pytest.mark.parametrize("form", ["norm", "quadratic form", "uneven norm"])
def test_the_minimum_over_an_ellipsoid_is_below_every_feasible_value_in_fractions(form, seed):
    """Points next to the minimiser that are feasible in exact arithmetic: the bound may touch, not pass."""
    rng = np.random.default_rng(seed)
    M = rng.normal(size=(6, 4)) * (10.0 ** rng.integers(-6, 7, size=4) if form == "uneven norm" else 1.0)
    x = cp.Variable(4, nonneg=True, name="x")
    matrix = M.T @ M
    matrix = (matrix + matrix.T) / 2
    left = cp.quad_form(x, matrix) if form == "quadratic form" else cp.norm(M @ x)
    g = rng.normal(size=4) * np.linalg.norm(M, axis=0)
    (ball,) = read_parts(Structure(cp.Problem(cp.Minimize(g @ x), [left <= 3])))
    found = -ball.support({ball.variables[0]: Ball(-g)})
    # The minimiser: the least |M x - t| over x >= 0, M't = -g, is proportional to it.
    scale = np.linalg.norm(M, axis=0)
    from scipy.optimize import nnls

    z = nnls(M / scale, np.linalg.lstsq((M / scale).T, -g / scale)[0])[0] / scale
    if not z.any():
        assert found == 0
        return
    point = exact(z)
    if form == "quadratic form":
        square = sum(point[i] * point[j] * Fraction(float(matrix[i, j])) for i in range(4) for j in range(4))
        level = Fraction(3)
    else:
        square = sum(sum(Fraction(float(m)) * e for m, e in zip(row, point, strict=True)) ** 2 for row in M)
        level = Fraction(9)
    inside = Fraction(float(np.sqrt(float(level / square))) * (1 - 2.0**-52))
    assert inside**2 * square <= level
    value = inside * sum(a * b for a, b in zip(exact(g), point, strict=True))
    assert Fraction(found) <= value
    assert found >= float(value) * (1 + 1e-12)


@pytest.mark.parametrize("seed", range(4))
def test_the_minimum_of_inverses_is_below_every_value_in_fractions(seed):
    rng = np.random.default_rng(seed)
    c, a, b = rng.uniform(0.1, 2, 5), np.array([-1.5, 0.5, -0.3, 2.0, -1.0]), rng.uniform(0.5, 2, 5)
    g = np.where(a > 0, 1.0, rng.choice([-1.0, 1.0], 5)) * rng.uniform(0.1, 3, 5)
    x = cp.Variable(5, nonneg=True, name="x")
    problem = cp.Problem(cp.Minimize(g @ x + c @ cp.inv_pos(cp.multiply(a, x) + b)))
    found = closed_bound(Structure(problem), [])
    best = np.clip((np.sqrt(np.abs(c * a / g)) - b) / a, 0, None)
    best[(a < 0) & (g > 0)] = 0
    terms = [exact(each) for each in (g, c, a, b, best)]
    value = sum(q * t + k / (s * t + r) for q, k, s, r, t in zip(*terms, strict=True))
    assert Fraction(found.value) <= value
    assert found.value == pytest.approx(float(value), rel=1e-13)


@pytest.mark.parametrize("r", [1.0, 1.5, 2.0, 3.0])
def test_the_conjugate_of_a_power_in_one_dimension(r):
    """min -b t + c t^r over t >= 0, by its stationary point; for r = 1 zero or nothing."""
    x = cp.Variable(1, nonneg=True, name="x")
    structure = Structure(cp.Problem(cp.Minimize(cp.power(cp.norm(2 * x), r, approx=False) * 3 - 5 * x[0])))
    found = closed_bound(structure, [])
    if r == 1:
        assert -1e-300 < found.value <= 0.0
    else:
        t = (2.5 / (3 * r)) ** (1 / (r - 1))
        assert found.value == pytest.approx(3 * t**r - 2.5 * t, rel=1e-13)


def test_linear_dependent_columns_and_zero_columns_have_a_dual_length():
    """Copies of a column share one bound; a column that is zero bounds nothing that falls."""
    x = cp.Variable(3, nonneg=True, name="x")
    v = np.array([3.0, 4.0])
    length = read_power(cp.norm(np.column_stack([v, v, np.zeros(2)]) @ x))
    slopes = ([10, 5, -1.0], [10, 5, 1e-3], [-1, -1, 0.0])
    found = [length.dual_length({x: Ball(np.array(s))}) for s in slopes]
    assert found == [pytest.approx(2.0, rel=1e-12), np.inf, 0.0]


def free_norm():
    """Over x >= 0 its norm has another support function than over all x."""
    x = cp.Variable(3)
    return cp.Problem(cp.Minimize(x[0]), [cp.norm(x) <= 1])


def bound_and_price():
    """What only the attribute says would be forgotten."""
    theta = cp.Variable(3, bounds=[0, 0.1], name="theta")
    return cp.Problem(cp.Minimize(risk_of(ko.combine(theta, KS)) + cp.sum_squares(theta)))


@pytest.mark.parametrize("make", [free_norm, bound_and_price, lambda: priced("barrier")])
def test_what_has_no_closed_minimum_is_left_to_the_solver(make):
    assert read_parts(Structure(make())) is None


NO_LENGTH = {
    "shifted": lambda x: cp.norm(x - 1),
    "one row": lambda x: cp.norm(cp.vstack([x, 2 * x]), 2, axis=1)[0],
    "singular form": lambda x: cp.quad_form(x, np.ones((3, 3))),
    "3-norm of an image": lambda x: cp.norm(E @ x, 3),
    "exponentials": lambda x: cp.sum(cp.exp(x)),
}


@pytest.mark.parametrize("name", NO_LENGTH)
def test_what_has_no_such_length_is_not_read(name):
    assert read_power(NO_LENGTH[name](cp.Variable(3, nonneg=True))) is None


@pytest.mark.parametrize("at", [0.0, 1e-9, 0.3, 1 - 1e-9])
def test_the_best_multiple_of_a_concave_function_with_an_end(at):
    assert best_multiple(lambda t: t if t <= at else -np.inf) == pytest.approx(at, abs=1e-11)


def test_a_radius_that_cancels_is_moved_up():
    """|x| + 1e8 <= 1e8 + 0.1 in doubles is not quite |x| <= 0.1: the sides are summed exactly."""
    x = cp.Variable(2, nonneg=True, name="x")
    right = 1e8 + 0.1
    problem = cp.Problem(cp.Minimize(-x[0]), [cp.norm(x) + 1e8 <= right])
    found = closed_bound(Structure(problem), [])
    assert Fraction(found.value) <= -(Fraction(right) - Fraction(1e8))
    assert found.value == pytest.approx(-(right - 1e8), rel=1e-6)


def test_constants_may_be_sparse():
    """A row of a sparse matrix is a sparse number where there is one entry."""
    x = cp.Variable(1, nonneg=True, name="x")
    problem = cp.Problem(cp.Minimize(-x[0]), [cp.norm(x) <= cp.Constant(sp.csr_array([[3.0]]))])
    assert closed_bound(Structure(problem), []).value == pytest.approx(-3.0, rel=1e-12)


def test_a_shortfall_bounds_that_of_exact_arithmetic():
    """The rows cancel: products are of size 1e8, and b - A v is of the size of their rounding errors."""
    rng = np.random.default_rng(0)
    for _ in range(200):
        A = rng.normal(size=(3, 6)) * 1e4
        v = rng.normal(size=6) * 1e4
        b = np.array([float(sum(map(Fraction, row * v))) for row in A])
        exact = [
            max(Fraction(bi) - sum(Fraction(a) * Fraction(x) for a, x in zip(row, v, strict=True)), 0)
            for bi, row in zip(b, A, strict=True)
        ]
        found = shortfall(A, v, b)
        assert all(Fraction(f) >= e for f, e in zip(found, exact, strict=True))


def test_a_minorant_is_computed_once_for_each_alpha(monkeypatch):
    """The multipliers of a solution read the minorant of its bound again; another alpha has another one."""
    computed, real = [], sources.minorant
    monkeypatch.setattr(sources, "minorant", lambda *given: computed.append(given) or real(*given))
    t = cp.Variable(3, nonneg=True)
    problem = cp.Problem(cp.Minimize(ko.risk(ko.combine(t, KS), Y, ko.hinge())), ko.lp_ball(t, 2))
    structure = Structure(problem)
    one, other = 0.1 * Y, 0.2 * Y
    first, second = (minorants(structure, [alpha])[0] for alpha in (one, other))
    assert minorants(structure, [one.copy()])[0] is first and minorants(structure, [other])[0] is second
    assert len(computed) == 2 and first.constant.mid != second.constant.mid
    assert minorants(structure, [one], accurate=True)[0] is not first
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            sources, "MOST_PRODUCTS", 0
        )  # as for many points: sums of twice the precision take long
        kept = minorants(structure, [one])[0]
        assert minorants(structure, [one], accurate=True)[0] is kept
    computed.clear()
    solution = ko.solve(problem, "exact")
    assert solution.status == "optimal" and float(problem.constraints[-1].dual_value) > 0
    alphas = [alpha.tobytes() for _, alpha, *_ in computed]
    assert len(set(alphas)) == len(alphas)


def products_rounded_up(x, count=20):
    """A multiple of sum(x) by nested factors whose products in doubles are above the exact ones."""
    factors, product, rng = [], 1.0, np.random.default_rng(1)
    for _ in range(count):
        some = rng.uniform(0.7, 1.4, size=300).tolist()
        excess = [float(Fraction(c * product) - Fraction(c) * Fraction(product)) / product / c for c in some]
        factors.append(some[int(np.argmax(excess))])
        product *= factors[-1]
    e, exact = cp.sum(x), Fraction(1)
    for c in reversed(factors):
        e, exact = c * e, exact * Fraction(c)
    return e, exact


COEFFICIENTS = {
    "sum": lambda x: (0.2 * cp.sum(x) + 1e8 * cp.sum(x) - 1e8 * cp.sum(x), Fraction(0.2)),
    "constants": lambda x: (cp.sum(x) + 0.2 + 1e8 - 1e8, 1 + Fraction(0.2)),
    "matrix": lambda x: (np.ones(3) @ (np.outer([0.2, 1e8, -1e8], np.ones(3)) @ x), Fraction(0.2)),
    "products": products_rounded_up,
}


@every("name", COEFFICIENTS)
def test_coefficients_that_are_sums_and_products_are_bounded_with_their_rounding(name):
    """In doubles 0.2 + 1e8 - 1e8 exceeds 0.2. With targets of zero the risk is zero at the optimum."""
    x = cp.Variable(3, nonneg=True)
    price, exact = COEFFICIENTS[name](x)
    risk = ko.risk(ko.combine(x, [np.eye(2), 2 * np.eye(2), np.ones((2, 2))]), np.zeros(2), ko.squared(1.0))
    found = ko.certify(cp.Problem(cp.Minimize(risk + price), [cp.sum(x) == 1]), weights=[0.25, 0.25, 0.5])
    assert found.route == "closed"
    assert Fraction(found.lower) <= exact <= Fraction(found.upper) and found.gap <= 1e-4


BUDGETS = {  # a constraint of s, and the largest s in exact arithmetic
    "sum": (lambda s: 0.2 * s + 1e8 * s - 1e8 * s <= 1, 1 / Fraction(0.2)),
    "product": (lambda s: 0.1 * (0.3 * s) <= 1, 1 / (Fraction(0.1) * Fraction(0.3))),
    "quotient": (lambda s: s / 3 <= 1, Fraction(3)),
    "equation": (lambda s: s + 0.1 + 0.2 == 1, 1 - Fraction(0.1) - Fraction(0.2)),
}


@every("name", BUDGETS)
def test_budgets_whose_coefficients_are_sums_and_products_bound_with_their_rounding(name):
    """With targets of zero the risk is zero for all weights, and the optimum is minus the largest sum."""
    state, largest = BUDGETS[name]
    x = cp.Variable(3, nonneg=True)
    risk = ko.risk(ko.combine(x, [np.eye(2), 2 * np.eye(2), np.ones((2, 2))]), np.zeros(2), ko.squared(1.0))
    problem = cp.Problem(cp.Minimize(risk - cp.sum(x)), [state(cp.sum(x))])
    found = ko.certify(problem, weights=np.full(3, float(largest) / 3))
    assert found.route == "closed"
    assert Fraction(found.lower) <= -largest <= Fraction(found.upper) and found.gap <= 1e-6


def test_conic_bounds_name_the_sums_that_cvxpy_rounds():
    x = cp.Variable(3)

    def certificate(constraint):
        problem = cp.Problem(cp.Minimize(cp.sum(x)), [constraint, x <= 10])
        problem.solve(solver="CLARABEL")
        return ko.certify(problem)

    found = certificate((0.2 * x + 1e8 * x - 1e8 * x >= 1).set_label("steep"))
    assert found.route == "conic" and found.assumes and "steep" in found.assumes[0]
    exactly = certificate(2 * x - x[::-1] >= 1)  # 2 - 1 is exact
    assert exactly.route == "conic" and exactly.assumes == ()

"""Cutting planes on any problem with risks, against the exact method; their bounds, masters and refusals."""

from __future__ import annotations

import signal
from functools import cache

import cvxpy as cp
import numpy as np
import pytest
from scipy.optimize import linprog

import kernelopt as ko
from kernelopt.certificates.conic.cones import ConeProgram
from kernelopt.structure import relaxed_cones
from tests.certificates.cases import KS, LEARNING, OTHER, Library, N, Y
from tests.problems import CASES, labels, overlap, points, stack, targets

TOL = 1e-5
levels = pytest.mark.parametrize("stabilize", [True, False], ids=["level", "Kelley"])
# The rule of Kelley differs in the next point alone: a problem of every sort of constraint and objective.
KELLEY = ("ball 4/3", "spectrahedron", "free sign", "two risks", "maximised")
# Every exponent and the trace that is at most some number are solved in tests/methods/lp_ball.
BALLS = ("trace at most", "ball 1", "ball 2")
runs = pytest.mark.parametrize(
    ("name", "stabilize"),
    [
        *(pytest.param(name, True, id=f"{name}-level") for name in LEARNING if name not in BALLS),
        *(pytest.param(name, False, id=f"{name}-Kelley") for name in KELLEY),
    ],
)
SHARED = {"free sign"}  # K >> 0 is asked for by the risk too: the multiplier of the user's is only a part


def built(name):
    return LEARNING[name][0](Library)


@cache
def exact(name):
    problem = built(name)
    return problem, ko.solve(problem, "exact")


def kernel(size=3, grams=KS):
    mu = cp.Variable(size, nonneg=True, name="mu")
    return mu, ko.combine(mu, grams)


def multipliers(problem):
    return [np.asarray(c.dual_value, dtype=float) for c in problem.constraints]


# ---------------------------------------------------------------- against the exact method


@cache
def cut(name, stabilize):
    problem = built(name)
    return problem, ko.solve(problem, "cutting-plane", stabilize=stabilize)


@runs
def test_every_problem_with_risks_is_solved(name, stabilize):
    problem, solution = cut(name, stabilize)
    _, known = exact(name)
    assert known.gap <= TOL
    assert (solution.status, problem.status) == ("optimal", cp.OPTIMAL)
    assert solution.gap <= TOL and overlap(solution, known)
    assert solution.value == pytest.approx(known.value, rel=2 * TOL, abs=2 * TOL)
    assert all(v.value is not None and np.isfinite(v.value).all() for v in problem.variables())
    assert all(c.violation().max() <= 1e-8 for c in problem.constraints)
    assert problem.value == pytest.approx(solution.value, rel=1e-9, abs=1e-12)
    slack = 1e-8 * max(1.0, abs(solution.value))  # a machine trained anew may be better, within the bounds
    assert solution.lower - slack <= float(problem.objective.value) <= solution.upper + slack
    for ours, theirs in zip(multipliers(problem), multipliers(exact(name)[0]), strict=True):
        assert np.isfinite(ours).all()
        if name not in SHARED:
            np.testing.assert_allclose(ours, theirs, rtol=1e-2, atol=1e-2)
    check_machines(name, stabilize)
    # The history brackets the optimum ever closer, for `Maximize` too, in the user's objective.
    seconds, lower, upper = np.array(solution.history).T
    slack = 1e-9 * max(1.0, abs(known.value))
    assert len(seconds) == solution.iterations
    assert (np.sort(seconds) == seconds).all()
    assert (np.sort(lower) == lower).all() and (np.sort(-upper) == -upper).all()
    assert lower.max() <= known.upper + slack and upper.min() >= known.lower - slack
    assert upper[-1] - lower[-1] <= TOL * max(1.0, abs(upper[-1]))


def check_machines(name, stabilize):
    """Every risk has the machine that its alpha stands for."""
    problem, solution = cut(name, stabilize)
    found = [written.risk for written in ko.expand(problem).risks]
    assert len(solution.learned) == len(found)
    for risk, machine in zip(found, solution.learned, strict=True):
        np.testing.assert_array_equal(risk.alpha, machine.alpha)
        loss, y = risk.learner.loss, risk.learner.y
        assert loss.project(machine.alpha, y, True) == pytest.approx(machine.alpha, abs=1e-9)
        # What predicts attains the risk, up to ten times the tolerance, where the risk counts.
        assert machine.value >= float(risk.value) * (1 - 1e-8)
        if name != "floored risk":
            assert machine.value <= float(risk.value) * (1 + 10 * TOL)


# ------------------------------------------------------- losses, risks and constraints of all sorts


def constrained(case):
    """A price, two constraints, and an unlabelled point."""
    mu, K = kernel()
    y = case.y(N)[: N - 1]
    risk = ko.risk(K, y, case.loss(1.3))
    cons = [ko.trace(K) <= N, mu[1] <= 3 * mu[0], ko.entries(K, [N - 1], [0]) <= 1.0]
    return cp.Problem(cp.Minimize(risk + 0.1 * cp.sum_squares(mu)), cons)


# A loss enters through its cuts, which are those of every loss on a ball: tests/methods/lp_ball.
@pytest.mark.parametrize(
    "case",
    [case for case in CASES if case.name in ("hinge", "hard_margin", "logistic", "squared", "one_class")],
    ids=lambda case: case.name,
)
def test_every_sort_of_loss_is_cut(case):
    problem = constrained(case)
    known, duals = ko.solve(problem, "exact"), multipliers(problem)
    solution = ko.solve(problem, "cutting-plane")
    assert solution.status == "optimal" and overlap(solution, known)
    for ours, theirs in zip(multipliers(problem), duals, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-2, atol=1e-2)
    assert solution.decision_function().shape == (N,)


def several():
    """Problems with risks in all places, by name."""
    mu, K = kernel()
    x, other = cp.Variable((2, 2), name="x"), cp.Variable(2, nonneg=True, name="other")
    first, second = ko.risk(K, Y, ko.hinge()), ko.risk(K, OTHER, ko.hinge())
    zero, two, eight = (cp.Parameter(nonneg=True, value=value) for value in (0.0, 2.0, 8.0))
    hard, hard_other = ko.risk(K, Y, ko.hard_margin()), ko.risk(K, OTHER, ko.hard_margin())
    own = ko.risk(ko.combine(other, KS[1:]), OTHER, ko.hinge())
    size = [ko.trace(K) <= N]
    rows = {
        "twice": (2 * first, size),
        "twice with an offset": (first + first + 3, size),
        "weight zero": (0 * first + second, size),
        "parameter zero": (zero * first + second, size),
        "only of weight zero": (0 * first + cp.sum(mu), [mu >= 0.1]),
        "parameters": (ko.risk(K, Y, ko.hinge(two)), [ko.trace(K) <= eight, mu[0] >= 0.1]),
        "worst of two": (cp.maximum(first, second), size),
        "exponential": (cp.exp(0.1 * first), size),
        "entropy": (first - cp.sum(cp.entr(mu)), [cp.sum(mu) == 1]),
        "barrier": (first - 0.3 * cp.sum(cp.log(mu)), size),
        "other variables": (first + cp.sum(mu) + cp.sum_squares(x - 1), [x[0] + x[1] == 3]),
        "own kernels": (first + own, [cp.sum(mu) + cp.sum(other) <= 2]),
        "bounded sum": (cp.sum_squares(mu), [first + second <= 9]),
        "slack bound": (cp.sum_squares(mu - 1), [first <= 100]),
        "fixed": (first, [mu == np.array([0.2, 0.3, 0.4])]),
        "hard pair": (hard + hard_other, [ko.trace(K) == N, mu[0] <= 0.5]),
        "hard margin bounded": (ko.trace(K), [hard <= 20]),
        "regression and classes": (first + ko.risk(K, targets(N), ko.squared()), size),
        "constant kernel": (ko.risk(KS[0], Y, ko.hinge()), []),
        "one weight": (ko.risk(mu[0] * KS[0], Y, ko.hinge()) + mu[0], [mu[1:] == 0]),
        "nothing but zero": (first, [cp.sum(mu) <= 0]),
    }
    return {name: cp.Problem(cp.Minimize(value), sets) for name, (value, sets) in rows.items()}


# By default one of each sort: a factor, a kink, a curved function, other variables, a bound, several risks.
QUICK = "twice|weight zero|only of weight zero|worst of two|entropy|other variables|fixed|slack bound"
QUICK = (*QUICK.split("|"), "constant kernel", "nothing but zero")


@pytest.mark.filterwarnings(
    "ignore:.*leaves no kernel with a positive weight:kernelopt.errors.ConditionWarning"
)
@pytest.mark.parametrize(
    "kind", [kind if kind in QUICK else pytest.param(kind, marks=pytest.mark.slow) for kind in several()]
)
def test_risks_in_all_places(kind):
    problem = several()[kind]
    known = ko.solve(problem, "exact")
    solution = ko.solve(problem, "cutting-plane")
    assert solution.status == "optimal" and overlap(solution, known)


@pytest.mark.parametrize("scale", [1e-4, 1e4])
def test_units_of_the_kernels(scale):
    """risk(s K; C / s) = risk(K; C) / s, with a trace s times as large."""
    mu, K = kernel(grams=scale * KS)
    objective = scale * ko.risk(K, Y, ko.hinge(1 / scale))
    problem = cp.Problem(cp.Minimize(objective), [ko.trace(K) <= scale * N, mu[0] <= 0.5])
    plain, K = kernel()
    unscaled = cp.Problem(cp.Minimize(ko.risk(K, Y, ko.hinge())), [ko.trace(K) <= N, plain[0] <= 0.5])
    assert overlap(ko.solve(problem, "cutting-plane"), ko.solve(unscaled, "exact"))


@pytest.mark.parametrize("factor", [1.0, 2.0**100, 2.0**-100])
@pytest.mark.parametrize("scale", [1.0, 2.0**400, 2.0**-400])
def test_units_of_the_values(scale, factor):
    """factor * (risk(s K; C / s) / s^-1), the values of both of which may be far from one."""
    mu, K = kernel(grams=scale * KS)
    risk = ko.risk(K, Y, ko.hinge(1 / scale))
    problem = cp.Problem(cp.Minimize(factor * (risk * scale)), [cp.sum(mu) <= 1, mu[0] <= 0.5])
    solution = ko.solve(problem, "cutting-plane")
    plain, K = kernel()
    unscaled = cp.Problem(cp.Minimize(ko.risk(K, Y, ko.hinge())), [cp.sum(plain) <= 1, plain[0] <= 0.5])
    assert solution.status == "optimal"
    assert solution.value / factor == pytest.approx(ko.solve(unscaled, "exact").value, rel=1e-4)


def test_a_coefficient_between_values_that_is_no_double():
    """A risk of about 1e-177 is multiplied by 1e177 and 1e183: cvxpy's constant was infinity."""
    mu, K = kernel(grams=1e175 * KS)
    objective = 1e183 * (ko.risk(K, Y, ko.hinge(1e-177)) / 1e-177)
    problem = cp.Problem(cp.Minimize(objective), [cp.sum(mu) <= 1])
    with pytest.warns(ko.ConvergenceWarning):  # the gap; an overflow is an error of the tests
        solution = ko.solve(problem, "cutting-plane")
    at_zero = 1e183 * N
    assert 0 <= solution.lower <= solution.upper <= at_zero * (1 + 1e-9)


@pytest.mark.parametrize("twin", ["permuted", "halved", "redundant"])
def test_clumsy_twins(twin):
    """The same problem with kernels permuted, one in two halves, or a constraint that says nothing new."""
    order = [2, 0, 1]
    grams = {"permuted": KS[order], "halved": np.concatenate([KS[:2], KS[2:] / 2, KS[2:] / 2])}.get(twin, KS)
    mu, K = kernel(len(grams), grams)
    cons = [ko.trace(K) == N, *([mu <= 100, ko.trace(K) <= N + 1] if twin == "redundant" else [])]
    solution = ko.solve(cp.Problem(cp.Minimize(ko.risk(K, Y, ko.hinge())), cons), "cutting-plane")
    assert solution.status == "optimal" and overlap(solution, exact("simplex")[1])


# ---------------------------------------------------------- the bound, the level, the master


def diverse(seed, p=1.0, n=40, loss=None):
    """Twenty Gaussian kernels, each on one of ten features."""
    X = points(n, 10, seed)
    y = np.sign(X[:, 0] + X[:, 1] + 0.5 * np.random.default_rng(seed).normal(size=n))
    y[:2] = 1.0, -1.0
    kernels = [ko.on_columns(ko.gaussian(s), [j]) for j in range(10) for s in (0.4, 1.0)]
    theta = cp.Variable(20, nonneg=True)
    K = ko.combine(theta, np.asarray(ko.Grams.from_kernels(kernels, X)))
    return cp.Problem(cp.Minimize(ko.risk(K, y, loss or ko.squared_hinge())), ko.lp_ball(theta, p))


@cache
def reported(seed, stabilize):
    """The problem, its solution and what was reported on the way."""
    reports, problem = [], diverse(seed, n=40 if seed == 1 else 25)
    return problem, ko.solve(problem, "cutting-plane", stabilize=stabilize, callback=reports.append), reports


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1])
def test_the_level_saves_machines(seed):
    """At p = 1 the vertices of the linear master jump about: staying near the best needs fewer steps."""
    (_, level, _), (_, kelley, _) = reported(seed, True), reported(seed, False)
    assert level.status == kelley.status == "optimal" and overlap(level, kelley)
    assert level.iterations <= 0.75 * kelley.iterations


@levels
def test_the_lower_bound_is_never_below_the_model(stabilize):
    """The model by another solver: min v with v >= l_t - 1/2 theta's_t, theta in the simplex."""
    problem, solution, reports = reported(2, stabilize)
    (risk,) = [written.risk for written in ko.expand(problem).risks]
    (theta,) = risk.learner.kernels[0].variables()
    gains, forms, checked = [], [], 0
    for report in reports[:40]:
        if gains:
            A = np.hstack([-np.array(forms) / 2, -np.ones((len(gains), 1))])
            model = linprog(
                np.r_[np.zeros(20), 1.0],
                A,
                -np.array(gains),
                A_eq=[np.r_[np.ones(20), 0.0]],
                b_eq=[1.0],
                bounds=[(0, None)] * 20 + [(None, None)],
            )
            assert report["lower"] >= model.fun - 1e-6 * max(1.0, abs(model.fun))
            checked += 1
        theta.value = report["point"][theta.id]
        alpha = risk.oracle().alpha
        gains.append(risk.learner.loss.dual_value(alpha, risk.learner.y))
        forms.append(risk.learner.kernels[0].grams.forms(alpha))
    assert checked > 10
    lower = [entry[1] for entry in solution.history]
    assert (np.diff(lower[1:]) >= 0).all() and max(lower) <= solution.upper + 1e-9


TAYLOR = [1.2, 4 / 3, 2.0, 4.0]


# Its steps depend on p; a loss enters through the cuts alone, as in the other master.
@pytest.mark.parametrize(
    ("loss", "p", "radius"),
    [
        (ko.hinge(1.3), 1.2, 1.0),
        (ko.squared_hinge(10.0), 4 / 3, 1.0),
        (ko.logistic(), 2.0, 0.3),
        (ko.squared_hinge(10.0), 4.0, 1.0),
    ],
    ids=repr,
)
def test_the_master_of_algorithm_three_finds_the_same(loss, p, radius):
    def on_ball():
        theta, K = kernel(grams=stack(14))
        return cp.Problem(cp.Minimize(2 * ko.risk(K, labels(14), loss) + 3), ko.lp_ball(theta, p, radius))

    taylor = ko.solve(on_ball(), "cutting-plane", master="taylor")
    conic = ko.solve(on_ball(), "cutting-plane", master="exact")
    assert taylor.status == conic.status == "optimal" and overlap(taylor, conic)
    assert overlap(taylor, ko.solve(on_ball(), "exact"))
    assert np.linalg.norm(taylor.weights, p) <= radius * (1 + 1e-12) and taylor.weights.min() >= 0


@pytest.mark.slow
@pytest.mark.parametrize("p", TAYLOR)
def test_the_master_of_algorithm_three_on_many_kernels(p):
    taylor = ko.solve(diverse(1, p, 25), "cutting-plane", master="taylor")
    assert taylor.status == "optimal" and overlap(taylor, ko.solve(diverse(1, p, 25), "exact"))


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("ball 1", "p must be between 1 and infinity, got 1"),
        ("simplex", "p must be between 1 and infinity, got 1"),
        ("ball inf", "p must be between 1 and infinity, got inf"),
        ("two risks", "one risk"),
        ("comparisons", "objective|constraint"),
        ("spectrahedron", "vector"),
        ("with ridge", "p must be between 1 and infinity, got 1"),
        ("maximised", "objective"),
    ],
)
def test_the_master_of_algorithm_three_says_where_it_does_not_apply(name, why):
    with pytest.raises(ko.errors.MethodError, match=f"taylor.*({why}).*exact"):
        ko.solve(built(name), "cutting-plane", master="taylor")


# --------------------------------------------------------------------- what has no solution


def pinned(sign):
    """mu[0] >= 2 and mu[0] <= 1, with a trace that allows either."""
    mu, K = kernel()
    cons = [(mu[0] >= 2).set_label("floor"), (mu[0] <= 1).set_label("ceiling"), ko.trace(K) <= 100]
    return cp.Problem(cp.Minimize(ko.risk(K, Y, ko.hinge())), cons[::sign])


@pytest.mark.parametrize("sign", [1, -1])
@levels
def test_contradictory_constraints_are_proved(sign, stabilize):
    with pytest.raises(ko.InfeasibleError, match="floor.*ceiling|ceiling.*floor") as error:
        ko.solve(pinned(sign), "cutting-plane", stabilize=stabilize)
    assert np.isfinite(error.value.proof["ray"]).all()


@cache
def least_risk():
    _, K = kernel()
    problem = cp.Problem(cp.Minimize(ko.risk(K, Y, ko.hinge())), [ko.trace(K) <= N])
    return ko.solve(problem, "exact").value


@pytest.mark.parametrize("share", [-1.0, 0.5, 0.99])
def test_a_risk_that_cannot_be_so_small_is_infeasible(share):
    """risk <= share of the least risk over the trace: proved by the cuts, as by the exact method."""
    _, K = kernel()
    budget = (ko.risk(K, Y, ko.hinge()) <= share * least_risk()).set_label("budget")
    problem = cp.Problem(cp.Minimize(ko.trace(K)), [budget, ko.trace(K) <= N])
    with pytest.raises(ko.InfeasibleError, match="budget") as error:
        ko.solve(problem, "cutting-plane", max_iterations=100)
    assert error.value.proof is not None
    with pytest.raises(ko.InfeasibleError):
        ko.solve(problem, "exact")


def test_a_risk_that_can_just_be_so_small_is_met():
    _, K = kernel()
    least = least_risk()
    risk = ko.risk(K, Y, ko.hinge())
    problem = cp.Problem(cp.Minimize(ko.trace(K)), [risk <= 1.001 * least, ko.trace(K) <= N])
    known = ko.solve(problem, "exact")
    solution = ko.solve(problem, "cutting-plane")
    assert solution.status == "optimal" and overlap(solution, known)
    assert float(risk.value) <= 1.001 * least * (1 + 1e-9)


@pytest.mark.parametrize("kind", ["weights", "other variable", "maximised"])
def test_an_unbounded_problem_has_no_solution(kind):
    mu, K = kernel()
    x = cp.Variable(name="x")
    risk = ko.risk(K, Y, ko.hinge())
    problem = {
        "weights": lambda: cp.Problem(cp.Minimize(risk - ko.trace(K))),
        "other variable": lambda: cp.Problem(cp.Minimize(risk + x), [cp.sum(mu) <= 1]),
        "maximised": lambda: cp.Problem(cp.Maximize(cp.sum(mu) - risk)),
    }[kind]()
    with pytest.raises((ko.UnboundedError, ko.SolverError)):
        ko.solve(problem, "cutting-plane", max_iterations=100)
    with pytest.raises(ko.UnboundedError):
        ko.solve(problem, "exact")


@pytest.mark.parametrize("method", ["cutting-plane", "block-descent", "interleaved", "exact"])
@pytest.mark.parametrize("bias", [False, True], ids=["no bias", "bias"])
def test_an_infeasible_hard_margin_is_proved(method, bias):
    """Rank one does not separate noisy labels: the hulls of the classes meet."""
    theta, K = kernel(2, np.array([KS[2], 2 * KS[2]]))
    y = np.array([1.0, -1.0] * (N // 2))
    problem = cp.Problem(cp.Minimize(ko.risk(K, y, ko.hard_margin(), bias)), ko.lp_ball(theta, 2))
    with pytest.raises(ko.InfeasibleError, match="separates") as error:
        ko.solve(problem, method)
    alpha = error.value.proof["alpha"]
    assert (y * alpha >= 0).all() and np.abs(alpha).sum() == pytest.approx(2.0)
    assert not bias or alpha.sum() == pytest.approx(0.0, abs=1e-9)
    np.testing.assert_allclose(KS[2] @ alpha, 0.0, atol=1e-4)


# ------------------------------------------------------------------ interrupts and limits


@pytest.mark.parametrize(
    ("name", "k"),
    [("comparisons", 1), ("two risks", 3), ("spectrahedron", 3), ("bounded risk", 1), ("maximised", 3)],
)
def test_ctrl_c_leaves_the_best_point_so_far(name, k):
    calls = []

    def press(report):
        calls.append(report)
        if len(calls) == k:
            signal.raise_signal(signal.SIGINT)

    problem = built(name)
    with pytest.warns(ko.ConvergenceWarning, match="interrupted"):
        solution = ko.solve(problem, "cutting-plane", tol=1e-9, callback=press)
    assert len(calls) == solution.iterations == k
    assert (solution.status, problem.status) == ("inaccurate", cp.OPTIMAL_INACCURATE)
    assert overlap(solution, exact(name)[1])
    assert np.isfinite([solution.lower, solution.upper]).all()
    assert all(c.violation().max() <= 1e-8 for c in problem.constraints)


# ------------------------------------------------------------------------ large matrix inequalities


def test_a_large_matrix_inequality_is_relaxed_to_eigenvectors(monkeypatch):
    """No conic problem has a matrix inequality of order n, and the bounds bracket the exact optimum."""
    n, orders = 30, []
    monkeypatch.setattr(relaxed_cones, "LARGE", n)  # an exact solve at its own value takes twenty seconds
    X = points(n)
    widths = np.array([np.exp(-((X[:, None] - X[None]) ** 2).sum(2) / w) for w in (1.0, 4.0)])
    mu = cp.Variable(3, name="mu")
    K = ko.combine(mu, np.array([*widths, X @ X.T]))
    objective = cp.Minimize(ko.risk(K, labels(n)[:20], ko.hinge()) + cp.sum_squares(mu))
    problem = cp.Problem(objective, [K >> 0, ko.trace(K) == n, mu <= 0.9])
    exact_solution = ko.solve(problem, "exact")
    solve = ConeProgram.solve

    def counted(self, *arguments, **options):
        orders.extend(self.dims.psd)
        return solve(self, *arguments, **options)

    monkeypatch.setattr(ConeProgram, "solve", counted)
    solution = ko.solve(problem, "cutting-plane")
    assert solution.gap <= TOL
    assert overlap(solution, exact_solution)
    assert max(orders) < n
    assert np.linalg.eigvalsh(K.value)[0] >= -1e-13 * n
    Z = problem.constraints[0].dual_value
    assert Z.shape == (n, n) and abs(np.vdot(Z, K.value)) <= 1e-3 * solution.value

"""Predicted sizes and costs of conic problems, and what follows from them."""

from __future__ import annotations

import cvxpy as cp
import numpy as np
import pytest

import kernelopt as ko
from formulations import triplet_lp
from kernelopt.certificates.conic import multipliers
from kernelopt.certificates.conic.cones import cone_program
from kernelopt.conic.costs import ACCEPTED_SECONDS, MAX_BYTES, MAX_SECONDS, Cones, cone_sizes
from kernelopt.conic.ladder import ladder
from kernelopt.grams import Storage
from kernelopt.methods import sizing
from kernelopt.structure import Structure
from kernelopt.structure.counting import ranks
from tests.problems import labels, stack

N = 30
Y = labels(N)
LOSSES = [ko.hinge(), ko.squared(), ko.squared_hinge(), ko.logistic(), ko.epsilon_insensitive()]


def size(problem):
    return sizing.size(Structure(problem))


def gaussians(n, m):
    X = np.random.default_rng(0).normal(size=(n, 4))
    squares = ((X[:, None] - X[None]) ** 2).sum(axis=2)
    return np.array([np.exp(-squares / (2 * w**2)) for w in np.geomspace(0.3, 2, m)])


def weights(m=4, loss=None, p=1):
    mu = cp.Variable(m, nonneg=True)
    K = ko.combine(mu, gaussians(N, m))
    ball = [ko.trace(K) == N] if p == 1 else ko.lp_ball(mu, p)
    return cp.Problem(cp.Minimize(ko.risk(K, Y, loss or ko.hinge())), ball)


def signed(m=4, n=N):
    K = ko.combine(cp.Variable(m), gaussians(n, m))
    return cp.Problem(cp.Minimize(ko.risk(K, labels(n), ko.hinge())), [K >> 0, ko.trace(K) == n])


def psd(n=12):
    K = cp.Variable((n, n), PSD=True)
    far = cp.sum(cp.abs(K - np.outer(labels(n), labels(n))))
    return cp.Problem(cp.Minimize(ko.risk(K, labels(n), ko.hinge()) + far))


def programme():
    """Without a risk: the dual of a soft margin."""
    a, t = cp.Variable(N, nonneg=True), cp.Variable()
    factors = [np.linalg.cholesky(K + 1e-6 * np.eye(N)).T for K in gaussians(N, 3)]
    bounds = [cp.sum_squares(F @ cp.multiply(Y, a)) <= t for F in factors]
    return cp.Problem(cp.Maximize(2 * cp.sum(a) - t), [*bounds, Y @ a == 0, a <= 1])


PROBLEMS = {
    "weights": weights,
    **{type(loss).__name__: lambda loss=loss: weights(loss=loss) for loss in LOSSES[1:]},
    "ball 4/3": lambda: weights(p=4 / 3),
    "ball 2": lambda: weights(p=2),
    "signed": signed,
    "psd": psd,
    "programme": programme,
}


def truth(problem):
    data, _, _ = ko.expand(problem).problem.get_problem_data("CLARABEL")
    return cone_sizes(data["dims"], data["A"])


@pytest.mark.parametrize("name", PROBLEMS)
def test_the_cones_are_counted_as_cvxpy_compiles_them(name):
    problem = PROBLEMS[name]()
    counted, known = size(problem).cones, truth(problem)
    assert sorted(counted.semidefinite) == sorted(known.semidefinite)
    assert counted.second_order == known.second_order
    assert counted.exponential == known.exponential
    assert counted.power == known.power
    assert counted.rows == pytest.approx(known.rows, rel=0.4)
    assert counted.nonzeros == pytest.approx(known.nonzeros, rel=0.4)
    assert 1 / 2.5 < counted.interior_seconds / known.interior_seconds < 2.5


def test_nothing_is_evaluated():
    class Lazy(Storage):
        def gram(self, i):
            raise AssertionError("a kernel was evaluated")

        def block(self, rows):
            return self

    for mu in (cp.Variable(3, nonneg=True), cp.Variable(3)):
        K = ko.combine(mu, ko.Grams(Lazy(3, N)))
        risk = ko.risk(K, Y, ko.hinge())
        expected = size(cp.Problem(cp.Minimize(risk), [cp.sum(mu) == 1, mu <= 0.9]))
        assert expected.seconds > 0


def test_given_matrices_of_low_rank_are_seen():
    rng = np.random.default_rng(0)
    n = 100
    low = [X @ X.T for X in rng.normal(size=(3, n, 5))]
    grams = ko.Grams.from_array(np.array([*low, np.eye(n), np.zeros((n, n))]))
    assert ranks(grams, n) == [5, 5, 5, n, 0]


def test_the_range_of_few_kernels_of_low_rank_is_the_order():
    rng = np.random.default_rng(0)
    n = 100
    K = ko.combine(cp.Variable(3), np.array([X @ X.T for X in rng.normal(size=(3, n, 5))]))
    problem = cp.Problem(cp.Minimize(ko.risk(K, labels(n), ko.hinge())), [K >> 0, ko.trace(K) == n])
    assert sorted(size(problem).semidefinite) == [15, 16] == sorted(truth(problem).semidefinite)


def test_more_of_anything_costs_more():
    base = Cones((40,), 3, 3, 3, 1000, 500, 10000, 1e6)
    for more in (
        Cones((50,), 3, 3, 3, 1000, 500, 10000, 1e6),
        Cones((40, 40), 3, 3, 3, 1000, 500, 10000, 1e6),
        Cones((40,), 3, 6, 3, 1000, 500, 10000, 1e6),
        Cones((40,), 3, 3, 3, 9000, 500, 10000, 1e6),
        Cones((40,), 3, 3, 3, 1000, 500, 90000, 1e6),
        Cones((40,), 3, 3, 3, 1000, 500, 10000, 1e9),
    ):
        assert more.interior_seconds > base.interior_seconds
        assert more.first_order_seconds > base.first_order_seconds


def test_a_closed_form_costs_nothing():
    for problem in (weights(), signed()):
        assert sizing.relaxed_cones(Structure(problem)) is None
        assert size(problem).certification_seconds < size(problem).seconds
    bounded = signed()
    bounded = cp.Problem(bounded.objective, [*bounded.constraints, bounded.variables()[0] <= 1])
    relaxed = sizing.relaxed_cones(Structure(bounded))
    assert relaxed.semidefinite[0] == N  # K >> 0 stays, the risk's own cone goes
    assert sizing.relaxed_cones(Structure(psd())).semidefinite == (12,)
    assert size(bounded).certification_seconds > 2 * relaxed.interior_seconds > 0


def test_the_cost_of_a_certificate_needs_no_count_of_the_explicit_problem():
    for problem in (weights(), weights(p=3), signed(), psd()):
        structure = Structure(problem)
        expected = sizing.certification_seconds(structure)
        assert sizing.size.__wrapped__ not in structure.readings
        assert expected == size(problem).certification_seconds > 0


def test_the_better_solver_is_predicted():
    cones = size(signed()).cones
    assert cones.solve_seconds == cones.interior_seconds
    whole = Cones((150,), rows=11325, columns=10, nonzeros=11325)
    assert whole.first_order_first
    assert whole.solve_seconds == whole.first_order_seconds


# -------------------------------------------------------------------------------- the ladder


def names(attempts):
    return [attempt.name for attempt in attempts if attempt.name in ("CLARABEL", "SCS")]


@pytest.mark.parametrize("order", [20, 70, 85])
def test_few_variables_and_a_minute_are_for_the_interior_point(order):
    """At order 85 Clarabel takes 30 seconds, where SCS took 464 and ended far from the optimum."""
    cones = Cones((order,), rows=order * (order + 1) // 2, columns=20, nonzeros=10 * order**2)
    assert cones.interior_seconds < ACCEPTED_SECONDS
    assert names(ladder(linear=False, cones=cones)) == ["CLARABEL"] * 3 + ["SCS"] * 2


def test_the_design_of_a_kernel_on_85_points_is_for_the_interior_point():
    """Clarabel took 63 s on a machine that others shared; a first-order method first, 464 s."""
    n = 85
    triplets = (np.arange(n)[:, None] + np.arange(3)) % n
    design = triplet_lp.kernel_design(
        gaussians(n, 12), triplets, gamma1=0.05, gamma2=0.02, cone="psd", points=np.arange(n)
    )
    cones = size(design.problem).cones
    assert cones.order == n and 10 < cones.interior_seconds < 60
    assert names(ladder(linear=False, cones=cones))[:3] == ["CLARABEL"] * 3


def test_a_slow_interior_point_is_asked_after_a_quick_answer():
    cones = Cones((100,), rows=5050, columns=20, nonzeros=50500)
    assert ACCEPTED_SECONDS < cones.interior_seconds < MAX_SECONDS
    walked = names(ladder(linear=False, cones=cones))
    assert walked[0] == "SCS"
    assert walked.count("CLARABEL") == 3


def test_the_long_attempt_comes_first_where_it_is_shorter():
    cones = Cones((150,), rows=11325, columns=20, nonzeros=113250)
    assert cones.longest_first_order_seconds < cones.interior_seconds < MAX_SECONDS
    assert names(ladder(linear=False, cones=cones)) == ["SCS"] * 2 + ["CLARABEL"] * 3


def test_a_hopeless_interior_point_is_left_out():
    cones = Cones((400,), rows=80200, columns=20, nonzeros=802000)
    assert cones.interior_memory > MAX_BYTES
    assert names(ladder(linear=False, cones=cones)) == ["SCS"] * 2


def test_callers_who_know_the_order_alone_are_served_as_before():
    assert names(ladder(linear=False, order=70)) == ["CLARABEL"] * 3 + ["SCS"] * 2
    assert names(ladder(linear=False, order=71)) == ["SCS"] * 2


def test_the_bound_asks_the_same_solvers():
    def asked(n):
        K = cp.Variable((n, n), symmetric=True)
        problem = cp.Problem(cp.Minimize(cp.trace(K)), [K >> 0])
        return [program.solver for program, _ in multipliers.attempts(problem, cone_program(problem))]

    assert asked(30) == asked(80) == ["CLARABEL", "SCS"]
    assert asked(110) == ["SCS", "CLARABEL"]


def test_stacks_of_all_kinds_have_a_size():
    for grams in (stack(N), ko.Grams.rank_one(np.random.default_rng(0).normal(size=(N, 6)))):
        m = len(grams)
        mu = cp.Variable(m, nonneg=True)
        problem = cp.Problem(cp.Minimize(ko.risk(ko.combine(mu, grams), Y, ko.hinge())), [cp.sum(mu) <= 1])
        assert 0 < size(problem).seconds < 60
        assert size(problem).memory > 0

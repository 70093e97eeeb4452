"""Certificates from the dual values that a solver of any kind has left in a problem."""

from __future__ import annotations

from types import SimpleNamespace

import cvxpy as cp
import numpy as np
import pytest
from cvxpy.reductions.solvers.solving_chain import SolvingChain

import kernelopt as ko
from formulations import lp_norm
from kernelopt.certificates.conic.cones import ConeProgram, cone_program
from kernelopt.certificates.conic.dual_cones import LocalMetric, barrier_gradient, interior_point
from kernelopt.certificates.conic.exponential_cones import Exponential, Power
from kernelopt.certificates.conic.proofs import corrected_multiplier
from kernelopt.conic.compiled import dual_rows, flat_dual
from kernelopt.errors import ParameterError, ShapeError


@pytest.fixture
def solves(monkeypatch):
    """The conic solves that a certificate makes."""
    made, solve = [], ConeProgram.solve
    monkeypatch.setattr(ConeProgram, "solve", lambda self, **o: made.append(self) or solve(self, **o))
    return made


def max_cut(seed=0, n=8):
    """min 1'y subject to Diag(y) - W >> 0."""
    W = np.random.default_rng(seed).normal(size=(n, n))
    y = cp.Variable(n, name="y")
    return cp.Problem(cp.Minimize(cp.sum(y)), [cp.diag(y) - (W + W.T) >> 0])


def several_blocks(n, seed=0):
    """Three blocks of one order, a smaller one, and one with a row and a column of zeros."""
    x, rng = cp.Variable(4, name="x"), np.random.default_rng(seed)
    blocks = [np.outer(v, v) + np.eye(n) for v in rng.normal(size=(3, n))]
    padded = np.pad(blocks[0][1:, 1:], (0, 1))
    matrices = [x[k] * B - np.eye(n) for k, B in enumerate(blocks)]
    matrices += [x[3] * np.eye(2) - np.ones((2, 2)), x[0] * padded - 0.5 * np.diag(np.arange(n) < n - 1)]
    return cp.Problem(cp.Minimize(cp.sum(x)), [M >> 0 for M in matrices])


def every_cone(seed=0):
    """Equations, inequalities of matrices, two second-order cones, a block, exponential and power cones."""
    rng = np.random.default_rng(seed)
    x, M = cp.Variable(3, name="x"), rng.normal(size=(2, 3))
    S = cp.bmat([[x[0] + 2, x[1]], [x[1], x[2] + 2]])
    constraints = [
        cp.sum(x) == 0.5,
        cp.reshape(cp.hstack([x, -x]), (2, 3), order="F") <= np.arange(1.0, 7.0).reshape(2, 3),
        cp.SOC(cp.hstack([2.0, 3.0]), M.T @ cp.vstack([x[:2], x[1:]]).T, axis=0),
        S >> 0,
        cp.ExpCone(x[0], 1, 3 + x[1]),
        cp.PowCone3D(x[0] + 2, x[1] + 2, x[2], 0.3),
    ]
    return cp.Problem(cp.Minimize(rng.normal(size=3) @ x), constraints)


def linear_programme(seed=0):
    rng = np.random.default_rng(seed)
    x, A = cp.Variable(6, name="x", nonneg=True), rng.uniform(size=(4, 6))
    return cp.Problem(cp.Maximize(rng.uniform(1, 2, size=6) @ x), [A @ x <= 1])


def norms(seed=0):
    """A problem whose auxiliary rows have no dual value that a user sees."""
    rng = np.random.default_rng(seed)
    x, A = cp.Variable(4, name="x"), rng.normal(size=(7, 4))
    fit = cp.sum_squares(A @ x - rng.normal(size=7))
    return cp.Problem(cp.Minimize(fit + cp.norm1(x)), [cp.norm(x, 2) <= 1])


def test_dual_values_stand_where_the_solver_has_them():
    """The multiplier is read back from cvxpy's dual values, for every kind of cone."""
    problem = every_cone()
    form = cone_program(problem).form
    rng = np.random.default_rng(1)
    z = rng.normal(size=form.data["b"].size)
    rows = dual_rows(problem, form)
    seen = np.zeros(z.size, dtype=bool)
    zeros = np.zeros(form.data["c"].size)
    answer = SimpleNamespace(status="Solved", x=zeros, z=z, s=z, obj_val=0.0, solve_time=0.0, iterations=0)
    duals = form.chain.invert(answer, form.inverse).dual_vars
    for constraint, (row, scale) in zip(problem.constraints, rows, strict=True):
        constraint.save_dual_value(duals[constraint.id])
        np.testing.assert_allclose(flat_dual(constraint.dual_value), scale * z[row], rtol=1e-12)
        seen[row] = True
    assert seen.all()


@pytest.mark.parametrize("solver", ["CLARABEL", "SCS"])
@pytest.mark.parametrize("make", [max_cut, every_cone, lambda: several_blocks(4)])
def test_a_certificate_takes_no_solve_where_one_has_left_dual_values(make, solver, solves):
    problem = make()
    options = {"eps_abs": 1e-9, "eps_rel": 1e-9} if solver == "SCS" else {}
    problem.solve(solver=solver, **options)
    certificate = ko.certify(problem)
    assert not solves
    assert certificate.gap <= 1e-5
    assert certificate.lower <= problem.value + 1e-6 * abs(problem.value)


@pytest.mark.parametrize(
    ("make", "solver", "count"), [(max_cut, "CLARABEL", 0), (max_cut, "SCS", 1), (every_cone, "CLARABEL", 0)]
)
def test_a_certificate_compiles_once_at_most(make, solver, count, monkeypatch):
    """Both bounds share a form, the one that a solve by Clarabel has left where there is one."""
    problem = make()
    problem.solve(solver=solver)
    before = [flat_dual(c.dual_value) for c in problem.constraints]
    compilations, apply = [], SolvingChain.apply
    monkeypatch.setattr(SolvingChain, "apply", lambda *args: compilations.append(1) or apply(*args))
    assert ko.certify(problem).gap <= 1e-3
    assert len(compilations) == count
    for constraint, value in zip(problem.constraints, before, strict=True):
        np.testing.assert_array_equal(flat_dual(constraint.dual_value), value)


def test_a_form_that_a_solve_has_left_has_the_present_parameters():
    bound = cp.Parameter(value=1.0)
    x = cp.Variable(name="x")
    problem = cp.Problem(cp.Minimize(x), [x >= bound])
    problem.solve(solver="CLARABEL")
    bound.value = 2.0
    certificate = ko.certify(problem)
    assert certificate.lower == pytest.approx(2.0)
    assert certificate.upper == pytest.approx(2.0)


def test_signs_of_variables_and_maximisation(solves):
    problem = linear_programme()
    problem.solve()
    certificate = ko.certify(problem)
    assert not solves
    assert certificate.gap <= 1e-7
    assert certificate.lower - 1e-7 <= problem.value <= certificate.upper + 1e-7


def test_auxiliary_rows_are_completed(solves):
    problem = norms()
    problem.solve(solver="CLARABEL")
    certificate = ko.certify(problem)
    assert certificate.gap <= 1e-5
    assert certificate.lower <= problem.value * (1 + 1e-7)


@pytest.mark.parametrize("seed", range(5))
def test_multipliers_of_another_problem_give_no_false_bound(seed, solves):
    """The optimum is certified from its own dual values; no bound from wrong ones contradicts it."""
    right, wrong = max_cut(seed), max_cut(seed + 10)
    right.solve(solver="CLARABEL")
    wrong.solve(solver="CLARABEL")
    truth, (own,), (other,) = ko.certify(right), right.constraints, wrong.constraints
    rng = np.random.default_rng(seed)
    lies = [
        other.dual_value,
        -own.dual_value,
        0 * own.dual_value,
        1e8 * own.dual_value,
        rng.normal(size=own.shape),
        own.dual_value * np.nan,
    ]
    for lie in lies:
        found = ko.certify(right, multipliers={own: lie})
        assert found.lower <= truth.upper
        assert found.upper >= truth.lower


def test_tol_asks_for_a_solve(solves):
    problem = max_cut()
    problem.solve(solver="SCS", eps_abs=1e-2, eps_rel=1e-2)
    loose = ko.certify(problem)
    assert not solves
    tight = ko.certify(problem, tol=1e-7)
    assert solves
    assert tight.lower > loose.lower
    made = len(solves)
    ko.certify(problem, tol=10 * loose.gap)
    assert len(solves) == made


def test_multipliers_are_checked():
    problem = max_cut()
    (constraint,) = problem.constraints
    with pytest.raises(ShapeError, match=r"shapes of its dual value"):
        ko.certify(problem, multipliers={constraint: np.ones(3)})
    with pytest.raises(ParameterError, match=r"constraints of the problem"):
        ko.certify(problem, multipliers={problem.variables()[0]: 1.0})
    with pytest.raises(ParameterError, match=r"constraints of the problem"):
        ko.certify(problem, multipliers=[1.0])
    with pytest.raises(ParameterError, match=r"tol must be"):
        ko.certify(problem, tol=-1.0)


def test_without_interior_point_of_the_dual_bounds_are_asked_for():
    """min x_2 over Q [[0, x_2], [x_2, x_1]] Q' >> 0: the optimum is 0, and the dual is infeasible."""
    x = cp.Variable(2, name="x")
    Q = np.array([[0.6, -0.8], [0.8, 0.6]])
    problem = cp.Problem(cp.Minimize(x[1]), [Q @ cp.bmat([[0, x[1]], [x[1], x[0]]]) @ Q.T >> 0])
    Z = Q @ np.array([[1e8, 0.5], [0.5, 1e-8]]) @ Q.T
    given = {"multipliers": {problem.constraints[0]: Z}}
    found = ko.certify(problem, {x: np.zeros(2)}, **given)
    assert found.lower == -np.inf
    assert "the dual has no interior point near: give bounds={x: (-R, R)}" in found.reason
    bounded = ko.certify(problem, {x: np.zeros(2)}, bounds={x: (-10, 10)}, **given)
    assert -0.1 <= bounded.lower <= bounded.upper <= 1e-2


def test_bounds_that_exclude_the_optimum_are_named():
    problem = max_cut()
    problem.solve(solver="CLARABEL")
    (y,) = problem.variables()
    nothing = {problem.constraints[0]: np.zeros((8, 8))}
    wrong = ko.certify(problem, bounds={y: (y.value + 1, np.inf)}, multipliers=nothing)
    assert wrong.lower > wrong.upper and wrong.gap == np.inf
    assert wrong.reason == (
        "the given bounds do not hold at an optimum: a point outside of them is better. Widen bounds="
    )


@pytest.mark.parametrize("size", [1e3, 1e200])
def test_the_correction_of_a_large_multiplier_is_finite(size):
    """No square of a large multiplier overflows."""
    program = cone_program(max_cut(n=5))
    z, columns = interior_point(program), np.arange(program.c.size)
    wanted = program.A.T @ z + 0.1
    found = corrected_multiplier(program, columns, size * z, size * wanted)
    np.testing.assert_allclose(found / size, corrected_multiplier(program, columns, z, wanted), rtol=1e-12)


def test_a_problem_whose_multipliers_one_solver_cannot_find_goes_to_the_next():
    """Clarabel stops early on the equilibrated program of this dual, which has power cones."""
    entry = next(entry for entry in lp_norm.CATALOGUE if entry.name == "lp_norm.block_norm")
    certificate = ko.solve(entry.example(np.random.default_rng(1)).dual(), tol=1e-6).certificate
    assert certificate.gap <= 1e-6


def theta(n, seed):
    """Lovasz's number of a random graph: min t subject to t I - J - sum_ij x_ij E_ij >> 0 over the edges."""
    i, j = np.nonzero(np.triu(np.random.default_rng(seed).random((n, n)) < 0.4, 1))
    t, x, A = cp.Variable(), cp.Variable(i.size), np.zeros((n * n, i.size))
    A[i * n + j, np.arange(i.size)] = A[j * n + i, np.arange(i.size)] = 1.0
    edges = cp.reshape(A @ x, (n, n), order="F")
    return cp.Problem(cp.Minimize(t), [t * np.eye(n) - np.ones((n, n)) - edges >> 0])


@pytest.mark.parametrize(("n", "seed"), [(14, 2), (20, 0), (20, 1), (20, 2)])
def test_rough_multipliers_of_low_rank_prove_a_bound_as_rough(n, seed):
    """A boundary point of the dual cone is moved inside before its residual is removed."""
    problem = theta(n, seed)
    problem.solve(solver="SCS", eps=1e-4)
    certificate = ko.certify(problem)
    assert certificate.gap <= 1e-2
    exact = ko.solve(theta(n, seed)).certificate
    assert certificate.lower <= exact.upper and certificate.upper >= exact.lower


@pytest.mark.parametrize("n", [3, 10])
def test_a_maximum_determinant_has_a_lower_bound(n):
    """The optimum is n + log det S at X = S^-1."""
    S, X = np.cov(np.random.default_rng(0).standard_normal((n, 3 * n))), cp.Variable((n, n), symmetric=True)
    problem = cp.Problem(cp.Minimize(cp.trace(S @ X) - cp.log_det(X)))
    problem.solve(solver="CLARABEL")
    certificate = ko.certify(problem)
    assert certificate.gap <= 1e-6
    optimum = n + np.linalg.slogdet(S)[1]
    assert certificate.lower - 1e-9 <= optimum <= certificate.upper + 1e-9


def exponential_barrier(v):
    x, y, z = v[0] - v[1], -v[0], v[2]
    return -np.log(y * np.log(z / y) - x) - np.log(y) - np.log(z)


def power_barrier(v, a=0.3):
    x, y = v[0] / a, v[1] / (1 - a)
    return -np.log(x ** (2 * a) * y ** (2 - 2 * a) - v[2] ** 2) - (1 - a) * np.log(x) - a * np.log(y)


@pytest.mark.parametrize(
    ("kind", "barrier", "point"),
    [
        (Exponential, exponential_barrier, [-1.0, 1.0, 1.0]),
        (Exponential, exponential_barrier, [-0.7, -0.4, 2.0]),
        (Power, power_barrier, [1.0, 1.0, 0.3]),
        (Power, power_barrier, [0.5, 2.0, -0.7]),
    ],
)
def test_the_inverse_hessian_of_a_barrier_inverts_its_second_differences(kind, barrier, point):
    v, steps = np.array(point), 1e-4 * np.eye(3)
    hessian = [
        [barrier(v + e + f) - barrier(v + e - f) - barrier(v - e + f) + barrier(v - e - f) for f in steps]
        for e in steps
    ]
    (H,) = kind(slice(0, 3), np.array([0.3])).inverse_hessians(v[None])
    np.testing.assert_allclose(H @ np.array(hessian) / 4e-8, np.eye(3), atol=1e-6)


def test_a_ray_in_the_dual_values_proves_infeasibility(solves):
    x = cp.Variable(2, name="x")
    problem = cp.Problem(cp.Minimize(x[0]), [x[0] + x[1] >= 2, x[0] <= 0.5, x[1] <= 1])
    certificate = ko.certify(problem, multipliers=dict(zip(problem.constraints, np.ones(3), strict=True)))
    assert not solves
    assert certificate.lower == certificate.upper == np.inf


def programs():
    yield cone_program(max_cut(n=5))
    yield cone_program(max_cut(n=30))
    yield cone_program(several_blocks(5))
    yield cone_program(several_blocks(26))
    yield cone_program(every_cone())


NAMES = ["block", "large block", "equal blocks", "equal large blocks", "every cone"]


@pytest.mark.parametrize("program", list(programs()), ids=NAMES)
def test_the_local_metric_is_the_inverse_hessian(program):
    """<V, H V> is positive, A'HA agrees with H, and H at the gradient g of the barrier maps s to g."""
    rng = np.random.default_rng(3)
    z = interior_point(program)
    for cone in program.cones:
        if type(cone).__name__ in ("Orthant", "SecondOrder", "Semidefinite"):
            cone.of(z)[:] += 0.1 * rng.normal(size=cone.of(z).shape) / np.sqrt(cone.length)
    H = LocalMetric(program, z)
    A = program.A.tocsr()
    dense = np.column_stack([H(a) for a in A.T.toarray()])
    np.testing.assert_allclose(H.gram(A).toarray(), A.T @ dense, rtol=1e-9, atol=1e-9)
    V = rng.normal(size=z.size)
    assert V @ H(V) > 0
    g = barrier_gradient(program, z)
    at, square = LocalMetric(program, g), max(np.abs(g).max(), 1.0) ** 2  # H is formed at g / sqrt(square)
    for cone in program.cones:
        if type(cone).__name__ in ("Orthant", "SecondOrder", "Semidefinite"):
            np.testing.assert_allclose(square * cone.of(at(z)), cone.of(g), rtol=1e-8, atol=1e-8)

"""Work that a limit cannot interrupt: it is avoided, or begun only where its predicted seconds are left."""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace
from functools import cache

import cvxpy as cp
import numpy as np
import pytest
import scipy.sparse as sp
from cvxpy.atoms.quad_over_lin import quad_over_lin

import kernelopt as ko
from formulations import lanckriet, similarity
from kernelopt.certificates.conic import proofs
from kernelopt.certificates.conic.cones import cone_program
from kernelopt.certificates.conic.dual_cones import LocalMetric
from kernelopt.certificates.conic.proofs import solved_normal_equations
from kernelopt.certificates.lower.minorants import minorants
from kernelopt.conic import calls, process
from kernelopt.errors import InsufficientMemoryError
from kernelopt.grams import stored
from kernelopt.language.learner import Learner
from kernelopt.learner import programs
from kernelopt.losses import Loss
from kernelopt.methods import CuttingPlane, fallback, results
from kernelopt.methods.control import Control
from kernelopt.methods.method import Outcome
from kernelopt.methods.selection import applicable
from kernelopt.methods.sizing import CLOSED_SECONDS
from kernelopt.numerics.decompositions import SECONDS, Seconds, eigenvalues
from kernelopt.running import Call
from kernelopt.structure import units
from kernelopt.structure.combined import coordinates
from kernelopt.structure.learning import read_parts
from kernelopt.structure.nearness import is_orthonormal
from kernelopt.structure.structure import Structure
from tests.methods.test_limits import near


@cache
def spectra(n=12, m=2):
    """Spectra of similarities, learned together: 2n rank-one kernels under norm=inf."""
    rng = np.random.default_rng(0)
    S = rng.normal(size=(m, n, n))
    y = np.resize([1.0, -1.0], n)
    return similarity.restricted_spectral(
        S + S.transpose(0, 2, 1), y, rho=0.5, trace=1.0, fidelity="squared_frobenius"
    )


def at_equal_weights(formulation):
    structure = Structure(formulation.problem)
    for variable in structure.variables:
        variable.save_value(np.full(variable.size, 1 / variable.size))
    return structure


def test_a_minorant_of_several_kernels_forms_no_kernel(monkeypatch):
    structure = at_equal_weights(spectra())
    alpha = np.random.default_rng(1).uniform(0, 0.5, 12) * structure.risks[0].learner.y
    K = [np.asarray(kernel.value) for kernel in structure.risks[0].kernels]
    monkeypatch.setattr(stored.RankOneStorage, "combine", None)
    (below,) = minorants(structure, [alpha])
    point = {v.id: v.value for v in structure.variables}
    feasible = structure.risks[0].loss.project(alpha, structure.risks[0].learner.y, True)
    gains = structure.risks[0].loss.dual_value(feasible, structure.risks[0].learner.y)
    squares = np.array([feasible @ each @ feasible for each in K])
    found = below.constant.mid + sum(slope.mid @ np.ravel(point[v.id]) for v, slope in below.slopes.items())
    assert found == pytest.approx(gains - np.sqrt(squares).sum() ** 2 / 2, rel=1e-9)


def test_a_product_of_large_matrices_is_not_begun_without_the_time_for_it(monkeypatch):
    grams = ko.Grams.rank_one(np.eye(4))
    monkeypatch.setattr(stored, "SECONDS", Seconds(product=1.0))  # a slow machine
    formed = []
    with closing(Call(time_limit=50.0)) as call, call:
        formed.append(grams.combine(np.ones(4)))
    assert not formed
    np.testing.assert_array_equal(grams.combine(np.ones(4)), np.eye(4))
    with pytest.raises(ko.TimeLimitError):
        spectra().solve("mirror-descent", time_limit=50.0)


def test_the_rules_do_not_visit_the_squares_of_all_kernels(monkeypatch):
    problem = spectra(n=40).problem
    visited = []
    monkeypatch.setattr(quad_over_lin, "is_atom_convex", lambda self: visited.append(self) or True)
    fresh = cp.Problem(cp.Minimize(problem.objective.args[0] + 0), problem.constraints)
    assert fresh.is_dcp() and len(visited) < 10


def test_a_risk_is_convex_where_its_weights_are_concave():
    w = cp.Variable(2, nonneg=True)
    grams, y = np.array([np.eye(3), np.ones((3, 3))]), [1, -1, 1]

    def at(weights):
        return ko.risk(ko.combine(weights, grams), y, ko.hinge())

    assert at(w).is_convex() and at(cp.sqrt(w)).is_convex()
    assert not at(cp.square(w)).is_convex()
    assert not at(w).is_concave() and not at(w).is_affine()
    assert cp.Problem(cp.Minimize(at(w))).is_dcp() and not cp.Problem(cp.Maximize(at(w))).is_dcp()
    X = cp.Variable((3, 3), PSD=True)
    assert ko.risk(X, y, ko.hinge()).is_convex()


def test_orthonormal_vectors_are_known_by_images_of_vectors():
    V = np.linalg.qr(np.random.default_rng(0).normal(size=(30, 30)))[0]
    assert is_orthonormal(V)
    assert not is_orthonormal(V[:, :20])
    assert not is_orthonormal(V * (1 + 1e-6))
    V[3, 4] += 1e-6
    assert not is_orthonormal(V)


def test_the_unit_of_a_risk_is_read_from_few_of_many_kernels(monkeypatch):
    evaluated, real = [], Loss.primal
    monkeypatch.setattr(Loss, "primal", lambda self, *a: evaluated.append(0) or real(self, *a))
    found = units.units(Structure(spectra(n=40).problem))
    assert len(evaluated) == 2 + 1  # of f = 0 and of two kernels of forty matrices each
    assert found.risks[0].value > 0


def test_the_programme_of_a_machine_is_compiled_only_where_there_is_time(monkeypatch):
    compiled, real = [], cp.Problem.get_problem_data
    monkeypatch.setattr(
        cp.Problem, "get_problem_data", lambda self, *a, **k: compiled.append(self) or real(self, *a, **k)
    )
    factors, y = [np.eye(4), 2 * np.eye(4)], np.array([1.0, -1, 1, -1])
    with monkeypatch.context() as slow:
        slow.setattr(programs, "DENSE_ENTRY", 10.0)
        with closing(Call(time_limit=100.0)) as call, call:
            programs.dual_program(factors, y, ko.hinge(), True, np.inf)
        assert not compiled
    programs.dual_program(factors, y, ko.hinge(), True, np.inf)
    assert compiled


def test_the_normal_equations_are_formed_only_where_there_is_time(monkeypatch):
    rng = np.random.default_rng(0)
    problem = cp.Problem(cp.Minimize(0), [rng.normal(size=(9, 6)) @ cp.Variable(6) <= 1])
    program = cone_program(problem)
    monkeypatch.setattr(proofs, "SPARSE_PRODUCT", 1.0)
    made = []
    with closing(Call(time_limit=10.0)) as call, call:
        made.append(solved_normal_equations(sp.csr_array(program.A), LocalMetric(program, np.ones(9))))
    assert not made


def test_squares_of_variables_of_any_sign_are_no_powers_and_are_not_read(monkeypatch):
    monkeypatch.setattr("kernelopt.structure.powers.affine", None)
    objective = cp.Minimize(cp.sum_squares(cp.Variable((3, 3), PSD=True) - np.eye(3)))
    assert read_parts(Structure(cp.Problem(objective))) is None


def test_the_eigenvalues_of_zero_take_no_decomposition(monkeypatch):
    monkeypatch.setattr(np.linalg, "eigvalsh", None)
    assert not eigenvalues(np.zeros((4, 4))).any()


def test_seconds_are_reserved_for_the_certificate_of_a_learned_matrix():
    (found,) = [c for c in applicable(Structure(near(60))) if c.method.name == "first-order-dual"]
    assert CLOSED_SECONDS + SECONDS.values * 60**3 < found.certification < found.seconds


def test_a_last_certificate_over_matrices_needs_the_time_for_its_passes(monkeypatch):
    structure, control = Structure(near(8)), Control(1e-5, time_limit=1e-9)
    (X,) = structure.variables
    outcome = Outcome({X.id: np.eye(8)}, [np.zeros(8)])
    given = [(np.zeros(8), None)]
    assert results.certificate_without_solver(structure, outcome, given, control) is not None
    monkeypatch.setattr(results, "PATIENCE", replace(results.PATIENCE, passes=1.0))
    assert results.certificate_without_solver(structure, outcome, given, control) is None
    assert results.certificate_without_solver(structure, outcome, given, Control(1e-5, 1e3)) is not None
    with closing(Control(1e-5, 50.0)) as control, control:
        assert fallback.fallback_outcome(structure, control) is None


def test_the_machines_of_cutting_plane_need_no_training_at_the_limit(monkeypatch):
    structure, control = Structure(spectra().problem), Control(1e-5, time_limit=1000.0)
    method = CuttingPlane(max_iterations=2)
    with control.running(method.name):
        outcome = method.run(method.match(structure), control)
    monkeypatch.setattr(Learner, "train", None)
    found = results.certificate_without_solver(structure, outcome, outcome.machines, control)
    assert found.feasible and np.isfinite(found.upper)


CHILDREN = {
    "MemoryError": "\nraise MemoryError\nimport clarabel, numpy",
    "an abort": "\nos.kill(os.getpid(), 6)\nimport clarabel, numpy",
    "killed": "\nos.kill(os.getpid(), 9)\nimport clarabel, numpy",
}


@pytest.mark.parametrize("child", CHILDREN.values(), ids=CHILDREN)
def test_a_solver_that_had_no_memory_is_not_run_again_in_this_process(child, monkeypatch):
    monkeypatch.setattr(process, "CHILD", process.CHILD.replace("\nimport clarabel, numpy", child))
    monkeypatch.setattr(calls, "SHORT_SETUP", -1.0)
    here: list[int] = []
    monkeypatch.setattr(calls, "clarabel_call", lambda *a: lambda: here.append(0))
    X = cp.Variable((3, 3), PSD=True)
    problem = cp.Problem(cp.Minimize(cp.norm(X - np.diag([1.0, -1, 2]))))
    with pytest.raises(InsufficientMemoryError, match=r"must fit into memory, got .*orders \[3.*SCS"):
        ko.solve(problem, "exact", solver="CLARABEL")
    assert not here


def test_spectral_master_factors_and_certifies_only_in_the_time_that_is_left(monkeypatch):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(12, 3)), np.resize([1.0, -1.0], 12)
    problem = lanckriet.sdp(ko.Grams.from_kernels([ko.gaussian(1.0), ko.linear()], X), y, C=1.0).problem
    (candidate,) = (c for c in applicable(Structure(problem)) if c.method.name == "spectral-master")
    assert candidate.certification > SECONDS.values * len(X) ** 3
    factored = []
    monkeypatch.setattr(coordinates, "SECONDS", Seconds(factors=1.0))  # a slow machine
    monkeypatch.setattr(coordinates.sl.lapack, "dpstrf", lambda *a, **b: factored.append(0))
    with pytest.raises(ko.TimeLimitError, match="spectral-master"):
        ko.solve(problem, "spectral-master", time_limit=50.0)
    assert not factored

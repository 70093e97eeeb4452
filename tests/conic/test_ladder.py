"""Which conic solvers are tried in which order, and how they are named."""

from __future__ import annotations

import sys
from types import SimpleNamespace

import cvxpy as cp
import numpy as np
import pytest

import kernelopt as ko
from kernelopt.conic import ladder as conic
from kernelopt.conic.ladder import SolverAttempt, ladder
from tests.conic.cases import linear_programme, simplex

# ------------------------------------------------------------------------------------------ the ladder


def names(attempts):
    return [attempt.name for attempt in attempts]


def test_clarabel_and_scs_are_always_there():
    for linear, order in ((False, 0), (True, 0), (False, 50), (False, 400)):
        assert {"SCS"} <= set(names(ladder(linear=linear, order=order)))
    assert names(ladder(linear=False, order=0))[0] == "CLARABEL"
    assert names(ladder(linear=False, order=400))[0] == "SCS"


@pytest.mark.parametrize("licensed", [False, True])
def test_mosek_comes_first_with_a_licence_and_not_at_all_without(licensed, monkeypatch):
    real = [*cp.installed_solvers()]
    before = ladder(linear=False, order=20)
    monkeypatch.setattr(conic, "installed_solvers", lambda: [*real, "MOSEK"])
    monkeypatch.setattr(conic, "mosek_is_licensed", lambda: licensed)
    after = ladder(linear=False, order=20)
    assert after == ([SolverAttempt("MOSEK"), *before] if licensed else before)


@pytest.mark.parametrize("licensed", [False, True])
def test_the_licence_is_probed_by_checking_it_out(licensed, monkeypatch):
    class Error(Exception):
        pass

    class Env:
        def __enter__(self):
            return self

        def __exit__(self, *_):
            return None

        def checkoutlicense(self, feature):
            if not licensed:
                raise Error("no licence")

    fake = SimpleNamespace(Env=Env, Error=Error, feature=SimpleNamespace(pts="pts"))
    monkeypatch.setitem(sys.modules, "mosek", fake)
    monkeypatch.setattr(conic, "installed_solvers", lambda: ["CLARABEL", "SCS", "MOSEK"])
    assert conic.mosek_is_licensed.__wrapped__() is licensed


def test_no_mosek_needs_no_probe(monkeypatch):
    monkeypatch.setattr(conic, "installed_solvers", lambda: ["CLARABEL", "SCS"])
    monkeypatch.setitem(sys.modules, "mosek", None)
    assert conic.mosek_is_licensed.__wrapped__() is False


def test_a_solve_is_unchanged_by_an_unlicensed_mosek(monkeypatch):
    before = ko.solve(simplex())
    real = [*cp.installed_solvers()]
    monkeypatch.setattr(conic, "installed_solvers", lambda: ["MOSEK", *real])
    monkeypatch.setattr(conic, "mosek_is_licensed", lambda: False)
    after = ko.solve(simplex())
    assert (after.solver, after.value) == (before.solver, pytest.approx(before.value, abs=1e-8))


def test_highs_solves_linear_programmes():
    assert "HIGHS" in cp.installed_solvers()
    assert names(ladder(linear=True, order=0))[0] == "HIGHS"
    assert "HIGHS" not in names(ladder(linear=False, order=0))
    solution = ko.solve(linear_programme())
    assert solution.solver == "HIGHS"
    assert solution.value == pytest.approx(1.6, abs=1e-7)


def test_cvxopt_is_a_later_opinion_where_it_is_installed():
    attempts = names(ladder(linear=False, order=20))
    assert ("CVXOPT" in attempts) == ("CVXOPT" in cp.installed_solvers())
    if "CVXOPT" in attempts:
        assert attempts[-1] == "CVXOPT"


@pytest.mark.parametrize("solver", ["CLARABEL", "clarabel", "SCS"])
def test_a_named_solver_is_the_only_one(solver):
    assert names(ladder(linear=True, order=0, solver=solver)) == [solver.upper()]


def test_a_time_limit_reaches_every_solver():
    for attempt in ladder(linear=True, order=0, time_limit=7.0):
        if attempt.name in ("CLARABEL", "HIGHS"):
            assert attempt.options["time_limit"] == 7.0
        if attempt.name == "SCS":
            assert attempt.options["time_limit_secs"] == 7.0
    assert all("time" not in str(attempt.options) for attempt in ladder(linear=True, order=0))


def test_rungs_can_be_attempted_one_by_one():
    problem = linear_programme()
    for attempt in ladder(linear=True, order=0):
        result = conic.run_solver(problem, attempt)
        assert (result.attempt, result.failure) == (attempt, "")
        assert result.status in (cp.OPTIMAL, cp.OPTIMAL_INACCURATE)
        assert problem.value == pytest.approx(1.6, abs=1e-4)


@pytest.mark.parametrize("attribute", ["symmetric", "PSD"])
def test_the_squares_of_a_variable_with_attributes_are_kept(attribute):
    """1/2 |X|^2 - <G, X> is least at X = G or its positive part; cvxpy before 1.9.3 forgets the squares."""
    G = np.array([[1.0, 2.0], [2.0, -1.5]])
    values = np.linalg.eigvalsh(G) if attribute == "symmetric" else np.maximum(np.linalg.eigvalsh(G), 0)
    X = cp.Variable((2, 2), **{attribute: True})
    problem = cp.Problem(cp.Minimize(cp.sum_squares(X) / 2 - cp.trace(G @ X)))
    for attempt in (each for each in ladder(linear=False) if each.name in ("CLARABEL", "SCS")):
        result = conic.run_solver(problem, attempt)
        assert result.status in (cp.OPTIMAL, cp.OPTIMAL_INACCURATE), result
        assert problem.value == pytest.approx(-(values @ values) / 2, rel=1e-4)


def test_convexity_errors_are_not_swallowed():
    problem = cp.Problem(cp.Maximize(cp.square(cp.Variable())))
    with pytest.raises(cp.DCPError):
        conic.run_solver(problem, SolverAttempt("CLARABEL"))


# ------------------------------------------------------------------------------------ names of solvers


def test_a_misspelt_solver_is_answered_by_the_name_that_was_meant():
    with pytest.raises(ko.errors.ParameterError, match="'CLARABLE'.*Did you mean CLARABEL") as caught:
        ladder(linear=False, order=0, solver="CLARABLE")
    assert "pip install" not in str(caught.value)


def test_a_name_like_no_other_is_answered_by_those_that_are_installed(monkeypatch):
    monkeypatch.setattr(conic, "installed_solvers", lambda: ["CLARABEL", "SCS"])
    with pytest.raises(ko.errors.ParameterError, match=r"CLARABEL, SCS\. Pass one of these") as caught:
        ko.solve(simplex(), solver="nonsense")
    assert "pip install" not in str(caught.value)


@pytest.mark.parametrize(
    ("solver", "hint"), [("mosek", r'pip install "cvxpy\[MOSEK\]"'), ("COSMO", "cvxpy's manual")]
)
def test_a_real_solver_that_is_not_installed_is_answered_by_how_to_install_it(solver, hint, monkeypatch):
    monkeypatch.setattr(conic, "installed_solvers", lambda: ["CLARABEL", "SCS"])
    with pytest.raises(ko.errors.ParameterError, match=rf"CLARABEL, SCS.*{hint}"):
        ko.solve(simplex(), solver=solver)


@pytest.mark.parametrize("solver", [3, 2.5, ["CLARABEL"], object, b"SCS"])
def test_a_solver_is_a_name_or_an_object_of_cvxpy(solver):
    with pytest.raises(
        ko.errors.ParameterError, match="solver must be the name.*or a cvxpy solver object, got"
    ):
        ko.solve(simplex(), solver=solver)

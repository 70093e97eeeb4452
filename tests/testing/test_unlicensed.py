"""MOSEK without a licence: its task is read as a problem; where it is installed, problems go through it."""

from __future__ import annotations

import sys
from types import SimpleNamespace

import cvxpy as cp
import numpy as np
import pytest

from kernelopt.errors import SolverError
from kernelopt.testing.conformance import run_case
from kernelopt.testing.suite import cases
from kernelopt.testing.unlicensed import SolvedTask, as_problem, check_task
from tests.formulations.test_formulations import ENTRIES
from tests.problems import solved

FREE, INFINITE = -1e30, 1e30


class Task:
    """What a MOSEK task tells of max c'x + <C, X> s.t. A x + <A_i, X> = b, with two columns and X of order 2.

    x_0 is free and x_1 >= 0; the rows say x_0 + x_1 + X_01 + X_10 = 1 and X_00 + X_11 = 1.
    """

    c = (-1.0, -2.0)
    cones = ()

    def getnumvar(self):
        return len(self.c)

    def getnumcon(self):
        return 2

    def getnumbarvar(self):
        return 1

    def getnumcone(self):
        return len(self.cones)

    def getdimbarvarj(self, j):
        return 2

    def getcj(self, j):
        return self.c[j]

    def getatrip(self):
        return [0, 0], [0, 1], [1.0, 1.0]

    def getconbound(self, i):
        return "fx", 1.0, 1.0

    def getvarbound(self, j):
        return ("fr", FREE, INFINITE) if j == 0 else ("lo", 0.0, INFINITE)

    def getbarablocktriplet(self):
        return 3, [0, 1, 1], [0, 0, 0], [1, 0, 1], [0, 0, 1], [1.0, 1.0, 1.0]

    def getbarcblocktriplet(self):
        return 1, [0], [0], [0], [0.5]

    def getcone(self, k):
        return self.cones[k]


def test_a_task_is_read_as_the_problem_that_it_states():
    """With X = [[p, r], [r, 1 - p]]: max - (1 - 2 r) + p / 2 at x_1 = 0, r^2 <= p (1 - p)."""
    read = as_problem(Task())
    value = -solved(read.problem)
    p = np.linspace(0, 1, 200_001)
    assert value == pytest.approx((-1 + 2 * np.sqrt(p * (1 - p)) + p / 2).max(), abs=1e-6)
    assert read.x.value == pytest.approx([1 - 2 * read.bars[0].value[0, 1], 0], abs=1e-4)


CONES = {  # kind, parameter, and a point that lies on the boundary of the cone of MOSEK's manual
    "quad": (0.0, (5.0, 3.0, 4.0)),
    "dexp": (0.0, (2.0 * np.exp(0.3 / -2.0 - 1), 0.3, -2.0)),
    "dpow": (0.25, (0.25 * 2.0, 0.75 * 3.0, 2.0**0.25 * 3.0**0.75)),
}


@pytest.mark.parametrize("kind", CONES)
def test_the_cones_are_those_of_the_manual(kind):
    """With the last two members fixed at a point of the boundary, the least first one is that point's."""
    parameter, point = CONES[kind]

    class OneCone(Task):
        c = (-1.0, 0.0, 0.0)
        cones = ((f"conetype.{kind}", parameter, 3, [0, 1, 2]),)

        def getnumbarvar(self):
            return 0

        def getatrip(self):
            return [0, 1], [1, 2], [1.0, 1.0]

        def getconbound(self, i):
            return "fx", point[i + 1], point[i + 1]

        def getvarbound(self, j):
            return "fr", FREE, INFINITE

        def getbarablocktriplet(self):
            return 0, [], [], [], [], []

    read = as_problem(OneCone())
    solved(read.problem)
    assert float(read.x.value[0]) == pytest.approx(point[0], rel=1e-5)


def test_an_unknown_cone_is_refused():
    strange = SimpleNamespace(getnumcone=lambda: 1, getcone=lambda k: ("conetype.rquad", 0.0, 3, [0, 1, 1]))
    task = Task()
    task.getnumcone, task.getcone = strange.getnumcone, strange.getcone
    with pytest.raises(SolverError, match="cones quad, dexp and dpow, got rquad"):
        as_problem(task)


def test_a_task_that_came_back_changed_is_refused():
    from cvxpy.reductions.cone2cone import affine2direct

    data = {"A": np.zeros((2, 2)), "c": np.array([-1.0, -2.0]), "K_dir": {affine2direct.PSD: [2]}}
    check_task(Task(), data)
    for changed in (
        {"c": np.array([-1.0, -2.5])},
        {"A": np.zeros((3, 2))},
        {"K_dir": {affine2direct.PSD: [3]}},
    ):
        with pytest.raises(SolverError, match="the task read back must have"):
            check_task(Task(), data | changed)


def test_the_solution_is_told_as_mosek_would():
    read = as_problem(Task())
    value = -solved(read.problem)
    words = SimpleNamespace(
        prosta=SimpleNamespace(prim_and_dual_feas="feasible"), solsta=SimpleNamespace(optimal="optimal")
    )
    task = SolvedTask(Task(), read, words)
    x, y, lower = [0.0, 0.0], [0.0, 0.0], [0.0, 0.0, 0.0]
    task.getxxslice(None, 0, 2, x)
    task.gety(None, y)
    task.getbarxj(None, 0, lower)
    X = read.bars[0].value
    assert task.getprimalobj(None) == pytest.approx(value) and task.getnumcon() == 2
    assert (task.getprosta(None), task.getsolsta(None)) == ("feasible", "optimal")
    assert lower == pytest.approx([X[0, 0], X[1, 0], X[1, 1]]) and x == pytest.approx(read.x.value)
    assert sum(y) == pytest.approx(value, abs=1e-6)  # the dual objective b'y


@pytest.mark.skipif("MOSEK" not in cp.installed_solvers(), reason="MOSEK is not installed")
@pytest.mark.parametrize(
    "name", ["lanckriet.sdp", "lp_norm.primal", "lp_norm.tikhonov", "triplet_lp.kernel_design"]
)
def test_without_a_licence_the_task_makes_the_round_trip(name, monkeypatch):
    monkeypatch.setattr(sys.modules[run_case.__module__], "mosek_is_licensed", lambda: False)
    (case,) = (case for case in cases(entries=ENTRIES) if case.name == name)
    row = run_case(case, "MOSEK")
    assert row.verdict == "no licence" and "written and read back" in row.why
    assert row.error <= 1e-5 and row.gap <= 1e-4 and row.infeasibility <= 1e-6

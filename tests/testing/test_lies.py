"""Solvers that lie, on problems whose optimum is known: every lie is caught, and no bracket is false."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from cvxpy.reductions.solvers.conic_solvers.clarabel_conif import CLARABEL

from kernelopt.testing.conformance import run_case
from kernelopt.testing.suite import cases
from tests.every import every
from tests.formulations.test_formulations import ENTRIES

CASES = cases(entries=ENTRIES)
FEW = ("lp_norm.primal", "lanckriet.alignment", "triplet_lp.kernel_design")
PATHOLOGICAL = ("no strong duality", "unbounded log-determinant")
INFEASIBLE = [name for name in CASES if name.endswith("infeasible")]


class Liar(CLARABEL):
    """Clarabel, with a change of what it returns."""

    def __init__(self, lie):
        self.lie = lie

    def name(self):
        return "LIAR"

    def solve_via_data(self, data, warm_start, verbose, solver_opts, solver_cache=None):
        def solve(**changes):
            options = {} if "options" not in changes else changes.pop("options")
            found = CLARABEL.solve_via_data(self, {**data, **changes}, False, False, options)
            x, s, z = (np.array(v) for v in (found.x, found.s, found.z))
            return SimpleNamespace(
                x=x, s=s, z=z, obj_val=found.obj_val, status="Solved", iterations=1, solve_time=0.0
            )

        answer = solve()
        return self.lie(answer, data, solve) or answer


def change(**entries):
    """The lie that replaces parts of an answer by functions of it."""

    def lie(answer, data, solve):
        for name, of in entries.items():
            setattr(answer, name, of(answer))

    return lie


def stale(answer, data, solve):
    """The point of another problem, with the value of this one."""
    tilted = {key: data[key] * np.linspace(0.7, 1.4, data[key].size) for key in "bc"}
    other = solve(**tilted).x
    answer.x = other if np.isfinite(other).all() else 0.9 * answer.x


def unfinished(answer, data, solve):
    """Three iterations, said to be enough."""
    return solve(options={"max_iter": 3})


LIES = {
    "wrong value": change(obj_val=lambda a: 1.5 * a.obj_val + 1),
    "value shifted by 1e-3": change(obj_val=lambda a: a.obj_val * (1 + 1e-3)),
    "negated value": change(obj_val=lambda a: -a.obj_val - 1),
    "value is NaN": change(obj_val=lambda a: np.nan),
    "value is infinite": change(obj_val=lambda a: -np.inf),
    "feasible, said to be infeasible": change(status=lambda a: "PrimalInfeasible"),
    "bounded, said to be unbounded": change(status=lambda a: "DualInfeasible"),
    "point is NaN": change(x=lambda a: np.full_like(a.x, np.nan)),
    "point is zero": change(x=lambda a: 0 * a.x),
    "point swapped": change(x=lambda a: a.x[::-1].copy()),
    "point shifted by 1e-3": change(x=lambda a: a.x + 1e-3 * (1 + np.abs(a.x))),
    "point scaled": change(x=lambda a: 1.5 * a.x),
    "point and value scaled": change(x=lambda a: 2 * a.x, obj_val=lambda a: 2 * a.obj_val + 1),
    "huge numbers": change(x=lambda a: 1e300 * np.sign(a.x), z=lambda a: 1e300 * a.z),
    "stale point": stale,
    "unfinished": unfinished,
    "wrong shape": change(x=lambda a: a.x[:-1]),
    "multipliers are NaN": change(z=lambda a: np.full_like(a.z, np.nan)),
    "multipliers truncated": change(z=lambda a: np.where(np.arange(a.z.size) < a.z.size // 2, a.z, 0)),
    "multipliers negated": change(z=lambda a: -a.z),
    "primal and dual swapped": change(
        x=lambda a: np.resize(a.z, a.x.size), z=lambda a: np.resize(a.x, a.z.size)
    ),
}
lies = every("lie", LIES)
# With these the value and the point stay right, which a certificate may say.
OF_MULTIPLIERS = {lie for lie in LIES if lie.startswith("multipliers")}


def judged(name, lie):
    """The row of a lie: no bracket is false, and what is certified is right."""
    row = run_case(name, CASES[name], Liar(LIES[lie]))
    assert row.verdict != "false bracket", row
    assert row.verdict != "certified" or (row.error <= 1e-4 and row.gap <= 1e-4), row
    return row


def test_there_are_a_dozen_lies_and_an_honest_answer_is_certified():
    assert len(LIES) >= 12
    honest = Liar(lambda answer, data, solve: None)
    assert {run_case(name, CASES[name], honest).verdict for name in FEW} == {"certified"}


@pytest.mark.parametrize("name", FEW)
@lies
def test_a_lie_is_caught(name, lie):
    assert judged(name, lie).verdict != "certified" or lie in OF_MULTIPLIERS


OTHERS = [name for name in CASES if name not in (*FEW, *PATHOLOGICAL)]


@pytest.mark.slow
@pytest.mark.parametrize(("k", "name"), list(enumerate(OTHERS)), ids=OTHERS)
def test_nothing_wrong_is_certified_on_any_problem(k, name):
    """A sixth of the lies to each problem, by turns. Some are none: a problem may be free of scale."""
    for lie in list(LIES)[k % 6 :: 6]:
        judged(name, lie)


@pytest.mark.slow
@pytest.mark.parametrize("name", PATHOLOGICAL)
@lies
def test_what_solvers_cannot_solve_is_never_reported_as_solved(name, lie):
    """The strong-duality failure and the unbounded log-determinant, whatever is said of them."""
    row = run_case(name, CASES[name], Liar(LIES[lie]))
    assert row.verdict not in ("certified", "proved infeasible"), row


@pytest.mark.parametrize("solver", ["CLARABEL", "SCS", "CVXOPT"])
@pytest.mark.parametrize("name", PATHOLOGICAL)
def test_no_solver_solves_them(name, solver):
    row = run_case(name, CASES[name], solver)
    assert row is None or row.verdict not in ("certified", "proved infeasible"), row


@pytest.mark.parametrize("name", INFEASIBLE)
def test_an_infeasible_problem_is_never_certified(name):
    """A status that says optimal is refuted; one that says infeasible is proved."""
    claimed = change(status=lambda a: "Solved", obj_val=lambda a: 1.0, x=lambda a: np.ones_like(a.x))
    assert run_case(name, CASES[name], Liar(claimed)).verdict == "refuted"
    dual = CASES[name]()[0].is_dual
    said = change(status=lambda a: "DualInfeasible" if dual else "PrimalInfeasible")
    assert run_case(name, CASES[name], Liar(said)).verdict == "proved infeasible"

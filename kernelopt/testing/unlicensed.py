"""MOSEK without a licence: the task that it would solve is written, read back, and solved by Clarabel.

This tests the translation of a problem into a MOSEK task, and that of a MOSEK solution back into the problem.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import cvxpy as cp
import numpy as np
from cvxpy.reductions.cone2cone import affine2direct

from kernelopt.conic.ladder import SolverAttempt, run_solver
from kernelopt.errors import SolverError
from kernelopt.testing.answers import Answer, measured_answer
from kernelopt.testing.conic_form import ConicForm
from kernelopt.testing.residuals import FAILURES
from kernelopt.validation import Array

MINUS_INFINITY = -1e30  # of a bound, in MOSEK


def rebuilt_answer(form: ConicForm) -> Answer:
    """Return the answer to the task that MOSEK would have been given, solved by Clarabel.

    cvxpy builds the task and writes it; it is read back, solved as it was read, and the solution goes
    through cvxpy's own reading of MOSEK's solutions.
    """
    form.clear()
    clock = time.perf_counter()
    try:
        with np.errstate(all="ignore"):
            solve_written_task(form)
    except FAILURES as error:
        spent, failure = time.perf_counter() - clock, f"{type(error).__name__}: {error}"
        return Answer("failed", "none", np.nan, np.nan, np.nan, "", np.nan, spent, None, failure=failure)
    spent = time.perf_counter() - clock
    value = float(form.conic.solution.opt_val)
    answer = measured_answer(form, "no licence", "value", value, spent)
    said = "the task was built, written and read back; Clarabel solved it"
    return answer if answer.failure else replace(answer, failure=said)


def solve_written_task(form: ConicForm) -> None:
    """Write the task to a file, read it back, solve it by Clarabel, and fill the conic problem.

    Raises
    ------
    SolverError
        If the file does not hold the task that was built, or Clarabel does not solve it.
    """
    import mosek

    data, chain, inverse = form.conic.get_problem_data("MOSEK")
    with TemporaryDirectory() as folder:
        path = Path(folder) / "problem.task"
        try:
            chain.solver.solve_via_data(data, False, False, {"save_file": str(path)})
        except mosek.Error:  # no licence: after the file was written, before anything was solved
            if not path.exists():
                raise SolverError("MOSEK wrote no task. Run it with verbose=True.") from None
        with mosek.Task() as task:
            task.readdata(str(path))
            check_task(task, data)
            problem = as_problem(task)
            tried = run_solver(problem.problem, SolverAttempt("CLARABEL"))
            if tried.status not in (cp.OPTIMAL, cp.OPTIMAL_INACCURATE):
                raise SolverError(f"Clarabel left the task {tried.status}: {tried.failure}. Try another.")
            options = {"accept_unknown": False, "bfs": False, "save_file": str(path)}
            form.conic.unpack_results(
                {"task": SolvedTask(task, problem, mosek), "solver_options": options}, chain, inverse
            )


@dataclass(frozen=True)
class TaskProblem:
    """A task as a cvxpy problem, which minimises minus the objective of the task.

    `bars` are the matrix variables X_j, which MOSEK calls "bar variables", and `rows` the equalities.
    """

    problem: cp.Problem
    x: cp.Variable
    bars: tuple[cp.Variable, ...]
    rows: cp.Constraint


def check_task(task: Any, data: dict[str, Any]) -> None:
    """Raise unless the task has the sizes and the objective of the data that it was built from."""
    wanted = (data["A"].shape[0], data["A"].shape[1], list(data["K_dir"][affine2direct.PSD]))
    orders = [int(task.getdimbarvarj(j)) for j in range(task.getnumbarvar())]
    got = (task.getnumcon(), task.getnumvar(), orders)
    objective = np.array([task.getcj(j) for j in range(task.getnumvar())])
    if got != wanted or not np.array_equal(objective, np.ravel(data["c"])):
        raise SolverError(
            f"the task read back must have (rows, columns, orders) = {wanted}, got {got}. Report it to MOSEK."
        )


def as_problem(task: Any) -> TaskProblem:
    """Return the task, max c'x + <C, X> over A x + <A_i, X> = b and cones, as a cvxpy problem."""
    columns, count = int(task.getnumvar()), int(task.getnumcon())
    x = cp.Variable(columns, name="x") if columns else cp.Variable(1, name="x")
    orders = [int(task.getdimbarvarj(j)) for j in range(task.getnumbarvar())]
    bars = tuple(cp.Variable((d, d), symmetric=True, name=f"X{j}") for j, d in enumerate(orders))
    A = np.zeros((count, x.size))
    rows, cols, values = task.getatrip()
    np.add.at(A, (np.asarray(rows, dtype=int), np.asarray(cols, dtype=int)), values)
    b = np.array([task.getconbound(i)[1] for i in range(count)])
    c = np.array([task.getcj(j) for j in range(columns)] or [0.0])
    left, gain = A @ x, c @ x
    _, *coefficients = task.getbarablocktriplet()
    for j, X in enumerate(bars):
        weights = np.zeros((count, X.size))
        for i, block, k, m, value in zip(*coefficients, strict=True):
            if block == j:  # entry (k, m) of a symmetric matrix, by its lower triangle
                weights[i, k + m * X.shape[0]] = weights[i, m + k * X.shape[0]] = value
        left = left + weights @ cp.vec(X, order="F")
        gain = gain + bar_gain(task, j, X)
    equal = (left == b).set_label("rows")
    constraints = [equal, *[(X >> 0) for X in bars], *bounds_of(task, x), *cones_of(task, x)]
    return TaskProblem(cp.Problem(cp.Minimize(-gain), constraints), x, bars, equal)


def bar_gain(task: Any, j: int, X: cp.Variable) -> cp.Expression:
    """Return <C_j, X_j>."""
    C = np.zeros(X.shape)
    _, blocks, rows, cols, values = task.getbarcblocktriplet()
    for block, k, m, value in zip(blocks, rows, cols, values, strict=True):
        if block == j:
            C[k, m] = C[m, k] = value
    return cp.sum(cp.multiply(C, X))


def bounds_of(task: Any, x: cp.Variable) -> list[cp.Constraint]:
    """Return the lower bounds of the columns. MOSEK writes minus infinity as -1e30."""
    low = np.array([task.getvarbound(j)[1] for j in range(task.getnumvar())])
    bounded = np.flatnonzero(low > MINUS_INFINITY / 10)  # a margin for the rounding of a file
    return [x[bounded] >= low[bounded]] if bounded.size else []


def cones_of(task: Any, x: cp.Variable) -> list[cp.Constraint]:
    """Return the cones of the columns, by the definitions of MOSEK's manual.

    * quad: x1 >= |(x2, x3, ...)|;
    * dexp: x1 >= -x3 exp(x2 / x3 - 1), x3 <= 0;
    * dpow with the parameter a: (x1 / a)^a (x2 / (1 - a))^(1 - a) >= |x3|.
    """
    found: list[cp.Constraint] = []
    for k in range(task.getnumcone()):
        kind, parameter, _, members = task.getcone(k)
        name = str(kind).rpartition(".")[2]
        u = [x[int(j)] for j in members]
        if name == "quad":
            found.append(cp.SOC(u[0], cp.hstack(u[1:])))
        elif name == "dexp":
            found.append(cp.ExpCone(-u[1], -u[2], np.e * u[0]))
        elif name == "dpow":
            found.append(cp.PowCone3D(u[0] / parameter, u[1] / (1 - parameter), u[2], parameter))
        else:
            raise SolverError(f"the task must have cones quad, dexp and dpow, got {name}. Extend `cones_of`.")
    return found


class SolvedTask:
    """A stand-in for a task that MOSEK has solved, with the solution of another solver.

    It has the methods by which cvxpy reads a solution; all else is that of the task.
    """

    def __init__(self, task: Any, problem: TaskProblem, mosek: Any) -> None:
        self.task, self.solved, self.mosek = task, problem, mosek

    def __getattr__(self, name: str) -> Any:
        return getattr(self.task, name)

    def __exit__(self, *_: object) -> None:
        """Do not close the task: `solve_written_task` does."""

    def getprosta(self, _: Any) -> Any:
        """Return the problem status "feasible"."""
        return self.mosek.prosta.prim_and_dual_feas

    def getsolsta(self, _: Any) -> Any:
        """Return the solution status "optimal"."""
        return self.mosek.solsta.optimal

    def getprimalobj(self, _: Any) -> float:
        """Return the objective of the task."""
        return -float(self.solved.problem.solution.opt_val)

    def getxxslice(self, _: Any, first: int, last: int, out: list[float]) -> None:
        """Fill in the values of columns; cvxpy passes a length for the last one where it starts at zero."""
        values: Array = np.asarray(self.solved.x.value)
        out[:] = values[first:last].tolist()

    def gety(self, _: Any, out: list[float]) -> None:
        """Fill in the multipliers of the rows."""
        out[:] = np.ravel(self.solved.rows.dual_value).tolist()

    def getbarxj(self, _: Any, j: int, out: list[float]) -> None:
        """Fill in the lower triangle of a matrix, column by column."""
        value = np.asarray(self.solved.bars[j].value)
        out[:] = [value[k, m] for m in range(len(value)) for k in range(m, len(value))]

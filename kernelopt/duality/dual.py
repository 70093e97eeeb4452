"""`Dual`: the dual of a cvxpy problem, with the way back to the primal."""

from __future__ import annotations

import warnings
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import cvxpy as cp
import numpy as np
from cvxpy.constraints.constraint import Constraint
from cvxpy.reductions.solution import Solution

from kernelopt.duality.board import Stated, on_the_board
from kernelopt.duality.check import Check, checked, error_of
from kernelopt.duality.equations import Swept
from kernelopt.duality.layout import latex_problem, problem_text
from kernelopt.duality.naming import Shown, shown_pair
from kernelopt.duality.residuals import set_value
from kernelopt.duality.solving import ACCURATE, USABLE, optimize, put
from kernelopt.errors import ConvergenceWarning, InfeasibleError, ParameterError, UnboundedError
from kernelopt.numerics.nearest_correlation import positive_part
from kernelopt.structure.structure import Structure
from kernelopt.structure.trees import short
from kernelopt.threads import COMPILING
from kernelopt.validation import Array


class Multipliers(dict[Constraint, Any]):
    """Values of multipliers by constraint; a label finds those of the first constraint that has it.

    As text the keys are the labels of the constraints, and where there is none their own text.
    """

    def __missing__(self, label: object) -> Any:
        for constraint, value in self.items():
            if isinstance(label, str) and constraint.label == label:
                return value
        raise KeyError(label)

    def __repr__(self) -> str:
        named = (f"{c.label or short(c)!r}: {value!r}" for c, value in self.items())
        return f"{{{', '.join(named)}}}"


@dataclass(frozen=True, eq=False)
class Made:
    """What a dual is made of.

    Attributes
    ----------
    structure : Structure
        The primal.
    swept : Swept
        The dual as the sweep states it; its solution has the primal point.
    states : tuple of (rule, Stated)
        What stands on the board after each rule; the first one has None for a rule.
    parametric : bool
        Whether parameters stay parameters.
    """

    structure: Structure
    swept: Swept
    states: tuple[tuple[Any, Stated], ...]
    parametric: bool

    @property
    def state(self) -> Stated:
        """What stands on the board in the end."""
        return self.states[-1][1]


class Dual(cp.Problem):  # type: ignore[misc]
    """The dual of a problem, a `cp.Problem`; made by `dualize`.

    Attributes
    ----------
    primal : cp.Problem
        The problem of which it is the dual.
    meaning : dict from the name of a variable to str
        What each variable is the multiplier of.
    """

    def __init__(self, objective: Any, constraints: Any = None, *, made: Made | None = None) -> None:
        super().__init__(objective, constraints)
        self._made = made
        self._solved_by_ladder = False

    @classmethod
    def of(cls, structure: Structure, swept: Swept, parametric: bool) -> Dual:
        """Return the dual of a problem that has been swept."""
        made = Made(structure, swept, tuple(on_the_board(swept)), parametric)
        told = made.state.problem()
        value = told.objective.args[0]
        objective = cp.Minimize(-value) if structure.maximize else cp.Maximize(value)
        return cls(objective, [c for c in told.constraints if not is_trivial(c)], made=made)

    @property
    def made(self) -> Made:
        """What the dual is made of."""
        if self._made is None:
            raise ParameterError(
                "a Dual must come from dualize, got one made from parts of it. Call "
                "kernelopt.dualize(problem)."
            )
        return self._made

    @property
    def primal(self) -> cp.Problem:
        """The problem of which this is the dual."""
        return self.made.structure.problem

    @property
    def meaning(self) -> dict[str, str]:
        """What each variable is the multiplier of, by the name of the variable."""
        names = {variable.name() for variable in self.variables()}
        return {name: of for name, of in self.made.swept.new.meaning.items() if name in names}

    @property
    def _written(self) -> Shown:
        with COMPILING:
            return shown_pair(self.made.structure, self, self.made)

    def __str__(self) -> str:
        if self._made is None:  # made from parts, as `cp.Problem` makes copies
            return str(super().__str__())
        written = self._written
        return problem_text(written.dual, written.of_dual)

    def _repr_latex_(self) -> str:
        written = self._written
        return latex_problem(written.dual, legend=written.of_dual)

    def solve(self, *args: Any, **options: Any) -> Any:
        """Solve the dual and return its value; without arguments by several solvers.

        One solver after another is tried until the recovered point and the dual have a gap of 1e-6, and the
        best answer is kept. Its status is `optimal` where `check` shows that, whatever the solver says, and
        else `optimal_inaccurate`, with a `ConvergenceWarning`. With arguments, such as `solver=`, it is
        cvxpy's `Problem.solve`.

        Raises
        ------
        SolverError
            If no solver has an answer. As in cvxpy, an infeasible or unbounded dual has an infinite value.
        """
        if args or options or self._made is None:
            self._solved_by_ladder = False
            return super().solve(*args, **options)
        with suppress(InfeasibleError, UnboundedError):
            self._optimize()
        return self.value

    def recover_primal(self, assign: bool = True) -> dict[cp.Variable, Array]:
        """Return the values of the primal's variables, which are multipliers of the gradient's equations.

        The dual is solved first where it has not been, by one solver after another until the gap is small.

        Parameters
        ----------
        assign : bool, default True
            Whether the values are also set in the variables of the primal.

        Raises
        ------
        InfeasibleError, UnboundedError, SolverError
            If the dual has no optimum, or no solver finds it.
        """
        self._solved()
        found = self._recovered()
        if assign:
            for variable, value in found.items():
                set_value(variable, value)
        return found

    def dual_values(self) -> Multipliers:
        """Return the multiplier of every constraint of the primal, with the sign of cvxpy's `dual_value`.

        The keys are the constraints; a label is a key too. A cone of several arguments has a list, of the
        shapes that cvxpy has. Where signs force weights to zero, they are multipliers beside those of the
        equations x = 0, `y[x zero]`.
        """
        self._solved()
        return self._multipliers()

    def check(self) -> Check:
        """Return the gap, and the violations of the conditions of optimality, at the recovered point."""
        self._solved()
        return self._checked()

    def _solved(self) -> None:
        """Solve the dual unless it has been solved; then take that solution again.

        Another problem with variables or constraints of the dual changes their values when it is solved.
        """
        if not self._solved_by_ladder or self.status not in USABLE:
            self._optimize(stacklevel=4)
            return
        put(self.made.swept.problem, self.made.swept.problem.solution)
        self._take(self.status)

    def _optimize(self, stacklevel: int = 3) -> None:
        """Solve the swept dual by one solver after another, and set the status that the conditions show.

        These are computed without the solver. An answer that misses a tolerance of the solver is `optimal`
        where the gap, the constraints of the primal and those of the dual are accurate. An answer that the
        solver calls optimal is `optimal_inaccurate` where the gap, the constraints of the primal or their
        products with the multipliers are not: without a Slater point a small violation has a large price.
        """
        checks: list[Check] = []
        swept = self.made.swept.problem

        def error() -> float:
            checks.append(self._checked())
            return error_of(checks[-1])

        self._solved_by_ladder = True
        try:
            optimize(swept, error)
        except (InfeasibleError, UnboundedError):
            self._take(swept.status)
            raise
        check = min(checks, key=error_of)  # that of the answer that is kept
        priced = check.complementarity / max(1.0, abs(check.primal), abs(check.dual))
        status, found = str(swept.status), max(error_of(check), priced)
        if status == cp.OPTIMAL_INACCURATE and max(found, check.stationarity) <= ACCURATE:
            status = cp.OPTIMAL
        elif found > ACCURATE:
            status = cp.OPTIMAL_INACCURATE
            warnings.warn(ConvergenceWarning(inaccurate_text(check)), stacklevel=stacklevel)
        self._take(status)

    def _take(self, status: str) -> None:
        """Take the solution of the swept dual, whose variables those on the board are."""
        swept = self.made.swept.problem
        value = self.made.structure.sign * best_of(swept)
        for part in self.made.state.hidden.values():
            part.P.save_value(positive_part(part.G.value) if status in USABLE else None)
        values = {v.id: v.value for v in self.variables()}
        put(self, Solution(status, value, values, {}, dict(swept.solution.attr)))
        self._value = value  # that of the solver: at a multiplier of zero the objective has 0 / 0
        self._solver_stats = swept.solver_stats

    def _recovered(self) -> dict[cp.Variable, Array]:
        """Return the primal point at the current multipliers of the gradient's equations."""
        point = self.made.swept.point()
        return {v: projected(v, point[v.id]) for v in self.made.structure.user_variables}

    def _multipliers(self) -> Multipliers:
        """Return the multipliers of the primal's constraints at the current values."""
        found = Multipliers()
        multipliers = self.made.swept.lagrangian.multipliers
        for c, multiplier in zip(self.primal.constraints, multipliers, strict=False):
            pairs = zip(multiplier.values(), c.dual_variables, strict=True)
            values = [np.reshape(value, v.shape, order="F") for value, v in pairs]
            found[c] = values if len(values) > 1 else values[0]
        return found

    def _checked(self) -> Check:
        """Return the conditions of optimality at the recovered point and the current values.

        They are those of the primal at the present values of its parameters, at the first ones if not DPP.
        """
        made, swept = self.made, self.made.swept
        structure = Structure(self.primal) if made.parametric and self.primal.parameters() else made.structure
        value, point = structure.sign * best_of(swept.problem), self._recovered()
        return checked(
            structure,
            {v.id: value for v, value in point.items()},
            swept.lagrangian.multipliers,
            value,
            swept.problem.constraints,
        )


def best_of(problem: cp.Problem) -> float:
    """Return the optimum of a maximum; cvxpy has none where a constraint without variables is false."""
    value = problem.solution.opt_val
    return -np.inf if value is None else float(value)


def is_trivial(c: Constraint) -> bool:
    """Whether a constraint has no variables and no parameters, and is true."""
    return not c.variables() and not c.parameters() and bool(c.value())


def projected(v: cp.Variable, value: Array) -> Array:
    """Return a value on the set that the attributes of its variable describe."""
    value = np.where(np.isfinite(value), value, 0.0)
    if v.attributes["diag"] or v.attributes["sparsity"] or value.ndim > 2:
        return value
    return np.asarray(v.project(value))


def inaccurate_text(check: Check) -> str:
    """Return the warning about an answer that the conditions of optimality do not confirm."""
    return (
        "a dual must have the value of a feasible point of its primal, got a recovered point with the gap "
        f"{check.gap:.1e}, the violation {check.feasibility:.1e} and the product {check.complementarity:.1e} "
        f"of a slack and its multiplier in Dual.solve, of which one is above {ACCURATE:g}. Do not take the "
        "value for the optimum: kernelopt.solve(dual.primal) bounds it."
    )

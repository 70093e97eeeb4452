"""`Dual`: the dual of a cvxpy problem, with the way back to the primal."""

from __future__ import annotations

import warnings
from contextlib import suppress
from typing import Any

import cvxpy as cp
import numpy as np
from cvxpy.constraints.constraint import Constraint
from cvxpy.reductions.solution import Solution

from kernelopt.duality.adjoints import dense
from kernelopt.duality.board import Stated, on_the_board
from kernelopt.duality.conditions import Check, checked
from kernelopt.duality.layout import latex_problem, problem_text
from kernelopt.duality.naming import Shown, shown_pair
from kernelopt.duality.solving import ACCURATE, USABLE, kept, optimize, put
from kernelopt.duality.sweep import Swept
from kernelopt.errors import ConvergenceWarning, InfeasibleError, ParameterError, UnboundedError
from kernelopt.numerics.nearest_correlation import positive_part
from kernelopt.structure.trees import short
from kernelopt.threads import COMPILING, quietly
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


class Dual(cp.Problem):  # type: ignore[misc]
    """The dual of a problem, a `cp.Problem`; made by `dualize`.

    Parameters
    ----------
    objective : cp.Maximize, or cp.Minimize for the dual of a maximisation
        The dual function.
    constraints : list of cvxpy constraints
        On the dual variables.
    states : tuple of (rule, Stated)
        What stands on the board after each rule; the first one has None for a rule.

    Attributes
    ----------
    primal : cp.Problem
        The problem that was dualized.
    meaning : dict from the name of a variable to str
        What each variable is the multiplier of.
    """

    def __init__(self, objective: Any, constraints: Any = None, states: Any = ()) -> None:
        super().__init__(objective, constraints)
        self.states, self._solved_by_ladder = tuple(states), False

    @classmethod
    def of(cls, swept: Swept) -> Dual:
        """Return the dual of a problem that has been swept.

        Parameters
        ----------
        swept : Swept
            What the sweep has found.
        """
        states = list(on_the_board(swept))
        told = states[-1][1].problem()
        value = told.objective.args[0]
        objective = cp.Minimize(-value) if swept.structure.maximize else cp.Maximize(value)
        needed = [c for c in told.constraints if c.variables() or c.parameters() or not c.value()]
        return cls(objective, needed, states)

    @property
    def state(self) -> Stated:
        """What stands on the board in the end."""
        if not self.states:
            raise ParameterError(
                "a Dual must come from dualize, got one made from parts of it. Call "
                "kernelopt.dualize(problem)."
            )
        return self.states[-1][1]  # type: ignore[no-any-return]

    @property
    def swept(self) -> Swept:
        """The dual as the sweep states it; its solution has the primal point."""
        return self.state.swept

    @property
    def primal(self) -> cp.Problem:
        """The problem that was dualized."""
        return self.swept.structure.problem

    @property
    def meaning(self) -> dict[str, str]:
        """What each variable is the multiplier of, by the name of the variable."""
        names = {variable.name() for variable in self.variables()}
        return {name: of for name, of in self.swept.new.meaning.items() if name in names}

    @property
    def _written(self) -> Shown:
        with COMPILING:
            return shown_pair(self.swept.structure, self, self.state)

    def __str__(self) -> str:
        if not self.states:  # made from parts, as `cp.Problem` makes copies
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

        Parameters
        ----------
        *args, **options
            As for `Problem.solve` of cvxpy.

        Raises
        ------
        SolverError
            If no solver has an answer. As in cvxpy, an infeasible or unbounded dual has an infinite value.
        """
        self._solved_by_ladder = False
        if args or options or not self.states:
            return super().solve(*args, **options)
        with suppress(InfeasibleError, UnboundedError):
            self._solved()
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
                variable.save_value(value)
        return found

    def dual_values(self) -> Multipliers:
        """Return the multiplier of every constraint of the primal, with the sign of cvxpy's `dual_value`.

        The keys are the constraints; a label is a key too. A cone of several arguments has a list, of the
        shapes that cvxpy has. Where signs force weights to zero, they are multipliers beside those of the
        equations x = 0, `y[x zero]`.
        """
        self._solved()
        found = Multipliers()
        for c, m in zip(self.primal.constraints, self.swept.multipliers, strict=False):
            pairs = zip(m.values(), c.dual_variables, strict=True)
            values = [np.reshape(value, v.shape, order="F") for value, v in pairs]
            found[c] = values if len(values) > 1 else values[0]
        return found

    def check(self) -> Check:
        """Return the gap, and the violations of the conditions of optimality, at the recovered point."""
        self._solved()
        return self._checked()

    def _solved(self) -> None:
        """Solve the swept dual by one solver after another, and set the status that the conditions show.

        These are computed without the solver. An answer that misses a tolerance of the solver is `optimal`
        where the gap, the constraints of the primal and those of the dual are accurate. An answer that the
        solver calls optimal is `optimal_inaccurate` where the gap, the constraints of the primal or their
        products with the multipliers are not: without a Slater point a small violation has a large price.

        Where the dual has been solved, that solution is taken again: another problem with variables or
        constraints of the dual changes their values when it is solved.
        """
        swept = self.swept.problem
        if self._solved_by_ladder and self.status in USABLE:
            put(swept, swept.solution)
            self._take(self.status)
            return
        self._solved_by_ladder = True
        try:
            optimize(swept, lambda: self._checked().error)
        except (InfeasibleError, UnboundedError):
            self._take(swept.status)
            raise
        check = self._checked()
        if check.error > ACCURATE:
            warnings.warn(ConvergenceWarning(inaccurate_text(check)), stacklevel=3)
        accurate = swept.status == cp.OPTIMAL or check.stationarity <= ACCURATE
        self._take(cp.OPTIMAL if accurate and check.error <= ACCURATE else cp.OPTIMAL_INACCURATE)

    def _take(self, status: str) -> None:
        """Take the solution of the swept dual, whose variables those on the board are."""
        swept = self.swept.problem
        best = swept.solution.opt_val  # None where a constraint without variables is false
        value = self.swept.sign * (-np.inf if best is None else best)
        for part in self.state.hidden.values():
            part.P.save_value(positive_part(part.G.value) if status in USABLE else None)
        values = {v.id: v.value for v in self.variables()}
        put(self, Solution(status, value, values, {}, dict(swept.solution.attr)))
        self._value = value  # that of the solver: at a multiplier of zero the objective has 0 / 0
        self._solver_stats = swept.solver_stats

    def _recovered(self) -> dict[cp.Variable, Array]:
        """Return the primal point at the current multipliers of the gradient's equations."""
        point, found = self.swept.point(), {}
        for v in self.swept.structure.user_variables:
            x = np.nan_to_num(point[v.id], posinf=0.0, neginf=0.0)
            found[v] = x if v.attributes["sparsity"] else dense(v.project(x))
        return found

    def _checked(self) -> Check:
        """Return the conditions of optimality at the recovered point and the current values.

        The variables of the primal have the values of the point meanwhile.
        """
        swept = self.swept
        with COMPILING, quietly(), np.errstate(all="ignore"), kept(swept.structure.user_variables):
            for v, value in self._recovered().items():
                v.save_value(value)
            return checked(swept, swept.problem.solution.opt_val)


def inaccurate_text(check: Check) -> str:
    """Return the warning about an answer that the conditions of optimality do not confirm."""
    return (
        "a dual must have the value of a feasible point of its primal, got a recovered point with the gap "
        f"{check.gap:.1e}, the violation {check.feasibility:.1e} and the product {check.complementarity:.1e} "
        f"of a slack and its multiplier in Dual.solve, of which one is above {ACCURATE:g}. Do not take the "
        "value for the optimum: kernelopt.solve(dual.primal) bounds it."
    )

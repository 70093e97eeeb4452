"""`Dual`: the dual of a cvxpy problem, with the way back to the primal."""

from __future__ import annotations

import warnings
from contextlib import suppress
from typing import Any

import cvxpy as cp
import numpy as np
from cvxpy.constraints.constraint import Constraint

from kernelopt.duality.assembly import is_trivial, parts, value_of
from kernelopt.duality.check import Check, checked, error_of, set_value
from kernelopt.duality.lagrangian import Read, read_lagrangian
from kernelopt.duality.layout import latex_problem, problem_text
from kernelopt.duality.naming import Pair, pair_of
from kernelopt.duality.recovery import primal_point
from kernelopt.duality.solving import ACCURATE, USABLE, optimize
from kernelopt.errors import (
    ConvergenceWarning,
    InfeasibleError,
    KerneloptError,
    ParameterError,
    UnboundedError,
)
from kernelopt.structure.structure import Structure, kept_in_structure
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


class Dual(cp.Problem):  # type: ignore[misc]
    """The dual of a problem, a `cp.Problem`; made by `dualize`.

    Attributes
    ----------
    primal : cp.Problem
        The problem of which it is the dual.
    meaning : dict from the name of a variable to str
        What each variable is the multiplier of.
    """

    _present: tuple[list[Any], Structure]  # the values of the parameters, and the primal at them

    def __init__(self, objective: Any, constraints: Any = None, *, read: Read | None = None) -> None:
        super().__init__(objective, constraints)
        self._read = read
        self._keys: dict[tuple[int, int], Constraint] = {}

    @classmethod
    def of(cls, read: Read) -> Dual:
        """Return the dual of a problem that has been read as a Lagrangian and presolved."""
        stated = {key: c for key, c in parts(read.model).items() if not is_trivial(c)}
        if read.structure.maximize:
            objective: Any = cp.Minimize(value_of(read.model, -1.0))
        else:
            objective = cp.Maximize(value_of(read.model))
        dual = cls(objective, list(stated.values()), read=read)
        dual._keys = stated
        in_dual = {variable.id for variable in dual.variables()}
        for multiplier in read.model.multipliers:
            if multiplier.variable.id not in in_dual:  # no solver gives it a value
                multiplier.variable.save_value(np.zeros(multiplier.variable.shape))
        dual._present = values_of(dual.primal.parameters()), read.structure
        return dual

    @property
    def read(self) -> Read:
        """The Lagrangian from which the dual was made."""
        if self._read is None:
            raise ParameterError(
                "a Dual must come from dualize, got one made from parts of it. Call "
                "kernelopt.dualize(problem)."
            )
        return self._read

    @property
    def primal(self) -> cp.Problem:
        """The problem of which this is the dual."""
        return self.read.structure.problem

    @property
    def meaning(self) -> dict[str, str]:
        """What each variable is the multiplier of, by the name of the variable."""
        names = {variable.name() for variable in self.variables()}
        return {m.variable.name(): m.of for m in self.read.model.multipliers if m.variable.name() in names}

    @property
    def _written(self) -> Pair:
        with COMPILING:
            return pair_of(self.read.structure, self, self.read)

    def __str__(self) -> str:
        if self._read is None:  # made from parts, as `cp.Problem` makes copies
            return str(super().__str__())
        written = self._written
        return problem_text(written.dual, tuple(written.of_dual.items()))

    def _repr_latex_(self) -> str:
        return latex_problem(self._written.dual)

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
        if args or options or self._read is None:
            return super().solve(*args, **options)
        with suppress(InfeasibleError, UnboundedError):
            self._optimize()
        return self.value

    def recover_primal(self, assign: bool = True) -> dict[cp.Variable, Array]:
        """Return the values of the primal's variables, which are multipliers of the dual.

        The dual is solved first where it has not been, by one solver after another until the gap is small.

        Parameters
        ----------
        assign : bool, default True
            Whether the values are also set in the variables of the primal.

        Raises
        ------
        InfeasibleError, UnboundedError, SolverError
            If the dual has no optimum, or no solver finds it.

        Notes
        -----
        The values are derivatives of the dual function. Where it has a corner at the solution, they are taken
        from a second dual, in which no multiplier is eliminated and which is solved too.
        """
        self._solved()
        found, _ = self._best()
        if assign:
            for variable, value in found.items():
                set_value(variable, value)
        return found

    def dual_values(self) -> Multipliers:
        """Return the multiplier of every constraint of the primal, with the sign of cvxpy's `dual_value`.

        The keys are the constraints; a label is a key too. A cone of several arguments has a list. Where
        signs force weights to zero, they are multipliers beside those of the equations x = 0, `y[x zero]`.
        """
        self._solved()
        return self._multipliers()

    def check(self) -> Check:
        """Return the gap, and the violations of the conditions of optimality, at the recovered point."""
        self._solved()
        return self._best()[1]

    def _solved(self) -> None:
        """Solve the dual unless it has been solved."""
        if self.solution is None or self.status not in USABLE:
            self._optimize(stacklevel=4)

    def _optimize(self, stacklevel: int = 3) -> None:
        """Solve the dual by one solver after another, and set the status that the conditions show.

        These are computed without the solver. An answer that misses a tolerance of the solver is `optimal`
        where the gap, the constraints of the primal and those of the dual are accurate. An answer that the
        solver calls optimal is `optimal_inaccurate` where the gap or the constraints of the primal are not.
        """
        checks: list[Check] = []

        def error() -> float:
            checks.append(self._best()[1])
            return error_of(checks[-1])

        optimize(self, error)
        check = min(checks, key=error_of)  # that of the answer that is kept
        if self.status == cp.OPTIMAL_INACCURATE and max(error_of(check), check.stationarity) <= ACCURATE:
            self._set_status(cp.OPTIMAL)
        elif error_of(check) > ACCURATE:
            self._set_status(cp.OPTIMAL_INACCURATE)
            warnings.warn(ConvergenceWarning(inaccurate_text(check)), stacklevel=stacklevel)

    def _set_status(self, status: str) -> None:
        """Set the status of the solution."""
        self.solution.status = status
        self.unpack(self.solution)

    def _best(self) -> tuple[dict[cp.Variable, Array], Check]:
        """Return the recovered point and its conditions: of two, if the first is not optimal, the better."""
        point = self._recovered()
        check = self._checked(point)
        if error_of(check) > ACCURATE:
            other = self._recovered_without_presolve()
            if other is not None:
                second = self._checked(other)
                if error_of(second) < error_of(check):
                    return other, second
        return point, check

    def _recovered(self) -> dict[cp.Variable, Array]:
        """Return the primal point at the current values and multipliers."""
        values = {
            key: [dual.value for dual in constraint.dual_variables] for key, constraint in self._keys.items()
        }
        known = {key: value for key, value in values.items() if all(part is not None for part in value)}
        point = primal_point(self.read.model, known)
        return {variable: point[variable.id] for variable in self.read.structure.user_variables}

    def _recovered_without_presolve(self) -> dict[cp.Variable, Array] | None:
        """Return the point of the dual in which no multiplier is eliminated, None where it has no optimum."""
        plain = without_presolve(self._structure())
        if plain.status is None:
            with suppress(KerneloptError):
                optimize(plain, lambda: error_of(plain._checked(plain._recovered())))
        return plain._recovered() if plain.status in USABLE else None

    def _multipliers(self) -> Multipliers:
        """Return the multipliers of the primal's constraints at the current values."""
        found = Multipliers()
        for i, constraint in enumerate(self.primal.constraints):
            if i in self.read.model.of_constraints:
                values = self.read.model.of_constraints[i]()
                found[constraint] = values[0] if len(values) == 1 else values
        return found

    def _checked(self, point: dict[cp.Variable, Array]) -> Check:
        """Return the conditions of optimality at a primal point and the current values."""
        solver = self.solution.opt_val  # that of `ko.solve` has none
        value = float(self.value if solver is None else solver)
        return checked(self._structure(), point, self._multipliers(), value, self.constraints)

    def _structure(self) -> Structure:
        """Return the primal at the values of its parameters, the first ones where it is not DPP."""
        values = values_of(self.primal.parameters())
        if self.read.model.dpp and not all(map(np.array_equal, values, self._present[0])):
            self._present = values, Structure(self.primal)
        return self._present[1]


def values_of(parameters: list[cp.Parameter]) -> list[Any]:
    """Return the values of parameters as arrays."""
    return [np.array(parameter.value) for parameter in parameters]


def inaccurate_text(check: Check) -> str:
    """Return the warning about an answer that the conditions of optimality do not confirm."""
    return (
        "a dual must have the value of a feasible point of its primal, got a recovered point with the gap "
        f"{check.gap:.1e} and the violation {check.feasibility:.1e} in Dual.solve, above {ACCURATE:g}. Do "
        "not take the value for the optimum: kernelopt.solve(dual.primal) bounds it."
    )


@kept_in_structure
def without_presolve(structure: Structure) -> Dual:
    """Return the dual in which no multiplier is eliminated."""
    return Dual.of(read_lagrangian(structure))

"""`Dual`: the dual of a cvxpy problem, with the way back to the primal."""

from __future__ import annotations

from contextlib import suppress
from typing import Any, NamedTuple

import cvxpy as cp
import numpy as np
import scipy.sparse as sp
from cvxpy.constraints import Equality, Inequality
from cvxpy.constraints.constraint import Constraint

from kernelopt.duality.assembly import is_trivial, parts, value_of
from kernelopt.duality.lagrangian import Read, read_lagrangian
from kernelopt.duality.layout import latex_problem, problem_text
from kernelopt.duality.naming import Pair, pair_of
from kernelopt.duality.recovery import primal_point
from kernelopt.duality.solving import ACCURATE, USABLE, optimize
from kernelopt.errors import InfeasibleError, KerneloptError, ParameterError, UnboundedError
from kernelopt.structure.residuals import violation
from kernelopt.structure.structure import Structure
from kernelopt.structure.trees import short
from kernelopt.threads import COMPILING, quietly
from kernelopt.validation import Array


class Check(NamedTuple):
    """How well a pair of points satisfies the conditions of Karush, Kuhn and Tucker.

    Attributes
    ----------
    primal, dual : float
        The values of the two problems at the recovered point and at the dual one.
    gap : float
        |primal - dual| / max(1, |primal|, |dual|).
    feasibility : float
        The largest violation of a constraint of the primal at the recovered point.
    stationarity : float
        The largest violation of a constraint of the dual: that the gradient of the Lagrangian is zero or in a
        cone, and that multipliers are in theirs.
    complementarity : float
        The largest |<multiplier, slack>| over the constraints of the primal.
    """

    primal: float
    dual: float
    gap: float
    feasibility: float
    stationarity: float
    complementarity: float


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

    def __init__(self, objective: Any, constraints: Any = None, *, read: Read | None = None) -> None:
        super().__init__(objective, constraints)
        self._read = read
        self._keys: dict[tuple[int, int], Constraint] = {}
        self._without_presolve: tuple[list[Any], dict[cp.Variable, Array] | None] | None = None

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
        best answer is kept. Its status is `optimal` where `check` shows that, whatever the solver says. With
        arguments, such as `solver=`, it is cvxpy's `Problem.solve`.

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

        The keys are the constraints; a label is a key too. A cone of several arguments has a list.
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
            self._optimize()

    def _optimize(self) -> None:
        """Solve the dual by one solver after another.

        A solver that misses a tolerance of its own returns the status `optimal_inaccurate`. It becomes
        `optimal` where the gap, the constraints of the primal and those of the dual are accurate: these are
        computed without the solver.
        """
        optimize(self, lambda: error_of(self._best()[1]))
        if self.status == cp.OPTIMAL_INACCURATE:
            check = self._best()[1]
            if max(error_of(check), check.stationarity) <= ACCURATE:
                self.solution.status = cp.OPTIMAL
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
        """Return the point of the dual in which no multiplier is eliminated, None where it has no optimum.

        It is solved once for the values that the parameters have.
        """
        values: list[Any] = [np.array(p.value) for p in self.primal.parameters()]
        known = self._without_presolve
        if known is None or not all(map(np.array_equal, values, known[0])):
            with COMPILING:
                plain = Dual.of(read_lagrangian(Structure(self.primal)))
            try:
                optimize(plain, lambda: error_of(plain._checked(plain._recovered())))
                known = values, plain._recovered()
            except KerneloptError:
                known = values, None
            self._without_presolve = known
        return known[1]

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
        structure = self.read.structure
        with quietly(), np.errstate(all="ignore"):  # cvxpy warns about the values of sparse variables
            for variable, copy in zip(structure.user_variables, structure.variables, strict=True):
                set_value(copy, point[variable])
            for term in structure.risks:
                kernels = term.values()
                value = np.inf if kernels is None else term.learner.train(kernels).value
                term.stand_in.save_value(np.asarray(value))
            return self._conditions()

    def _conditions(self) -> Check:
        """Return the conditions of optimality at the current values of the structure's variables."""
        lifted, values = self.read.structure.lifted, self._multipliers()
        solver = self.solution.opt_val  # that of `ko.solve` has none
        primal, dual = float(lifted.objective.value), float(self.value if solver is None else solver)
        slacks = [
            abs(inner(given, copied, values[given]))
            for given, copied in zip(self.primal.constraints, lifted.constraints, strict=True)
            if given in values
        ]
        return Check(
            primal,
            dual,
            abs(primal - dual) / max(1.0, abs(primal), abs(dual)),
            largest_violation(lifted.constraints),
            largest_violation(self.constraints),
            max(slacks, default=0.0),
        )


def error_of(check: Check) -> float:
    """Return the larger of the gap and of the violation of the primal, infinite where one is no number."""
    error = max(check.gap, check.feasibility)
    return error if np.isfinite(error) else np.inf


def set_value(variable: cp.Variable, value: Array) -> None:
    """Set the value of a variable; cvxpy wants a sparse one as its entries."""
    if variable.attributes["sparsity"]:
        rows, columns = variable.sparse_idx
        variable.value_sparse = sp.coo_array((value[rows, columns], (rows, columns)), variable.shape)
    else:
        variable.save_value(value)


def inner(given: Constraint, copied: Constraint, multiplier: Any) -> float:
    """Return <multiplier, slack> of a constraint."""
    if isinstance(given, Equality | Inequality):
        return float(np.sum(np.asarray(copied.expr.value) * np.reshape(multiplier, copied.expr.shape)))
    parts_of = multiplier if isinstance(multiplier, list) else [multiplier]
    return float(
        sum(
            np.vdot(np.ravel(arg.value), np.ravel(part))
            for arg, part in zip(copied.args, parts_of, strict=True)
        )
    )


def largest_violation(constraints: list[Constraint]) -> float:
    """Return the largest violation of some constraints, zero where there are none."""
    found = [float(np.max(violation(c))) for c in constraints if c.size]
    return max(found, default=0.0)

"""A problem at points: its value, its kernels, and the machines of its risks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import cvxpy as cp
import numpy as np
from cvxpy.atoms.affine.add_expr import AddExpression
from cvxpy.atoms.affine.unary_operators import NegExpression

from kernelopt.errors import SolverError
from kernelopt.learner import BlockMachine, Machine
from kernelopt.numerics.rounding import gamma
from kernelopt.structure.affine import affine, flat
from kernelopt.structure.prices import price, summands
from kernelopt.structure.structure import Point, RiskTerm, Structure
from kernelopt.structure.trees import nodes
from kernelopt.threads import Watch
from kernelopt.validation import Array

EVALUATION = 2e-14  # of the terms of an objective: the rounding of a few numbers, and of the constraints

Given = tuple[Array, Array | None]  # alpha and scales of a machine, as `Learner.at` takes them


class Evaluation(NamedTuple):
    """The objective at a point, in the user's sense, and the machines that attain it."""

    value: float
    machines: tuple[Machine | BlockMachine, ...]


class Evaluator:
    """Evaluates a problem at points, on the structure's own variables.

    With `given`, an alpha (and scales) per risk, each risk is valued at the machine of its alpha, which is
    above the risk and cheap. Otherwise a machine is trained at the kernels of the point, once for each. A
    `watch` is called while that is done; what it raises goes on.
    """

    def __init__(
        self, structure: Structure, given: Sequence[Given] | None = None, watch: Watch | None = None
    ) -> None:
        self.structure, self.given, self.watch = structure, given, watch
        self._trained: dict[int, tuple[list[Array], Machine | BlockMachine]] = {}

    def write(self, point: Point) -> None:
        """Set the structure's variables."""
        for variable in self.structure.variables:
            variable.save_value(np.reshape(point[variable.id], variable.shape, order="F"))

    def at(self, point: Point) -> Evaluation:
        """Return the objective and the machines at a point."""
        self.write(point)
        machines = self.machines()
        value = self.structure.lifted.objective.args[0].value
        return Evaluation(np.nan if value is None else float(np.ravel(value)[0]), machines)

    def outward(self, point: Point) -> Evaluation:
        """Return the objective as a number that is attained in exact arithmetic, and the machines.

        It is moved by the rounding of its terms: up where it is minimised, down where it is maximised.
        """
        value, machines = self.at(point)
        objective = self.structure.lifted.objective.args[0]
        entries = max(node.size for node in nodes(objective) if isinstance(node, cp.Expression))
        lost = (EVALUATION + gamma(2 * entries)) * magnitude(objective)  # a sum of so many terms, and more
        return Evaluation(value + self.structure.sign * lost, machines)

    def machines(self) -> tuple[Machine | BlockMachine, ...]:
        """Return the machines at the current point, and set the values of the risks."""
        return tuple(self._machine(k, term) for k, term in enumerate(self.structure.risks))

    def _machine(self, k: int, term: RiskTerm) -> Machine | BlockMachine:
        n = term.learner.n
        if self.given is not None and determined(term, self.given[k]):
            kernels = [summands(K, n) for K in term.kernels]
            machine = term.learner.at(kernels, *self.given[k])
        else:
            Ks = term.values()
            if Ks is None:
                raise ValueError(f"the kernels of {term.node.name()} have no value")
            machine = self._train(k, term, Ks)
            kernels = [summands(K, n, value) for K, value in zip(term.kernels, Ks, strict=True)]
        if np.isfinite(machine.value):
            machine = machine._replace(value=price(term.learner, kernels, machine))
        term.stand_in.save_value(np.asarray(machine.value))
        return machine

    def _train(self, k: int, term: RiskTerm, Ks: list[Array]) -> Machine | BlockMachine:
        known = self._trained.get(k)
        if known is None or not all(np.array_equal(a, b) for a, b in zip(Ks, known[0], strict=True)):
            try:
                machine = term.learner.train(Ks, self.watch)
            except SolverError:  # at kernels of extreme size: f = 0 has a value at least
                machine = term.learner.at(Ks, np.zeros(term.learner.n), np.zeros(len(Ks)))
            self._trained[k] = known = (Ks, machine)
        return known[1]


def determined(term: RiskTerm, given: Given) -> bool:
    """Whether an alpha and scales determine a machine."""
    return len(term.kernels) == 1 or term.learner.norm == 2 or given[1] is not None


def magnitude(expression: cp.Expression) -> float:
    """Return the sum of the absolute values of the terms of a scalar expression at the current values."""
    if isinstance(expression, AddExpression):
        return sum(magnitude(arg) for arg in expression.args)
    if isinstance(expression, NegExpression):
        return magnitude(expression.args[0])
    read = affine(expression) if expression.size == 1 else None
    if read is None:
        return float(np.abs(flat(expression.value)).sum())
    values = {v.id: np.abs(flat(v.value)) for v in read.matrices}
    terms = sum(float((abs(matrix) @ values[v.id]).sum()) for v, matrix in read.matrices.items())
    return float(np.abs(read.constant).sum()) + terms

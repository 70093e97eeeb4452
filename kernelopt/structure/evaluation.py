"""The objective of a problem at given points, with a trained machine for each risk."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import cvxpy as cp
import numpy as np
from cvxpy.atoms.affine.add_expr import AddExpression
from cvxpy.atoms.affine.unary_operators import NegExpression

from kernelopt.errors import SolverError
from kernelopt.learner import BlockMachine, Machine
from kernelopt.numerics.ball import Ball
from kernelopt.structure.affine import affine, flat
from kernelopt.structure.enclosure import enclosure
from kernelopt.structure.primal_bound import FEASIBILITY, kernel_sum, primal_upper_bound
from kernelopt.structure.structure import Point, RiskTerm, Structure
from kernelopt.validation import Array

Given = tuple[Array, Array | None]  # (alpha, scales) of a machine f = sum_m scales_m K_m alpha + b


class Evaluation(NamedTuple):
    """The objective at a point, not negated for a maximisation, and the machines that attain it."""

    value: float
    machines: tuple[Machine | BlockMachine, ...]


class Evaluator:
    """Evaluates a problem at points; it sets the structure's copies of the variables.

    The value of a risk is that of a machine, hence an upper bound of the risk. Without `given` a machine is
    trained at the kernels of the point; the last one is reused while the kernels are the same. With `given`,
    one (alpha, scales) for each risk, the machine is the one of that alpha and nothing is trained.
    """

    def __init__(self, structure: Structure, given: Sequence[Given] | None = None) -> None:
        self.structure, self.given = structure, given
        self._trained: dict[int, tuple[list[Array], Machine | BlockMachine]] = {}

    def write(self, point: Point) -> None:
        """Set the structure's variables to a point."""
        for variable in self.structure.variables:
            variable.save_value(np.reshape(point[variable.id], variable.shape, order="F"))

    def at(self, point: Point) -> Evaluation:
        """Return the objective and the machines at a point."""
        ball, machines = self._enclosed(point, 0.0)
        return Evaluation(float(ball.mid) if np.isfinite(ball.rad) else np.nan, machines)

    def outward(self, point: Point) -> Evaluation:
        """Return a bound of the exact objective near a point, and the machines.

        It is an upper bound for a minimisation, and a lower bound for a maximisation, wherever the variables
        change by a relative `FEASIBILITY`. The values of the risks are upper bounds already.
        """
        ball, machines = self._enclosed(point, FEASIBILITY)
        return Evaluation(float(ball.below if self.structure.maximize else ball.above), machines)

    def _enclosed(self, point: Point, by: float) -> tuple[Ball, tuple[Machine | BlockMachine, ...]]:
        """Return a ball around the objective near a point, and the machines."""
        self.write(point)
        machines = self.machines()
        ball = enclosure(self.structure.lifted.objective.args[0], self.structure.variables, by)
        return Ball(
            *(np.ravel(np.broadcast_to(part, np.shape(ball.mid)))[0] for part in (ball.mid, ball.rad))
        ), machines

    def machines(self) -> tuple[Machine | BlockMachine, ...]:
        """Return the machines at the current point, and set the values of the risks."""
        return tuple(self._machine(k, term) for k, term in enumerate(self.structure.risks))

    def _machine(self, k: int, term: RiskTerm) -> Machine | BlockMachine:
        n = term.learner.n
        if self.given is not None and determined(term, self.given[k]):
            kernels = [kernel_sum(K, n) for K in term.kernels]
            machine = term.learner.at(kernels, *self.given[k])
        else:
            Ks = term.values()
            if Ks is None:
                raise ValueError(f"the kernels of {term.node.name()} have no value")
            machine = self._train(k, term, Ks)
            kernels = [kernel_sum(K, n, value) for K, value in zip(term.kernels, Ks, strict=True)]
        if np.isfinite(machine.value):
            machine = machine._replace(value=primal_upper_bound(term.learner, kernels, machine))
        term.stand_in.save_value(np.asarray(machine.value))
        return machine

    def _train(self, k: int, term: RiskTerm, Ks: list[Array]) -> Machine | BlockMachine:
        known = self._trained.get(k)
        if known is None or not all(np.array_equal(a, b) for a, b in zip(Ks, known[0], strict=True)):
            try:
                machine = term.learner.train(Ks)
            except SolverError:  # at kernels of extreme size; the machine f = 0 still bounds the risk
                machine = term.learner.at(Ks, np.zeros(term.learner.n), np.zeros(len(Ks)))
            self._trained[k] = known = (Ks, machine)
        return known[1]


def determined(term: RiskTerm, given: Given) -> bool:
    """Whether (alpha, scales) determines a machine: several kernels need scales unless the norm is 2."""
    return len(term.kernels) == 1 or term.learner.norm == 2 or given[1] is not None


def sum_of_magnitudes(expression: cp.Expression) -> float:
    """Return the sum of the absolute values of the terms of a scalar expression at the current values.

    The terms of an affine expression c + a'x are c and a_i x_i. Any other summand is one term.
    """
    if isinstance(expression, AddExpression):
        return sum(sum_of_magnitudes(arg) for arg in expression.args)
    if isinstance(expression, NegExpression):
        return sum_of_magnitudes(expression.args[0])
    read = affine(expression) if expression.size == 1 else None
    if read is None:
        return float(np.abs(flat(expression.value)).sum())
    values = {v.id: np.abs(flat(v.value)) for v in read.matrices}
    terms = sum(float((abs(matrix) @ values[v.id]).sum()) for v, matrix in read.matrices.items())
    return float(np.abs(read.constant).sum()) + terms

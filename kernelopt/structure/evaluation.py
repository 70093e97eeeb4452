"""The objective of a problem at given points, with a trained machine for each risk."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import cvxpy as cp
import numpy as np

from kernelopt.errors import SolverError
from kernelopt.language.learner import Learner, on_labelled
from kernelopt.language.terms import terms
from kernelopt.learner import Machine
from kernelopt.numerics.ball import Ball, form, stacked
from kernelopt.numerics.rounding import UNDERFLOW, exact_sum, split_sums, two_products
from kernelopt.structure.affine import affine, flat, weighted_sum
from kernelopt.structure.enclosure import FEASIBILITY, enclosure
from kernelopt.structure.structure import Point, RiskTerm, Structure
from kernelopt.structure.trees import weighted_terms
from kernelopt.validation import Array, row_maxima

LARGE_ROUNDING = 1e-9  # relative rounding above which a value is computed again in twice the precision
MOST_PRODUCTS = 4_000_000  # products in twice the precision, which take some hundredths of a second


@dataclass(frozen=True)
class KernelSum:
    """A kernel on the labelled points, K = sum_m w_m K_m, with bounds of the sizes of its entries.

    Attributes
    ----------
    weights : array w of shape (m,)
    stacks : stacks of the matrices K_m
    d : array of shape (n,)
        sum_m |w_m K_m,ij| <= sqrt(d_i d_j), so that the j-th term of (K c)_i is at most sqrt(d_i d_j) |c_j|.
    value : array of shape (n, n), or None
        K, where it has been computed.
    """

    weights: Array
    stacks: tuple[Any, ...]
    d: Array
    value: Array | None = None

    def __matmul__(self, c: Array) -> Array:
        """Return K c, from K if it is known, else as sum_m w_m (K_m c)."""
        if self.value is not None:
            return self.value @ c
        cuts = np.cumsum([len(stack) for stack in self.stacks])[:-1]
        parts = zip(self.stacks, np.split(self.weights, cuts), strict=True)
        return np.asarray(sum(stack.storage.image(w, c)[: c.size] for stack, w in parts))

    def matrices(self) -> list[Array]:
        """Return the matrices K_m on the labelled points."""
        n = self.d.size
        return [np.asarray(K)[:n, :n] for stack in self.stacks for K in stack]


def kernel_sum(K: cp.Expression, n: int, value: Array | None = None) -> KernelSum:
    """Return a kernel on the first n points as a sum; `value` is its current value there, if known."""
    parts = terms(K)
    if parts is None:
        matrix = on_labelled([K], n)[0] if value is None else value
        return KernelSum(np.ones(1), ([matrix],), row_maxima(matrix), matrix)
    weights = [np.ravel(w.value) for w, _ in parts]
    d = sum(np.abs(w) @ grams.magnitudes[:, :n] for w, (_, grams) in zip(weights, parts, strict=True))
    return KernelSum(np.concatenate(weights), tuple(grams for _, grams in parts), np.asarray(d), value)


Image = tuple[Ball, Ball]  # K c and the number c'Kc


def image(kernel: KernelSum, c: Array) -> Image:
    """Return the image of c in double precision, with a priori bounds of its rounding errors.

    With T = sum_j sqrt(d_j) |c_j|, the error of (K c)_i is at most gamma_k sqrt(d_i) T and the error of c'Kc
    is at most gamma_2k T^2, for k = n + m + 8 roundings. A relative change of the weights by at most
    `FEASIBILITY` is added: it changes (K c)_i by at most FEASIBILITY sqrt(d_i c'Kc).
    """
    roots = np.sqrt(kernel.d)
    T, k = float(roots @ np.abs(c)), c.size + kernel.weights.size + 8
    values, underflow = kernel @ c, UNDERFLOW * k * (T > 0)
    square = Ball.computed(c @ values, T * T, 2 * k, underflow)  # T**2 would raise where T * T is infinite
    return moved(kernel, Ball.computed(values, roots * T, k, underflow), square)


def moved(kernel: KernelSum, values: Ball, square: Ball) -> Image:
    """Return an image where the weights change by a relative `FEASIBILITY`."""
    size = np.sqrt(np.maximum(square.above, 0.0))
    changes = FEASIBILITY * np.sqrt(kernel.d) * size
    return values + Ball(np.zeros(changes.size), changes), square + Ball(0.0, FEASIBILITY * size**2)


def accurate_image(kernel: KernelSum, c: Array) -> Image:
    """Return the image of c in twice the working precision, by the sums of `numerics.rounding`."""
    used = kernel.weights != 0
    weights, matrices = kernel.weights[used], [K for K, w in zip(kernel.matrices(), used, strict=True) if w]
    heads, squares = [np.zeros(c.size)], stacked(form(K, c) for K in matrices)
    tails, missed = np.zeros(c.size), np.zeros(c.size)
    for w, K in zip(weights, matrices, strict=True):
        head, tail, error = split_sums(K, c)
        heads += [*two_products(np.full(c.size, w), head), w * tail]
        tails += abs(w) * np.abs(tail)
        missed += abs(w) * error
    values = np.array([exact_sum(row) for row in np.array(heads).T.tolist()])
    square = exact_sum(np.concatenate(two_products(weights, squares.mid)))
    return moved(
        kernel,
        Ball.computed(values, np.abs(values) + tails, 8, 1.01 * missed),
        Ball.computed(square, abs(square), 2, np.abs(weights) @ squares.rad * (1 + 1e-12)),
    )


def primal_upper_bound(learner: Learner, kernels: Sequence[KernelSum], machine: Machine) -> float:
    """Return an upper bound of the primal value of a machine that holds in exact arithmetic.

    The value is loss(sum_m K_m c_m + b) + 1/2 |(sqrt(c_m'K_m c_m))_m|_norm^2. Where cancellation makes the
    bound in double precision more than `LARGE_ROUNDING` too large, it is computed in twice the precision.
    """
    pairs = list(zip(kernels, machine.coefficients, strict=True))
    plain = upper_value(learner, [image(K, c) for K, c in pairs], machine.intercept)
    products = sum(K.weights.size * c.size**2 for K, c in pairs)
    if plain - machine.value <= LARGE_ROUNDING * abs(machine.value) or products > MOST_PRODUCTS:
        return plain
    return min(plain, upper_value(learner, [accurate_image(K, c) for K, c in pairs], machine.intercept))


def upper_value(learner: Learner, images: Sequence[Image], intercept: float) -> float:
    """Return an upper bound of loss + penalty for the machine with the images K_m c_m."""
    f = sum((values for values, _ in images), start=Ball(0.0))
    squares = Ball(np.maximum([square.above for _, square in images], 0.0))
    penalty = float((squared_norm(squares, learner.norm) * 0.5).above)
    return float(learner.loss.above(f.mid, f.rad, penalty, learner.y, intercept))


def squared_norm(squares: Ball, norm: float) -> Ball:
    """Return |(sqrt(q_m))_m|_norm^2 for squares q_m."""
    if squares.mid.size == 1 or norm == 2:
        return squares.sum()
    length = squares.power(0.5).norm(norm)
    return length * length


Given = tuple[Array, Array | None]  # (alpha, scales) of a machine f = sum_m scales_m K_m alpha + b


# The objective at a point, not negated for a maximisation, and the machines that attain it.
Evaluation = tuple[float, tuple[Machine, ...]]


class Evaluator:
    """Evaluates a problem at points; it sets the structure's copies of the variables.

    The value of a risk is the value of a machine, hence an upper bound. Without `given` a machine is trained
    at the kernels of the point; the last machine is reused while the kernels are the same. With `given`, one
    (alpha, scales) for each risk, the machine has the given alpha and nothing is trained.
    """

    def __init__(self, structure: Structure, given: Sequence[Given] | None = None) -> None:
        self.structure, self.given = structure, given
        self._trained: dict[int, tuple[list[Array], Machine]] = {}

    def write(self, point: Point) -> None:
        """Set the structure's variables to a point."""
        for variable in self.structure.variables:
            variable.save_value(np.reshape(point[variable.id], variable.shape, order="F"))

    def at(self, point: Point) -> Evaluation:
        """Return the objective and the machines at a point."""
        ball, machines = self._enclosed(point, 0.0)
        return float(ball.mid) if np.isfinite(ball.rad) else np.nan, machines

    def outward(self, point: Point) -> Evaluation:
        """Return a bound of the exact objective near a point, and the machines.

        It is an upper bound for a minimisation, and a lower bound for a maximisation, wherever the variables
        change by a relative `FEASIBILITY`. The values of the risks are upper bounds already.
        """
        ball, machines = self._enclosed(point, FEASIBILITY)
        return float(ball.below if self.structure.maximize else ball.above), machines

    def _enclosed(self, point: Point, by: float) -> tuple[Ball, tuple[Machine, ...]]:
        """Return a ball around the objective near a point, and the machines."""
        self.write(point)
        machines = self.machines()
        ball = enclosure(self.structure.lifted.objective.args[0], self.structure.variables, by)
        mid, rad = (np.ravel(np.broadcast_to(part, np.shape(ball.mid)))[0] for part in (ball.mid, ball.rad))
        return Ball(mid, rad), machines

    def machines(self) -> tuple[Machine, ...]:
        """Return the machines at the current point, and set the values of the risks."""
        return tuple(self._machine(k, term) for k, term in enumerate(self.structure.risks))

    def _machine(self, k: int, term: RiskTerm) -> Machine:
        n = term.learner.n
        if self.given is not None and term.learner.is_determined(self.given[k][1]):
            kernels = [kernel_sum(K, n) for K in term.kernels]
            machine = term.learner.at(kernels, *self.given[k])
        else:
            Ks = on_labelled(term.kernels, n)
            machine = self._train(k, term, Ks)
            kernels = [kernel_sum(K, n, value) for K, value in zip(term.kernels, Ks, strict=True)]
        if np.isfinite(machine.value):
            machine = machine._replace(value=primal_upper_bound(term.learner, kernels, machine))
        term.stand_in.save_value(np.asarray(machine.value))
        return machine

    def _train(self, k: int, term: RiskTerm, Ks: list[Array]) -> Machine:
        known = self._trained.get(k)
        if known is None or not all(np.array_equal(a, b) for a, b in zip(Ks, known[0], strict=True)):
            try:
                machine = term.learner.train(Ks)
            except SolverError:  # at kernels of extreme size; the machine f = 0 still bounds the risk
                machine = term.learner.at(Ks, np.zeros(term.learner.n), np.zeros(len(Ks)))
            self._trained[k] = known = (Ks, machine)
        return known[1]


def sum_of_magnitudes(expression: cp.Expression) -> float:
    """Return the sum of the absolute values of the terms of a scalar expression at the current values.

    The terms of an affine expression c + a'x are c and a_i x_i. Any other summand is one term.
    """
    total = 0.0
    for weights, e in weighted_terms(expression, np.ones(expression.size)):
        read = affine(e)
        if read is None:
            total += float(np.abs(weights) @ np.abs(flat(e.value)))
            continue
        read = weighted_sum(read, weights)
        sizes = (np.abs(read.gradient(v)) @ np.abs(flat(v.value)) for v in read.matrices)
        total += float(np.abs(read.constant[0]) + sum(sizes))
    return total

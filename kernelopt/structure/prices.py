"""What a machine costs at a kernel, as a number that is not below its exact primal value."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import cvxpy as cp
import numpy as np

from kernelopt.language.risk import Learner, on_labelled
from kernelopt.language.terms import terms
from kernelopt.learner import BlockMachine, Machine
from kernelopt.numerics.norms import lp_length
from kernelopt.numerics.rounding import Bounded, exact_sum, form, gamma, split_sums, two_products, upwards
from kernelopt.structure.trees import short
from kernelopt.validation import Array, row_maxima

FEASIBLE = 1e-14  # relative change of a point that meets its constraints up to rounding
WORTH = 1e-9  # a share of rounding above which a value is computed again with twice the digits
MOST = 4_000_000  # products, for which that takes a second


@dataclass(frozen=True)
class Summands:
    """A kernel on the labelled points as sum_m w_m K_m, and what its roundings are relative to.

    The terms of (K c)_i are below sqrt(d_i d_j) |c_j|. `value` is the sum, where it has been computed.
    """

    weights: Array
    stacks: tuple[Any, ...]
    d: Array
    value: Array | None = None

    def __matmul__(self, c: Array) -> Array:
        """Return K c: without the sum it takes one product with the stacks."""
        if self.value is not None:
            return self.value @ c
        images = np.concatenate([stack.apply(c)[:, : c.size] for stack in self.stacks])
        return np.asarray(self.weights @ images)

    def matrices(self) -> list[Array]:
        """Return the matrices K_m on the labelled points."""
        n = self.d.size
        return [np.asarray(K)[:n, :n] for stack in self.stacks for K in stack]


def summands(K: cp.Expression, n: int, value: Array | None = None) -> Summands:
    """Return the summands of a kernel on the first n points, where its value is `value` if that is known."""
    parts = terms(K)
    if parts is None or any(w.value is None for w, _ in parts):
        matrix = on_labelled([K], n) if value is None else [value]
        if matrix is None:
            raise ValueError(f"the kernel {short(K)} has no value")
        return Summands(np.ones(1), (matrix,), row_maxima(matrix[0]), matrix[0])
    weights = np.concatenate([np.ravel(w.value) for w, _ in parts])
    sizes = np.concatenate([grams.magnitudes[:, :n] for _, grams in parts])
    return Summands(weights, tuple(grams for _, grams in parts), np.abs(weights) @ sizes, value)


class Image(NamedTuple):
    """K c with a bound of the error of each entry, and c'K c with a bound of its error."""

    values: Array
    errors: Array
    square: Bounded


def image(kernel: Summands, c: Array) -> Image:
    """Return the image of c as BLAS computes it, with a priori bounds of the rounding."""
    roots = np.sqrt(kernel.d)
    reach, k = float(roots @ np.abs(c)), c.size + kernel.weights.size + 8
    values = kernel @ c
    square = float(c @ values)
    rounding = gamma(2 * k) * (reach * reach)  # a power of a float overflows with an error
    size = np.sqrt(max(square + rounding, 0.0))
    errors = roots * (gamma(k) * reach + FEASIBLE * size)
    return Image(values, errors, Bounded(square, rounding + FEASIBLE * size**2))


def accurate_image(kernel: Summands, c: Array) -> Image:
    """Return the image of c computed with twice the digits: its errors are relative to what it is."""
    heads, squares = [], []
    tails = np.zeros(c.size)
    for w, K in zip(kernel.weights, kernel.matrices(), strict=True):
        if w == 0:
            continue
        head, tail = split_sums(K, c)
        heads += [*two_products(np.full(c.size, w), head), w * tail]
        tails += abs(w) * np.abs(tail)
        squares.append((w, form(K, c)))
    columns = np.array(heads).T if heads else np.zeros((c.size, 1))
    values = np.array([exact_sum(row) for row in columns.tolist()])
    pairs = [two_products(np.array([w]), np.array([f.value])) for w, f in squares]
    square = exact_sum([float(part[0]) for pair in pairs for part in pair])
    lost = sum(abs(w) * f.error for w, f in squares) * (1 + 1e-12)
    size = np.sqrt(max(square + lost, 0.0))
    errors = gamma(2) * np.abs(values) + gamma(8) * tails + FEASIBLE * np.sqrt(kernel.d) * size
    return Image(values, errors, Bounded(square, lost + gamma(2) * abs(square) + FEASIBLE * size**2))


def price(learner: Learner, kernels: Sequence[Summands], machine: Machine | BlockMachine) -> float:
    """Return a number that is not below the primal value of a machine in exact arithmetic.

    It is loss(sum_m K_m c_m + b) + 1/2 |(sqrt(c_m'K_m c_m))_m|_norm^2. Where the terms of its sums cancel,
    they are added again with twice the digits.
    """
    coefficients = list(machine.coefficients) if isinstance(machine, BlockMachine) else [machine.alpha]
    pairs = list(zip(kernels, coefficients, strict=True))
    plain = total(learner, [image(K, c) for K, c in pairs], machine.intercept)
    products = sum(K.weights.size * c.size**2 for K, c in pairs)
    if plain - machine.value <= WORTH * abs(machine.value) or products > MOST:
        return plain
    return min(plain, total(learner, [accurate_image(K, c) for K, c in pairs], machine.intercept))


def total(learner: Learner, images: Sequence[Image], intercept: float) -> float:
    """Return an upper bound of the loss and the penalty of a machine with these images."""
    f = np.sum([image.values for image in images], axis=0)
    errors = np.sum([image.errors for image in images], axis=0) * (1 + gamma(8))
    errors = errors + gamma(len(images)) * np.sum([np.abs(image.values) for image in images], axis=0)
    squares = np.maximum([image.square.above for image in images], 0.0)
    if len(images) == 1 or learner.norm == 2:
        penalty = float(squares.sum()) / 2
    else:
        penalty = lp_length(np.sqrt(squares), learner.norm) ** 2 / 2
    penalty = upwards(penalty * (1 + gamma(squares.size + 64)))
    return float(learner.loss.above(f, errors, penalty, learner.y, intercept))

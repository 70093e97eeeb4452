"""Upper bounds of the primal value of a machine at a kernel that hold in exact arithmetic."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import cvxpy as cp
import numpy as np

from kernelopt.language.learner import Learner, on_labelled
from kernelopt.language.terms import terms
from kernelopt.learner import BlockMachine, Machine
from kernelopt.numerics.ball import Ball, accumulated
from kernelopt.numerics.rounding import (
    UNDERFLOW,
    exact_sum,
    form,
    split_sums,
    two_products,
)
from kernelopt.structure.trees import short
from kernelopt.validation import Array, row_maxima

FEASIBILITY = 1e-14  # relative change of the weights that makes a point, feasible up to rounding, feasible
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
    """Return a kernel on the first n points as a sum; `value` is its current value there, if known.

    Raises
    ------
    ValueError
        If a variable of the kernel has no value.
    """
    parts = terms(K)
    if parts is None or any(w.value is None for w, _ in parts):
        matrix = on_labelled([K], n) if value is None else [value]
        if matrix is None:
            raise ValueError(f"the kernel {short(K)} has no value")
        return KernelSum(np.ones(1), (matrix,), row_maxima(matrix[0]), matrix[0])
    weights = [np.ravel(w.value) for w, _ in parts]
    d = sum(np.abs(w) @ grams.magnitudes[:, :n] for w, (_, grams) in zip(weights, parts, strict=True))
    return KernelSum(np.concatenate(weights), tuple(grams for _, grams in parts), np.asarray(d), value)


class Image(NamedTuple):
    """K c and the number c'Kc."""

    values: Ball
    square: Ball


def image(kernel: KernelSum, c: Array) -> Image:
    """Return the image of c in double precision, with a priori bounds of its rounding errors.

    With T = sum_j sqrt(d_j) |c_j|, the error of (K c)_i is at most gamma_k sqrt(d_i) T and that of c'Kc at
    most gamma_2k T^2, for k = n + m + 8 roundings. A relative change of the weights by at most `FEASIBILITY`
    is added: it changes (K c)_i by at most FEASIBILITY sqrt(d_i c'Kc).
    """
    roots = np.sqrt(kernel.d)
    T, k = float(roots @ np.abs(c)), c.size + kernel.weights.size + 8
    values, underflow = kernel @ c, UNDERFLOW * k * (T > 0)
    square = accumulated(c @ values, T * T, 2 * k, underflow)  # T**2 would raise where T * T is infinite
    return moved(kernel, accumulated(values, roots * T, k, underflow), square)


def moved(kernel: KernelSum, values: Ball, square: Ball) -> Image:
    """Return an image where the weights change by a relative `FEASIBILITY`."""
    size = np.sqrt(np.maximum(square.above, 0.0))
    changes = FEASIBILITY * np.sqrt(kernel.d) * size
    return Image(values + Ball(np.zeros(changes.size), changes), square + Ball(0.0, FEASIBILITY * size**2))


def accurate_image(kernel: KernelSum, c: Array) -> Image:
    """Return the image of c in twice the working precision, by the sums of `numerics.rounding`."""
    used = kernel.weights != 0
    weights, matrices = kernel.weights[used], [K for K, w in zip(kernel.matrices(), used, strict=True) if w]
    heads, forms = [np.zeros(c.size)], [form(K, c) for K in matrices]
    tails, missed = np.zeros(c.size), np.zeros(c.size)
    for w, K in zip(weights, matrices, strict=True):
        head, tail, error = split_sums(K, c)
        heads += [*two_products(np.full(c.size, w), head), w * tail]
        tails += abs(w) * np.abs(tail)
        missed += abs(w) * error
    values = np.array([exact_sum(row) for row in np.array(heads).T.tolist()])
    squares, errors = np.array(forms).reshape(-1, 2).T
    square = exact_sum(np.concatenate(two_products(weights, squares)))
    return moved(
        kernel,
        accumulated(values, np.abs(values) + tails, 8, 1.01 * missed),
        accumulated(square, abs(square), 2, np.abs(weights) @ errors * (1 + 1e-12)),
    )


def primal_upper_bound(
    learner: Learner, kernels: Sequence[KernelSum], machine: Machine | BlockMachine
) -> float:
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
    f = sum((image.values for image in images), start=Ball(0.0))
    squares = Ball(np.maximum([image.square.above for image in images], 0.0))
    penalty = float((squared_norm(squares, learner.norm) * 0.5).above)
    errors = np.broadcast_to(f.rad, f.mid.shape)
    return float(learner.loss.above(f.mid, errors, penalty, learner.y, intercept))


def squared_norm(squares: Ball, norm: float) -> Ball:
    """Return |(sqrt(q_m))_m|_norm^2 for squares q_m."""
    if squares.mid.size == 1 or norm == 2:
        return squares.sum()
    length = squares.power(0.5).norm(norm)
    return length * length

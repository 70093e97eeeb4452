"""The learner at a fixed kernel: its value, its signed dual variable alpha and its intercept."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import Any, NamedTuple

import numpy as np

from kernelopt.learner.decomposition import pivoted
from kernelopt.learner.programs import dual_program
from kernelopt.learner.quadratic import proposals
from kernelopt.losses import Loss
from kernelopt.numerics.factors import pivoted_cholesky
from kernelopt.threads import Watch
from kernelopt.validation import Array

SMALL = 150  # points up to which an interior point is no slower than importing a compiler
CLOSE = 1e-9
NEWTON_STEPS = 20


class Machine(NamedTuple):
    """A trained machine f(x) = sum_i alpha_i k(x_i, x) + intercept.

    `value` is the primal objective that this machine attains, so never below the optimum.
    """

    value: float
    alpha: Array
    intercept: float


def learn(
    K: Array,
    y: Array,
    loss: Loss,
    bias: bool,
    start: Array | None = None,
    tol: float = CLOSE,
    watch: Watch | None = None,
) -> Machine:
    """Return the minimiser of loss(f + b) + 1/2 |f|_K^2 at the PSD matrix K, shape (n, n).

    Several ways to solve the dual are tried until the value of a machine and the bound of its own alpha
    agree to `tol` relative; the machine with the smallest such gap is returned. With a `start`, an alpha
    such as that of a kernel nearby, the way that can use it comes first. A `watch` is called while it works;
    what it raises goes on.
    """
    origin = np.zeros(y.size) if start is None else start
    ways: list[Iterator[Array]] = [] if start is None else [iter([start])]
    if not loss.quadratic:
        ways.append(smooth_proposals(K, y, loss, bias, origin, watch))
    else:  # the pivots are last for small kernels, but not left out: they have no units to go wrong in
        both = [proposals(K, y, loss, bias, watch), pivoted(K, y, loss, bias, origin, watch)]
        ways += both if start is None and y.size <= SMALL else both[::-1]
    best, smallest = machine_at(K, np.zeros(y.size), y, loss, bias), np.inf
    for alpha in chain.from_iterable(ways):
        if watch is not None:
            watch()
        machine = machine_at(K, alpha, y, loss, bias)
        gap = abs(machine.value - lower_bound(K, machine.alpha, y, loss))  # below zero it is rounding too
        if gap < smallest:
            best, smallest = machine, gap
        if np.isfinite(gap) and gap <= tol * abs(machine.value):
            break
    return best


def machine_at(K: Any, alpha: Array, y: Array, loss: Loss, bias: bool) -> Machine:
    """Return the machine of a given alpha with its best intercept (and scale, for a hard margin)."""
    alpha = loss.project(alpha, y, bias)
    f = K @ alpha
    primal = loss.primal(f, max(float(alpha @ f), 0.0) / 2, y, bias)
    return Machine(primal.value, primal.scale * alpha, primal.intercept)


def lower_bound(K: Array, alpha: Array, y: Array, loss: Loss) -> float:
    """Return l(alpha) - 1/2 alpha'K alpha, below the optimum for every alpha in the dual domain."""
    return loss.dual_value(alpha, y) - float(alpha @ K @ alpha) / 2


def smooth_proposals(
    K: Array, y: Array, loss: Loss, bias: bool, start: Array, watch: Watch | None = None
) -> Iterator[Array]:
    """Yield points near the dual optimum of a smooth loss: Newton's method, then a conic solve.

    Newton solves alpha = response(K alpha + b), sum alpha = 0, with steps halved until the machine's
    value falls.
    """
    n = y.size
    value, alpha, b = machine_at(K, start, y, loss, bias)
    for _ in range(NEWTON_STEPS):
        f = K @ alpha + b
        W = loss.hessian_diag(f, y)
        if W is None:
            break
        M = np.eye(n) + W[:, None] * K
        right = loss.response(f, y) - alpha
        if bias:
            M = np.block([[M, W[:, None]], [np.ones((1, n)), np.zeros((1, 1))]])
            right = np.append(right, -alpha.sum())
        try:
            step = np.linalg.solve(M, right)
        except np.linalg.LinAlgError:
            break
        length = 1.0
        while length > 1e-8:
            trial = machine_at(K, alpha + length * step[:n], y, loss, bias)
            if trial.value < value:
                break
            length /= 2
        else:
            break
        value = trial.value
        alpha, b = alpha + length * step[:n], trial.intercept
        yield alpha
    alpha, _ = dual_program([pivoted_cholesky(K, "the kernel")], y, loss, bias, 2, watch)
    yield alpha

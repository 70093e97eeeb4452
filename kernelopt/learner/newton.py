"""The dual of a smooth loss at a fixed kernel by Newton's method, from any starting point."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelopt.learner.settings import SETTINGS
from kernelopt.losses import Loss
from kernelopt.numerics.decompositions import bordered_solution
from kernelopt.numerics.rounding import SMALLEST_DIVISOR
from kernelopt.running import check
from kernelopt.validation import Array


def newton_steps(
    K: NDArray[Any], y: Array, loss: Loss, bias: bool, alpha: Array, f: Array, unit: float = 1.0
) -> Iterator[tuple[Array, Array]]:
    """Yield alpha and f = unit K alpha near the maximiser of l(alpha) - 1/2 alpha'(unit K)alpha.

    The loss is quadratic, without bounds and kinks of its dual, or knows its second derivatives.
    Newton's method solves a = response(unit K a + b), sum a = 0, from alpha with its f. Steps are halved
    until the primal value, which is known for any a, decreases. The projection of a on the domain of the dual
    is yielded. Only changes of a are multiplied by K, so that the error of f is the error of K times the
    change.
    """
    a = alpha
    value, _, b = loss.primal(f, float(a @ f) / 2, y, bias)
    for _ in range(SETTINGS.newton_steps):
        check()
        t = f + b
        inverse = inverse_hessian(loss, y, t)
        M = K.astype(float)
        M[np.diag_indices(len(M))] += inverse / unit
        residual = inverse * (loss.response(t, y) - a)
        solution = bordered_solution(M, residual / unit, bias, -a.sum())
        if solution is None or not np.isfinite(solution[0]).all():
            return
        direction = solution[0]
        change, length, start = product(K, unit, direction), 1.0, (a, f, value)
        while length > SETTINGS.shortest_step:
            a, f = start[0] + length * direction, start[1] + length * change
            value, _, b = loss.primal(f, float(a @ f) / 2, y, bias)
            if value < start[2]:
                break
            length /= 2
        else:
            return
        feasible = loss.project(a, y, bias)
        yield feasible, f + product(K, unit, feasible - a)


def product(K: NDArray[Any], unit: float, d: Array) -> Array:
    """Return unit * K @ d, computed in the numbers of K with d scaled to one."""
    size = float(np.abs(d).max(initial=0.0))
    if not size > 0:
        return np.zeros(d.size)
    return np.asarray((unit * size) * (K @ (d / size).astype(K.dtype)).astype(float))


def inverse_hessian(loss: Loss, y: Array, t: Array) -> Array:
    """Return one over the second derivative of the loss at each sample, which is the curvature of -l."""
    if loss.quadratic:
        return np.asarray(loss.curve(y).curvature)
    hessian = np.asarray(loss.hessian_diag(t, y), dtype=float)
    least = SETTINGS.smallest_hessian * float(hessian.max())
    least = least if least > SMALLEST_DIVISOR else 1.0  # where all are flat
    return np.asarray(1 / np.maximum(hessian, least))

"""Training at a fixed kernel: the value of the risk, its signed dual variable alpha and its intercept."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import Any, NamedTuple

import numpy as np

from kernelopt.learner.newton import newton_steps
from kernelopt.learner.programs import dual_program, program_seconds
from kernelopt.learner.quadratic import interior_points
from kernelopt.learner.settings import SETTINGS
from kernelopt.learner.smo import smo_points
from kernelopt.losses import Loss
from kernelopt.numerics.decompositions import pivoted_cholesky
from kernelopt.records import record
from kernelopt.running import check, seconds_left
from kernelopt.validation import Array


@record("trained")
class Machine(NamedTuple):
    """A trained machine f = sum_m K_m coefficients_m + intercept of one kernel or of several.

    `value` is the primal objective that this machine attains, hence an upper bound of the optimum. The
    coefficients are multiples of alpha, with one exception. For a block norm above 2 and K_m alpha = 0, alpha
    does not determine part m.
    """

    value: float
    alpha: Array
    intercept: float
    parts: Array | None = None  # the coefficients, where they are not alpha

    @property
    def coefficients(self) -> Array:
        """The coefficients of each kernel, shape (m, n)."""
        return self.alpha[None] if self.parts is None else self.parts

    @property
    def scales(self) -> Array:
        """The scales |coefficients_m| / |alpha| of f = sum_m scales_m K_m alpha, shape (m,).

        They are ones where alpha = 0, since then f = 0 for all scales.
        """
        length = float(np.linalg.norm(self.alpha))
        if self.parts is None or not length > 0:
            return np.ones(len(self.coefficients))
        return np.asarray(np.linalg.norm(self.parts, axis=1) / length)


def learn(
    K: Array,
    y: Array,
    loss: Loss,
    bias: bool,
    start: Array | None = None,
    tol: float = 1e-9,
) -> Machine:
    """Return the minimiser of loss(f + b) + 1/2 |f|_K^2 at the PSD matrix K, shape (n, n).

    Several solvers of the dual are run in turn. The work ends as soon as the value of a machine and the
    lower bound of its alpha agree to `tol` relative, and the machine with the smallest gap is returned. A
    `start`, such as the alpha of a similar kernel, is tried first, and the solver that can use it comes
    next.
    """
    origin = np.zeros(y.size) if start is None else start
    solvers: list[Iterator[Array]] = [] if start is None else [iter([start])]
    if has_smooth_dual(loss, y):
        solvers.append(smooth_points(K, y, loss, bias, origin))
    else:  # SMO is the last resort for small kernels, since no tolerance of it depends on the scaling
        both = [interior_points(K, y, loss, bias), smo_points(K, y, loss, bias, origin)]
        solvers += both if start is None and y.size <= SETTINGS.small else both[::-1]
    best, smallest = machine_at(K, np.zeros(y.size), y, loss, bias), np.inf
    for alpha in chain.from_iterable(solvers):
        check()
        machine = machine_at(K, alpha, y, loss, bias)
        gap = abs(machine.value - lower_bound(K, machine.alpha, y, loss))  # negative only by rounding
        if gap < smallest:
            best, smallest = machine, gap
        if np.isfinite(gap) and gap <= tol * abs(machine.value):
            break
    return best


def machine_at(K: Any, alpha: Array, y: Array, loss: Loss, bias: bool) -> Machine:
    """Return the machine of a given alpha with the best intercept, and the best scale for a hard margin."""
    alpha = loss.project(alpha, y, bias)
    f = K @ alpha
    primal = loss.primal(f, max(float(alpha @ f), 0.0) / 2, y, bias)
    return Machine(primal.value, primal.scale * alpha, primal.intercept)


def lower_bound(K: Array, alpha: Array, y: Array, loss: Loss) -> float:
    """Return l(alpha) - 1/2 alpha'K alpha, a lower bound of the optimum for alpha in the dual domain."""
    return loss.dual_value(alpha, y) - float(alpha @ K @ alpha) / 2


def has_smooth_dual(loss: Loss, y: Array) -> bool:
    """Whether Newton's method serves a loss: its dual is not quadratic, or has no bounds and no kinks."""
    curve = loss.curve(y)
    return not (
        loss.quadratic and (np.isfinite(curve.lower) | np.isfinite(curve.upper) | (curve.l1 > 0)).any()
    )


def smooth_points(K: Array, y: Array, loss: Loss, bias: bool, start: Array) -> Iterator[Array]:
    """Yield points near the dual optimum of a smooth loss: Newton's method, then a conic solve.

    No conic solve is started for which the running call has too little time left.
    """
    start = loss.project(start, y, bias)
    if loss.quadratic or loss.hessian_diag(start, y) is not None:
        for alpha, _ in newton_steps(K, y, loss, bias, start, K @ start):
            yield alpha
    factor = pivoted_cholesky(K, "the kernel")
    if program_seconds([factor]) < seconds_left():
        yield dual_program([factor], y, loss, bias, 2)[0]

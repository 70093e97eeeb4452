"""Training at several fixed kernels with a block norm of their parts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import cvxpy as cp
import numpy as np

from kernelopt.learner.programs import block_scales, dual_program, half_square, solve_conic
from kernelopt.learner.settings import SETTINGS
from kernelopt.learner.single import Machine, learn
from kernelopt.losses import Loss
from kernelopt.numerics.decompositions import pivoted_cholesky
from kernelopt.numerics.norms import conjugate_exponent, lp_length
from kernelopt.numerics.rounding import SMALLEST_DIVISOR
from kernelopt.threads import quietly
from kernelopt.validation import Array


def learn_blocks(Ks: Sequence[Array], y: Array, loss: Loss, bias: bool, norm: float) -> Machine:
    """Return the minimiser of loss(sum_m f_m + b) + 1/2 |(|f_m|_{K_m})_m|_norm^2, norm >= 1.

    The dual is solved as a conic programme, which gives alpha and the scales of f = sum_m scales_m K_m alpha.
    Alternating between `learn` at the kernel sum_m scales_m K_m and the scales of its alpha refines both. For
    norm > 2 the primal is solved too if the gap is still large.
    """
    if len(Ks) == 1 or norm == 2:
        machine = learn(np.asarray(sum(Ks)), y, loss, bias)
        return machine._replace(parts=np.tile(machine.alpha, (len(Ks), 1)))
    factors = [pivoted_cholesky(K, f"kernel {i}") for i, K in enumerate(Ks)]
    alpha, scales = dual_program(factors, y, loss, bias, norm)
    best = blocks_at(Ks, alpha, scales, y, loss, bias, norm)
    # The conic solver's alpha is accurate to about 1e-6. Training at the combined kernel is more accurate.
    for _ in range(1 if norm < 2 else SETTINGS.polishing_steps):
        if norm < 2:
            scales = scales / max(lp_length(scales, norm / (2 - norm)), SMALLEST_DIVISOR)
        alpha = learn(np.tensordot(scales, np.asarray(Ks), 1), y, loss, bias).alpha
        if norm > 2:
            scales = block_scales(np.array([float(alpha @ K @ alpha) for K in Ks]), norm)
        polished = blocks_at(Ks, alpha, scales, y, loss, bias, norm)
        if not polished.value < best.value:
            break
        best = polished
    if norm > 2:
        lower = block_lower_bound(Ks, best.alpha, y, loss, norm)
        if not (np.isfinite(best.value) and best.value - lower <= SETTINGS.close * abs(best.value)):
            other = primal_blocks(Ks, factors, y, loss, bias, norm)
            best = min(best, other, key=lambda machine: machine.value)
    return best


def primal_blocks(
    Ks: Sequence[Array],
    factors: Sequence[Array],
    y: Array,
    loss: Loss,
    bias: bool,
    norm: float,
) -> Machine:
    """Return the machine for a norm above 2 from its primal problem.

    Alpha does not determine the parts of kernels of low rank in this case.
    """
    with quietly():
        us = [cp.Variable(L.shape[1]) if L.shape[1] else None for L in factors]
        z = cp.Variable(y.size)
        b = cp.Variable() if bias else 0.0
        f = cp.sum([L @ u for L, u in zip(factors, us, strict=True) if u is not None]) + b
        fit = z == f
        square = half_square([cp.sum_squares(u) for u in us if u is not None], [], norm)
        problem = cp.Problem(cp.Minimize(loss.expression(z, y) + square), [fit])
    solve_conic(problem, loss)
    alpha = loss.project(np.asarray(fit.dual_value), y, bias)
    coefficients = np.zeros((len(Ks), y.size))
    for m, (L, u) in enumerate(zip(factors, us, strict=True)):
        if u is not None:
            coefficients[m] = np.linalg.lstsq(L.T, u.value, rcond=None)[0]
    return blocks_with(Ks, alpha, coefficients, y, loss, bias, norm)


def blocks_at(
    Ks: Sequence[Any], alpha: Array, scales: Array, y: Array, loss: Loss, bias: bool, norm: float
) -> Machine:
    """Return the machine of given alpha and scales, with the best intercept."""
    alpha = loss.project(alpha, y, bias)
    return blocks_with(Ks, alpha, np.outer(scales, alpha), y, loss, bias, norm)


def blocks_with(
    Ks: Sequence[Any], alpha: Array, coefficients: Array, y: Array, loss: Loss, bias: bool, norm: float
) -> Machine:
    """Return the machine of given coefficients, with the best intercept."""
    parts = np.array([K @ c for K, c in zip(Ks, coefficients, strict=True)])
    squares = np.maximum([float(c @ part) for c, part in zip(coefficients, parts, strict=True)], 0.0)
    half_square = lp_length(np.sqrt(squares), norm) ** 2 / 2
    primal = loss.primal(parts.sum(axis=0), half_square, y, bias)
    return Machine(primal.value, primal.scale * alpha, primal.intercept, primal.scale * coefficients)


def block_lower_bound(Ks: Sequence[Array], alpha: Array, y: Array, loss: Loss, norm: float) -> float:
    """Return the lower bound l(alpha) - 1/2 |(sqrt(alpha'K_m alpha))_m|_s^2 with 1/s + 1/norm = 1."""
    q = np.sqrt([max(float(alpha @ K @ alpha), 0.0) for K in Ks])
    return loss.dual_value(alpha, y) - lp_length(q, conjugate_exponent(norm)) ** 2 / 2

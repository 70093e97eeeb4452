"""The learner at a fixed kernel: its value, its signed dual variable alpha and its intercept."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import NamedTuple

import clarabel
import cvxpy as cp
import numpy as np
import scipy.sparse as sp
from sklearn.svm import SVC

from kernelopt.errors import SolverError
from kernelopt.grams import pivoted_cholesky
from kernelopt.losses import Loss, hinge
from kernelopt.losses.base import per_sample
from kernelopt.validation import Array

LARGEST_QP = 500
POLISHING_STEPS = 10


class Machine(NamedTuple):
    """A trained machine f(x) = sum_i alpha_i k(x_i, x) + intercept.

    `value` is the primal objective that this machine attains, so never below the optimum.
    """

    value: float
    alpha: Array
    intercept: float


class BlockMachine(NamedTuple):
    """A machine with one part per kernel, f = sum_m K_m coefficients_m + intercept.

    The coefficients are multiples of alpha, but where `norm` is infinite and K_m alpha vanishes: then
    part m is free within the norm that the others have.
    """

    value: float
    alpha: Array
    intercept: float
    coefficients: Array  # (m, n)


def learn(K: Array, y: Array, loss: Loss, bias: bool) -> Machine:
    """Return the minimiser of loss(f + b) + 1/2 |f|_K^2 at the PSD matrix K, shape (n, n)."""
    return machine_at(K, dual_maximizer(K, y, loss, bias), y, loss, bias)


def machine_at(K: Array, alpha: Array, y: Array, loss: Loss, bias: bool) -> Machine:
    """Return the machine of a given alpha with its best intercept (and scale, for a hard margin)."""
    alpha = loss.project(alpha, y, bias)
    f = K @ alpha
    primal = loss.primal(f, max(float(alpha @ f), 0.0) / 2, y, bias)
    return Machine(primal.value, primal.scale * alpha, primal.intercept)


def lower_bound(K: Array, alpha: Array, y: Array, loss: Loss) -> float:
    """Return l(alpha) - 1/2 alpha'K alpha, below the optimum for every alpha in the dual domain."""
    return loss.conjugate(alpha, y) - float(alpha @ K @ alpha) / 2


def dual_maximizer(K: Array, y: Array, loss: Loss, bias: bool) -> Array:
    """Return a maximiser of l(alpha) - 1/2 alpha'K alpha over the dual domain, to solver accuracy."""
    if isinstance(loss, hinge) and bias and y.size > LARGEST_QP:
        return support_vectors(K, y, per_sample(loss.C, y.size))
    if loss.quadratic:
        return quadratic_program(K, y, loss, bias)
    L = pivoted_cholesky(K, "the kernel")
    alpha, _ = dual_program([L], y, loss, bias, np.inf)
    return alpha


def support_vectors(K: Array, y: Array, C: Array) -> Array:
    """The hinge by libsvm, whose kernel cache is in single precision."""
    machine = SVC(kernel="precomputed", C=1.0, tol=1e-9, cache_size=500).fit(K, y, sample_weight=C)
    alpha = np.zeros(y.size)
    alpha[machine.support_] = machine.dual_coef_[0]
    return alpha


def quadratic_program(K: Array, y: Array, loss: Loss, bias: bool) -> Array:
    """Losses with a piecewise quadratic dual, by the interior-point method of Clarabel."""
    n = y.size
    linear, curvature, kink, lower, upper = loss.curve(y)
    eye, none = sp.eye_array(n, format="csc"), sp.csc_array((n, n))
    P = sp.csc_array(np.triu(K + np.diag(curvature)))
    q, rows, b = -linear, [], []
    cones: list[object] = []
    if bias:
        rows, b, cones = [sp.csc_array(np.ones((1, n)))], [np.zeros(1)], [clarabel.ZeroConeT(1)]
    above, below = np.isfinite(upper), np.isfinite(lower)
    rows += [eye[above], -eye[below]]
    b += [upper[above], -lower[below]]
    inequalities = int(above.sum() + below.sum())
    if kink.any():  # |a| <= t
        P = sp.block_array([[P, None], [None, none]], format="csc")
        q = np.concatenate([q, kink])
        rows = [sp.hstack([row, sp.csc_array((row.shape[0], n))]) for row in rows]
        rows += [sp.hstack([eye, -eye]), sp.hstack([-eye, -eye])]
        b += [np.zeros(2 * n)]
        inequalities += 2 * n
    cones += [clarabel.NonnegativeConeT(inequalities)] if inequalities else []
    if not cones:  # unconstrained: squared loss without intercept
        return np.asarray(np.linalg.solve(K + np.diag(curvature), linear), dtype=float)
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.max_threads = 1
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-11
    A = sp.vstack(rows, format="csc")
    point = clarabel.DefaultSolver(P, q, A, np.concatenate(b), cones, settings).solve()
    x = np.asarray(point.x, dtype=float)
    return x[:n] if x.size and np.isfinite(x).all() else np.zeros(n)


def dual_program(
    factors: Sequence[Array], y: Array, loss: Loss, bias: bool, norm: float
) -> tuple[Array, Array]:
    """Maximise l(alpha) - 1/2 |(|L_m' alpha|)_m|_s^2 with 1/s + 1/norm = 1 (s = 1 for `norm=inf`).

    Returns alpha and the scales of f = sum_m scales_m K_m alpha. For `norm=1` the scales are the
    multipliers of 1/2 |L_m' alpha|^2 <= xi, which alpha alone does not determine.
    """
    alpha = cp.Variable(y.size, name="alpha")
    gain, constraints = loss.conjugate_expression(alpha, y)
    if bias:
        constraints = [*constraints, cp.sum(alpha) == 0]
    present = [m for m, L in enumerate(factors) if L.shape[1]]
    forms = [cp.sum_squares(factors[m].T @ alpha) for m in present]
    caps: list[cp.Constraint] = []
    if norm == 2 or len(present) <= 1:
        problem = cp.Problem(cp.Maximize(gain - sum(forms) / 2), constraints)
    elif norm == 1:
        top = cp.Variable(name="top")
        caps = [form / 2 <= top for form in forms]
        problem = cp.Problem(cp.Maximize(gain - top), [*constraints, *caps])
    else:
        lengths = cp.hstack([cp.norm2(factors[m].T @ alpha) for m in present])
        s = 1.0 if np.isinf(norm) else norm / (norm - 1)
        size = cp.sum(lengths) if s == 1 else cp.pnorm(lengths, s, approx=False)
        problem = cp.Problem(cp.Maximize(gain - cp.square(size) / 2), constraints)
    conic(problem, loss)
    scales = np.zeros(len(factors))
    if norm == 2 or len(present) <= 1:
        scales[present] = 1.0
    elif norm == 1:
        scales[present] = [float(np.ravel(cap.dual_value)[0]) for cap in caps]
    else:
        scales[present] = block_scales(np.array([float(form.value) for form in forms]), norm)
    return np.asarray(alpha.value, dtype=float), scales


def conic(problem: cp.Problem, loss: Loss) -> None:
    """Solve a small auxiliary problem; its accuracy is measured by the machine that comes out."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            problem.solve(solver=cp.CLARABEL, max_threads=1)
        except cp.SolverError:
            problem.solve(solver=cp.SCS, eps_abs=1e-9, eps_rel=1e-9)
    if problem.value is None or not np.isfinite(problem.value):
        raise SolverError(
            f"the machine at a fixed kernel must have a solution, got status {problem.status} for {loss!r}. "
            "Scale the kernels to a mean diagonal of one, or change C."
        )


def block_scales(forms: Array, norm: float) -> Array:
    """Return |f_m| / sqrt(alpha'K_m alpha) at the optimum, from the quadratic forms, for `norm` > 1."""
    if norm == 2:
        return np.ones(forms.size)
    q = np.sqrt(np.maximum(forms, 0.0))
    s = 1.0 if np.isinf(norm) else norm / (norm - 1)
    length = float(np.linalg.norm(q, s))
    safe = np.where(q > 0, q, 1.0)
    scales: Array = np.where(q > 0, (safe / max(length, 1e-300)) ** (s - 2), 0.0)
    return scales


def learn_blocks(Ks: Sequence[Array], y: Array, loss: Loss, bias: bool, norm: float) -> BlockMachine:
    """Return the minimiser of loss(sum_m f_m + b) + 1/2 |(|f_m|_{K_m})_m|_norm^2, norm >= 1."""
    if len(Ks) == 1 or norm == 2:
        machine = learn(np.asarray(sum(Ks)), y, loss, bias)
        return BlockMachine(*machine, np.tile(machine.alpha, (len(Ks), 1)))
    factors = [pivoted_cholesky(K, f"kernel {i}") for i, K in enumerate(Ks)]
    alpha, scales = dual_program(factors, y, loss, bias, norm)
    best = blocks_at(Ks, alpha, scales, y, loss, bias, norm)
    # The conic alpha is good to about 1e-6; the machine at the combined kernel is better.
    for _ in range(1 if norm < 2 else POLISHING_STEPS):
        if norm < 2:
            scales = scales / max(float(np.linalg.norm(scales, norm / (2 - norm))), 1e-300)
        alpha = loss.project(dual_maximizer(np.tensordot(scales, np.asarray(Ks), 1), y, loss, bias), y, bias)
        if norm > 2:
            scales = block_scales(np.array([float(alpha @ K @ alpha) for K in Ks]), norm)
        polished = blocks_at(Ks, alpha, scales, y, loss, bias, norm)
        if not polished.value < best.value:
            break
        best = polished
    if np.isinf(norm):
        lower = block_lower_bound(Ks, best.alpha, y, loss, norm)
        if not best.value - lower <= 1e-7 * max(1.0, abs(lower)):
            best = min(best, primal_blocks(Ks, factors, y, loss, bias), key=lambda machine: machine.value)
    return best


def primal_blocks(
    Ks: Sequence[Array], factors: Sequence[Array], y: Array, loss: Loss, bias: bool
) -> BlockMachine:
    """The machine for an infinite norm from its primal: alpha does not determine parts of low rank."""
    us = [cp.Variable(L.shape[1]) if L.shape[1] else None for L in factors]
    z = cp.Variable(y.size)
    b = cp.Variable() if bias else 0.0
    f = cp.sum([L @ u for L, u in zip(factors, us, strict=True) if u is not None]) + b
    fit = z == f
    length = cp.max(cp.hstack([cp.norm2(u) for u in us if u is not None]))
    conic(cp.Problem(cp.Minimize(loss.expression(z, y) + cp.square(length) / 2), [fit]), loss)
    alpha = loss.project(np.asarray(fit.dual_value), y, bias)
    coefficients = np.zeros((len(Ks), y.size))
    for m, (L, u) in enumerate(zip(factors, us, strict=True)):
        if u is not None:
            coefficients[m] = np.linalg.lstsq(L.T, u.value, rcond=None)[0]
    return blocks_with(Ks, alpha, coefficients, y, loss, bias, np.inf)


def blocks_at(
    Ks: Sequence[Array], alpha: Array, scales: Array, y: Array, loss: Loss, bias: bool, norm: float
) -> BlockMachine:
    """Return the machine of given alpha and scales with its best intercept."""
    alpha = loss.project(alpha, y, bias)
    return blocks_with(Ks, alpha, np.outer(scales, alpha), y, loss, bias, norm)


def blocks_with(
    Ks: Sequence[Array], alpha: Array, coefficients: Array, y: Array, loss: Loss, bias: bool, norm: float
) -> BlockMachine:
    """Return the machine of given coefficients with its best intercept."""
    parts = np.array([K @ c for K, c in zip(Ks, coefficients, strict=True)])
    squares = np.maximum([float(c @ part) for c, part in zip(coefficients, parts, strict=True)], 0.0)
    half_square = float(np.linalg.norm(np.sqrt(squares), norm)) ** 2 / 2
    primal = loss.primal(parts.sum(axis=0), half_square, y, bias)
    return BlockMachine(primal.value, primal.scale * alpha, primal.intercept, primal.scale * coefficients)


def block_lower_bound(Ks: Sequence[Array], alpha: Array, y: Array, loss: Loss, norm: float) -> float:
    """Return l(alpha) - 1/2 |(sqrt(alpha'K_m alpha))_m|_s^2 with 1/s + 1/norm = 1."""
    q = np.sqrt([max(float(alpha @ K @ alpha), 0.0) for K in Ks])
    s = np.inf if norm == 1 else (1.0 if np.isinf(norm) else norm / (norm - 1))
    return loss.conjugate(alpha, y) - float(np.linalg.norm(q, s)) ** 2 / 2

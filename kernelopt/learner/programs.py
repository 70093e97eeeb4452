"""The dual at fixed kernels as a conic programme, for losses and block norms that give no QP."""

from __future__ import annotations

from collections.abc import Sequence

import cvxpy as cp
import numpy as np

from kernelopt.conic.compiled import solve_compiled
from kernelopt.conic.costs import COMPILATION_FIXED, DENSE_ENTRY
from kernelopt.errors import SolverError
from kernelopt.learner.settings import SETTINGS
from kernelopt.losses import Loss
from kernelopt.numerics.norms import conjugate_exponent, lp_length
from kernelopt.numerics.rounding import SMALLEST_DIVISOR
from kernelopt.running import check
from kernelopt.threads import quietly
from kernelopt.validation import Array


def dual_program(
    factors: Sequence[Array], y: Array, loss: Loss, bias: bool, norm: float
) -> tuple[Array, Array]:
    """Maximise l(alpha) - 1/2 |(|L_m' alpha|)_m|_s^2 with 1/s + 1/norm = 1 (s = 1 for `norm=inf`).

    It raises `Stopped` where the running call has less time left than `program_seconds`.

    Returns
    -------
    alpha : array of shape (n,)
    scales : array of shape (m,)
        The scales of f = sum_m scales_m K_m alpha. For `norm=1` alpha does not determine them. They are then
        the multipliers of 1/2 |L_m' alpha|^2 <= top.
    """
    check(program_seconds(factors))
    with quietly():
        alpha = cp.Variable(y.size, name="alpha")
        gain, constraints = loss.dual_expression(alpha, y)
        if bias:
            constraints = [*constraints, cp.sum(alpha) == 0]
        present = [m for m, L in enumerate(factors) if L.shape[1]]
        forms = [cp.sum_squares(factors[m].T @ alpha) for m in present]
        caps: list[cp.Constraint] = []
        if norm == 1 and len(present) > 1:
            top = cp.Variable(name="top")
            caps = [form / 2 <= top for form in forms]
        else:
            lengths = [cp.norm2(factors[m].T @ alpha) for m in present]
            top = half_square(forms, lengths, conjugate_exponent(norm)) if present else 0.0
        problem = cp.Problem(cp.Maximize(gain - top), [*constraints, *caps])
    solve_conic(problem, loss)
    scales = np.zeros(len(factors))
    if norm == 2 or len(present) <= 1:
        scales[present] = 1.0
    elif norm == 1:
        scales[present] = [float(np.ravel(cap.dual_value)[0]) for cap in caps]
    else:
        scales[present] = block_scales(np.array([float(form.value) for form in forms]), norm)
    return np.asarray(alpha.value, dtype=float), scales


def half_square(
    squares: Sequence[cp.Expression], lengths: Sequence[cp.Expression | None], norm: float
) -> cp.Expression:
    """Return 1/2 |(l_m)_m|_norm^2 as a convex expression of the l_m^2, for norms below 2 of the l_m."""
    if len(squares) == 1 or norm == 2:
        return cp.sum(list(squares)) / 2
    if norm == np.inf:
        return cp.max(cp.hstack(squares)) / 2
    if norm > 2:
        return cp.pnorm(cp.hstack(squares), norm / 2, approx=False) / 2
    size = cp.sum(list(lengths)) if norm == 1 else cp.pnorm(cp.hstack(lengths), norm, approx=False)
    return cp.square(size) / 2


def program_seconds(factors: Sequence[Array]) -> float:
    """Return the predicted seconds of the compilation by cvxpy, which cannot be interrupted."""
    return COMPILATION_FIXED + DENSE_ENTRY * sum(L.size for L in factors)


def solve_conic(problem: cp.Problem, loss: Loss) -> None:
    """Solve a small auxiliary problem by Clarabel, or by SCS if that fails.

    The accuracy is not checked here: it shows in the value of the machine. The lock on cvxpy is released
    while the solver runs.
    """
    try:
        solve_compiled(problem, cp.CLARABEL, {"max_threads": 1})
    except cp.SolverError:
        solve_compiled(problem, cp.SCS, dict.fromkeys(("eps_abs", "eps_rel"), SETTINGS.scs_tolerance))
    if problem.value is None or not np.isfinite(problem.value):
        raise SolverError(
            f"the machine at a fixed kernel must have a solution, got status {problem.status} for {loss!r}. "
            "Scale the kernels to a mean diagonal of one, or change C."
        )


def block_scales(forms: Array, norm: float) -> Array:
    """Return the scales |f_m| / sqrt(alpha'K_m alpha) at the optimum, for `norm` > 1.

    With q_m = sqrt(forms_m) and 1/s + 1/norm = 1 they are (q_m / |q|_s)^(s - 2).
    """
    if norm == 2:
        return np.ones(forms.size)
    q = np.sqrt(np.maximum(forms, 0.0))
    s = conjugate_exponent(norm)
    length = lp_length(q, s)
    safe = np.where(q > 0, q, 1.0)
    scales: Array = np.where(q > 0, (safe / max(length, SMALLEST_DIVISOR)) ** (s - 2), 0.0)
    return scales

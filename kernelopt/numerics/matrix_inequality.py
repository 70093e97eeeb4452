"""A primal-dual interior-point method for quadratic programmes with one small matrix inequality."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy.linalg as sl

from kernelopt.validation import Array

STEP_SHARE = 0.95  # of the step to the boundary of the cones
SMALLEST_CENTERING = 1e-3  # keeps the iterates away from the boundary
MOST_STEPS = 60  # at most; ten to fifteen are usual
SHORTEST_STEP = 1e-6  # a shorter step is due to rounding


class SmallProgram(NamedTuple):
    """min c'x + 1/2 x'Hx subject to A x + b >= 0 and S_0 + sum_j x_j S_j >> 0.

    Attributes
    ----------
    c : array of shape (p,)
    H : array of shape (p, p), positive semidefinite
    A, b : arrays of shapes (q, p) and (q,)
    S0, S : arrays of shapes (k, k) and (p, k, k), symmetric, k >= 1
    """

    c: Array
    H: Array
    A: Array
    b: Array
    S0: Array
    S: Array

    def matrix(self, x: Array) -> Array:
        """Return S_0 + sum_j x_j S_j."""
        k = len(self.S0)
        return self.S0 + (x @ self.S.reshape(x.size, -1)).reshape(k, k)

    def adjoint(self, Z: Array) -> Array:
        """Return the vector of <S_j, Z>."""
        found: Array = self.S.reshape(self.c.size, -1) @ Z.ravel()
        return found


def solve_small(program: SmallProgram, x: Array, gap: float, first_gap: float) -> tuple[Array, Array, Array]:
    """Return about the minimiser x, the multipliers of A x + b >= 0, and the multiplier Z of the inequality.

    It is the direction of Helmberg, Rendl, Vanderbei and Wolkowicz, Kojima, Shindoh and Hara, and Monteiro
    (HKM), with the predictor and corrector of Mehrotra. All Z are positive definite and all multipliers are
    positive. The dual equality holds once a full step was made, up to rounding.

    Parameters
    ----------
    program : SmallProgram
    x : array of shape (p,), strictly feasible
        The start.
    gap : float
        The duality gap <Z, S> + multipliers'(A x + b) at which the method ends.
    first_gap : float > 0
        About the distance of the value at x from the optimum, for the first multipliers.
    """
    k, q = len(program.S0), program.b.size
    d = program.A @ x + program.b
    L = sl.cholesky(program.matrix(x), lower=True, check_finite=False)
    inverse = inverse_of(L)
    tau = first_gap / (k + q)
    Z, multipliers = tau * inverse, tau / d
    for _ in range(MOST_STEPS):
        S = program.matrix(x)
        mean = (float(np.vdot(Z, S)) + float(multipliers @ d)) / (k + q)
        residual = program.c + program.H @ x - program.adjoint(Z) - program.A.T @ multipliers
        scale = np.abs(program.c).max() + np.abs(program.H @ x).max(initial=0.0)
        if mean * (k + q) <= gap and np.abs(residual).max() <= 1e-6 * scale:
            break
        T = Z @ program.S @ inverse
        M = program.S.reshape(x.size, -1) @ T.reshape(x.size, -1).T
        M = (M + M.T) / 2 + program.H + (program.A.T * (multipliers / d)) @ program.A
        gradient = program.c + program.H @ x
        centre = program.adjoint(inverse) + program.A.T @ (1 / d)
        factor = factored(M)
        if factor is None:
            break
        dx = sl.cho_solve(factor, -gradient, check_finite=False)
        dS, dZ, dd, dl = direction(program, inverse, Z, multipliers, d, dx, 0.0)
        steps = step_lengths(L, Z, d, multipliers, dS, dZ, dd, dl)
        after = float(np.vdot(Z + steps[1] * dZ, S + steps[0] * dS))
        after += float((multipliers + steps[1] * dl) @ (d + steps[0] * dd))
        sigma = min(1.0, max(SMALLEST_CENTERING, (max(after, 0.0) / (k + q) / mean) ** 3))
        second = symmetric(dZ @ dS @ inverse)
        second_linear = dl * dd / d
        right = -gradient + sigma * mean * centre - program.adjoint(second) - program.A.T @ second_linear
        dx = sl.cho_solve(factor, right, check_finite=False)
        dS, dZ, dd, dl = direction(program, inverse, Z, multipliers, d, dx, sigma * mean)
        dZ, dl = dZ - second, dl - second_linear
        primal, dual = step_lengths(L, Z, d, multipliers, dS, dZ, dd, dl)
        if program.H.any():  # with a quadratic term unequal steps may diverge
            primal = dual = min(primal, dual)
        if min(primal, dual) < SHORTEST_STEP:
            break
        accepted = advanced(program, x + primal * dx, Z + dual * dZ)
        if accepted is None:
            break
        x, L, Z = accepted
        d, multipliers = program.A @ x + program.b, multipliers + dual * dl
        inverse = inverse_of(L)
    return x, multipliers, Z


def advanced(program: SmallProgram, x: Array, Z: Array) -> tuple[Array, Array, Array] | None:
    """Return x, the factor of its matrix and Z, or None where rounding has made one of them indefinite."""
    Z = symmetric(Z)
    try:
        L = sl.cholesky(program.matrix(x), lower=True, check_finite=False)
        sl.cholesky(Z, lower=True, check_finite=False)  # the triangle that later factorisations read
    except (sl.LinAlgError, ValueError):
        return None
    return (x, L, Z) if np.isfinite(x).all() and (program.A @ x + program.b > 0).all() else None


def direction(
    program: SmallProgram, inverse: Array, Z: Array, multipliers: Array, d: Array, dx: Array, target: float
) -> tuple[Array, Array, Array, Array]:
    """Return the changes of S, Z, d and the multipliers for a change of x, towards Z S = target I."""
    k = len(Z)
    dS = (dx @ program.S.reshape(dx.size, -1)).reshape(k, k)
    dd = program.A @ dx
    dZ = target * inverse - Z - symmetric(Z @ dS @ inverse)
    return dS, dZ, dd, target / d - multipliers - multipliers * dd / d


def step_lengths(
    L: Array, Z: Array, d: Array, multipliers: Array, dS: Array, dZ: Array, dd: Array, dl: Array
) -> tuple[float, float]:
    """Return the primal and the dual step, at most one, that stay inside the cones."""
    R = sl.cholesky(Z, lower=True, check_finite=False)
    return min(semidefinite_step(L, dS), linear_step(d, dd)), min(
        semidefinite_step(R, dZ), linear_step(multipliers, dl)
    )


def semidefinite_step(L: Array, change: Array) -> float:
    """Return the share of the largest step with L L' + step * change >> 0, at most one."""
    half = sl.solve_triangular(L, change, lower=True, check_finite=False)
    scaled = sl.solve_triangular(L, half.T, lower=True, check_finite=False)
    lowest = float(np.linalg.eigvalsh(symmetric(scaled))[0])
    return 1.0 if lowest >= -STEP_SHARE else -STEP_SHARE / lowest


def linear_step(d: Array, change: Array) -> float:
    """Return the share of the largest step with d + step * change >= 0, at most one."""
    lowest = float((change / d).min(initial=0.0))
    return 1.0 if lowest >= -STEP_SHARE else -STEP_SHARE / lowest


def factored(M: Array) -> tuple[Array, bool] | None:
    """Return the Cholesky factor of a positive semidefinite matrix raised by rounding, or None."""
    for raise_by in (1e-15, 1e-12, 1e-9):
        try:
            factor: tuple[Array, bool] = sl.cho_factor(M + raise_by * np.diag(np.diag(M)), lower=True)
            return factor
        except (sl.LinAlgError, ValueError):
            continue
    return None


def inverse_of(L: Array) -> Array:
    """Return (L L')^-1."""
    return symmetric(sl.cho_solve((L, True), np.eye(len(L)), check_finite=False))


def symmetric(M: Array) -> Array:
    """Return (M + M') / 2."""
    return (M + M.T) / 2

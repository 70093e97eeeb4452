"""The best bound, and the Farkas ray, near the approximate multiplier that a solver returned."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import scipy.sparse as sp
from scipy.linalg import lu_factor, lu_solve
from scipy.sparse.linalg import lsqr, splu

from kernelopt.certificates.boxes import Box
from kernelopt.certificates.conic.cones import ConeProgram
from kernelopt.certificates.conic.dual_cones import (
    LocalMetric,
    barrier_gradient,
    interior_point,
    into_dual_cone,
)
from kernelopt.certificates.conic.lagrangian import DualValue, dual_value, gradient
from kernelopt.certificates.conic.settings import SETTINGS
from kernelopt.certificates.conic.tightening import tightened
from kernelopt.conic.costs import SPARSE_PRODUCT
from kernelopt.numerics.ball import Ball
from kernelopt.running import check, running_call
from kernelopt.threads import interruptible
from kernelopt.validation import Array, Index


def solved_normal_equations(A: sp.csr_array, H: LocalMetric) -> Callable[[Array], Array] | None:
    """Return the function that solves A'HA y = r, from LU factors of A'HA scaled to a diagonal of ones.

    None where the matrix is singular to working precision or overflows.
    """
    check(SPARSE_PRODUCT * float((np.diff(A.indptr) ** 2.0).sum()))
    with np.errstate(all="ignore"):
        normal = H.gram(A)
        length = np.sqrt(normal.diagonal())
        scale = np.where(length > 0, 1 / length, 1.0)
        ridge = SETTINGS.ridge * sp.eye_array(scale.size)
        normal = sp.diags_array(scale) @ normal @ sp.diags_array(scale) + ridge
    if not np.isfinite(normal.data).all():
        return None
    try:
        solve = factored(sp.csc_array(normal))
    except RuntimeError:
        return None
    return lambda right: np.asarray(scale * solve(scale * right))


def factored(M: sp.csc_array) -> Callable[[Array], Array]:
    """Return the function that solves with a matrix; the running call may end while it is factored."""
    if M.nnz > SETTINGS.dense_share * M.shape[0] ** 2:
        factors = lu_factor(M.toarray(), check_finite=False)
        return lambda right: np.asarray(lu_solve(factors, right, check_finite=False))
    found = splu(M) if running_call() is None else interruptible(lambda: splu(M), lambda: None)
    return lambda right: np.asarray(found.solve(right))


def corrected_multiplier(program: ConeProgram, columns: Index, z: Array, wanted: Array) -> Array | None:
    """Return z + Delta with (A'(z + Delta))_j = w_j, w = `wanted`, in chosen columns j, in floating point.

    Delta = HA (A'HA)^-1 (w - A'z) has the least norm in the local metric H at z (`LocalMetric`), up to
    rounding, by iterative refinement. None where A'HA is singular or the result overflows.
    """
    if not columns.size:
        return z
    A, H = sp.csr_array(program.A[:, columns]), LocalMetric(program, z)
    with np.errstate(all="ignore"):
        solve = solved_normal_equations(A, H)
        if solve is None:
            return None
        for _ in range(SETTINGS.refinements):
            z = np.asarray(z + H(A @ solve(wanted[columns] - A.T @ z)))
    return z if np.isfinite(z).all() else None


def repaired_bound(program: ConeProgram, box: Box, x: Array, z: Array, columns: Index) -> DualValue:
    """Return the best bound found from multipliers near z, for columns in `box`.

    An attempt corrects A'z in the chosen columns (`corrected_multiplier`), which may leave the dual cone, and
    then moves z into the cone, which changes A'z again. While the loss of the bound is not negligible, or
    A'HA is singular, the next attempt starts from z moved inside by a larger step: four times the last move
    into the cone, within the ten- and the thousandfold of the last step. A slope that has grown tenfold ends
    the attempts: it grows with the step, since no point inside the cone meets the equations near z.
    """
    best = DualValue(-np.inf, np.inf, z, np.zeros(program.c.size))
    near = into_dual_cone(program, z)
    if near is None:
        return best
    slope, e = Ball(gradient(program, x).mid), interior_point(program)
    one_sided = np.isfinite(box.lower).astype(float) - np.isfinite(box.upper)
    smallest, start, step = np.inf, near, SETTINGS.first_step * float(np.abs(near).max(initial=0.0))
    for _ in range(SETTINGS.repairs):
        margin = SETTINGS.sign_margin * (slope + program.A.T @ Ball(near)).rad * one_sided
        corrected, moved = corrected_multiplier(program, columns, near, margin - slope.mid), 0.0
        inside = None if corrected is None else into_dual_cone(program, corrected)
        if corrected is not None and inside is not None:
            moved = float(np.abs(inside - corrected).max(initial=0.0))
            found = dual_value(program, x, inside, box)
            farther = moved == 0.0 and -np.inf < found.value <= best.value  # larger steps cost more
            if found.value > best.value or best.value == -np.inf:
                best = found
            negligible = found.loss <= SETTINGS.negligible_loss * abs(found.value)
            left = float(found.unbounded_slopes.max(initial=0.0))
            if farther or (negligible and found.value > -np.inf) or left > 10 * smallest:
                break
            smallest = min(left or np.inf, smallest)
        step = max(min(4 * moved, 1000 * step), 10 * step)
        near = start + step * e
    return best


def completed(program: ConeProgram, x: Array, z: Array) -> Array:
    """Return a multiplier with its unknown entries, NaN, set so that c + Px + A'z is about zero.

    They start on the central path, from the slack b - Ax, and change by the least local norm.
    """
    unknown = np.isnan(z)
    only = replace(program, A=sp.csc_array(sp.diags_array(unknown.astype(float)) @ program.A))
    known = np.where(unknown, 0.0, z)
    slack = program.b - program.A @ x
    least = SETTINGS.central * max(float(np.abs(slack).max(initial=0.0)), 1.0)
    inside = into_dual_cone(program, slack)  # the cones with a barrier here are their own duals
    if inside is None:
        return known
    start = least * barrier_gradient(program, inside + least * interior_point(program))
    wanted = -gradient(program, x).mid - program.A.T @ known
    found = corrected_multiplier(only, np.arange(x.size), np.where(unknown, start, 0.0), wanted)
    return known + np.where(unknown, start if found is None else found, 0.0)


def farkas(program: ConeProgram, z: Array, known: Box) -> Array | None:
    """Return a ray near z that proves infeasibility, None where none is found.

    z in the dual cone proves it where

        -b'z + min over the box of (A'z)'x > 0:

    by weak duality this number is a lower bound of the program with the objective zero. It is computed by
    `lagrangian.dual_value`, with all rounding errors. Where that uses a Delta which exists but is not
    computed, the returned ray lacks it: it proves infeasibility up to this rounding.
    """
    n, size = program.c.size, float(np.abs(z).max(initial=0.0))
    if not 0.0 < size < np.inf:
        return None
    zero_objective = replace(program, P=sp.csc_array((n, n)), c=np.zeros(n), offset=0.0)
    box = tightened(zero_objective, known)
    z = z / size

    def without_small(threshold: float) -> Array:
        return z * program.by_cone(lambda cone: cone.significant(np.abs(cone.of(z)), threshold))

    rays = [without_small(threshold) for threshold in SETTINGS.negligible]
    for ray in rays[: 1 + bool(np.any(rays[0] != rays[1]))]:
        for columns in column_choices(known):
            bound = repaired_bound(zero_objective, box, np.zeros(n), ray, columns)
            if bound.value > 0.0:
                return bound.z
    # Where columns are dependent there is no correction, but a rounded ray may have A'z = 0 exactly.
    for bits in SETTINGS.rounding_bits:
        rounded = into_dual_cone(program, np.ldexp(np.round(np.ldexp(z, bits)), -bits))
        if rounded is not None and dual_value(zero_objective, np.zeros(n), rounded, box).value > 0.0:
            return rounded
    return None


def column_choices(box: Box) -> list[Index]:
    """Return the columns whose equations are corrected: all, and only the columns without two bounds."""
    every, free = np.arange(box.lower.size), np.flatnonzero(~box.bounded)
    return [every] if free.size == every.size else [every, free]


def completed_point(program: ConeProgram, x: Array) -> Array:
    """Return x with its unknown entries, NaN, set so that the equations Ax = b hold to least squares."""
    unknown = np.isnan(x)
    found = np.where(unknown, 0.0, x)
    if unknown.any() and program.P.nnz:  # only the curved part of the bound depends on x
        A = sp.csr_array(program.A)[: program.dims.zero]
        right = program.b[: program.dims.zero] - A @ found
        found[unknown] = lsqr(A[:, unknown], right, *SETTINGS.least_squares)[0]
    return found


def suggests_ray(program: ConeProgram, z: Array) -> bool:
    """Whether b'z < 0 and A'z is about zero, in floating point."""
    size = float(np.abs(program.b) @ np.abs(z))
    terms = (abs(program.A).T @ np.abs(z)).max(initial=0.0)
    flat = np.abs(program.A.T @ z).max(initial=0.0) <= SETTINGS.ray_error * terms
    return bool(flat and program.b @ z < -SETTINGS.ray_error * size)

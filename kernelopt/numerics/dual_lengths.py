"""Upper bounds of the least dual norm |w|_q over L'w >= b, with all rounding errors."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import scipy.linalg
from scipy.optimize import nnls

from kernelopt.numerics.ball import Ball
from kernelopt.numerics.norms import conjugate_exponent
from kernelopt.numerics.rounding import UNIT, form, gamma, norm_above
from kernelopt.validation import Array

CORRECTIONS = 6  # of a v that rounding leaves infeasible; each is accurate to a small relative error
NEGLIGIBLE_SHORTFALL = 1e-12  # for b of size one: a correction removes so little at no cost
OVERSHOOT = 2.0  # times the missing amount, so that the error of a correction is covered


def over_matrix(matrix: Array, b: Array, is_form: bool) -> float:
    """Return an upper bound of |w|_2 for the shortest w with L'w >= b; of sqrt(z'Ez), Ez >= b, for a form E.

    It is infinite where no such vector was found.
    """
    sizes = np.sqrt(np.diag(matrix)) if is_form else np.linalg.norm(matrix, axis=0)
    used = sizes > 0
    if (b[~used] > 0).any() or not np.isfinite(sizes).all():
        return np.inf
    units = np.ldexp(1.0, -np.frexp(sizes[used])[1])  # powers of two: scaling by them is exact
    columns = matrix[:, used] * units
    scaled = dual_set_of_form(columns[used] * units[:, None]) if is_form else dual_set_of_matrix(columns)
    return feasible_length(scaled, b[used] * units)


def over_diagonal(d: Array, b: Array, p: float) -> float:
    """Return an upper bound of |w|_q for w_j = (b_j)_+ / d_j: the case of a diagonal L."""
    positive = b > 0
    return float((Ball(b[positive]) / Ball(d[positive])).norm(conjugate_exponent(p)).above)


class DualSet(NamedTuple):
    """The set of v with A v >= b. Approximate points come from w with R'w >= b, where A v = R'w."""

    A: Array
    R: Array
    vector: Callable[[Array], Array]  # v from w
    length: Callable[[Array], float]


def dual_set_of_matrix(L: Array) -> DualSet:
    """Return the set {w: L'w >= b} with the length |w|, where v = w."""
    return DualSet(L.T, L, lambda w: w, norm_above)


def dual_set_of_form(E: Array) -> DualSet:
    """Return the set {z: E z >= b} with the length sqrt(z'Ez), where E = R'R and w = R z."""
    R: Array = np.asarray(np.linalg.cholesky(E).T, dtype=float)
    return DualSet(
        E,
        R,
        lambda w: np.asarray(scipy.linalg.solve_triangular(R, w, check_finite=False)),
        lambda z: float(Ball(max(form(E, z).above, 0.0)).power(0.5).above),
    )


def feasible_length(dual_set: DualSet, b: Array) -> float:
    """Return an upper bound of the length of a v with verified A v >= b, infinite where none is found.

    v is about the shortest one. Where rounding leaves A v below b by r, a correction for OVERSHOOT r is
    added.
    """
    w = least_distance(dual_set.R, b)
    if w is None:
        return np.inf
    v = dual_set.vector(w)
    for _ in range(CORRECTIONS):
        missing = shortfall(dual_set.A, v, b)
        if not missing.max() > 0:
            return dual_set.length(v)
        step = least_distance(dual_set.R, OVERSHOOT * missing)
        if step is None:
            return np.inf
        v = v + dual_set.vector(step)
    return np.inf


def shortfall(A: Array, v: Array, b: Array) -> Array:
    """Return upper bounds of (b - A v)_+, with the rounding errors of the sums."""
    error = gamma(v.size + 4) * (np.abs(A) @ np.abs(v)) + 3 * UNIT * np.abs(b)
    return np.maximum(b - A @ v + error, 0.0)


def least_distance(R: Array, b: Array) -> Array | None:
    """Return about the w of least |w| with R'w >= b, None where none is found.

    This is least distance programming (Lawson and Hanson, Solving Least Squares Problems, chapter 23): with
    the u >= 0 that minimises |(R u, b'u) - (0, 1)|, w = R u / (1 - b'u). The constraints with u > 0 are
    active; their equations are solved again by least squares, and the more accurate w is returned.
    """
    if not b.max() > 0:
        return np.zeros(len(R))
    size = max(float(np.linalg.norm(np.linalg.lstsq(R.T, b)[0])), float(b.max()))
    right = b / size
    try:
        u = nnls(np.vstack([R, right]), np.append(np.zeros(len(R)), 1.0))[0]
    except RuntimeError:  # too many iterations
        return None
    denominator = 1 - float(right @ u)
    if not denominator > 0:
        return None
    w = np.asarray(R @ u) / denominator
    active = u > 0
    polished = np.asarray(np.linalg.lstsq(R[:, active].T, right[active])[0], dtype=float)
    missing = [float(np.maximum(right - R.T @ each, 0.0).max()) for each in (w, polished)]
    chosen: Array = (polished if missing[1] <= max(missing[0], NEGLIGIBLE_SHORTFALL) else w) * size
    return chosen if np.isfinite(chosen).all() else None

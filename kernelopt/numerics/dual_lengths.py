"""Upper bounds of the least dual norm |w|_q over L'w >= b, with all rounding errors."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import scipy.linalg
from scipy.optimize import nnls

from kernelopt.numerics.ball import Ball, form
from kernelopt.numerics.norms import conjugate_exponent
from kernelopt.numerics.rounding import UNIT, gamma, norm_above
from kernelopt.validation import Array

CORRECTIONS = 6  # of a v that rounding leaves infeasible; each is accurate to a small relative error
NEGLIGIBLE_SHORTFALL = 1e-12  # for b of size one: a correction removes so little at no cost


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
    if not is_form:
        return feasible_length(columns.T, columns, b[used] * units, lambda w: w, norm_above)
    E = columns[used] * units[:, None]
    R: Array = np.asarray(np.linalg.cholesky(E).T, dtype=float)  # v'Ev = |R v|^2
    return feasible_length(
        E,
        R,
        b[used] * units,
        lambda w: np.asarray(scipy.linalg.solve_triangular(R, w, check_finite=False)),
        lambda v: float(form(E, v).power(0.5).above),
    )


def over_diagonal(d: Array, b: Array, p: float) -> float:
    """Return an upper bound of |w|_q for w_j = (b_j)_+ / d_j: the case of a diagonal L."""
    positive = b > 0
    return float((Ball(b[positive]) / Ball(d[positive])).norm(conjugate_exponent(p)).above)


def feasible_length(
    A: Array,
    R: Array,
    b: Array,
    vector: Callable[[Array], Array],
    length: Callable[[Array], float],
) -> float:
    """Return an upper bound of the length of a v with verified A v >= b, infinite where none is found.

    v = vector(w) is about the shortest one, where A v = R'w and the length of v is |w|. Where rounding leaves
    A v below b by r, a correction for 2 r is added, so that the error of the correction is covered.
    """
    w = least_distance(R, b)
    if w is None:
        return np.inf
    v = vector(w)
    for _ in range(CORRECTIONS):
        missing = shortfall(A, v, b)
        if not missing.max() > 0:
            return length(v)
        step = least_distance(R, 2 * missing)
        if step is None:
            return np.inf
        v = v + vector(step)
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

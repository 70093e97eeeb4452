"""The least dual length |w|_q of a w with L'w >= b, moved up by its rounding errors."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import scipy.linalg
from scipy.optimize import nnls

from kernelopt.numerics.norms import conjugate_exponent, lp_length
from kernelopt.numerics.rounding import UNIT, form, gamma, norm_above, upwards
from kernelopt.structure.powers import Length
from kernelopt.validation import Array

REPAIRS = 6
INSIDE = 2.0  # times what is lacking: a repair is itself met up to a small share


def dual_length(length: Length, b: Array) -> float:
    r"""Return an upper bound, near it, of the largest b'x over x >= 0 with a length of at most one.

    By weak duality :math:`b'x \le w'Lx \le |w|_q |Lx|_p` for every w with :math:`L'w \ge b`, and for
    sqrt(x'Ex), :math:`b'x \le z'Ex \le \sqrt{z'Ez} \sqrt{x'Ex}` where :math:`Ez \ge b`. It is infinite
    where none was found, zero where b <= 0.
    """
    if not np.isfinite(b).all():
        return np.inf
    if not b.max(initial=0.0) > 0:
        return 0.0
    if length.diagonal is not None:
        return over_diagonal(length.diagonal, b, length.p)
    matrix = length.matrix.toarray()
    sizes = np.sqrt(np.diag(matrix)) if length.is_form else np.linalg.norm(matrix, axis=0)
    used = sizes > 0
    if (b[~used] > 0).any() or not np.isfinite(sizes).all():
        return np.inf
    units = np.ldexp(1.0, -np.frexp(sizes[used])[1])  # powers of two: scaling by them is exact
    columns = matrix[:, used] * units
    scaled = of_form(columns[used] * units[:, None]) if length.is_form else of_matrix(columns)
    return shortest(scaled, b[used] * units)


def over_diagonal(d: Array, b: Array, p: float) -> float:
    """Return |w|_q for w_j = (b_j)_+ / d_j, one for each column."""
    positive = b > 0
    if (d[positive] == 0).any():
        return np.inf
    found = lp_length(b[positive] / d[positive], conjugate_exponent(p))
    return upwards(found * (1 + gamma(b.size + 64)))


class Side(NamedTuple):
    """The w with A w >= b: their proposal from a factor R, A v = R'w, and their lengths."""

    A: Array
    R: Array
    vector: Callable[[Array], Array]  # from w
    length: Callable[[Array], float]


def of_matrix(L: Array) -> Side:
    """Return A = L', of which w itself is the vector."""
    return Side(L.T, L, lambda w: w, norm_above)


def of_form(E: Array) -> Side:
    """Return A = E with the length sqrt(z'Ez), where E = R'R and w = R z."""
    R: Array = np.asarray(np.linalg.cholesky(E).T, dtype=float)
    return Side(
        E,
        R,
        lambda w: np.asarray(scipy.linalg.solve_triangular(R, w)),
        lambda z: upwards(upwards(max(form(E, z).above, 0.0) ** 0.5)),
    )


def shortest(side: Side, b: Array) -> float:
    """Return the length of a v with A v >= b in exact arithmetic, infinite where none was found."""
    w = least_norm(side.R, b)
    if w is None:
        return np.inf
    v = side.vector(w)
    for _ in range(REPAIRS):
        lacking = lack(side.A, v, b)
        if not lacking.max() > 0:
            return side.length(v)
        step = least_norm(side.R, INSIDE * lacking)
        if step is None:
            return np.inf
        v = v + side.vector(step)
    return np.inf


def lack(A: Array, v: Array, b: Array) -> Array:
    """Return by how much A v may be below b, the rounding of the sums included; zero where it is not."""
    error = gamma(v.size + 4) * (np.abs(A) @ np.abs(v)) + 3 * UNIT * np.abs(b)
    return np.maximum(b - A @ v + error, 0.0)


def least_norm(R: Array, b: Array) -> Array | None:
    """Return about the w of least |w| with R'w >= b, None where there seems to be none.

    Least distance programming: with u >= 0 that minimises |(R u, b'u) - (0, 1)| it is R u / (1 - b'u)
    (Lawson and Hanson, Solving Least Squares Problems, chapter 23). Its rows with u > 0 are equations,
    which are solved once more.
    """
    if not b.max() > 0:
        return np.zeros(len(R))
    size = max(float(np.linalg.norm(np.linalg.lstsq(R.T, b)[0])), float(b.max()))
    goal = b / size
    try:
        u = nnls(np.vstack([R, goal]), np.append(np.zeros(len(R)), 1.0))[0]
    except RuntimeError:  # too many iterations
        return None
    left = 1 - float(goal @ u)
    if not left > 0:
        return None
    w = np.asarray(R @ u) / left
    active = u > 0
    polished = np.asarray(np.linalg.lstsq(R[:, active].T, goal[active])[0], dtype=float)
    lacking = [float(np.maximum(goal - R.T @ each, 0.0).max()) for each in (w, polished)]
    chosen: Array = (polished if lacking[1] <= max(lacking[0], 1e-12) else w) * size
    return chosen if np.isfinite(chosen).all() else None

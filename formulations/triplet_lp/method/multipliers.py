"""The lower bound of the linear programme, from any multipliers y of its rows.

y = (u, cone) has a multiplier u_t for each triplet, and for the cone v and w ("dominant"), vec Z ("psd"), or
none: one number for each of the `rows` of `ComparisonData`.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import numpy as np
import scipy.sparse as sp

from formulations.numbers import numbers
from formulations.triplet_lp.comparison_data import ComparisonData
from formulations.triplet_lp.method.settings import SETTINGS
from kernelopt.errors import Stopped
from kernelopt.extend import Array, check


def best_multipliers(
    data: ComparisonData, gamma1: float, given: dict[str, Any], upper: float
) -> tuple[float, Array]:
    """Return the largest bound from the multipliers, projected on their domain and balanced.

    The objective at some weights, `upper`, says how much there is to gain.
    """
    y = cut(data, read(data, given))
    best, most = (value(data, gamma1, y), y), data.margin * y[: data.T].sum()
    with suppress(Stopped):  # at the time limit the best so far stands
        for margin in SETTINGS.free_margins:
            if most - best[0] <= max(SETTINGS.tight * most, SETTINGS.small_loss * (upper - best[0])):
                break
            check(SETTINGS.balancing * data.cone_entries.size)
            other = balanced(data, gamma1, y, margin)
            bound = value(data, gamma1, other)
            best = (bound, other) if bound > best[0] else best
    return best


def read(data: ComparisonData, given: dict[str, Any]) -> Array:
    """Return y from the multipliers of the constraints, by label."""
    n, pairs = data.points.size, data.pairs[0].size
    u = numbers(given.get("comparisons"), data.T)
    if data.cone == "psd":
        Z = numbers(given.get("K >> 0"), n**2).reshape(n, n)
        return np.concatenate([u, ((Z + Z.T) / 2).ravel()])
    if data.cone == "nonnegative":
        return u
    w = numbers(given.get("below"), pairs) - numbers(given.get("above"), pairs)
    return np.concatenate([u, numbers(given.get("dominance"), n), w])


def cut(data: ComparisonData, y: Array) -> Array:
    """Return y with 0 <= u <= 1, and with v >= 0 and |w_ij| <= v_i + v_j, or with Z >> 0."""
    n = data.points.size
    u, cone = np.clip(y[: data.T], 0.0, 1.0), y[data.T :]
    if data.cone == "psd":
        check(SETTINGS.eigenpairs * n**3)
        values, vectors = np.linalg.eigh(cone.reshape(n, n))
        cone = ((vectors * np.maximum(values, 0.0)) @ vectors.T).ravel()
    elif data.cone == "dominant":
        v = np.maximum(cone[:n], 0.0)
        reach = data.incidence.T @ v
        cone = np.concatenate([v, np.clip(cone[n:], -reach, reach)])
    return np.concatenate([u, cone])


def value(data: ComparisonData, gamma1: float, y: Array) -> float:
    """Return the bound rho sum(u) min(1, gamma1 / max_f sum_{I_f} |z_p|) of multipliers in their domain.

    The multipliers (u, v, w) = (0, gamma2 e, 0), or Z = gamma2 I, have z = 0, so that a convex combination
    with them multiplies z and u by the same share. A sum counts as larger than gamma1 where it exceeds
    gamma1 by more than the round-off of its terms.
    """
    sizes, bound = data.group_sizes(data.z(y)), data.margin * float(y[: data.T].sum())
    for f in np.argsort(-sizes):
        if sizes[f] <= gamma1:
            break
        group = data.groups == f
        terms = data.gamma2 * np.abs(data.q[group]) + np.abs(y) @ np.abs(data.rows[:, group])
        if sizes[f] > gamma1 + SETTINGS.round_off * terms.sum():
            return bound * (gamma1 / float(sizes[f]))
    return bound


def balanced(data: ComparisonData, gamma1: float, y: Array, margin: float) -> Array:
    """Return multipliers in their domain, near the given ones, with sum_{I_f} |z_p| near gamma1 at most.

    The excess of z is removed by a least-squares step in the free multipliers, which are farther than
    `margin` from their bounds. Multipliers that leave their domain by this step are projected on it. Z is
    made positive semidefinite by a convex combination with gamma2 I.
    """
    z = data.z(y)
    sizes = data.group_sizes(z)
    share = np.where(sizes > gamma1, gamma1 / np.where(sizes > 0, sizes, 1.0), 1.0)[data.groups]
    active = (sizes > gamma1 - SETTINGS.close * max(1.0, gamma1))[data.groups]
    if data.cone == "nonnegative":
        active &= z > -SETTINGS.close
    moves = free_directions(data, y, margin)
    y = y + moves @ np.linalg.lstsq((moves.T @ data.rows[:, active]).T, ((share - 1) * z)[active])[0]
    if data.cone != "psd" or data.gamma2 == 0:
        return cut(data, y)
    u, Z = np.clip(y[: data.T], 0.0, 1.0), y[data.T :].reshape(data.points.size, -1)
    kept = data.gamma2 / (data.gamma2 + max(0.0, -float(np.linalg.eigvalsh(Z)[0])))
    Z = kept * Z + (1 - kept) * data.gamma2 * np.eye(len(Z))
    return np.concatenate([kept * u, Z.ravel()])


def free_directions(data: ComparisonData, y: Array, margin: float) -> Any:
    """Return in columns the directions in which the multipliers are free.

    They are the u_t, v_i and w_ij that are farther than `margin` from their bounds, and all entries of Z. A
    w_ij at its bound v_i + v_j changes together with v_i and v_j.
    """
    T, n = data.T, data.points.size
    free, moves = np.ones(y.size, dtype=bool), sp.eye_array(y.size)
    free[:T] = (y[:T] > margin) & (y[:T] < 1 - margin)
    if data.cone == "dominant":
        v, w = y[T : T + n], y[T + n :]
        free[T : T + n], free[T + n :] = v > margin, np.abs(w) < data.incidence.T @ v - margin
        tied = data.incidence.T * np.where(free[T + n :], 0.0, np.sign(w))[:, None]
        one = sp.eye_array
        moves = sp.block_array([[one(T), None, None], [None, one(n), None], [None, tied, one(w.size)]])
    return sp.csc_array(moves)[:, free]

"""The lower bound of the linear programme, from whatever multipliers a solver left."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from formulations.triplet_lp.setting import Array, Setting

AWAY = (1e-7, 1e-5, 1e-3)  # how far from its bounds a multiplier is moved freely, tried in turn
CLOSE = 1e-6  # a sum so near gamma1 is at gamma1
TIGHT = 1e-8  # a bound so near rho sum(u), relatively, needs no balancing
ROUND_OFF = 1e-12  # relative to the terms of a sum: less counts as zero
WILD = 1e100


class Multipliers(NamedTuple):
    """Those of the triplets, u, and those of the cone: (v, w) in one vector, vec Z, or none."""

    u: Array
    cone: Array


def best_multipliers(data: Setting, gamma1: float, given: dict[str, Any]) -> tuple[float, Multipliers]:
    """Return the best bound from the multipliers of the programme, cut to their bounds and balanced."""
    y = cut(data, read(data, given))
    best = value(data, gamma1, y), y
    for away in AWAY:
        if best[0] >= data.margin * y.u.sum() * (1 - TIGHT):
            break
        other = balanced(data, gamma1, y, away)
        bound = value(data, gamma1, other)
        best = (bound, other) if bound > best[0] else best
    return best


def read(data: Setting, given: dict[str, Any]) -> Multipliers:
    """Return the multipliers as they are, zero where there are none."""
    u = multiplier(given, "comparisons", data.T)
    if data.cone == "psd":
        Z = multiplier(given, "K >> 0", data.points.size**2).reshape(data.points.size, -1)
        return Multipliers(u, ((Z + Z.T) / 2).ravel())
    if data.cone == "nonnegative":
        return Multipliers(u, np.zeros(0))
    v = multiplier(given, "dominance", data.points.size)
    above, below = (multiplier(given, side, data.first.size) for side in ("above", "below"))
    return Multipliers(u, np.concatenate([v, below - above]))


def multiplier(given: dict[str, Any], label: str, size: int) -> Array:
    """Return the multiplier of a constraint, zero where a solver left nothing of use."""
    dual = given.get(label)
    if dual is None:
        return np.zeros(size)
    flat = np.ravel(np.asarray(dual, dtype=float))
    return np.where(np.abs(flat) < WILD, flat, 0.0)


def cut(data: Setting, y: Multipliers) -> Multipliers:
    """Return 0 <= u <= 1 with v >= 0 and |w_ij| <= v_i + v_j, or with Z >> 0."""
    u, cone = np.clip(y.u, 0.0, 1.0), y.cone
    if data.cone == "psd":
        values, vectors = np.linalg.eigh(cone.reshape(data.points.size, -1))
        cone = ((vectors * np.maximum(values, 0.0)) @ vectors.T).ravel()
    elif data.cone == "dominant":
        v, w = np.maximum(cone[: data.points.size], 0.0), cone[data.points.size :]
        reach = v[data.first] + v[data.second]
        cone = np.concatenate([v, np.clip(w, -reach, reach)])
    return Multipliers(u, cone)


def slopes(data: Setting, y: Multipliers) -> Array:
    """Return z, shape (m,)."""
    return np.asarray(data.D.T @ y.u + data.cone_entries.T @ y.cone - data.gamma2 * data.q)


def value(data: Setting, gamma1: float, y: Multipliers) -> float:
    """Return the bound rho sum(u) min(1, gamma1 / max_f sum_{I_f} |z_p|) of multipliers in their domain.

    (u, v, w) = (0, gamma2 e, 0), or Z = gamma2 I, has z = 0: mixing it in scales z and u alike. A sum
    above gamma1 by the round-off of its terms is not above it.
    """
    sizes = data.by_group(data.sizes(slopes(data, y)), np.add)
    above = sizes > gamma1
    if above.any():
        terms = np.abs(data.D).T @ y.u + np.abs(data.cone_entries).T @ np.abs(y.cone)
        terms = data.by_group(terms + data.gamma2 * np.abs(data.q), np.add)
        above = sizes > gamma1 + ROUND_OFF * terms
    share = gamma1 / float(sizes[above].max()) if above.any() else 1.0
    return data.margin * float(y.u.sum()) * share


def balanced(data: Setting, gamma1: float, y: Multipliers, away: float) -> Multipliers:
    """Return multipliers in their domain, near the given ones, with sum_{I_f} |z_p| near gamma1 at most.

    What is too much in z is removed by least squares, in the multipliers that are away from their
    bounds. Those that leave their domain by it are cut, but for Z, to which as much of gamma2 I is mixed.
    """
    z = slopes(data, y)
    sizes = data.by_group(data.sizes(z), np.add)
    share = np.where(sizes > gamma1, gamma1 / np.where(sizes > 0, sizes, 1.0), 1.0)[data.groups]
    active = (sizes > gamma1 - CLOSE * max(1.0, gamma1))[data.groups]
    if data.cone == "nonnegative":
        active &= z > -CLOSE
    free = sp.diags_array(1.0 * ((y.u > away) & (y.u < 1 - away)), format="csc")
    moves = directions(data, y.cone, away)
    A = np.concatenate([free @ data.D[:, active], moves.T @ data.cone_entries[:, active]])
    step = np.linalg.lstsq(A.T, ((share - 1) * z)[active], rcond=None)[0]
    u, cone = y.u + free @ step[: data.T], y.cone + moves @ step[data.T :]
    if data.cone != "psd" or data.gamma2 == 0:
        return cut(data, Multipliers(u, cone))
    Z = cone.reshape(data.points.size, -1)
    kept = data.gamma2 / (data.gamma2 + max(0.0, -float(np.linalg.eigvalsh(Z)[0])))
    Z = kept * Z + (1 - kept) * data.gamma2 * np.eye(len(Z))
    return Multipliers(kept * np.clip(u, 0.0, 1.0), Z.ravel())


def directions(data: Setting, cone: Array, away: float) -> Any:
    """Return in columns the directions in which the multipliers of the cone may be moved.

    For dominance v_i and w_ij away from their bounds, w_ij with its bound v_i + v_j where it is there;
    all of Z.
    """
    n = data.points.size
    if data.cone != "dominant":
        return sp.eye_array(cone.size, format="csc")
    v, w = cone[:n], cone[n:]
    single = np.abs(w) < v[data.first] + v[data.second] - away
    tied = data.incidence.T * (np.where(single, 0.0, np.sign(w)))[:, None]
    columns = sp.vstack([sp.eye_array(n), tied], format="csc")[:, v > away]
    others = sp.eye_array(cone.size, format="csc")[:, n + np.flatnonzero(single)]
    return sp.hstack([columns, others], format="csc")

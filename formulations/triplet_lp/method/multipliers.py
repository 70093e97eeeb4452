"""The lower bound of the linear programme, from any multipliers of its constraints."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from formulations.numbers import numbers
from formulations.triplet_lp.comparison_data import ComparisonData
from kernelopt.errors import Stopped
from kernelopt.extend import DEFAULT_TOL, Array, check


@dataclass(frozen=True)
class Tolerances:
    """The tuned numbers of the bounds."""

    # a multiplier farther than this from its bounds is free; tried in turn
    free_margins: tuple[float, ...] = (1e-7, 1e-5, 1e-3)
    close: float = 1e-6  # sums within this of gamma1 count as equal to it: what conic solvers leave
    # a bound within this share of rho sum(u), its value where z is small, needs no balancing
    tight: float = 1e-8
    small_loss: float = 0.1  # nor does one that differs from rho sum(u) by less than this share of the gap
    # relative to the terms of a sum: what thousands of roundings of doubles can add up to
    round_off: float = 1e-12
    balancing: float = 1.5e-7  # seconds for each entry of the kernels, measured
    eigenpairs: float = 2e-10  # seconds over n^3 of an eigendecomposition, measured
    seconds: float = 1e-5  # a few operations of fractions
    # corrections until a point is feasible in fractions, each four times as large as the previous one
    tries: int = 40
    shares: int = 25  # corrections after which the share is set to zero: the last was 4^24 2^-52, a sixteenth
    # corrections after which the weights are set to zero: the last was 4^3 times as large as they
    moves: int = 30
    # relative to the terms: exceeds the rounding error of a sum of some hundred terms
    cone_round_off: float = 1e-13
    # a tenth of the default tolerance: for a larger gap the general bound is computed too, and zero weights
    # are optimal if their objective is this near to the lower bound
    loose: float = DEFAULT_TOL / 10
    # Shares of the largest weight. A smaller weight counts as an error of the solver, and is set to zero. The
    # shares are the tolerances of solvers from tight to loose, and are tried in this order.
    nearly_zero: tuple[float, ...] = (1e-9, 1e-6, 1e-4)
    # Weights are not used if the terms alpha_p K_p(i, i) exceed this multiple of the margin: the rounding
    # error of their sum, `cone_round_off` times them, would be above 1e-6 of the margin.
    largest_terms: float = 1e7


TOLERANCES = Tolerances()


class Multipliers(NamedTuple):
    """The multipliers u of the triplets, and of the cone: (v, w) in one vector, vec Z, or none."""

    u: Array
    cone: Array


def best_multipliers(
    data: ComparisonData, gamma1: float, given: dict[str, Any], upper: float
) -> tuple[float, Multipliers]:
    """Return the largest bound from the multipliers, projected on their domain and balanced.

    The objective at some weights, `upper`, says how much there is to gain.
    """
    y = cut(data, read(data, given))
    best, most = (value(data, gamma1, y), y), data.margin * y.u.sum()
    with suppress(Stopped):  # at the time limit the best so far stands
        for margin in TOLERANCES.free_margins:
            if most - best[0] <= max(TOLERANCES.tight * most, TOLERANCES.small_loss * (upper - best[0])):
                break
            check(TOLERANCES.balancing * data.cone_entries.size)
            other = balanced(data, gamma1, y, margin)
            bound = value(data, gamma1, other)
            best = (bound, other) if bound > best[0] else best
    return best


def read(data: ComparisonData, given: dict[str, Any]) -> Multipliers:
    """Return the multipliers of the programme as u and the multipliers of the cone."""
    u = numbers(given.get("comparisons"), data.T)
    if data.cone == "psd":
        Z = numbers(given.get("K >> 0"), data.points.size**2).reshape(data.points.size, -1)
        return Multipliers(u, ((Z + Z.T) / 2).ravel())
    if data.cone == "nonnegative":
        return Multipliers(u, np.zeros(0))
    v = numbers(given.get("dominance"), data.points.size)
    above, below = (numbers(given.get(side), data.first.size) for side in ("above", "below"))
    return Multipliers(u, np.concatenate([v, below - above]))


def cut(data: ComparisonData, y: Multipliers) -> Multipliers:
    """Return 0 <= u <= 1 with v >= 0 and |w_ij| <= v_i + v_j, or with Z >> 0."""
    u, cone = np.clip(y.u, 0.0, 1.0), y.cone
    if data.cone == "psd":
        check(TOLERANCES.eigenpairs * data.points.size**3)
        values, vectors = np.linalg.eigh(cone.reshape(data.points.size, -1))
        cone = ((vectors * np.maximum(values, 0.0)) @ vectors.T).ravel()
    elif data.cone == "dominant":
        v, w = np.maximum(cone[: data.points.size], 0.0), cone[data.points.size :]
        reach = v[data.first] + v[data.second]
        cone = np.concatenate([v, np.clip(w, -reach, reach)])
    return Multipliers(u, cone)


def z_at(data: ComparisonData, y: Multipliers) -> Array:
    """Return z, shape (m,)."""
    return np.asarray(data.D.T @ y.u + data.cone_entries.T @ y.cone - data.gamma2 * data.q)


def value(data: ComparisonData, gamma1: float, y: Multipliers) -> float:
    """Return the bound rho sum(u) min(1, gamma1 / max_f sum_{I_f} |z_p|) of multipliers in their domain.

    The multipliers (u, v, w) = (0, gamma2 e, 0), or Z = gamma2 I, have z = 0, so that a convex combination
    with them multiplies z and u by the same share. A sum counts as larger than gamma1 where it exceeds
    gamma1 by more than the round-off of its terms.
    """
    sizes, bound = data.by_group(data.sizes(z_at(data, y)), np.add), data.margin * float(y.u.sum())
    for f in np.argsort(-sizes):
        if sizes[f] <= gamma1:
            break
        group = data.groups == f
        terms = data.gamma2 * np.abs(data.q[group]) + y.u @ np.abs(data.D[:, group])
        terms += np.abs(y.cone) @ np.abs(data.cone_entries[:, group])
        if sizes[f] > gamma1 + TOLERANCES.round_off * terms.sum():
            return bound * (gamma1 / float(sizes[f]))
    return bound


def balanced(data: ComparisonData, gamma1: float, y: Multipliers, margin: float) -> Multipliers:
    """Return multipliers in their domain, near the given ones, with sum_{I_f} |z_p| near gamma1 at most.

    The excess of z is removed by a least-squares step in the free multipliers, which are farther than
    `margin` from their bounds. Multipliers that leave their domain by this step are projected on it. Z is
    made positive semidefinite by a convex combination with gamma2 I.
    """
    z = z_at(data, y)
    sizes = data.by_group(data.sizes(z), np.add)
    share = np.where(sizes > gamma1, gamma1 / np.where(sizes > 0, sizes, 1.0), 1.0)[data.groups]
    active = (sizes > gamma1 - TOLERANCES.close * max(1.0, gamma1))[data.groups]
    if data.cone == "nonnegative":
        active &= z > -TOLERANCES.close
    free = np.flatnonzero((y.u > margin) & (y.u < 1 - margin))
    moves = free_directions(data, y.cone, margin)
    A = np.concatenate([data.D[np.ix_(free, active)], moves.T @ data.cone_entries[:, active]])
    step = np.linalg.lstsq(A.T, ((share - 1) * z)[active], rcond=None)[0]
    u, cone = y.u.copy(), y.cone + moves @ step[free.size :]
    u[free] += step[: free.size]
    if data.cone != "psd" or data.gamma2 == 0:
        return cut(data, Multipliers(u, cone))
    Z = cone.reshape(data.points.size, -1)
    kept = data.gamma2 / (data.gamma2 + max(0.0, -float(np.linalg.eigvalsh(Z)[0])))
    Z = kept * Z + (1 - kept) * data.gamma2 * np.eye(len(Z))
    return Multipliers(kept * np.clip(u, 0.0, 1.0), Z.ravel())


def free_directions(data: ComparisonData, cone: Array, margin: float) -> Any:
    """Return in columns the directions in which the multipliers of the cone are free.

    For dominance they are the v_i and w_ij that are farther than `margin` from their bounds. A w_ij at its
    bound v_i + v_j changes together with v_i and v_j. For "psd" they are all entries of Z.
    """
    n = data.points.size
    if data.cone != "dominant":
        return sp.eye_array(cone.size, format="csc")
    v, w = cone[:n], cone[n:]
    single = np.abs(w) < v[data.first] + v[data.second] - margin
    tied = data.incidence.T * (np.where(single, 0.0, np.sign(w)))[:, None]
    columns = sp.vstack([sp.eye_array(n), tied], format="csc")[:, v > margin]
    others = sp.eye_array(cone.size, format="csc")[:, n + np.flatnonzero(single)]
    return sp.hstack([columns, others], format="csc")

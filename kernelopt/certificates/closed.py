"""Lower bounds in closed form, where the set of the variables has a support function."""

from __future__ import annotations

from typing import NamedTuple

import cvxpy as cp
import numpy as np

from kernelopt.certificates.minorants import Minorant
from kernelopt.norms import conjugate_exponent, lp_length
from kernelopt.rounding import EIGENVALUE, UNIT, exact_sum, gamma, upwards
from kernelopt.structure.affine import Affine, affine
from kernelopt.structure.sizes import Edge, Sphere, traced
from kernelopt.structure.structure import Structure
from kernelopt.validation import Array


class ClosedBound(NamedTuple):
    """The minimum of an affine minorant of the objective, and the multiplier of the one constraint."""

    value: float
    constraint: int | None = None
    multiplier: float = 0.0
    rounding: float = 0.0  # by how much the value was moved down for its rounding errors


class Objective(NamedTuple):
    """An affine objective, and bounds of the errors of its constant and of its coefficients."""

    constant: float
    error: float
    slopes: dict[cp.Variable, Array]
    errors: dict[cp.Variable, Array]


def closed_bound(structure: Structure, minorants: list[Minorant]) -> ClosedBound | None:
    """Return the minimum of the objective with every risk replaced by an affine minorant, else None.

    It is known where the objective is affine in the risks and the variables, over

    * no variables: the value;
    * a simplex, x >= 0 and r'x = c (or <= c) with r > 0: c min_i g_i / r_i;
    * a ball, x >= 0 and |x|_p <= R: -R |(-g)_+|_q;
    * a spectrahedron, K PSD and tr K = c (or <= c): c lambda_min(G).

    All roundings are paid for: in exact arithmetic the minimum is not below the value.
    """
    shares, rest = structure.objective.shares, structure.rest
    if shares is None or rest is None or structure.domains or any(structure.constrained):
        return None
    if structure.lifted.constraints and not has_support_function(structure):
        return None  # before the minorants are read, which takes longer than all else here
    objective = combined(rest, shares, minorants)
    if objective is None:
        return None
    if not structure.lifted.constraints:
        return None if objective.slopes else ClosedBound(lowered(objective, 0.0), rounding=objective.error)
    at = structure.active[0]
    sphere, edge = structure.spheres[at], structure.edges[at]
    if sphere is not None and set(objective.slopes) <= {sphere.variable} and sphere.variable.is_nonneg():
        return over_ball(objective, sphere, at)
    if edge is None or not edge.bounds_all or not set(objective.slopes) <= set(edge.rows):
        return None
    return over_edge(objective, edge, at)


def has_support_function(structure: Structure) -> bool:
    """Whether one constraint beyond signs says: a ball, a simplex or a spectrahedron."""
    if len(structure.active) != 1:
        return False
    at = structure.active[0]
    edge = structure.edges[at]
    return structure.spheres[at] is not None or (edge is not None and edge.bounds_all)


def combined(rest: Affine, shares: tuple[float, ...], minorants: list[Minorant]) -> Objective | None:
    """Return rest + sum of share * minorant; None where a share is negative or a minorant not affine."""
    k = gamma(2 * len(shares) + 8)
    constants, error = [float(rest.constant[0])], 0.0
    slopes = {v: matrix.toarray()[0] for v, matrix in rest.matrices.items()}
    sizes = {v: np.abs(slope) for v, slope in slopes.items()}
    errors = {v: np.zeros(slope.size) for v, slope in slopes.items()}
    for share, below in zip(shares, minorants, strict=True):
        if share == 0:
            continue
        constant = isinstance(below.expression, float)
        read = Affine(np.array([below.expression]), {}) if constant else affine(below.expression)
        if read is None or share < 0:
            return None
        constants.append(share * float(read.constant[0]))
        error += share * below.error
        for variable, matrix in read.matrices.items():
            slope = share * matrix.toarray()[0]
            slopes[variable] = slopes.get(variable, 0.0) + slope
            sizes[variable] = sizes.get(variable, 0.0) + np.abs(slope)
        for variable, lost in below.slopes.items():
            errors[variable] = errors.get(variable, 0.0) + share * lost
    error += k * sum(map(abs, constants)) + k * error
    for variable, size in sizes.items():
        errors[variable] = errors.get(variable, 0.0) * (1 + k) + k * size
    return Objective(exact_sum(constants), error, slopes, errors)


def lowered(objective: Objective, change: float) -> float:
    """Return constant + change, moved down by the error of the constant and of the sum."""
    value = objective.constant + change
    return -upwards(-value + objective.error + UNIT * (abs(objective.constant) + abs(change)))


def over_ball(objective: Objective, sphere: Sphere, at: int) -> ClosedBound:
    """Return the minimum over {x >= 0, |x|_p <= R}."""
    zero = np.zeros(sphere.variable.size)
    slope, error = (found.get(sphere.variable, zero) for found in (objective.slopes, objective.errors))
    falling = np.maximum(error - slope, 0.0)
    length = lp_length(falling, conjugate_exponent(sphere.p))
    paid = upwards(sphere.radius * length * (1 + gamma(falling.size + 64)))
    rounding = objective.error + sphere.radius * lp_length(error, conjugate_exponent(sphere.p))
    return ClosedBound(lowered(objective, -paid), at, length, rounding)


def over_edge(objective: Objective, edge: Edge, at: int) -> ClosedBound:
    """Return the minimum over {x >= 0 or PSD: sum of <row, x> = total, or <= total}."""
    least = min(
        least_slope(
            objective.slopes.get(variable, np.zeros(variable.size)),
            objective.errors.get(variable, np.zeros(variable.size)),
            variable,
            row,
        )
        for variable, row in edge.rows.items()
    )
    paid = min(least, 0.0) if edge.at_most else least
    change = edge.total * paid
    lost = [float(np.linalg.norm(e) / np.abs(edge.rows[v]).max()) for v, e in objective.errors.items()]
    rounding = objective.error + edge.total * max(lost, default=0.0)
    value = lowered(objective, change - gamma(4) * abs(change))
    return ClosedBound(value, at, -edge.sign * paid, rounding)


def least_slope(g: Array, error: Array, variable: cp.Variable, row: Array) -> float:
    """Return a number sigma with <g, x> >= sigma <row, x> for all x >= 0 or PSD, about the largest.

    g is known up to `error`. Eigenvalues are computed up to a small multiple of u n |G|_F.
    """
    if traced(variable, row):
        G = g.reshape(variable.shape, order="F")
        if not np.isfinite(G).all():
            return -np.inf
        lost = EIGENVALUE * gamma(len(G)) * float(np.linalg.norm(G)) + float(np.linalg.norm(error))
        least = float(np.linalg.eigvalsh((G + G.T) / 2)[0]) - lost
        return (least - gamma(4) * abs(least)) / float(row[0])
    ratios = (g - error) / row
    return float((ratios - gamma(4) * np.abs(ratios)).min())

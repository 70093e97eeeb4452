"""Lower bounds in closed form, where the set of the variables has a support function."""

from __future__ import annotations

from typing import NamedTuple

import cvxpy as cp
import numpy as np

from kernelopt.norms import conjugate_exponent, lp_length
from kernelopt.structure.affine import Affine, affine
from kernelopt.structure.sizes import Edge, Sphere, traced
from kernelopt.structure.structure import Structure
from kernelopt.validation import Array


class ClosedBound(NamedTuple):
    """The minimum of an affine minorant of the objective, and the multiplier of the one constraint."""

    value: float
    constraint: int | None = None
    multiplier: float = 0.0


def closed_bound(structure: Structure, minorants: list[cp.Expression | float]) -> ClosedBound | None:
    """Return the minimum of the objective with every risk replaced by an affine minorant, else None.

    It is known where the objective is affine in the risks and the variables, over

    * no variables: the value;
    * a simplex, x >= 0 and r'x = c (or <= c) with r > 0: c min_i g_i / r_i;
    * a ball, x >= 0 and |x|_p <= R: -R |(-g)_+|_q;
    * a spectrahedron, K PSD and tr K = c (or <= c): c lambda_min(G).
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
        return None if objective.matrices else ClosedBound(float(objective.constant[0]))
    at = structure.active[0]
    sphere, edge = structure.spheres[at], structure.edges[at]
    if sphere is not None and set(objective.matrices) <= {sphere.variable} and sphere.variable.is_nonneg():
        return over_ball(objective, sphere, at)
    if edge is None or not edge.bounds_all or not set(objective.matrices) <= set(edge.rows):
        return None
    return over_edge(objective, edge, at)


def has_support_function(structure: Structure) -> bool:
    """Whether one constraint beyond signs says: a ball, a simplex or a spectrahedron."""
    if len(structure.active) != 1:
        return False
    at = structure.active[0]
    edge = structure.edges[at]
    return structure.spheres[at] is not None or (edge is not None and edge.bounds_all)


def combined(
    rest: Affine, shares: tuple[float, ...], minorants: list[cp.Expression | float]
) -> Affine | None:
    """Return rest + sum of share * minorant; None where a share is negative or a minorant not affine."""
    constant, matrices = rest.constant.copy(), dict(rest.matrices)
    for share, below in zip(shares, minorants, strict=True):
        if share == 0:
            continue
        read = Affine(np.array([below]), {}) if isinstance(below, float) else affine(below)
        if read is None or share < 0:
            return None
        constant = constant + share * read.constant
        for variable, matrix in read.matrices.items():
            matrices[variable] = (
                matrices[variable] + share * matrix if variable in matrices else share * matrix
            )
    return Affine(constant, matrices)


def over_ball(objective: Affine, sphere: Sphere, at: int) -> ClosedBound:
    """Return the minimum over {x >= 0, |x|_p <= R}."""
    falling = np.maximum(-objective.gradient(sphere.variable), 0.0)
    length = lp_length(falling, conjugate_exponent(sphere.p))
    return ClosedBound(float(objective.constant[0]) - sphere.radius * length, at, length)


def over_edge(objective: Affine, edge: Edge, at: int) -> ClosedBound:
    """Return the minimum over {x >= 0 or PSD: sum of <row, x> = total, or <= total}."""
    least = min(
        least_slope(objective.gradient(variable), variable, row) for variable, row in edge.rows.items()
    )
    paid = min(least, 0.0) if edge.at_most else least
    return ClosedBound(float(objective.constant[0]) + edge.total * paid, at, -edge.sign * paid)


def least_slope(g: Array, variable: cp.Variable, row: Array) -> float:
    """Return the largest number sigma with <g, x> >= sigma <row, x> for all x >= 0 or PSD."""
    if traced(variable, row):
        G = g.reshape(variable.shape, order="F")
        return float(np.linalg.eigvalsh((G + G.T) / 2)[0]) / float(row[0])
    return float((g / row).min())

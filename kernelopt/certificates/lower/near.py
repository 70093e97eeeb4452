"""Lower bounds of kernels near similarities: from a dual point, and the best one at a given alpha."""

from __future__ import annotations

import numpy as np

from kernelopt.certificates.gap import Bound, floor, largest
from kernelopt.certificates.lower.closed import bound_over
from kernelopt.certificates.lower.minorants import constant, minorant, near_minorant, total
from kernelopt.numerics.ball import Ball
from kernelopt.structure.nearness import Nearness, read_nearness
from kernelopt.structure.structure import Structure
from kernelopt.threads import one_blas_thread
from kernelopt.validation import Array
from kernelopt.witnesses.near import NearRelaxation, NearWitness, dual_points

LEAST_GAMMA = 1e-12  # a smaller gamma_i is raised to it, since the bound has a factor 1 / gamma_i
MARGIN = 1e-9  # the computed value of the relaxation plus this is above the exact value


def lower_bound(read: Nearness, point: NearWitness, upper: float) -> Bound:
    """Return the lower bound of a dual point, with the multipliers of the traces.

    First the dual point is made feasible: alpha and the U_ik are projected on their domains, and gamma is
    scaled to gamma >= 0 with sum at most one. Let z be alpha with zeros at the unlabelled points, and
    G_i = price sum_k U_ik - zz' / (2 gamma_i). By weak duality the optimum is at least

        offset + factor (l(alpha) + sum_i min <G_i, X_i> - price sum_ik (<U_ik, S_ik> + L*(U_ik))).

    The minimum is over the feasible X_i. If the trace of X_i is free, it is over the X_i at which
    price sum_k L(X_i - S_ik) <= (upper - offset) / factor. Here `upper` is a value that the objective
    attains, or that the relaxation `NearRelaxation` attains. At all other X_i the objective is above `upper`.
    Last, bounds of the rounding errors are subtracted.
    """
    gamma = Ball(np.maximum(point.gamma, LEAST_GAMMA))
    below_one = (gamma / max(1.0, float(gamma.sum().above))).below  # in exact arithmetic
    fidelities = [zip(b.fidelities, U, strict=True) for b, U in zip(read.blocks, point.U(), strict=True)]
    near = total(near_minorant(term, u) for pairs in fidelities for term, u in pairs)
    below = minorant(read.risk, point.alpha, gamma=below_one, factor=read.factor)
    objective = below + near + constant(read.offset)
    price, known = read.price * read.factor, upper - read.offset
    return bound_over([block.bounded(price, known) for block in read.blocks], objective)


def near_bound(
    structure: Structure, alpha: Array, attained: float = np.inf, quick: bool = False
) -> Bound | None:
    """Return nearly the largest lower bound at an alpha, by an iteration.

    The iteration starts at the current values of the structure's variables. It ends where the bound is
    `exhausted` for the value `attained` of the objective, or with its first bound if `quick`.

    Returns
    -------
    Bound, or None
        None where the problem is not a `Nearness`, or where its fidelity is neither `Radial` nor `Proximal`.
    """
    read = read_nearness(structure)
    if isinstance(read, str):
        return None
    values = [(block, block.piece.variable.value) for block in read.blocks]
    X = [np.asarray(block.targets.mean(axis=0) if x is None else x) for block, x in values]
    if not (np.isfinite(alpha).all() and all(np.isfinite(x).all() for x in X)):
        return None
    bounds = (
        lower_bound(read, point, value + MARGIN * abs(value))._replace(possible=value)
        for point, value in dual_points(NearRelaxation(read, alpha, X), X)
    )
    with one_blas_thread():
        return largest(bounds, floor(structure), attained, quick=quick)

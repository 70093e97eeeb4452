"""The largest lower bound over several choices of dual variables."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Literal

import numpy as np

from kernelopt.certificates.boxes import NO_BOXES, Boxes, entry_bounds, known_boxes
from kernelopt.certificates.conic.multipliers import conic_bound
from kernelopt.certificates.conic.stated import plain, without_attributes
from kernelopt.certificates.gap import Bound, exhausted, floor
from kernelopt.certificates.lower.closed import closed_bound
from kernelopt.certificates.lower.combined import combined_bound
from kernelopt.certificates.lower.minorants import Minorant, minorants, relaxation
from kernelopt.certificates.lower.near import near_bound
from kernelopt.errors import Stopped
from kernelopt.language.adapter import written_problem
from kernelopt.structure.evaluation import LARGE_ROUNDING
from kernelopt.structure.relaxed_cones import RelaxedCones
from kernelopt.structure.structure import Structure
from kernelopt.structure.units import variable_units
from kernelopt.threads import quietly
from kernelopt.validation import Array

TIE_MARGIN = 1e-8  # relative: bounds that differ by less count as equal, and the later choice is returned
Route = Literal["closed", "conic", "sign", "none"]


def best_bound(
    structure: Structure,
    choices: Sequence[list[Array]],
    bounds: Boxes = NO_BOXES,
    conic: bool = True,
    attained: float = np.inf,
    cones: RelaxedCones | None = None,
    left: Sequence[Array | None] = (),
    tol: float | None = None,
) -> tuple[Bound, Route, list[Array]]:
    """Return the largest lower bound (of the minimisation) over the given choices of dual variables.

    For a risk over several kernels the bound has a factor 1 / gamma_m at every form alpha'K_m alpha;
    `minorant` defines gamma. Here gamma is optimal for the kernels at the current values of the structure's
    variables. The search for kernels near similarities also starts at these values.

    Parameters
    ----------
    structure : Structure
    choices : sequence of lists of arrays
        Each list has one dual variable alpha for each risk.
    bounds : dict from id to Box, optional
        Bounds of the variables that hold at an optimum.
    conic : bool, default True
        Whether conic solves are allowed.
    attained : float, default infinity
        A value that the objective of the minimisation attains.
    cones : RelaxedCones, optional
        A relaxation of the large matrix inequalities, which a conic solve then need not hold.
    left, tol
        As in `conic_bound`: dual values of the problem's constraints, and the gap that they may leave.

    Returns
    -------
    bound : Bound
    route : "closed", "conic", "sign" or "none"
        How the bound was computed.
    alphas : list of arrays
        The choice that gave the bound.
    """
    best: tuple[Bound, Route, list[Array]] = (Bound(-np.inf, "no dual variable was given"), "none", [])
    gap_floor, signed = floor(structure), signed_bound(structure).value
    for alphas in choices:
        bound, route = bound_of(structure, alphas, bounds, conic, attained, cones, left, tol)
        if bound.value < signed:
            # The objective is at least `signed`, which is zero. The route of the smaller bound is kept,
            # unless this bound is -inf: then the sign of the objective alone gives the bound.
            route = route if bound.value > -np.inf else "sign"
            bound = Bound(signed)
        # Where machines were trained at the candidate's kernels, the last choice holds their dual variables.
        # They are optimal for these kernels, so among bounds within the margin the last choice is returned.
        margin = TIE_MARGIN * max(abs(bound.value), gap_floor) if np.isfinite(bound.value) else 0.0
        if bound.value > best[0].value - margin or not best[2]:
            best = (bound, route, alphas)
    return best


def bound_of(
    structure: Structure,
    alphas: list[Array],
    bounds: Boxes,
    conic: bool,
    attained: float,
    cones: RelaxedCones | None,
    left: Sequence[Array | None],
    tol: float | None,
) -> tuple[Bound, Route]:
    """Return the lower bound of one choice of dual variables: closed, by a search, or by a conic solve."""
    with quietly():
        closed = refined(structure, alphas, partial(closed_bound, structure))
    if closed is not None:
        overflow = Bound(-np.inf, "the bound of the dual variable overflows")
        return closed if np.isfinite(closed.value) else overflow, "closed"
    over_cone = refined(structure, alphas, partial(combined_bound, structure, attained=attained))
    if over_cone is not None and np.isfinite(over_cone.value):
        return over_cone, "closed"
    near = near_bound(structure, alphas[0], attained, not conic) if len(alphas) == 1 else None
    if near is not None and exhausted(near, floor(structure), attained):
        return near, "closed"
    if conic:
        found = solved_bound(structure, minorants(structure, alphas), bounds, attained, cones, left, tol)
    else:
        found = Bound(-np.inf, "there was no time for a conic bound")
    if near is not None and near.value > found.value:
        return near, "closed"
    return found, "none" if found.value == -np.inf else "conic"


def refined(
    structure: Structure, alphas: list[Array], bound_at: Callable[[list[Minorant]], Bound | None]
) -> Bound | None:
    """Return the bound of minorants, in twice the precision where their rounding errors are large."""
    found = bound_at(minorants(structure, alphas))
    if found is None or not found.rounding > LARGE_ROUNDING * max(abs(found.value), floor(structure)):
        return found
    accurate = bound_at(minorants(structure, alphas, accurate=True))
    return max(found, accurate or found, key=lambda bound: bound.value)


def solved_bound(
    structure: Structure,
    below: list[Minorant],
    bounds: Boxes,
    attained: float,
    cones: RelaxedCones | None,
    left: Sequence[Array | None],
    tol: float | None,
) -> Bound:
    """Return the bound of the relaxation by the multipliers of conic solvers.

    The given bounds of the variables are constraints of it, since some optimum satisfies them.
    """
    with quietly():
        boxes = known_boxes(structure, bounds)
        if structure.risks or cones is not None or bounds:
            relaxed = relaxation(structure, below, boxes, cones)
            given = [c for v in structure.variables if v.id in bounds for c in entry_bounds(v, bounds[v.id])]
            relaxed = written_problem(relaxed.objective, relaxed.constraints + given)
            present = [v for v in structure.variables if any(v is w for w in relaxed.variables())]
            stated = without_attributes(relaxed, present)
        else:
            stated, present = plain(structure), list(structure.variables)
    improved: list[Bound] = []
    try:
        return conic_bound(stated, present, boxes, improved, variable_units(structure), left, attained, tol)
    except Stopped:
        if not improved:
            raise
        # The deadline has ended the last conic solve. The solves before it have proved the bounds in
        # `improved`; its last bound is the largest. `Stopped` is not lost: the next `check` raises it.
        return improved[-1]


def signed_bound(structure: Structure) -> Bound:
    """Return the bound zero where cvxpy knows that the minimised objective is non-negative, else -inf."""
    objective = structure.lifted.objective.args[0]
    if objective.is_nonpos() if structure.maximize else objective.is_nonneg():
        return Bound(0.0)
    return Bound(-np.inf, "the objective may be negative")

"""Multipliers of a problem's constraints, computed from the dual variables of its risks."""

from __future__ import annotations

from typing import Any

import cvxpy as cp
import numpy as np

from kernelopt.certificates.gap import exhausted, floor
from kernelopt.certificates.lower.closed import closed_bound
from kernelopt.certificates.lower.minorants import minorants
from kernelopt.certificates.lower.near import near_bound
from kernelopt.conic.ladder import ladder, run_solver
from kernelopt.errors import Stopped
from kernelopt.language.adapter import written_problem
from kernelopt.structure.expansion import copied_on_face
from kernelopt.structure.relaxed_cones import RelaxedCones
from kernelopt.structure.structure import Structure, every_multiplier
from kernelopt.structure.trees import replaced
from kernelopt.structure.units import Units
from kernelopt.threads import quietly
from kernelopt.validation import Array


def constraint_multipliers(
    structure: Structure,
    alphas: list[Array],
    conic: bool = True,
    cones: RelaxedCones | None = None,
) -> list[list[Any]] | None:
    """Return the multipliers of the relaxation in which minorants at alpha replace the risks.

    At the optimal alpha they are multipliers of the problem itself. They are computed in closed form where
    the relaxation has one, or by the search of `near_bound`, and otherwise by one conic solve, if `conic`.
    None where none of these applies, and where the deadline of the running call ended the solve. With `cones`
    the conic solve holds a relaxation of the large matrix inequalities.
    """
    if len(alphas) != len(structure.risks):
        return None
    with quietly():
        below = minorants(structure, alphas)
        closed = closed_bound(structure, below)
    constraints = structure.lifted.constraints
    if closed is not None:
        return every_multiplier(structure, closed.multipliers)
    near = near_bound(structure, alphas[0], quick=not conic) if len(alphas) == 1 else None
    if near is not None and exhausted(near, floor(structure), np.inf):
        return every_multiplier(structure, near.multipliers)
    if not conic:
        return None
    substitutes: dict[int, Any] = {
        id(term.stand_in): cp.pos(e.expression) for term, e in zip(structure.risks, below, strict=True)
    }
    try:
        with quietly():
            copies = [
                copied_on_face(constraint, substitutes, Units(), i, cones)
                for i, constraint in enumerate(constraints)
            ]
            whole = structure.lifted.objective
            objective = type(whole)(replaced(whole.args[0], substitutes))
            relaxed = written_problem(objective, [c.copy for c in copies] + list(structure.domains))
        run_solver(relaxed, ladder(linear=relaxed.is_lp(), order=0)[0])
    except Stopped:
        return None
    for constraint in copies:
        constraint.bring_back()
    return [[dual.value for dual in c.dual_variables] for c in constraints]

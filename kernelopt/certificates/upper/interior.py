"""Points inside the constraints: steps inward from a candidate, and phase one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import cvxpy as cp
import numpy as np
import scipy.sparse as sp
from cvxpy.constraints import SOC, ExpCone, Inequality, NonNeg, NonPos, PowCone3D

from kernelopt.certificates.conic.cones import ConeProgram, cone_program
from kernelopt.certificates.conic.dual_cones import (
    LocalMetric,
    barrier_gradient,
    interior_point,
    into_dual_cone,
)
from kernelopt.certificates.conic.equilibration import equilibrated
from kernelopt.certificates.conic.exponential_cones import Exponential
from kernelopt.certificates.conic.proofs import solved_normal_equations
from kernelopt.certificates.conic.stated import entries, plain, whole
from kernelopt.language.adapter import written_problem
from kernelopt.structure.relaxed_cones import RelaxedCones, face
from kernelopt.structure.structure import Point, Structure
from kernelopt.threads import quietly
from kernelopt.validation import Array

STEPS = tuple(10.0**k for k in range(-12, -3))  # relative to the largest slack


def points_inward(structure: Structure, point: Point) -> Iterator[tuple[Point, Callable[[float], bool]]]:
    """Yield points ever further inside the cones; none where a constraint needs auxiliary variables.

    The function that is returned with a point says which steps towards it are inside the compiled cones, in
    floating point.

    With the slack s = b - Ax, e inside the cone and a step t, the change dx has the slack near s + t e:
    it minimises |A dx + t e| in the Hessian of the barrier at s + t e. So the slack changes where it is near
    the boundary, and hardly elsewhere.
    """
    variables = structure.variables
    if not variables:
        return
    stripped = plain(structure)
    pairs = [(stripped.variables[v.id], entries(v, point[v.id])) for v in variables]
    program = stripped.program
    if program is not None and np.isnan(program.by_column(pairs, np.nan)).any():
        with quietly():  # without the objective, for which auxiliary variables may stand
            constraints = cp.Problem(cp.Minimize(0), stripped.problem.constraints)
        program = cone_program(constraints)
    if program is None or any(isinstance(cone, Exponential) for cone in program.cones):
        return
    x = program.by_column(pairs, np.nan)
    if np.isnan(x).any():
        return
    scaled, _, _ = equilibrated(program, np.ones(x.size))
    slack = scaled.b - scaled.A @ x
    for step in STEPS:
        changed = moved_inward(scaled, x, slack, step)
        if changed is None:
            return
        columns = program.columns
        found = dict(point)
        for variable, (copy, own) in zip(variables, pairs, strict=True):
            start = columns.get(copy.id)
            if start is not None:
                found[variable.id] = whole(variable, changed[start : start + own.size])
        yield found, partial(is_inside, scaled, slack, scaled.b - scaled.A @ changed)


def is_inside(program: ConeProgram, slack: Array, changed: Array, t: float) -> bool:
    """Whether (1 - t) slack + t changed is inside the cones, but for equations."""
    mixed = (1 - t) * slack + t * changed
    # These cones are their own duals, of which `depth` is the distance from the boundary.
    return all(bool(np.all(cone.depth(cone.of(mixed), 1.0) > 0)) for cone in program.cones)


def moved_inward(program: ConeProgram, x: Array, slack: Array, step: float) -> Array | None:
    """Return x + dx, None where the normal equations are singular."""
    inside = into_dual_cone(program, slack)
    if inside is None:
        return None
    inside += step * max(float(np.abs(slack).max(initial=0.0)), 1.0) * interior_point(program)
    for cone in program.cones:
        if cone.is_free:
            cone.of(inside)[:] = 0.0
    H = LocalMetric(program, barrier_gradient(program, inside))
    solve = solved_normal_equations(sp.csr_array(program.A), H)
    return None if solve is None else x + solve(program.A.T @ H(slack - inside))


def phase_one(structure: Structure, cones: RelaxedCones | None) -> tuple[cp.Problem, cp.Variable]:
    """Return the maximisation of the slack, at most one, in all inequalities, and the slack.

    With `cones` the large matrix inequalities are relaxed.
    """
    slack = cp.Variable(name="slack")
    constraints: list[Any] = [slack <= 1]
    problem = structure.explicit if any(structure.constrained) else structure.lifted
    for constraint in (*problem.constraints, *structure.atom_domains):
        smaller, _ = face(constraint, cones)
        constraints.append(with_slack(smaller, slack))
    for variable in structure.variables:
        attributes = variable.attributes
        if attributes["nonneg"] or attributes["pos"]:
            constraints.append(variable >= slack)
        if attributes["nonpos"] or attributes["neg"]:
            constraints.append(-variable >= slack)
        if attributes["PSD"]:
            constraints.append(variable - slack * np.eye(variable.shape[0]) >> 0)
    return written_problem(cp.Maximize(slack), constraints), slack


def with_slack(constraint: Any, slack: cp.Variable) -> cp.Constraint:
    """Return a copy of a constraint, tightened by `slack` unless it is an equality.

    It is a copy in any case, since a solve of phase one overwrites the multiplier.
    """
    args = list(constraint.args)
    if isinstance(constraint, Inequality | NonPos):
        args[0] = args[0] + slack
    elif isinstance(constraint, cp.constraints.PSD):
        args[0] = args[0] - slack * np.eye(constraint.shape[0])
    elif isinstance(constraint, NonNeg | SOC):
        args[0] = args[0] - slack
    elif isinstance(constraint, ExpCone):
        args[2] = args[2] - slack
    elif isinstance(constraint, PowCone3D):
        args[:2] = [args[0] - slack, args[1] - slack]
    return constraint.copy(args)

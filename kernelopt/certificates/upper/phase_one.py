"""Phase one: the problem whose solution is a point with the largest slack in all inequalities."""

from __future__ import annotations

from typing import Any

import cvxpy as cp
import numpy as np
from cvxpy.constraints import SOC, ExpCone, Inequality, NonNeg, NonPos, PowCone3D

from kernelopt.structure.relaxed_cones import RelaxedCones, face
from kernelopt.structure.structure import Structure


def phase_one(structure: Structure, cones: RelaxedCones | None) -> tuple[cp.Problem, cp.Variable]:
    """Return the maximisation of the slack, at most one, in all inequalities, and the slack.

    With `cones` the large matrix inequalities are relaxed.
    """
    slack = cp.Variable(name="slack")
    constraints: list[Any] = [slack <= 1]
    problem = structure.explicit if any(structure.constrained) else structure.lifted
    for constraint in (*problem.constraints, *structure.atom_domains):
        smaller, _ = face(constraint, cones)
        constraints += with_slack(smaller, slack)
    for variable in structure.variables:
        attributes = variable.attributes
        if attributes["nonneg"] or attributes["pos"]:
            constraints.append(variable >= slack)
        if attributes["nonpos"] or attributes["neg"]:
            constraints.append(-variable >= slack)
        if attributes["PSD"]:
            constraints.append(variable - slack * np.eye(variable.shape[0]) >> 0)
    return cp.Problem(cp.Maximize(slack), constraints), slack


def with_slack(constraint: Any, slack: cp.Variable) -> list[Any]:
    """Return an inequality tightened by `slack`; an equality is copied."""
    if isinstance(constraint, Inequality | NonPos):
        return [constraint.expr + slack <= 0]
    if isinstance(constraint, cp.constraints.PSD):
        return [constraint.args[0] - slack * np.eye(constraint.shape[0]) >> 0]
    if isinstance(constraint, NonNeg):
        return [constraint.args[0] >= slack]
    if isinstance(constraint, SOC):
        return [SOC(constraint.args[0] - slack, constraint.args[1], axis=constraint.axis)]
    if isinstance(constraint, ExpCone):
        x, y, z = constraint.args
        return [ExpCone(x, y, z - slack)]
    if isinstance(constraint, PowCone3D):
        x, y, z = constraint.args
        return [PowCone3D(x - slack, y - slack, z, constraint.alpha)]
    return [constraint.copy()]  # a copy, since a solve of phase one overwrites the multiplier

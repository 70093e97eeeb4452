"""The conditions of optimality at a pair of points of a problem and its dual."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import cvxpy as cp
import numpy as np
from cvxpy.atoms.affine.affine_atom import AffAtom
from cvxpy.atoms.atom import Atom
from cvxpy.constraints import PSD
from cvxpy.constraints.constraint import Constraint

from kernelopt.duality.lagrangian import Multiplier
from kernelopt.duality.residuals import largest, largest_violation, product, set_point
from kernelopt.duality.solving import ACCURATE
from kernelopt.duality.symbols import dense
from kernelopt.structure.affine import Affine, flat
from kernelopt.structure.structure import Structure
from kernelopt.structure.trees import copied_problem, nodes, replaced, with_args
from kernelopt.structure.zero_weights import ROUNDING_SHARE, senses, sizes_of_terms, zero_equations
from kernelopt.threads import quietly
from kernelopt.validation import Array

INSIDE = 1e-12  # of the largest entry, or of one: where an entry at the border of a domain is put
FAR = 1e-2  # of the largest entry, or of one: a point is no solution where a constraint is further away


class Check(NamedTuple):
    """How well a pair of points satisfies the conditions of Karush, Kuhn and Tucker.

    Attributes
    ----------
    primal, dual : float
        The values of the two problems at the recovered point and at the dual one. At the border of the domain
        of an atom the recovered point is judged inside of it, up to 1e-6 of its largest entry, or of one.
    gap : float
        |primal - dual| / max(1, |primal|, |dual|).
    feasibility : float
        The largest violation of a constraint of the primal at the recovered point, or the largest weight
        that signs force to zero. It is at least 0.01 where a linear constraint, however small its
        coefficients, holds only if an entry moves by more than 0.01, or by a hundredth of the largest one.
    stationarity : float
        The largest violation of a constraint of the dual: that the gradient of the Lagrangian is zero or in a
        cone, and that multipliers are in theirs.
    complementarity : float
        The largest |<multiplier, slack>| over the constraints of the primal.
    """

    primal: float
    dual: float
    gap: float
    feasibility: float
    stationarity: float
    complementarity: float


def checked(
    structure: Structure,
    point: Mapping[int, Array],
    multipliers: Sequence[Multiplier],
    dual: float,
    constraints: Sequence[Constraint],
) -> Check:
    """Return the conditions of optimality at a primal point and at the dual one.

    Parameters
    ----------
    structure : Structure
        The primal; its variables get the values of the point.
    point : dict from the ids of variables to their values
    multipliers : sequence of Multiplier
        The first ones are the multipliers of the constraints.
    dual : float
        The value of the dual.
    constraints : sequence of cvxpy constraints
        The constraints of the dual, at the values that its variables have.
    """
    with quietly(), np.errstate(all="ignore"):  # cvxpy warns about the values of sparse variables
        set_point(structure, point)
        lifted = inside_domains(structure.lifted)
        primal = float(lifted.objective.value)
        pairs = zip(lifted.constraints, multipliers, strict=False)
        return Check(
            primal,
            dual,
            abs(primal - dual) / max(1.0, abs(primal), abs(dual)),
            max(largest_violation([*lifted.constraints, *zero_equations(structure)]), far_off(structure)),
            largest_violation(constraints),
            max((abs(product(c, multiplier)) for c, multiplier in pairs), default=0.0),
        )


@np.errstate(all="ignore")  # cvxpy evaluates atoms outside of their domains
def inside_domains(problem: cp.Problem) -> cp.Problem:
    """Return a problem whose atoms are evaluated inside of their domains, at the values of its variables.

    Solvers place points in cones up to a tolerance, and an entropy at -1e-10 is infinite. So where the value
    of an atom is not finite, entries of its arguments that are outside of its domain by at most `ACCURATE` of
    the largest entry, or of one, are moved inside by as much; of a matrix, its eigenvalues are.
    """
    memo: dict[int, Any] = {}
    for root in (problem.objective.args[0], *(arg for c in problem.constraints for arg in c.args)):
        for node in reversed(list(nodes(root))):  # arguments first
            if isinstance(node, Atom) and not isinstance(node, AffAtom) and node._domain():
                here = replaced(node, memo)
                if not np.isfinite(dense(here.value)).all():
                    memo[id(node)] = with_args(here, moved_inside(node, here.args))
    return copied_problem(problem, memo) if memo else problem


def moved_inside(atom: Any, args: list[Any]) -> list[Any]:
    """Return the arguments of an atom with those moved inside of its domain that are at its border."""
    found = list(args)
    for c in atom._domain():
        matrix = isinstance(c, PSD)
        for k, given in enumerate(atom.args):  # of x >= 0, and not of x >= -1
            if (matrix or c.args[0].is_zero()) and any(node is given for node in nodes(c.args[-1])):
                value, basis = dense(args[k].value), np.eye(0)
                if matrix:
                    value, basis = np.linalg.eigh(value)
                size = max(1.0, largest(value))
                near = (value <= 0) & (value >= -ACCURATE * size)
                value = np.where(near, np.maximum(-value, INSIDE * size), value)
                found[k] = cp.Constant((basis * value) @ basis.T if matrix else value)
    return found


def far_off(structure: Structure) -> float:
    """Return a distance within which no point meets some linear constraint and the signs, or zero.

    The violation of 1e-9 x <= 1e-9 at x = 2 is 1e-9, and the point is far from feasible.
    """
    distance = FAR * max([1.0, *(largest(v.value) for v in structure.variables)])
    for constraint, read in zip(structure.lifted.constraints, structure.affines, strict=True):
        if read is not None and any(is_above(constraint, read, s, distance) for s in senses(constraint)):
            return distance
    return 0.0


def is_above(constraint: Any, read: Affine, sign: float, distance: float) -> bool:
    """Whether an entry of sign * read is positive wherever the variables move by at most a distance.

    Variables keep their signs. Coefficients that are rounding errors of a difference do not count.
    """
    parts = []
    for v, matrix in read.matrices.items():
        x, A = flat(v.value), sign * matrix
        low = np.maximum(x - distance, 0.0 if v.is_nonneg() else -np.inf)
        high = np.minimum(x + distance, 0.0 if v.is_nonpos() else np.inf)
        parts += [(v, A.maximum(0), low), (v, A.minimum(0), high)]
    least = sum((part @ side for _, part, side in parts), sign * read.constant)
    if not (parts and np.any(least > 0)):
        return False
    sizes = sizes_of_terms(constraint.expr)
    sides = (sizes.get(v.id, abs(part)).multiply(part != 0) @ np.abs(side) for v, part, side in parts)
    return bool(np.any(least > ROUNDING_SHARE * sum(sides, np.abs(read.constant))))


def error_of(check: Check) -> float:
    """Return the larger of the gap and of the violation of the primal, infinite where one is no number."""
    error = max(check.gap, check.feasibility)
    return error if np.isfinite(error) else np.inf

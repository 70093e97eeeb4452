"""Problems as they are compiled: on variables without attributes, with stand-ins of the risks replaced."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import cvxpy as cp
import numpy as np
import scipy.sparse as sp
from cvxpy.atoms.affine.wraps import nonneg_wrap

from kernelopt.certificates.boxes import Box, attribute_box, entry_bounds
from kernelopt.certificates.conic.cones import ConeProgram, cone_program
from kernelopt.language.adapter import is_compiled, written_problem
from kernelopt.structure.affine import flat
from kernelopt.structure.relaxed_cones import RelaxedCones, face
from kernelopt.structure.structure import ENTRYWISE, Structure, kept_in_structure
from kernelopt.structure.trees import (
    constraint_names,
    copied_constraint,
    copied_problem,
    replaced,
    rounds_coefficients,
)
from kernelopt.structure.zero_weights import zero_equations
from kernelopt.validation import Array

ASSUMED = "coefficients that are sums of numbers, in {}, are taken as cvxpy rounds them"


@dataclass(frozen=True, eq=False)
class WithoutAttributes:
    """A problem whose variables have no attributes, equivalent to a user's problem."""

    problem: cp.Problem
    variables: dict[int, cp.Variable]  # by the user's variable id; of a symmetric variable its upper triangle

    @cached_property
    def program(self) -> ConeProgram | None:
        """The problem as cvxpy compiles it for Clarabel, None if it has no such form in doubles."""
        return cone_program(self.problem)


def has_attributes(variable: cp.Variable) -> bool:
    """Whether a variable has an attribute."""
    return any(value is not None and value is not False for value in variable.attributes.values())


def is_triangular(variable: cp.Variable) -> bool:
    """Whether `without_attributes` represents a matrix variable by its upper triangle."""
    return any(variable.attributes[name] for name in ("PSD", "NSD", "symmetric"))


def entries(variable: cp.Variable, value: Array) -> Array:
    """Return the entries of a value in the representation of `without_attributes`."""
    found: Array = value[np.triu_indices(len(value))] if is_triangular(variable) else flat(value)
    return found


def whole(variable: cp.Variable, entries: Array) -> Array:
    """Return the value of a variable from its entries, the inverse of `entries`."""
    values = duplication(variable.shape[0]) @ entries if is_triangular(variable) else entries
    return np.reshape(values, variable.shape, order="F")


def duplication(order: int) -> sp.csc_array:
    """Return the duplication matrix: from an upper triangle to the symmetric matrix, flattened by columns."""
    rows, columns = np.triu_indices(order)
    index = np.zeros((order, order), dtype=int)
    index[rows, columns] = index[columns, rows] = np.arange(rows.size)
    return sp.csc_array((np.ones(order**2), (np.arange(order**2), index.ravel(order="F"))))


def without_attributes(problem: cp.Problem, variables: Iterable[cp.Variable]) -> WithoutAttributes:
    """Return the problem on variables without attributes, with constraints that state the attributes."""
    substitutes: dict[int, Any] = {}
    stand_ins: dict[int, cp.Variable] = {}
    constraints: list[cp.Constraint] = []
    for variable in variables:
        attributes = variable.attributes
        if is_triangular(variable):
            order = variable.shape[0]
            rows, columns = np.triu_indices(order)
            stand_in = cp.Variable(rows.size, name=variable.name())
            whole = cp.reshape(duplication(order) @ stand_in, (order, order), order="F")
            if attributes["PSD"]:
                constraints.append((whole >> 0).set_label(f"{variable.name()} >> 0"))
            if attributes["NSD"]:
                constraints.append((whole << 0).set_label(f"{variable.name()} << 0"))
            entries = rows + columns * order
        else:
            stand_in = cp.Variable(variable.shape, name=variable.name())
            # cvxpy needs the sign for its convexity rules: cp.square(cp.max(theta)) needs theta >= 0.
            whole = nonneg_wrap(stand_in) if variable.is_nonneg() else stand_in
            entries = np.arange(variable.size)
        declared = attribute_box(variable)
        constraints += entry_bounds(stand_in, Box(declared.lower[entries], declared.upper[entries]))
        substitutes[id(variable)] = whole
        stand_ins[variable.id] = stand_in
    copy = copied_problem(problem, substitutes)
    stripped = written_problem(copy.objective, [*copy.constraints, *constraints])
    return WithoutAttributes(stripped, stand_ins)


def substituted(
    structure: Structure, substitutes: dict[int, Any], cones: RelaxedCones | None = None
) -> cp.Problem:
    """Return the minimisation with the stand-ins of the risks replaced and the risks' domains added.

    With `cones` the large matrix inequalities are relaxed.
    """
    objective = replaced(structure.lifted.objective.args[0], substitutes)
    constraints = [face(c, cones)[0] for c in (*structure.lifted.constraints, *structure.domains)]
    constraints += zero_equations(structure)
    return written_problem(
        cp.Minimize(-objective if structure.maximize else objective),
        [copied_constraint(c, substitutes) for c in constraints],
    )


@kept_in_structure
def coefficients_assumption(structure: Structure) -> str:
    """Return what a conic bound assumes of the coefficients, as a sentence; empty where none is a sum."""
    lifted = structure.lifted
    found = ["the objective"] * rounds_coefficients(lifted.objective.args[0])
    sides = ([c.expr] if isinstance(c, ENTRYWISE) else c.args for c in lifted.constraints)
    named = zip(constraint_names(lifted), sides, strict=True)
    found += [name for name, each in named if any(map(rounds_coefficients, each))]
    return ASSUMED.format(", ".join(found)) if found else ""


@kept_in_structure
def plain(structure: Structure) -> WithoutAttributes:
    """Return the minimisation on variables without attributes; with risks its objective is zero.

    Where that is the user's problem, and the last solve has left it compiled for Clarabel, cvxpy does not
    compile it again.
    """
    user, constraints = structure.problem, structure.lifted.constraints
    if (
        is_compiled(user, "CLARABEL")
        and not (structure.risks or any(map(has_attributes, structure.variables)))
        and not (zero_equations(structure) or any(face(c, None)[0] is not c for c in constraints))
    ):
        return WithoutAttributes(user, {v.id: v for v in structure.user_variables})
    found = substituted(structure, {})
    found = written_problem(cp.Minimize(0), found.constraints) if structure.risks else found
    return without_attributes(found, structure.variables)

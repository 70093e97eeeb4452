"""Problems that separate: weighted risks, an affine function and prices, over sets that share no variable."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import cvxpy as cp

from kernelopt.entry_points import subclasses
from kernelopt.structure.affine import Affine
from kernelopt.structure.attributes import beside_cone
from kernelopt.structure.parts import Budget, Free, Part, cone
from kernelopt.structure.recognition import affine_and_terms
from kernelopt.structure.structure import RiskTerm, Structure, kept_in_structure
from kernelopt.structure.trees import short


@dataclass(frozen=True, eq=False)
class Learning:
    """min sum_k factors_k risk_k(x) + linear(x) + sum of prices, over x in sets.

    No two parts share a variable. With each risk replaced by an affine minorant, the minimum is therefore a
    sum of minima over one part each.

    Attributes
    ----------
    factors : tuple of float >= 0, one per risk
    linear : Affine
    parts : tuple of Part
        Every variable belongs to one of them.
    """

    factors: tuple[float, ...]
    linear: Affine
    parts: tuple[Part, ...]


class WeightedRisks(NamedTuple):
    """min sum_k factors_k * risks_k + rest with factors > 0 and an affine function of the variables."""

    risks: tuple[RiskTerm, ...]
    factors: tuple[float, ...]
    rest: Affine

    @property
    def risk(self) -> RiskTerm:
        """The only risk."""
        return self.risks[0]

    @property
    def factor(self) -> float:
        """The factor of the only risk."""
        return self.factors[0]

    @property
    def offset(self) -> float:
        """The constant of `rest`."""
        return float(self.rest.constant[0])


def weighted_risks(structure: Structure) -> WeightedRisks | str:
    """Return the objective as a sum of risks with positive factors and an affine rest, or why it is none."""
    if not structure.risks:
        return "it needs a risk, the problem has 0"
    if structure.unset:
        return structure.unset
    factors, rest = structure.objective.coefficients, structure.rest
    if structure.maximize or factors is None or rest is None or not min(factors) > 0:
        return "its objective must be positive multiples of its risks, plus an affine function of the weights"
    return WeightedRisks(structure.risks, factors, rest)


def one_risk(structure: Structure) -> WeightedRisks | str:
    """Return the objective as factor * risk + offset with factor > 0, or a sentence why it is none."""
    if len(structure.risks) != 1:
        return f"it needs one risk, the problem has {len(structure.risks)}"
    read = weighted_risks(structure)
    if not isinstance(read, str) and read.rest.matrices:
        wanted = "a positive multiple of the risk, plus a constant"
        return f"its objective must be {wanted}, got prices of the weights"
    return read


@kept_in_structure
def read_learning(structure: Structure) -> Learning | None:
    """Return a problem as a `Learning`, or None if it does not separate."""
    coefficients, rest = structure.objective
    if coefficients is None or rest is None or structure.domains or any(structure.constrained):
        return None
    sets = read_sets(structure)
    if min(coefficients, default=0.0) < 0 or isinstance(sets, str):
        return None  # the sets are read first because reading the objective takes longer
    read = affine_and_terms(rest)
    if read is None:
        return None
    linear, prices = read
    bounded = [v for part in (*sets, *prices) if part.at or part in prices for v in part.variables]
    if len(set(bounded)) < len(bounded) or not set(bounded) <= set(structure.variables):
        return None
    cones = (part for part in sets if not set(part.variables) <= set(bounded))
    return Learning(coefficients, linear, (*(part for part in sets if part.at), *prices, *cones))


@kept_in_structure
def read_sets(structure: Structure) -> tuple[Part, ...] | str:
    """Return the feasible set as a product of parts, cones where no constraint is stated, or why it is none.

    The constraints that are connected by common variables state one part: a budget that bounds every entry
    of its variables, a ball, an ellipsoid, or a `Part` that a package names in the group of entry points
    "kernelopt.parts".
    """
    for variable in structure.variables:
        if beside_cone(variable):
            return f"{variable.name()} has {beside_cone(variable)} beside its cone"
    found: list[Part] = []
    for constraints in components(structure):
        part = recognised(structure, constraints)
        if part is None:
            at = max(constraints, key=lambda i: (structure.sets[i] is None, i))
            wrong = "does not fix the trace of one variable, or bound it by an l_p norm"
            bound = structure.sets[at]
            if bound is not None:
                wrong = f"is the second that bounds {', '.join(v.name() for v in bound.variables)}"
            return f"the constraint {name(structure, at)} {wrong}"
        found.append(part)
    bounded = {v for part in found for v in part.variables}
    return (*found, *(cone(v) or Free((v,)) for v in structure.variables if v not in bounded))


def name(structure: Structure, at: int) -> str:
    """Return the label or the text of a constraint."""
    constraint = structure.lifted.constraints[at]
    return constraint.label or short(constraint)


def components(structure: Structure) -> list[dict[int, cp.Constraint]]:
    """Return the active constraints by position, in groups that share no variables."""
    found: list[tuple[set[cp.Variable], dict[int, cp.Constraint]]] = []
    for i in structure.active:
        constraint = structure.lifted.constraints[i]
        variables, group = set(constraint.variables()), {i: constraint}
        for other in [other for other in found if other[0] & variables]:
            found.remove(other)
            variables, group = variables | other[0], other[1] | group
        found.append((variables, group))
    return [group for _, group in found]


def recognised(structure: Structure, constraints: dict[int, cp.Constraint]) -> Part | None:
    """Return connected constraints as one part, or None."""
    at, *others = constraints
    part = None if others else structure.sets[at]
    if part is not None and part.is_part:
        return part
    kinds = (kind for _, kind in subclasses("kernelopt.parts", Part, {}))
    return next(filter(None, (kind.recognise(constraints) for kind in kinds)), None)


@kept_in_structure
def read_pieces(structure: Structure) -> list[Budget] | str:
    """Return the feasible set as a product of spectrahedra and simplices, one for each variable, or why not.

    They are {X PSD: tr X = r} and {x >= 0: r'x = 1}, with <= too, or the cones alone.
    """
    for variable in structure.variables:
        if cone(variable) is None or variable.ndim != 1 + bool(variable.attributes["PSD"]):
            return f"{variable.name()} must be a matrix with PSD=True or a vector with nonneg=True"
    sets = read_sets(structure)
    if isinstance(sets, str):
        return sets
    budgets = [part for part in sets if isinstance(part, Budget) and part.bounds_all and part.total > 0]
    pieces = {part.variables[0]: part for part in budgets}
    for part in sets:
        if len(part.variables) > 1 or part.variables[0] not in pieces:
            return f"the constraint {name(structure, part.at[0])} does not fix the trace of one variable"
    return [pieces[variable] for variable in structure.variables]

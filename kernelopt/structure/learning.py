"""Problems that separate: weighted risks, an affine function and prices, over sets that share no variable."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import cvxpy as cp

from kernelopt.entry_points import subclasses
from kernelopt.structure.attributes import beside_cone
from kernelopt.structure.parts import Budget, Free, Inverses, Part, cone
from kernelopt.structure.powers import Power
from kernelopt.structure.structure import Objective, Structure, kept_in_structure
from kernelopt.structure.trees import rounds_coefficients, short


def weighted_risks(structure: Structure) -> Objective | str:
    """Return the objective if it has risks with positive factors and is affine otherwise, or why not."""
    if not structure.risks:
        return "it needs a risk, the problem has 0"
    objective = structure.objective
    if structure.unset:
        return structure.unset
    if structure.maximize or objective is None or objective.terms or not min(objective.factors) > 0:
        return "its objective must be positive multiples of its risks, plus an affine function of the weights"
    return objective


def one_risk(structure: Structure) -> Objective | str:
    """Return the objective if it is factor * risk + offset with factor > 0, or a sentence why it is not."""
    if len(structure.risks) != 1:
        return f"it needs one risk, the problem has {len(structure.risks)}"
    read = weighted_risks(structure)
    if not isinstance(read, str) and read.linear.matrices:
        wanted = "a positive multiple of the risk, plus a constant"
        return f"its objective must be {wanted}, got prices of the weights"
    return read


@kept_in_structure
def read_parts(structure: Structure) -> tuple[Part, ...] | None:
    """Return the sets and the prices of a problem that separates, or None if it does not.

    It is min sum_k factors_k risk_k(x) + linear(x) + sum of prices, factors_k >= 0, over x in sets, where no
    two parts share a variable and every variable belongs to one. With each risk replaced by an affine
    minorant, the minimum is therefore a sum of minima over one part each.
    """
    objective = structure.objective
    if objective is None or structure.domains or any(structure.constrained):
        return None
    sets = read_sets(structure)
    added = any(rounds_coefficients(e) for _, e in objective.exact_terms)
    if min(objective.factors, default=0.0) < 0 or added or isinstance(sets, str):
        return None
    prices = list[Part]()
    for weights, e in objective.terms:
        signed = all(v.is_nonneg() for v in e.variables())
        price = first(kind.recognise_price(weights, e) for kind in kinds()) if signed else None
        if price is None:
            return None
        prices.append(price)
    bounded = [v for part in (*(part for part in sets if part.at), *prices) for v in part.variables]
    if len(set(bounded)) < len(bounded) or not set(bounded) <= set(structure.variables):
        return None
    sets = tuple(part for part in sets if part.at or not set(part.variables) <= set(bounded))
    return (*sets, *prices)


@kept_in_structure
def read_sets(structure: Structure) -> tuple[Part, ...] | str:
    """Return the feasible set as a product of parts, cones where no constraint is stated, or why it is none.

    The constraints that are connected by common variables state one part: a budget, a ball, an ellipsoid, or
    a `Part` that a package names in the group of entry points "kernelopt.parts".
    """
    for variable in structure.variables:
        if beside_cone(variable):
            return f"{variable.name()} has {beside_cone(variable)} beside its cone"
    found: list[Part] = []
    for constraints in components(structure):
        at, *others = constraints
        part: Part | None = None if others else structure.sets[at]
        if part is None or not (isinstance(part, Budget) or all(v.is_nonneg() for v in part.variables)):
            part = first(kind.recognise(constraints) for kind in kinds())
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


def kinds() -> Iterator[type[Part]]:
    """Yield the kinds of prices, and the kinds of parts of other packages."""
    yield from (Power, Inverses)
    yield from (kind for _, kind in subclasses("kernelopt.parts", Part, {}))


def first(parts: Iterable[Part | None]) -> Part | None:
    """Return the first part that was recognised."""
    return next((part for part in parts if part is not None), None)


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
    pieces = dict[cp.Variable, Budget]()
    for part in sets:
        if not isinstance(part, Budget) or len(part.rows) > 1 or not (part.bounds_all and part.total > 0):
            return f"the constraint {name(structure, part.at[0])} does not fix the trace of one variable"
        pieces[part.variable] = part
    return [pieces[variable] for variable in structure.variables]

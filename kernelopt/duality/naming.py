"""The names of variables, multipliers and parameters in print, and a dual beside its primal as statements."""

from __future__ import annotations

import re
from typing import NamedTuple

import cvxpy as cp

from kernelopt.duality.forms import Multiplier
from kernelopt.duality.lagrangian import Read
from kernelopt.duality.notation import Notation
from kernelopt.duality.primal import primal_of
from kernelopt.duality.statement import Statement, Tags, statement_of
from kernelopt.duality.symbols import DUAL, Symbols
from kernelopt.duality.written import Written, name_of
from kernelopt.structure.structure import Structure

UNNAMED = re.compile(r"(var|param)\d+")  # the names that cvxpy gives


class Pair(NamedTuple):
    """A problem and a dual of it as they are written.

    Attributes
    ----------
    primal, dual : Statement
    where : tuple of (name, Written)
        The multipliers that the dual does not have as variables, as functions of those that it has.
    sums : tuple of (Written, Written)
        The kernels as functions of their weights, such as K(theta).
    legend, of_dual : dict from name to meaning
        The data of both problems, and of the dual alone.
    """

    primal: Statement
    dual: Statement
    where: tuple[tuple[Written, Written], ...]
    sums: tuple[tuple[Written, Written], ...]
    legend: dict[str, str]
    of_dual: dict[str, str]


def pair_of(structure: Structure, dual: cp.Problem, read: Read | None) -> Pair:
    """Return a problem and a dual of it as they are written.

    `read` is what `dualize` has made the dual from, None for a dual by hand. The primal is written first, so
    that an array has one name in both, whether both are shown or the dual alone.
    """
    notation = notation_of(structure, dual)
    symbols = notation.symbols
    primal, _ = primal_of(structure, notation, multiplier_tags(read) if read else {})
    legend = symbols.printed()
    stated = statement_of(dual, notation, "" if read else DUAL)
    of_dual = symbols.printed()
    where = eliminated(read, notation) if read else ()
    sums = tuple(symbols.sums.values())
    return Pair(primal, stated, where, sums, {**legend, **of_dual, **symbols.printed()}, of_dual)


def notation_of(structure: Structure, dual: cp.Problem | None = None) -> Notation:
    """Return a notation that knows the names of the variables and parameters of a problem and its dual."""
    leaves = [*structure.variables, *structure.problem.parameters()]
    leaves += [] if dual is None else [*dual.variables(), *dual.parameters()]
    taken = {leaf.name() for leaf in leaves}
    return Notation(Symbols(taken), renamed(structure, taken))


def renamed(structure: Structure, taken: set[str]) -> dict[int, str]:
    """Return x1, x2, ... for the variables to which the user has given no name, by their ids.

    The second of two variables of one name gets a number too. The new names are added to those that are
    `taken`.
    """
    found: dict[int, str] = {}
    seen = set[str]()
    for leaf in (*structure.variables, *structure.problem.parameters()):
        name = leaf.name()
        if UNNAMED.fullmatch(name):
            letter = "p" if isinstance(leaf, cp.Parameter) else "X" if leaf.ndim == 2 else "x"
        elif name in seen:
            letter = name
        else:
            seen.add(name)
            continue
        count = next(k for k in range(1, len(taken) + 2) if f"{letter}{k}" not in taken)
        taken.add(f"{letter}{count}")
        found[leaf.id] = f"{letter}{count}"
    return found


def multiplier_tags(read: Read) -> Tags:
    """Return the names of the multipliers of the constraints by position, of the bounds, and of the risks.

    The tag ("risk", k) has the multiplier of the fit of risk k, and the one of its value where it has one.
    """
    tags: Tags = {}
    for term, alpha, weight in read.alphas:
        k = next(k for k, known in enumerate(read.structure.risks) if known is term)
        own = [alpha, *([weight] if isinstance(weight, Multiplier) else [])]
        tags["risk", k] = tuple(name_of(m.variable.name()) for m in own)
    bounds = bound_names(read)
    for i, name in (*enumerate(constraint_names(read)), *zip(bounds, bounds, strict=True)):
        owners = [m for m in read.model.multipliers if m.of == f"the constraint {name}"]
        if owners:
            tags[i] = tuple(name_of(m.variable.name()) for m in owners)
    return tags


def constraint_names(read: Read) -> list[str]:
    """Return the names by which the dual knows the constraints of its primal."""
    return [c.label or str(i) for i, c in enumerate(read.structure.problem.constraints)]


def bound_names(read: Read) -> list[str]:
    """Return the names by which the dual knows the bounds of variables."""
    return [f"{v.name()} {side}" for v in read.structure.variables for side in ("lower", "upper")]


def eliminated(read: Read, notation: Notation) -> tuple[tuple[Written, Written], ...]:
    """Return the multipliers of constraints and bounds that the presolve has put in terms of others."""
    known = {f"the constraint {name}" for name in (*constraint_names(read), *bound_names(read))}
    found = [m for m in read.model.multipliers if m.of in known and m.definition is not None]
    return equations(found, notation)


def equations(multipliers: list[Multiplier], notation: Notation) -> tuple[tuple[Written, Written], ...]:
    """Return multipliers with the expressions that have replaced them."""
    return tuple((name_of(m.variable.name()), notation(m.expression)) for m in multipliers)

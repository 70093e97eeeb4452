"""The names of variables, multipliers and parameters in print, and a dual beside its primal as statements."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, NamedTuple

import cvxpy as cp

from kernelopt.duality.equations import renamed
from kernelopt.duality.notation import Notation
from kernelopt.duality.primal import primal_of
from kernelopt.duality.statement import Statement, Tags, statement_of
from kernelopt.duality.symbols import DUAL, Symbols
from kernelopt.duality.written import Written, name_of
from kernelopt.structure.structure import Structure

if TYPE_CHECKING:
    from kernelopt.duality.dual import Made

UNLABELLED = re.compile(r"multiplier of the constraint \d+")


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
        The data of both problems; and of the dual alone, with its multipliers of constraints without a label.
    """

    primal: Statement
    dual: Statement
    where: tuple[tuple[Written, Written], ...]
    sums: tuple[tuple[Written, Written], ...]
    legend: dict[str, str]
    of_dual: dict[str, str]


def pair_of(structure: Structure, dual: cp.Problem, made: Made | None) -> Pair:
    """Return a problem and a dual of it as they are written.

    `made` is what `dualize` has made the dual of, None for a dual by hand. The primal is written first, so
    that an array has one name in both, whether both are shown or the dual alone.
    """
    notation = notation_of(structure, dual)
    symbols = notation.symbols
    primal, _ = primal_of(structure, notation, multiplier_tags(made) if made else {})
    legend = symbols.printed()
    stated = stated_dual(dual, notation, made)
    of_dual = symbols.printed()
    meaning = made.swept.new.meaning if made else {}
    multipliers = {v.name(): f"multiplier of {meaning.get(v.name())}" for v in dual.variables()}
    told = {name: of for name, of in multipliers.items() if UNLABELLED.fullmatch(of)}
    where = eliminated(made, notation) if made else ()
    sums = tuple(symbols.sums.values())
    return Pair(primal, stated, where, sums, {**legend, **of_dual, **symbols.printed()}, told | of_dual)


def stated_dual(dual: cp.Problem, notation: Notation, made: Made | None) -> Statement:
    """Return a dual as a statement, with its variables in the order of the sweep."""
    if made is None:
        return statement_of(dual, notation, DUAL)
    return statement_of(dual, notation, "", made.state.hidden, list(made.swept.new.meaning))


def notation_of(structure: Structure, dual: cp.Problem | None = None) -> Notation:
    """Return a notation that knows the names of the variables and parameters of a problem and its dual."""
    names = renamed(structure)
    leaves = [*structure.variables, *structure.problem.parameters()]
    leaves += [] if dual is None else [*dual.variables(), *dual.parameters()]
    return Notation(Symbols({leaf.name() for leaf in leaves} | set(names.values())), names)


def multiplier_tags(made: Made) -> Tags:
    """Return the names of the multipliers of the constraints by position, of the bounds, and of the risks."""
    tags: Tags = {}
    found = made.swept.lagrangian
    for i, multiplier in enumerate(found.multipliers):
        names = tuple(name_of(v.name()) for v in multiplier.variables)
        tags[i if multiplier.user else multiplier.name] = names
    for term in found.terms:
        at = [k for k, known in enumerate(made.structure.risks) if known.node is term.atom]
        if at:
            tags["risk", at[0]] = tuple(
                name_of(v.name()) for v in term.variables if v.name().startswith("alpha")
            )
    return tags


def eliminated(made: Made, notation: Notation) -> tuple[tuple[Written, Written], ...]:
    """Return the multipliers of constraints and bounds that the board has in terms of others."""
    gone = made.state.gone
    found: list[tuple[Any, Any]] = []
    for multiplier in made.swept.lagrangian.multipliers:
        found += [gone[v.id] for v in multiplier.variables if v.id in gone and gone[v.id][1] is not None]
    return tuple((name_of(v.name()), notation(e)) for v, e in found)

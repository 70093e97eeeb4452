"""The names of variables, multipliers and parameters in print, and a dual beside its primal as statements."""

from __future__ import annotations

import re
from dataclasses import dataclass

import cvxpy as cp

from kernelopt.duality.board import Stated
from kernelopt.duality.equations import renamed
from kernelopt.duality.layout import beside, latex_problem, legend_text
from kernelopt.duality.reading import Reader
from kernelopt.duality.statement import Statement, Tags, constraint_lines, primal_of, statement_of
from kernelopt.duality.symbols import Symbols
from kernelopt.duality.tree import Tree, leaf
from kernelopt.structure.structure import Structure

UNLABELLED = re.compile(r"the constraint \d+")


@dataclass(frozen=True, eq=False, repr=False)
class Shown:
    """A problem beside its dual; made by `show`. It prints as text, and as LaTeX in a notebook.

    Attributes
    ----------
    primal, dual : Statement
    where : tuple of (name, Tree)
        The multipliers that the dual does not have as variables, as functions of those that it has.
    sums : tuple of (Tree, Tree)
        The kernels as functions of their weights, such as K(theta).
    legend : tuple of (name, meaning)
        The data of both problems, with shapes.
    of_dual : tuple of (name, meaning)
        The data of the dual alone, with its multipliers of constraints without a label.
    """

    primal: Statement
    dual: Statement
    where: tuple[tuple[Tree, Tree], ...]
    sums: tuple[tuple[Tree, Tree], ...]
    legend: tuple[tuple[str, str], ...]
    of_dual: tuple[tuple[str, str], ...]

    def __str__(self) -> str:
        rows = [(name.text, f"= {value.text}") for name, value in self.where] + list(self.legend)
        return beside(self.primal, self.dual) + legend_text(rows)

    def __repr__(self) -> str:
        return str(self)

    def _repr_latex_(self) -> str:
        return latex_problem(self.primal, self.dual, equations=(*self.sums, *self.where), legend=self.legend)


def shown_pair(structure: Structure, dual: cp.Problem, state: Stated | None) -> Shown:
    """Return a problem and a dual of it as they are written.

    `state` is what `dualize` has put on the board, None for a dual by hand. The primal is written first, so
    that an array has one name in both, whether both are shown or the dual alone.
    """
    notation = notation_of(structure, dual)
    symbols = notation.symbols
    primal, _ = primal_of(structure, notation, multiplier_tags(state) if state else {})
    legend = symbols.printed()
    stated = stated_dual(dual, notation, state)
    of_dual, told = symbols.printed(), {}
    if state:
        meaning = {v.name(): state.swept.new.meaning.get(v.name(), "") for v in dual.variables()}
        told = {name: f"multiplier of {of}" for name, of in meaning.items() if UNLABELLED.fullmatch(of)}
    where = eliminated(state, notation) if state else ()
    legend |= of_dual | symbols.printed()
    sums = tuple(symbols.sums.values())
    return Shown(primal, stated, where, sums, tuple(legend.items()), tuple((told | of_dual).items()))


def stated_dual(dual: cp.Problem, notation: Reader, state: Stated | None) -> Statement:
    """Return a dual as a statement, with its variables in the order of the sweep.

    What is hidden, the matrix of a positive part, is not written; a dual by hand has no such.
    """
    notation.symbols.place = ""
    hidden = state.hidden if state else {}
    variables = [v for v in dual.variables() if v.id not in hidden]
    if state:
        order = {name: i for i, name in enumerate(state.swept.new.meaning)}
        variables.sort(key=lambda v: order.get(v.name(), len(order)))
    value = notation(dual.objective.args[0])
    kept = [c for c in dual.constraints if not any(v.id in hidden for v in c.variables())]
    lines = constraint_lines(kept, notation, {})
    return statement_of(isinstance(dual.objective, cp.Maximize), value, lines, variables, notation)


def notation_of(structure: Structure, dual: cp.Problem | None = None) -> Reader:
    """Return a notation that knows the names of the variables and parameters of a problem and its dual."""
    names = renamed(structure)
    leaves = [*structure.variables, *structure.problem.parameters()]
    leaves += [] if dual is None else [*dual.variables(), *dual.parameters()]
    return Reader(Symbols({leaf.name() for leaf in leaves} | set(names.values())), names)


def multiplier_tags(state: Stated) -> Tags:
    """Return the names of the multipliers: of constraints by their ids, of bounds by name, and of risks."""
    found, tags = state.swept, Tags()
    lifted = iter(state.swept.structure.lifted.constraints)
    for m in found.multipliers:
        tags[id(next(lifted)) if m.user else m.name] = tuple(leaf(v.name()) for v in m.variables)
    for term in found.terms:
        alphas = tuple(leaf(v.name()) for v in term.alphas)
        tags |= {("risk", id(term.atom)): alphas} if alphas else {}
    return tags


def eliminated(state: Stated, notation: Reader) -> tuple[tuple[Tree, Tree], ...]:
    """Return the multipliers of constraints and bounds that the board has in terms of others."""
    gone, found = state.gone, state.swept.multipliers
    known = [gone[v.id] for m in found for v in m.variables if v.id in gone]
    return tuple((leaf(v.name()), notation(e)) for v, e in known if e is not None)

"""Problems as statements: an objective, variables, and constraints with what belongs to each beside it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import cvxpy as cp
import numpy as np
from cvxpy.transforms.indicator import indicator

from kernelopt.duality.equations import CONES, implied_constraints, kind_of
from kernelopt.duality.reading import LEQ, Reader
from kernelopt.duality.symbols import OBJECTIVE
from kernelopt.duality.tree import ZERO, Tree, enumerated, formula, leaf, listed
from kernelopt.duality.written import SUM, fresh, word
from kernelopt.language.penalty import weighted
from kernelopt.learner import half_square
from kernelopt.structure.structure import RiskTerm, Structure
from kernelopt.structure.trees import nodes, replaced

SIGNS = {
    "nonneg": (">= 0", r"\geq 0"), "nonpos": ("<= 0", r"\leq 0"),
    "PSD": (">> 0", r"\succeq 0"), "NSD": ("<< 0", r"\preceq 0"),
    "boolean": ("in {0, 1}", r"\in \{0, 1\}"), "integer": ("integer", r"\ \mathrm{integer}"),
    "diag": ("diagonal", r"\ \mathrm{diagonal}"),
}  # fmt: skip
Tags = dict[Any, tuple[Tree, ...]]  # by the id of a constraint, the name of a bound, ("risk", k)


@dataclass(frozen=True)
class Line:
    """A constraint as a chain of sides and signs, with the name of its multiplier or its label.

    Attributes
    ----------
    chain : tuple of Tree
        A constraint in one piece, or sides and signs in turn: (0, <=, y * alpha, <=, C).
    tag : tuple of Tree
        The names of the multipliers, empty where there are none.
    """

    chain: tuple[Tree, ...]
    tag: tuple[Tree, ...] = ()

    @property
    def whole(self) -> Tree:
        """The constraint in one piece."""
        return listed(self.chain, " ", " ")

    @property
    def named(self) -> Tree:
        """The tag in brackets, nothing where there is none."""
        return formula("(@0)", r"\left(@0\right)", listed(self.tag)) if self.tag else formula("", "")


@dataclass(frozen=True)
class Statement:
    """A problem as it is written.

    Attributes
    ----------
    maximize : bool
    variables : tuple of Tree
    value : Tree
    lines : tuple of Line
    """

    maximize: bool
    variables: tuple[Tree, ...]
    value: Tree
    lines: tuple[Line, ...]


def statement_of(
    maximize: bool,
    value: Tree,
    lines: list[Line],
    variables: Sequence[cp.Variable],
    notation: Reader,
    tags: Tags | None = None,
) -> Statement:
    """Return a statement of an objective and constraints, with the signs and bounds of its variables.

    `tags` has the multipliers of bounds under "x lower" and the like.
    """
    bounds = dict(implied_constraints(variables, notation.names, {}))
    found = {id(c): (tags or {}).get(name, ()) for name, c in bounds.items()}
    lines = lines + constraint_lines(list(bounds.values()), notation, found, "the bounds")
    names = {notation(v): v for v in variables if id(v) not in notation.substitutes}
    for i, line in enumerate(lines):  # y <= e with y >= 0 is 0 <= y <= e
        v = names.get(line.chain[0])
        if v is not None and kind_of(v) == "nonneg" and line.chain[1:2] == (LEQ,) and len(line.chain) == 3:
            lines[i] = Line((ZERO, LEQ, *line.chain), line.tag)
            del names[line.chain[0]]
    lines += sign_lines(list(names.values()), notation)
    over = enumerated([notation(v) for v in variables])
    return Statement(maximize, tuple(over), value, tuple(lines))


def tag_of(label: str | None) -> tuple[Tree, ...]:
    """Return a label as a tag: of d/d x the variable x, of a bias its name, of an atom's variable nothing."""
    by = re.fullmatch(r"(?:d/d |bias ?(?=\d*$))(.*)", label or "")
    if by is None:
        return (leaf(label, tex=word(label)),) if label else ()
    name = by[1] if label and label.startswith("d/d ") else f"b{by[1]}"
    return (leaf(name),) if name and not re.fullmatch(r"var\d+", name) else ()


def constraint_lines(
    constraints: Sequence[Any], notation: Reader, tags: Tags, place: str | None = None
) -> list[Line]:
    """Return constraints as lines; lower <= e and e <= upper become one.

    The arrays in them stand in the `place`, without one in that which the label of the constraint names.
    """
    lines: list[Line] = []
    for i, c in enumerate(constraints):
        unlabelled = "" if notation.symbols.dual else f"constraint {i}"
        notation.symbols.place = c.label or unlabelled if place is None else place
        line = Line(tuple(notation.constraint(c)), tags.get(id(c), tag_of(c.label)))
        both = joined_lines(lines[-1], line) if lines else None
        lines[len(lines) - bool(both) :] = [both or line]
    return lines


def joined_lines(first: Line, second: Line) -> Line | None:
    """Return lower <= e <= upper of e >= lower and e <= upper, None of other pairs."""
    chains = [line.chain if line.chain[1:2] == (LEQ,) else line.chain[::-1] for line in (first, second)]
    if any(len(line.chain) != 3 or line.chain[1].text == "==" for line in (first, second)):
        return None
    if first.chain[1] is LEQ is not second.chain[1]:
        chains.reverse()
    lower, upper = chains
    if lower[2] != upper[0]:
        return None
    tag = tuple(dict.fromkeys((*first.tag, *second.tag)))
    words = re.fullmatch(r"lower( \d+)?;upper( \d+)?", ";".join(sorted(part.text for part in tag)))
    return Line((lower[0], LEQ, lower[2], LEQ, upper[2]), tag_of(f"box{words[1] or ''}") if words else tag)


def sign_lines(variables: Sequence[cp.Variable], notation: Reader) -> list[Line]:
    """Return the signs and cones of variables as lines."""
    found = []
    for name, (text, tex) in SIGNS.items():
        have = (v for v in variables if kind_of(v) == name or (name not in CONES and v.attributes[name]))
        shown = enumerated([notation(v) for v in have])
        if shown:
            found.append(Line((formula(f"@0 {text}", f"@0 {tex}", listed(shown), binds=SUM),)))
    return found


@dataclass(frozen=True)
class ExplicitRisk:
    """A risk as its primal problem, which is written and not solved.

    Attributes
    ----------
    value : cvxpy expression
        1/2 f'K^+ f + loss(z).
    variables : list of cp.Variable
        f for each kernel, b, z, and those of the loss.
    fit : cvxpy constraint
        z == f + b.
    constraints : list of cvxpy constraints
        Those of the loss.
    """

    value: cp.Expression
    variables: list[cp.Variable]
    fit: Any
    constraints: list[Any]


def primal_of(structure: Structure, notation: Reader, tags: Tags) -> tuple[Statement, list[ExplicitRisk]]:
    """Return a problem as a statement in which every risk is its primal problem in f, b and z."""
    explicit, symbols = [], notation.symbols
    variables, bounds, fits = list(structure.variables), [], []
    for k, term in enumerate(structure.risks):
        suffix = str(k + 1) if len(structure.risks) > 1 else ""
        symbols.place = f"risk {suffix}" if suffix else "the risk"
        risk = explicit_risk(term, notation, suffix)
        explicit.append(risk)
        stand_in = value = notation(risk.value)
        if structure.constrained[k] or structure.objective is None:
            stand_in = leaf(f"risk{suffix}", tex=r"\mathrm{risk}" + f"_{suffix}" * bool(suffix))
        notation.substitutes[id(term.stand_in)] = stand_in
        variables += risk.variables
        alpha, *price = tags.get(("risk", id(term.node)), (leaf(f"alpha{suffix}"), leaf(f"lambda{suffix}")))
        if stand_in is not value:
            variables.append(term.stand_in)
            bound = risk.value <= term.stand_in
            bounds += constraint_lines([bound], notation, {id(bound): tuple(price)}, symbols.place)
        own = [risk.fit, *risk.constraints]
        fits += constraint_lines(own, notation, {id(risk.fit): (alpha,)}, symbols.place)
    problem = structure.lifted
    symbols.place = OBJECTIVE
    value = notation(problem.objective.args[0])
    lines = bounds + fits + constraint_lines(problem.constraints, notation, tags)
    statement = statement_of(structure.maximize, value, lines, variables, notation, tags)
    symbols.place, symbols.dual = "", True
    return statement, explicit


def explicit_risk(term: RiskTerm, notation: Reader, suffix: str) -> ExplicitRisk:
    """Return a risk as its primal problem: 1/2 f'K^+ f + loss(z) with z == f + b."""
    learner, symbols = term.learner, notation.symbols
    symbols.declare(learner.y, "y" + suffix, "labels" if (np.abs(learner.y) == 1).all() else "targets")
    C = getattr(term.loss, "C", None)
    if isinstance(C, np.ndarray):
        symbols.declare(C, "C" + suffix, "weights of the samples")

    def new(letter: str, *shape: int) -> cp.Variable:
        return cp.Variable(shape, name=fresh(letter + suffix, symbols.taken))

    n, several = learner.n, len(term.kernels) > 1
    functions = [new(f"f{m}" if several else "f", n) for m in range(len(term.kernels))]
    bias = [new("b", n)] if learner.has_intercept else []  # a textbook adds the number to f as it is
    z = new("z", n)
    loss = term.loss.expression(z, learner.y)
    slacks = [v for v in loss.variables() if v is not z]
    notation.names |= {v.id: fresh(v.name() + suffix, symbols.taken) for v in slacks}
    indicators = [node for node in nodes(loss) if isinstance(node, indicator)]
    loss = replaced(loss, {id(node): cp.Constant(0.0) for node in indicators})
    squares = []
    for f, K in zip(functions, term.kernels, strict=True):
        squares.append(cp.Variable())
        tree = Tree("inverse form", (notation(f), kernel(K, n, notation)))
        notation.substitutes[id(squares[-1])] = tree
    value = half_square(squares, [cp.sqrt(s) for s in squares], learner.norm) + loss
    fit = z == cp.sum([*functions, *bias])
    constraints = [c for node in indicators for c in node.args]
    return ExplicitRisk(value, [*functions, *bias, z, *slacks], fit, constraints)


def kernel(K: cp.Expression, n: int, notation: Reader) -> Tree:
    """Return the tree of a kernel; a constant one, or the constant part of one, is named as a Gram matrix."""
    for weights, grams in weighted(K) or []:
        if weights.is_constant() and len(grams) == 1:
            given = str(K.name()) if isinstance(K, cp.Constant) else ""
            notation.symbols.declare_stack(grams, given if given.isidentifier() else "")
    return notation(K[:n, :n] if K.shape[0] > n and isinstance(K, cp.Variable) else K)

"""Problems as statements: an objective, variables, and constraints with what belongs to each beside it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import cvxpy as cp
import numpy as np
from cvxpy.transforms.indicator import indicator

from kernelopt.duality.notation import Notation, is_identity
from kernelopt.duality.symbols import OBJECTIVE, dense
from kernelopt.duality.written import (
    PRODUCT,
    SUM,
    UNIT,
    Written,
    added,
    filled,
    inside,
    multiplied,
    name_of,
    number_of,
)
from kernelopt.language.penalty import weighted
from kernelopt.structure.structure import RiskTerm, Structure
from kernelopt.structure.trees import nodes

SIGNS = {
    "nonneg": (">= 0", r"\geq 0"), "nonpos": ("<= 0", r"\leq 0"),
    "pos": ("> 0", "> 0"), "neg": ("< 0", "< 0"),
    "PSD": (">> 0", r"\succeq 0"), "NSD": ("<< 0", r"\preceq 0"),
    "boolean": ("in {0, 1}", r"\in \{0, 1\}"), "integer": ("integer", r"\ \mathrm{integer}"),
    "diag": ("diagonal", r"\ \mathrm{diagonal}"),
}  # fmt: skip
Tags = dict[Any, tuple[Written, ...]]  # by the position of a constraint, or by the name of a bound
HALF = number_of(0.5)


@dataclass(frozen=True)
class Line:
    """A constraint as a chain of sides and signs, with the name of its multiplier or its label.

    Attributes
    ----------
    chain : tuple of Written
        A constraint in one piece, or sides and signs in turn: (0, <=, y * alpha, <=, C).
    tag : tuple of Written
        The names of the multipliers, empty where there are none.
    """

    chain: tuple[Written, ...]
    tag: tuple[Written, ...] = ()

    @property
    def whole(self) -> Written:
        """The constraint in one piece."""
        text, tex = (
            " ".join(getattr(part, side) for part in self.chain) for side in ("signed_text", "signed_tex")
        )
        return Written(text, tex, SUM)


@dataclass(frozen=True)
class Statement:
    """A problem as it is written.

    Attributes
    ----------
    maximize : bool
    variables : tuple of Written
    value : Written
    lines : tuple of Line
    """

    maximize: bool
    variables: tuple[Written, ...]
    value: Written
    lines: tuple[Line, ...]


@dataclass
class ExplicitRisk:
    """A risk as its primal problem in f, b and z, as it is written.

    Attributes
    ----------
    value : Written
        1/2 f'K^+ f + loss(z).
    square, loss : Written
    functions : list of Written
        f, one for each kernel.
    kernels : list of Written
    fit : tuple of Written
        z == f + b.
    alpha : str
    z : cp.Variable
    bias : Written or None
    norm : float
        The block norm of the risk.
    variables : list of Written
    lines : list of Line
        The constraints and signs of the loss.
    """

    value: Written
    square: Written
    loss: Written
    functions: list[Written]
    kernels: list[Written]
    fit: tuple[Written, ...]
    alpha: str
    z: Written
    bias: Written | None
    variables: list[Written]
    norm: float = 2.0
    lines: list[Line] = field(default_factory=list)


def statement_of(problem: cp.Problem, notation: Notation, place: str = "") -> Statement:
    """Return a dual as a statement; `place` is DUAL for one by hand."""
    notation.symbols.place = place
    value = notation(problem.objective.args[0])
    lines = constraint_lines(problem.constraints, notation, {})
    lines += sign_lines(problem.variables(), notation) + bound_lines(problem.variables(), notation, {})
    names = tuple(notation(v) for v in problem.variables())
    return Statement(isinstance(problem.objective, cp.Maximize), names, value, tuple(lines))


def primal_of(structure: Structure, notation: Notation, tags: Tags) -> tuple[Statement, list[ExplicitRisk]]:
    """Return a problem as a statement in which every risk is its primal problem in f, b and z."""
    explicit, symbols = [], notation.symbols
    lines: list[Line] = []
    for k, term in enumerate(structure.risks):
        suffix = str(k + 1) if len(structure.risks) > 1 else ""
        found = explicit_risk(term, notation, suffix)
        explicit.append(found)
        lines.append(Line(found.fit, (name_of(found.alpha),)))
        lines += found.lines
        if structure.constrained[k] or structure.objective.coefficients is None:
            stand_in = Written(f"risk{suffix}", rf"\mathrm{{risk}}{'_' if suffix else ''}{suffix}")
            notation.substitutes[id(term.stand_in)] = stand_in
            lines.insert(
                0, Line((found.value, Written("<=", r"\leq"), stand_in), (name_of(f"lambda{suffix}"),))
            )
            found.variables.append(stand_in)
        else:
            notation.substitutes[id(term.stand_in)] = found.value
    problem = structure.lifted
    symbols.place = OBJECTIVE
    value = notation(problem.objective.args[0])
    lines += constraint_lines(problem.constraints, notation, tags, True)
    lines += sign_lines(list(structure.variables), notation)
    lines += bound_lines(list(structure.variables), notation, tags)
    names = [notation(v) for v in structure.variables] + [v for found in explicit for v in found.variables]
    return Statement(structure.maximize, tuple(names), value, tuple(lines)), explicit


def explicit_risk(term: RiskTerm, notation: Notation, suffix: str) -> ExplicitRisk:
    """Return a risk as its primal problem: 1/2 f'K^+ f + loss(z) with z == f + b."""
    learner, symbols = term.learner, notation.symbols
    several = len(term.kernels) > 1
    taken = symbols.taken

    def fresh(letter: str) -> Written:
        name = letter + suffix
        while name in taken:
            name += "'"
        taken.add(name)
        return name_of(name)

    symbols.place = f"risk {suffix}" if suffix else "the risk"
    symbols.declare(learner.y, "y" + suffix, "labels" if (np.abs(learner.y) == 1).all() else "targets")
    C = getattr(term.loss, "C", None)
    if isinstance(C, np.ndarray):
        symbols.declare(C, "C" + suffix, "weights of the samples")
    functions = [fresh(f"f{m}" if several else "f") for m in range(len(term.kernels))]
    kernels = [kernel_written(K, learner.n, notation) for K in term.kernels]
    squares = [filled("@0' @1^+ @0", r"@0^\top @1^{+} @0", f, inside(K, UNIT), binds=PRODUCT)
               for f, K in zip(functions, kernels, strict=True)]  # fmt: skip
    square = multiplied(HALF, norm_square(squares, learner.norm))
    z = cp.Variable(learner.n, name=fresh("z").text)
    summed = term.loss.expression(z, learner.y)
    lines, loss = loss_lines(summed, notation)
    slacks = [v for v in summed.variables() if v is not z]
    for slack in slacks:
        notation.names[slack.id] = fresh(slack.name()).text
    if slacks:
        lines, loss = loss_lines(summed, notation)
        lines += sign_lines(slacks, notation)
    bias = fresh("b") if learner.bias is not None else None
    right = added([*functions, bias] if bias else functions)
    fit = (notation(z), Written("==", "="), right)
    variables = [*functions, *([bias] if bias else []), notation(z), *map(notation, slacks)]
    value = added([square, loss])
    return ExplicitRisk(
        value, square, loss, functions, kernels, fit, f"alpha{suffix}", notation(z), bias, variables,
        learner.norm, lines,
    )  # fmt: skip


def kernel_written(K: cp.Expression, n: int, notation: Notation) -> Written:
    """Return a kernel as written; a constant one, and the constant part of a sum, is named as Gram matrices are."""
    for weights, grams in weighted(K) or []:
        if weights.is_constant() and len(grams) == 1 and not is_identity(grams):
            given = str(K.name()) if isinstance(K, cp.Constant) else ""
            letter = notation.symbols.declare_stack(grams, given if given.isidentifier() else "")
            if K.is_constant():
                notation.symbols.stack(grams)
                return notation.symbols.member(letter)
    return notation(K[:n, :n] if is_part(K, n) else K)


def is_part(K: cp.Expression, n: int) -> bool:
    """Whether a kernel is a matrix of which only the first n points are labelled, and no combination."""
    return bool(K.shape[0] > n and type(K).__name__ == "Variable")


def norm_square(squares: list[Written], norm: float) -> Written:
    """Return |(|f_m|)_m|^2 of the squares |f_m|^2, for the block norm of a risk."""
    if len(squares) == 1:
        return squares[0]
    if norm == 2:
        return added(squares)
    texts, texs = ([getattr(s, side) for s in squares] for side in ("text", "tex"))
    if np.isinf(norm):
        return Written(f"max({', '.join(texts)})", rf"\max\left({', '.join(texs)}\right)")
    r = number_of(norm)
    text = ", ".join(f"sqrt({t})" for t in texts)
    tex = ", ".join(rf"\sqrt{{{t}}}" for t in texs)
    return Written(f"|({text})|_{r.text}^2", rf"\left\|\left({tex}\right)\right\|_{{{r.tex}}}^{{2}}")


def loss_lines(summed: cp.Expression, notation: Notation) -> tuple[list[Line], Written]:
    """Return a summed loss with its indicators taken out as constraints."""
    lines: list[Line] = []
    for node in nodes(summed):
        if isinstance(node, indicator):
            notation.substitutes[id(node)] = Written("0", "0")
            lines += [Line(tuple(notation.constraint(c)), tag_of(c.label)) for c in node.args]
    return lines, notation(summed)


def tag_of(label: str | None) -> tuple[Written, ...]:
    """Return a label as a tag."""
    return (label_written(label),) if label else ()


def label_written(label: str) -> Written:
    """Return a label: that of a gradient, such as d/d theta, is the name of the variable."""
    if label.startswith("d/d "):
        return name_of(label.removeprefix("d/d "))
    known = {"bias": "b"}
    if label in known:
        return name_of(known[label])
    return Written(label, name_of(f"x[{label}]").tex.removeprefix("x_{").removesuffix("}"))


def constraint_lines(
    constraints: list[Any], notation: Notation, tags: Tags, places: bool = False
) -> list[Line]:
    """Return constraints as lines; lower <= e and e <= upper become one.

    `places` says that the arrays in them stand in the place that the label of the constraint names.
    """
    lines: list[Line] = []
    for i, constraint in enumerate(constraints):
        if places:
            notation.symbols.place = constraint.label or f"constraint {i}"
        chain = tuple(notation.constraint(constraint))
        line = Line(chain, tags.get(i, tag_of(constraint.label)))
        joined = joined_lines(lines[-1], line) if lines else None
        if joined is not None:
            lines[-1] = joined
        else:
            lines.append(line)
    return lines


def joined_lines(first: Line, second: Line) -> Line | None:
    """Return lower <= e <= upper of e >= lower and e <= upper, None of other pairs."""
    if len(first.chain) != 3 or len(second.chain) != 3:
        return None
    if first.chain[1].text == "<=" and second.chain[1].text == ">=":
        first, second = second, first
    if second.chain[1].text != "<=":
        return None
    left, sign, right = first.chain
    lower, middle = (left, right) if sign.text == "<=" else (right, left)
    if sign.text == "==" or middle.signed_text != second.chain[0].signed_text:
        return None
    labels = {part.text for part in (*first.tag, *second.tag)}
    box = labels <= {"lower", "upper"}
    tag = tag_of("box") if box and labels else (*first.tag, *second.tag)
    return Line((lower, Written("<=", r"\leq"), *second.chain), tag)


def sign_lines(variables: list[cp.Variable], notation: Notation) -> list[Line]:
    """Return the signs, cones and bounds of variables as lines."""
    lines = []
    for name, (text, tex) in SIGNS.items():
        shown = [notation(v) for v in variables if v.attributes[name] is True]
        if shown:
            joined = Written(", ".join(v.text for v in shown), ", ".join(v.tex for v in shown))
            lines.append(Line((filled(f"@0 {text}", f"@0 {tex}", joined, binds=SUM),)))
    return lines


def bound_lines(variables: list[cp.Variable], notation: Notation, tags: Tags) -> list[Line]:
    """Return the bounds of variables as lines; `tags` has their multipliers under "name lower"."""
    lines, sign = [], Written("<=", r"\leq")
    for v in variables:
        if notation.symbols.place:
            notation.symbols.place = f"the bounds of {notation(v).text}"
        bounds = v.attributes.get("bounds") or ()
        chain: list[Written] = [notation(v)]
        tag: tuple[Written, ...] = ()
        for side, value in zip(("lower", "upper"), bounds, strict=False):
            limit = value if isinstance(value, cp.Expression) else cp.Constant(dense(value))
            if limit.is_constant() and np.isinf(limit.value).all():
                continue
            chain = [notation(limit), sign, *chain] if side == "lower" else [*chain, sign, notation(limit)]
            tag += tags.get(f"{v.name()} {side}", ())
        if len(chain) > 1:
            lines.append(Line(tuple(chain), tag))
    return lines

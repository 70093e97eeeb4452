"""A problem as a statement in which every risk is its primal problem in f, b and z."""

from __future__ import annotations

from dataclasses import dataclass, field

import cvxpy as cp
import numpy as np
from cvxpy.transforms.indicator import indicator

from kernelopt.duality.notation import LEQ, Notation
from kernelopt.duality.reading import is_identity
from kernelopt.duality.statement import (
    Line,
    Statement,
    Tags,
    bound_lines,
    constraint_lines,
    sign_lines,
    tag_of,
)
from kernelopt.duality.symbols import OBJECTIVE
from kernelopt.duality.tree import ZERO
from kernelopt.duality.written import (
    PRODUCT,
    UNIT,
    Written,
    added,
    filled,
    index_of,
    inside,
    multiplied,
    name_of,
    number_of,
)
from kernelopt.language.penalty import weighted
from kernelopt.structure.structure import RiskTerm, Structure
from kernelopt.structure.trees import nodes

HALF = number_of(0.5)


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
    alpha : Written
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
    alpha: Written
    z: Written
    bias: Written | None
    variables: list[Written]
    norm: float = 2.0
    lines: list[Line] = field(default_factory=list)


def primal_of(structure: Structure, notation: Notation, tags: Tags) -> tuple[Statement, list[ExplicitRisk]]:
    """Return a problem as a statement in which every risk is its primal problem in f, b and z."""
    explicit, symbols = [], notation.symbols
    lines: list[Line] = []
    for k, term in enumerate(structure.risks):
        suffix = str(k + 1) if len(structure.risks) > 1 else ""
        alpha, *price = tags.get(("risk", k), (name_of(f"alpha{suffix}"), name_of(f"lambda{suffix}")))
        found = explicit_risk(term, notation, suffix, alpha)
        explicit.append(found)
        lines.append(Line(found.fit, (alpha,)))
        lines += found.lines
        if structure.constrained[k] or structure.objective.coefficients is None:
            stand_in = Written(f"risk{suffix}", rf"\mathrm{{risk}}{'_' if suffix else ''}{suffix}")
            notation.substitute(term.stand_in, stand_in)
            lines.insert(0, Line((found.value, LEQ, stand_in), tuple(price)))
            found.variables.append(stand_in)
        else:
            notation.substitute(term.stand_in, found.value)
    problem = structure.lifted
    symbols.place = OBJECTIVE
    value = notation(problem.objective.args[0])
    lines += constraint_lines(problem.constraints, notation, tags, True)
    lines += sign_lines(list(structure.variables), notation)
    lines += bound_lines(list(structure.variables), notation, tags)
    symbols.place = ""
    names = [notation(v) for v in structure.variables] + [v for found in explicit for v in found.variables]
    return Statement(structure.maximize, tuple(names), value, tuple(lines)), explicit


def explicit_risk(term: RiskTerm, notation: Notation, suffix: str, alpha: Written) -> ExplicitRisk:
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
        notation.read.names[slack.id] = fresh(slack.name()).text
    if slacks:
        lines, loss = loss_lines(summed, notation)
        lines += sign_lines(slacks, notation)
    bias = fresh("b") if learner.bias is not None else None
    right = added([*functions, bias] if bias else functions)
    fit = (notation(z), Written("==", "="), right)
    variables = [*functions, *([bias] if bias else []), notation(z), *map(notation, slacks)]
    value = added([square, loss])
    return ExplicitRisk(
        value, square, loss, functions, kernels, fit, alpha, notation(z), bias, variables,
        learner.norm, lines,
    )  # fmt: skip


def kernel_written(K: cp.Expression, n: int, notation: Notation) -> Written:
    """Return a kernel as written; a constant one, or the constant part of one, is named as a Gram matrix."""
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
    r = index_of(norm)
    text = ", ".join(f"sqrt({t})" for t in texts)
    tex = ", ".join(rf"\sqrt{{{t}}}" for t in texs)
    return Written(f"|({text})|_{r.text}^2", rf"\left\|\left({tex}\right)\right\|_{{{r.tex}}}^{{2}}")


def loss_lines(summed: cp.Expression, notation: Notation) -> tuple[list[Line], Written]:
    """Return a summed loss with its indicators taken out as constraints."""
    lines: list[Line] = []
    for node in nodes(summed):
        if isinstance(node, indicator):
            notation.read.substitutes[id(node)] = ZERO
            lines += [Line(tuple(notation.constraint(c)), tag_of(c.label)) for c in node.args]
    return lines, notation(summed)

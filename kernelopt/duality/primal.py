"""A problem as a statement in which every risk is its primal problem in f, b and z."""

from __future__ import annotations

from dataclasses import dataclass

import cvxpy as cp
import numpy as np
from cvxpy.transforms.indicator import indicator

from kernelopt.duality.notation import EQUAL, LEQ, Notation
from kernelopt.duality.reading import is_identity
from kernelopt.duality.rendering import render
from kernelopt.duality.statement import (
    Line,
    Statement,
    Tags,
    bound_lines,
    constraint_lines,
    sign_lines,
)
from kernelopt.duality.symbols import OBJECTIVE
from kernelopt.duality.tree import Tree, added, leaf, normed, raised
from kernelopt.duality.written import Written, name_of
from kernelopt.language.penalty import weighted
from kernelopt.structure.structure import RiskTerm, Structure
from kernelopt.structure.trees import nodes, replaced


@dataclass
class ExplicitRisk:
    """A risk as its primal problem in f, b and z, as it is written.

    Attributes
    ----------
    value : Written
        1/2 f'K^+ f + loss(z).
    functions : list of Written
        f, one for each kernel.
    fit : tuple of Written
        z == f + b.
    z : Written
    bias : Written or None
    slacks : list of Written
        The other variables of the loss.
    lines : list of Line
        The constraints and signs of the loss.
    """

    value: Written
    functions: list[Written]
    fit: tuple[Written, ...]
    z: Written
    bias: Written | None
    slacks: list[Written]
    lines: list[Line]


def primal_of(structure: Structure, notation: Notation, tags: Tags) -> tuple[Statement, list[ExplicitRisk]]:
    """Return a problem as a statement in which every risk is its primal problem in f, b and z."""
    explicit, names = [], [notation(v) for v in structure.variables]
    lines: list[Line] = []
    for k, term in enumerate(structure.risks):
        suffix = str(k + 1) if len(structure.risks) > 1 else ""
        alpha, *price = tags.get(("risk", k), (name_of(f"alpha{suffix}"), name_of(f"lambda{suffix}")))
        found = explicit_risk(term, notation, suffix)
        explicit.append(found)
        bias = [] if found.bias is None else [found.bias]
        names += [*found.functions, *bias, found.z, *found.slacks]
        lines += [Line(found.fit, (alpha,)), *found.lines]
        stand_in = found.value
        if structure.constrained[k] or structure.objective.coefficients is None:
            stand_in = Written(f"risk{suffix}", r"\mathrm{risk}" + f"_{suffix}" * bool(suffix))
            lines.insert(0, Line((found.value, LEQ, stand_in), tuple(price)))
            names.append(stand_in)
        notation.substitute(term.stand_in, stand_in)
    problem, variables = structure.lifted, structure.variables
    notation.symbols.place = OBJECTIVE
    value = notation(problem.objective.args[0])
    lines += constraint_lines(problem.constraints, notation, tags, True)
    lines += sign_lines(variables, notation) + bound_lines(variables, notation, tags)
    notation.symbols.place = ""
    return Statement(structure.maximize, tuple(names), value, tuple(lines)), explicit


def explicit_risk(term: RiskTerm, notation: Notation, suffix: str) -> ExplicitRisk:
    """Return a risk as its primal problem: 1/2 f'K^+ f + loss(z) with z == f + b."""
    learner, symbols = term.learner, notation.symbols

    symbols.place = f"risk {suffix}" if suffix else "the risk"
    symbols.declare(learner.y, "y" + suffix, "labels" if (np.abs(learner.y) == 1).all() else "targets")
    C = getattr(term.loss, "C", None)
    if isinstance(C, np.ndarray):
        symbols.declare(C, "C" + suffix, "weights of the samples")
    letters = [f"f{m}" for m in range(len(term.kernels))] if len(term.kernels) > 1 else ["f"]
    functions = [leaf(name_of(symbols.fresh(letter + suffix))) for letter in letters]
    kernels = [kernel_read(K, learner.n, notation) for K in term.kernels]
    z = cp.Variable(learner.n, name=symbols.fresh("z" + suffix))
    summed = term.loss.expression(z, learner.y)
    slacks = [v for v in summed.variables() if v is not z]
    notation.read.names |= {v.id: symbols.fresh(v.name() + suffix) for v in slacks}
    indicators = [node for node in nodes(summed) if isinstance(node, indicator)]  # constraints
    lines = constraint_lines([c for node in indicators for c in node.args], notation, {})
    summed = replaced(summed, {id(node): cp.Constant(0.0) for node in indicators})
    squares = [Tree("inverse form", (f, K)) for f, K in zip(functions, kernels, strict=True)]
    value = added([length_square(squares, learner.norm).times(0.5), notation.read(summed)])
    bias = [leaf(name_of(symbols.fresh("b" + suffix)))] if learner.bias is not None else []
    fit = (notation(z), EQUAL, render(added([*functions, *bias])))
    return ExplicitRisk(
        render(value), list(map(render, functions)), fit, notation(z), render(bias[0]) if bias else None,
        list(map(notation, slacks)), lines + sign_lines(slacks, notation),
    )  # fmt: skip


def kernel_read(K: cp.Expression, n: int, notation: Notation) -> Tree:
    """Return the tree of a kernel; a constant one, or the constant part of one, is named as a Gram matrix."""
    for weights, grams in weighted(K) or []:
        if weights.is_constant() and len(grams) == 1 and not is_identity(grams):
            given = str(K.name()) if isinstance(K, cp.Constant) else ""
            notation.symbols.declare_stack(grams, given if given.isidentifier() else "")
            if K.is_constant():
                return leaf(notation.symbols.stack(grams))
    return notation.read(K[:n, :n] if K.shape[0] > n and isinstance(K, cp.Variable) else K)


def length_square(squares: list[Tree], norm: float) -> Tree:
    """Return |(|f_m|)_m|^2 of the squares |f_m|^2, for the block norm of a risk."""
    if len(squares) == 1 or norm == 2:
        return added(squares)
    if np.isinf(norm):
        return Tree("max", tuple(squares))
    return raised(normed(Tree("row", tuple(raised(s, 0.5) for s in squares)), norm), 2.0)

"""A problem as a statement in which every risk is its primal problem in f, b and z."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import cvxpy as cp
import numpy as np
from cvxpy.transforms.indicator import indicator

from kernelopt.duality.reading import Reader, is_identity
from kernelopt.duality.statement import Statement, Tags, constraint_lines, statement_of
from kernelopt.duality.symbols import OBJECTIVE
from kernelopt.duality.tree import Tree, leaf
from kernelopt.duality.written import fresh
from kernelopt.language.penalty import weighted
from kernelopt.structure.structure import RiskTerm, Structure
from kernelopt.structure.trees import nodes, replaced


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
        if structure.constrained[k] or structure.objective.coefficients is None:
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
    bias = [new("b", n)] if learner.bias is not None else []  # a textbook adds the number to f as it is
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
    value = length_square(squares, learner.norm) / 2 + loss
    fit = z == cp.sum([*functions, *bias])
    constraints = [c for node in indicators for c in node.args]
    return ExplicitRisk(value, [*functions, *bias, z, *slacks], fit, constraints)


def length_square(squares: list[cp.Variable], norm: float) -> cp.Expression:
    """Return |(|f_m|)_m|^2 of the squares |f_m|^2, for the block norm of a risk."""
    if len(squares) == 1 or norm == 2:
        return cp.sum(squares)
    if np.isinf(norm):
        return cp.maximum(*squares)
    return cp.square(cp.norm(cp.hstack([cp.sqrt(s) for s in squares]), norm))


def kernel(K: cp.Expression, n: int, notation: Reader) -> Tree:
    """Return the tree of a kernel; a constant one, or the constant part of one, is named as a Gram matrix."""
    for weights, grams in weighted(K) or []:
        if weights.is_constant() and len(grams) == 1 and not is_identity(grams):
            given = str(K.name()) if isinstance(K, cp.Constant) else ""
            notation.symbols.declare_stack(grams, given if given.isidentifier() else "")
    return notation(K[:n, :n] if K.shape[0] > n and isinstance(K, cp.Variable) else K)

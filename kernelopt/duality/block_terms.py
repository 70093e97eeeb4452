"""The terms of a Lagrangian that depend on a block of variables, and which conjugate their minimum is."""

from __future__ import annotations

from typing import Any

import cvxpy as cp
import numpy as np
from cvxpy.atoms.affine.promote import Promote
from cvxpy.constraints import Inequality

from kernelopt.duality.dual import Dual
from kernelopt.duality.forms import Form, Multiplier
from kernelopt.duality.functions import unsigned
from kernelopt.duality.minimum import LINEAR, SQUARED
from kernelopt.duality.model import Row
from kernelopt.duality.notation import Notation
from kernelopt.duality.products import constant_entry
from kernelopt.duality.written import (
    PRODUCT,
    UNIT,
    Written,
    added,
    filled,
    inside,
    multiplied,
    name_of,
    number_of,
)
from kernelopt.language.terms import terms
from kernelopt.structure.structure import RiskTerm
from kernelopt.structure.trees import number, replaced, summands

NESTED = "the square of a norm"
POWERS = ("Power", "PowerApprox", "power")
CONVOLVED = "the conjugate of a sum is the infimal convolution of the conjugates"
NORMS = ("Pnorm", "PnormApprox", "norm1", "norm_inf", "abs")
SQUARES = ("quad_over_lin", "QuadForm", "MatrixFrac")
CONJUGATES = (  # the atoms of a function, and what its conjugate is
    (("Distance",), "the conjugate of the fidelity"),
    (NORMS, "the conjugate of a norm is the indicator of the ball of the dual norm"),
    (SQUARES, "the conjugate of a square is a square"),
    (("maximum", "max"), "the conjugate of a maximum is the indicator of the convex weights"),
    (POWERS, "the conjugate of a power is a power"),
)
OTHERS = "a conjugate, by the cones of its atoms"


def objective_parts(
    dual: Dual, block: list[cp.Variable], notation: Notation
) -> tuple[list[Written], set[str]]:
    """Return the terms of the objective that are not affine in a block, and the names of their atoms."""
    structure = dual.read.structure
    zeros: dict[int, Any] = {id(term.stand_in): cp.Constant(0.0) for term in structure.risks}
    objective = structure.sign * unsigned(replaced(structure.lifted.objective.args[0], zeros))
    found, kinds = [], set()
    for factor, term in summands(objective):
        if depends(term, block) and not term.is_affine():
            found.append(multiplied(number_of(number(factor)), notation(term)))
            kinds |= kinds_of(term)
    return found, kinds


def constraint_parts(
    dual: Dual, block: list[cp.Variable], notation: Notation
) -> tuple[list[Written], list[list[Written]], set[str]]:
    """Return the terms <multiplier, constraint> that are not affine in a block, with what they ask for.

    The second list has the conditions on multipliers that were eliminated since they are the least that the
    condition allows.
    """
    structure, found, conditions, kinds = dual.read.structure, [], [], set()
    for i, constraint in enumerate(structure.lifted.constraints):
        if not isinstance(constraint, Inequality) or constraint.expr.is_affine():
            continue
        terms_of = [
            (factor, term)
            for factor, term in summands(unsigned(constraint.expr))
            if depends(term, block) and not term.is_affine()
        ]
        names = [m for m in dual.read.model.multipliers if m.of == f"the constraint {constraint.label or i}"]
        for m in names if terms_of else []:
            name = name_of(m.variable.name())
            factors = [number_of(number(factor)) for factor, _ in terms_of]
            written = [notation(term) for _, term in terms_of]
            if len(written) == 1:
                found.append(multiplied(factors[0], multiplied(name, written[0])))
            else:
                found.append(multiplied(name, added(list(map(multiplied, factors, written)))))
            if m.definition is not None:
                conditions.append([notation(m.expression), Written("<=", r"\leq"), name])
        kinds |= {kind for _, term in terms_of for kind in kinds_of(term)}
    return found, conditions, kinds


def linear_parts(row: Row, notation: Notation) -> list[Written]:
    """Return <slope, variable> for the costs and the constraints that are linear in a variable."""
    own = [
        t for t in row.form.terms if not t.multiplier.shift and t.multiplier.of.startswith("the constraint ")
    ]
    form = Form(row.form.size, own, list(row.form.given))
    if form.is_zero:
        return []
    expression = form.expression(row.variable.shape, row.symmetric)
    slope, variable = notation(expression), notation(row.variable)
    if row.variable.ndim == 0:
        return [multiplied(slope, variable)]
    if isinstance(expression, Promote) or constant_entry(expression) is not None:
        return [multiplied(slope, filled("sum(@0)", r"\mathbf{1}^\top @0", variable))]
    if row.variable.ndim == 2:
        return [filled("<@0, @1>", r"\langle @0, @1\rangle", slope, variable)]
    body = inside(slope._replace(minus=False), UNIT)
    return [Written(f"{body.text}'{variable.text}", rf"{body.tex}^\top {variable.tex}", PRODUCT, slope.minus)]


def risk_parts(dual: Dual, variable: cp.Variable, notation: Notation) -> list[Written]:
    """Return w/2 alpha'K alpha for the kernels that depend on a variable."""
    found = []
    for term, multiplier, weight in dual.read.alphas:
        factor = number_of(float(weight) / 2) if isinstance(weight, int | float) else number_of(0.5)
        alpha = name_of(multiplier.variable.name())
        for K in term.kernels:
            if not any(v is variable for v in K.variables()):
                continue
            forms = form_written(K, term, variable, alpha, notation)
            if isinstance(weight, cp.Expression):
                forms = multiplied(notation(weight), forms)
            if isinstance(weight, Multiplier):
                forms = Written(f"{forms.text} / {weight.variable.name()}", forms.tex, PRODUCT)
            found.append(multiplied(factor, forms))
    return found


def form_written(
    K: Any, term: RiskTerm, variable: cp.Variable, alpha: Written, notation: Notation
) -> Written:
    """Return theta'(alpha'K_m alpha)_m for a combination, else alpha'K alpha."""
    pieces = [(w, grams) for w, grams in terms(K) or [] if any(v is variable for v in w.variables())]
    if len(pieces) != 1:
        inner = notation(
            K[: term.learner.n, : term.learner.n] if not terms(K) and K.shape[0] > term.learner.n else K
        )
        return filled("@0' @1 @0", r"@0^\top @1 @0", alpha, inside(inner, UNIT), binds=PRODUCT)
    weights, grams = pieces[0]
    if len(grams) == 1 and np.array_equal(grams.gram(0), np.eye(grams.n_points)):
        return multiplied(notation(weights), filled("|@0|^2", r"\|@0\|_{2}^{2}", alpha))
    member = notation.symbols.member(notation.symbols.stack(grams))
    if len(grams) == 1:
        form = filled("@0' @1 @0", r"@0^\top @1 @0", alpha, member, binds=PRODUCT)
        return multiplied(notation(weights), form)
    w = inside(notation(weights), UNIT)
    tex = r"@0^\top \left(@1^\top @2 @1\right)_m"
    return filled("@0'(@1' @2 @1)_m", tex, w, alpha, member, binds=PRODUCT)


def kinds_of(term: Any) -> set[str]:
    """Return the names of the atoms of a term, and NESTED for the square of a norm."""
    found = {type(node).__name__ for node in all_nodes(term)}
    squares = [node for node in all_nodes(term) if type(node).__name__ in ("quad_over_lin", *POWERS)]
    nested = any(type(inner).__name__ in NORMS for node in squares for inner in all_nodes(node)[1:])
    return found | ({NESTED} if nested else set())


def conjugates(kinds: set[str]) -> str:
    """Return in words what the conjugate of a function with atoms of some kinds is."""
    if not kinds:
        return LINEAR
    if NESTED in kinds:
        return SQUARED
    if kinds & set(NORMS) and kinds & set(SQUARES):
        return CONVOLVED
    return next((words for names, words in CONJUGATES if kinds & set(names)), OTHERS)


def depends(expression: Any, block: list[cp.Variable]) -> bool:
    """Whether an expression has a variable of a block."""
    return any(v is w for v in expression.variables() for w in block)


def all_nodes(root: Any) -> list[Any]:
    """Return all nodes of an expression."""
    return [root, *(node for arg in root.args for node in all_nodes(arg))]

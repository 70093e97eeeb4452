"""The minimum of a Lagrangian over each block of variables, with the conjugate that it is."""

from __future__ import annotations

from typing import Any

import cvxpy as cp
import numpy as np
from cvxpy.constraints import Inequality

from kernelopt.duality.dual import Dual
from kernelopt.duality.forms import Form, Multiplier
from kernelopt.duality.minimum import LINEAR, SQUARED, Minimum
from kernelopt.duality.model import Model, Row
from kernelopt.duality.notation import Notation
from kernelopt.duality.statement import SIGNS
from kernelopt.duality.written import (
    PRODUCT,
    UNIT,
    ZERO,
    Written,
    added,
    filled,
    inside,
    multiplied,
    name_of,
    negated,
    number_of,
)
from kernelopt.language.terms import terms
from kernelopt.structure.structure import RiskTerm
from kernelopt.structure.trees import number, replaced, summands

NORMS = ("Pnorm", "PnormApprox", "norm1", "norm_inf", "abs")
SQUARES = ("quad_over_lin", "QuadForm", "MatrixFrac")
CONJUGATES = (  # the atoms of a function, and what its conjugate is
    (("Distance",), "the conjugate of the fidelity"),
    (NORMS, "the conjugate of a norm is the indicator of the ball of the dual norm"),
    (SQUARES, "the conjugate of a square is a square"),
    (("maximum", "max"), "the conjugate of a maximum is the indicator of the convex weights"),
)
OTHERS = "a conjugate, by the cones of its atoms"
OF_RISKS = ("the positive semidefinite kernel", "the weights of the kernels", "the block norm of the risk")
RISK_PIECES = ("loss", "fixed kernels", "fixed kernel")  # labels of the parts that the risks have


def variable_minima(dual: Dual, raw: Model, notation: Notation) -> list[Minimum]:
    """Return the minimum over every variable of the problem; those in a nonlinear objective are one block.

    `raw` is the model before multipliers are eliminated.
    """
    variables = dual.read.structure.variables
    curved = [v for v in variables if objective_parts(dual, [v], notation)[0]]
    blocks = [curved] if curved else []
    blocks += [[v] for v in variables if not any(v is w for w in curved)]
    return [block_minimum(dual, raw, block, block is curved, notation) for block in blocks]


def block_minimum(
    dual: Dual, raw: Model, block: list[cp.Variable], curved: bool, notation: Notation
) -> Minimum:
    """Return the minimum over a block of variables."""
    parts, kinds = objective_parts(dual, block, notation)
    linear = [part for v in block for part in linear_parts(raw.rows[v.id], notation)]
    bounded, conditions, more = constraint_parts(dual, block, notation)
    risks = [negated(part) for v in block for part in risk_parts(dual, v, notation)]
    own = auxiliary(dual, raw, block)
    conditions += [
        constraint
        for key in dual.constraints
        if key.variables() and (key.label in {f"d/d {v.name()}" for v in block} or own & names_of(key))
        for constraint in [notation.constraint(key)]
    ]
    value = objective_value(dual, notation) if curved else ZERO
    if curved and own and not conditions_fix(own, dual):
        listed = [name_of(name) for name in sorted(own)]
        over = Written(", ".join(n.text for n in listed), ", ".join(n.tex for n in listed))
        value = filled("max over @0 of @1", r"\max_{@0}\ @1", over, value)
    function = added([*parts, *bounded, *linear, *risks])
    return Minimum(over_of(block, notation), function, value, conditions, conjugates(kinds | more))


def conjugates(kinds: set[str]) -> str:
    """Return in words what the conjugate of a function with atoms of some kinds is."""
    if not kinds:
        return LINEAR
    if kinds & set(NORMS) and kinds & set(SQUARES):
        return SQUARED
    return next((words for names, words in CONJUGATES if kinds & set(names)), OTHERS)


def conditions_fix(own: set[str], dual: Dual) -> bool:
    """Whether none of some multipliers is a variable of the dual."""
    return not own & {v.name() for v in dual.variables()}


def over_of(block: list[cp.Variable], notation: Notation) -> Written:
    """Return the variables of a block with their signs."""
    texts = []
    for v in block:
        sign = next((s for name, s in SIGNS.items() if v.attributes[name] is True), ("", ""))
        texts.append(filled(f"@0 {sign[0]}".rstrip(), f"@0 {sign[1]}".rstrip(), notation(v)))
    return Written(", ".join(t.text for t in texts), ", ".join(t.tex for t in texts))


def names_of(constraint: Any) -> set[str]:
    """Return the names of the variables of a constraint."""
    return {v.name() for v in constraint.variables()}


def auxiliary(dual: Dual, raw: Model, block: list[cp.Variable]) -> set[str]:
    """Return the names of the dual's variables that belong to the atoms and fidelities of a block."""
    ids, found = {v.id for v in block}, set[int]()
    grown = True
    while grown:
        reached = {
            id(t.multiplier): t.multiplier
            for id_, row in raw.rows.items()
            if id_ in ids
            for t in row.form.terms
            if not t.multiplier.shift and belongs_to_an_atom(t.multiplier)
        }
        wider = {
            id_ for id_, row in raw.rows.items()
            if not row.user and any(id(t.multiplier) in reached for t in row.form.terms)
        }  # fmt: skip
        grown = not (wider <= ids and set(reached) <= found)
        ids, found = ids | wider, found | set(reached)
    names = {m.variable.name() for m in raw.multipliers if id(m) in found}
    return names & {v.name() for v in dual.variables()}


def belongs_to_an_atom(multiplier: Multiplier) -> bool:
    """Whether a multiplier belongs to an atom or a fidelity, and not to a constraint or a risk."""
    return (
        multiplier.auxiliary
        and multiplier.of not in OF_RISKS
        and not multiplier.of.startswith("the value of risk")
    )


def objective_value(dual: Dual, notation: Notation) -> Written:
    """Return the part of the dual function that belongs to the nonlinear terms of the objective."""
    model = dual.read.model
    parts = [notation(p.value()) for p in model.pieces if p.value is not None and p.label not in RISK_PIECES]
    form = Form(
        1, [t for t in model.linear.terms if belongs_to_an_atom(t.multiplier)], list(model.linear.given)
    )
    if not form.is_zero:
        parts.append(notation(form.expression(())))
    return added(parts)


def linear_parts(row: Row, notation: Notation) -> list[Written]:
    """Return <slope, variable> for the costs and the constraints that are linear in a variable."""
    own = [
        t for t in row.form.terms if not t.multiplier.shift and t.multiplier.of.startswith("the constraint ")
    ]
    form = Form(row.form.size, own, list(row.form.given))
    if form.is_zero:
        return []
    slope = notation(form.expression(row.variable.shape, row.symmetric))
    variable = notation(row.variable)
    if row.variable.ndim == 0:
        return [multiplied(slope, variable)]
    if row.variable.ndim == 2:
        return [filled("<@0, @1>", r"\langle @0, @1\rangle", slope, variable)]
    body = inside(slope._replace(minus=False), UNIT)
    return [Written(f"{body.text}'{variable.text}", rf"{body.tex}^\top {variable.tex}", PRODUCT, slope.minus)]


def objective_parts(
    dual: Dual, block: list[cp.Variable], notation: Notation
) -> tuple[list[Written], set[str]]:
    """Return the terms of the objective that are not affine in a block, and the names of their atoms."""
    structure = dual.read.structure
    zeros: dict[int, Any] = {id(term.stand_in): cp.Constant(0.0) for term in structure.risks}
    objective = structure.sign * replaced(structure.lifted.objective.args[0], zeros)
    found, kinds = [], set()
    for factor, term in summands(objective):
        if depends(term, block) and not term.is_affine():
            found.append(multiplied(number_of(number(factor)), notation(term)))
            kinds |= {type(node).__name__ for node in all_nodes(term)}
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
        expression = constraint.expr
        if not depends(expression, block):
            continue
        names = [m for m in dual.read.model.multipliers if m.of == f"the constraint {constraint.label or i}"]
        left, right = constraint.args
        sides = [notation(left)] if depends(left, block) else []
        sides += [negated(notation(right))] if depends(right, block) else []
        for m in names:
            name = name_of(m.variable.name())
            found.append(multiplied(name, added(sides)))
            if m.definition is not None:
                conditions.append([notation(m.expression), Written("<=", r"\leq"), name])
        kinds |= {type(node).__name__ for node in all_nodes(expression)}
    return found, conditions, kinds


def depends(expression: Any, block: list[cp.Variable]) -> bool:
    """Whether an expression has a variable of a block."""
    return any(v is w for v in expression.variables() for w in block)


def all_nodes(root: Any) -> list[Any]:
    """Return all nodes of an expression."""
    return [root, *(node for arg in root.args for node in all_nodes(arg))]


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

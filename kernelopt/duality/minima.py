"""The minimum of a Lagrangian over each block of variables as it is written, with the conjugate that it is."""

from __future__ import annotations

from typing import Any, NamedTuple

import cvxpy as cp
import numpy as np

from kernelopt.duality.assembly import stated
from kernelopt.duality.blocks import minus_square
from kernelopt.duality.dual import Dual
from kernelopt.duality.forms import Form, Multiplier
from kernelopt.duality.model import Row
from kernelopt.duality.notation import Notation, relation
from kernelopt.duality.statement import SIGNS, ExplicitRisk
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
    negated,
    number_of,
)
from kernelopt.language.terms import terms
from kernelopt.structure.structure import RiskTerm
from kernelopt.structure.trees import number, replaced, summands

CONJUGATES = (  # the atoms of a function, and what its conjugate is
    (("Pnorm", "PnormApprox", "norm1", "norm_inf", "abs"), "the conjugate of a norm is the indicator of the dual ball"),
    (("Distance",), "the conjugate of the fidelity"),
    (("quad_over_lin", "QuadForm", "MatrixFrac"), "the conjugate of a square is a square"),
    (("maximum", "max"), "the conjugate of a maximum is the indicator of the convex weights"),
)  # fmt: skip
LINEAR = "a linear function is bounded below only where its slope is in the dual cone"


class Minimum(NamedTuple):
    """The minimum of the part of a Lagrangian that belongs to one variable.

    Attributes
    ----------
    variable : Written
    function : Written
        What is minimised.
    result : tuple of Written
        The minimum, or the condition under which it is finite.
    kind : str
        The conjugate that it is, in words.
    """

    variable: Written
    function: Written
    result: tuple[Written, ...]
    kind: str


def risk_minima(risk: ExplicitRisk, notation: Notation, dual_loss: Written) -> list[Minimum]:
    """Return the minima over f, z and b of a risk with alpha'(z - f - b)."""
    alpha = name_of(risk.alpha)
    slope = filled("@0'", r"@0^\top ", alpha)
    found = []
    if len(risk.functions) == 1:
        (f,), (K,) = risk.functions, risk.kernels
        square = filled("1/2 @0' @1^+ @0", r"\frac{1}{2}\,@0^\top @1^{+} @0", f, inside(K, UNIT), binds=PRODUCT)
        form = filled("1/2 @0' @1 @0", r"\frac{1}{2}\,@0^\top @1 @0", alpha, inside(K, UNIT), binds=PRODUCT)
        at = filled("@0 = @1 @2", r"@0 = @1 @2", f, inside(K, UNIT), alpha, binds=SUM)
        function = added([square, negated(joined(slope, f))])
        found.append(Minimum(f, function, (negated(form), at), "the conjugate of a square is a square"))
    else:
        names = [Written(", ".join(f.text for f in risk.functions), ", ".join(f.tex for f in risk.functions))]
        total = added([risk.square, *(negated(joined(slope, f)) for f in risk.functions)])
        rest = [filled("@0' @1 @0", r"@0^\top @1 @0", alpha, inside(K, UNIT), binds=PRODUCT) for K in risk.kernels]
        best = multiplied(number_of(0.5), dual_norm_square(rest, risk.norm))
        found.append(Minimum(names[0], total, (negated(best),), "the conjugate of a square of a norm is half the "
                             "square of the dual norm"))  # fmt: skip
    loss = added([risk.loss, joined(slope, risk.z)])
    found.append(Minimum(risk.z, loss, (dual_loss,), "the conjugate of the loss, at -alpha"))
    if risk.bias is not None:
        total = filled("sum(@0)", r"\mathbf{1}^\top @0", alpha)
        function = negated(multiplied(risk.bias, total))
        found.append(Minimum(risk.bias, function, tuple(relation(total, Written("0", "0"), True)), LINEAR))
    return found


def dual_norm_square(forms: list[Written], norm: float) -> Written:
    """Return |(sqrt(alpha'K_m alpha))_m|_s^2 with 1/s + 1/norm = 1."""
    if norm == 2:
        return added(forms)
    texts, texs = ([getattr(form, side) for form in forms] for side in ("text", "tex"))
    if np.isinf(norm):
        inner = [(rf"sqrt({t})", rf"\sqrt{{{x}}}") for t, x in zip(texts, texs, strict=True)]
        text, tex = (" + ".join(part) for part in zip(*inner, strict=True))
        return Written(f"({text})^2", rf"\left({tex}\right)^{{2}}")
    if norm == 1:
        return Written(f"max({', '.join(texts)})", rf"\max\left({', '.join(texs)}\right)")
    s = number_of(norm / (norm - 1))
    text, tex = ", ".join(f"sqrt({t})" for t in texts), ", ".join(rf"\sqrt{{{t}}}" for t in texs)
    return Written(f"|({text})|_({s.text})^2", rf"\left\|\left({tex}\right)\right\|_{{{s.tex}}}^{{2}}")


def joined(slope: Written, variable: Written) -> Written:
    """Return alpha'f, for alpha' and f."""
    body = inside(variable, UNIT)
    return Written(f"{slope.text}{body.text}", f"{slope.tex}{body.tex}", PRODUCT)


def variable_minima(dual: Dual, notation: Notation) -> list[Minimum]:
    """Return the minimum over every variable of the problem."""
    structure, found = dual.read.structure, []
    for variable in structure.variables:
        row = dual.read.model.rows[variable.id]
        parts, kinds = nonlinear_parts(dual, variable, notation)
        function = added([*linear_parts(dual, row, notation), *parts])
        for risk_part in risk_parts(dual, variable, notation):
            function = added([function, negated(risk_part)])
        sign = next((s for name, s in SIGNS.items() if variable.attributes[name] is True), ("", ""))
        over = filled(f"@0 {sign[0]}".rstrip(), f"@0 {sign[1]}".rstrip(), notation(variable))
        kind = next((words for names, words in CONJUGATES if kinds & set(names)), "")
        kind = kind or ("a conjugate, by the cones of its atoms" if kinds else LINEAR)
        found.append(Minimum(over, function, tuple(result_of(row, notation)), kind))
    return found


def linear_parts(dual: Dual, row: Row, notation: Notation) -> list[Written]:
    """Return <slope, variable> for the costs and the constraints that are linear in a variable."""
    own = [t for t in row.form.terms if not t.multiplier.shift and t.multiplier.of.startswith("the constraint ")]
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


def nonlinear_parts(dual: Dual, variable: cp.Variable, notation: Notation) -> tuple[list[Written], set[str]]:
    """Return the convex terms of the Lagrangian in a variable, and the names of their atoms."""
    structure = dual.read.structure
    zeros: dict[int, Any] = {id(term.stand_in): cp.Constant(0.0) for term in structure.risks}
    objective = structure.sign * replaced(structure.lifted.objective.args[0], zeros)
    found, kinds = [], set()
    for factor, term in summands(objective):
        if any(v is variable for v in term.variables()) and not term.is_affine():
            found.append(multiplied(number_of(number(factor)), notation(term)))
            kinds |= {type(node).__name__ for node in all_nodes(term)}
    for i, constraint in enumerate(structure.lifted.constraints):
        expression = getattr(constraint, "expr", None)
        if expression is None or expression.is_affine() or not any(v is variable for v in expression.variables()):
            continue
        names = [m for m in dual.read.model.multipliers if m.of == f"the constraint {constraint.label or i}"]
        left, right = (notation(arg) for arg in constraint.args)
        slack = added([left, negated(right)])
        found += [multiplied(name_of(m.variable.name()), slack) for m in names]
        kinds |= {type(node).__name__ for node in all_nodes(expression)}
    return found, kinds


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


def form_written(K: Any, term: RiskTerm, variable: cp.Variable, alpha: Written, notation: Notation) -> Written:
    """Return theta'(alpha'K_m alpha)_m for a combination, else alpha'K alpha."""
    pieces = [(w, grams) for w, grams in terms(K) or [] if any(v is variable for v in w.variables())]
    if len(pieces) != 1:
        inner = notation(K[: term.learner.n, : term.learner.n] if not terms(K) and K.shape[0] > term.learner.n else K)
        return filled("@0' @1 @0", r"@0^\top @1 @0", alpha, inside(inner, UNIT), binds=PRODUCT)
    weights, grams = pieces[0]
    if len(grams) == 1 and np.array_equal(grams.gram(0), np.eye(grams.n_points)):
        return multiplied(notation(weights), filled("|@0|^2", r"\|@0\|_{2}^{2}", alpha))
    member = notation.symbols.member(notation.symbols.stack(grams))
    if len(grams) == 1:
        form = filled("@0' @1 @0", r"@0^\top @1 @0", alpha, member, binds=PRODUCT)
        return multiplied(notation(weights), form)
    return filled("@0'(@1' @2 @1)_m", r"@0^\top \left(@1^\top @2 @1\right)_m", inside(notation(weights), UNIT), alpha,
                  member, binds=PRODUCT)  # fmt: skip


def result_of(row: Row, notation: Notation) -> list[Written]:
    """Return the minimum over a variable: a square, or the condition under which it is finite."""
    if row.curvature is not None:
        return [notation(minus_square(row))]
    if row.solved is not None:
        name = name_of(row.solved.variable.name())
        return relation(name, notation(row.solved.expression), True)
    constraint = stated(row)
    return [] if constraint is None else notation.constraint(constraint)

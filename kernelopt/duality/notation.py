"""From cvxpy expressions to mathematics as it is written: |theta|_2, <U, S>, y'alpha, [S, z; z', 1] >> 0."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import cvxpy as cp
import numpy as np
from cvxpy.constraints import PSD, SOC, Equality, Inequality

from kernelopt.duality.atoms import WRITERS, alone
from kernelopt.duality.squares import ProductRoots, QuadraticForms, QuadraticLengths
from kernelopt.duality.symbols import Role, Symbols
from kernelopt.duality.written import (
    PRODUCT,
    SUM,
    UNIT,
    Written,
    divided,
    filled,
    inside,
    latex_name,
    multiplied,
    name_of,
    negated,
    word,
)
from kernelopt.language.combination import Combination
from kernelopt.language.fidelity import Difference

TRANSPARENT = (
    "Promote", "reshape", "Vec", "symmetric_wrap", "psd_wrap", "nonneg_wrap", "nonpos_wrap", "nsd_wrap",
    "Distance", "TripletGains", "FrobeniusNorm", "conj", "real",
)  # fmt: skip
CONES = {"ExpCone": r"\mathcal{K}_{\exp}", "PowCone3D": r"\mathcal{P}", "PowConeND": r"\mathcal{P}"}


class Notation:
    """Writes expressions and constraints, with names for their data and their variables.

    Attributes
    ----------
    symbols : Symbols
    substitutes : dict from the id of a node to what is written in its place
    """

    def __init__(self, symbols: Symbols, names: Mapping[int, str] | None = None) -> None:
        self.symbols = symbols
        self.names = dict(names or {})
        self.substitutes: dict[int, Written] = {}

    def __call__(self, expression: Any) -> Written:
        """Return an expression as it is written."""
        expression = alone(expression)
        if id(expression) in self.substitutes:
            return self.substitutes[id(expression)]
        if isinstance(expression, QuadraticForms):
            return self.forms(expression)
        if isinstance(expression, ProductRoots):
            one, other = (self(part) for part in expression.what)
            return filled("sqrt(@0)", r"\sqrt{@0}", multiplied(one, other, " * ", r" \odot "))
        if isinstance(expression, Combination):
            return self.kernel(expression)
        if isinstance(expression, Difference):
            return self.difference(expression.args[0])
        if isinstance(expression, cp.Constant):
            return self.symbols.constant(expression)
        if not expression.args:
            return self.leaf(expression)
        name = type(expression).__name__.removesuffix("Approx")
        if name in TRANSPARENT:
            return self(expression.args[0])
        known = WRITERS.get(name)
        if known is not None:
            return known(self, expression)
        args = [self(arg) for arg in expression.args]
        text, tex = (", ".join(getattr(a, side) for a in args) for side in ("signed_text", "signed_tex"))
        return Written(f"{name}({text})", rf"{word(name)}\left({tex}\right)")

    def leaf(self, leaf: Any) -> Written:
        """Return the name of a variable or a parameter."""
        name = self.names.get(leaf.id, leaf.name())
        if isinstance(leaf, cp.Parameter):
            self.symbols.parameter(leaf, name)
        return name_of(name)

    def factor(self, expression: Any) -> Written:
        """Return an expression that multiplies another: a constant has the letter of a factor."""
        inner = alone(expression)
        return self.symbols.constant(inner, Role.FACTOR) if isinstance(inner, cp.Constant) else self(inner)

    def forms(self, expression: QuadraticForms) -> Written:
        """Return (alpha'K_m alpha)_m, or (alpha'K_m alpha / gamma)_m."""
        alpha = inside(self(expression.alpha), UNIT)
        if is_identity(expression.what[1]):
            if isinstance(expression, QuadraticLengths):
                return filled("|@0|", r"\|@0\|_{2}", alpha)
            form = filled("|@0|^2", r"\|@0\|_{2}^{2}", alpha)
            return form if expression.gamma is None else divided(form, self(expression.gamma))
        grams = expression.what[1]
        K = self.symbols.member(self.symbols.stack(grams))
        form = filled("@0' @1 @0", r"@0^\top @1 @0", alpha, K, binds=PRODUCT)
        if isinstance(expression, QuadraticLengths):
            form = filled("sqrt(@0)", r"\sqrt{@0}", form)
        if expression.gamma is not None:
            form = divided(form, self(expression.gamma))
        return form if len(grams) == 1 else filled("(@0)_m", r"\left(@0\right)_m", form)

    def kernel(self, expression: Combination) -> Written:
        """Return K(theta)."""
        letter, weights = self.symbols.stack(expression.grams), self(expression.weights)
        K, whole = self.symbols.member(letter), latex_name(letter)
        name = filled(f"{letter}(@0)", f"{whole}(@0)", weights)
        one = inside(weights, UNIT)
        total = filled(
            f"sum_m {one.text}_m @0" if len(expression.grams) > 1 else f"{one.text} @0",
            rf"\sum_m \left({one.tex}\right)_m @0" if "_" in one.tex else rf"\sum_m {one.tex}_m @0", K,
        )._replace(binds=SUM)  # fmt: skip
        self.symbols.sums[name.text] = (name, total)
        self.symbols.used[name.text] = f"= {total.text}"
        return name

    def difference(self, expression: Any) -> Written:
        """Return K - S, with S0, S1, ... for the matrices that a kernel is to be near to."""
        for arg in expression.args:
            inner = arg.args[0] if type(arg).__name__ == "NegExpression" else arg
            if isinstance(inner, cp.Constant):
                self.symbols.declare(inner.value, self.next_similarity(), "a given similarity")
        return self(expression)

    def next_similarity(self) -> str:
        """Return S0, S1, ... in the order in which `dualize` counts them."""
        count = 0
        while f"S{count}" in self.symbols.taken:
            count += 1
        return f"S{count}"

    def constraint(self, constraint: Any) -> list[Written]:
        """Return a constraint as a chain of sides: two, or one that says all."""
        args = [self(arg) for arg in constraint.args]
        if isinstance(constraint, Inequality | Equality):
            return relation(args[0], args[1], isinstance(constraint, Equality))
        if isinstance(constraint, PSD):
            return [filled("@0 >> 0", r"@0 \succeq 0", args[0], binds=SUM)]
        if isinstance(constraint, SOC):
            each = "" if constraint.args[0].size == 1 else " for each column"
            tail = r"\ \mathrm{for\ each\ column}" if each else ""
            if each and constraint.axis != 0:
                each, tail = " for each row", r"\ \mathrm{for\ each\ row}"
            return [filled(f"|@1|_2 <= @0{each}", rf"\|@1\|_{{2}} \leq @0{tail}", *args, binds=SUM)]
        if len(args) == 1:
            sign = {"NonNeg": (">=", r"\geq"), "NonPos": ("<=", r"\leq")}.get(
                type(constraint).__name__, ("==", "=")
            )
            return [filled(f"@0 {sign[0]} 0", rf"@0 {sign[1]} 0", args[0], binds=SUM)]
        kind = type(constraint).__name__
        text, tex = (", ".join(getattr(a, side) for a in args) for side in ("signed_text", "signed_tex"))
        return [Written(f"({text}) in {kind}", rf"\left({tex}\right) \in {CONES.get(kind, word(kind))}", SUM)]


def relation(left: Written, right: Written, equal: bool) -> list[Written]:
    """Return the sides of a relation; a zero on the left of an inequality goes to the right."""
    sign = Written("==", "=") if equal else Written("<=", r"\leq")
    if equal and left.minus and right.is_zero:
        left = negated(left)
    if left.is_zero and not right.is_zero:
        return [right, sign if equal else Written(">=", r"\geq"), left]
    return [left, sign, right]


def is_identity(grams: Any) -> bool:
    """Whether a stack is the identity matrix alone."""
    return len(grams) == 1 and np.array_equal(grams.gram(0), np.eye(grams.n_points))

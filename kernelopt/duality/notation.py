"""Expressions and constraints as they are written: |theta|_2, <U, S>, y'alpha, [S, z; z', 1] >> 0."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import cvxpy as cp

from kernelopt.duality.reading import Reader
from kernelopt.duality.rendering import listed, render
from kernelopt.duality.symbols import Symbols
from kernelopt.duality.tree import added, leaf
from kernelopt.duality.written import SUM, Written, filled, word

CONES = {"ExpCone": r"\mathcal{K}_{\exp}", "PowCone3D": r"\mathcal{P}", "PowConeND": r"\mathcal{P}"}
EQUAL, LEQ, GEQ = Written("==", "="), Written("<=", r"\leq"), Written(">=", r"\geq")
SIGNS = {"Inequality": LEQ, "NonPos": LEQ, "NonNeg": GEQ, "Equality": EQUAL, "Zero": EQUAL}
OTHER = {LEQ: GEQ, GEQ: LEQ, EQUAL: EQUAL}


class Notation:
    """Writes expressions and constraints, with names for their data and their variables.

    Attributes
    ----------
    symbols : Symbols
    read : Reader
        `read.names` has the names of variables in print.
    """

    def __init__(self, symbols: Symbols, names: Mapping[int, str] | None = None) -> None:
        self.symbols, self.read = symbols, Reader(symbols, names)

    def __call__(self, expression: Any) -> Written:
        """Return an expression as it is written."""
        return render(added([self.read(expression)], expression.shape))

    def substitute(self, node: Any, written: Written) -> None:
        """Write something in the place of a node."""
        self.read.substitutes[id(node)] = leaf(written)

    def constraint(self, constraint: Any) -> list[Written]:
        """Return a constraint as a chain of sides: two with a sign between them, or one that says all."""
        kind, args = type(constraint).__name__, constraint.args
        if kind in SIGNS:
            return self.relation(args[0], args[1] if len(args) > 1 else cp.Constant(0.0), SIGNS[kind])
        whole = [self(arg) for arg in args]
        if kind == "PSD":
            text, tex = ("@0 << 0", r"@0 \preceq 0") if whole[0].minus else ("@0 >> 0", r"@0 \succeq 0")
            return [filled(text, tex, whole[0]._replace(minus=False), binds=SUM)]
        if kind == "SOC":
            each = "" if args[0].size == 1 else f" for each {('column', 'row')[constraint.axis]}"
            tex = r"\|@1\|_{2} \leq @0" + (word(each) if each else "")
            return [filled(f"|@1|_2 <= @0{each}", tex, *whole, binds=SUM)]
        cone = CONES.get(kind, word(kind))
        text, tex = f"(@0) in {kind}", rf"\left(@0\right) \in {cone}"
        if kind.startswith("PowCone"):
            return [filled(f"{text}(@1)", f"{tex}_{{@1}}", listed(whole), self(constraint.alpha), binds=SUM)]
        return [filled(text, tex, listed(whole), binds=SUM)]

    def relation(self, left: Any, right: Any, sign: Written) -> list[Written]:
        """Return the sides of a relation; terms with a minus go to the other side of a zero."""
        one, other = (added([self.read(side)], side.shape) for side in (left, right))
        if not one.factor or (sign is EQUAL and one.head == "one" and other.factor):
            one, other, sign = other, one, OTHER[sign]
        if other.factor:
            return [render(one), sign, render(other)]
        terms = one.args if one.head == "sum" else (one,)
        if len(terms) > 1 and len({abs(t.factor) for t in terms}) == 1:  # a == b, and not a / 2 == b / 2
            terms = tuple(t.times(1 / abs(t.factor)) for t in terms)
        plus = [t for t in terms if t.factor > 0]
        minus = [t.times(-1.0) for t in terms if t.factor < 0]
        if not plus or (minus and sign is GEQ):
            plus, minus, sign = minus, plus, OTHER[sign]
        return [render(added(plus, one.shape)), sign, render(added(minus, one.shape))]

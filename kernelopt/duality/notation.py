"""Expressions and constraints as they are written: |theta|_2, <U, S>, y'alpha, [S, z; z', 1] >> 0."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from cvxpy.constraints import PSD, SOC, Equality, Inequality

from kernelopt.duality.reading import Reader
from kernelopt.duality.rendering import listed, render
from kernelopt.duality.symbols import Symbols
from kernelopt.duality.tree import ONES, Tree, added, is_one, multiplied
from kernelopt.duality.written import SUM, Written, filled, word

CONES = {"ExpCone": r"\mathcal{K}_{\exp}", "PowCone3D": r"\mathcal{P}", "PowConeND": r"\mathcal{P}"}
EQUAL, LEQ, GEQ = Written("==", "="), Written("<=", r"\leq"), Written(">=", r"\geq")
SIGNS = {"Inequality": LEQ, "NonPos": LEQ, "NonNeg": GEQ, "Equality": EQUAL, "Zero": EQUAL}
OTHER = {"<=": GEQ, ">=": LEQ, "==": EQUAL}


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
        return render(added([self.read(expression)]))

    def substitute(self, node: Any, written: Written) -> None:
        """Write something in the place of a node."""
        self.read.substitutes[id(node)] = Tree("name", (), 1.0, written)

    def constraint(self, constraint: Any) -> list[Written]:
        """Return a constraint as a chain of sides: two with a sign between them, or one that says all."""
        kind = type(constraint).__name__
        if isinstance(constraint, Equality | Inequality):
            left, right = constraint.args
            return self.relation(left, right, SIGNS[kind])
        if kind in SIGNS:
            return self.relation(constraint.args[0], None, SIGNS[kind])
        args = [self(arg) for arg in constraint.args]
        if isinstance(constraint, PSD):
            minus = args[0].minus
            body = args[0]._replace(minus=False)
            return [
                filled(
                    *(("@0 << 0", r"@0 \preceq 0") if minus else ("@0 >> 0", r"@0 \succeq 0")),
                    body,
                    binds=SUM,
                )
            ]
        if isinstance(constraint, SOC):
            each = (
                ""
                if constraint.args[0].size == 1
                else " for each column"
                if constraint.axis == 0
                else " for each row"
            )
            tail = r"\ \mathrm{" + each.replace(" ", r"\ ") + "}" if each else ""
            return [filled(f"|@1|_2 <= @0{each}", rf"\|@1\|_{{2}} \leq @0{tail}", *args, binds=SUM)]
        whole = listed(args)
        return [
            Written(
                f"({whole.text}) in {kind}",
                rf"\left({whole.tex}\right) \in {CONES.get(kind, word(kind))}",
                SUM,
            )
        ]

    def relation(self, left: Any, right: Any, sign: Written) -> list[Written]:
        """Return the sides of a relation; terms with a minus go to the other side of a zero."""
        one, other = added([self.read(left)]), added([self.read(right)]) if right is not None else added([])
        if is_one(one) and one.factor and not is_one(other) and sign is EQUAL:
            one, other = other, one
        if one.factor and other.factor:
            return [render(one), sign, render(other)]
        if not one.factor:
            one, other, sign = other, one, OTHER[sign.text]
        terms = [a.times(one.factor) for a in one.args] if one.head == "sum" else [one] if one.factor else []
        sizes = {abs(t.factor) for t in terms}
        if len(sizes) == 1 and len(terms) > 1:  # a == b, and not a / 2 == b / 2
            terms = [t.times(1 / abs(t.factor)) for t in terms]
        plus, minus = parted(terms)
        if not plus or (minus and sign.text == ">="):
            plus, minus, sign = minus, plus, OTHER[sign.text]
        return [render(added(plus)), sign, render(added(minus))]


def parted(terms: Sequence[Tree]) -> tuple[list[Tree], list[Tree]]:
    """Return the terms with a plus, and the others without their minus."""
    plus, minus = [t for t in terms if t.factor > 0], [t.times(-1.0) for t in terms if t.factor < 0]
    return without_ones(plus), without_ones(minus)


def without_ones(terms: list[Tree]) -> list[Tree]:
    """Return the terms of a side: a scalar that is alone there needs no vector of ones."""
    if len(terms) == 1 and terms[0].head == "product" and terms[0].args[-1].data == ONES:
        return [multiplied(terms[0].args[:-1], ()).times(terms[0].factor)]
    return terms

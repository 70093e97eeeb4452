"""From cvxpy's expressions and constraints to the trees of the writer."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import cvxpy as cp
import numpy as np

from kernelopt.duality.atoms import (
    ATOMS,
    EVEN,
    LINEAR,
    TRANSPARENT,
    added,
    by,
    divided,
    inner,
    is_constant,
    listing,
    normed,
    shared,
    square,
    transposed,
    unsigned,
)
from kernelopt.duality.symbols import Symbols
from kernelopt.duality.tree import IDENTITY, Tree, formula, is_row, leaf, multiplied
from kernelopt.duality.written import SUM
from kernelopt.structure.affine import entries_of

SAME_ROLE = TRANSPARENT | {"transpose", "NegExpression"}
UNIFORM = SAME_ROLE | {"multiply", "DivExpression", "reshape", "Vec", "index", "special_index"}
SIZES = ("k", "M")  # attributes of atoms that are numbers: of sum_largest and huber
CONES = {"ExpCone": r"\mathcal{K}_{\exp}", "PowCone3D": r"\mathcal{P}", "PowConeND": r"\mathcal{P}"}
EQUAL, LEQ, GEQ = leaf("==", tex="="), leaf("<=", tex=r"\leq"), leaf(">=", tex=r"\geq")
SIGNS = {"Inequality": LEQ, "NonPos": LEQ, "NonNeg": GEQ, "Equality": EQUAL, "Zero": EQUAL}
OTHER = {LEQ: GEQ, GEQ: LEQ, EQUAL: EQUAL}


class Reader:
    """Reads expressions and constraints as trees, with names for their data and their variables.

    Attributes
    ----------
    symbols : Symbols
    names : dict from the id of a variable to its name in print
    substitutes : dict from the id of a node to the tree that stands in its place
    """

    def __init__(self, symbols: Symbols, names: Mapping[int, str] | None = None) -> None:
        self.symbols, self.names = symbols, dict(names or {})
        self.substitutes: dict[int, Tree] = {}

    def __call__(self, e: Any) -> Tree:
        """Return the tree of an expression, a sum where it has terms."""
        return added([self.part(e)], e.shape)

    def part(self, e: Any, role: str = "term") -> Tree:
        """Return the tree of a part of an expression; a constant has the letter of its role."""
        tree = self.substitutes.get(id(e)) or self.node(e, role)
        if type(e).__name__ in UNIFORM and not tree.ndim:  # one number for all entries
            return tree
        return replace(tree, shape=tuple(e.shape))

    def node(self, e: Any, role: str) -> Tree:
        """Return the tree of a node, whose shape may still be that of an argument."""
        kind = type(e).__name__.removesuffix("Approx")
        if kind in NODES:
            return NODES[kind](self, e)
        named = role == "factor" and kind not in SAME_ROLE and kind != "MulExpression"
        if isinstance(e, cp.Constant) or (named and e.is_constant() and not e.parameters()):
            return self.symbols.constant(e, role)
        if not e.args:
            return self.leaf(e)
        if kind not in SAME_ROLE:
            role = {"MulExpression": "factor", "multiply": "weight"}.get(kind, "term")
        args = [self.part(a, role) for a in e.args]
        if kind in ATOMS:
            return ATOMS[kind](e, *args)
        args += [
            self.part(cp.Expression.cast_to_const(getattr(e, name))) for name in SIZES if hasattr(e, name)
        ]
        x = unsigned(args[0], e.args[0].shape) if kind in EVEN else args[0]
        return by(e, x.under(kind) if kind in LINEAR | EVEN else Tree(kind, tuple(args)))

    def leaf(self, e: Any) -> Tree:
        """Return the name of a variable or a parameter."""
        name = self.names.get(e.id, e.name())
        if isinstance(e, cp.Parameter):
            self.symbols.parameter(e, name)
        return leaf(name, e.shape, e.ndim == 2 and e.is_symmetric())

    def each(self, grams: Any, of: Callable[[Tree], Tree]) -> Tree:
        """Return (f(K_m))_m, or f(K) for a stack of one."""
        tree = of(self.symbols.stack(grams))
        return tree if len(grams) == 1 else tree.under("each")

    def forms(self, e: Any) -> Tree:
        """Return (alpha'K_m alpha / gamma)_m."""
        alpha, grams, gamma = e.what
        a = self.part(alpha)

        def form(K: Tree) -> Tree:
            tree = square(a) if K == IDENTITY else Tree("form", (a, K))
            return tree if gamma is None else divided(tree, self.part(gamma))

        return self.each(grams, form)

    def kernel(self, e: Any) -> Tree:
        """Return K(theta), which is sum_m theta_m K_m."""
        letter, weights, K = (
            self.symbols.declare_stack(e.grams),
            self.part(e.weights),
            self.symbols.stack(e.grams),
        )
        several = len(e.grams) > 1
        whole = multiplied([Tree("member", (weights, leaf("m"))) if several else weights, K])
        whole = formula("sum_m @0", r"\sum_m @0", whole, binds=SUM) if several else whole
        return self.symbols.define(Tree("apply", (weights, leaf(letter))), whole)

    def square(self, e: Any) -> Tree:
        """Return |x|^2 / y, and v'Q v / y for x = A B v with constants A and B, where Q = B'A'A B."""
        x, y = map(self.part, e.args)
        x = unsigned(listing(x), e.args[0].shape)
        *names, v = x.args if x.head == "product" else (x,)
        if len(names) < 2 or v.ndim != 1 or not all(map(is_constant, names)):
            return divided(by(e, square(x)), y)
        half = multiplied(names, (2, 2))
        Q = self.symbols.defined("Q", multiplied([transposed(half), half], (2, 2)))
        return divided(Tree("form", (v, Q), x.factor**2), y)

    def index(self, e: Any) -> Tree:
        """Return x[i] or X[i:j, k:l], as cvxpy writes it; single entries are vec(X)[[i, j]]."""
        whole, key = e.args[0], ""
        tree = self.part(whole)
        if not tree.ndim:
            return tree
        if type(e).__name__ == "index" and min(part.step for part in e.key) > 0:
            key = e.name()[len(whole.name()) + 1 : -1]
        else:
            key = str(entries_of(e).tolist())
            tree = tree if tree.ndim < 2 else tree.under("vec", shape=(whole.size,))
        tree = tree.under("index", leaf(key, tex=key), shape=e.shape)
        if is_row(e.shape):
            return transposed(tree)
        return tree.under("mat", shape=e.shape) if key[0] == "[" and e.ndim > 1 else tree

    def constraint(self, constraint: Any) -> list[Tree]:
        """Return a constraint as a chain of sides: two with a sign between them, or one that says all."""
        kind, args = type(constraint).__name__, constraint.args
        if kind in SIGNS:
            return self.relation(SIGNS[kind], *args)
        first, *rest = whole = [self(arg) for arg in args]
        if kind == "PSD":
            sign, tex = ("<<", r"\preceq") if first.factor < 0 else (">>", r"\succeq")
            return [formula(f"@0 {sign} 0", f"@0 {tex} 0", first.times(np.sign(first.factor)))]
        if kind == "SOC":
            length = normed(rest[0], 2.0)
            each = length if args[0].size == 1 else length.under(f"by {('columns', 'rows')[constraint.axis]}")
            return [each, LEQ, first]
        cone = leaf(kind, tex=CONES.get(kind, ""))
        if kind.startswith("PowCone"):
            cone = formula("@0(@1)", "@0_{@1}", cone, self(constraint.alpha))
        return [formula("@0 in @1", r"@0 \in @1", Tree("row", tuple(whole)), cone)]

    def relation(self, sign: Tree, left: Any, right: Any = 0.0) -> list[Tree]:
        """Return the sides of a relation; terms with a minus go to the other side of a zero."""
        right = cp.Expression.cast_to_const(right)
        one, other, shape = self(left), self(right), left.shape or right.shape
        if not (one.factor and other.factor):
            terms = added([one, other.times(-1.0)]).terms
            k = shared(terms, 0.99) if len(terms) > 1 else 1.0  # a == b, and not a / 2 == b / 2
            one, other = (
                added([t.times(side / k) for t in terms if side * t.factor > 0], shape)
                for side in (1.0, -1.0)
            )
            if not one.factor or (other.factor and sign is GEQ):
                one, other, sign = other, one, OTHER[sign]
        return [one, sign, other]


NODES: dict[str, Callable[[Reader, Any], Tree]] = {  # what brings names, or the learning of kernels
    "QuadraticForms": Reader.forms, "Combination": Reader.kernel,
    "quad_over_lin": Reader.square, "index": Reader.index, "special_index": Reader.index,
    "PositivePart": lambda read, e: square(Tree("plus", (read(e.G),), shape=e.G.shape)),
    "KernelProducts": lambda read, e: read.each(e.grams, lambda K: inner(K, read.part(e.matrix))),
}  # fmt: skip

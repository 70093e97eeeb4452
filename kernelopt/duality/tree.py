"""The tree of the writer: an expression in normal form, from which its text and its LaTeX are made.

cvxpy's own nodes are strict in shape: x' needs a matrix, and 2 x + 2 y is no 2 (x + y). In a `Tree` a number
in front of an expression is its `factor`, sums and products are flat, and what has no meaning on a board
(vectors as columns, promotions, attributes) is left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from kernelopt.duality.written import name_of
from kernelopt.validation import Array


@dataclass(frozen=True)
class Tree:
    """An expression of the board: factor * head(args).

    Attributes
    ----------
    head : str
        "one", "name", "array", "sum", "product", "hadamard", "quotient", "transpose", "norm", "square",
        "power", "total", "inner", "call", "block", ...
    args : tuple of Tree
    factor : float
    data : object
        The name of a leaf, the exponent of a norm or a power, the key of an index.
    shape : tuple of int
        That of the expression.
    """

    head: str
    args: tuple[Tree, ...] = ()
    factor: float = 1.0
    data: Any = None
    shape: tuple[int, ...] = field(default=(), compare=False)

    @property
    def ndim(self) -> int:
        """The number of dimensions, of which those with one entry do not count."""
        return sum(n != 1 for n in self.shape)

    @property
    def scalar(self) -> bool:
        """Whether the expression is one number."""
        return self.ndim == 0

    @property
    def bare(self) -> Tree:
        """The expression without its factor."""
        return replace(self, factor=1.0)

    def times(self, factor: float) -> Tree:
        """Return the expression times a number."""
        return replace(self, factor=self.factor * factor) if factor else ZERO


ONES, IDENTITY = name_of("1"), name_of("I")
ZERO = Tree("one", factor=0.0)
ONE = Tree("one")


def number(value: float) -> Tree:
    """Return a number."""
    return Tree("one", factor=float(value))


def is_one(tree: Tree) -> bool:
    """Whether an expression is a number, also in every entry."""
    return tree.head == "one"


def added(parts: Sequence[Tree], shape: tuple[int, ...] = ()) -> Tree:
    """Return a sum, in which equal terms are collected and zeros are left out."""
    found: dict[Any, Tree] = {}
    for part in parts:
        for term in (a.times(part.factor) for a in part.args) if part.head == "sum" else (part,):
            if not term.factor:
                continue
            known = found.get(term.bare)
            found[term.bare] = term if known is None else term.times(1 + known.factor / term.factor)
    kept = [term for term in found.values() if term.factor]
    if not kept:
        return ZERO
    if len(kept) > 1 and len(shape) == 1 and shape[0] > 1:
        kept = [with_ones(term, shape) for term in kept]
    return kept[0] if len(kept) == 1 else Tree("sum", tuple(kept), shape=shape)


def with_ones(term: Tree, shape: tuple[int, ...]) -> Tree:
    """Return a scalar that is added to a vector as a multiple of the vector of ones; numbers stay."""
    if not term.scalar or is_one(term):
        return term
    return Tree("product", (term.bare, Tree("name", (), 1.0, ONES, shape)), term.factor, shape=shape)


def multiplied(parts: Sequence[Tree], shape: tuple[int, ...]) -> Tree:
    """Return a product of matrices, vectors and scalars, the scalars first."""
    flat = [a for p in parts for a in (p.args if p.head == "product" else (p,))]
    factor = float(np.prod([p.factor for p in parts]))
    if not factor:
        return ZERO
    rest = [a.bare for a in flat if not is_one(a)]
    scalars = sorted((a for a in rest if a.scalar), key=lambda a: a.head != "name")
    others = [a for a in rest if not a.scalar]
    if not scalars and len(others) == 1:
        return others[0].times(factor)
    if not rest:
        return number(factor)
    if len(rest) == 1:
        return rest[0].times(factor)
    return Tree("product", (*scalars, *others), factor, shape=shape)


def entrywise(left: Tree, right: Tree, shape: tuple[int, ...]) -> Tree:
    """Return the product of entries."""
    if any(a.scalar or is_one(a) for a in (left, right)):
        return multiplied([left, right], shape)
    parts = tuple(a for p in (left, right) for a in (p.bare.args if p.head == "hadamard" else (p.bare,)))
    return Tree("hadamard", parts, left.factor * right.factor, shape=shape)


def divided(top: Tree, bottom: Tree, shape: tuple[int, ...]) -> Tree:
    """Return a quotient."""
    if is_one(bottom):
        return top.times(1 / bottom.factor) if bottom.factor else Tree("quotient", (top, bottom), shape=shape)
    return Tree("quotient", (top.bare, bottom.bare), top.factor / bottom.factor, shape=shape)


def transposed(tree: Tree) -> Tree:
    """Return the transpose; vectors are columns, so that x' stands in a product."""
    shape = tree.shape[::-1] if len(tree.shape) == 2 else (1, *tree.shape)
    if tree.scalar or tree.head in ("one", "symmetric") or (tree.head == "call" and tree.data == "Diag"):
        return tree
    if tree.head == "transpose":
        return replace(tree.args[0], factor=tree.factor)
    if tree.head == "sum":
        return replace(tree, args=tuple(map(transposed, tree.args)), shape=shape)
    if tree.head == "product":
        scalars = [a for a in tree.args if a.scalar]
        others = [transposed(a) for a in reversed(tree.args) if not a.scalar]
        return Tree("product", (*scalars, *others), tree.factor, shape=shape)
    return Tree("transpose", (tree.bare,), tree.factor, shape=shape)


def total(tree: Tree, size: int) -> Tree:
    """Return the sum of all entries: of a sum its parts, of products an inner product."""
    if tree.head == "sum":
        return added([total(a, size).times(tree.factor) for a in tree.args])
    if tree.scalar or is_one(tree):  # promoted to all entries
        return tree.times(size)
    if tree.head == "name" and tree.data == ONES:
        return number(tree.factor * size)
    if tree.head == "hadamard" and len(tree.args) == 2:
        return inner(*tree.args).times(tree.factor)
    if tree.head == "product" and tree.args[0].scalar:
        rest = total(multiplied(tree.args[1:], tree.shape), size)
        return multiplied([tree.args[0], rest], ()).times(tree.factor)
    if tree.head == "power" and tree.data == 2.0:
        return Tree("square", tree.args, tree.factor)
    return Tree("total", (tree.bare,), tree.factor)


def inner(a: Tree, b: Tree) -> Tree:
    """Return a'b of vectors, <A, B> of matrices, sum over the parts of a sum of one of them."""
    for one, other in ((a, b), (b, a)):
        if one.head == "symmetric" and one.data == IDENTITY and other.ndim == 2:
            return Tree("call", (other.bare,), one.factor * other.factor, "tr")
        if is_one(one):
            return total(other, int(np.prod(other.shape))).times(one.factor)
    factor = a.factor * b.factor
    if max(a.ndim, b.ndim) < 2:
        return Tree("product", (transposed(a.bare), b.bare), factor)
    return Tree("inner", (a.bare, b.bare), factor)


def square(x: Tree) -> Tree:
    """Return |x|^2 in the 2-norm, or in that of Frobenius."""
    k = x.factor**2
    if is_one(x):
        return number(k * float(np.prod(x.shape)))
    x = x.bare
    if x.head == "norm" or x.head == "abs":
        return Tree("power", (x,), k, 2.0)
    if x.scalar:
        return Tree("power", (x,), k, 2.0, x.shape)
    return Tree("square", (x,), k)


def same_entries(value: Array) -> bool:
    """Whether all entries of an array are equal."""
    return bool(value.size == 1 or np.ptp(value) == 0)

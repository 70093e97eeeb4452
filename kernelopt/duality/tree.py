"""The tree of the writer: an expression in normal form, from which its text and its LaTeX are made.

cvxpy's own nodes are strict in shape: x' needs a matrix, and 2 x + 2 y is no 2 (x + y). In a `Tree` a number
in front of an expression is its `factor`, sums and products are flat, vectors are columns, and promotions and
attributes are left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from math import prod

from kernelopt.duality.written import ZERO as NOTHING
from kernelopt.duality.written import Written, index_of, name_of

Shape = tuple[int, ...]


@dataclass(frozen=True)
class Tree:
    """An expression of the board: factor * head(args).

    Attributes
    ----------
    head : str
        "one" of a number, "name" or "symmetric" of a leaf, "sum", "product", "hadamard", "power", ..., or the
        name of a function.
    args : tuple of Tree
    factor : float
    data : Written
        The name of a leaf.
    shape : tuple of int
    """

    head: str
    args: tuple[Tree, ...] = ()
    factor: float = 1.0
    data: Written = NOTHING
    shape: Shape = field(default=(), compare=False)

    @property
    def ndim(self) -> int:
        """The number of dimensions, of which those with one entry do not count."""
        return sum(n != 1 for n in self.shape)

    @property
    def bare(self) -> Tree:
        """The expression without its factor."""
        return replace(self, factor=1.0)

    def times(self, factor: float) -> Tree:
        """Return the expression times a number."""
        return replace(self, factor=self.factor * factor) if factor else ZERO

    def under(self, head: str, *more: Tree) -> Tree:
        """Return a linear function of the expression, in front of which its factor stands."""
        return Tree(head, (self.bare, *more), self.factor)


def number(value: float) -> Tree:
    """Return a number."""
    return Tree("one", factor=float(value))


def leaf(data: Written, shape: Shape = (), symmetric: bool = False) -> Tree:
    """Return a name."""
    return Tree("symmetric" if symmetric else "name", data=data, shape=shape)


ZERO, ONE, ONES, IDENTITY = number(0.0), number(1.0), leaf(name_of("1")), leaf(name_of("I"), (), True)


def added(parts: Sequence[Tree], shape: Shape = ()) -> Tree:
    """Return a sum, in which equal terms are collected and zeros are left out."""
    found: dict[Tree, float] = {}
    for part in parts:
        for term in part.args if part.head == "sum" else (part.bare,):
            found[term.bare] = found.get(term.bare, 0.0) + part.factor * term.factor
    kept = [term.times(k) for term, k in found.items() if k] or [ZERO]
    return kept[0] if len(kept) == 1 else Tree("sum", tuple(kept), shape=shape)


def multiplied(parts: Sequence[Tree], shape: Shape = ()) -> Tree:
    """Return a product of matrices, vectors and scalars, the scalars first."""
    flat = [a.bare for p in parts for a in (p.args if p.head == "product" else (p,))]
    factor = prod(p.factor for p in parts)
    rest = sorted((a for a in flat if a != ONE), key=lambda a: 2 if a.ndim else a.head != "name")
    if len(rest) < 2 or not factor:
        return (rest or [ONE])[0].times(factor)
    return Tree("product", tuple(rest), factor, shape=shape)


def divided(top: Tree, bottom: Tree) -> Tree:
    """Return a quotient."""
    if bottom.head == "one" and bottom.factor:
        return top.times(1 / bottom.factor)
    shape = top.shape if top.ndim else bottom.shape
    return Tree("quotient", (top.bare, bottom.bare), top.factor / (bottom.factor or 1.0), shape=shape)


def transposed(tree: Tree) -> Tree:
    """Return the transpose; vectors are columns, so that x' stands in a product."""
    shape = tree.shape[::-1]
    if not tree.ndim or tree.head in ("one", "symmetric", "Diag"):
        return tree
    if tree.head == "transpose":
        return tree.args[0].times(tree.factor)
    if tree.head == "sum":
        return replace(tree, args=tuple(map(transposed, tree.args)), shape=shape)
    if tree.head == "product":
        return multiplied([transposed(a) for a in reversed(tree.args)], shape).times(tree.factor)
    return replace(tree.under("transpose"), shape=shape)


def with_ones(tree: Tree, shape: Shape) -> Tree:
    """Return a number in all entries of a vector or a matrix as a multiple of 1 or of 1 1'."""
    sizes = [n for n in shape if n > 1]
    ones = [replace(ONES, shape=(n,)) for n in sizes]
    return (
        tree if tree.ndim or not sizes else multiplied([tree, *ones[:1], *map(transposed, ones[1:])], shape)
    )


def total(tree: Tree, size: int) -> Tree:
    """Return the sum of all `size` entries: of a sum its parts, of products an inner product."""
    if tree.head in ("vec", "mat"):
        tree = tree.args[0].times(tree.factor)
    if tree.head == "sum":
        return added([total(a, size).times(tree.factor) for a in tree.args])
    if tree.bare in (ONES, IDENTITY):
        return number(tree.factor * tree.shape[0])
    if not tree.ndim or tree.head == "one":  # one number in all entries
        return tree.times(size)
    if tree.head == "hadamard" and len(tree.args) == 2:
        return inner(*tree.args).times(tree.factor)
    if tree.head == "product" and not tree.args[0].ndim:
        rest = total(multiplied(tree.args[1:], tree.shape), size)
        return multiplied([tree.args[0], rest]).times(tree.factor)
    if tree.head == "power" and tree.args[1].data.text == "2":
        return square(tree.args[0]).times(tree.factor)
    if tree.head == "abs":
        return normed(tree.args[0], 1.0).times(tree.factor)
    return tree.under("total")


def inner(a: Tree, b: Tree) -> Tree:
    """Return a'b of vectors, <A, B> of matrices, tr(B) for the identity A."""
    for one, other in ((a, b), (b, a)):
        if one.bare == IDENTITY and other.ndim == 2:
            return other.under("tr").times(one.factor)
        if one.head == "one":
            return total(other, prod(other.shape)).times(one.factor)
        if one.head == "product" and not one.args[0].ndim:
            rest = inner(multiplied(one.args[1:], one.shape), other).times(one.factor)
            return multiplied([one.args[0], rest])
    if max(a.ndim, b.ndim) < 2:
        return multiplied([transposed(a), b])
    return Tree("inner", (a.bare, b.bare), a.factor * b.factor)


def square(x: Tree) -> Tree:
    """Return |x|^2 in the 2-norm, or in that of Frobenius."""
    if x.head == "one":
        return number(x.factor**2 * prod(x.shape))
    if x.head in ("norm", "abs") or not x.ndim:
        return raised(x, 2.0)
    return Tree("square of a matrix" if x.ndim == 2 else "square", (x.bare,), x.factor**2)


def raised(x: Tree, p: float) -> Tree:
    """Return x^p; a factor that is negative stays inside of a fractional power."""
    if p == 0:
        return ONE
    if p == 0.5:
        return Tree("sqrt", (x,))
    if x.factor < 0 and p != int(p):
        return Tree("power", (x, leaf(index_of(p))))
    return Tree("power", (x.bare, leaf(index_of(p))), x.factor**p)


def normed(x: Tree, p: float) -> Tree:
    """Return |x|_p."""
    return Tree("norm", (x.bare, leaf(index_of(p))), abs(x.factor))

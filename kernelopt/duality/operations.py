"""Sums, products, norms and quotients of trees, in normal form."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from math import prod

from kernelopt.duality.tree import (
    IDENTITY,
    ONE,
    ONES,
    ZERO,
    Shape,
    Tree,
    index,
    multiplied,
    number,
    with_ones,
)


def added(parts: Sequence[Tree], shape: Shape = ()) -> Tree:
    """Return a sum, in which equal terms are collected and zeros are left out."""
    found: dict[Tree, float] = {}
    for term in (term for part in parts for term in part.terms):
        if term.factor:
            found[term.bare] = found.get(term.bare, 0.0) + term.factor
    kept = [term.times(k) for term, k in found.items() if k] or [ZERO]
    return kept[0] if len(kept) == 1 else Tree("sum", tuple(kept), shape=shape)


def divided(top: Tree, bottom: Tree) -> Tree:
    """Return a quotient."""
    if bottom.head == "one" and bottom.factor:
        return top.times(1 / bottom.factor)
    shape = top.shape if top.ndim else bottom.shape
    return top.under("quotient", bottom.bare, shape=shape).times(1 / (bottom.factor or 1.0))


def transposed(tree: Tree) -> Tree:
    """Return the transpose; vectors are columns, so that x' stands in a product."""
    shape = tree.shape[::-1]
    if not tree.ndim or tree.head in ("one", "symmetric", "diag_vec"):
        return tree
    if tree.head == "transpose":
        return tree.args[0].times(tree.factor)
    if tree.head == "sum":
        return replace(tree, args=tuple(map(transposed, tree.args)), shape=shape)
    if tree.head == "product":
        return multiplied([transposed(a) for a in reversed(tree.args)], shape).times(tree.factor)
    return tree.under("transpose", shape=shape)


def total(tree: Tree, size: int) -> Tree:
    """Return the sum of all `size` entries: of a sum its parts, of products an inner product."""
    (*scalars, whole) = split(listing(tree))
    if whole.head == "sum":
        whole = added([total(a, size) for a in whole.terms])
    elif whole in (ONES, IDENTITY):
        whole = number(whole.shape[0])
    elif not whole.ndim or whole.head == "one":  # one number in all entries
        whole = whole.times(size)
    elif whole.head == "hadamard" and len(whole.args) == 2:
        whole = inner(*whole.args)
    elif whole.head == "power" and whole.args[1] == index(2.0):
        whole = square(whole.args[0])
    elif whole.head == "abs":
        whole = normed(whole.args[0], 1.0)
    else:
        whole = Tree("total", (whole,))
    return multiplied([*scalars, whole])


def listing(tree: Tree) -> Tree:
    """Return what has the same entries as vec(X) or mat(x)."""
    return tree.args[0].times(tree.factor) if tree.head in ("vec", "mat") else tree


def split(tree: Tree) -> list[Tree]:
    """Return the factor and the scalars of a product, and last the product of the rest."""
    scalars = [a for a in tree.args if not a.ndim] if tree.head == "product" and tree.ndim else []
    rest = multiplied(tree.args[len(scalars) :], tree.shape) if scalars else tree.bare
    return [number(tree.factor), *scalars, rest]


def inner(a: Tree, b: Tree) -> Tree:
    """Return a'b of vectors, <A, B> of matrices, tr(B) for the identity A."""
    (*scalars, one), (*more, other) = split(a), split(b)
    one, other = sorted((one, other), key=lambda t: t not in (ONE, ONES, IDENTITY))
    if one in (ONE, ONES):
        whole = total(other, prod(other.shape))
    elif one == IDENTITY and other.ndim == 2:
        whole = Tree("Trace", (other,))
    elif max(one.ndim, other.ndim) < 2:
        whole = multiplied([transposed(one), other])
    else:
        whole = Tree("inner", (one, other))
    return multiplied([*scalars, *more, whole])


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
    base, k = (x, 1.0) if x.factor < 0 and p != int(p) else (x.bare, x.factor)
    return Tree("power", (base, index(p)), k**p)


def normed(x: Tree, p: float) -> Tree:
    """Return |x|_p."""
    return Tree("norm", (x.bare, index(p)), abs(x.factor))


def shared(terms: Sequence[Tree], share: float) -> float:
    """Return the number that more than a share of some terms have in common up to their signs, else one."""
    ((size, times),) = Counter(abs(a.factor) for a in terms).most_common(1)
    return size if size and times > share * len(terms) else 1.0


def unsigned(tree: Tree, shape: Shape) -> Tree:
    """Return an expression whose sign does not count, with a plus where all its terms have a minus.

    The number that most of the terms have in common stands in front: |2 x - 2 y| is 2 |x - y|.
    """
    terms = added([tree if tree.head == "one" else with_ones(tree, shape)], shape).terms
    k, sign = shared(terms, 0.5), -1.0 if all(a.factor < 0 for a in terms) else 1.0
    return added([a.times(sign / k) for a in terms], tree.shape).times(k)

"""Sums, products and norms of trees in normal form, and how the functions of cvxpy are written."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from math import prod
from typing import Any

import numpy as np

from kernelopt.duality.adjoints import dense
from kernelopt.duality.tree import (
    IDENTITY,
    ONE,
    ONES,
    ZERO,
    Shape,
    Tree,
    flat,
    index,
    is_row,
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


TRANSPARENT = {
    "Promote", "symmetric_wrap", "psd_wrap", "nonneg_wrap", "nonpos_wrap", "nsd_wrap", "broadcast_to",
    "Distance", "Difference", "TripletGains", "FrobeniusNorm", "conj", "real", "skew_symmetric_wrap",
    "hermitian_wrap",
}  # fmt: skip
LINEAR = {"diag_vec", "diag_mat", "Trace"}  # the factor of the argument stands in front
EVEN = {"abs", "normNuc", "sigma_max"}  # the sign of the argument does not count


def is_constant(tree: Tree) -> bool:
    """Whether a matrix is a name of data, its transpose, or Diag of one."""
    if tree.head in ("transpose", "diag_vec"):
        return is_constant(tree.args[0])
    return tree.head in ("name", "symmetric") and tree.ndim > 0 and tree != IDENTITY


def factor(e: Any, tree: Tree) -> Tree:
    """Return a factor of a product of matrices: y * x with a constant y is Diag(y) x."""
    if tree.head != "hadamard" or tree.ndim != 1 or not any(map(is_constant, tree.args)):
        return with_ones(tree, e.shape)
    y, *rest = sorted(tree.args, key=lambda a: not is_constant(a))
    x = rest[0] if len(rest) == 1 else Tree("hadamard", tuple(rest), shape=tree.shape)
    diagonal = y.under("diag_vec", shape=(e.size, e.size))
    return multiplied([diagonal, factor(e, x)], tree.shape).times(tree.factor)


def product(e: Any, *args: Tree) -> Tree:
    """Return A x, a'x, c x, or x y' of a row and a column."""
    if min(a.size for a in e.args) == 1:
        return multiplied(args, e.shape)
    one, other = map(factor, e.args, args)
    one = transposed(one) if e.args[0].ndim == 1 else one
    whole = inner(transposed(one), other) if e.size == 1 else multiplied([one, other], e.shape)
    return transposed(whole) if e.args[0].ndim < e.args[1].ndim else whole


def hadamard(e: Any, *args: Tree) -> Tree:
    """Return c e, or x * y for products of entries."""
    entries = all(a.ndim and a.head != "one" for a in args)
    return flat("hadamard", args, e.shape) if entries else multiplied(args, e.shape)


def by(e: Any, tree: Tree) -> Tree:
    """Return a function of the columns or of the rows of a matrix, where it has an axis."""
    axis = getattr(e, "axis", None)
    return tree if axis is None or e.args[0].ndim < 2 else tree.under(f"by {'rows' if axis else 'columns'}")


def summed(e: Any, x: Tree) -> Tree:
    """Return the sum of all entries, or over an axis."""
    size = e.args[0].size
    if e.axis is None or not x.ndim or x.head == "one":
        return total(x, size).times(1 / e.size)
    return x.under("sum of columns" if e.axis == 0 else "sum of rows")


def reshaped(e: Any, x: Tree) -> Tree:
    """Return vec(X), mat(x), or a row or a column; by rows it is what the transposes have by columns."""
    before, after = e.args[0].shape, e.shape
    if not x.ndim:
        return x
    if max(x.ndim, sum(n > 1 for n in after)) < 2:
        return transposed(x) if is_row(before) != is_row(after) else x

    def turned(tree: Tree) -> Tree:
        return transposed(tree) if getattr(e, "order", "F") == "C" and tree.ndim > 1 else tree

    x, shape = turned(x), turned(Tree("", shape=after)).shape
    if listing(x).shape == shape:
        return turned(listing(x))
    x = x.under("vec", shape=(e.size,)) if x.ndim > 1 else x
    return turned(x.under("mat", shape=shape)) if sum(n > 1 for n in shape) > 1 else x


def norm(e: Any, x: Tree) -> Tree:
    """Return |x|_p, and |X|_F."""
    p = float({"norm1": 1.0, "norm_inf": np.inf}.get(type(e).__name__) or e.p)
    x = unsigned(x if e.axis is not None else listing(x), e.args[0].shape)
    return x.under("Frobenius norm") if p == x.ndim == 2 and e.axis is None else by(e, normed(x, p))


def largest(e: Any, *args: Tree) -> Tree:
    """Return (e)_+ for the maximum with zero, else max(a, b)."""
    rest = [a for a in args if a.factor]
    if len(args) != 2 or len(rest) != 1 or rest[0].ndim == 2:  # (X)_+ of a matrix is that of its eigenvalues
        return Tree("max", args)
    return rest[0].under("plus") if rest[0].factor > 0 else Tree("plus", tuple(rest))


def block(e: Any, *args: Tree) -> Tree:
    """Return a block matrix."""
    return Tree("block", tuple(a if a.head == "row" else Tree("row", (a,)) for a in args))


def row(e: Any, *args: Tree) -> Tree:
    """Return (a, b, ...), and the argument itself where there is one."""
    return Tree("row", args) if len(args) > 1 else args[0]


def geometric(e: Any, x: Tree) -> Tree:
    """Return geo mean(x), with the exponents where they differ."""
    weights = Tree("row", tuple(number(float(w)) for w in e.w))
    return Tree("GeoMean" if len(set(e.w)) == 1 else "weighted geo mean", (x, weights))


def logarithmic(e: Any, x: Tree, y: Tree) -> Tree:
    """Return x log(x / y)."""
    return Tree("x log x", (x,)) if y == ONE else Tree("x log y", (x, divided(x, y)))


ATOMS: dict[str, Callable[..., Tree]] = {
    **dict.fromkeys(TRANSPARENT, lambda e, x: x),
    "AddExpression": lambda e, *args: added(args, e.shape),
    "NegExpression": lambda e, x: added([x.times(-1.0)], e.shape),
    "DivExpression": lambda e, x, y: divided(x, y),
    "transpose": lambda e, x: transposed(x),
    "MulExpression": product, "multiply": hadamard, "Sum": summed, "maximum": largest,
    "reshape": reshaped, "Vec": reshaped,
    "Vstack": block, "Hstack": row,
    "Concatenate": lambda e, *args: (block if e.axis == 0 < e.ndim - 1 else row)(e, *args),
    "Pnorm": norm, "norm1": norm, "norm_inf": norm, "GeoMean": geometric,
    "Power": lambda e, x: raised(x, float(dense(e.p.value).flat[0])),
    "QuadForm": lambda e, x, P: Tree("form", (x.bare, P.bare), x.factor**2 * P.factor),
    "MatrixFrac": lambda e, x, P: Tree("inverse form", (x, P)),
    "rel_entr": logarithmic, "entr": lambda e, x: Tree("x log x", (x,), -1.0),
}  # fmt: skip

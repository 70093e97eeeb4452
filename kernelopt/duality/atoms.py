"""How the functions of cvxpy are written, by `ATOMS`, and by the names of their classes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from kernelopt.duality.operations import (
    added,
    divided,
    inner,
    listing,
    normed,
    raised,
    total,
    transposed,
    unsigned,
)
from kernelopt.duality.symbols import dense
from kernelopt.duality.tree import IDENTITY, ONE, Tree, flat, is_row, multiplied, number, with_ones

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

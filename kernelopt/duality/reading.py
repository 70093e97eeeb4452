"""From cvxpy's expressions to the tree of the writer, by `ATOMS`, and `LEARNED` for kernels."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import cvxpy as cp
import numpy as np

from kernelopt.duality.symbols import Role, Symbols, dense
from kernelopt.duality.tree import (
    IDENTITY,
    ONE,
    ONES,
    Tree,
    added,
    divided,
    inner,
    leaf,
    multiplied,
    normed,
    number,
    raised,
    square,
    total,
    transposed,
    with_ones,
)
from kernelopt.duality.written import Written, latex_name, name_of

TRANSPARENT = {
    "Promote", "symmetric_wrap", "psd_wrap", "nonneg_wrap", "nonpos_wrap", "nsd_wrap", "broadcast_to",
    "Distance", "TripletGains", "FrobeniusNorm", "conj", "real", "skew_symmetric_wrap", "hermitian_wrap",
}  # fmt: skip
SAME_ROLE = TRANSPARENT | {"transpose", "NegExpression"}
LISTED = 8  # entries of an index up to which it is written
SIZES = ("k", "M")  # attributes of atoms that are numbers: of sum_largest and huber
UNIFORM = SAME_ROLE | {"multiply", "DivExpression", "reshape", "Vec", "index", "special_index"}


class Reader:
    """Reads expressions as trees, with names for their data and their variables.

    Attributes
    ----------
    symbols : Symbols
    names : dict from the id of a variable to its name in print
    substitutes : dict from the id of a node to the tree that stands in its place
    """

    def __init__(self, symbols: Symbols, names: Mapping[int, str] | None = None) -> None:
        self.symbols, self.names = symbols, dict(names or {})
        self.substitutes: dict[int, Tree] = {}

    def __call__(self, e: Any, role: Role = Role.TERM) -> Tree:
        """Return the tree of an expression; a constant has the letter of its role."""
        tree = self.substitutes.get(id(e)) or self.node(e, role)
        if type(e).__name__ in UNIFORM and not tree.ndim:  # one number for all entries
            return tree
        return replace(tree, shape=tuple(e.shape))

    def node(self, e: Any, role: Role) -> Tree:
        """Return the tree of a node, whose shape may still be that of an argument."""
        kind = type(e).__name__.removesuffix("Approx")
        if kind in LEARNED:
            return LEARNED[kind](self, e)
        named = role is Role.FACTOR and kind not in SAME_ROLE and kind != "MulExpression"
        if isinstance(e, cp.Constant) or (named and e.is_constant() and not e.parameters()):
            return self.symbols.constant(e, role)
        if not e.args:
            return self.leaf(e)
        args = [self(a, role if kind in SAME_ROLE else role_in(kind, e)) for a in e.args]
        if kind in ATOMS:
            return ATOMS[kind](self, e, *args)
        sizes = [self(cp.Expression.cast_to_const(getattr(e, name))) for name in SIZES if hasattr(e, name)]
        return by(e, Tree(NAMES.get(kind, kind), (*args, *sizes)))

    def leaf(self, e: Any) -> Tree:
        """Return the name of a variable or a parameter."""
        name = self.names.get(e.id, e.name())
        if isinstance(e, cp.Parameter):
            self.symbols.parameter(e, name)
        return leaf(name_of(name), e.shape, e.ndim == 2 and e.is_symmetric())

    def each(self, grams: Any, of: Callable[[Tree], Tree]) -> Tree:
        """Return (f(K_m))_m, or f(K) for a stack of one."""
        tree = of(leaf(self.symbols.stack(grams), tuple(grams.shape[1:]), True))
        return tree if len(grams) == 1 else tree.under("each")

    def forms(self, e: Any) -> Tree:
        """Return (alpha'K_m alpha / gamma)_m, or the square roots of (alpha'K_m alpha)_m."""
        alpha, grams, gamma = e.what
        a = self(alpha)

        def form(K: Tree) -> Tree:
            tree = square(a) if is_identity(grams) else Tree("form", (a, K))
            return tree if gamma is None else divided(tree, self(gamma))

        return form(ONE) if is_identity(grams) else self.each(grams, form)

    def kernel(self, e: Any) -> Tree:
        """Return K(theta)."""
        letter, weights = self.symbols.declare_stack(e.grams), self(e.weights)
        name = Tree("apply", (weights, leaf(Written(letter, latex_name(letter)))))
        self.symbols.combined(name, weights, letter)
        return name

    def difference(self, e: Any) -> Tree:
        """Return K - S, with S0, S1, ... for the matrices that a kernel is to be near to."""
        (e,) = e.args
        for arg in e.args:
            found = arg.args[0] if type(arg).__name__ == "NegExpression" else arg
            if isinstance(found, cp.Constant):
                self.symbols.declare(found.value, "S0", "a given similarity")
        return self(e)

    def excess(self, e: Any) -> Tree:
        """Return S - alpha alpha'."""
        S, alpha = self(e.args[0]), self(e.what[1])
        return added([S, multiplied([alpha, transposed(alpha)], S.shape).times(-1.0)], S.shape)


LEARNED: dict[str, Callable[[Reader, Any], Tree]] = {  # what the learning of kernels adds to cvxpy
    "QuadraticForms": Reader.forms, "Combination": Reader.kernel,
    "Difference": Reader.difference, "Excess": Reader.excess,
    "PositivePart": lambda read, e: square(Tree("plus", (added([read(e.G)], e.G.shape),), shape=e.G.shape)),
    "KernelProducts": lambda read, e: read.each(e.grams, lambda K: inner(K, read(e.matrix))),
}  # fmt: skip


def role_in(kind: str, e: Any) -> Role:
    """Return what an array does as an argument of a node."""
    if kind == "MulExpression" and min(a.size for a in e.args) > 1:
        return Role.FACTOR
    return Role.WEIGHT if kind in ("MulExpression", "multiply") else Role.TERM


def is_identity(grams: Any) -> bool:
    """Whether a stack is the identity matrix alone."""
    return len(grams) == 1 and np.array_equal(grams.gram(0), np.eye(grams.n_points))


def is_constant(tree: Tree) -> bool:
    """Whether a matrix is a name of data, its transpose, or Diag of one."""
    if tree.head in ("transpose", "Diag"):
        return is_constant(tree.args[0])
    return tree.head in ("name", "symmetric") and tree.ndim > 0 and tree != IDENTITY


def factor(e: Any, tree: Tree) -> Tree:
    """Return a factor of a product of matrices: y * x with a constant y is Diag(y) x."""
    y = next(filter(is_constant, tree.args), None) if tree.head == "hadamard" and tree.ndim == 1 else None
    if y is None:
        return with_ones(tree, e.shape)
    rest = [a for a in tree.args if a is not y]
    x = rest[0] if len(rest) == 1 else Tree("hadamard", tuple(rest), shape=tree.shape)
    return multiplied([replace(y.under("Diag"), shape=(e.size, e.size)), factor(e, x)], tree.shape).times(
        tree.factor
    )


def product(read: Reader, e: Any, *args: Tree) -> Tree:
    """Return A x, a'x, c x, x y' of a row and a column, or k sum(x) of a vector of equal entries."""
    if min(a.size for a in e.args) == 1:
        return multiplied(args, e.shape)
    one, other = map(factor, e.args, args)
    for a, x in ((one, other), (other, one)):
        if a.bare == IDENTITY:
            return x.times(a.factor)
        if e.size == 1 and ONES in (a.bare, *a.args[: a.head == "transpose"]):
            return total(x, e.args[0].size).times(a.factor)
    dims = [a.ndim for a in e.args]
    whole = multiplied([transposed(one) if dims[0] == 1 else one, other], e.shape)
    return transposed(whole) if dims == [1, 2] else whole


def hadamard(read: Reader, e: Any, *args: Tree) -> Tree:
    """Return c e, or x * y for products of entries."""
    if not all(a.ndim and a.head != "one" for a in args):
        return multiplied(args, e.shape)
    parts = [b for a in args for b in (a.args if a.head == "hadamard" else (a.bare,))]
    return Tree("hadamard", tuple(parts), args[0].factor * args[1].factor, shape=e.shape)


def by(e: Any, tree: Tree) -> Tree:
    """Return a function of the columns or of the rows of a matrix, where it has an axis."""
    axis = getattr(e, "axis", None)
    return (
        tree if axis is None or e.args[0].ndim < 2 else tree.under("by columns" if axis == 0 else "by rows")
    )


def summed(read: Reader, e: Any, x: Tree) -> Tree:
    """Return the sum of all entries, or over an axis."""
    size = e.args[0].size
    if e.axis is None or not x.ndim or x.head == "one":
        return total(x, size) if e.axis is None else x.times(size / e.size)
    return x.under("sum of columns" if e.axis == 0 else "sum of rows")


def reshaped(read: Reader, e: Any, x: Tree) -> Tree:
    """Return vec(X), mat(x), or a row or a column; by rows it is what the transposes have by columns."""
    before, after = (sum(n > 1 for n in shape) for shape in (e.args[0].shape, e.shape))
    if not x.ndim:
        return x
    if before < 2 and after < 2:
        rows = [len(shape) == 2 and shape[0] == 1 for shape in (e.args[0].shape, e.shape)]
        return transposed(x) if rows[0] != rows[1] else x
    by_rows = getattr(e, "order", "F") == "C"
    shape = e.shape[::-1] if by_rows else e.shape
    x = transposed(x) if by_rows and before > 1 else x
    if x.head in ("vec", "mat") and x.args[0].shape == shape:
        x = x.args[0].times(x.factor)
    else:
        x = replace(x.under("vec"), shape=(e.size,)) if before > 1 else x
        x = replace(x.under("mat"), shape=shape) if after > 1 else x
    return transposed(x) if by_rows and after > 1 else x


def unsigned(tree: Tree, e: Any) -> Tree:
    """Return an expression whose sign does not count, with a plus where all its terms have a minus."""
    tree = added([tree if tree.head == "one" else with_ones(tree, e.shape)], tree.shape)
    if tree.head != "sum":
        return tree.times(np.sign(tree.factor))
    sizes = Counter(abs(a.factor) for a in tree.args)
    k = sizes.most_common(1)[0][0]  # |2 x - 2 y| is 2 |x - y|
    k = k if sizes[k] > len(tree.args) / 2 else 1.0
    sign = -1.0 if all(a.factor < 0 for a in tree.args) else 1.0
    return replace(tree, args=tuple(a.times(sign / k) for a in tree.args), factor=k)


def listed(tree: Tree) -> Tree:
    """Return what has the same entries as vec(X) or mat(x)."""
    return tree.args[0].times(tree.factor) if tree.head in ("vec", "mat") else tree


def squared(read: Reader, e: Any, x: Tree, y: Tree) -> Tree:
    """Return |x|^2 / y, and v'Q v / y for x = A B v with constants A and B, where Q = B'A'A B."""
    x = unsigned(listed(x), e.args[0])
    names = x.args[:-1] if x.head == "product" else ()
    if len(names) < 2 or x.args[-1].ndim != 1 or not all(map(is_constant, names)):
        return divided(by(e, square(x)), y)
    half = multiplied(names, (2, 2))
    Q = leaf(read.symbols.defined("Q", multiplied([transposed(half), half], (2, 2))), (2, 2), True)
    return divided(Tree("form", (x.args[-1], Q), x.factor**2), y)


def norm(read: Reader, e: Any, x: Tree) -> Tree:
    """Return |x|_p, and |X|_F."""
    p = float({"norm1": 1.0, "norm_inf": np.inf}.get(type(e).__name__) or e.p)
    x = unsigned(x if e.axis is not None else listed(x), e.args[0])
    return x.under("Frobenius norm") if p == x.ndim == 2 and e.axis is None else by(e, normed(x, p))


def largest(read: Reader, e: Any, *args: Tree) -> Tree:
    """Return (e)_+ for the maximum with zero, else max(a, b)."""
    rest = [a for a in args if a.factor]
    if len(args) != 2 or len(rest) != 1 or rest[0].ndim == 2:  # (X)_+ of a matrix is that of its eigenvalues
        return Tree("max", args)
    return rest[0].under("plus") if rest[0].factor > 0 else Tree("plus", tuple(rest))


def traced(read: Reader, e: Any, x: Tree) -> Tree:
    """Return tr(X), and <A', X> for tr(A X)."""
    A = next((a for a in x.args if a.ndim == 2), None) if x.head == "product" else None
    if A is None:
        return x.under("tr")
    return inner(transposed(A), multiplied([a for a in x.args if a is not A], x.shape)).times(x.factor)


def indexed(read: Reader, e: Any, x: Tree) -> Tree:
    """Return x[i], X[i:j, k:l], or x[[i, j]]."""
    if not x.ndim:
        return x
    keys = e.key if isinstance(e.key, tuple) else (e.key,)
    text = ", ".join(key_text(key) for key in keys if key is not None)
    tree = replace(x.under("index", leaf(Written(text, text.replace("...", r"\ldots")))), shape=e.shape)
    return transposed(tree) if len(e.shape) == 2 and e.shape[0] == 1 else tree


def key_text(key: Any) -> str:
    """Return an index: i, i:j, i:j:2, or [i, j], in which "..." stands for many entries."""
    if isinstance(key, slice):
        start, stop, step = key.start or 0, key.stop, key.step or 1
        if step == 1 and stop == start + 1:
            return str(start)
        start, stop = (start, "" if stop == -1 else stop) if step < 0 else (start or "", stop)
        return f"{start}:{'' if stop is None else stop}{'' if step == 1 else f':{step}'}"
    entries = np.flatnonzero(key) if np.asarray(key).dtype == bool else np.asarray(key)
    return (
        str(entries.tolist()) if entries.size <= LISTED else f"[{entries.flat[0]}, ..., {entries.flat[-1]}]"
    )


def block(read: Reader, e: Any, *args: Tree) -> Tree:
    """Return a block matrix."""
    return Tree("block", tuple(a if a.head == "row" else Tree("row", (a,)) for a in args))


def row(*args: Tree) -> Tree:
    """Return (a, b, ...), and the argument itself where there is one."""
    return Tree("row", args) if len(args) > 1 else args[0]


def geometric(read: Reader, e: Any, x: Tree) -> Tree:
    """Return geo mean(x), with the exponents where they differ."""
    if len(set(e.w)) == 1:
        return Tree("geo mean", (x,))
    return Tree("weighted geo mean", (x, Tree("row", tuple(number(float(w)) for w in e.w))))


ATOMS: dict[str, Callable[..., Tree]] = {
    **dict.fromkeys(TRANSPARENT, lambda read, e, x: x),
    "AddExpression": lambda read, e, *args: added(args, e.shape),
    "NegExpression": lambda read, e, x: added([x.times(-1.0)], e.shape),
    "DivExpression": lambda read, e, x, y: divided(x, y),
    "transpose": lambda read, e, x: transposed(x),
    "MulExpression": product, "multiply": hadamard, "Sum": summed, "Trace": traced, "maximum": largest,
    "reshape": reshaped, "Vec": reshaped, "index": indexed, "special_index": indexed, "Vstack": block,
    "Hstack": lambda read, e, *args: row(*args),
    "Concatenate": lambda read, e, *args: block(read, e, *args) if e.axis == 0 < e.ndim - 1 else row(*args),
    "Pnorm": norm, "norm1": norm, "norm_inf": norm,
    "quad_over_lin": squared, "GeoMean": geometric,
    "Power": lambda read, e, x: raised(x, float(dense(e.p.value).flat[0])),
    "QuadForm": lambda read, e, x, P: Tree("form", (x.bare, P.bare), x.factor**2 * P.factor),
    "MatrixFrac": lambda read, e, x, P: Tree("inverse form", (x, P)),
    "rel_entr": lambda read, e, x, y: Tree(f"x log {'x' if y == ONE else 'y'}", (x, divided(x, y))),
    "entr": lambda read, e, x: Tree("x log x", (x,), -1.0),
    "abs": lambda read, e, x: unsigned(x, e.args[0]).under("abs"),
    "normNuc": lambda read, e, x: unsigned(x, e.args[0]).under("nuclear norm"),
    "sigma_max": lambda read, e, x: unsigned(x, e.args[0]).under("spectral norm"),
    "diag_vec": lambda read, e, x: x.under("Diag"), "diag_mat": lambda read, e, x: x.under("diag"),
}  # fmt: skip
NAMES = {"log_det": "log det", "log_sum_exp": "log sum exp", "minimum": "min"}  # of other functions

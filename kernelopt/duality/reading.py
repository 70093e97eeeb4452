"""From cvxpy's expressions to the tree of the writer; `READERS` lists the atoms by name."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import cvxpy as cp
import numpy as np

from kernelopt.duality.squares import (
    Excess,
    KernelProducts,
    PositivePart,
    QuadraticForms,
    QuadraticLengths,
)
from kernelopt.duality.symbols import Role, Symbols, dense
from kernelopt.duality.tree import (
    IDENTITY,
    ONE,
    ONES,
    Tree,
    added,
    divided,
    entrywise,
    inner,
    is_one,
    multiplied,
    number,
    same_entries,
    square,
    total,
    transposed,
    with_ones,
)
from kernelopt.duality.written import Written, latex_name, name_of
from kernelopt.language.combination import Combination
from kernelopt.language.fidelity import Difference

TRANSPARENT = (
    "Promote", "Vec", "symmetric_wrap", "psd_wrap", "nonneg_wrap", "nonpos_wrap", "nsd_wrap", "broadcast_to",
    "Distance", "TripletGains", "FrobeniusNorm", "conj", "real", "skew_symmetric_wrap", "hermitian_wrap",
)  # fmt: skip
UNIFORM = ("Promote", "broadcast_to", "NegExpression", "multiply", "DivExpression")


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
        if id(e) in self.substitutes:
            return self.substitutes[id(e)]
        tree = self.node(e, role)
        if type(e).__name__ in UNIFORM and tree.scalar:  # one number for all entries
            return tree
        return tree if tree.shape == tuple(e.shape) else replace(tree, shape=tuple(e.shape))

    def node(self, e: Any, role: Role) -> Tree:
        """Return the tree of a node, whose shape may still be that of an argument."""
        kind = type(e).__name__.removesuffix("Approx")
        if isinstance(e, cp.Constant):
            return self.symbols.constant(e, role)
        if not e.args:
            return self.leaf(e)
        if isinstance(e, QuadraticForms):
            return self.forms(e)
        if isinstance(e, PositivePart):
            G = added([self(e.G)], tuple(e.G.shape))
            return square(replace(Tree("plus", (G,)), shape=tuple(e.G.shape)))
        if isinstance(e, Excess):
            S, alpha = self(e.args[0]), self(e.what[1])
            return added([S, multiplied([alpha, transposed(alpha)], S.shape).times(-1.0)], S.shape)
        if isinstance(e, KernelProducts):
            W = self(e.matrix)
            return self.each(e.grams, lambda K: inner(K, W))
        if isinstance(e, Combination):
            return self.kernel(e)
        if isinstance(e, Difference):
            return self.difference(e.args[0])
        if kind in TRANSPARENT:
            return self(e.args[0], role)
        known = READERS.get(kind)
        return known(self, e) if known else Tree("call", tuple(map(self, e.args)), 1.0, kind)

    def leaf(self, leaf: Any) -> Tree:
        """Return the name of a variable or a parameter."""
        name = self.names.get(leaf.id, leaf.name())
        if isinstance(leaf, cp.Parameter):
            self.symbols.parameter(leaf, name)
        symmetric = leaf.ndim == 2 and leaf.is_symmetric()
        return Tree("symmetric" if symmetric else "name", (), 1.0, name_of(name), tuple(leaf.shape))

    def each(self, grams: Any, of: Callable[[Tree], Tree]) -> Tree:
        """Return (f(K_m))_m, or f(K) for a stack of one."""
        K = Tree("symmetric", (), 1.0, self.symbols.member(self.symbols.stack(grams)), tuple(grams.shape[1:]))
        tree = of(K)
        return tree if len(grams) == 1 else Tree("each", (tree.bare,), tree.factor)

    def forms(self, e: QuadraticForms) -> Tree:
        """Return (alpha'K_m alpha)_m, or (alpha'K_m alpha / gamma)_m."""
        alpha, gamma = self(e.alpha), None if e.gamma is None else self(e.gamma)
        length = isinstance(e, QuadraticLengths)

        def form(K: Tree | None) -> Tree:
            tree = square(alpha) if K is None else Tree("form", (alpha, K))
            tree = Tree("power", (tree,), 1.0, 0.5) if length else tree
            return tree if gamma is None else divided(tree, gamma, ())

        grams = e.what[1]
        return form(None) if is_identity(grams) else self.each(grams, form)

    def kernel(self, e: Combination) -> Tree:
        """Return K(theta)."""
        letter, weights = self.symbols.stack(e.grams), self(e.weights)
        name = Tree("apply", (weights,), 1.0, Written(letter, latex_name(letter)), tuple(e.shape))
        one = self.symbols.member(letter)
        self.symbols.noted(name, weights, one, len(e.grams))
        return name

    def difference(self, e: Any) -> Tree:
        """Return K - S, with S0, S1, ... for the matrices that a kernel is to be near to."""
        for arg in e.args:
            found = arg.args[0] if type(arg).__name__ == "NegExpression" else arg
            if isinstance(found, cp.Constant):
                self.symbols.declare(found.value, self.next_similarity(), "a given similarity")
        return self(e)

    def next_similarity(self) -> str:
        """Return S0, S1, ... in the order in which `dualize` counts them."""
        count = 0
        while f"S{count}" in self.symbols.taken:
            count += 1
        return f"S{count}"


def is_identity(grams: Any) -> bool:
    """Whether a stack is the identity matrix alone."""
    return len(grams) == 1 and np.array_equal(grams.gram(0), np.eye(grams.n_points))


def data(read: Reader, e: Any, role: Role) -> Tree:
    """Return the name of a constant that multiplies, also of equal entries, which alone are a number."""
    if type(e).__name__ == "transpose":
        return transposed(data(read, e.args[0], role))
    if type(e).__name__ == "NegExpression":
        return data(read, e.args[0], role).times(-1.0)
    tree = read.symbols.matrix(dense(e.value), str(e.name()) if isinstance(e, cp.Constant) else "", role)
    return tree if tree.shape else replace(tree, shape=tuple(e.shape))


def constant_array(e: Any) -> Any:
    """Return the array of a constant that is no number; None of other expressions."""
    if not e.is_constant() or e.parameters() or e.size == 1:
        return None
    return dense(e.value)


def factors(e: Any) -> list[Any]:
    """Return the factors of a product of matrices, from left to right.

    In y * x, with a constant y, the first factor is the matrix Diag(y), which is the pair ("Diag", y).
    """
    kind = type(e).__name__
    if kind == "MulExpression" and all(a.size > 1 and a.ndim <= 2 for a in e.args):
        return [f for a in e.args for f in factors(a)]
    if kind in ("Vec", "reshape") and e.args[0].ndim == 1 and e.ndim == 1:
        return factors(e.args[0])
    if kind == "multiply" and e.ndim == 1 and all(a.size > 1 for a in e.args):
        for i, a in enumerate(e.args):
            array = constant_array(a)
            equal = (
                e.args[1 - i].is_constant() or type(e.args[1 - i]).__name__ == "Promote"
            )  # y * (s 1) = s y
            if array is not None and not same_entries(array) and not equal:
                return [("Diag", a), *factors(e.args[1 - i])]
    return [e]


def product(read: Reader, e: Any) -> Tree:
    """Return A x, a'x, c x, or x y' of a row and a column."""
    if min(arg.size for arg in e.args) == 1:
        return multiplied([read(arg, Role.FACTOR) for arg in e.args], tuple(e.shape))
    parts = factors(e)
    trees = [factor(read, part, k < len(parts) - 1) for k, part in enumerate(parts)]
    if len(trees) == 2:
        for one, other in (trees, trees[::-1]):  # k 1'x
            ones = one.args[0] if one.head == "transpose" else one
            if ones.head == "name" and ones.data == ONES and ones.ndim == 1:
                return total(other, e.args[0].size).times(one.factor)
    units = [t for t in trees if t.data == IDENTITY]
    kept = [t for t in trees if t.data != IDENTITY] or trees[:1]
    size = float(np.prod([t.factor for t in units if t not in kept]))
    return multiplied(kept, tuple(e.shape)).times(size)


def factor(read: Reader, part: Any, before: bool) -> Tree:
    """Return one factor of a product; a vector before others is a row."""
    if isinstance(part, tuple):
        inside = read(part[1], Role.FACTOR)
        return Tree("call", (inside,), 1.0, "Diag", (part[1].size, part[1].size))
    array = constant_array(part)
    if array is not None and same_entries(array) and array.ndim == 1:
        tree = Tree("name", (), float(array[0]), ONES, array.shape)
    elif array is not None:
        tree = data(read, part, Role.SLOPE if array.ndim == 1 else Role.FACTOR)
    else:
        tree = with_ones(read(part), tuple(part.shape)) if part.ndim == 1 else read(part)
        inside = part.args[0] if part.args else part
        if part.ndim == 1 and type(part).__name__ in ("reshape", "Vec") and min(inside.shape, default=1) > 1:
            tree = Tree("call", (tree.bare,), tree.factor, "vec", tuple(part.shape))  # elsewhere it is X
    return transposed(tree) if part.ndim == 1 and before else tree


def hadamard(read: Reader, e: Any) -> Tree:
    """Return c e, or x * y for products of entries."""
    left, right = (read(a, Role.FACTOR) for a in e.args)
    return entrywise(left, right, tuple(e.shape))


def summed(read: Reader, e: Any) -> Tree:
    """Return the sum of all entries, or over an axis."""
    (arg,) = e.args
    tree = read(arg)
    if e.axis is None:
        return total(tree, arg.size)
    if tree.scalar or is_one(tree):  # promoted to all entries
        return tree.times(arg.size / e.size)
    word = "sum of columns" if e.axis == 0 else "sum of rows"
    return Tree("call", (tree.bare,), tree.factor, word, tuple(e.shape))


def reshaped(read: Reader, e: Any) -> Tree:
    """Return the argument: as a row where it becomes one, and as it is elsewhere."""
    (arg,) = e.args
    tree = read(arg)
    if len(e.shape) == 2 and e.shape[0] == 1 < e.shape[1] and arg.ndim == 1:
        return transposed(replace(tree, shape=tuple(arg.shape)))
    if tree.head == "transpose" and e.ndim == 1:
        return tree.args[0].times(tree.factor)
    if e.ndim == 2 and min(e.shape) > 1 and arg.ndim == 1:
        inside = arg.args[0] if type(arg).__name__ in ("Vec", "reshape") and arg.args else None
        if inside is None or inside.shape != e.shape:
            return Tree("call", (tree.bare,), tree.factor, "mat", tuple(e.shape))
    return tree


def unsigned(tree: Tree, shape: tuple[int, ...] = ()) -> Tree:
    """Return an expression whose sign does not count, with a plus where all its terms have a minus."""
    if tree.scalar and shape != () and not is_one(tree):
        tree = with_ones(tree, shape)
    tree = added([tree], tree.shape)
    if tree.head != "sum":
        return tree
    sign = -1.0 if all(a.factor < 0 for a in tree.args) else 1.0
    sizes = Counter(abs(a.factor) for a in tree.args)
    k = sizes.most_common(1)[0][0]  # |2 x - 2 y| is 2 |x - y|
    k = k if sizes[k] > len(tree.args) / 2 else 1.0
    return replace(tree, args=tuple(a.times(sign / k) for a in tree.args), factor=k)


def squared(read: Reader, e: Any) -> Tree:
    """Return |x|^2, or |x|^2 / y."""
    x, y = e.args
    tree = replace(unsigned(read(x), tuple(x.shape)), shape=listed_shape(x))
    return divided(quadratic(read, tree), read(y), ())


def listed_shape(e: Any) -> tuple[int, ...]:
    """Return the shape of an expression, or of the matrix of which it lists the entries."""
    while type(e).__name__ in ("reshape", "Vec"):
        e = e.args[0]
    return tuple(e.shape)


def quadratic(read: Reader, x: Tree) -> Tree:
    """Return |x|^2, and v'Q v for x = A B v with constants A and B, where Q = B'A'A B."""
    names = x.args[:-1] if x.head == "product" else ()
    if len(names) < 2 or x.args[-1].ndim != 1 or not all(is_constant(a) for a in names):
        return square(x)
    Q = multiplied([transposed(Tree("product", names, shape=(2, 2))), *names], (2, 2))
    return Tree("form", (x.args[-1], Tree("symmetric", (), 1.0, read.symbols.defined("Q", Q))), x.factor**2)


def is_constant(tree: Tree) -> bool:
    """Whether a matrix is a name of data, its transpose, or Diag of one."""
    if tree.head in ("transpose", "call"):
        return is_constant(tree.args[0])
    return tree.head in ("name", "symmetric") and tree.ndim > 0 and tree.data != IDENTITY


def powered(read: Reader, e: Any) -> Tree:
    """Return x^p."""
    p, x = float(dense(e.p.value).flat[0]), read(e.args[0])
    if p == 0:
        return ONE
    factor = x.factor**p if x.factor > 0 or p == int(p) else 1.0
    inside = x if x.factor < 0 and p != int(p) else x.bare
    return Tree("power", (inside,), factor, p)


def normed(p: float | None) -> Callable[[Reader, Any], Tree]:
    """Return the reader of a norm."""

    def read_norm(read: Reader, e: Any) -> Tree:
        x, exponent = unsigned(read(e.args[0]), tuple(e.args[0].shape)), float(e.p if p is None else p)
        matrix = exponent == 2 and len(listed_shape(e.args[0])) == 2 and min(listed_shape(e.args[0])) > 1
        each = " by columns" if e.axis == 0 else " by rows" if e.axis is not None else ""
        return Tree("norm", (x.bare,), abs(x.factor), ("F" if matrix and not each else exponent, each))

    return read_norm


def largest(read: Reader, e: Any) -> Tree:
    """Return (e)_+ for the maximum with zero, else max(a, b)."""
    args = [read(a) for a in e.args]
    rest = [a for a in args if a.factor]
    if (
        len(args) == 2 and len(rest) == 1 and rest[0].ndim < 2
    ):  # of a matrix, (X)_+ is that of its eigenvalues
        return (
            Tree("plus", (rest[0].bare,), rest[0].factor) if rest[0].factor > 0 else Tree("plus", tuple(rest))
        )
    return Tree("call", tuple(args), 1.0, "max")


def traced(read: Reader, e: Any) -> Tree:
    """Return tr(X), and <A, X> for tr(A X)."""
    (arg,) = e.args
    if type(arg).__name__ == "MulExpression" and not any(a.size == 1 for a in arg.args):
        A, X = arg.args
        return inner(transposed(read(A, Role.FACTOR)), read(X, Role.FACTOR))
    x = read(arg)
    return Tree("call", (x.bare,), x.factor, "tr")


def called(name: str) -> Callable[[Reader, Any], Tree]:
    """Return the reader of a linear function, of which a factor is taken out."""

    def read_call(read: Reader, e: Any) -> Tree:
        x = read(e.args[0])
        return Tree("call", (x.bare,), x.factor, name)

    return read_call


def geometric(read: Reader, e: Any) -> Tree:
    """Return geo mean(x), with the exponents where they differ."""
    weights, x = [float(w) for w in e.w], read(e.args[0])
    if len(set(weights)) == 1:
        return Tree("call", (x,), 1.0, "geo mean")
    return Tree("call", (x, Tree("row", tuple(map(number, weights)))), 1.0, "weighted geo mean")


def sized(name: str) -> Callable[[Reader, Any], Tree]:
    """Return the reader of a norm of matrices."""

    def read_size(read: Reader, e: Any) -> Tree:
        x = unsigned(read(e.args[0]), tuple(e.args[0].shape))
        return Tree("call", (x.bare,), abs(x.factor), name)

    return read_size


def plain(name: str) -> Callable[[Reader, Any], Tree]:
    """Return the reader of any other function."""
    return lambda read, e: Tree("call", tuple(map(read, e.args)), 1.0, name)


def entropy(read: Reader, e: Any) -> Tree:
    """Return a log(a / b), entry by entry."""
    a, b = (read(arg) for arg in e.args)
    return Tree("entropy", (a, divided(a, b, a.shape)))


def indexed(read: Reader, e: Any) -> Tree:
    """Return x[i], or X[i:j, k:l]."""
    x = read(e.args[0])
    if e.size == e.args[0].size == 1:
        return x
    return Tree("index", (x.bare,), x.factor, key_text(e), tuple(e.shape))


def key_text(e: Any) -> str:
    """Return the key of an index: i, or i:j, or "..." for a list of entries."""
    keys = e.key if isinstance(e.key, tuple) else ()
    if not keys or not all(isinstance(key, slice | int) for key in keys):
        return "..."
    parts = []
    for key in keys:
        if isinstance(key, int):
            parts.append(str(key))
            continue
        single = key.stop is not None and key.stop == (key.start or 0) + 1
        parts.append(str(key.start or 0) if single else f"{key.start or ''}:{key.stop or ''}")
    return ", ".join(parts)


def block(read: Reader, e: Any) -> Tree:
    """Return a block matrix."""
    rows = [arg.args if type(arg).__name__ == "Hstack" else [arg] for arg in e.args]
    return Tree("block", tuple(Tree("row", tuple(map(read, row))) for row in rows))


def stacked(read: Reader, e: Any) -> Tree:
    """Return (a, b, ...), and the argument itself where there is one."""
    if len(e.args) == 1:
        return read(e.args[0])
    return Tree("row", tuple(map(read, e.args)))


def form(read: Reader, e: Any) -> Tree:
    """Return x'P x."""
    x, P = (read(arg) for arg in e.args)
    return Tree("form", (x.bare, P.bare), x.factor**2 * P.factor)


def negative(read: Reader, e: Any) -> Tree:
    """Return -e."""
    return added([read(e.args[0]).times(-1.0)], tuple(e.shape))


def summed_up(read: Reader, e: Any) -> Tree:
    """Return a sum of expressions."""
    return added([read(a) for a in e.args], tuple(e.shape))


def quotient(read: Reader, e: Any) -> Tree:
    """Return a / b."""
    return divided(read(e.args[0]), read(e.args[1]), tuple(e.shape))


def transposition(read: Reader, e: Any) -> Tree:
    """Return X'."""
    return transposed(read(e.args[0]))


READERS: dict[str, Callable[[Reader, Any], Tree]] = {
    "AddExpression": summed_up, "NegExpression": negative, "MulExpression": product, "multiply": hadamard,
    "DivExpression": quotient, "Sum": summed, "Trace": traced, "transpose": transposition,
    "reshape": reshaped, "index": indexed, "special_index": indexed, "Vstack": block, "Hstack": stacked,
    "Pnorm": normed(None), "norm1": normed(1.0), "norm_inf": normed(np.inf),
    "quad_over_lin": squared, "Power": powered, "power": powered, "QuadForm": form,
    "MatrixFrac": lambda read, e: Tree("inverse form", tuple(map(read, e.args))),
    "abs": lambda read, e: (lambda x: Tree("abs", (x.bare,), abs(x.factor)))(unsigned(read(e.args[0]))),
    "maximum": largest, "max": plain("max"), "min": plain("min"), "minimum": plain("min"),
    "diag_vec": called("Diag"), "diag_mat": called("diag"), "log": plain("log"), "exp": plain("exp"),
    "rel_entr": entropy, "logistic": plain("logistic"), "log_det": plain("log det"),
    "entr": lambda read, e: (lambda x: Tree("entropy", (x, x), -1.0))(read(e.args[0])),
    "log_sum_exp": plain("log sum exp"), "normNuc": sized("nuclear norm"), "GeoMean": geometric,
    "lambda_max": plain("lambda_max"), "sigma_max": sized("spectral norm"),
}  # fmt: skip

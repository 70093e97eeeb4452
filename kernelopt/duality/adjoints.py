"""The adjoints of affine atoms: what a weight on an expression is as a weight on each of its arguments."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import cvxpy as cp
import numpy as np
import scipy.sparse as sp
from cvxpy.atoms.affine.promote import promote
from cvxpy.atoms.affine.wraps import Wrap

from kernelopt.duality.squares import KernelProducts
from kernelopt.structure.affine import affine
from kernelopt.structure.trees import times, with_args

Adjoint = Callable[[Any, int, cp.Expression], cp.Expression]
ADJOINTS: dict[str, Adjoint] = {}


def adjoint_of(*names: str) -> Callable[[Adjoint], Adjoint]:
    """Register the adjoint of atoms by the names of their classes."""

    def keep(rule: Adjoint) -> Adjoint:
        ADJOINTS.update(dict.fromkeys(names, rule))
        return rule

    return keep


def adjoint(node: Any, k: int, W: cp.Expression) -> cp.Expression:
    """Return the weight V on args[k] with <W, node> = <V, args[k]> + (terms without args[k]).

    An atom without a rule has the transpose of its matrix.
    """
    rule = ADJOINTS.get(type(node).__name__) or (same if isinstance(node, Wrap) else by_matrix)
    found, shape = rule(node, k, W), node.args[k].shape
    if is_number(found) and type(found) is not cp.Constant:
        found = cp.Constant(found.value)
    return found if found.shape == shape else cp.reshape(found, shape, order="F")


def is_number(e: cp.Expression) -> bool:
    """Whether an expression is constant and has no parameters."""
    return bool(e.is_constant() and not e.parameters())


def value_of(e: Any) -> Any:
    """Return the value of an expression that is constant and has no parameters, None of any other."""
    if isinstance(e, int | float):
        return np.asarray(float(e))
    if not is_number(e):
        return None
    value = e.value
    return np.asarray(value.toarray() if hasattr(value, "toarray") else value, dtype=float)


def uniform(W: cp.Expression) -> cp.Expression | None:
    """Return the scalar w of an expression that has w in every entry, None where entries may differ."""
    if W.size == 1:
        return W if W.ndim == 0 else cp.sum(W)
    if type(W).__name__ in ("Promote", "broadcast_to") and W.args[0].size == 1:
        return uniform(W.args[0])
    value = value_of(W)
    return None if value is None or np.ptp(value) else cp.Constant(value.flat[0])


def spread(w: cp.Expression, shape: tuple[int, ...]) -> cp.Expression:
    """Return an expression in a larger shape, as numpy broadcasts it."""
    if w.shape == shape:
        return w
    value = value_of(w)
    if value is not None:
        return cp.Constant(np.broadcast_to(value, shape).copy())
    return promote(w, shape) if w.ndim == 0 else cp.broadcast_to(w, shape)


def along(axis: Any, W: cp.Expression, shape: tuple[int, ...]) -> cp.Expression:
    """Return the weights of a function of the slices along an axis, for every entry of its argument."""
    if axis is None:
        w = uniform(W)
        return spread(W if w is None else w, shape)
    kept = np.array(shape)
    kept[list(np.atleast_1d(axis))] = 1
    return spread(cp.reshape(W, tuple(kept), order="F"), shape)


def folded(W: cp.Expression, shape: tuple[int, ...]) -> cp.Expression:
    """Return the sum of a weight over the entries to which an argument of a smaller shape was broadcast."""
    if W.shape == shape:
        return W
    if int(np.prod(shape)) == 1:
        w = uniform(W)
        return cp.sum(W) if w is None else times(W.size, w)
    sizes = (1,) * (W.ndim - len(shape)) + tuple(shape)
    return cp.sum(W, axis=tuple(i for i, n in enumerate(sizes) if n != W.shape[i] or i < W.ndim - len(shape)))


def outer(a: cp.Expression, b: cp.Expression) -> cp.Expression:
    """Return a b' of two vectors."""
    return cp.reshape(a, (a.size, 1), order="F") @ cp.reshape(b, (1, b.size), order="F")


@adjoint_of("ones_wrap")
def same(node: Any, k: int, W: cp.Expression) -> cp.Expression:
    """Return the weight itself: of an atom that is the identity."""
    return W


ADJOINTS["NegExpression"] = lambda node, k, W: -W
ADJOINTS["AddExpression"] = lambda node, k, W: folded(W, node.args[k].shape)
ADJOINTS["Promote"] = ADJOINTS["broadcast_to"] = ADJOINTS["AddExpression"]
ADJOINTS["DivExpression"] = lambda node, k, W: folded(W / node.args[1], node.args[0].shape)
ADJOINTS["Sum"] = lambda node, k, W: along(node.axis, W, node.args[0].shape)
ADJOINTS["reshape"] = lambda node, k, W: cp.reshape(W, node.args[0].shape, order=node.order)
ADJOINTS["diag_vec"] = ADJOINTS["diag_mat"] = lambda node, k, W: cp.diag(W, node.k)
ADJOINTS["transpose"] = lambda node, k, W: W.T if node.axes is None else by_matrix(node, k, W)
ADJOINTS["Trace"] = lambda node, k, W: W * np.eye(node.args[0].shape[0])


@adjoint_of("Combination")
def products(node: Any, k: int, W: cp.Expression) -> cp.Expression:
    """Return (<K_m, W>)_m."""
    matrix = np.asarray(node.grams.vectorized())
    return KernelProducts(matrix.T @ cp.vec(W, order="F"), node.grams)


@adjoint_of("multiply")
def by_entries(node: Any, k: int, W: cp.Expression) -> cp.Expression:
    """Return C * W, entry by entry."""
    C = node.args[1 - k]
    if W.size > 1 and C.size == 1 and C.ndim:
        C = cp.reshape(C, (), order="F")
    return folded(cp.multiply(C, W), node.args[k].shape)


@adjoint_of("MulExpression")
def of_product(node: Any, k: int, W: cp.Expression) -> cp.Expression:
    """Return A'W of A X, and W B' of X B."""
    A, B = node.args
    if max(A.ndim, B.ndim) > 2:
        return by_matrix(node, k, W)
    if k == 1:
        if A.ndim == 1:
            return A * W if B.ndim == 1 else outer(A, W)
        return A.T @ W
    if B.ndim == 1:
        return W * B if A.ndim == 1 else outer(W, B)
    return B @ W if A.ndim == 1 else W @ B.T


@adjoint_of("Hstack", "Vstack", "Concatenate")
def of_stack(node: Any, k: int, W: cp.Expression) -> cp.Expression:
    """Return the part of the weight at the position of args[k]."""
    kind, arg = type(node).__name__, node.args[k]
    if kind == "Vstack" and arg.ndim < 2:
        return W[k] if W.ndim == 2 else W[k : k + 1]
    axis = node.axis or 0 if kind == "Concatenate" else int(kind == "Hstack" and arg.ndim > 1)
    ends = np.cumsum([0, *(a.shape[axis] if a.ndim else 1 for a in node.args)])
    return W[(slice(None),) * axis + (slice(ends[k], ends[k + 1]),)]


def by_matrix(node: Any, k: int, W: cp.Expression) -> cp.Expression:
    """Return M'vec(W) with the matrix M of an affine atom, which is linear in an argument of parameters."""
    flat, shape = W if W.ndim == 1 else cp.vec(W, order="F"), node.args[k].shape
    args = [a if a.is_constant() else cp.Constant(np.zeros(a.shape)) for a in node.args]
    given = [i for i, a in enumerate(node.args) if i != k and a.parameters()]
    if not given and node.size == 1:
        return cp.sum(W) * matrix_of(node, args, k).toarray().reshape(shape, order="F")
    if not given:
        return matrix_of(node, args, k).T.tocsr() @ flat
    (i,), parts = given, []
    entries = cp.vec(args[i], order="F")
    for entry, unit in enumerate(np.eye(entries.size)):
        args[i] = cp.Constant(unit.reshape(node.args[i].shape, order="F"))
        parts.append(entries[entry] * (matrix_of(node, args, k).T.tocsr() @ flat))
    return sum(parts[1:], parts[0])


def matrix_of(node: Any, args: list[cp.Expression], k: int) -> Any:
    """Return the matrix of an affine atom by one argument, where the others have the given values."""
    free = cp.Variable(node.args[k].shape)
    read = affine(with_args(node, [*args[:k], free, *args[k + 1 :]]))
    found = None if read is None else read.matrices.get(free)
    return sp.csr_array((node.size, free.size)) if found is None else found

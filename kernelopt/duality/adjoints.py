"""The adjoints of affine atoms: what a weight on an expression is as a weight on each of its arguments."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import cvxpy as cp
import numpy as np
import scipy.sparse as sp
from cvxpy.atoms.affine.wraps import Wrap

from kernelopt.duality.squares import KernelProducts
from kernelopt.structure.affine import affine
from kernelopt.structure.trees import with_args
from kernelopt.validation import Array


def adjoint(node: Any, k: int, W: cp.Expression) -> cp.Expression:
    """Return the weight V on args[k] with <W, node> = <V, args[k]> + (terms without args[k]).

    An atom without a rule has the transpose of its matrix.
    """
    kind = "ones_wrap" if isinstance(node, Wrap) else type(node).__name__
    found = ADJOINTS.get(kind, by_matrix)(node, k, W)
    value = value_of(found)
    named = value is None or isinstance(found, cp.Constant)
    return in_shape(found if named else cp.Constant(value), node.args[k].shape)


def value_of(e: cp.Expression) -> Any:
    """Return the value of an expression that is constant and has no parameters, None of any other."""
    return None if not e.is_constant() or e.parameters() else dense(e.value)


def dense(value: Any) -> Array:
    """Return a value as a dense array."""
    return np.asarray(value.toarray() if hasattr(value, "toarray") else value, dtype=float)


def in_shape(e: Any, shape: tuple[int, ...]) -> Any:
    """Return an expression in another shape of the same size."""
    return e if e.shape == shape else cp.reshape(e, shape, order="F")


def uniform(W: cp.Expression) -> cp.Expression | None:
    """Return the scalar w of an expression that has w in every entry, None where entries may differ."""
    if W.size == 1:
        return W if W.ndim == 0 else cp.sum(W)
    if type(W).__name__ in ("Promote", "broadcast_to", "reshape", "NegExpression"):
        w = uniform(W.args[0])
        return -w if w is not None and type(W).__name__ == "NegExpression" else w
    value = value_of(W)
    return None if value is None or np.ptp(value) else cp.Constant(value.flat[0])


def spread(W: cp.Expression, shape: tuple[int, ...], axis: Any = None) -> cp.Expression:
    """Return an expression in a larger shape, as numpy broadcasts it; along an axis, one for each slice."""
    if axis is not None:
        kept = np.array(shape)
        kept[list(np.atleast_1d(axis))] = 1
        W = in_shape(W, tuple(kept))
    if W.ndim == 0:
        return cp.promote(W, shape)  # cvxpy compiles it faster than the other
    return W if W.shape == shape else cp.broadcast_to(W, shape)


def products(node: Any, k: int, W: cp.Expression) -> cp.Expression:
    """Return (<K_m, W>)_m."""
    matrix = np.asarray(node.grams.vectorized())
    return KernelProducts(matrix.T @ cp.vec(W, order="F"), node.grams)


def of_product(node: Any, k: int, W: cp.Expression) -> cp.Expression:
    """Return A'W of A X, and W B' of X B."""
    A, B = node.args
    if max(A.ndim, B.ndim) > 2:
        return by_matrix(node, k, W)
    C = node.args[1 - k]
    if C.ndim == 1:
        return C * W if W.ndim == 0 else cp.outer(C, W) if k else cp.outer(W, C)
    return A.T @ W if k else W @ B.T if W.ndim == 2 else B @ W


def of_stack(node: Any, k: int, W: cp.Expression) -> cp.Expression:
    """Return the part of the weight at the position of args[k]."""
    kind = type(node).__name__
    axis = node.axis or 0 if kind == "Concatenate" else int(kind == "Hstack" and node.ndim > 1)
    ends = np.cumsum([0, *(a.size for a in node.args)]) * node.shape[axis] // node.size
    return W[(slice(None),) * axis + (slice(ends[k], ends[k + 1]),)]


def by_matrix(node: Any, k: int, W: cp.Expression) -> cp.Expression:
    """Return M'vec(W) with the matrix M of an affine atom; by its columns where these have parameters."""
    x = cp.Variable(node.args[k].shape)
    args = [a if a.is_constant() else cp.Constant(np.zeros(a.shape)) for a in node.args]

    def at(argument: Any) -> Any:
        return with_args(node, [*args[:k], argument, *args[k + 1 :]])

    if at(x).parameters():
        units = np.eye(x.size).reshape((-1, *x.shape), order="F")
        return cp.hstack([cp.sum(cp.multiply(W, at(cp.Constant(unit)))) for unit in units])
    read = affine(at(x))
    M = sp.csr_array((node.size, x.size)) if read is None or x not in read.matrices else read.matrices[x]
    if node.size == 1:
        return cp.sum(W) * M.toarray().reshape(x.shape, order="F")
    return M.T.tocsr() @ (W if W.ndim == 1 else cp.vec(W, order="F"))


def summed(node: Any, k: int, W: cp.Expression) -> cp.Expression:
    """Return the weight, or its sum over the entries to which an argument was broadcast."""
    shape, w = node.args[k].shape, uniform(W)
    if np.prod(shape) == 1 and w is not None:
        return W.size * w
    sizes = (0,) * (W.ndim - len(shape)) + tuple(shape)
    axes = tuple(i for i, n in enumerate(sizes) if n != W.shape[i])
    return cp.sum(W, axis=axes if len(axes) < W.ndim else None) if axes else W


ADJOINTS: dict[str, Callable[[Any, int, cp.Expression], cp.Expression]] = {
    "AddExpression": summed, "Promote": summed, "broadcast_to": summed,
    "ones_wrap": lambda node, k, W: W,
    "NegExpression": lambda node, k, W: -W,
    "DivExpression": lambda node, k, W: W / node.args[1],
    "multiply": lambda node, k, W: cp.multiply(node.args[1 - k], W),
    "MulExpression": of_product, "Combination": products,
    "Sum": lambda node, k, W: spread(W, node.args[0].shape, node.axis),
    "Hstack": of_stack, "Vstack": of_stack, "Concatenate": of_stack,
    "reshape": lambda node, k, W: cp.reshape(W, node.args[0].shape, order=node.order),
    "diag_vec": lambda node, k, W: cp.diag(W, node.k), "diag_mat": lambda node, k, W: cp.diag(W, node.k),
    "transpose": lambda node, k, W: W.T if node.axes is None else by_matrix(node, k, W),
    "Trace": lambda node, k, W: W * np.eye(node.args[0].shape[0]),
}  # fmt: skip

"""The kernel node: a weighted sum of Gram matrices as a cvxpy expression."""

from __future__ import annotations

from typing import Any

import cvxpy as cp
import cvxpy.lin_ops.lin_utils as lu
from cvxpy.atoms.affine.affine_atom import AffAtom
from numpy.typing import ArrayLike

from kernelopt.errors import ShapeError
from kernelopt.grams import Grams, as_grams
from kernelopt.validation import Array, as_expression, as_symmetric, asymmetry, numeric, taken_as_symmetric


class Combination(AffAtom):  # type: ignore[misc]
    """The expression sum_i weights_i K_i, shape (N, N), symmetric; made by `combine`.

    Parameters
    ----------
    weights : affine cvxpy expression of shape (m,)
        One for each kernel.
    grams : Grams of shape (m, N, N)
        The kernels K_i.
    """

    def __init__(self, weights: cp.Expression, grams: Grams) -> None:
        self.grams = grams
        super().__init__(weights)

    @property
    def weights(self) -> cp.Expression:
        """The weights, a cvxpy expression of shape (m,)."""
        return self.args[0]

    def get_data(self) -> list[Any]:
        return [self.grams]

    def shape_from_args(self) -> tuple[int, int]:
        return self.grams.shape[1:]

    def sign_from_args(self) -> tuple[bool, bool]:
        return False, False  # unknown, since the entries are not evaluated here

    def is_symmetric(self) -> bool:
        return True

    def is_hermitian(self) -> bool:
        return True

    def name(self) -> str:
        return f"combine({self.args[0].name()}, {len(self.grams)} kernels)"

    def numeric(self, values: list[Array]) -> Array:
        return self.grams.combine(values[0])

    def __getitem__(self, key: Any) -> cp.Expression:
        two_slices = isinstance(key, tuple) and len(key) == 2 and all(isinstance(k, slice) for k in key)
        if two_slices and key[0] == key[1]:
            return Combination(self.weights, self.grams.block(key[0]))
        return super().__getitem__(key)

    def graph_implementation(
        self, arg_objs: list[Any], shape: tuple[int, ...], data: Any = None
    ) -> tuple[Any, list[Any]]:
        matrix = data[0].vectorized()
        columns = lu.create_const(matrix, matrix.shape)
        flat = lu.mul_expr(columns, arg_objs[0], (matrix.shape[0],))
        return lu.reshape(flat, shape), []


def combine(weights: cp.Expression | ArrayLike, grams: Grams | ArrayLike) -> Combination:
    """The kernel sum_i weights_i K_i as a cvxpy expression.

    Parameters
    ----------
    weights : cvxpy expression or array of shape (m,)
        Affine in the variables. With `nonneg=True` on the variable the risk of the combination is a
        second-order-cone expression; otherwise it is semidefinite.
    grams : Grams or array of shape (m, N, N)
        The kernels K_i on N points.

    Returns
    -------
    Combination
        A symmetric cvxpy expression of shape (N, N). `K[:n, :n]` is a combination again.

    Raises
    ------
    ShapeError
        If the number of weights is not the number of kernels.

    Examples
    --------
    >>> import cvxpy as cp, numpy as np, kernelopt as ko
    >>> K = ko.combine(cp.Variable(2, nonneg=True), np.array([np.eye(3), np.ones((3, 3))]))
    >>> K.shape, K.is_affine()
    ((3, 3), True)
    """
    stack = as_grams(grams)
    w = as_expression(weights, "weights", ndim=(0, 1, 2))
    if w.ndim == 0 and len(stack) == 1:
        w = cp.reshape(w, (1,), order="F")
    if w.shape != (len(stack),):
        raise ShapeError(
            f"weights must have shape ({len(stack)},), one per kernel, got {w.shape} in combine. "
            f"Create them with cp.Variable({len(stack)}, nonneg=True)."
        )
    return Combination(w, stack)


def as_kernel(K: Any, what: str = "K") -> cp.Expression:
    """Return a kernel as a square cvxpy expression, after checking it."""
    if isinstance(K, Grams):
        raise ShapeError(
            f"{what} must be one kernel of shape (N, N), got a stack: {K!r}. Use combine(weights, grams)."
        )
    matrix = K if isinstance(K, cp.Expression) else numeric(K, what)
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1] or not matrix.size:
        raise ShapeError(
            f"{what} must be a square matrix or expression, got shape {matrix.shape}. "
            "A stack of kernels is combined first: combine(weights, grams)."
        )
    if not isinstance(K, cp.Expression):
        constant = cp.Constant(as_symmetric(matrix, what))
        constant.assumes = taken_as_symmetric({what: asymmetry(matrix)})
        return constant
    return as_expression(K, what, ndim=2)

"""Linear functions and norms of a kernel: trace, entries, alignment, Frobenius norm."""

from __future__ import annotations

from typing import Any

import cvxpy as cp
import numpy as np
from cvxpy.atoms.affine.binary_operators import multiply
from cvxpy.atoms.affine.wraps import Wrap
from numpy.typing import ArrayLike

from kernelopt.errors import ShapeError
from kernelopt.grams import join, triangle
from kernelopt.language.combination import as_kernel
from kernelopt.language.terms import terms
from kernelopt.validation import as_indices, as_targets


def trace(K: Any) -> cp.Expression:
    r"""The trace over all N points.

    For a combination it is :math:`r'\mu` with :math:`r_i = \mathrm{tr}\, K_i`, and needs m numbers.

    Parameters
    ----------
    K : kernel expression or array of shape (N, N)
        An affine expression, or numbers.

    Returns
    -------
    cvxpy expression, scalar and affine
        The sum of the diagonal.

    Examples
    --------
    >>> import numpy as np, kernelopt as ko
    >>> K = ko.combine([2.0, 1.0], [np.eye(2), np.ones((2, 2))])
    >>> float(ko.trace(K).value)
    6.0
    """
    K = as_kernel(K)
    parts = terms(K)
    if parts is None:
        # The trace of cvxpy 1.8 takes an entrywise product for a matrix product.
        return cp.sum(cp.diag(K)) if isinstance(K, multiply) else cp.trace(K)
    return cp.sum([grams.traces @ weights for weights, grams in parts])


def entries(K: Any, rows: ArrayLike, columns: ArrayLike) -> cp.Expression:
    """The entries K[rows[t], columns[t]], shape (T,), without the other entries of the matrix.

    Parameters
    ----------
    K : kernel expression or array of shape (N, N)
        An affine expression, or numbers.
    rows, columns : integer arrays of shape (T,), in 0..N-1
        The indices i of the entries K_ij, and the indices j.

    Raises
    ------
    ShapeError, ParameterError
        If the index vectors differ in length, or an index is out of range.

    Examples
    --------
    >>> import numpy as np, kernelopt as ko
    >>> K = ko.combine([2.0, 1.0], [np.eye(2), np.ones((2, 2))])
    >>> ko.entries(K, [0, 0], [0, 1]).value.tolist()
    [3.0, 1.0]
    """
    K = as_kernel(K)
    i, j = as_indices(rows, K.shape[0], "rows"), as_indices(columns, K.shape[0], "columns")
    if i.size != j.size:
        raise ShapeError(
            f"rows and columns must be index vectors of one positive length, got shapes {i.shape} and "
            f"{j.shape}. Pass one row and one column per entry."
        )
    parts = terms(K)
    if parts is None:
        return K[i, j]
    return cp.sum([grams.entries(i, j).T @ weights for weights, grams in parts])


def alignment(K: Any, y: ArrayLike) -> cp.Expression:
    r"""The inner product :math:`\langle K, yy' \rangle = y'Ky` over the labelled points.

    Parameters
    ----------
    K : kernel expression or array of shape (N, N)
        An affine expression, or numbers.
    y : array of shape (n,), n <= N
        Labels or centred targets of the first points.

    Notes
    -----
    For a combination it is :math:`q'\mu` with :math:`q_i = y'K_iy`, and needs m numbers.
    Divided by n and `frobenius(K)` it is the alignment of K with the labels [1]_.

    References
    ----------
    .. [1] Lanckriet et al., JMLR 5 (2004), section 4.6, Theorem 23.

    Examples
    --------
    >>> import numpy as np, kernelopt as ko
    >>> K = ko.combine([2.0, 1.0], [np.eye(2), np.ones((2, 2))])
    >>> float(ko.alignment(K, [1, -1]).value)
    4.0
    """
    K = as_kernel(K)
    target = as_targets(y)
    n = target.size
    if n > K.shape[0]:
        raise ShapeError(f"y must have at most {K.shape[0]} entries, got {n}. Labelled points come first.")
    parts = terms(K)
    if parts is None:
        return cp.sum(cp.multiply(np.outer(target, target), K[:n, :n]))
    return cp.sum([grams.forms(target) @ weights for weights, grams in parts])


class FrobeniusNorm(Wrap):  # type: ignore[misc]
    """The expression |K|_F of a combination, with its kernel as data; made by `frobenius`."""

    def __init__(self, expression: cp.Expression, kernel: cp.Expression) -> None:
        self.kernel = kernel
        super().__init__(expression)

    def get_data(self) -> list[Any]:
        return [self.kernel]


def frobenius(K: Any) -> cp.Expression:
    r"""The Frobenius norm :math:`\|K\|_F`.

    For a combination it is :math:`\|R \mu\|` with :math:`R'R = S, \ S_{ij} = \langle K_i, K_j \rangle`.

    Parameters
    ----------
    K : kernel expression or array of shape (N, N)
        An affine expression, or numbers.

    Returns
    -------
    cvxpy expression, scalar, convex and non-negative
        It is zero for the zero matrix alone.

    Notes
    -----
    R is the triangular factor of the kernels as vectors, and S is never formed: the norm is as accurate as
    the norm of their sum as a matrix, for kernels of any scales. It costs N^2 m^2 operations once.

    Examples
    --------
    Where two large kernels cancel, the small one is left.

    >>> import numpy as np, kernelopt as ko
    >>> large, small = 1e9 * np.ones((2, 2)), np.array([[3.0, 0.0], [0.0, 4.0]])
    >>> round(float(ko.frobenius(ko.combine([1.0, -1.0], [large + small, large])).value), 6)
    5.0
    """
    K = as_kernel(K)
    return cp.norm(K, "fro") if terms(K) is None else FrobeniusNorm(cp.norm2(stacked(K)), K)


def stacked(K: cp.Expression) -> cp.Expression:
    """Return R mu for a combination K, a vector whose length is the Frobenius norm of K."""
    parts = terms(K) or []
    stack = join([(1.0, grams) for _, grams in parts])
    return triangle(stack) @ cp.hstack([weights for weights, _ in parts])

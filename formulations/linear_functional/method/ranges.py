"""The range of a matrix, and squares of vectors that are known up to a radius."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.linalg

from kernelopt.extend import Array, Ball

INDEPENDENT = 0.5  # |I - W'W| below this shows that the columns are independent; any number below 1 would do
SMALLEST_SINGULAR_VALUE = 0.1  # of Y T: bounds are divided by it, and would be ten times larger than needed


def square(a: Ball) -> Ball:
    """Return |a|^2, each end with one rounding."""
    if a.is_exact:
        return a.dots(a.mid[None]).sum()
    ends = np.maximum(a.absolute().below, 0.0), a.absolute().above
    low, high = (Ball(end).dots(end[None]).sum() for end in ends)
    return Ball.between(low.below, high.above)


@dataclass(frozen=True, eq=False)
class Range:
    """The range of a matrix, by a basis that is orthonormal up to a known error.

    Attributes
    ----------
    columns : array of shape (n, k), Y
        Independent columns with the same range.
    inverse : array of shape (k, k), T
        Y T is orthonormal up to rounding.
    smallest : float
        A lower bound of the singular values of Y T.
    errors : array of shape (k,)
        Bounds of the distances between Y and the exact columns, for which `smallest` and `reach` hold.
    """

    columns: Array
    inverse: Array
    smallest: float
    errors: Array

    @classmethod
    def of(cls, X: Array, errors: Array, keys: tuple[bytes, ...] = ()) -> Range | None:
        r"""Return the range of X; None where its columns are not shown to be independent.

        Parameters
        ----------
        X : array of shape (n, M)
        errors : array of shape (M,)
            Bounds of the distances of the exact columns.
        keys : tuple of M bytes
            Equal keys mean equal exact columns; used where some error is not zero.

        Notes
        -----
        T is the inverse of R in Y = Q R, as doubles, and the product that is computed is W = Y T + E. So the
        singular values of Y T are at least :math:`\sqrt{1 - \|I - W'W\|} - \|E\|`, in Frobenius norms. This
        is positive, which shows that Y T and Y have the same range, up to a condition of about 1e13. Errors
        E_j of the columns lower them by at most :math:`\sum_j |E_j| |T_j|`, T_j row j of T.
        """
        Y, off_by = distinct(X), np.zeros(0)
        if errors.any():
            first = [
                j for j, key in enumerate(keys) if key not in keys[:j] and (X[:, j].any() or errors[j] > 0)
            ]
            Y, off_by = X[:, first], errors[first]
        n, k = Y.shape
        off_by = off_by if off_by.size else np.zeros(k)
        if k == 0:
            return cls(Y, np.zeros((0, 0)), 1.0, off_by)
        R = scipy.linalg.qr(Y, mode="r")[0][:k]
        if k >= n or not np.diag(R).all():
            return None
        T = scipy.linalg.solve_triangular(R, np.eye(k))
        W = Y @ Ball(T)
        off = (W.mid.T @ Ball(W.mid) - np.eye(k)).length
        if not off < INDEPENDENT:
            return None
        low = (Ball(1.0) - off).power(0.5) - Ball(W.rad).length
        smallest = float((low - (Ball(T).norm(2, axis=1) * off_by).sum()).below)
        return cls(Y, T, smallest, off_by) if smallest > SMALLEST_SINGULAR_VALUE else None

    def reach(self, r: Ball) -> float:
        r"""Return an upper bound of |P r|, P the projection on the range.

        Notes
        -----
        With the midpoint m of r and s = Y'm it is :math:`\|T's\| / \sigma + \|r - m\|`, sigma the smallest
        singular value of Y T.
        """
        middle = Ball(r.mid)
        s = middle.dots(self.columns.T) + Ball(0.0, (Ball(middle.length) * self.errors).above)
        away = Ball(np.broadcast_to(r.rad, r.mid.shape)).length
        return float((Ball((self.inverse.T @ s).length) / self.smallest + away).above)


def distinct(X: Array) -> Array:
    """Return the columns of X without zeros and repetitions, up to signs and powers of two."""
    powers = np.frexp(np.abs(X).max(axis=0, initial=0.0))[1]
    scaled = np.ldexp(X, -powers)
    Y = np.where((np.ldexp(scaled, powers) == X).all(axis=0), scaled, X)  # where no digit underflows
    first = np.argmax(Y != 0, axis=0)
    Y = Y * np.sign(Y[first, np.arange(Y.shape[1])]) + 0.0  # zeros have one sign
    found = {column.tobytes(): column for column in Y.T if column.any()}
    return np.array(list(found.values())).reshape(len(found), len(X)).T

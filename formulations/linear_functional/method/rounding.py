"""Squares, intervals and ranges of matrices, with bounds of their rounding errors."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import scipy.linalg

from kernelopt.extend import Array, rounding

UNDERFLOW = rounding.UNDERFLOW
INDEPENDENT = 0.5  # |I - W'W| below this shows that the columns are independent; any number below 1 would do
SMALLEST_SINGULAR_VALUE = 0.1  # of Y T: bounds are divided by it, and would be ten times larger than needed
LAST_ROUNDINGS = 1e-12  # more than the few operations that compute `smallest` lose
dots, gamma, length = rounding.dots, rounding.gamma, rounding.norm_above
rounded_down, rounded_up = rounding.rounded_down, rounding.rounded_up


def square(a: Array, error: Array | None = None) -> tuple[Fraction, Fraction]:
    """Return a lower and an upper bound of |x|^2 for every x with |x - a| <= error, entry by entry."""
    sizes = np.abs(a)
    if error is None:
        return interval(sizes, sizes)
    below, above = np.maximum(-outward(-sizes, error), 0.0), outward(sizes, error)
    return interval(below, below)[0], interval(above, above)[1]


def interval(a: Array, b: Array) -> tuple[Fraction, Fraction]:
    """Return a lower and an upper bound of a'b."""
    (value,), (error,) = dots(a[None], b)
    return Fraction(float(value)) - Fraction(float(error)), Fraction(float(value)) + Fraction(float(error))


def outward(a: Array, error: Array) -> Array:
    """Return an upper bound of a + error, exact where the error is zero."""
    return np.where(error > 0, np.nextafter(a + error, np.inf), a)


def inflated(value: Array, operations: int) -> Array:
    """Return an upper bound of what a sum of non-negative terms would be without rounding.

    Every operation loses at most the factor 1 - u; the factor below is at least (1 - u)^-operations.
    """
    return value * (1 + gamma(4 * operations + 8))


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
    def of(cls, X: Array, errors: Array | None = None, keys: tuple[bytes, ...] = ()) -> Range | None:
        r"""Return the range of X; None where its columns are not shown to be independent.

        Parameters
        ----------
        X : array of shape (n, M)
        errors : array of shape (M,), default zero
            Bounds of the distances of the exact columns.
        keys : tuple of M bytes
            Equal keys mean equal exact columns; used where some error is not zero.

        Notes
        -----
        T is the inverse of R in Y = Q R, as doubles. The product W = fl(Y T) is in error by at most
        gamma_k |Y| |T|, and I - W'W by gamma_n |W'| |W|, in Frobenius norms. So the singular values of Y T
        are at least :math:`\sqrt{1 - \|I - W'W\| - \gamma_n \|W\|^2} - \gamma_k \|Y\| \|T\|`. This is
        positive, which shows that Y T and Y have the same range, up to a condition of about 1e13. Errors E of
        the columns lower them by at most :math:`\sum_j |E_j| |T_j|`, T_j row j of T.
        """
        Y, off_by = distinct(X), np.zeros(0)
        if errors is not None and errors.any():
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
        W = Y @ T
        sizes = [length(A) for A in (Y, T, W, np.eye(k) - W.T @ W)]
        off = sizes[3] + gamma(2 * n + 8) * (sizes[2] ** 2 + k)
        if not off < INDEPENDENT:
            return None
        smallest = (1 - off) ** 0.5 - gamma(2 * k + 8) * sizes[0] * sizes[1] - LAST_ROUNDINGS
        smallest -= float(off_by @ np.linalg.norm(T, axis=1)) * (1 + gamma(4 * k + 12))
        return cls(Y, T, smallest, off_by) if smallest > SMALLEST_SINGULAR_VALUE else None

    def reach(self, r: Array, error: Array) -> float:
        r"""Return an upper bound of |P x|, P the projection on the range, if |x - r| <= error.

        Notes
        -----
        With s = Y'r it is :math:`\|T's\| / \sigma + \|error\|`, sigma the smallest singular value of Y T.
        """
        k = self.inverse.shape[0]
        s, s_error = dots(self.columns.T, r)
        s_error = inflated(s_error + self.errors * length(r), 4)
        doubt = np.abs(self.inverse.T) @ (s_error + gamma(2 * k + 4) * np.abs(s))
        parts = inflated(np.abs(self.inverse.T @ s) + doubt, 2 * k + 6)
        return (length(parts) / self.smallest + length(error)) * (1 + gamma(12))


def distinct(X: Array) -> Array:
    """Return the columns of X without zeros and repetitions, up to signs and powers of two."""
    powers = np.frexp(np.abs(X).max(axis=0, initial=0.0))[1]
    scaled = np.ldexp(X, -powers)
    Y = np.where((np.ldexp(scaled, powers) == X).all(axis=0), scaled, X)  # where no digit underflows
    first = np.argmax(Y != 0, axis=0)
    Y = Y * np.sign(Y[first, np.arange(Y.shape[1])]) + 0.0  # zeros have one sign
    found = {column.tobytes(): column for column in Y.T if column.any()}
    return np.array(list(found.values())).reshape(len(found), len(X)).T

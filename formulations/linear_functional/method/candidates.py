"""The first stage: one regularised function per kernel, from one eigendecomposition per kernel."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

import joblib
import numpy as np
from threadpoolctl import threadpool_limits

import kernelopt as ko
from formulations.linear_functional.method.filters import Filter, tikhonov
from formulations.linear_functional.regularization_data import RegularizationData
from kernelopt.extend import Array, Ball, as_float_array, shown

PART_BYTES = 32_000_000  # of the kernel matrices that a job holds at a time
PART_KERNELS = 16  # that a job takes at a time at most, so that there are tasks for every job
PSD_TOLERANCE = 1e-8  # of the largest eigenvalue, as for all kernels
FACTOR_TOLERANCE = 1e-9  # of the level: the trace that a factor may miss, see `decomposed`
LOW_RANK = 3  # a factor of at most n / 3 columns is decomposed faster than the kernel
NO_FREEDOM = 1e-12  # 1 - tr H / n at which the residual is rounding alone: the score is then infinite
GRID = np.logspace(1, -8, 37)  # four values of alpha in every decade
EIGENDECOMPOSITION = 20 * np.finfo(float).eps  # times n |K| is more than LAPACK loses


Candidate: TypeAlias = tuple[Array, Array, float, float, bytes]
"""The column and the coefficients of one kernel, its alpha, the error of the column, and a key."""


@dataclass(frozen=True)
class Spectrum:
    """K = U diag(values) U', where eigenvectors of the eigenvalue zero may be left out.

    Attributes
    ----------
    values : array of shape (r,), non-negative
    vectors : array of shape (n, r), U
    """

    values: Array
    vectors: Array

    def filtered(self, filter: Filter, level: float) -> tuple[Array, float]:
        """Return g at the eigenvalues, and at the eigenvalue zero."""
        eigenvalues = np.append(self.values, 0.0)
        try:
            found = filter(eigenvalues, level)
        except ko.InputError:
            raise
        except Exception as error:  # a filter may be anyone's function, and raise anything
            raise ko.errors.ParameterError(
                f"filter must be a function of (eigenvalues, level), got {shown(filter)}, which fails: "
                f"{error}. Pass one such as linear_functional.cut_off."
            ) from error
        g = as_float_array(found, "filter, at the eigenvalues,")
        if g.shape != eigenvalues.shape:
            raise ko.errors.ShapeError(
                f"filter must return one number per eigenvalue, shape {eigenvalues.shape}, got {g.shape}. "
                "It is a function of (eigenvalues, level), such as linear_functional.cut_off."
            )
        return g[:-1], float(g[-1])

    def coefficients(self, filter: Filter, level: float, v: Array) -> Array:
        """Return b = U diag(g) U'v, with g(0) on the complement of U."""
        g, at_zero = self.filtered(filter, level)
        along = self.vectors.T @ v
        return np.asarray(self.vectors @ ((g - at_zero) * along) + at_zero * v)

    def fitted(self, filter: Filter, level: float, v: Array) -> Array:
        """Return K b, on the points of the first stage."""
        g, _ = self.filtered(filter, level)
        return np.asarray(self.vectors @ (self.values * g * (self.vectors.T @ v)))

    def smallest(self, K: Array) -> float:
        """Return a lower bound of the eigenvalues of K; this spectrum is the spectrum of K up to rounding.

        An eigendecomposition is exact for a matrix within a small multiple of n u |K| of K; where the vectors
        are fewer, the distance of K from U diag(values) U' is taken instead.
        """
        lost = EIGENDECOMPOSITION * len(K) * float(np.linalg.norm(K))
        if self.values.size == len(K):
            return float(self.values.min()) - lost
        return -float(np.linalg.norm(K - (self.vectors * self.values) @ self.vectors.T)) - lost

    def leave_one_out(self, filter: Filter, level: float, v: Array) -> Array:
        """Return v_i - b_i / [(K + level I)^-1]_ii, what the others predict at point i; for Tikhonov."""
        g, at_zero = self.filtered(filter, level)
        inverse = np.square(self.vectors) @ (g - at_zero) + at_zero
        return np.asarray(v - self.coefficients(filter, level, v) / inverse)

    def gcv(self, filter: Filter, level: float, v: Array) -> float:
        """Return |v - K b|^2 / n / (1 - tr H / n)^2, H the matrix that maps v to K b."""
        g, _ = self.filtered(filter, level)
        freedom = 1 - float(self.values @ g) / v.size
        if freedom <= NO_FREEDOM:
            return np.inf
        residual = v - self.fitted(filter, level, v)
        return float(residual @ residual) / v.size / freedom**2


def candidate(part: ko.Grams, i: int, alpha: float | str, data: RegularizationData) -> Candidate:
    """Return the candidate of kernel i of a stack on the labelled points.

    The column has the values on the points of the second stage, and the coefficients belong to the points of
    the first one. The error bounds the distance of the column from the exact one in the 2-norm. Keys are
    equal for equal kernels with equal alpha.
    """
    K, v = part.gram(i), data.v[data.trained]
    smallest = alpha if not isinstance(alpha, str) else float(levels(K, data)[-1] / data.multiple)
    spectrum = decomposed(part, i, data, smallest * data.multiple)
    level = smallest * data.multiple
    if isinstance(alpha, str):
        tried = levels(K, data)
        level = float(tried[int(np.argmin([score(spectrum, alpha, one, v, data) for one in tried]))])
    b = spectrum.coefficients(data.filter, level, v)
    if data.columns == "split":
        column = K[np.ix_(data.evaluated, data.trained)] @ b
    elif data.columns == "leave-one-out":
        column = spectrum.leave_one_out(data.filter, level, v)
    else:
        column = spectrum.fitted(data.filter, level, v)
    error = 0.0
    if data.filter is tikhonov and data.columns != "leave-one-out":
        column, error = with_error_bound(K, column, b, v, level, spectrum, data)
    key = hashlib.blake2b(np.ascontiguousarray(K).tobytes() + np.float64(level).tobytes()).digest()
    return column, b, level / data.multiple, error, key


def with_error_bound(
    K: Array, column: Array, b: Array, v: Array, level: float, spectrum: Spectrum, data: RegularizationData
) -> tuple[Array, float]:
    r"""Return a column of Tikhonov's filter and a bound of its distance from the exact one.

    Notes
    -----
    Let :math:`\rho = v - (K + \sigma I) b` be the residual of the b that was computed, on the points of the
    first stage. The exact b is :math:`(K + \sigma I)^{-1} \rho` away, at most
    :math:`\delta = |\rho| / (\sigma + \lambda_{\min})`. The exact column is K times the exact b, and also v
    less sigma times it: the first has the smaller error for small kernels, the second for large ones.

    A column that is not longer than this bound may be rounding alone, and zero is returned in its place. Zero
    is the exact column where K v is zero, since :math:`K (K + \sigma I)^{-1} v = (K + \sigma I)^{-1} K v`.
    """
    inner = K if data.trained.size == len(K) else K[np.ix_(data.trained, data.trained)]
    smallest = Ball(level) + spectrum.smallest(inner)
    if not smallest.below > 0:
        return column, np.inf
    found = Ball(b)
    other = K[np.ix_(data.evaluated, data.trained)] if data.columns == "split" else inner
    fitted = other @ found
    exact = fitted if other is inner else inner @ found
    delta = Ball((exact + found * level - v).length) / smallest
    bounds = [delta * Ball(other).length + (fitted - column).length]
    if data.columns != "split":
        bounds.append(delta * level + (found * level + column - v).length)
    error, size = min(float(bound.above) for bound in bounds), Ball(column).length
    if size > error:
        return column, error
    vanishes = data.columns == "training" and Ball(v).dots(inner).is_zero.all()
    return np.zeros_like(column), 0.0 if vanishes else float((Ball(size) + error).above)


def levels(K: Array, data: RegularizationData) -> Array:
    """Return the levels that are tried, largest first: of equal scores, the smoothest function is taken."""
    if data.grid is not None:
        return data.multiple * data.grid
    mean = float(np.diag(K)[data.trained].mean())
    return data.trained.size * (mean if mean > 0 else 1.0) * GRID


def score(spectrum: Spectrum, rule: str, level: float, v: Array, data: RegularizationData) -> float:
    """Return the score of a level that the rule, "gcv" or "leave-one-out", minimises."""
    if rule == "gcv":
        return spectrum.gcv(data.filter, level, v)
    misses = v - spectrum.leave_one_out(data.filter, level, v)
    return float(misses @ misses) / v.size


def decomposed(part: ko.Grams, i: int, data: RegularizationData, level: float) -> Spectrum:
    """Return the spectrum of kernel i on the points of the first stage.

    Where a pivoted Cholesky factor L has few columns, and tr K - tr L L' is at most 1e-9 of the level, it is
    the spectrum of L L', by n r^2 operations in the place of n^3. The values of the candidate then change by
    less than 1e-9 |v|.
    """
    K = part.gram(i)
    L = part.factor(i)
    missing = max(float(np.trace(K)) - float(np.square(L).sum()), 0.0)
    if LOW_RANK * L.shape[1] <= len(K) and missing <= FACTOR_TOLERANCE * level:
        vectors, roots, _ = np.linalg.svd(L[data.trained], full_matrices=False)
        return Spectrum(np.square(roots), vectors)
    values, vectors = np.linalg.eigh(
        K if data.trained.size == len(K) else K[np.ix_(data.trained, data.trained)]
    )
    if values[0] < -PSD_TOLERANCE * np.abs(values).max():
        raise ko.errors.NotPSDError(
            f"{part.names[i]} must be positive semidefinite (smallest eigenvalue at least "
            f"-{PSD_TOLERANCE:g} of the largest), got {values[0] / np.abs(values).max():.3g} of the "
            "largest. Leave the kernel out, or clip its spectrum if that is meant."
        )
    return Spectrum(np.maximum(values, 0.0), vectors)


@dataclass(frozen=True, eq=False)
class Candidates:
    r"""The functions x_j of the M kernels, O(n M) numbers.

    Parameters
    ----------
    data : RegularizationData
        The checked arguments of the first stage.
    columns : array of shape (n_2, M)
        X, their values on the points of the second stage.
    coefficients : array of shape (M, n)
        b: :math:`x_j(u) = \sum_i b_{ji} k_j(u, u_i)`; zero on the points that are not trained on.
    alpha : array of shape (M,)
        The regularisation of each, in the convention of the data.
    errors : array of shape (M,)
        Bounds of the distances of the columns from the columns of exact arithmetic, for Tikhonov's filter on
        training or held-out points. All other columns count as exact, with errors of zero.
    keys : tuple of M bytes
        Equal where kernels and regularisation are, so that exact columns are the same.
    """

    data: RegularizationData
    columns: Array
    coefficients: Array
    alpha: Array
    errors: Array
    keys: tuple[bytes, ...]


def candidates(data: RegularizationData, n_jobs: int | None) -> Candidates:
    """Return the candidates; at most one part of the kernels per job is held at a time."""
    parallel = joblib.Parallel(n_jobs=n_jobs, prefer="threads", return_as="generator")
    columns = np.empty((data.evaluated.size, data.M))
    coefficients, alpha = np.zeros((data.M, data.n)), np.empty(data.M)
    errors, keys = np.empty(data.M), list[bytes]()
    j = 0
    # One thread of BLAS per job: with more threads than cores a busy machine took forty times as long.
    with threadpool_limits(1, user_api="blas"):
        for found in parallel(tasks(data)):
            for column, b, value, error, key in found:
                columns[:, j], coefficients[j, data.trained], alpha[j], errors[j] = column, b, value, error
                keys.append(key)
                j += 1
    return Candidates(data, columns, coefficients, alpha, errors, tuple(keys))


def tasks(data: RegularizationData) -> Iterator[Any]:
    """Yield tasks of a few kernels each.

    A stack keeps the matrices that it evaluated (up to 1 GB), and two threads must not read one stack.
    So every task makes a stack of its own, the block of all labelled points, which is freed at its end.
    """
    step = int(np.clip(PART_BYTES // (8 * data.n**2), 1, PART_KERNELS))
    for start in range(0, data.M, step):
        yield joblib.delayed(part_of_candidates)(data, range(start, min(start + step, data.M)))


def part_of_candidates(data: RegularizationData, kernels: range) -> list[Candidate]:
    """Return the candidates of some kernels."""
    part = ko.Grams(
        data.grams.storage.block(slice(0, data.n))
    )  # `Grams.block` of all points is the stack itself
    chosen = data.regularization
    return [
        candidate(part, j, chosen if isinstance(chosen, str) else float(chosen[j]), data) for j in kernels
    ]

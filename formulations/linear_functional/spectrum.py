"""One eigendecomposition per kernel, from which the candidates of every alpha are read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

import kernelopt as ko
from formulations.linear_functional.filters import Array, Filter
from formulations.linear_functional.setting import Setting

PSD_TOLERANCE = 1e-8
FACTOR_TOLERANCE = 1e-9
LOW_RANK = 3
GRID = np.logspace(1, -8, 37)


class Candidate(NamedTuple):
    """The function of one kernel: its values on the points of the second stage, and its coefficients."""

    column: Array
    coefficients: Array  # on the points of the first stage
    alpha: float


@dataclass(frozen=True)
class Spectrum:
    """K = U diag(values) U', without what belongs to eigenvalues that are zero.

    Attributes
    ----------
    values : array of shape (r,), non-negative
    vectors : array of shape (n, r), U
    """

    values: Array
    vectors: Array

    def filtered(self, filter: Filter, level: float) -> tuple[Array, float]:
        """Return g at the eigenvalues, and at the eigenvalue zero."""
        asked = np.append(self.values, 0.0)
        try:
            found = filter(asked, level)
        except ko.InputError:
            raise
        except Exception as error:  # whatever a stranger's function raises
            raise ko.ParameterError(
                f"filter must be a function of (eigenvalues, level), got {ko.shown(filter)}, which "
                f"fails: {error}. "
                "Pass one such as linear_functional.cut_off."
            ) from error
        g = ko.as_float_array(found, "filter, at the eigenvalues,")
        if g.shape != asked.shape:
            raise ko.ShapeError(
                f"filter must return one number per eigenvalue, shape {asked.shape}, got {g.shape}. "
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

    def leave_one_out(self, filter: Filter, level: float, v: Array) -> Array:
        """Return v_i - b_i / [(K + level I)^-1]_ii, what the others predict at point i; for Tikhonov."""
        g, at_zero = self.filtered(filter, level)
        inverse = np.square(self.vectors) @ (g - at_zero) + at_zero
        return np.asarray(v - self.coefficients(filter, level, v) / inverse)

    def gcv(self, filter: Filter, level: float, v: Array) -> float:
        """Return |v - K b|^2 / n / (1 - tr H / n)^2, H the matrix that maps v to K b."""
        g, _ = self.filtered(filter, level)
        freedom = 1 - float(self.values @ g) / v.size
        if freedom <= 1e-12:  # nothing is left to judge by
            return np.inf
        residual = v - self.fitted(filter, level, v)
        return float(residual @ residual) / v.size / freedom**2


def candidate(part: ko.Grams, i: int, alpha: float | str, data: Setting) -> Candidate:
    """Return the candidate of kernel i of a stack on the labelled points."""
    K, v = part.gram(i), data.v[data.trained]
    smallest = alpha if not isinstance(alpha, str) else float(levels(K, data)[-1] / data.multiple)
    spectrum = decomposed(part, i, data, smallest * data.multiple)
    level = smallest * data.multiple
    if isinstance(alpha, str):
        tried = levels(K, data)
        level = float(tried[int(np.argmin([score(spectrum, alpha, one, v, data) for one in tried]))])
    b = spectrum.coefficients(data.filter, level, v)
    if data.columns == "split":
        column = K[np.ix_(data.judged, data.trained)] @ b
    elif data.columns == "leave-one-out":
        column = spectrum.leave_one_out(data.filter, level, v)
    else:
        column = spectrum.fitted(data.filter, level, v)
    return Candidate(column, b, level / data.multiple)


def levels(K: Array, data: Setting) -> Array:
    """Return the levels that are tried, largest first: for a choice that is as good the smoother one."""
    if data.grid is not None:
        return data.multiple * data.grid
    mean = float(np.diag(K)[data.trained].mean())
    return data.trained.size * (mean if mean > 0 else 1.0) * GRID


def score(spectrum: Spectrum, rule: str, level: float, v: Array, data: Setting) -> float:
    """Return what the rule minimises."""
    if rule == "gcv":
        return spectrum.gcv(data.filter, level, v)
    misses = v - spectrum.leave_one_out(data.filter, level, v)
    return float(misses @ misses) / v.size


def decomposed(part: ko.Grams, i: int, data: Setting, level: float) -> Spectrum:
    """Return the spectrum of kernel i on the points of the first stage.

    Where a pivoted Cholesky factor L of few columns has all but 1e-9 of the level of the trace, that of
    L L' is taken, n r^2 operations in the place of n^3: the values of the candidate move by less than
    1e-9 |v|.
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
        raise ko.NotPSDError(
            f"{part.names[i]} must be positive semidefinite (smallest eigenvalue at least -{PSD_TOLERANCE:g} "
            f"of the largest), got {values[0] / np.abs(values).max():.3g} of the largest. Leave the kernel "
            "out, or clip its spectrum if that is meant."
        )
    return Spectrum(np.maximum(values, 0.0), vectors)

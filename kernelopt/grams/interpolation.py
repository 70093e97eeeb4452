"""Sums of kernels that are functions of one distance, from polynomials on cells of the distance.

The sums over j of c_j f_m(d_ij), for many functions f_m, take one evaluation of every function for each pair
of points. Here the distances are divided into cells, 16 for each factor of two. On a cell of centre d and
half-width h, with t = (d_ij - d) / h, a function is nearly a polynomial sum_p a_mp t^p. So the sums follow
from the moments sum_j c_j t_ij^p of each cell, which do not depend on m.

The polynomial of degree k - 1 interpolates f at the k Chebyshev nodes of the cell [a, b]. Its error at x is
f[x_1, ..., x_k, x] (x - x_1) ... (x - x_k), where the product is at most 2 ((b - a) / 4)^k. The derivatives
of a completely monotone f have alternating signs and decrease in absolute value. So the divided difference is
at most |f^(k)(a)| / k!, and the terms of the Taylor series of f(0) at a are non-negative, so that f(0) is at
least |f^(k)(a)| a^k / k!. Hence the error is at most 2 ((b - a) / 4a)^k f(0) <= 2 (2^-6)^9 f(0) = 2^-53 f(0).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelopt.errors import InputError
from kernelopt.grams.caching import pieces
from kernelopt.kernels import Profile
from kernelopt.numerics.compiling import compiled, compiled_as
from kernelopt.numerics.rounding import UNIT
from kernelopt.validation import Array, Index

POWERS = 9  # t^0, ..., t^8
CELL_BITS = 4  # of the mantissa: 16 cells for each factor of two
MOST_OCTAVES = 6  # of the cells: distances below them are rare, and evaluated one by one
NEAREST = 2e-3  # share of a sample that is below all cells
MARGIN = 1.25  # factor beside the extremes of the sample
COEFFICIENT_ROUNDINGS = 350  # see `coefficients`
FEWEST_POINTS = 256  # measured: below them every function is evaluated for every pair
TILE = 512  # rows and columns of the distances that are computed at a time: 2 MB
# Roundings of a sum over all moments, of coefficients, and of values, powers and sums of parts.
MOST_ROUNDINGS = POWERS * ((MOST_OCTAVES << CELL_BITS) + 2) + COEFFICIENT_ROUNDINGS + 64


class Interpolation:
    """Functions f_m on cells that hold most of the distances of a sample.

    Parameters
    ----------
    at : function of an array of shape (k,) of distances
        It returns the values of all functions, shape (m, k).
    sample : array of distances, in float32 or float64
        The other distances that are summed have its type.
    """

    def __init__(self, at: Callable[[Array], Array], sample: NDArray[Any]) -> None:
        self.at = at
        # the bits after those that number the cell
        bits = 23 if sample.itemsize == 4 else 52
        self._integer = np.dtype(f"i{sample.itemsize}")
        self._shift = bits - CELL_BITS
        found = sample[sample > 0]
        high = MARGIN * found.max(initial=0.0) or 1.0
        lowest = np.quantile(found, NEAREST) / MARGIN if found.size else high
        low = max(lowest, high / 2.0**MOST_OCTAVES)
        ends: Index = np.array([low, high], dtype=sample.dtype).view(self._integer) >> self._shift
        self._first = int(ends[0])
        edges = np.arange(ends[0], ends[1] + 2, dtype=self._integer) << self._shift
        a, h = (edges.view(sample.dtype)[part].astype(float) for part in (slice(-1), slice(1, None)))
        h = (h - a) / 2
        self._centres, self._halves = a + h, h
        self._cells = h.size
        self._coefficients = coefficients(self._values(nodes())).reshape(-1, h.size * POWERS)

    def _values(self, t: Array) -> Array:
        """Return the functions at the places t in [-1, 1] of all cells, shape (m, cells, len(t))."""
        d = self._centres[:, None] + self._halves[:, None] * t
        return self.at(d.ravel()).reshape(-1, *d.shape)

    def check(self, tested: Mapping[int, str]) -> None:
        """Raise unless these functions, with their names, are the polynomials on all cells.

        The polynomials of a completely monotone f differ from f by less than the roundings that certificates
        allow for. The functions are compared half-way between neighbouring nodes, where errors are largest.

        Raises
        ------
        InputError
            If one differs by more: then it is not completely monotone.
        """
        t = (nodes()[1:] + nodes()[:-1]) / 2
        polynomials = self._coefficients.reshape(-1, self._cells, POWERS) @ np.vander(t, POWERS, True).T
        errors, sizes = np.abs(self._values(t) - polynomials), self.at(np.zeros(1))[:, 0]
        for m, name in tested.items():
            largest = float(errors[m].max())
            if not largest <= MOST_ROUNDINGS * UNIT * sizes[m]:
                cell = int(errors[m].max(axis=1).argmax())
                raise InputError(
                    f"{name} must be completely monotone, as its profile says, got a function that differs "
                    f"by {largest:.1e} from its interpolation near the distance {self._centres[cell]:.3g}. "
                    "State its profile with completely_monotone=False, and test it by "
                    "kernelopt.testing.check_kernel."
                )

    def moments(self, count: int) -> Array:
        """Return the moments of `count` sums without addends."""
        return np.zeros((count, self._cells, POWERS))

    def add(self, D: NDArray[Any], c: Array, moments: Array) -> Array:
        """Add c_j t^p to the moments of each row of distances D.

        The sums of the pairs outside of all cells are returned, shape (m, len(D)).
        """
        m, bits, outside = len(self._coefficients), D.view(self._integer), np.empty(D.size, np.int64)
        add = compiled(add_moments, 100 * len(D) + D.size / 3)
        count = add(bits, self._shift, self._first, c, moments, outside)
        found = np.zeros((m, len(D)))
        for part in pieces(count, m):
            i, j = np.divmod(outside[:count][part], c.size)
            values = self.at(D[i, j].astype(float)) * c[j]
            for sums, each in zip(found, values, strict=True):
                sums += np.bincount(i, each, len(D))
        return found

    def sums(self, moments: Array) -> Array:
        """Return the sums of all functions at these moments, shape (m, len(moments))."""
        return np.asarray(self._coefficients @ moments.reshape(len(moments), -1).T)


def nodes() -> Array:
    """Return the Chebyshev nodes in [-1, 1]; the one in the middle is zero."""
    found = np.cos((np.arange(POWERS) + 0.5) * np.pi / POWERS)
    found[POWERS // 2] = 0.0
    return found


def coefficients(values: Array) -> Array:
    """Return the coefficients of t^0, t^1, ... of the polynomials with these values at the nodes.

    A function with f(0) = 1 differs on a cell from its value at the centre by at most h |f'(a)| <= h / a,
    which is at most 1/32. The absolute values of the entries of the inverse of the Vandermonde matrix sum to
    999. A product with a difference has 11 roundings: two of its factors, and nine of the sum. So the
    errors of all coefficients add up to at most 11 * 999 / 32 < 350 roundings.
    """
    centre = values[..., POWERS // 2, None]
    found: Array = (values - centre) @ inverse_vandermonde().T
    found[..., :1] += centre
    return found


@cache
def inverse_vandermonde() -> Array:
    """Return the coefficients of the Lagrange polynomials of the nodes in its columns, each rounded once."""
    exact = np.array([Fraction(node) for node in nodes().tolist()])
    columns = []
    for own in exact:
        polynomial = np.array(
            [Fraction(1)]
        )  # of (t - x) / (own - x) for all other nodes x, the constant first
        for x in exact[exact != own]:
            polynomial = np.convolve(polynomial, np.array([-x, 1]) / (own - x))
        columns.append(polynomial.astype(float))
    return np.array(columns).T


def is_worthwhile(rows: int, columns: int, n: int) -> bool:
    """Whether images of functions of one distance are computed by interpolation.

    The certificates allow for the roundings of a sum over all n entries of alpha, those of the labelled
    points. Those of a sum over the columns, and of one over the moments, must not be more. The polynomials do
    not enlarge them: where f is completely monotone, the absolute values of their coefficients add up to
    f(a) <= f(0), as those of the Taylor series, up to 1e-12 f(0).
    """
    return min(rows, columns) >= FEWEST_POINTS and columns + MOST_ROUNDINGS <= n


def values_of(profiles: Sequence[Profile], d: Array) -> Array:
    """Return the values of the functions at distances, shape (m, len(d))."""
    return np.stack([profile.function(d) for profile in profiles])


def add_moments_loop(bits: Array, shift: int, first: int, c: Array, moments: Array, outside: Index) -> int:
    """Do what `add_moments` does, to the same bits."""
    mask, unit, cells, count = (1 << shift) - 1, 2.0 ** (1 - shift), moments.shape[1], 0
    for i in range(bits.shape[0]):
        row, of_row = bits[i], moments[i]
        for j in range(row.size):
            b = np.int64(row[j])
            k = (b >> shift) - first
            if 0 <= k < cells:
                t, term, sums = (b & mask) * unit - 1.0, c[j], of_row[k]
                for p in range(POWERS):
                    sums[p] += term
                    term *= t
            else:
                outside[count] = i * row.size + j
                count += 1
    return count


@compiled_as(add_moments_loop)
def add_moments(bits: Array, shift: int, first: int, c: Array, moments: Array, outside: Index) -> int:
    """Add c_j t^p to the moments of row i and the cell of (i, j); return the number of pairs without a cell.

    The numbers of these pairs are written to `outside`.
    """
    mask, unit, count = (1 << shift) - 1, 2.0 ** (1 - shift), 0
    for i, row in enumerate(bits):
        b = row.astype(np.int64)
        k = (b >> shift) - first
        inside = (k >= 0) & (k < moments.shape[1])
        t, terms = (b[inside] & mask) * unit - 1.0, np.empty((POWERS, np.count_nonzero(inside)))
        terms[0] = c[inside]
        for p in range(1, POWERS):
            terms[p] = terms[p - 1] * t
        for p, sums in enumerate(terms):
            np.add.at(moments[i, :, p], k[inside], sums)  # in the order of j, as the loop
        others = np.flatnonzero(~inside)
        outside[count : count + others.size] = i * row.size + others
        count += others.size
    return count

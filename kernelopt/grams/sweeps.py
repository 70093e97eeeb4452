"""What a sweep over the points computes of each block: functions of rows, their numbers and a payload.

`interpolated` has two more: images and forms of many functions of one distance.

A payload has all that a function needs beside the rows, so that another process computes the same numbers.
The sum of a point is computed as a whole by one call, in an order that depends on the block and the payload
alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from kernelopt.grams.caching import pieces
from kernelopt.kernels.profile import Metric, distances
from kernelopt.numerics.compiling import any_order, compiled, compiled_as
from kernelopt.running import check
from kernelopt.validation import Array, Floats, Index

CELL_BITS = 9  # of the mantissa: 512 cells an octave, where a Gaussian is interpolated to 2.6e-7
SHIFT = 23 - CELL_BITS  # the other bits of the mantissa say where in the cell a distance is
FRACTION = 2.0**-SHIFT
ROWS_AT_ONCE = 1 << 12  # of a block, whose copies are held at a time

Single: TypeAlias = NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class Place:
    """The map of points to their columns less those of a centre: distances are then more exact.

    Attributes
    ----------
    centre : array of shape (d,)
    columns : array of int, or None
        None stands for all d.
    """

    centre: Array
    columns: Index | None = None

    def __call__(self, X: Floats) -> Array:
        moved: Array = np.subtract(X, self.centre)
        return moved if self.columns is None else moved[:, self.columns]

    def same(self, other: Place) -> bool:
        """Whether another map is equal."""
        pairs = ((self.centre, other.centre), (self.columns, other.columns))
        return all(np.array_equal(*pair) for pair in pairs)


class Summary(NamedTuple):
    """Sums, smallest and largest entries of the columns of some rows, and a digest of their bytes."""

    total: Array
    low: Array
    high: Array
    digest: str


def summary(X: Floats, numbers: Index, digested: bool) -> Summary:
    """Return the summary of rows, with an empty digest unless it is asked for. NaN is in both extremes."""
    totals, lows, highs, bits = [], [], [], blake2b(digest_size=16)
    for part in parts_of(X):
        rows = np.ascontiguousarray(X[part])
        with np.errstate(invalid="ignore", over="ignore"):
            totals.append(rows.sum(axis=0, dtype=float))
        lows.append(rows.min(axis=0))
        highs.append(rows.max(axis=0))
        if digested:
            bits.update(rows.data)
    low, high = (np.asarray(e, dtype=float) for e in (np.min(lows, axis=0), np.max(highs, axis=0)))
    return Summary(np.sum(totals, axis=0), low, high, bits.hexdigest() if digested else "")


def taken(X: Floats, numbers: Index, payload: None) -> Array:
    """Return the rows."""
    return np.asarray(X, dtype=float)


def own_values(X: Floats, numbers: Index, kernels: Sequence[Any]) -> Array:
    """Return k(x_i, x_i) of some kernels, shape (count, len(X))."""
    return np.stack([k.diagonal(np.asarray(X, dtype=float)) for k in kernels])


def cross_values(X: Floats, numbers: Index, payload: tuple[Sequence[Any], Array]) -> Array:
    """Return k(z_j, x_i) of some kernels and new points z_j, shape (count, count of j, len(X))."""
    kernels, new = payload
    return np.stack([k(new, np.asarray(X, dtype=float)) for k in kernels])


def length(X: Floats, numbers: Index, payload: tuple[Place, int]) -> float:
    """Return the largest length of the points, in the norm of an order."""
    place, order = payload
    return max(float(np.linalg.norm(place(X[part]), order, axis=1).max()) for part in parts_of(X))


@dataclass(frozen=True, eq=False)
class Placed:
    """The map of points to float32, after `place` and divided by a power of two, and their distances.

    Attributes
    ----------
    place : Place
    unit : float
    metric : str or None
    features : int
        Of the inner products that are summed at a time.
    """

    place: Place
    unit: float
    metric: Metric | None
    features: int

    def __call__(self, X: Floats) -> tuple[Single, Single]:
        """Return the points, and the squares of their lengths."""
        found = np.empty((len(X), self.width), np.float32)
        squares = np.empty(len(X), np.float32)
        for part in parts_of(X):
            found[part] = self.place(X[part]) / self.unit
            squares[part] = np.square(found[part], dtype=float).sum(axis=1)
        return found, squares

    @property
    def width(self) -> int:
        """The number of columns."""
        return (self.place.centre if self.place.columns is None else self.place.columns).size

    def between(self, left: tuple[Single, Single], right: tuple[Single, Single]) -> Single:
        """Return the distances of points in float32."""
        (X, squares), (Z, others) = left, right
        if self.metric != "sqeuclidean":
            return np.asarray(distances(X.astype(float), Z.astype(float), self.metric), np.float32)
        P = X[:, : self.features] @ Z[:, : self.features].T
        for start in range(self.features, X.shape[1], self.features):
            part = slice(start, start + self.features)
            P += X[:, part] @ Z[:, part].T
        compiled(to_distances, 20 * len(P) + P.size / 50)(P, squares, others)
        return P


@dataclass(frozen=True, eq=False)
class Predictions:
    """One function of the distance in a table, and the points z_j with the coefficients c_j.

    Attributes
    ----------
    placed : Placed
    columns : array of int
        The numbers of the points z_j, ascending.
    points : arrays
        Them after `placed`.
    c : array
    base : int
        The leading bits of the first knot.
    value, slope : arrays of float32
        The table, see `look_up`.
    own : float
        The function of a point and itself.
    pairs : int
        The number of entries that are read from the table at a time.
    """

    placed: Placed
    columns: Index
    points: tuple[Single, Single]
    c: Array
    base: int
    value: Single
    slope: Single
    own: float
    pairs: int


def predictions(X: Floats, numbers: Index, payload: Predictions) -> Array:
    """Return sum_j c_j k(x_i, z_j), shape (len(X),), by a table in float32 and sums in float64."""
    f = np.empty(len(X))
    for large in parts_of(X):
        points, squares = payload.placed(X[large])
        own = positions(numbers[large], payload.columns)
        for part in pieces(len(points), payload.columns.size, payload.pairs):
            D = payload.placed.between((points[part], squares[part]), payload.points)
            f[large][part] = table_sums(D, own[part], payload)
    return f


def table_sums(D: Single, own: Index, payload: Predictions) -> Array:
    """Return the sums over the columns of distances; `own` has the column of each row that is its own."""
    found = np.empty(len(D))
    table = payload.base, payload.value, payload.slope
    add = compiled(add_entries)  # not in Python, which adds in another order: all workers have the same bits
    add(D.view(np.int32), *table, payload.c, own, payload.own, found)
    return found


def parts_of(X: Any) -> Iterator[slice]:
    """Return slices of rows whose copies are held at a time."""
    for start in range(0, len(X), ROWS_AT_ONCE):
        check()
        yield slice(start, min(start + ROWS_AT_ONCE, len(X)))


def positions(numbers: Index, columns: Index) -> Index:
    """Return where numbers are among ascending ones, and -1 where they are not."""
    at = np.searchsorted(columns, numbers).clip(max=max(0, columns.size - 1))
    return np.where(columns[at] == numbers, at, -1) if columns.size else np.full(numbers.size, -1)


def to_distances_loop(P: Array, left: Array, right: Array) -> None:
    """Do what `to_distances` does, to the same bits."""
    two, zero = np.float32(2.0), np.float32(0.0)
    for i in range(P.shape[0]):
        row, s = P[i], left[i]
        for j in range(row.size):
            row[j] = max(s + right[j] - two * row[j], zero)


@compiled_as(to_distances_loop)
def to_distances(P: Array, left: Array, right: Array) -> None:
    """Replace inner products x_i'z_j by |x_i|^2 + |z_j|^2 - 2 x_i'z_j, at least 0, in float32."""
    two, zero = np.float32(2.0), np.float32(0.0)
    for row, s in zip(P, left, strict=True):
        np.maximum(s + right - two * row, zero, out=row)


def look_up(bits: Array, base: int, value: Array, slope: Array, out: Array) -> None:
    """Write the entries of a table, interpolated in float32, at distances given by their bits."""
    low, high = np.int32(base << SHIFT), np.int32(((base + value.size) << SHIFT) - 1)
    mask, unit, start = np.int32((1 << SHIFT) - 1), np.float32(FRACTION), np.int32(base)
    for i in range(bits.shape[0]):
        row, to = bits[i], out[i]
        for j in range(row.size):
            b = max(low, min(row[j], high))
            k = (b >> np.int32(SHIFT)) - start
            to[j] = value[k] + np.float32(b & mask) * unit * slope[k]


@any_order
def add_entries(
    bits: Array, base: int, value: Array, slope: Array, c: Array, own: Index, diagonal: float, out: Array
) -> None:
    """Write the sums over j of c_j times the entries of a table, as of `look_up`, at distances in float32.

    The entry of column own_i is the diagonal instead, unless own_i is negative. The sums are in float64. No
    matrix of entries is written to memory, which took a third of the time of a sweep.
    """
    low, high = np.int32(base << SHIFT), np.int32(((base + value.size) << SHIFT) - 1)
    mask, unit, start = np.int32((1 << SHIFT) - 1), np.float32(FRACTION), np.int32(base)
    for i in range(bits.shape[0]):
        row, total = bits[i], 0.0
        for j in range(row.size):
            b = max(low, min(row[j], high))
            k = (b >> np.int32(SHIFT)) - start
            total += c[j] * np.float64(value[k] + np.float32(b & mask) * unit * slope[k])
        if own[i] >= 0:
            b = max(low, min(row[own[i]], high))
            k = (b >> np.int32(SHIFT)) - start
            total += c[own[i]] * (diagonal - np.float64(value[k] + np.float32(b & mask) * unit * slope[k]))
        out[i] = total

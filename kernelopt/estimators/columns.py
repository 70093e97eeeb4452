"""The columns of points that a kernel reads, their units, and the default kernels on standardised columns."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
from scipy.spatial.distance import pdist

from kernelopt.errors import ParameterError, ScaleWarning
from kernelopt.kernels import Kernel, gaussian, identity, normalized, on_columns, polynomial
from kernelopt.methods.describe import warn_caller
from kernelopt.records import record
from kernelopt.validation import Array, as_generator, positive, shown
from kernelopt.validation.messages import listed, suggestion

SCALE_FACTOR = 100.0
"""Standard deviation of a column, in units of the median one, above which a `ScaleWarning` is given.

In squared distances a typical column then counts a ten-thousandth of the largest.
"""


def as_columns(columns: Any, d: int, names: Sequence[str] | None = None) -> tuple[int, ...]:
    """Return the numbers of the columns of X that an argument chooses.

    Parameters
    ----------
    columns : int, str, slice of integers, mask of shape (d,), or sequence of int and str
    d : int
        The number of columns of X.
    names : sequence of d str, optional

    Raises
    ------
    ParameterError
        If there is no such column, or none is chosen.
    """
    key: Any = columns
    if not isinstance(columns, slice):
        listed = [columns] if isinstance(columns, str) or np.ndim(columns) == 0 else list(columns)
        key = [number_of(column, d, names) if isinstance(column, str) else column for column in listed]
    try:
        if isinstance(key, slice):  # Python cuts off what is beyond X without a word
            range(d)[key.start or 0], range(d)[(key.stop or d) - 1]
        chosen = np.arange(d)[key]
    except (IndexError, TypeError) as error:
        raise ParameterError(
            f"X must have the columns {shown(columns)} that a kernel reads, got {d} columns. Choose numbers "
            f"from 0 to {d - 1}, a slice with bounds up to {d}, or a mask with one entry for each of the {d}."
        ) from error
    if not chosen.size:
        raise ParameterError(
            f"columns must choose at least one of the {d} columns of X, got none. Leave the kernel out."
        )
    return tuple(chosen.tolist())


def number_of(column: str, d: int, names: Sequence[str] | None) -> int:
    """Return the number of the column with a name."""
    if names is None:
        raise ParameterError(
            f"X must have names of columns where a kernel reads the column {column!r}, got an array, which "
            f"has none. Pass a data frame of pandas, or choose by numbers from 0 to {d - 1}."
        )
    known = [str(name) for name in names]
    if column not in known:
        raise ParameterError(
            f"X must have the column {column!r} that a kernel reads, got the columns {shown(known)}."
            f"{suggestion(column, known)} Choose one of these."
        )
    return known.index(column)


def means_and_deviations(X: Array, weights: Array) -> tuple[Array, Array]:
    """Return the means and the standard deviations of columns; the latter are zero for constant columns.

    They are computed in units of a power of two near the largest number of a column, which is exact, so that
    no sum and no square overflows or underflows.
    """
    unit = np.ldexp(1.0, np.frexp(np.abs(X).max(axis=0))[1] - 1)
    scaled = X / unit
    means = np.average(scaled, axis=0, weights=weights)
    varies = np.ptp(scaled, axis=0) > 0  # the mean of equal numbers may be rounded
    spread = np.sqrt(np.average((scaled - means) ** 2, axis=0, weights=weights))
    return unit * means, np.where(varies, unit * spread, 0.0)


def warn_of_scales(
    kernels: Sequence[tuple[str, Kernel, tuple[int, ...]]],
    X: Array,
    weights: Array,
    columns: Sequence[str] | None = None,
) -> None:
    """Warn once if a column that a kernel reads has `SCALE_FACTOR` times the typical standard deviation.

    The typical one is the median deviation that is not zero, of an even number of columns the lower one.

    Parameters
    ----------
    kernels : sequence of triples of a name, a Kernel and the columns of X that it sees
        All kernels that read such a column are named, and the column and the numbers of the first.
    X : array of shape (n, d)
    weights : array of shape (n,)
    columns : sequence of d str, optional
        Names of the columns.

    Warns
    -----
    ScaleWarning
    """
    spread = means_and_deviations(X, weights)[1]
    found = [
        (name, *worst)
        for name, kernel, seen in kernels
        if (worst := largest_scale(compared(kernel, seen), spread))
    ]
    if not found:
        return
    name, number, typical, read = found[0]
    column = number if columns is None else repr(str(columns[number]))
    others = f" The same holds for {listed([name for name, *_ in found[1:]], 5)}." if found[1:] else ""
    warn_caller(ScaleWarning(
        "columns that a kernel reads must have standard deviations of similar size, at most "
        f"{SCALE_FACTOR:g} times the median, got {spread[number]:.3g} in column {column} and the median "
        f"{typical:.3g} over the {read} columns of {name}: it hardly sees the others.{others} Standardise "
        "them by make_pipeline(StandardScaler(), model). The default kernels do so themselves."
    ))  # fmt: skip


def largest_scale(sets: Iterable[tuple[int, ...]], spread: Array) -> tuple[int, float, int] | None:
    """Return the first column of too large a scale in its set, the typical scale and the size of the set."""
    for columns in sets:
        sizes = spread[list(columns)]
        typical = float(np.quantile(sizes[sizes > 0], 0.5, method="lower")) if sizes.any() else np.inf
        if sizes.max() > SCALE_FACTOR * typical:
            return columns[int(sizes.argmax())], typical, len(columns)
    return None


def compared(kernel: Kernel, columns: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
    """Yield the sets of columns whose scales a kernel of some columns compares, as by a distance."""
    if isinstance(kernel, on_columns):
        yield from compared(kernel.kernel, tuple(columns[j] for j in np.asarray(kernel.columns).tolist()))
    elif isinstance(kernel, normalized):
        yield from compared(kernel.kernel, columns)
    elif hasattr(kernel, "parts"):  # of a sum or a product
        for part in kernel.parts:
            yield from compared(part, columns)
    elif not isinstance(kernel, identity):
        yield columns


WIDTHS = (0.6, 1.2)
"""Widths of the default Gaussian kernels, as multiples of the median distance, by `benchmarks/defaults.py`.

Narrower ones fit noise, and the weights of a learned kernel do not refuse them: they minimise a norm, not the
error at new points.
"""

DEGREES = (1, 2)
"""Degrees of the default polynomial kernels; the first is linear."""

MEDIAN_POINTS = 1000
"""Points whose median distance is computed. Half a million distances determine it to a part in 500."""

NUMBER = r"(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?"
MEDIAN = re.compile(rf"\s*gaussian\(\s*({NUMBER})\s+median\s*\)\s*")
"""The names of the default Gaussian kernels, such as "gaussian(0.5 median)", of any width."""


@record("block")
@dataclass(frozen=True, eq=False)
class Block:
    """Columns of X with their origin and unit: (X[:, columns] - origin) / unit.

    Attributes
    ----------
    columns : tuple of int
    origin, unit : array of shape (len(columns),)
    """

    columns: Annotated[tuple[int, ...], "c"]
    origin: Annotated[Array, "c"]
    unit: Annotated[Array, "c"]

    def __post_init__(self) -> None:
        if min(self.columns, default=0) < 0:
            raise ParameterError(f"columns must be numbered from zero, got {shown(self.columns)}.")

    def of(self, X: Array) -> Array:
        """Return the columns of the points X in these units."""
        return np.asarray((X[:, self.columns] - self.origin) / self.unit)


def standardised(X: Array, columns: tuple[int, ...], weights: Array, names: Sequence[str] | None) -> Block:
    """Return the columns that are not constant, in units in which a point has mean square one.

    Each column is divided by its own standard deviation, or all by one number where they `share_a_range`.
    """
    X = X[:, columns]
    origin, spread = means_and_deviations(X, weights)
    varies = spread > 0
    if not varies.any():
        where = [names[j] for j in columns] if names is not None else list(columns)
        raise ParameterError(
            "the widths of the default kernels must be computed from columns that vary, got constant "
            f"columns {shown(where)} on {len(X)} points. Leave them out, or pass kernels with widths."
        )
    kept = tuple(c for c, v in zip(columns, varies, strict=True) if v)
    spread = spread[varies]
    common = share_a_range(X[:, varies])
    unit = np.full(len(kept), np.linalg.norm(spread)) if common else spread * np.sqrt(len(kept))
    return Block(kept, origin[varies], unit)


def share_a_range(X: Array) -> bool:
    """Whether more than half of the columns reach both the smallest and the largest number of all.

    So do pixels, ratings, and columns that were scaled to one range. They have one unit: a column that varies
    less says less, and its own deviation as a unit would make noise of it.
    """
    reach = (X.min(axis=0) == X.min()) & (X.max(axis=0) == X.max())
    return bool(2 * reach.sum() > reach.size)


def is_default(kernel: Any) -> bool:
    """Whether an argument stands for default kernels: None for all, or the name of a Gaussian one."""
    return kernel is None or (isinstance(kernel, str) and MEDIAN.fullmatch(kernel) is not None)


def default_kernels(given: str | None, Z: Array, weights: Array, random_state: Any = 0) -> dict[str, Kernel]:
    """Return the default kernels for standardised points, by name: all, or the Gaussian one that is named."""
    s = median_distance(Z, weights, random_state)
    named = None if given is None else MEDIAN.fullmatch(given)
    if named is None:
        kernels: dict[str, Kernel] = {f"gaussian({w:g} median)": gaussian(w * s) for w in WIDTHS}
        return kernels | {f"polynomial({k})": polynomial(k, 1.0) for k in DEGREES}
    w = positive(float(named[1]), f"the width of {given}")
    return {f"gaussian({w:g} median)": gaussian(w * s)}


def median_distance(Z: Array, weights: Array, random_state: Any = 0) -> float:
    """Return the median of the distances between different points; at least two must differ.

    A pair counts with the product of its weights. The median is the smallest distance up to which at least
    half of the pairs lie.
    """
    if len(Z) > MEDIAN_POINTS:
        chosen = as_generator(random_state).choice(len(Z), MEDIAN_POINTS, replace=False)
        Z, weights = Z[chosen], weights[chosen]
    distances = pdist(Z)
    if (weights == weights[0]).all():
        distances = distances[distances > 0]
        middle = (distances.size - 1) // 2
        return float(np.partition(distances, middle)[middle])
    i, j = np.triu_indices(len(Z), 1)
    shares = weights[i] * weights[j]
    order = np.argsort(distances)
    order = order[distances[order] > 0]
    sums = np.cumsum(shares[order])
    return float(distances[order][np.searchsorted(sums, sums[-1] / 2)])

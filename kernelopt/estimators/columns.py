"""The columns of points that a kernel of an estimator reads, and a warning where their scales differ."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from kernelopt.errors import ParameterError, ScaleWarning
from kernelopt.kernels import Kernel, identity, normalized, on_columns
from kernelopt.methods.driver import caller_stack_level
from kernelopt.validation import Array, shown
from kernelopt.validation.messages import nearest_name

SCALE_FACTOR = 100.0
"""Standard deviation of a column, in units of the median one, above which a `ScaleWarning` is given.

In squared distances a typical column then counts a ten-thousandth of the largest.
"""

LISTED = 5  # kernels that a warning names


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
    if isinstance(columns, slice) and not isinstance(columns.start or columns.stop, str):
        check_bounds(columns, d)
        chosen: list[Any] = list(range(d))[columns]
    else:
        single = isinstance(columns, str) or np.ndim(columns) == 0
        chosen = [columns] if single else list(columns)
        if chosen and all(isinstance(c, bool | np.bool_) for c in chosen):
            if len(chosen) != d:
                raise ParameterError(
                    f"a mask of columns must have one entry for each of the {d} columns of X, got "
                    f"{len(chosen)}. Pass the numbers of the columns instead."
                )
            chosen = [j for j, used in enumerate(chosen) if used]
    if not chosen:
        raise ParameterError(
            f"columns must choose at least one of the {d} columns of X, got none. Leave the kernel out."
        )
    return tuple(column_number(c, d, names) for c in chosen)


def check_bounds(columns: slice, d: int) -> None:
    """Raise a `ParameterError` if a slice goes beyond d columns, which Python cuts off without a word."""
    for bound, most in ((columns.start, d - 1), (columns.stop, d)):
        if bound is not None and not (isinstance(bound, int | np.integer) and -d <= bound <= most):
            raise ParameterError(
                f"X must have the columns of {columns} that a kernel reads, got {d} columns. Choose bounds "
                f"from 0 to {d}."
            )


def column_number(column: Any, d: int, names: Sequence[str] | None) -> int:
    """Return the number of one column, which is given by its number or its name."""
    if isinstance(column, str):
        if names is None:
            raise ParameterError(
                f"X must have names of columns where a kernel reads the column {column!r}, got an array, "
                f"which has none. Pass a data frame of pandas, or choose by numbers from 0 to {d - 1}."
            )
        known = [str(name) for name in names]
        if column in known:
            return known.index(column)
        nearest = nearest_name(column, known)
        meant = f" Did you mean {nearest!r}?" if nearest else ""
        raise ParameterError(
            f"X must have the column {column!r} that a kernel reads, got the columns "
            f"{shown(known)}.{meant} Choose one of these."
        )
    try:
        return int(range(d)[column])
    except (IndexError, TypeError) as error:
        raise ParameterError(
            f"X must have the column {shown(column)} that a kernel reads, got {d} columns. Choose a number "
            f"from 0 to {d - 1}."
        ) from error


def means_and_deviations(X: Array, weights: Array) -> tuple[Array, Array]:
    """Return the means and the standard deviations of columns; the latter are zero for constant columns.

    Differences from the mean are squared in units of a power of two near the largest, which is exact, so that
    no square overflows or underflows.
    """
    means = np.average(X, axis=0, weights=weights)
    varies = np.ptp(X, axis=0) > 0  # the mean of equal numbers may be rounded
    unit = np.ldexp(1.0, np.frexp(np.abs(X - means).max(axis=0))[1])
    spread = unit * np.sqrt(np.average(((X - means) / unit) ** 2, axis=0, weights=weights))
    return means, np.where(varies, spread, 0.0)


def warn_of_scales(
    kernels: Sequence[tuple[str, Kernel]], X: Array, weights: Array, columns: Sequence[str] | None = None
) -> None:
    """Warn once if a column that a kernel reads has `SCALE_FACTOR` times the typical standard deviation.

    The typical one is the median deviation that is not zero, of an even number of columns the lower one.

    Parameters
    ----------
    kernels : sequence of pairs of a name and a Kernel of the columns of X
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
        for name, kernel in kernels
        if (worst := largest_scale(compared(kernel, tuple(range(X.shape[1]))), spread))
    ]
    if not found:
        return
    name, number, typical, read = found[0]
    others = [other for other, *_ in found[1:]]
    text = (
        "columns that a kernel reads must have standard deviations of similar size, at most "
        f"{SCALE_FACTOR:g} times the median, got {spread[number]:.3g} in column "
        f"{number if columns is None else repr(str(columns[number]))} and the median {typical:.3g} over the "
        f"{read} columns of {name}: it hardly sees the others."
        + (f" The same holds for {', '.join(others[:LISTED])}" if others else "")
        + (f" and {len(others) - LISTED} more" if len(others) > LISTED else "")
        + ("." if others else "")
        + " Standardise them by make_pipeline(StandardScaler(), model). The default kernels do so themselves."
    )
    warnings.warn(ScaleWarning(text), stacklevel=caller_stack_level())


def largest_scale(sets: Iterable[tuple[int, ...]], spread: Array) -> tuple[int, float, int] | None:
    """Return the first column of too large a scale in its set, the typical scale and the size of the set."""
    for columns in sets:
        sizes = spread[list(columns)]
        if not sizes.any():
            continue
        typical = float(np.quantile(sizes[sizes > 0], 0.5, method="lower"))
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

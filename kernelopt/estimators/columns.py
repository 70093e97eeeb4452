"""The columns of points that a kernel of an estimator reads."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from kernelopt.errors import ParameterError
from kernelopt.validation import shown
from kernelopt.validation.options import nearest_name


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

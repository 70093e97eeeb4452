"""The points of a table: which columns are used, and how."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from kernelopt.cli.columns import numbers, refuse_constant, refuse_gaps, refuse_text
from kernelopt.cli.data_table import DataTable, listed
from kernelopt.errors import InputError
from kernelopt.estimators.table import TableColumns, coordinate_names
from kernelopt.validation import Array
from kernelopt.validation.options import nearest_name


@dataclass(frozen=True)
class Features:
    """How the rows of a table become points, and what is remembered for new rows.

    Attributes
    ----------
    target : str
        The column that is predicted. New tables need not have it.
    columns : TableColumns
        Those that are used.
    dropped : tuple of str
        Those that are left out.
    """

    target: str
    columns: TableColumns
    dropped: tuple[str, ...]

    def points(self, table: DataTable) -> Array:
        """Return the rows of a table as points, shape (n, d). Columns of other names are not read.

        Raises
        ------
        InputError
            If a column of the training data is missing, a cell has no value or no number, or a text was not
            among those of the training data.
        """
        self._refuse_missing(table)
        refuse_gaps(table, self._used)
        refuse_text(table, self.columns.numeric)
        return self.columns.transform(coordinates(table, self.columns.numeric, self.columns.categories))

    @property
    def _used(self) -> list[str]:
        return [*self.columns.numeric, *self.columns.categories]

    def ignored(self, table: DataTable) -> list[str]:
        """Return the columns of a table that the training data did not have."""
        known = {*self._used, *self.dropped, self.target}
        return [name for name in table.names if name not in known]

    def _refuse_missing(self, table: DataTable) -> None:
        missing = [name for name in self._used if name not in table.columns]
        if missing:
            near = {name: nearest_name(name, self.ignored(table)) for name in missing}
            guesses = [
                f"{name!r} (perhaps {near[name]!r}?)" if near[name] else f"{name!r}" for name in missing
            ]
            raise InputError(
                f"{table.path} must have the columns of the training data, got none named {listed(guesses)}. "
                f"Rename or add them. There are: {listed(table.names)}."
            )


def learn_features(
    table: DataTable, target: str, drop: Sequence[str], categorical: Sequence[str], raw: bool
) -> tuple[Features, Array]:
    """Return how the rows of a table become points, and the points.

    Parameters
    ----------
    table : DataTable
    target : str
    drop, categorical : sequences of str
        Columns to leave out, and columns of text.
    raw : bool
        Whether coordinates stay as they are. Otherwise each gets mean 0 and variance 1 on this table.

    Raises
    ------
    InputError
        If a column does not exist, holds gaps, text or infinite numbers, or is constant.
    """
    for option, names in (("--target", [target]), ("--drop", drop), ("--categorical", categorical)):
        for name in names:
            table.refuse_unknown(name, option)
    if target in [*drop, *categorical]:
        raise InputError(
            f"the target must not be in --drop or --categorical, got {target!r}. Leave it out there."
        )
    used = [name for name in table.names if name != target and name not in drop]
    if not used:
        raise InputError(
            f"{table.path} must have a column beside the target {target!r}, got none that is not dropped. "
            "Add one, or drop fewer."
        )
    refuse_gaps(table, [target, *used], used)
    refuse_constant(table, used)
    numeric = tuple(name for name in used if name not in categorical)
    refuse_text(table, numeric, numeric)
    known = {name: tuple(sorted(set(table.columns[name]))) for name in used if name in categorical}
    X = coordinates(table, numeric, known)
    shift, scale = np.zeros(X.shape[1]), np.ones(X.shape[1])
    if not raw:
        shift, scale = means_and_deviations(table, X, coordinate_names(numeric, known))
    columns = TableColumns(numeric, known, shift, scale)
    return Features(target, columns, tuple(drop)), columns.transform(X)


def means_and_deviations(table: DataTable, X: Array, names: Sequence[str]) -> tuple[Array, Array]:
    """Return the means of coordinates and their standard deviations, or raise `InputError` on overflow."""
    with np.errstate(over="ignore", invalid="ignore"):
        means, deviations = X.mean(axis=0), X.std(axis=0)
    infinite = [names[j] for j in np.flatnonzero(~np.isfinite(deviations)).tolist()]
    if infinite:
        raise InputError(
            f"columns must have finite variances, got infinite ones in {listed(infinite)} of {table.path}. "
            "Give them in a larger unit."
        )
    return means, np.where(deviations > 0, deviations, 1.0)  # a variance of tiny numbers may underflow


def coordinates(table: DataTable, numeric: Sequence[str], known: Mapping[str, Sequence[str]]) -> Array:
    """Return numbers, and for each known text whether it holds, shape (n, d)."""
    columns = list(numbers(table, numeric).values())
    for name, values in known.items():
        cells = table.columns[name]
        strange = [(line, c) for line, c in zip(table.lines, cells, strict=True) if c not in values]
        if strange:
            line, cell = strange[0]
            raise InputError(
                f"the column {name!r} must hold texts of the training data ({listed(values)}), got {cell!r} "
                f"in line {line} of {table.path}; {len(strange)} of {len(table)} rows have other texts. "
                "Correct or leave out these rows, or fit again with them."
            )
        columns += [np.array([cell == value for cell in cells], dtype=float) for value in values]
    return np.column_stack(columns)

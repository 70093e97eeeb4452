"""The points and the target of a table: which columns are used, how, and what is wrong with them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from kernelopt.cli.data_table import DataTable, is_number, listed, places, quoted
from kernelopt.errors import InputError, LabelError, NotFiniteError
from kernelopt.validation import Array
from kernelopt.validation.options import nearest_name

Task = Literal["classification", "regression"]
FEW_VALUES = 10  # whole numbers up to which a target counts as classes, unless --task says otherwise


@dataclass(frozen=True)
class Features:
    """How the rows of a table become points, and what is remembered for new rows.

    Attributes
    ----------
    target : str
        The column that is predicted. New tables need not have it.
    numeric : tuple of str
        Columns of numbers.
    categories : dict from str to tuple of str
        Columns of text with their values. Each value is a coordinate, 1 where it holds and 0 elsewhere.
    dropped : tuple of str
        Columns that are left out.
    shift, scale : arrays of shape (d,)
        A point is (x - shift) / scale, in the order of `coordinates`.
    """

    target: str
    numeric: tuple[str, ...]
    categories: Mapping[str, tuple[str, ...]]
    dropped: tuple[str, ...]
    shift: Array
    scale: Array

    @property
    def coordinates(self) -> list[str]:
        """The names of the d coordinates of a point."""
        values = [f"{name}={value}" for name, known in self.categories.items() for value in known]
        return [*self.numeric, *values]

    def points(self, table: DataTable) -> Array:
        """Return the rows of a table as points, shape (n, d).

        Raises
        ------
        InputError
            If the columns differ from those of the training data, a cell has no value or no number, or a
            text was not among those of the training data.
        """
        self._check_columns(table)
        return (coordinates(table, self.numeric, self.categories) - self.shift) / self.scale

    def _check_columns(self, table: DataTable) -> None:
        used = [*self.numeric, *self.categories]
        missing = [name for name in used if name not in table.columns]
        known = {*used, *self.dropped, self.target}
        foreign = [name for name in table.names if name not in known]
        if missing:
            near = {name: nearest_name(name, foreign) for name in missing}
            guesses = [
                f"{name!r} (perhaps {near[name]!r}?)" if near[name] else f"{name!r}" for name in missing
            ]
            raise InputError(
                f"{table.path} must have the columns of the training data, got none named {listed(guesses)}. "
                f"Rename or add them. There are: {listed(table.names)}."
            )
        if foreign:
            raise InputError(
                f"{table.path} must have the columns of the training data, got also {listed(foreign)}. "
                "Remove them, or fit again with them."
            )

    def as_dict(self) -> dict[str, Any]:
        """Return the record for a header in JSON; `from_dict` is the inverse."""
        return {
            "target": self.target,
            "numeric": list(self.numeric),
            "categories": {name: list(values) for name, values in self.categories.items()},
            "dropped": list(self.dropped),
            "shift": self.shift.tolist(),
            "scale": self.scale.tolist(),
        }

    @classmethod
    def from_dict(cls, found: Mapping[str, Any]) -> Features:
        """Return the record of a header; wrong ones raise KeyError, TypeError or ValueError."""
        categories = {str(name): tuple(map(str, known)) for name, known in dict(found["categories"]).items()}
        features = cls(
            str(found["target"]),
            tuple(map(str, found["numeric"])),
            categories,
            tuple(map(str, found["dropped"])),
            np.array(found["shift"], dtype=float),
            np.array(found["scale"], dtype=float),
        )
        d = len(features.coordinates)
        if features.shift.shape != (d,) or features.scale.shape != (d,) or not (features.scale > 0).all():
            raise ValueError(f"shift and scale must be {d} numbers, and the scale positive")
        return features


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
            if name not in table.columns:
                table.cells(name, option)
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
    refuse_constant(table, used)
    known = {
        name: tuple(sorted(set(table.cells(name, "--categorical")))) for name in used if name in categorical
    }
    numeric = tuple(name for name in used if name not in categorical)
    X = coordinates(table, numeric, known)
    shift, scale = np.zeros(X.shape[1]), np.ones(X.shape[1])
    if not raw:
        shift, spread = X.mean(axis=0), X.std(axis=0)
        scale = np.where(spread > 0, spread, 1.0)  # a variance of tiny numbers may underflow
    return Features(target, numeric, known, tuple(drop), shift, scale), (X - shift) / scale


def refuse_constant(table: DataTable, names: Sequence[str]) -> None:
    """Raise `InputError` if some columns have one value only; they say nothing, and have no variance."""
    constant = [name for name in names if is_constant(table.columns[name])]
    if constant:
        first = table.columns[constant[0]][0]
        raise InputError(
            f"columns must not be constant, got {listed([repr(name) for name in constant])} in {table.path} "
            f"({constant[0]!r} is {first!r} in all {len(table)} rows). Leave them out: "
            f"--drop {' '.join(map(quoted, constant))}."
        )


def is_constant(cells: Sequence[str]) -> bool:
    """Whether all cells have one value, as text or as a number: 1 and 1.0 are the same."""
    if cells.count(cells[0]) == len(cells):
        return bool(cells[0])  # a column of gaps is another error
    return all(map(is_number, cells)) and len(set(map(float, cells))) == 1


def coordinates(table: DataTable, numeric: Sequence[str], known: Mapping[str, Sequence[str]]) -> Array:
    """Return numbers, and for each known text whether it holds, shape (n, d)."""
    refuse_text(table, numeric)
    columns = [finite(table, name) for name in numeric]
    for name, values in known.items():
        cells = table.cells(name, "--categorical")
        strange = [(line, c) for line, c in zip(table.lines, cells, strict=True) if c not in values]
        if strange:
            line, cell = strange[0]
            raise InputError(
                f"the column {name!r} must hold texts of the training data ({listed(values)}), got {cell!r} "
                f"in line {line} of {table.path} ({len(strange)} such rows). Correct or leave out these "
                "rows, or fit again with them."
            )
        columns += [np.array([cell == value for cell in cells], dtype=float) for value in values]
    return np.column_stack(columns)


def refuse_text(table: DataTable, names: Sequence[str]) -> None:
    """Raise `InputError` if some columns hold text, and say all of them."""
    found = {}
    for name in names:
        pairs = zip(table.lines, table.cells(name, "a column of numbers"), strict=True)
        text = next(((line, cell) for line, cell in pairs if not is_number(cell)), None)
        if text is not None:
            found[name] = text
    if found:
        name, (line, cell) = next(iter(found.items()))
        options = " ".join(map(quoted, found))
        raise InputError(
            f"columns must hold numbers, got text in {listed([repr(name) for name in found])} of "
            f"{table.path} ({cell!r} in line {line} of {name!r}). Make each text a coordinate by "
            f"--categorical {options}, or leave the columns out by --drop {options}."
        )


def finite(table: DataTable, name: str) -> Array:
    """Return a column of numbers, or raise `NotFiniteError` if one is infinite."""
    values = np.array([float(cell) for cell in table.columns[name]])
    bad = [line for line, value in zip(table.lines, values, strict=True) if not np.isfinite(value)]
    if bad:
        raise NotFiniteError(
            f"numbers must be finite, got {len(bad)} infinite in the column {name!r} of {table.path}, "
            f"{places(bad)}. Correct or leave out these rows."
        )
    return values


@dataclass(frozen=True)
class Target:
    """What is predicted: the task, why it was chosen, and the values y of shape (n,)."""

    task: Task
    why: str
    y: Any


def read_target(table: DataTable, name: str, asked: Task | None = None) -> Target:
    """Return the target of a table.

    Parameters
    ----------
    table : DataTable
    name : str
        The column.
    asked : "classification", "regression" or None
        What `--task` says. By default texts are classes, and so are two values and up to ten whole numbers.

    Raises
    ------
    InputError
        If a cell has no value, or a target of regression is no finite number or constant.
    LabelError
        If there is one class only.
    """
    cells = table.cells(name, "--target")
    text = next(((line, c) for line, c in zip(table.lines, cells, strict=True) if not is_number(c)), None)
    values = None if text is not None else finite(table, name)
    task, why = chosen_task(cells, values) if asked is None else (asked, "as --task says")
    if task == "classification":
        labels = np.array(cells)
        if values is not None and (values == np.round(values)).all():
            labels = values.astype(int)
        if len(np.unique(labels)) == 1:
            raise LabelError(
                f"the target {name!r} must have two classes or more, got {cells[0]!r} in all {len(cells)} "
                f"rows of {table.path}. Add rows of another class."
            )
        return Target(task, why, labels)
    if values is None:
        line, cell = text  # type: ignore[misc]
        raise InputError(
            f"the target {name!r} of a regression must be numbers, got {cell!r} in line {line} of "
            f"{table.path}. Correct it, or pass --task classification."
        )
    if (values == values[0]).all():
        raise InputError(
            f"the target {name!r} must vary, got {cells[0]} in all {len(cells)} rows of {table.path}. There "
            "is nothing to learn."
        )
    return Target(task, why, values)


def chosen_task(cells: Sequence[str], values: Array | None) -> tuple[Task, str]:
    """Return the task for a target, with the reason in words."""
    if values is None:
        return "classification", f"the target is text, with {len(set(cells))} values"
    count = len(np.unique(values))
    if count <= 2 or (count <= FEW_VALUES and (values == np.round(values)).all()):
        return "classification", f"the target has {count} values"
    return "regression", f"the target is a number with {count} values"

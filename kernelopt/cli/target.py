"""The target of a table: classes or numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from kernelopt.cli.columns import MANY_TEXTS, marks_remedy, numbers, refuse_gaps
from kernelopt.cli.data_table import DataTable
from kernelopt.errors import InputError, LabelError
from kernelopt.validation import Array

Task = Literal["classification", "regression"]
FEW_VALUES = 10  # whole numbers up to which a target counts as classes, unless --task says otherwise
EXACT = 2.0**53  # up to which a float holds every whole number


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
        If there is no such column, a cell has no value, or a target of regression is no finite number or
        constant.
    LabelError
        If there is one class only.
    """
    table.refuse_unknown(name, "the target")
    refuse_gaps(table, [name])
    cells = table.columns[name]
    lines = zip(table.lines, cells, strict=True)
    text = next(((line, cell) for line, cell in lines if table.number(cell) is None), None)
    values = None if text is not None else numbers(table, [name])[name]
    if text is not None:
        refuse_mixed(table, name, *text, asked)
    task, why = chosen_task(cells, values) if asked is None else (asked, "as --task says")
    if task == "classification":
        return Target(task, why, class_labels(table, name, values))
    if values is None or (values == values[0]).all():
        raise InputError(
            f"the target {name!r} must vary, got {cells[0]} in all {len(cells)} rows of {table.path}. There "
            "is nothing to learn."
        )
    return Target(task, why, values)


def class_labels(table: DataTable, name: str, values: Array | None) -> Any:
    """Return the classes of a column, whole numbers as int, or raise `LabelError` if there is one."""
    labels = np.array(table.columns[name])
    if values is not None and (values == np.round(values)).all() and (np.abs(values) <= EXACT).all():
        labels = values.astype(int)
    if len(np.unique(labels)) == 1:
        raise LabelError(
            f"the target {name!r} must have two classes or more, got {table.columns[name][0]!r} in all "
            f"{len(table)} rows of {table.path}. Add rows of another class."
        )
    return labels


def refuse_mixed(table: DataTable, name: str, line: int, cell: str, asked: Task | None) -> None:
    """Raise `InputError` if a target with a text in some line is meant as numbers, or has too many classes.

    A text among numbers would otherwise make every number a class.
    """
    cells = table.columns[name]
    remedy, count = marks_remedy(table, cells), len(set(cells))
    unclear = asked is None and (remedy or count > max(MANY_TEXTS, len(cells) / 2))
    if asked == "regression" or unclear:
        what = "numbers" if asked == "regression" else "numbers, or classes of several rows each"
        remedies = [remedy or "Correct the texts.", "Or pass --task classification."]
        raise InputError(
            f"the target {name!r} must be {what}, got {cell!r} in line {line} of {table.path}, and {count} "
            f"values in {len(cells)} rows. {' '.join(remedies)}"
        )


def chosen_task(cells: Sequence[str], values: Array | None) -> tuple[Task, str]:
    """Return the task for a target, with the reason in words."""
    if values is None:
        return "classification", f"the target is text, with {len(set(cells))} values"
    count = len(np.unique(values))
    if count <= 2 or (count <= FEW_VALUES and (values == np.round(values)).all()):
        return "classification", f"the target has {count} values"
    return "regression", f"the target is a number with {count} values"

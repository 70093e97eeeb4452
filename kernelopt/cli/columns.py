"""The columns of a table: the points and the target that a model is learned from."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from kernelopt.cli.data_table import require_column
from kernelopt.errors import InputError, LabelError, NotFiniteError
from kernelopt.estimators.table import (
    TableColumns,
    Task,
    as_numbers,
    coordinate_names,
    listed,
    refuse_cells,
    source,
)
from kernelopt.validation import Array

EFFECTS = {"drop": "leaves columns out", "categorical": "makes each text a coordinate"}  # of options
VALUE = "every cell must have a value"
MARKED = re.compile(r"[+-]?\d+([.,' ]\d{3})*([.,]\d+)?")  # numbers with other marks: 3,14 or 1 000 or 1.000,5
FEW_VALUES = 10  # whole numbers up to which a target counts as classes, unless --task says otherwise
MANY_TEXTS = 20  # values of a column of text above which, and above half the rows, each row has its own
EXACT = 2.0**53  # up to which a float holds every whole number


def learn_columns(
    table: pd.DataFrame, target: str, drop: Sequence[str], categorical: Sequence[str], raw: bool
) -> tuple[TableColumns, Array]:
    """Return how the rows of a table become points, and the points.

    Parameters
    ----------
    table : DataFrame
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
    for what, names in (("--target", [target]), ("--drop", drop), ("--categorical", categorical)):
        for name in names:
            require_column(table, name, what)
    if target in [*drop, *categorical]:
        raise InputError(
            f"the target must not be in --drop or --categorical, got {target!r}. Leave it out there."
        )
    used = [name for name in table.columns if name != target and name not in drop]
    if not used:
        raise InputError(
            f"{source(table)} must have a column beside the target {target!r}, got none that is not dropped. "
            "Add one, or drop fewer."
        )
    gaps = table[[target, *used]].isna()
    leave_out = option("drop", [name for name in used if gaps[name].any()])
    refuse_cells(table, gaps, VALUE, f"Fill them in or leave out these rows.{leave_out}")
    refuse_texts(table, [name for name in used if name not in categorical])
    texts = {name: tuple(sorted(set(table[name]))) for name in used if name in categorical}
    numeric = tuple(name for name in used if name not in texts)
    names = coordinate_names(numeric, texts)
    columns = TableColumns(numeric, texts, np.zeros(len(names)), np.ones(len(names)))
    X = columns.transform(table)
    constant = [name for name, x in zip(numeric, X.T, strict=False) if (x == x[0]).all()]
    constant += [name for name, known in texts.items() if len(known) == 1]
    if constant:
        raise InputError(
            f"columns must not be constant, got {listed([repr(name) for name in constant])} in "
            f"{source(table)}: {constant[0]!r} is {table[constant[0]].iloc[0]!r} in all {len(table)} rows. "
            f"Leave them out.{option('drop', constant)}"
        )
    if not raw:
        with np.errstate(over="ignore", invalid="ignore"):
            columns.shift, deviations = X.mean(axis=0), X.std(axis=0)
        infinite = [names[j] for j in np.flatnonzero(~np.isfinite(deviations))]
        if infinite:
            raise InputError(
                f"columns must have finite variances, got infinite ones in {listed(infinite)} of "
                f"{source(table)}. Give them in a larger unit."
            )
        columns.scale = np.where(deviations > 0, deviations, 1.0)  # a variance of tiny numbers may underflow
    return columns, columns.transform(X)


def refuse_texts(table: pd.DataFrame, names: Sequence[str]) -> None:
    """Raise `InputError` if columns for numbers hold text."""
    wrong = as_numbers(table[list(names)]).isna()
    texts = [name for name in names if wrong[name].any()]
    # Texts that differ in most rows, such as dates and names, are no categories.
    categories = [name for name in texts if not differs(table, name)]
    remedy = marks(table, wrong) or (
        f"Correct them.{option('drop', texts)}{option('categorical', categories)}"
    )
    refuse_cells(table, wrong, "columns must hold numbers", remedy)


def read_target(table: pd.DataFrame, name: str, asked: Task | None = None) -> tuple[Any, Task, str]:
    """Return the target of a table.

    Parameters
    ----------
    table : DataFrame
    name : str
        The column.
    asked : "classification", "regression" or None
        What `--task` says. By default texts are classes, and so are two values and up to ten whole numbers.

    Returns
    -------
    y : array of shape (n,)
    task : "classification" or "regression"
    why : str
        The reason for the task.

    Raises
    ------
    InputError
        If there is no such column, a cell has no value, or a target of regression is no finite number.
    LabelError
        If all cells have one value.
    """
    require_column(table, name, "the target")
    refuse_cells(table, table[[name]].isna(), VALUE)
    numbers = as_numbers(table[[name]])
    task: Task
    wrong, values = numbers.isna(), numbers[name].nunique()
    if wrong.any(axis=None):
        task, why, values = "classification", "the target is text", table[name].nunique()
        unclear = asked is None and bool(marks(table, wrong) or differs(table, name))
        if asked == "regression" or unclear:  # a text among numbers would make every number a class
            must = f"the target {name!r} must be numbers{', or classes of several rows each' * unclear}"
            refuse_cells(
                table, wrong, must, marks(table, wrong) + "Correct them. Or pass --task classification."
            )
    else:
        refuse_cells(table, np.isinf(numbers), "numbers must be finite", error=NotFiniteError)
        few = values <= 2 or (values <= FEW_VALUES and (numbers == np.round(numbers)).all(axis=None))
        task, why = "classification" if few else "regression", "the target is a number"
    y = target_values(table, name, asked or task)
    if values == 1:
        raise LabelError(
            f"the target {name!r} must have two classes or more, or numbers that vary, got "
            f"{table[name].iloc[0]!r} in all {len(table)} rows of {source(table)}. Add other rows."
        )
    return y, asked or task, "as --task says" if asked else f"{why} with {values} values"


def target_values(table: pd.DataFrame, name: str, task: Task) -> Any:
    """Return a target without gaps: classes as text, or as int if all are whole, or numbers, NaN for text."""
    numbers = as_numbers(table[[name]])[name].to_numpy()
    if task == "regression":
        return numbers
    whole = (numbers == np.round(numbers)) & (np.abs(numbers) <= EXACT)
    return numbers.astype(int) if whole.all() else np.array(table[name].tolist())


def differs(table: pd.DataFrame, name: str) -> bool:
    """Whether texts are different in most rows, as dates and names are."""
    return bool(table[name].nunique() > max(MANY_TEXTS, len(table) / 2))


def marks(table: pd.DataFrame, wrong: pd.DataFrame) -> str:
    """Return what to do if some of the wrong cells are numbers with other marks, else ""."""
    marked = any(MARKED.fullmatch(cell) for name in wrong for cell in table[name][wrong[name]])
    return "Remove marks of thousands. Pass --decimal , where the decimal mark is a comma. " * marked


def option(name: str, columns: Sequence[str]) -> str:
    """Return what an option does to columns, as one writes it in a shell; "" where there are none."""
    return f" --{name} {shlex.join(columns)} {EFFECTS[name]}." if columns else ""

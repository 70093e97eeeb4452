"""Tables of data: a CSV or a Parquet file, and the points and the target that a model is learned from."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from kernelopt.errors import FileError, InputError, LabelError, NotFiniteError
from kernelopt.estimators.columns import means_and_deviations
from kernelopt.estimators.table import (
    ImputedColumns,
    TableColumns,
    Task,
    as_numbers,
    coordinate_names,
    refuse_cells,
    source,
)
from kernelopt.validation import Array
from kernelopt.validation.messages import listed, suggestion

MISSING = ("", "na", "n/a", "nan", "<na>", "null", "?")  # cells without a value, in lower case
DELIMITERS = ",;\t"
PARQUET = (".parquet", ".pq")
EFFECTS = {"drop": "leaves columns out", "categorical": "makes each text a coordinate"}  # of options
VALUE = "every cell must have a value"
MARKED = re.compile(r"[+-]?\d+([.,' ]\d{3})*([.,]\d+)?")  # numbers with other marks: 3,14 or 1 000 or 1.000,5
FEW_VALUES = 10  # whole numbers up to which a target counts as classes, unless --task says otherwise
MANY_TEXTS = 20  # values of a column of text above which, and above half the rows, each row has its own
EXACT = 2.0**53  # up to which a float holds every whole number


def read_table(path: Path, decimal: str = ".") -> pd.DataFrame:
    """Return the table of a file.

    All cells are text, so that a label or a category is what the file has. `TableColumns` reads the numbers.

    Parameters
    ----------
    path : Path
    decimal : "." or ","
        What separates the decimals of numbers in a CSV file.

    Returns
    -------
    DataFrame
        Cells without surrounding blanks, None where there is no value. `attrs` holds the path and the
        decimal mark.

    Raises
    ------
    FileError
        If there is no such file, or it is neither CSV nor Parquet, or has no header or no rows.
    """
    if not path.is_file():
        raise FileError(f"the data must be a CSV or Parquet file, got no file {path}. Correct its path.")
    parquet = path.suffix.lower() in PARQUET
    try:
        if parquet:
            decimal, found = ".", pd.read_parquet(path).rename(columns=str)
            cells = found.map(str).where(found.notna(), "")
        else:
            with path.open(encoding="utf-8-sig") as file:
                header = file.readline()  # it has the delimiter: commas where it has none
            rows = pd.read_csv(
                path,
                sep=max(DELIMITERS, key=header.count),
                header=None,
                dtype=object,
                keep_default_na=False,
                skipinitialspace=True,
                encoding="utf-8-sig",
            )
            cells = rows[1:].set_axis(rows.iloc[0], axis=1)
    except (ValueError, ImportError, OSError) as error:  # the errors of pandas and pyarrow are among these
        what = "CSV file in UTF-8 whose rows have as many cells as its header"
        if parquet:
            what = 'Parquet file, which pyarrow reads (pip install "kernelopt[tables]")'
        raise FileError(
            f"{path} must be a {what}, got {str(error).strip()}. Correct it; a cell that holds the delimiter "
            "is quoted."
        ) from error
    table = cells.astype(object).map(str.strip).rename(columns=str.strip)
    table = table.astype(object).where(~table.map(str.lower).isin(MISSING), None)
    table.attrs = {"path": path, "decimal": decimal}
    check_names(path, list(table.columns))
    if table.empty:
        raise FileError(f"{path} must have rows below its header, got none. Add data.")
    return table


def check_names(path: Path, names: list[str]) -> None:
    """Raise `FileError` unless the columns have names, and different ones."""
    if as_numbers(pd.DataFrame([names])).notna().all(axis=None):
        raise FileError(
            f"the first line of {path} must hold the names of the columns, got numbers: {listed(names)}. "
            "Write a line of names above it."
        )
    wrong = [name for k, name in enumerate(names) if not name or name in names[:k]]
    if wrong:
        raise FileError(
            f"the columns of {path} must have different names, got {wrong[0]!r} "
            f"{'twice' if wrong[0] else 'for one'}. Rename them in the first line."
        )


def require_column(table: pd.DataFrame, name: str, what: str) -> None:
    """Raise `InputError` if there is no column of a name, which is needed for `what`, such as "--target"."""
    names = list(table.columns)
    if name not in names:
        alone = " Cells are separated by commas, semicolons or tabulators." if len(names) == 1 else ""
        raise InputError(
            f"{what} must be a column of {table.attrs['path']}, got {name!r}.{suggestion(name, names)} There "
            f"are: {listed(names)}.{alone}"
        )


def learn_columns(
    table: pd.DataFrame,
    target: str,
    drop: Sequence[str],
    categorical: Sequence[str],
    raw: bool,
    impute: bool = False,
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
    impute : bool, default False
        Whether missing cells get the median of the numbers, or the most frequent text, of their columns.

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
    holes = [name for name in used if gaps[name].any()]
    if impute:
        holes = [name for name in used if gaps[name].all()]
        gaps = gaps[[target, *holes]]
    remedy = option("drop", holes) + " --impute fills them." * bool(holes and not impute)
    refuse_cells(table, gaps, VALUE, f"Fill them in or leave out these rows.{remedy}")
    refuse_texts(table, [name for name in used if name not in categorical])
    texts = {name: tuple(sorted({*table[name].dropna()})) for name in used if name in categorical}
    numeric = tuple(name for name in used if name not in texts)
    names = coordinate_names(numeric, texts)
    units = np.zeros(len(names)), np.ones(len(names))
    columns = TableColumns(numeric, texts, *units)
    if impute:
        columns = ImputedColumns(numeric, texts, *units, fill_of(table, numeric, texts))
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
        columns.shift, deviations = means_and_deviations(X, np.ones(len(X)))
        columns.scale = np.where(deviations > 0, deviations, 1.0)
    return columns, columns.transform(X)


def fill_of(table: pd.DataFrame, numeric: Sequence[str], texts: Iterable[str]) -> dict[str, str]:
    """Return the median of each column of numbers and the most frequent text of each other, as text."""
    medians = {name: repr(float(as_numbers(table[[name]])[name].median())) for name in numeric}
    return medians | {name: str(table[name].mode()[0]) for name in texts}


def identifiers(table: pd.DataFrame, names: Iterable[str]) -> dict[str, str]:
    """Return why columns probably name their rows, by their names: such a column says nothing of new rows.

    It holds consecutive whole numbers in any order, or texts that are all different.
    """
    n, found = len(table), dict[str, str]()
    for name in names if n > FEW_VALUES else ():
        numbers = as_numbers(table[[name]])[name].to_numpy()
        whole = np.isfinite(numbers).all() and (numbers == np.round(numbers)).all()
        if whole and np.array_equal(np.sort(numbers), numbers.min() + np.arange(n)):
            found[name] = f"numbers the rows, {numbers.min():.0f} to {numbers.max():.0f}"
        elif np.isnan(numbers).all() and table[name].nunique() == n:
            found[name] = "has another text in each row"
    return found


def refuse_texts(table: pd.DataFrame, names: Sequence[str]) -> None:
    """Raise `InputError` if columns for numbers hold text."""
    numbers = table[list(names)]
    wrong = as_numbers(numbers).isna() & numbers.notna()
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

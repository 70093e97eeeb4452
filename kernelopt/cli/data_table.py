"""Tables of data: a CSV or a Parquet file, read by pandas as columns of text."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from kernelopt.errors import FileError, InputError
from kernelopt.estimators.table import as_numbers, listed
from kernelopt.validation.messages import suggestion

MISSING = ("", "na", "n/a", "nan", "<na>", "null", "?")  # cells without a value, in lower case
DELIMITERS = ",;\t"
PARQUET = (".parquet", ".pq")


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

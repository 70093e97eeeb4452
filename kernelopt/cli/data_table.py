"""Tables of data: a CSV file, or a Parquet file through pandas, as columns of text."""

from __future__ import annotations

import argparse
import csv
import importlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from kernelopt.errors import FileError, InputError
from kernelopt.validation.options import suggestion

MISSING = frozenset({"", "na", "n/a", "nan", "<na>", "null", "?"})  # cells without a value, in lower case
DELIMITERS = ",;\t"
PARQUET = (".parquet", ".pq")
NAMED = 3  # places or names that a message lists


@dataclass(frozen=True)
class DataTable:
    """The columns of a file, as text.

    CSV is read without pandas, so that the same file is the same table on every machine.

    Attributes
    ----------
    path : Path
    columns : dict from name to list of str
        The cells without surrounding blanks, "" where there is no value.
    lines : list of int
        The line of each row, the header being line 1.
    decimal : "." or ","
        What separates the decimals of numbers.
    """

    path: Path
    columns: dict[str, list[str]]
    lines: list[int]
    decimal: str = "."

    def __len__(self) -> int:
        return len(self.lines)

    @property
    def names(self) -> list[str]:
        """The names of the columns, in their order."""
        return list(self.columns)

    def number(self, cell: str) -> float | None:
        """Return the number of a cell, None where it holds something else."""
        return as_number(cell, self.decimal)

    def refuse_unknown(self, name: str, what: str) -> None:
        """Raise `InputError` if there is no column of a name.

        Parameters
        ----------
        name : str
        what : str
            What the column is needed for, such as "--target".
        """
        if name in self.columns:
            return
        meant = suggestion(name, self.names)
        single = "" if len(self.names) > 1 else " Cells are separated by commas, semicolons or tabulators."
        raise InputError(
            f"{what} must be a column of {self.path}, got {name!r}.{meant} There are: {listed(self.names)}."
            f"{single}"
        )


def add_decimal(parser: argparse.ArgumentParser) -> None:
    """Add the option that says how numbers of a CSV file are written."""
    parser.add_argument(
        "--decimal",
        choices=(".", ","),
        default=".",
        metavar="MARK",
        help="the decimal mark of numbers in a CSV file, a point or a comma (default: a point)",
    )


def read_table(path: Path, decimal: str = ".") -> DataTable:
    """Return the table of a file.

    Parameters
    ----------
    path : Path
    decimal : "." or ","
        What separates the decimals of numbers in a CSV file.

    Raises
    ------
    FileError
        If there is no such file, or it is neither CSV nor Parquet, or has no header, or rows of
        different lengths.
    """
    if not path.is_file():
        raise FileError(f"the data must be a CSV or Parquet file, got no file {path}. Correct its path.")
    if path.suffix.lower() in PARQUET:
        return read_parquet(path)
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            return read_csv(path, file, decimal)
    except (UnicodeDecodeError, csv.Error) as error:
        raise FileError(
            f"{path} must be a CSV file in UTF-8 with a header, got {error}. Save it in UTF-8, or pass a "
            "Parquet file whose name ends in .parquet."
        ) from error


def read_csv(path: Path, file: IO[str], decimal: str) -> DataTable:
    """Return the table of an open CSV file, separated by commas, semicolons or tabulators."""
    first = file.readline()
    file.seek(0)
    delimiter = max(DELIMITERS, key=first.count)  # the header decides; commas where it has none of them
    reader = csv.reader(file, delimiter=delimiter, strict=True)
    rows = ((reader.line_num, row) for row in reader if row)  # an empty line is no row
    _, header = next(rows, (0, []))
    names = checked_header(path, header)
    columns: dict[str, list[str]] = {name: [] for name in names}
    lines = []
    for line, row in rows:
        if len(row) != len(names):
            raise FileError(
                f"every line of {path} must have {len(names)} cells, as the header has, got {len(row)} in "
                f"line {line}. Correct the line; a cell that holds {delimiter!r} is quoted."
            )
        lines.append(line)
        for name, cell in zip(names, row, strict=True):
            columns[name].append(present(cell))
    return with_rows(DataTable(path, columns, lines, decimal))


def read_parquet(path: Path) -> DataTable:
    """Return the table of a Parquet file, read by pandas."""
    try:
        pandas: Any = importlib.import_module("pandas")
        frame = pandas.read_parquet(path)
    except ImportError as error:
        raise FileError(
            f"Parquet files are read by pandas and pyarrow, which are not installed ({error}). Run pip "
            'install "kernelopt[tables]", or pass a CSV file.'
        ) from error
    except (ValueError, OSError) as error:  # pyarrow's errors are among these
        raise FileError(
            f"{path} must be a Parquet file, got one that pandas cannot read ({error}). Write it again."
        ) from error
    names = checked_header(path, [str(name) for name in frame.columns])
    found = [present_values(frame[name].tolist()) for name in frame.columns]
    columns = dict(zip(names, found, strict=True))
    return with_rows(DataTable(path, columns, list(range(2, len(frame) + 2))))


def present_values(values: Iterable[Any]) -> list[str]:
    """Return values of a data frame as cells; `str` of a float has all its digits."""
    return ["" if value is None else present(str(value)) for value in values]


def present(cell: str) -> str:
    """Return a cell without surrounding blanks, "" where it stands for a missing value."""
    bare = cell.strip()
    return "" if bare.lower() in MISSING else bare


def checked_header(path: Path, header: Sequence[str]) -> list[str]:
    """Return the names of the columns after a check."""
    names = [name.strip() for name in header]
    if not names:
        raise FileError(f"{path} must have a header and rows, got an empty file. Write the names first.")
    if all(as_number(name) is not None for name in names):
        raise FileError(
            f"the first line of {path} must hold the names of the columns, got numbers: {listed(names)}. "
            "Write a line of names above it."
        )
    wrong = [f"an empty name at column {j + 1}" for j, name in enumerate(names) if not name]
    wrong += [f"{name!r} twice" for name in dict.fromkeys(names) if name and names.count(name) > 1]
    if wrong:
        raise FileError(
            f"the columns of {path} must have different names, got {', '.join(wrong[:NAMED])}. Rename them "
            "in the first line."
        )
    return names


def with_rows(table: DataTable) -> DataTable:
    """Return a table that has rows, or raise `FileError`."""
    if not len(table):
        raise FileError(f"{table.path} must have rows below its header, got none. Add data.")
    return table


def as_number(cell: str, decimal: str = ".") -> float | None:
    """Return the number of a cell, None where it holds something else; Python's own "1_000" is text.

    Examples
    --------
    >>> as_number("2.5e3"), as_number("2,5"), as_number("2,5", ","), as_number("2.500", ",")
    (2500.0, None, 2.5, None)
    """
    if "_" in cell or (decimal != "." and "." in cell):
        return None
    try:
        return float(cell.replace(decimal, "."))
    except ValueError:
        return None


def places(lines: Sequence[int]) -> str:
    """Return the first of some lines as text."""
    what = "line" if len(lines) == 1 else "lines"
    return f"{what} {', '.join(map(str, lines[:NAMED]))}{', ...' if len(lines) > NAMED else ''}"


def listed(names: Sequence[str]) -> str:
    """Return names as text, the first of them where they are many."""
    few = 20
    return ", ".join(names[:few]) + (f", ... ({len(names)} in all)" if len(names) > few else "")


def quoted(name: str) -> str:
    """Return a name as one writes it in a shell."""
    return name if name.replace("_", "").isalnum() else f'"{name}"'

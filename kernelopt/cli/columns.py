"""Columns of a table as numbers, and what is wrong with them: one message names all columns."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

import numpy as np

from kernelopt.cli.data_table import DataTable, as_number, listed, places, quoted
from kernelopt.errors import InputError, NotFiniteError
from kernelopt.validation import Array

THOUSANDS = re.compile(r"[+-]?\d{1,3}([.,' ]\d{3})+([.,]\d+)?")  # 1.000.000, 1 000,5 or 1,000.5
MANY_TEXTS = 20  # values of a column of text above which, and above half the rows, each row has its own


def refuse_gaps(table: DataTable, names: Sequence[str], droppable: Sequence[str] = ()) -> None:
    """Raise `InputError` if some columns have cells without a value, and say all of them.

    Parameters
    ----------
    table : DataTable
    names : sequence of str
        Columns of the table.
    droppable : sequence of str
        Those that the command can leave out by `--drop`.
    """
    found = {}
    for name in names:
        if "" in (cells := table.columns[name]):
            found[name] = [line for line, cell in zip(table.lines, cells, strict=True) if not cell]
    if not found:
        return
    rows = sorted(set().union(*found.values()))
    drop = [name for name in found if name in droppable]
    raise InputError(
        f"every cell must have a value, got {len(rows)} of {len(table)} rows of {table.path} without one, in "
        f"{listed([f'{name!r} ({len(lines)})' for name, lines in found.items()])}: {places(rows)}. Fill "
        f"them in or leave out these rows{dropping(drop, ', or leave out the columns by ')}."
    )


def refuse_constant(table: DataTable, names: Sequence[str]) -> None:
    """Raise `InputError` if some columns have one value only; they say nothing, and have no variance."""
    constant = [name for name in names if is_constant(table, name)]
    if constant:
        first = table.columns[constant[0]][0]
        raise InputError(
            f"columns must not be constant, got {listed([repr(name) for name in constant])} in {table.path} "
            f"({constant[0]!r} is {first!r} in all {len(table)} rows). Leave them out: {dropping(constant)}."
        )


def is_constant(table: DataTable, name: str) -> bool:
    """Whether all cells have one value, as text or as a number: 1 and 1.0 are the same."""
    cells = set(table.columns[name])
    values = set(map(table.number, cells))
    return len(cells) == 1 or (len(values) == 1 and None not in values)


def refuse_text(table: DataTable, names: Sequence[str], droppable: Sequence[str] = ()) -> None:
    """Raise `InputError` if some columns without gaps hold text, and say all of them.

    The arguments are those of `refuse_gaps`.
    """
    texts = {}
    for name in names:
        cells = zip(table.lines, table.columns[name], strict=True)
        found = [(line, cell) for line, cell in cells if table.number(cell) is None]
        if found:
            texts[name] = found
    if texts:
        name, [(line, cell), *_] = next(iter(texts.items()))
        remedies = text_remedies(
            table, {name: [cell for _, cell in found] for name, found in texts.items()}, droppable
        )
        raise InputError(
            f"columns must hold numbers, got text in {listed([repr(name) for name in texts])} of "
            f"{table.path} ({cell!r} in line {line} of {name!r}). {' '.join(remedies)}"
        )


def marks_remedy(table: DataTable, cells: Sequence[str]) -> str:
    """Return what to do if some of the cells are numbers with other marks, as 3,14 or 1.000,5, else ""."""
    other = "," if table.decimal == "." else "."
    if not any(as_number(cell, other) is not None or THOUSANDS.fullmatch(cell) for cell in cells):
        return ""
    if other == ".":
        return "Remove marks of thousands; leave out --decimal if the point is the decimal mark."
    return "Remove marks of thousands; pass --decimal , if the comma is the decimal mark."


def text_remedies(
    table: DataTable, texts: Mapping[str, Sequence[str]], droppable: Sequence[str]
) -> list[str]:
    """Return what to do with columns of text.

    A column of numbers has few texts, which are mistakes. One of dates or names has a value for each row.
    """
    marked, mistaken, many, few = [], [], [], []
    for name, cells in texts.items():
        if marks_remedy(table, cells[:1]):
            marked.append(name)
        elif name not in droppable or len(cells) <= len(table) / 2:
            mistaken.append(repr(name))
        elif len(set(cells)) > max(MANY_TEXTS, len(table) / 2):
            many.append(name)
        else:
            few.append(name)
    remedies = [marks_remedy(table, texts[marked[0]])] if marked else []
    if mistaken:
        remedies.append(f"Correct the cells of {listed(mistaken)} that are no numbers.")
    if few:
        names = " ".join(map(quoted, few))
        remedies.append(f"Make each text a coordinate by --categorical {names}, or pass {dropping(few)}.")
    if many:
        remedies.append(
            f"Leave out texts that are different in most rows, such as dates and names, by {dropping(many)}, "
            "or write them as numbers."
        )
    return remedies


def dropping(names: Sequence[str], before: str = "") -> str:
    """Return the option that leaves out columns, after a text; "" where there are none."""
    return f"{before}--drop {' '.join(map(quoted, names))}" if names else ""


def numbers(table: DataTable, names: Sequence[str]) -> Mapping[str, Array]:
    """Return columns without gaps and text as arrays of shape (n,), or raise `NotFiniteError`."""
    found = {name: np.array(list(map(table.number, table.columns[name])), dtype=float) for name in names}
    bad = {name: np.flatnonzero(~np.isfinite(x)) for name, x in found.items() if not np.isfinite(x).all()}
    if bad:
        rows = np.unique(np.concatenate(list(bad.values())))
        raise NotFiniteError(
            f"numbers must be finite, got infinite ones in "
            f"{listed([f'{name!r} ({len(rows)})' for name, rows in bad.items()])} of {table.path}: "
            f"{places([table.lines[i] for i in rows])}. Correct or leave out these rows."
        )
    return found

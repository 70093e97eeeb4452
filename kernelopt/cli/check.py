"""Inspect a table before a fit: what each column holds, and what stands in the way of `kernelopt fit`.

Print a line for each column of a CSV or Parquet file: what it holds, its different values, its missing
cells, and what to do about it. With --target, also how the target is read. The last line is a command that
fits. Exit status: 0 if `kernelopt fit` takes all columns, 1 if one needs an option or correction, or if the
file cannot be used, 2 on wrong use.
"""

from __future__ import annotations

import argparse
import shlex
from typing import TYPE_CHECKING, Any

import numpy as np

from kernelopt.cli.output import Output
from kernelopt.cli.usage import Parser, add_table

if TYPE_CHECKING:
    import pandas as pd

COLUMNS = {
    "column": ("name", ""),
    "holds": ("holds", ""),
    "what to do": ("advice", ""),
    "values": ("values", ""),
    "missing": ("missing", ""),
}


def add_options(parser: Parser) -> None:
    """Add the options of the command."""
    add_table(parser)
    parser.add_argument("--target", metavar="COLUMN", help="the column to predict")


def run(options: argparse.Namespace) -> int:
    """Print what the columns hold and a command that fits; return the exit status."""
    from kernelopt.cli.table import read_table, read_target, require_column

    table, output = read_table(options.data, options.decimal), Output(options.json)
    if options.target is not None:
        require_column(table, options.target, "--target")
    found = [inspected(table, name) for name in table.columns if name != options.target]
    target = None
    output.line(f"{len(table)} rows, {len(table.columns)} columns")
    output.rows(COLUMNS, found, numbers=2)
    if options.target is not None:
        y, task, why = read_target(table, options.target)
        counts = {str(label): int((y == label).sum()) for label in sorted({*y.tolist()})}
        target = {"name": options.target, "task": task, "why": why}
        text = f"{options.target!r} is taken for {'numbers' if task == 'regression' else 'classes'}: {why}"
        if task == "classification":
            target["rows"] = counts
            text += f" ({', '.join(f'{label}: {count}' for label, count in counts.items())})"
        output.line(text)
    chosen = {
        name: [row["name"] for row in found if row["option"] == name] for name in ("drop", "categorical")
    }
    impute = any(row["missing"] for row in found if row["option"] != "drop")
    words = [
        "kernelopt",
        "fit",
        str(options.data),
        "--target",
        options.target or "COLUMN",
        "--out",
        "model.npz",
    ]
    words += ["--decimal", options.decimal] * (options.decimal != ".") + ["--impute"] * impute
    words += [word for name, columns in chosen.items() if columns for word in (f"--{name}", *columns)]
    output.line(shlex.join(words))
    output.document({"rows": len(table), "columns": found, "target": target, "command": words})
    return 1 if any(row["refused"] for row in found) else 0


def inspected(table: pd.DataFrame, name: str) -> dict[str, Any]:
    """Return a line of the table: what a column holds, the option it needs, and whether `fit` refuses it."""
    from kernelopt.estimators.table import as_numbers

    cells = table[[name]].dropna()
    cells.attrs = table.attrs
    numbers, missing = as_numbers(cells)[name].to_numpy(), len(table) - len(cells)
    option, advice, refused = advice_of(table, cells, name, numbers)
    if missing and option != "drop":
        advice = "; ".join(filter(None, [advice, "impute"]))
    return {
        "name": name,
        "holds": holds(cells[name], numbers),
        "values": int(cells[name].nunique()),
        "missing": missing,
        "option": option,
        "advice": advice,
        "refused": refused or missing > 0,
    }


def holds(cells: pd.Series, numbers: Any) -> str:
    """Return in words what the cells of a column hold, whose numbers are NaN for text."""
    texts = np.isnan(numbers)
    if not cells.size:
        return "nothing"
    if texts.any():
        return f"{'' if texts.all() else 'numbers and '}text, such as {cells[texts].iloc[0]!r}"
    whole = "whole " * bool((numbers == np.round(numbers)).all())
    return f"{whole}numbers, {numbers.min():g} to {numbers.max():g}"


def advice_of(table: pd.DataFrame, cells: pd.DataFrame, name: str, numbers: Any) -> tuple[str, str, bool]:
    """Return the option that a column needs, what to do in words, and whether `fit` refuses the column."""
    from kernelopt.cli.table import differs, identifiers, marks

    texts = np.isnan(numbers)
    if cells[name].nunique() < 2:
        return "drop", "constant: drop", True
    if texts.any() and marks(cells, cells.notna() & texts[:, None]):
        return "drop", "numbers with other marks: pass --decimal , or correct them", True
    named = identifiers(table, [name])
    if named:
        return "drop", f"{named[name]}: drop {name}?", bool(texts.any())
    if texts.any() and differs(table, name):
        return "drop", "text that differs in most rows: drop", True
    if texts.any():
        return "categorical", "categorical" + ", or correct the text" * (not texts.all()), True
    if np.isinf(numbers).any():
        return "drop", "infinite numbers: correct or drop", True
    return "", "", False

"""What a command prints: text and tables for people, or one JSON document for programs."""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

from kernelopt.plain_tables import text_table

Columns: TypeAlias = Mapping[str, tuple[str, str]]
"""The columns of a table by their headings: the entry of each row, and its format."""


@dataclass(frozen=True)
class Output:
    """The standard output of one command: text, or with `json` nothing but the document.

    On a terminal a table is fitted to its width. Elsewhere a row is a line, however long, without
    colours, so that `grep` and `cut` find what they look for.
    """

    json: bool = False

    def line(self, text: str) -> None:
        """Print text, which a terminal wraps at words."""
        if not self.json:
            console = Console()
            console.print(Text(text), soft_wrap=not console.is_terminal)

    def table(self, header: Sequence[str], rows: Sequence[Sequence[str]], numbers: int = 0) -> None:
        """Print a table, whose last `numbers` columns are aligned at the right and never wrapped."""
        if self.json:
            return
        console = Console()
        if not console.is_terminal:
            print(text_table(header, rows, numbers))
            return
        drawn = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0))
        for j, heading in enumerate(header):
            number = j >= len(header) - numbers
            drawn.add_column(heading, justify="right" if number else "left", no_wrap=number, overflow="fold")
        for row in rows:
            drawn.add_row(*map(Text, row))
        console.print(drawn)

    def rows(self, columns: Columns, rows: Iterable[Mapping[str, Any]], numbers: int = 0) -> None:
        """Print the entries of rows as a table."""
        cells = [[text_of(row.get(key), style) for key, style in columns.values()] for row in rows]
        self.table([*columns], cells, numbers)

    def document(self, content: Mapping[str, Any]) -> None:
        """Print the document of `--json`."""
        if self.json:
            print(json.dumps(as_json(content), indent=1, ensure_ascii=False, allow_nan=False))


def as_json(value: Any) -> Any:
    """Return a value as JSON has it; infinite numbers and NaN, which it does not have, become text.

    Examples
    --------
    >>> as_json({"gap": float("inf"), "weights": np.array([0.5, 1.0])})
    {'gap': 'inf', 'weights': [0.5, 1.0]}
    """
    if isinstance(value, np.ndarray | np.generic):
        return as_json(value.tolist())
    if isinstance(value, Mapping):
        return {str(name): as_json(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [as_json(part) for part in value]
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value


def say(message: object) -> None:
    """Print a message on standard error."""
    print(f"kernelopt: {message}", file=sys.stderr)


def check_out(parser: argparse.ArgumentParser, out: Path, *read: Path) -> None:
    """End with an error, before the work, if `--out` cannot be written or is a file that is read."""
    if not out.absolute().parent.is_dir() or out.is_dir():
        parser.error(f"--out must be a file in an existing folder, got {out}")
    if out.resolve() in [path.resolve() for path in read]:
        parser.error(f"--out must not be a file that is read, got {out}")


def text_of(value: Any, style: str) -> str:
    """Return a formatted number, a dash where there is none, and text as it is."""
    missing = value is None or (not isinstance(value, str) and math.isnan(value))
    return "–" if missing else format(value, style)


def progress() -> Progress:
    """Return a progress bar on standard error, which is erased at the end; only on a terminal."""
    console = Console(stderr=True)
    columns = (BarColumn(), TimeElapsedColumn(), TextColumn("{task.description}"))
    return Progress(*columns, console=console, transient=True, disable=not console.is_terminal)

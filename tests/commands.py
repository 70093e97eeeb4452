"""The command line in this process, and tables for it."""

from __future__ import annotations

import csv
import io
import shlex
from contextlib import redirect_stderr, redirect_stdout
from typing import NamedTuple

from kernelopt import cli


class Ran(NamedTuple):
    """The exit status of a command, and what it printed."""

    status: int
    out: str
    err: str


def ran(*words):
    """Run a command; texts are split as a shell splits them, and a path is one word."""
    split = [part for word in words for part in (shlex.split(word) if isinstance(word, str) else [str(word)])]
    with redirect_stdout(io.StringIO()) as out, redirect_stderr(io.StringIO()) as err:
        try:
            status = cli.main(split)
        except SystemExit as stop:
            status = stop.code
    return Ran(status, out.getvalue(), err.getvalue())


def save_table(path, X, y, target="class", names=None):
    """Write points and their targets as CSV."""
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow([*(names or [f"x{j}" for j in range(X.shape[1])]), target])
        writer.writerows([*row, label] for row, label in zip(X.tolist(), y, strict=True))

"""The tables that the commands print."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.table import Table

if TYPE_CHECKING:  # cvxpy is slow to import: --help and wrong arguments do without
    from kernelopt.demo import DemoRow
    from kernelopt.testing import ConformanceRow


def plain_table() -> Table:
    """Return an empty table without lines, with one space between columns."""
    return Table(box=None, pad_edge=False, padding=(0, 1, 0, 0))


def verdict_table(rows: Sequence[ConformanceRow]) -> Table:
    """Return the rows of the conformance suite as a table."""
    drawn = plain_table()
    for heading, width in (("solver", 8), ("problem", 14), ("says", 8)):
        drawn.add_column(heading, overflow="fold", min_width=width)
    for heading in ("value", "error", "gap", "feas.", "compl.", "s"):
        drawn.add_column(heading, justify="right", no_wrap=True)
    drawn.add_column("verdict", overflow="fold")
    for row in rows:
        measures = (row.error, row.gap, row.infeasibility, row.complementarity)
        drawn.add_row(
            row.solver,
            row.problem,
            row.status,
            number(None if math.isnan(row.value) else row.value, ".6g"),
            *(number(None if math.isnan(value) else value, ".0e") for value in measures),
            number(row.seconds, ".2f"),
            row.verdict + (f": {row.why}" if row.why else ""),
        )
    return drawn


def demo_table(rows: Sequence[DemoRow]) -> Table:
    """Return the rows of the demo as a table, with an empty line before the rows without a solution."""
    drawn = plain_table()
    drawn.add_column("formulation", overflow="fold", min_width=12)
    drawn.add_column("cone", no_wrap=True)
    drawn.add_column("method", overflow="fold", min_width=8)
    for heading in ("value", "lower", "upper", "gap", "acc.", "build", "solve"):
        drawn.add_column(heading, justify="right", no_wrap=True)
    ended = False
    for row in rows:
        solution = row.solution
        if solution is None and not ended:
            drawn.add_row()
            ended = True
        bounds = [None, None] if solution is None else [solution.lower, solution.upper]
        drawn.add_row(
            row.name, row.cone, row.method,
            *(number(v, "#.6g") for v in [row.value, *bounds]),
            number(None if solution is None else solution.gap, ".0e"),
            number(row.accuracy, ".3f"), number(row.build_time, ".2f"), number(row.solve_time, ".2f"),
        )  # fmt: skip
    return drawn


def number(value: float | None, style: str) -> str:
    """Return a formatted number, or a dash."""
    return "–" if value is None else format(value, style)

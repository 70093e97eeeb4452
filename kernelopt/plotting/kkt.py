"""`plot_kkt`: the residuals of the conditions of Karush, Kuhn and Tucker on a logarithmic axis."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

from kernelopt.duality import KKT
from kernelopt.duality.conditions import Condition
from kernelopt.errors import InputError
from kernelopt.figures import CARETLEFT, CARETRIGHT, FONT, name_rows, new_axes, tall, write_beside
from kernelopt.methods import DEFAULT_TOL
from kernelopt.validation import positive, shown

LONGEST = 40  # characters of the name of a condition
SMALLEST_EXPONENT = -17  # of the axis: residuals below 1e-17 are drawn at its left end, as zero is
LARGEST_EXPONENT = 17  # larger residuals are drawn at the right end, as infinity is
WITHIN, BEYOND = "#08306b", "#e6760a"  # dark and light


def plot_kkt(table: KKT, tol: float = DEFAULT_TOL, ax: Any = None) -> Any:
    """Draw the relative residual of every condition of optimality, with the tolerance as a line.

    The kinds of the conditions stand at the right. A marker is filled where the residual is within the
    tolerance, and open where it is beyond, with the number beside it. A residual of zero is an arrow at the
    left end of the axis, an infinite one at the right end. A condition that was not measured says so.

    Parameters
    ----------
    table : KKT
        The result of `kernelopt.kkt_table(solution)`.
    tol : float > 0, default kernelopt.extend.DEFAULT_TOL
    ax : matplotlib axes, optional

    Returns
    -------
    matplotlib axes

    Raises
    ------
    InputError
        If `table` is no such table, and of class ParameterError if `tol` is no positive number.
    """
    if not isinstance(table, KKT):
        several = isinstance(getattr(table, "solution_", None), tuple)
        name = f"model.solution_{'[0]' if several else ''}" if hasattr(table, "fit") else "solution"
        raise InputError(
            f"table must be the conditions of optimality at a solution, got {shown(table)} in plot_kkt. Pass "
            f"kernelopt.kkt_table({name})."
        )
    tol, rows = positive(tol, "tol"), table.conditions
    ax = new_axes(ax, tall(len(rows)))
    seen = [r for r in [tol, *(c.relative for c in rows if not c.why_not)] if 0 < r < np.inf]
    low = max(np.floor(np.log10(min(seen))), SMALLEST_EXPONENT)
    high = max(min(np.ceil(np.log10(max(seen))), LARGEST_EXPONENT), low + 1)
    left, right = 10.0**low, 10.0**high
    ax.set(xscale="log", xlim=(left / 3, right * 3))
    starts = [i for i, c in enumerate(rows) if i == 0 or c.kind != rows[i - 1].kind]
    for i, condition in enumerate(rows):
        draw_condition(ax, i, condition, tol, (left, right))
    for start, end in pairwise([*starts, len(rows)]):  # the kinds, at the right
        middle = (1, (start + end - 1) / 2)
        write_beside(ax, rows[start].kind, middle, (5, 0), xycoords=("axes fraction", "data"))
        if start:
            ax.axhline(start - 0.5, color="0.6", linewidth=0.6)
    ax.axvline(tol, color="0.3", linestyle="--", linewidth=1)
    name_rows(ax, [c.where for c in rows], LONGEST)
    ax.tick_params(axis="x", labelsize=FONT)
    ax.set_xlabel(f"relative residual (dashed line: tolerance {tol:.0e})")
    ax.set_title("Conditions of optimality")
    return ax


def draw_condition(ax: Any, row: int, condition: Condition, tol: float, ends: tuple[float, float]) -> None:
    """Draw the residual of one condition at the height `row`."""
    left, right = ends
    if condition.why_not:
        ax.text(left, row, "not measured", fontsize=FONT, style="italic", va="center")
        return
    residual = condition.relative if np.isfinite(condition.relative) else np.inf
    within, x = residual <= tol, min(max(residual, left), right)
    shape: Any = CARETLEFT if residual < left else CARETRIGHT if residual > right else "o"
    ink, fill = (WITHIN, WITHIN) if within else (BEYOND, "white")
    ax.hlines(row, left / 3, x, color="0.85", linewidth=1, zorder=1)
    ax.plot([x], [row], marker=shape, linestyle="none", color=ink, zorder=3, markerfacecolor=fill)
    if not within:
        box = {"facecolor": "white", "edgecolor": "none", "pad": 0.5}
        write_beside(ax, f"{residual:.0e}", (x, row), (-8, 0), ha="right", bbox=box, zorder=2)

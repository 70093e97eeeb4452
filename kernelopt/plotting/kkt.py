"""`plot_kkt`: the residuals of the conditions of Karush, Kuhn and Tucker on a logarithmic axis."""

from __future__ import annotations

from typing import Any

import numpy as np

from kernelopt.duality import KKT
from kernelopt.duality.conditions import Condition
from kernelopt.errors import InputError
from kernelopt.figures import look, new_axes, shortened_name
from kernelopt.methods import DEFAULT_TOL
from kernelopt.validation import positive, shown

LONGEST = 40  # characters of the name of a condition
ROW_HEIGHT = 0.19  # inches of a new figure for each row
SMALLEST_EXPONENT = -17  # of the axis: residuals below 1e-17 are drawn at its left end, as zero is
LARGEST_EXPONENT = 17  # larger residuals are drawn at the right end, as infinity is
WITHIN, BEYOND = "#08306b", "#e6760a"  # dark and light
CARETLEFT, CARETRIGHT = 4, 5  # matplotlib's names for markers that are centred at their tips


def plot_kkt(table: KKT, tol: float = DEFAULT_TOL, ax: Any = None) -> Any:
    """Draw the relative residual of every condition of optimality, with the tolerance as a line.

    The marker of a row tells the kind of the condition. It is filled where the residual is within the
    tolerance, and open where it is beyond, with the number beside it. A residual of zero is an arrow at the
    left end of the axis, an infinite one at the right end. A condition that was not measured says so.

    Parameters
    ----------
    table : KKT
        The result of `kernelopt.kkt_table(solution)`.
    tol : float > 0, default kernelopt.DEFAULT_TOL
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
        raise InputError(
            f"table must be the conditions of optimality at a solution, got {shown(table)} in plot_kkt. Pass "
            "kernelopt.kkt_table(solution)."
        )
    tol, rows = positive(tol, "tol"), table.conditions
    ax = new_axes(ax, (7.5, 1.9 + ROW_HEIGHT * max(len(rows), 8)))
    left, right = limits([c.relative for c in rows if not c.why_not], tol)
    ax.set_xscale("log")
    ax.set_xlim(left / 3, right * 3)
    kinds = list(dict.fromkeys(c.kind for c in rows))
    for i, condition in enumerate(rows):
        draw_condition(ax, i, condition, look(kinds.index(condition.kind))["marker"], tol, (left, right))
    ax.axvline(tol, color="0.3", linestyle="--", linewidth=1, label=f"tolerance {tol:.0e}")
    for k, kind in enumerate(kinds):
        ax.plot([], [], marker=look(k)["marker"], linestyle="none", color=WITHIN, label=kind)
    ax.set_yticks(range(len(rows)), [shortened_name(c.where, LONGEST) for c in rows], fontsize=8)
    ax.set_ylim(len(rows) - 0.5, -0.5)
    ax.set_xlabel("relative residual")
    ax.set_title("Conditions of optimality")
    ax.legend(fontsize=8, loc="center left", bbox_to_anchor=(1.01, 0.5), frameon=False)
    return ax


def draw_condition(
    ax: Any, row: int, condition: Condition, marker: str, tol: float, ends: tuple[float, float]
) -> None:
    """Draw the residual of one condition at the height `row`."""
    left, right = ends
    if condition.why_not:
        ax.text(left, row, "not measured", fontsize=8, style="italic", va="center")
        return
    residual = condition.relative if np.isfinite(condition.relative) else np.inf
    ink = WITHIN if residual <= tol else BEYOND
    x = min(max(residual, left), right)
    shape: Any = CARETLEFT if residual < left else CARETRIGHT if residual > right else marker
    ax.hlines(row, left / 3, x, color="0.85", linewidth=1, zorder=1)
    ax.plot(
        [x], [row], marker=shape, linestyle="none", color=ink, zorder=3,
        markerfacecolor=ink if residual <= tol else "white",
    )  # fmt: skip
    if residual > tol:
        ax.annotate(
            f"{residual:.0e}", (x, row), xytext=(-8, 0), textcoords="offset points", fontsize=8, ha="right",
            va="center", bbox={"facecolor": "white", "edgecolor": "none", "pad": 0.5}, zorder=2,
        )  # fmt: skip


def limits(residuals: list[float], tol: float) -> tuple[float, float]:
    """Return powers of ten around the finite positive residuals and the tolerance."""
    seen = [r for r in [*residuals, tol] if 0 < r < np.inf]
    low = max(np.floor(np.log10(min(seen))), SMALLEST_EXPONENT)
    high = min(np.ceil(np.log10(max(seen))), LARGEST_EXPONENT)
    return 10.0**low, 10.0 ** max(high, low + 1)

"""`plot_kkt`: the residuals of the conditions of Karush, Kuhn and Tucker on a logarithmic axis."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

from kernelopt.duality import KKT
from kernelopt.duality.conditions import Condition
from kernelopt.errors import InputError
from kernelopt.figures import (
    CARETLEFT,
    CARETRIGHT,
    STYLE,
    name_rows,
    new_axes,
    shortened_name,
    write_beside,
)
from kernelopt.methods import DEFAULT_TOL
from kernelopt.validation import positive, shown


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
        The relative residual up to which a condition counts as met.
    ax : matplotlib axes, optional
        Where to draw; by default a new figure.

    Returns
    -------
    matplotlib axes
        What was drawn on.

    Raises
    ------
    InputError
        If `table` is no such table, and of class ParameterError if `tol` is no positive number.

    Examples
    --------
    >>> import numpy as np
    >>> import kernelopt as ko
    >>> from formulations import lp_norm
    >>> K = [np.eye(2), np.array([[1.0, -1], [-1, 1]])]
    >>> solution = lp_norm.primal(K, [1, -1]).solve("exact")
    >>> ax = ko.plotting.plot_kkt(ko.kkt_table(solution))
    >>> ax.get_xlabel()
    'relative residual (dashed line: tolerance 1e-05)'
    """
    tol, rows = positive(tol, "tol"), checked(table).conditions
    ax = new_axes(ax, rows=len(rows))
    seen = [r for r in [tol, *(c.relative for c in rows if not c.why_not)] if 0 < r < np.inf]
    # residuals beyond 1e-17 and 1e17 are drawn at the ends of the axis, as zero and infinity are
    low, high = (np.clip(np.log10(end), -17, 17) for end in (min(seen), max(seen)))
    left, right = 10.0 ** np.floor(low), 10.0 ** max(np.ceil(high), np.floor(low) + 1)
    ax.set(xscale="log", xlim=(left / 3, right * 3))
    starts = [i for i, c in enumerate(rows) if i == 0 or c.kind != rows[i - 1].kind]
    for i, condition in enumerate(rows):
        draw_condition(ax, i, condition, tol, (left, right))
    for start, end in pairwise([*starts, len(rows)]):  # the kinds, at the right
        middle = (1, (start + end - 1) / 2)
        write_beside(ax, rows[start].kind, middle, (5, 0), xycoords=("axes fraction", "data"))
        if start:
            ax.axhline(start - 0.5, color="0.6", linewidth=0.6)
    ax.axvline(tol, color=STYLE.grey, linestyle="--", linewidth=1)
    name_rows(ax, [shortened_name(c.where, 40) for c in rows])
    ax.tick_params(axis="x", labelsize=STYLE.font)
    ax.set_xlabel(f"relative residual (dashed line: tolerance {tol:.0e})")
    ax.set_title("Conditions of optimality")
    return ax


def draw_condition(ax: Any, row: int, condition: Condition, tol: float, ends: tuple[float, float]) -> None:
    """Draw the residual of one condition at the height `row`."""
    left, right = ends
    if condition.why_not:
        ax.text(left, row, "not measured", fontsize=STYLE.font, style="italic", va="center")
        return
    residual = condition.relative if np.isfinite(condition.relative) else np.inf
    within, x = residual <= tol, min(max(residual, left), right)
    shape: Any = CARETLEFT if residual < left else CARETRIGHT if residual > right else "o"
    ink, fill = (STYLE.dark, STYLE.dark) if within else (STYLE.light, "white")
    ax.hlines(row, left / 3, x, color=STYLE.pale, linewidth=1, zorder=1)
    ax.plot([x], [row], marker=shape, linestyle="none", color=ink, zorder=3, markerfacecolor=fill)
    if not within:
        box = {"facecolor": "white", "edgecolor": "none", "pad": 0.5}
        write_beside(ax, f"{residual:.0e}", (x, row), (-8, 0), ha="right", bbox=box, zorder=2)


def checked(table: object) -> KKT:
    """Return a table of the conditions of optimality after checking that it is one."""
    if isinstance(table, KKT):
        return table
    several = isinstance(getattr(table, "solution_", None), tuple)
    name = f"model.solution_{'[0]' if several else ''}" if hasattr(table, "fit") else "solution"
    raise InputError(
        f"table must be the conditions of optimality at a solution, got {shown(table)} in plot_kkt. Pass "
        f"kernelopt.kkt_table({name})."
    )

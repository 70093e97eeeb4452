"""`plot_bounds`: the certified lower and upper bound of several solutions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from kernelopt.errors import InputError
from kernelopt.figures import (
    CARETLEFT,
    CARETRIGHT,
    legend_below,
    name_rows,
    new_axes,
    shortened_name,
    tall,
    write_beside,
)
from kernelopt.plotting.arguments import AnySolution, drawn_solutions
from kernelopt.validation import is_real, shown

SMALLEST_GAP = 1e-12  # that is written: smaller gaps are rounding, and zero has no exponent
TEXT_BOX = {"facecolor": "white", "edgecolor": "none", "alpha": 0.8, "pad": 0.5}  # behind text on a line
LEFT_ROOM, RIGHT_ROOM = 0.05, 0.35  # of the range of the values, beside it; the texts are at the right
LONGEST = 40  # characters of the name of a reference
DASHES = ("--", ":", "-.")


def plot_bounds(
    solutions: Mapping[str, Any], references: Mapping[str, float] | None = None, ax: Any = None
) -> Any:
    """Draw the certified lower and upper bound of each solution, with its gap as text.

    A bound that is infinite is named in the text, and a dotted line leads to the edge of the picture.

    Parameters
    ----------
    solutions : dict from label to Solution, fitted estimator, or what `kernelopt.load` returns
    references : dict from label to value, optional
        Values to compare with, such as the value of the best single kernel. They are drawn as vertical lines.
    ax : matplotlib axes, optional

    Returns
    -------
    matplotlib axes

    Raises
    ------
    InputError
        If there is no solution, or a reference is no finite number.
    """
    found = {label: each.solution for label, each in drawn_solutions(solutions, "plot_bounds").items()}
    lines = {} if references is None else as_references(references)
    ax = new_axes(ax, tall(len(found)))
    ends = [v for s in found.values() for v in (s.lower, s.upper) if np.isfinite(v)]
    values = [0.0, *lines.values(), *ends]
    low, high = min(values), max(values)
    reach = (high - low) or 1.0
    left, right = low - LEFT_ROOM * reach * (low < 0), high + RIGHT_ROOM * reach
    for row, solution in enumerate(found.values()):
        draw_row(ax, row, solution, left, right)
    for i, (label, value) in enumerate(lines.items()):
        look = {"linestyle": DASHES[i % len(DASHES)], "color": str(0.2 + 0.2 * (i // len(DASHES) % 3))}
        ax.axvline(value, linewidth=1, label=f"{shortened_name(label, LONGEST)}: {value:.3g}", **look)
    name_rows(ax, found)
    ax.set(xlim=(left, right), xlabel="value of the criterion", title="Certified bounds")
    legend_below(ax)
    return ax


def draw_row(ax: Any, row: int, solution: AnySolution, left: float, right: float) -> None:
    """Draw the bounds of one solution; the first row names the markers in the legend."""
    lower, upper = float(solution.lower), float(solution.upper)
    below, above = np.isfinite(lower), np.isfinite(upper)
    if above:
        ax.barh(row, upper, color="0.85")
    style = {"linewidth": 3} if below and above else {"linewidth": 1.5, "linestyle": ":"}
    end = min(upper, right)
    ax.hlines(row, max(lower, left), end, color="0.3", **style)
    tips = (("lower", lower, CARETRIGHT, "tab:red"), ("upper", upper, CARETLEFT, "tab:blue"))
    for name, value, marker, color in tips:  # two arrows, whose tips are the bounds
        label = f"certified {name} bound" if row == 0 else None
        ax.plot(value, row, marker=marker, color=color, markersize=9, zorder=4, linestyle="none", label=label)
    gap = f"gap {max(solution.gap, SMALLEST_GAP):.0e}" if below and above else "no finite bound"
    text = "no lower bound" if above > below else "no upper bound" if below > above else gap
    # where there is no upper bound, the dotted line ends at the edge, and the text stands on it
    offset, side = ((12, 0), "left") if above else ((-4, 0), "right")
    write_beside(ax, text, (end, row), offset, ha=side, bbox=TEXT_BOX, zorder=3)


def as_references(references: Any) -> dict[str, float]:
    """Return the values to compare with, after checking that each is a finite number."""
    if not isinstance(references, Mapping):
        raise InputError(
            f"references must be a dict from label to value, got {shown(references)}. Pass {{'label': 1.0}}."
        )
    for label, value in references.items():
        if not is_real(value) or not np.isfinite(value):
            raise InputError(
                f"references[{label!r}] must be a finite number, got {shown(value)}. Pass {{'label': 1.0}}."
            )
    return {str(label): float(value) for label, value in references.items()}

"""Curves: two bounds with the gap between them, bounds against time, weights along a parameter."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from numbers import Real
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from kernelopt.figures.axes import FONT, labels_step, legend_below, legend_beside, look, shortened_name

Floats: TypeAlias = NDArray[np.float64]

ABOVE = {"color": "#08306b", "linestyle": "-", "linewidth": 2.0}  # dark and solid, also in grey
BELOW = {"color": "#e6760a", "linestyle": "--", "linewidth": 2.0}  # light and dashed
OTHERS = {"color": "0.8", "linewidth": 0.8, "zorder": 1}
FEW = 12  # points up to which each is marked, and lines up to which the legend names all
SHADE = {"color": "0.85", "linewidth": 0}
LOGARITHMIC = 20.0  # ratio of the largest to the smallest value from which the axis is logarithmic
CHARACTER = 4.6  # points: the width of a character of the texts of values
MARGIN = 0.05  # of the range of weights, above and below them
SMALLEST_GAP = 1e-16  # that is drawn: smaller ones are rounding, and zero has no logarithm
SMALLEST_SECONDS = 1e-9  # of a report on a logarithmic axis


def draw_bounds(
    ax: Any, x: Any, lower: Any, upper: Any, labels: tuple[str, str], steps: bool = False
) -> None:
    """Draw an upper and a lower curve with the gap between them shaded; infinite values are left out.

    The shade has no entry in a legend: where the bounds meet up to a certified gap, nobody could see it.
    """
    x, lower, upper = (np.asarray(part, dtype=float) for part in (x, lower, upper))
    style: dict[str, Any] = {"drawstyle": "steps-post"} if steps else {}
    dots: dict[str, Any] = {"marker": "o", "markersize": 4} if x.size <= FEW else {}
    both = np.isfinite(lower) & np.isfinite(upper)
    ax.fill_between(x, lower, upper, where=both, step="post" if steps else None, **SHADE)
    for values, style_of_line, label in ((upper, ABOVE, labels[0]), (lower, BELOW, labels[1])):
        finite = np.isfinite(values)
        ax.plot(x[finite], values[finite], label=label, **style_of_line, **style, **dots)


def draw_histories(ax: Any, histories: Mapping[str, Floats], gap: bool) -> None:
    """Draw bounds against seconds, or their relative gaps on a logarithmic axis.

    Parameters
    ----------
    ax : matplotlib axes
    histories : dict from label to array of shape (k, 4)
        Rows of seconds, lower bound, upper bound and relative gap.
    gap : bool
        Whether to draw the gaps.
    """
    if len(histories) == 1 and not gap:
        ((seconds, lower, upper, _),) = (rows.T for rows in histories.values())
        draw_bounds(ax, seconds, lower, upper, ("certified upper bound", "certified lower bound"), steps=True)
    else:
        for i, (label, rows) in enumerate(histories.items()):
            curves = np.maximum(rows[:, 3:], SMALLEST_GAP) if gap else rows[:, 1:3]
            draw_history(ax, rows[:, 0], curves, shortened_name(label), i)
    ends = [rows[-1, 0] for rows in histories.values()]
    if min(ends) > 0 and max(ends) > LOGARITHMIC * min(ends):
        ax.set_xscale("log")
    else:
        ax.set_xlim(0, 1.05 * max(ends))
    if gap:
        ax.set_yscale("log")
    ax.set_xlabel("seconds")
    ax.set_ylabel("certified relative gap" if gap else "value")
    if len(histories) > 1:
        legend_beside(ax)
    elif not gap:
        legend_below(ax)


def draw_history(ax: Any, seconds: Floats, curves: Floats, label: str, i: int) -> None:
    """Draw the finite entries of the columns of `curves` in one look and with one label."""
    style = {**look(i), "drawstyle": "steps-post", "markevery": max(1, seconds.size // FEW)}
    for column, values in enumerate(curves.T):
        finite = np.isfinite(values)
        name = None if column else label
        ax.plot(np.maximum(seconds[finite], SMALLEST_SECONDS), values[finite], label=name, **style)


def draw_weights_along(ax: Any, x: Floats, weights: Floats, names: Sequence[str]) -> None:
    """Draw one line per kernel, weights of shape (k, m).

    With many kernels only those with the largest weights have a look and a name of their own.
    """
    largest = np.argsort(-np.abs(weights).max(axis=0), kind="stable")
    named = sorted(largest[:FEW])
    for j in sorted(largest[FEW:]):
        ax.plot(x, weights[:, j], label="others" if j == largest[FEW:].min() else None, **OTHERS)
    for i, j in enumerate(named):
        ax.plot(x, weights[:, j], label=shortened_name(names[j]), **look(i))
    low, high = min(0.0, float(weights.min())), max(0.0, float(weights.max()))
    ax.set_ylim(low - MARGIN * (high - low), high + MARGIN * (high - low) or 1.0)  # zero is on the axis
    legend_beside(ax)


def values_axis(ax: Any, name: str, values: Sequence[Any], texts: Sequence[str]) -> Floats:
    """Set the horizontal axis of the values of a parameter; return where they stand.

    The axis is logarithmic where the values are positive numbers of different magnitude. Values that are
    infinite or no numbers stand at equal distances, with their texts as far as there is room.
    """
    ax.set_xlabel(name)
    if not all(isinstance(v, Real) and np.isfinite(float(v)) for v in values):
        x = np.arange(float(len(values)))
        names = [shortened_name(text) for text in texts]
        step = labels_step(ax, x.size, CHARACTER * (2 + max(map(len, names))))
        ax.set_xticks(x[::step], names[::step], fontsize=FONT)
        return x
    x = np.array(values, dtype=float)
    if x.min() > 0 and x.max() > LOGARITHMIC * x.min():
        ax.set_xscale("log")
    return x

"""Axes, the look of lines that stay apart in grey, and names that fit."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from kernelopt.errors import InputError, KerneloptError

# Okabe and Ito's colours without yellow, which is too light for lines. Neighbours differ in lightness.
COLOURS = ("#000000", "#e69f00", "#0072b2", "#56b4e9", "#d55e00", "#cc79a7", "#009e73")
DASHES = ("-", "--", "-.", ":")
CARETLEFT, CARETRIGHT = 4, 5  # matplotlib's names for markers that are centred at their tips
MARKERS = ("o", "s", "^", "D", "v")
LONGEST_NAME = 28  # characters of a name next to a figure
ROW_HEIGHT = 0.19  # inches of a new figure for each row with a label
LONG_NUMBER = re.compile(r"\d+\.\d{4,}(?:e[+-]?\d+)?")
ARGUMENT = re.compile(r"\b[A-Za-z_]\w*=")  # of a call, as in width=
FONT = 8  # points: of all labels
PADS = 10.0  # points: the ticks, and the spaces between the axes, their numbers and their name
COLUMN = 24  # entries of a column of a legend, which fit beside axes of the default size
LINE_HEIGHT = 1.3  # of a line of text over its font size
PLOT_SHARE = 0.8  # of the axes that a colour bar and labels leave, about


def new_axes(ax: Any, size: tuple[float, float] | None = None) -> Any:
    """Return `ax`, or the axes of a new figure of pyplot, whose size in inches is `size`.

    pyplot shows the new figure in a notebook. Nothing else of pyplot is used: with `ax`, its figures and its
    current axes stay as they are.
    """
    try:
        from matplotlib.axes import Axes
    except ImportError as error:
        raise KerneloptError(
            'plots need matplotlib, which is not installed. Run pip install "kernelopt[plot]".'
        ) from error
    if isinstance(ax, Axes):
        return ax
    if ax is not None:
        raise InputError(
            f"ax must be matplotlib axes, got a {type(ax).__name__}. Pass one axes, such as `ax` of "
            "fig, ax = pyplot.subplots(), or leave it out."
        )
    from matplotlib import pyplot

    return pyplot.subplots(figsize=size, layout="constrained")[1]


def tall(rows: int) -> tuple[float, float]:
    """Return the size in inches of a new figure in which the labels of so many rows do not touch."""
    return 7.0, max(4.8, 1.9 + ROW_HEIGHT * rows)


def look(i: int) -> dict[str, Any]:
    """Return colour, dashes and marker of line i. The first 28 differ in colour or dashes."""
    return {
        "color": COLOURS[i % len(COLOURS)],
        "linestyle": DASHES[i % len(DASHES)],
        "marker": MARKERS[i % len(MARKERS)],
        "markersize": 4,
    }


def shortened_name(name: Any, longest: int = LONGEST_NAME) -> str:
    """Return a name of at most `longest` characters.

    Of a longer name the numbers are rounded to four digits first, then the names of arguments are left out,
    and last an ellipsis is put into the middle.

    Examples
    --------
    >>> shortened_name("gaussian(width=1.681792830507429)")
    'gaussian(width=1.682)'
    >>> shortened_name("gaussian(width=1.681792830507429)", 15)
    'gaussian(1.682)'
    >>> shortened_name("gaussian(width=1.681792830507429)", 9)
    'gaus…682)'
    """
    text = " ".join(str(name).split())
    if len(text) > longest:
        text = LONG_NUMBER.sub(lambda number: f"{float(number[0]):.4g}", text)
    if len(text) > longest:
        text = ARGUMENT.sub("", text)
    kept = max(longest - 1, 2)
    return text if len(text) <= longest else f"{text[: kept // 2]}…{text[len(text) - (kept + 1) // 2 :]}"


def labels_step(ax: Any, count: int, size: float, horizontal: bool = True) -> int:
    """Return the step at which labels of `count` equal places along an axis do not touch each other.

    Each label takes `size` points along the axis: the size of its font, or the width of a horizontal text.
    """
    length = in_points(ax)[0 if horizontal else 1] * PLOT_SHARE
    return max(1, int(-(-count * size * LINE_HEIGHT // max(length, 1.0))))


def in_points(ax: Any) -> tuple[float, float]:
    """Return the width and the height of axes in points."""
    box, dpi = ax.get_window_extent(), ax.figure.dpi
    return float(box.width * 72 / dpi), float(box.height * 72 / dpi)


def name_rows(ax: Any, names: Iterable[Any], longest: int = LONGEST_NAME) -> None:
    """Name the rows 0, 1, ... of axes, from above."""
    texts = [shortened_name(name, longest) for name in names]
    ax.set_yticks(range(len(texts)), texts, fontsize=FONT)
    ax.set_ylim(max(len(texts), 1) - 0.5, -0.5)


def write_beside(ax: Any, text: str, point: Any, offset: tuple[float, float] = (0, 0), **options: Any) -> Any:
    """Write a text at an offset in points from a point, at half of its height."""
    at_point = {"textcoords": "offset points", "fontsize": FONT, "va": "center", "annotation_clip": False}
    return ax.annotate(text, point, offset, **at_point, **options)


def legend_beside(ax: Any) -> None:
    """Name the lines at the right of the axes, where no line is."""
    columns = -(-len(ax.get_legend_handles_labels()[1]) // COLUMN)
    ax.legend(fontsize=FONT, frameon=False, loc="center left", bbox_to_anchor=(1.01, 0.5), ncols=columns)


def legend_below(ax: Any, columns: int = 2) -> None:
    """Name the lines below the name of the horizontal axis, so many in a row."""
    lines = 2 if ax.axison else 0  # the numbers and the name of the axis
    above = (lines * LINE_HEIGHT * ax.xaxis.label.get_size() + PADS) / FONT
    below: dict[str, Any] = {"loc": "upper center", "bbox_to_anchor": (0.5, 0.0), "borderaxespad": above}
    ax.legend(fontsize=FONT, frameon=False, ncols=columns, **below)

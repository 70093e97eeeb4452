"""What figures share: axes, the look of lines, names that fit, curves of bounds and of weights, heat maps."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from kernelopt.errors import InputError, KerneloptError

Floats: TypeAlias = NDArray[np.float64]


@dataclass(frozen=True)
class Style:
    """The look of all figures.

    Attributes
    ----------
    font : float
        Points of all labels.
    line, character : float
        The height of a line and the mean width of a character, in units of the font.
    few : int
        Points up to which each has a marker, and curves up to which each has a name.
    numbered : int
        Columns of a heat map up to which its cells have room for numbers.
    magnitude : float
        The ratio of the largest to the smallest value from which an axis is logarithmic.
    dark, light, pale, grey : str
        Colours that stay apart in grey: of what counts, of its opposite, of areas, and of other lines.
    """

    font: float = 8.0
    line: float = 1.3
    character: float = 0.6
    few: int = 12
    numbered: int = 16
    magnitude: float = 20.0
    dark: str = "#08306b"
    light: str = "#e6760a"
    pale: str = "0.85"
    grey: str = "0.3"


STYLE = Style()
# Okabe and Ito's colours without yellow, which is too light for lines. Neighbours differ in lightness.
COLOURS = ("#000000", "#e69f00", "#0072b2", "#56b4e9", "#d55e00", "#cc79a7", "#009e73")
DASHES = ("-", "--", "-.", ":")
MARKERS = ("o", "s", "^", "D", "v")
SMALLEST_GAP = 1e-16  # a smaller one is rounding, and drawn here: zero has no logarithm
CARETLEFT, CARETRIGHT = 4, 5  # matplotlib's names for markers that are centred at their tips
LONG_NUMBER = re.compile(r"\d+\.\d{4,}(?:e[+-]?\d+)?")
ARGUMENT = re.compile(r"\b[A-Za-z_]\w*=")  # of a call, as in width=


def new_axes(ax: Any, size: tuple[float, float] | None = None, *, rows: int = 0) -> Any:
    """Return `ax`, or the axes of a new figure of pyplot.

    Its size in inches is `size`, or has room for the labels of so many rows. pyplot shows the new figure in a
    notebook. Nothing else of pyplot is used: with `ax`, its figures and its current axes stay as they are.
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

    size = (7.0, max(4.8, 1.9 + 0.19 * rows)) if rows else size
    return pyplot.subplots(figsize=size, layout="constrained")[1]


def look(i: int) -> dict[str, Any]:
    """Return colour, dashes and marker of line i. The first 28 differ in colour or dashes."""
    names = {"color": COLOURS, "linestyle": DASHES, "marker": MARKERS}
    return {name: values[i % len(values)] for name, values in names.items()} | {"markersize": 4}


def machine_labels(fitted: Any) -> tuple[str, ...]:
    """Return what the machines of an estimator with weights for each are called: their class or target."""
    if hasattr(fitted, "classes_"):
        return tuple(map(str, fitted.classes_))
    return tuple(f"target {i}" for i in range(len(fitted.weights_)))


def shortened_name(name: Any, longest: int = 28) -> str:
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


def in_points(ax: Any) -> tuple[float, float]:
    """Return the width and the height of axes in points."""
    box, dpi = ax.get_window_extent(), ax.figure.dpi
    return float(box.width * 72 / dpi), float(box.height * 72 / dpi)


def name_places(axis: Any, names: Sequence[str], width: float = 1.0, last: int = 0, **options: Any) -> None:
    """Name the places 0, 1, ... of an axis, every k-th one where names would touch each other.

    Parameters
    ----------
    axis : matplotlib axis
        `xaxis` or `yaxis` of axes.
    names : sequence of str
    width : float
        What a name takes along the axis, in units of the font: its height, or its number of characters.
    last : int
        How many of the last places are always named.
    """
    room = in_points(axis.axes)[0 if axis.axis_name == "x" else 1] * 0.8  # without colour bars and labels
    step = max(1, int(np.ceil(len(names) * width * STYLE.font * STYLE.line / max(room, 1.0))))
    places = [*range(0, len(names) - last, step), *range(len(names) - last, len(names))]
    axis.set_ticks(places, [names[k] for k in places], fontsize=STYLE.font, **options)


def name_rows(ax: Any, names: Sequence[str]) -> None:
    """Name the rows 0, 1, ... of axes, from above."""
    name_places(ax.yaxis, names)
    ax.set_ylim(max(len(names), 1) - 0.5, -0.5)


def write_beside(ax: Any, text: str, point: Any, offset: tuple[float, float] = (0, 0), **options: Any) -> Any:
    """Write a text at an offset in points from a point, at half of its height."""
    at_point = {"textcoords": "offset points", "fontsize": STYLE.font, "va": "center"}
    return ax.annotate(text, point, offset, annotation_clip=False, **at_point, **options)


def legend_beside(ax: Any) -> None:
    """Name the lines at the right of the axes, where no line is, up to 24 below each other."""
    columns = -(-len(ax.get_legend_handles_labels()[1]) // 24)
    place = {"loc": "center left", "bbox_to_anchor": (1.01, 0.5)}
    ax.legend(fontsize=STYLE.font, frameon=False, ncols=columns, **place)


def legend_below(ax: Any, columns: int = 2) -> None:
    """Name the lines below the numbers and the name of the horizontal axis, so many in a row."""
    lines = 2 * ax.axison  # the numbers and the name of the axis; ten points are its ticks and spaces
    above = 10 + lines * STYLE.line * ax.xaxis.label.get_size()
    below = {"loc": "upper center", "bbox_to_anchor": (0.5, 0.0), "borderaxespad": above / STYLE.font}
    ax.legend(fontsize=STYLE.font, frameon=False, ncols=columns, **below)


def draw_bounds(
    ax: Any, x: Any, lower: Any, upper: Any, labels: tuple[str, str], steps: bool = False
) -> None:
    """Draw an upper and a lower curve with the gap between them shaded; infinite values are left out.

    The shade has no entry in a legend: where the bounds meet up to a certified gap, nobody could see it.
    """
    x, lower, upper = (np.asarray(part, dtype=float) for part in (x, lower, upper))
    shape: dict[str, Any] = {"drawstyle": "steps-post"} if steps else {}
    dots: dict[str, Any] = {"marker": "o", "markersize": 4} if x.size <= STYLE.few else {}
    both = np.isfinite(lower) & np.isfinite(upper)
    ax.fill_between(x, lower, upper, where=both, step="post" if steps else None, color=STYLE.pale, lw=0)
    looks = ({"color": STYLE.dark}, {"color": STYLE.light, "linestyle": "--"})
    for values, one, label in zip((upper, lower), looks, labels, strict=True):
        finite = np.isfinite(values)
        ax.plot(x[finite], values[finite], label=label, linewidth=2.0, **one, **shape, **dots)


def draw_histories(ax: Any, histories: Mapping[str, Floats], gap: bool) -> None:
    """Draw bounds against seconds, or their relative gaps on a logarithmic axis.

    Parameters
    ----------
    ax : matplotlib axes
    histories : dict from label to array of shape (k, 4)
        Rows of seconds, lower bound, upper bound and relative gap.
    gap : bool
        Whether to draw the gaps. Where the bounds of one solution are drawn, its gaps have a second axis.
    """
    if len(histories) == 1 and not gap:
        ((seconds, lower, upper, gaps),) = (rows.T for rows in histories.values())
        draw_bounds(ax, seconds, lower, upper, ("certified upper bound", "certified lower bound"), steps=True)
        draw_gaps_beside(ax, seconds, gaps)
    else:
        for i, (label, rows) in enumerate(histories.items()):
            style = {**look(i), "drawstyle": "steps-post", "markevery": max(1, len(rows) // STYLE.few)}
            seconds = np.maximum(rows[:, 0], 1e-9)  # for the logarithmic axis
            name: str | None = shortened_name(label)
            for values in (np.maximum(rows[:, 3:], SMALLEST_GAP) if gap else rows[:, 1:3]).T:
                finite = np.isfinite(values)
                ax.plot(seconds[finite], values[finite], label=name, **style)
                name = None  # one entry of the legend for both bounds
    ends = [rows[-1, 0] for rows in histories.values()]
    if differ_in_magnitude(ends):
        ax.set_xscale("log")
    else:
        ax.set_xlim(0, 1.05 * max(ends))
    ax.set(xlabel="seconds", ylabel="certified relative gap" if gap else "value")
    if gap:
        ax.set_yscale("log")
    if len(histories) > 1:
        legend_beside(ax)
    elif not gap:
        legend_below(ax)


def draw_gaps_beside(ax: Any, seconds: Floats, gaps: Floats) -> None:
    """Draw relative gaps on a second, logarithmic axis: after few steps two bounds look like one line."""
    finite = np.isfinite(gaps)
    if not finite.any():
        return
    beside = ax.twinx()
    style: dict[str, Any] = {"color": STYLE.grey, "linestyle": ":", "drawstyle": "steps-post"}
    dots: dict[str, Any] = {"marker": "s", "markersize": 3} if finite.sum() <= STYLE.few else {}
    beside.plot(seconds[finite], np.maximum(gaps[finite], SMALLEST_GAP), **style, **dots)
    beside.set(yscale="log", ylabel="certified relative gap (dotted)")


def differ_in_magnitude(values: Any) -> bool:
    """Whether positive numbers need a logarithmic axis."""
    return bool(min(values) > 0 and max(values) > STYLE.magnitude * min(values))


def draw_weights_along(ax: Any, x: Floats, weights: Floats, names: Sequence[str]) -> None:
    """Draw one line per kernel, weights of shape (k, m).

    With many kernels only those with the largest weights have a look and a name of their own.
    """
    largest = np.argsort(-np.abs(weights).max(axis=0), kind="stable")
    others = weights[:, np.sort(largest[STYLE.few :])]
    if others.size:
        first, *_ = ax.plot(x, others, color="0.8", linewidth=0.8, zorder=1)
        first.set_label("others")
    for i, j in enumerate(np.sort(largest[: STYLE.few])):
        ax.plot(x, weights[:, j], label=shortened_name(names[j]), **look(i))
    low, high = min(0.0, float(weights.min())), max(0.0, float(weights.max()))
    margin = 0.05 * (high - low) or 1.0
    ax.set_ylim(low - margin, high + margin)  # zero is on the axis
    legend_beside(ax)


def values_axis(ax: Any, name: str, values: Sequence[Any], texts: Sequence[str]) -> Floats:
    """Set the horizontal axis of the values of a parameter; return where they stand.

    The axis is logarithmic where the values are positive numbers of different magnitude. Values that are
    infinite or no numbers stand at equal distances, with their texts as far as there is room.
    """
    ax.set_xlabel(name)
    if not all(isinstance(v, Real) and np.isfinite(float(v)) for v in values):
        shown = [shortened_name(text) for text in texts]
        name_places(ax.xaxis, shown, STYLE.character * (2 + max(map(len, shown))))
        return np.arange(float(len(values)))
    if differ_in_magnitude(values):
        ax.set_xscale("log")
    return np.array(values, dtype=float)


def heat_map(ax: Any, cells: Floats, label: str, *, diverging: bool = False) -> None:
    """Draw numbers of size at most one as colours, with a colour bar, and as text where there is room.

    Parameters
    ----------
    ax : matplotlib axes
    cells : array of shape (k, m)
        A cell without a number is grey, with a dash. A number that is rounded to zero is left out.
    label : str
        Of the colour bar.
    diverging : bool, default False
        Whether the colours are for -1 to 1, with zero white, and not for 0 to 1.
    """
    colours, low = ("RdBu_r", -1) if diverging else ("Blues", 0)
    picture = ax.imshow(np.ma.masked_invalid(cells), cmap=colours, vmin=low, vmax=1, aspect="auto")
    ax.set_facecolor(STYLE.pale)
    if len(cells.T) <= STYLE.numbered:
        for (i, j), cell in np.ndenumerate(cells):
            text = "–" if np.isnan(cell) else f"{cell:.2f}" if round(abs(cell), 2) else ""
            ink = "white" if abs(cell) > 0.6 else "black"  # on dark colours
            ax.text(j, i, text, ha="center", va="center", fontsize=STYLE.font - 1, color=ink)
    ax.figure.colorbar(picture, ax=ax, label=label)

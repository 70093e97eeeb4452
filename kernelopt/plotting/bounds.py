"""`plot_bounds` and `plot_history`: the certified bounds of several solutions, and their course in time."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from kernelopt.errors import InputError
from kernelopt.figures import (
    CARETLEFT,
    CARETRIGHT,
    STYLE,
    draw_histories,
    legend_below,
    look,
    name_rows,
    new_axes,
    shortened_name,
    write_beside,
)
from kernelopt.plotting.arguments import AnySolution, drawn_solutions
from kernelopt.validation import boolean, is_real, shown


def plot_bounds(solutions: Any, references: Mapping[str, float] | None = None, ax: Any = None) -> Any:
    """Draw the certified lower and upper bound of each solution, with its gap as text.

    A bound that is infinite is named in the text, and a dotted line leads to the edge of the picture.

    Parameters
    ----------
    solutions : Solution, fitted estimator, what `kernelopt.load` returns, list of them, or dict from label
        The results to compare; the keys of a dict are their labels.
    references : dict from label to value, optional
        Values to compare with, such as the value of the best single kernel. They are drawn as vertical lines.
    ax : matplotlib axes, optional
        Where to draw; by default a new figure.

    Returns
    -------
    matplotlib axes
        What was drawn on.

    Raises
    ------
    InputError
        If there is no solution, or a reference is no finite number.

    Examples
    --------
    >>> import numpy as np
    >>> import kernelopt as ko
    >>> from formulations import lp_norm
    >>> K = [np.eye(2), np.array([[1.0, -1], [-1, 1]])]
    >>> solution = lp_norm.primal(K, [1, -1]).solve("exact")
    >>> ax = ko.plotting.plot_bounds({"exact": solution})
    >>> [text.get_text() for text in ax.get_yticklabels()]
    ['exact']
    """
    found = {label: each.solution for label, each in drawn_solutions(solutions, "plot_bounds").items()}
    lines = {} if references is None else as_references(references)
    ax = new_axes(ax, rows=len(found))
    ends = [v for s in found.values() for v in (s.lower, s.upper) if np.isfinite(v)]
    values = [0.0, *lines.values(), *ends]
    low, high = min(values), max(values)
    reach = (high - low) or 1.0
    left, right = low - 0.05 * reach * (low < 0), high + 0.35 * reach  # the texts are at the right
    for row, solution in enumerate(found.values()):
        draw_row(ax, row, solution, left, right)
    for i, (label, value) in enumerate(lines.items()):
        style = look(i) | {"marker": "", "linewidth": 1, "label": f"{shortened_name(label, 40)}: {value:.3g}"}
        ax.axvline(value, **style)
    name_rows(ax, [*map(shortened_name, found)])
    ax.set(xlim=(left, right), xlabel="value of the criterion", title="Certified bounds")
    legend_below(ax)
    return ax


def draw_row(ax: Any, row: int, solution: AnySolution, left: float, right: float) -> None:
    """Draw the bounds of one solution; the first row names the markers in the legend."""
    lower, upper = float(solution.lower), float(solution.upper)
    below, above = np.isfinite(lower), np.isfinite(upper)
    if above:
        ax.barh(row, upper, color=STYLE.pale)
    style = {"linewidth": 3} if below and above else {"linewidth": 1.5, "linestyle": ":"}
    end = min(upper, right)
    ax.hlines(row, max(lower, left), end, color=STYLE.grey, **style)
    tips = (("lower", lower, CARETRIGHT, "tab:red"), ("upper", upper, CARETLEFT, "tab:blue"))
    for name, value, marker, color in tips:  # two arrows, whose tips are the bounds
        label = f"certified {name} bound" if row == 0 else None
        ax.plot(value, row, marker=marker, color=color, markersize=9, zorder=4, linestyle="none", label=label)
    # a gap below 1e-12 is rounding, and zero has no exponent
    gap = f"gap {max(solution.gap, 1e-12):.0e}" if below and above else "no finite bound"
    text = "no lower bound" if above > below else "no upper bound" if below > above else gap
    # where there is no upper bound, the dotted line ends at the edge, and the text stands on it
    offset, side = ((12, 0), "left") if above else ((-4, 0), "right")
    box = {"facecolor": "white", "edgecolor": "none", "alpha": 0.8, "pad": 0.5}  # the text is on a line
    write_beside(ax, text, (end, row), offset, ha=side, bbox=box, zorder=3)


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


def plot_history(solutions: Any, *, gap: bool | None = None, ax: Any = None) -> Any:
    """Draw the certified bounds, or the relative gaps, of solutions against the seconds of their solves.

    The bounds of one solution have a second, logarithmic axis for the relative gap between them.
    The last point of a curve is the certificate of the solution, after all its work: a method without reports
    has this point alone. The axis of the time is logarithmic where the methods need times of different
    magnitude.

    Parameters
    ----------
    solutions : Solution, fitted estimator, what `kernelopt.load` returns, list of them, or dict from label
        Such as solutions of one problem by several methods.
    gap : bool, optional
        Whether to draw the relative gap on a logarithmic axis instead of the two bounds. By default it is
        drawn if there are several solutions, whose bounds would lie on top of each other.
    ax : matplotlib axes, optional
        Where to draw; by default a new figure.

    Returns
    -------
    matplotlib axes
        What was drawn on.

    Raises
    ------
    InputError
        If there is no solution, or one without any finite bound (with `gap`, without any finite gap).

    Examples
    --------
    >>> import numpy as np
    >>> import kernelopt as ko
    >>> from formulations import lp_norm
    >>> K = [np.eye(2), np.array([[1.0, -1], [-1, 1]])]
    >>> solution = lp_norm.primal(K, [1, -1]).solve("exact")
    >>> ax = ko.plotting.plot_history(solution)
    >>> ax.get_xlabel(), ax.get_ylabel()
    ('seconds', 'value')
    """
    read = drawn_solutions(solutions, "plot_history")
    gap = len(read) > 1 if gap is None else boolean(gap, "gap")
    histories = {label: each.solution.certified_history(gap) for label, each in read.items()}
    ax = new_axes(ax)
    draw_histories(ax, histories, gap)
    of = f", {shortened_name(next(iter(read)))}" if len(read) == 1 else ""
    ax.set_title(f"Certified {'gaps' if gap else 'bounds'}{of}")
    return ax

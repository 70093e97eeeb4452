"""`plot_history`: the certified bounds, or the gaps, of several solutions against the time."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kernelopt.figures import draw_histories, new_axes, shortened_name
from kernelopt.plotting.arguments import drawn_solutions
from kernelopt.validation import boolean


def plot_history(solutions: Mapping[str, Any], *, gap: bool | None = None, ax: Any = None) -> Any:
    """Draw the certified bounds, or the relative gaps, of solutions against the seconds of their solves.

    The last point of a curve is the certificate of the solution, after all its work: a method without reports
    has this point alone. The axis of the time is logarithmic where the methods need times of different
    magnitude.

    Parameters
    ----------
    solutions : dict from label to Solution, fitted estimator, or what `kernelopt.load` returns
        Such as solutions of one problem by several methods.
    gap : bool, optional
        Whether to draw the relative gap on a logarithmic axis instead of the two bounds. By default it is
        drawn if there are several solutions, whose bounds would lie on top of each other.
    ax : matplotlib axes, optional

    Returns
    -------
    matplotlib axes

    Raises
    ------
    InputError
        If there is no solution, or one without any finite bound (with `gap`, without any finite gap).
    """
    read = drawn_solutions(solutions, "plot_history")
    gap = len(read) > 1 if gap is None else boolean(gap, "gap")
    histories = {label: each.solution.certified_history(gap) for label, each in read.items()}
    ax = new_axes(ax)
    draw_histories(ax, histories, gap)
    of = f", {shortened_name(next(iter(read)))}" if len(read) == 1 else ""
    ax.set_title(f"Certified {'gaps' if gap else 'bounds'}{of}")
    return ax

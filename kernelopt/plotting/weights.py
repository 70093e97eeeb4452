"""`plot_weights`: weights of one solution, or of several side by side, and whether others are optimal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from kernelopt.errors import InputError
from kernelopt.figures import (
    STYLE,
    heat_map,
    name_places,
    name_rows,
    new_axes,
    shortened_name,
    write_beside,
)
from kernelopt.methods.saved import SavedSolution
from kernelopt.methods.solution import Learned
from kernelopt.plotting.arguments import Drawn, as_names, drawn_solutions
from kernelopt.validation import Array

WORDS = {
    True: "the optimum determines the weights",
    False: "other weights are optimal too",
    None: "other weights may be optimal too",
}


def plot_weights(solutions: Any, names: Sequence[str] | None = None, ax: Any = None) -> Any:
    """Draw the kernel weights of one solution as bars, and of several as shares of the largest of each.

    Several solutions are the rows of a heat map. Under the title of the bars, and under the label of a row,
    stands whether the optimum determines the weights, other weights are optimal too, or that is not known. It
    is a statement on the problem of these data; how far other data give other weights says
    `kernelopt.estimators.stability`. Up to 16 kernels have their numbers at the bars or in the cells. With
    more kernels, negative cells are hatched, and names that would touch each other are left out.

    Parameters
    ----------
    solutions : Solution, fitted estimator, what `kernelopt.load` returns, list of them, or dict from label
        All have the same number of weights. An estimator whose classes or targets have weights of their own
        has a row for each. For a solution of several risks with different weights, pass
        `solution.learned[i]` for each risk i; nothing is said of other weights. Of an estimator the
        weights are `weights_` and the names are `kernel_names_`.
    names : sequence of str, optional
        Names of the m kernels; by default those that all the solutions have in common, else numbers.
    ax : matplotlib axes, optional
        Where to draw; by default a new figure.

    Returns
    -------
    matplotlib axes
        What was drawn on.

    Raises
    ------
    InputError
        If there is no solution, if a solution has no weights or several arrays of them, or if the numbers of
        weights differ from each other or from the number of names.

    Examples
    --------
    The weights are (1, 2) / sqrt(5), in the ratio of y'K_m y:

    >>> import numpy as np
    >>> import kernelopt as ko
    >>> from formulations import lp_norm
    >>> K = [np.eye(2), np.array([[1.0, -1], [-1, 1]])]
    >>> solution = lp_norm.primal(K, [1, -1]).solve("exact")
    >>> ax = ko.plotting.plot_weights(solution)
    >>> [f"{bar.get_width():.2f}" for bar in ax.patches]
    ['0.45', '0.89']
    """
    read = drawn_solutions(solutions, "plot_weights", machines=True)
    rows = {label: weight_row(label, each) for label, each in read.items()}
    counts = {label: row.size for label, row in rows.items()}
    m = next(iter(counts.values()))
    if set(counts.values()) != {m}:
        raise InputError(
            f"plot_weights needs solutions with as many weights each, got {counts}. Draw solutions of the "
            "same kernels together."
        )
    listed: Any = None if names is None else as_names(names, m, "kernel", "plot_weights")
    if names is None and len(common := {each.names for each in read.values()}) == 1:
        (listed,) = common
    told = {
        label: "" if isinstance(each.solution, Learned) else WORDS[each.solution.weights_unique]
        for label, each in read.items()
    }
    if len(rows) == 1:
        ((label, row),) = rows.items()
        ax = new_axes(ax, rows=m)
        draw_bars(ax, row, listed)
        ax.set_title("\n".join(filter(None, [f"Kernel weights, {shortened_name(label)}", told[label]])))
        return ax
    ax = new_axes(ax, rows=len(rows))
    draw_cells(ax, np.array([row / (np.abs(row).max() or 1.0) for row in rows.values()]), listed)
    between = "\n" if len(rows) <= 10 else ", "
    name_rows(ax, [shortened_name(label) + (between + words) * bool(words) for label, words in told.items()])
    ax.set(xlim=(-0.5, m - 0.5), title="Kernel weights")
    return ax


def draw_bars(ax: Any, weights: Array, names: Sequence[Any] | None) -> None:
    """Draw the weights of one solution as horizontal bars, in the order of its kernels, from above."""
    m = weights.size
    ax.barh(np.arange(m), weights, color=[STYLE.light if w < 0 else STYLE.dark for w in weights])
    ax.axvline(0.0, color=STYLE.grey, linewidth=0.8)
    for k, w in enumerate(weights) if m <= STYLE.numbered else ():
        side, shift = ("right", -3) if w < 0 else ("left", 3)
        write_beside(ax, f"{w:.3g}", (w, k), (shift, 0), ha=side)
    low, high = min(0.0, float(weights.min())), max(0.0, float(weights.max()))
    room = 0.15 * ((high - low) or 1.0)  # for the numbers
    ax.set(xlim=(low - room * (low < 0), high + room), xlabel="weight")
    name_rows(ax, [*map(str, range(m))] if names is None else [*map(shortened_name, names)])
    if names is None:
        ax.set_ylabel("kernel")


def draw_cells(ax: Any, shares: Array, names: Sequence[Any] | None) -> None:
    """Draw a heat map of the shares of several solutions, and name its columns."""
    m = shares.shape[1]
    heat_map(ax, shares, "share of the largest weight", diverging=bool((shares < 0).any()))
    for i, j in np.argwhere(shares <= -0.005) if m > STYLE.numbered else ():
        sides = ([j - 0.5, j + 0.5], i - 0.5, i + 0.5)
        ax.fill_between(*sides, facecolor="none", edgecolor="white", hatch="////", linewidth=0)
    if names is None:
        name_places(ax.xaxis, [*map(str, range(m))], STYLE.character * (len(str(m)) + 1))
        ax.set_xlabel("kernel")
        return
    angle = 40  # degrees, at which lines of text are 1 / sin of it apart along the axis
    turned: dict[str, Any] = {"rotation": angle, "ha": "right", "rotation_mode": "anchor"}
    name_places(ax.xaxis, [*map(shortened_name, names)], 1 / np.sin(np.radians(angle)), **turned)


def weight_row(label: str, read: Drawn) -> Array:
    """Return the weights of a solution as one array of shape (m,), or raise if there is none."""
    weights, solution = read.weights, read.solution
    saved = isinstance(solution, SavedSolution)
    if isinstance(weights, tuple):
        part = "machines" if saved else "learned"
        raise InputError(
            f"plot_weights needs one array of weights per solution, but {label!r} has different weights for "
            f"each of {len(weights)} risks. Pass one row per risk: "
            f"{{f'risk {{i}}': machine for i, machine in enumerate(solution.{part})}}."
        )
    if weights is None:
        why = "needs the weights of a combination of kernels, but {} has none. Leave it out."
        if saved and not solution.machines:
            why = (
                "needs the weights of kernels, but {} is a solution in the file of an estimator, where the "
                "estimator has the weights. Pass the loaded estimator, or read its weights_."
            )
        raise InputError("plot_weights " + why.format(repr(label)))
    return np.ravel(np.asarray(weights, dtype=float))

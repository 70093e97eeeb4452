"""`plot_weights`: the kernel weights of several solutions side by side, and whether others are optimal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from kernelopt.errors import InputError
from kernelopt.figures import STYLE, heat_map, name_places, name_rows, new_axes, shortened_name
from kernelopt.methods.saved import SavedSolution
from kernelopt.methods.solution import Learned
from kernelopt.plotting.arguments import Drawn, as_names, drawn_solutions
from kernelopt.validation import Array

WORDS = {
    True: "the optimum determines the weights",
    False: "other weights are optimal too",
    None: "other weights may be optimal too",
}


def plot_weights(solutions: Mapping[str, Any], names: Sequence[str] | None = None, ax: Any = None) -> Any:
    """Draw each solution's kernel weights as shares of its largest, one row per solution.

    Under the label of a row stands whether the optimum determines the weights, other weights are optimal too,
    or that is not known. It is a statement on the problem of these data; how far other data give other
    weights says `kernelopt.estimators.stability`. Up to 16 kernels have their numbers in the cells. With more
    kernels, negative weights are hatched, and names that would touch each other are left out.

    Parameters
    ----------
    solutions : dict from label to Solution, fitted estimator, or what `kernelopt.load` returns
        All have the same number of weights. For a solution of several risks with different weights, pass
        `solution.learned[i]` for each risk i; nothing is said of other weights. Of an estimator the
        weights are `weights_` and the names are `kernel_names_`.
    names : sequence of str, optional
        Names of the m kernels; by default those that all the solutions have in common, else numbers.
    ax : matplotlib axes, optional

    Returns
    -------
    matplotlib axes

    Raises
    ------
    InputError
        If there is no solution, if a solution has no weights or several arrays of them, or if the numbers of
        weights differ from each other or from the number of names.
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
    shares = np.array([row / (np.abs(row).max() or 1.0) for row in rows.values()])
    ax = new_axes(ax, rows=len(rows))
    heat_map(ax, shares, "share of the largest weight", diverging=bool((shares < 0).any()))
    for i, j in np.argwhere(shares <= -0.005) if m > STYLE.numbered else ():
        sides = ([j - 0.5, j + 0.5], i - 0.5, i + 0.5)
        ax.fill_between(*sides, facecolor="none", edgecolor="white", hatch="////", linewidth=0)
    if listed is None:
        name_places(ax.xaxis, [*map(str, range(m))], STYLE.character * (len(str(m)) + 1))
        ax.set_xlabel("kernel")
    else:
        angle = 40  # degrees, at which lines of text are 1 / sin of it apart along the axis
        turned: dict[str, Any] = {"rotation": angle, "ha": "right", "rotation_mode": "anchor"}
        name_places(ax.xaxis, [*map(shortened_name, listed)], 1 / np.sin(np.radians(angle)), **turned)
    between = "\n" if len(rows) <= 10 else ", "
    name_rows(ax, [
        shortened_name(label) + ("" if isinstance(s, Learned) else between + WORDS[s.weights_unique])
        for label, (s, _, _) in read.items()
    ])  # fmt: skip
    ax.set(xlim=(-0.5, m - 0.5), title="Kernel weights")
    return ax


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

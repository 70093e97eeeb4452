"""`plot_weights`: the kernel weights of several solutions side by side, with their uniqueness."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from kernelopt.errors import InputError
from kernelopt.figures import (
    FONT,
    MAX_NUMBERED,
    heat_map,
    labels_step,
    new_axes,
    shortened_name,
    tall,
    width_of_numbers,
)
from kernelopt.methods.saved import SavedSolution
from kernelopt.methods.solution import Learned
from kernelopt.plotting.arguments import Drawn, as_names, drawn_solutions
from kernelopt.validation import Array

SMALLEST_SHARE = 0.005  # of the largest weight that is written: it is rounded to 0.01
SMALLEST_WEIGHT = 1e-300  # denominator of the shares, for weights that are all zero
TWO_LINES = 10  # rows up to which a label has two lines
ANGLE = 40  # degrees, of the names below the columns


def plot_weights(solutions: Mapping[str, Any], names: Sequence[str] | None = None, ax: Any = None) -> Any:
    """Draw each solution's kernel weights as shares of its largest, one row per solution.

    Under the label of a row stands whether the optimum determines the weights: "unique", "not unique", or
    "uniqueness unknown". Up to 16 kernels have their numbers in the cells. With more kernels, negative
    weights are hatched, and names that would touch each other are left out.

    Parameters
    ----------
    solutions : dict from label to Solution, fitted estimator, or what `kernelopt.load` returns
        All have the same number of weights. For a solution of several risks with different weights, pass
        `solution.learned[i]` for each risk i; nothing is said of their uniqueness. Of an estimator the
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
    shares = np.array([row / max(float(np.abs(row).max()), SMALLEST_WEIGHT) for row in rows.values()])
    ax, signed = new_axes(ax, tall(len(rows))), bool((shares < 0).any())
    texts = [[f"{share:.2f}" if abs(share) >= SMALLEST_SHARE else "" for share in row] for row in shares]
    heat_map(ax, shares, -1.0 if signed else 0.0, "share of the largest weight", texts, diverging=signed)
    for i, j in np.argwhere(shares <= -SMALLEST_SHARE) if m > MAX_NUMBERED else ():
        sides = ([j - 0.5, j + 0.5], i - 0.5, i + 0.5)
        ax.fill_between(*sides, facecolor="none", edgecolor="white", hatch="////", linewidth=0)
    step = labels_step(ax, m, FONT / np.sin(np.radians(ANGLE)) if listed else width_of_numbers(m))
    ticks, turned = range(0, m, step), {"rotation": ANGLE, "ha": "right", "rotation_mode": "anchor"}
    if listed is None:
        ax.set_xticks(ticks, ticks, fontsize=FONT)
        ax.set_xlabel("kernel")
    else:
        ax.set_xticks(ticks, [shortened_name(n) for n in listed[::step]], fontsize=FONT, **turned)
    between = "\n" if len(rows) <= TWO_LINES else ", "
    words = {True: "unique", False: "not unique", None: "uniqueness unknown"}
    labels = [
        shortened_name(label) + ("" if isinstance(s, Learned) else between + words[s.weights_unique])
        for label, (s, _, _) in read.items()
    ]
    ax.set_yticks(range(len(rows)), labels, fontsize=FONT)
    ax.set(xlim=(-0.5, m - 0.5), ylim=(len(rows) - 0.5, -0.5), title="Kernel weights")
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

"""`plot_weights`: the kernel weights of several solutions side by side, with their uniqueness."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from kernelopt.errors import InputError
from kernelopt.figures import (
    LABEL_FONT,
    MAX_NUMBERED,
    labels_step,
    new_axes,
    shortened_name,
    tall,
    width_of_numbers,
    write_in_cells,
)
from kernelopt.methods.saved import SavedSolution
from kernelopt.methods.solution import Learned
from kernelopt.plotting.arguments import Drawn, as_names, drawn_solutions
from kernelopt.validation import Array

SMALLEST_SHARE = 0.005  # of the largest weight that is written: it is rounded to 0.01
SMALLEST_WEIGHT = 1e-300  # denominator of the shares, for weights that are all zero
TWO_LINES = 10  # rows up to which a label has two lines
ANGLE = 40  # degrees, of the names below the columns
UNIQUENESS = {True: "unique", False: "not unique", None: "uniqueness unknown"}


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
    rows = [weight_row(label, each) for label, each in read.items()]
    counts = {label: row.size for label, row in zip(read, rows, strict=True)}
    m = rows[0].size
    if set(counts.values()) != {m}:
        raise InputError(
            f"plot_weights needs solutions with as many weights each, got {counts}. Draw those of the same "
            "kernels together."
        )
    listed = common_names(read) if names is None else as_names(names, m, "kernel", "plot_weights")
    shares = np.array([row / max(float(np.abs(row).max()), SMALLEST_WEIGHT) for row in rows])
    ax = new_axes(ax, tall(len(rows)))
    draw_cells(ax, shares)
    step = labels_step(ax, m, LABEL_FONT / np.sin(np.radians(ANGLE)) if listed else width_of_numbers(m))
    if listed is None:
        ax.set_xticks(range(0, m, step), range(0, m, step), fontsize=LABEL_FONT)
        ax.set_xlabel("kernel")
    else:
        texts = [shortened_name(name) for name in listed[::step]]
        ax.set_xticks(
            range(0, m, step), texts, rotation=ANGLE, ha="right", rotation_mode="anchor", fontsize=LABEL_FONT
        )
    between = "\n" if len(rows) <= TWO_LINES else ", "
    ax.set_yticks(range(len(rows)), [row_label(*row, between) for row in read.items()], fontsize=LABEL_FONT)
    ax.set_title("Kernel weights")
    return ax


def draw_cells(ax: Any, shares: Array) -> None:
    """Draw the shares as a heat map: with numbers in few columns, with negative cells hatched in many."""
    signed, m = bool((shares < 0).any()), shares.shape[1]
    colours = {"cmap": "RdBu_r", "vmin": -1} if signed else {"cmap": "Blues", "vmin": 0}
    picture = ax.imshow(shares, vmax=1, aspect="auto", **colours)
    if m <= MAX_NUMBERED:
        texts = [[f"{share:.2f}" if abs(share) >= SMALLEST_SHARE else "" for share in row] for row in shares]
        write_in_cells(ax, texts, np.abs(shares))
    else:
        for i, j in np.argwhere(shares <= -SMALLEST_SHARE):
            sides = ([j - 0.5, j + 0.5], i - 0.5, i + 0.5)
            ax.fill_between(*sides, facecolor="none", edgecolor="white", hatch="////", linewidth=0)
        ax.set(xlim=(-0.5, m - 0.5), ylim=(len(shares) - 0.5, -0.5))
    ax.figure.colorbar(picture, ax=ax, label="share of the largest weight")


def row_label(label: str, read: Drawn, between: str) -> str:
    """Return the label of a row with the uniqueness of the weights."""
    short = shortened_name(label)
    if isinstance(read.solution, Learned):
        return short
    return f"{short}{between}{UNIQUENESS[read.solution.weights_unique]}"


def common_names(read: Mapping[str, Drawn]) -> list[str] | None:
    """Return the names of the kernels if all solutions have the same ones."""
    names = {each.names for each in read.values()}
    found = names.pop() if len(names) == 1 else None
    return None if found is None else list(found)


def weight_row(label: str, read: Drawn) -> Array:
    """Return the weights of a solution as one array of shape (m,), or raise if there is none."""
    weights, solution = read.weights, read.solution
    if isinstance(weights, tuple):
        part = "machines" if isinstance(solution, SavedSolution) else "learned"
        raise InputError(
            f"plot_weights needs one array of weights per solution, but {label!r} has different weights for "
            f"each of {len(weights)} risks. Pass one row per risk: "
            f"{{f'risk {{i}}': machine for i, machine in enumerate(solution.{part})}}."
        )
    if weights is None and isinstance(solution, SavedSolution) and not solution.machines:
        raise InputError(
            f"plot_weights needs the weights of kernels, but {label!r} is a solution in the file of an "
            "estimator, where the estimator has the weights. Pass the loaded estimator, or read its weights_."
        )
    if weights is None:
        raise InputError(
            f"plot_weights needs the weights of a combination of kernels, but {label!r} has none. "
            "Leave it out."
        )
    return np.ravel(np.asarray(weights, dtype=float))

"""Figures of learned weights and certified bounds; matplotlib is asked for when one is drawn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from kernelopt.errors import InputError, KerneloptError
from kernelopt.solvers.solution import Solution

SMALLEST_GAP = 1e-12


def new_axes(ax: Any) -> Any:
    """Return `ax`, or fresh axes of the current backend."""
    if ax is not None:
        return ax
    try:
        from matplotlib import pyplot
    except ImportError as error:
        raise KerneloptError(
            'plots need matplotlib, which is not installed. Run pip install "kernelopt[plot]".'
        ) from error
    return pyplot.subplots(layout="constrained")[1]


def plot_weights(solutions: Mapping[str, Solution], names: Sequence[str], ax: Any = None) -> Any:
    """Draw each solution's kernel weights as shares of its largest, one row per solution.

    Parameters
    ----------
    solutions : dict from label to Solution
        All with one weight per name.
    names : sequence of str
        Names of the m kernels.
    ax : matplotlib axes, optional

    Returns
    -------
    matplotlib axes
    """
    if not solutions:
        raise InputError("plot_weights needs at least one solution, got none. Pass {'label': solution}.")
    rows = [np.asarray(s.weights, dtype=float) for s in solutions.values()]
    if any(row.shape != (len(names),) for row in rows):
        raise InputError(
            f"plot_weights needs one weight per name ({len(names)}), got {[row.shape for row in rows]}. "
            "Pass the names of the kernels in their order."
        )
    shares = np.array([row / max(float(np.abs(row).max()), 1e-300) for row in rows])
    ax = new_axes(ax)
    signed = bool((shares < 0).any())
    colours = {"cmap": "RdBu_r", "vmin": -1} if signed else {"cmap": "Blues", "vmin": 0}
    picture = ax.imshow(shares, vmax=1, aspect="auto", **colours)
    ax.set_xticks(range(len(names)), names, rotation=40, ha="right", rotation_mode="anchor", fontsize=8)
    ax.set_yticks(range(len(rows)), list(solutions), fontsize=8)
    for i, j in np.argwhere(np.abs(shares) >= 0.005):
        ink = "white" if abs(shares[i, j]) > 0.6 else "black"
        ax.text(j, i, f"{shares[i, j]:.2f}", ha="center", va="center", fontsize=7, color=ink)
    ax.figure.colorbar(picture, ax=ax, label="share of the largest weight")
    ax.set_title("Kernel weights")
    return ax


def plot_bounds(
    solutions: Mapping[str, Solution], references: Mapping[str, float] | None = None, ax: Any = None
) -> Any:
    """Draw each solution's value with its certified gap written beside it.

    Parameters
    ----------
    solutions : dict from label to Solution
    references : dict from label to value, optional
        Values to compare with, such as that of the best single kernel: vertical lines.
    ax : matplotlib axes, optional

    Returns
    -------
    matplotlib axes
    """
    if not solutions:
        raise InputError("plot_bounds needs at least one solution, got none. Pass {'label': solution}.")
    ax = new_axes(ax)
    lower = np.array([s.lower for s in solutions.values()])
    upper = np.array([s.upper for s in solutions.values()])
    rows = np.arange(len(lower))
    ax.barh(rows, upper, color="0.85")
    ax.hlines(rows, lower, upper, color="tab:red", linewidth=4)
    ax.plot(lower, rows, "|", color="tab:red", markersize=14, label="certified lower bound")
    ax.plot(upper, rows, "|", color="tab:blue", markersize=9, label="certified upper bound")
    reach = float(upper.max())
    for row, solution in zip(rows, solutions.values(), strict=True):
        text = f"  gap {max(solution.gap, SMALLEST_GAP):.0e}"
        ax.text(solution.upper, row, text, va="center", fontsize=8)
    for (label, value), style in zip((references or {}).items(), ("--", ":", "-.") * 9, strict=False):
        ax.axvline(value, color="0.3", linestyle=style, linewidth=1, label=f"{label}: {value:.3g}")
        reach = max(reach, value)
    ax.set_xlim(0, 1.25 * reach)
    ax.set_yticks(rows, list(solutions), fontsize=8)
    ax.invert_yaxis()
    ax.set_xlabel("value of the criterion")
    ax.legend(fontsize=8, loc="upper center", bbox_to_anchor=(0.5, -0.14), ncols=2, frameon=False)
    ax.set_title("Certified bounds")
    return ax

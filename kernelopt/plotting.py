"""Figures of learned weights and certified bounds. matplotlib is imported when a figure is drawn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import cvxpy as cp
import numpy as np
from numpy.typing import ArrayLike

from kernelopt.duality.paths import bounds_along
from kernelopt.errors import InputError
from kernelopt.figures import draw_bounds, new_axes
from kernelopt.methods.solution import Learned, Solution, weights_of
from kernelopt.validation import Array, as_float_array, as_list, shown, whole

SMALLEST_GAP = 1e-12  # that is written: smaller gaps are rounding, and zero has no exponent
SMALLEST_SHARE = 0.005  # of the largest weight that is written: it is rounded to 0.01
DARK = 0.6  # share of the largest weight above which a cell is dark, and its number white
SMALLEST_WEIGHT = 1e-300  # denominator of the shares, for weights that are all zero
CARETLEFT, CARETRIGHT = 4, 5  # matplotlib's names for markers that are centred at their tips
MAX_NUMBERED = 16  # columns: with more of them no number fits into a cell, and not every name is written
TEXT_BOX = {"facecolor": "white", "edgecolor": "none", "alpha": 0.8, "pad": 0.5}  # behind text on a line


def plot_weights(
    solutions: Mapping[str, Solution | Learned], names: Sequence[str] | None = None, ax: Any = None
) -> Any:
    """Draw each solution's kernel weights as shares of its largest, one row per solution.

    Parameters
    ----------
    solutions : dict from label to Solution
        All have the same number of weights. For a solution of several risks with different weights, pass
        `solution.learned[i]` for each risk i.
    names : sequence of str, optional
        Names of the m kernels, such as `grams.names`; by default their numbers.
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
    check_solutions(solutions, "plot_weights", Solution | Learned)
    rows = [weight_row(label, solution) for label, solution in solutions.items()]
    counts = {label: row.size for label, row in zip(solutions, rows, strict=True)}
    if names is None and len(set(counts.values())) > 1:
        raise InputError(
            f"plot_weights needs solutions with as many weights each, got {counts}. Draw those of the same "
            "kernels together."
        )
    names = None if names is None else as_list(names, "names", "one name per kernel")
    m = rows[0].size if names is None else len(names)
    if set(counts.values()) != {m}:
        raise InputError(
            f"plot_weights needs one weight per name ({m}), got {counts}. Pass the names of the "
            "kernels in their order."
        )
    shares = np.array([row / max(float(np.abs(row).max()), SMALLEST_WEIGHT) for row in rows])
    ax = new_axes(ax)
    signed = bool((shares < 0).any())
    colours = {"cmap": "RdBu_r", "vmin": -1} if signed else {"cmap": "Blues", "vmin": 0}
    picture = ax.imshow(shares, vmax=1, aspect="auto", **colours)
    if names is None:
        ax.set_xticks(range(0, m, -(-m // MAX_NUMBERED)), range(0, m, -(-m // MAX_NUMBERED)), fontsize=8)
        ax.set_xlabel("kernel")
    else:
        ax.set_xticks(range(m), names, rotation=40, ha="right", rotation_mode="anchor", fontsize=8)
    ax.set_yticks(range(len(rows)), list(solutions), fontsize=8)
    for i, j in np.argwhere(np.abs(shares) >= SMALLEST_SHARE) if m <= MAX_NUMBERED else []:
        ink = "white" if abs(shares[i, j]) > DARK else "black"
        ax.text(j, i, f"{shares[i, j]:.2f}", ha="center", va="center", fontsize=7, color=ink)
    ax.figure.colorbar(picture, ax=ax, label="share of the largest weight")
    ax.set_title("Kernel weights")
    return ax


def check_solutions(solutions: Any, caller: str, kinds: Any) -> None:
    """Raise unless `solutions` is a dict from label to solution, with at least one."""
    if not isinstance(solutions, Mapping) or not all(isinstance(s, kinds) for s in solutions.values()):
        raise InputError(
            f"{caller} needs solutions as a dict from label to solution, got {shown(solutions)}. "
            "Pass {'label': solution}."
        )
    if not solutions:
        raise InputError(
            f"{caller} needs solutions, at least one solution, got none. Pass {{'label': solution}}."
        )


def as_references(references: Any) -> dict[str, float]:
    """Return the values to compare with, after checking that each is a finite number."""
    if not isinstance(references, Mapping):
        raise InputError(
            f"references must be a dict from label to value, got {shown(references)}. Pass {{'label': 1.0}}."
        )
    values = {str(k): as_float_array(v, f"references[{k!r}]", ndim=0) for k, v in references.items()}
    return {label: float(value) for label, value in values.items()}


def weight_row(label: str, solution: Solution | Learned) -> Array:
    """Return the weights of a solution as one array of shape (m,), or raise if there is none."""
    weights = solution.weights
    if isinstance(solution, Solution) and isinstance(weights, tuple):
        weights = weights_of(solution.learned)
    if isinstance(weights, tuple):
        raise InputError(
            f"plot_weights needs one array of weights per solution, but {label!r} has different weights for "
            f"each of {len(weights)} risks. Pass one row per risk: "
            "{f'risk {i}': machine for i, machine in enumerate(solution.learned)}."
        )
    if weights is None:
        raise InputError(
            f"plot_weights needs the weights of a combination of kernels, but {label!r} has none. "
            "Leave it out."
        )
    return np.ravel(np.asarray(weights, dtype=float))


def plot_bounds(
    solutions: Mapping[str, Solution], references: Mapping[str, float] | None = None, ax: Any = None
) -> Any:
    """Draw the certified lower and upper bound of each solution, with its gap as text.

    Parameters
    ----------
    solutions : dict from label to Solution
    references : dict from label to value, optional
        Values to compare with, such as that of the best single kernel. They are drawn as vertical lines.
    ax : matplotlib axes, optional

    Returns
    -------
    matplotlib axes
    """
    check_solutions(solutions, "plot_bounds", Solution)
    lines = {} if references is None else as_references(references)
    ax = new_axes(ax)
    lower = np.array([s.lower for s in solutions.values()])
    upper = np.array([s.upper for s in solutions.values()])
    rows = np.arange(len(lower))
    ax.barh(rows, upper, color="0.85")
    ax.hlines(rows, lower, upper, color="0.3", linewidth=3)
    tips = {"linestyle": "none", "markersize": 9, "zorder": 4}  # two arrows, whose tips are the bounds
    ax.plot(lower, rows, marker=CARETRIGHT, color="tab:red", label="certified lower bound", **tips)
    ax.plot(upper, rows, marker=CARETLEFT, color="tab:blue", label="certified upper bound", **tips)
    reach = float(upper.max())
    for row, solution in zip(rows, solutions.values(), strict=True):
        text = f"     gap {max(solution.gap, SMALLEST_GAP):.0e}"
        ax.text(solution.upper, row, text, va="center", fontsize=8, bbox=TEXT_BOX, zorder=3)
    for (label, value), style in zip(lines.items(), ("--", ":", "-.") * 9, strict=False):
        ax.axvline(value, color="0.3", linestyle=style, linewidth=1, label=f"{label}: {value:.3g}")
        reach = max(reach, value)
    ax.set_xlim(0, 1.25 * reach)
    ax.set_yticks(rows, list(solutions), fontsize=8)
    ax.invert_yaxis()
    ax.set_xlabel("value of the criterion")
    ax.legend(fontsize=8, loc="upper center", bbox_to_anchor=(0.5, -0.14), ncols=2, frameon=False)
    ax.set_title("Certified bounds")
    return ax


def plot_duality(
    problem: cp.Problem, path: Sequence[Solution | ArrayLike], *, points: int = 41, ax: Any = None
) -> Any:
    r"""Draw the primal and the dual value along a path of dual variables, with the gap shaded.

    At every alpha of the path the dual value is

    .. math::

        d(\alpha) = \min_x\ F(x) + w \big(\ell(\alpha) - \tfrac12 \langle \alpha\alpha', K(x) \rangle\big),

    and the primal value is F(x) + w risk(K(x)). Between solutions x is on the segment of their points, so
    that the two values meet at an optimal corner. If a corner is an array, x is a minimiser x(alpha), the
    best response, everywhere. At an optimal alpha with several minimisers it need not be optimal.

    Parameters
    ----------
    problem : cp.Problem
        With one risk.
    path : sequence of Solution or array of shape (n,), at least two
        Its corners, which straight segments join. Each is projected on the domain of the dual.
    points : int >= 2, default 41
        Points of each segment.
    ax : matplotlib axes, optional

    Returns
    -------
    matplotlib axes

    Raises
    ------
    InputError
        If the problem has no risk or several, or the path fewer than two corners or ones of another length.
    """
    along = bounds_along(problem, path, whole(points, "points", 2))
    ax = new_axes(ax)
    primal = "primal at the best response" if along.response else "primal"
    labels = ("dual", primal) if isinstance(problem.objective, cp.Maximize) else (primal, "dual")
    draw_bounds(ax, along.position, along.lower, along.upper, labels)
    for corner in range(1, len(along.corners) - 1):
        ax.axvline(corner, color="0.5", linewidth=0.8, linestyle=":")
    ax.set_xticks(range(len(along.corners)), [rf"$\alpha_{{{i}}}$" for i in range(len(along.corners))])
    ax.set_xlim(0, len(along.corners) - 1)
    ax.set_xlabel("dual variables on the path")
    ax.set_ylabel("value")
    ax.set_title("Weak duality")
    ax.legend(loc="best", frameon=False)
    return ax

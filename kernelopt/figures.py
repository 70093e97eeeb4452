"""What figures share: axes, and two bounds with the gap between them shaded."""

from __future__ import annotations

from typing import Any

import numpy as np

from kernelopt.errors import KerneloptError

ABOVE = {"color": "#08306b", "linestyle": "-", "linewidth": 2.0}  # dark and solid, also in grey
BELOW = {"color": "#e6760a", "linestyle": "--", "linewidth": 2.0}  # light and dashed
FEW = 12  # points up to which each is marked
SHADE = {"color": "0.85", "linewidth": 0}


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


def draw_bounds(
    ax: Any, x: Any, lower: Any, upper: Any, labels: tuple[str, str], steps: bool = False
) -> None:
    """Draw an upper and a lower curve with the gap between them shaded; infinite values are left out."""
    x, lower, upper = (np.asarray(part, dtype=float) for part in (x, lower, upper))
    style: dict[str, Any] = {"drawstyle": "steps-post"} if steps else {}
    dots: dict[str, Any] = {"marker": "o", "markersize": 4} if x.size <= FEW else {}
    both = np.isfinite(lower) & np.isfinite(upper)
    ax.fill_between(x, lower, upper, where=both, step="post" if steps else None, label="gap", **SHADE)
    for values, look, label in ((upper, ABOVE, labels[0]), (lower, BELOW, labels[1])):
        finite = np.isfinite(values)
        ax.plot(x[finite], values[finite], label=label, **look, **style, **dots)

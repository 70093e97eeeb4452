"""Heat maps with numbers in their cells, and the room that numbers need along an axis."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelopt.figures.axes import FONT

CELL_FONT = 7  # points
DIGIT = 0.65  # width of a digit over the size of its font, about
MAX_NUMBERED = 16  # columns: with more of them no number fits into a cell
DARK = 0.6  # share of the scale of colours above which a cell is dark, and its text white


def heat_map(
    ax: Any, cells: Any, low: float, label: str, texts: Sequence[Sequence[str]], *, diverging: bool = False
) -> None:
    """Draw numbers as colours between `low` and 1, with a colour bar and a text in each cell.

    Parameters
    ----------
    ax : matplotlib axes
    cells : array of shape (k, m)
        A cell without a number is grey.
    low : float
    label : str
        Of the colour bar.
    texts : k lists of m str
        They are left out where cells are too narrow for numbers.
    diverging : bool, default False
        Whether zero is white, and both ends are dark.
    """
    colours = "RdBu_r" if diverging else "Blues"
    picture = ax.imshow(np.ma.masked_invalid(cells), cmap=colours, vmin=low, vmax=1, aspect="auto")
    ax.set_facecolor("0.85")
    shares: NDArray[np.float64] = np.abs(cells) if diverging else (cells - low) / (1 - low)
    if len(cells.T) <= MAX_NUMBERED:
        for (i, j), share in np.ndenumerate(shares):
            ink = "white" if share > DARK else "black"
            ax.text(j, i, texts[i][j], ha="center", va="center", fontsize=CELL_FONT, color=ink)
    ax.figure.colorbar(picture, ax=ax, label=label)


def width_of_numbers(count: int) -> float:
    """Return the width in points of a number up to `count` and a space, as a label of an axis."""
    return FONT * DIGIT * (len(str(count)) + 1)

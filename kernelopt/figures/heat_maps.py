"""Heat maps: numbers in their cells, and the room that numbers need along an axis."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

LABEL_FONT = 8  # points
CELL_FONT = 7
DIGIT = 0.65  # width of a digit over the size of its font, about
MAX_NUMBERED = 16  # columns: with more of them no number fits into a cell
DARK = 0.6  # share of the scale of colours above which a cell is dark, and its text white


def write_in_cells(ax: Any, texts: Sequence[Sequence[str]], shares: NDArray[np.float64]) -> None:
    """Write a text into each cell in a colour that can be read on that of the cell.

    Parameters
    ----------
    ax : matplotlib axes
    texts : k lists of m str
        A cell with the text "" stays empty.
    shares : array of shape (k, m)
        Where the colour of each cell stands on the scale, from 0, the lightest, to 1.
    """
    for (i, j), share in np.ndenumerate(shares):
        if texts[i][j]:
            ink = "white" if share > DARK else "black"
            ax.text(j, i, texts[i][j], ha="center", va="center", fontsize=CELL_FONT, color=ink)


def width_of_numbers(count: int) -> float:
    """Return the width in points of a number up to `count` and a space, as a label of an axis."""
    return LABEL_FONT * DIGIT * (len(str(count)) + 1)

"""What tests of figures share: axes without pyplot, and what stands on them."""

from __future__ import annotations

import matplotlib as mpl

mpl.use("Agg")
from matplotlib.figure import Figure


def axes(*size):
    """Axes of a figure of a size in inches, by default that of matplotlib."""
    return Figure(size or None, layout="constrained").subplots()


def words(texts):
    """What texts say."""
    return [text.get_text() for text in texts]


def boxes(parts):
    """Where parts of a figure stand in its window."""
    return [part.get_window_extent() for part in parts]


def apart(found):
    """Whether no two boxes touch each other."""
    return not any(a.overlaps(b) for k, a in enumerate(found) for b in found[k + 1 :])


def within(frame, found):
    """Whether all boxes stand in a frame."""
    return all(frame.x0 <= b.x0 and b.x1 <= frame.x1 and frame.y0 <= b.y0 and b.y1 <= frame.y1 for b in found)

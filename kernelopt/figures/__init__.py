"""What figures share: axes, the look of lines, and curves of bounds and of weights."""

from kernelopt.figures.axes import (
    labels_step,
    legend_below,
    legend_beside,
    look,
    new_axes,
    shortened_name,
    tall,
)
from kernelopt.figures.curves import draw_bounds, draw_histories, draw_weights_along, values_axis

__all__ = [
    "draw_bounds",
    "draw_histories",
    "draw_weights_along",
    "labels_step",
    "legend_below",
    "legend_beside",
    "look",
    "new_axes",
    "shortened_name",
    "tall",
    "values_axis",
]

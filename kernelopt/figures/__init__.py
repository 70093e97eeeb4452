"""What figures share: axes, the look of lines, curves of bounds and of weights, and cells of heat maps."""

from kernelopt.figures.axes import (
    CARETLEFT,
    CARETRIGHT,
    labels_step,
    legend_below,
    legend_beside,
    look,
    new_axes,
    shortened_name,
    tall,
)
from kernelopt.figures.curves import draw_bounds, draw_histories, draw_weights_along, values_axis
from kernelopt.figures.heat_maps import LABEL_FONT, MAX_NUMBERED, width_of_numbers, write_in_cells

__all__ = [
    "CARETLEFT",
    "CARETRIGHT",
    "LABEL_FONT",
    "MAX_NUMBERED",
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
    "width_of_numbers",
    "write_in_cells",
]

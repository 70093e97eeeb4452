"""What figures share: axes, the look of lines, curves of bounds and of weights, and cells of heat maps."""

from kernelopt.figures.axes import (
    CARETLEFT,
    CARETRIGHT,
    FONT,
    in_points,
    labels_step,
    legend_below,
    legend_beside,
    look,
    name_rows,
    new_axes,
    shortened_name,
    tall,
    write_beside,
)
from kernelopt.figures.curves import draw_bounds, draw_histories, draw_weights_along, values_axis
from kernelopt.figures.heat_maps import MAX_NUMBERED, heat_map, width_of_numbers

__all__ = [
    "CARETLEFT",
    "CARETRIGHT",
    "FONT",
    "MAX_NUMBERED",
    "draw_bounds",
    "draw_histories",
    "draw_weights_along",
    "heat_map",
    "in_points",
    "labels_step",
    "legend_below",
    "legend_beside",
    "look",
    "name_rows",
    "new_axes",
    "shortened_name",
    "tall",
    "values_axis",
    "width_of_numbers",
    "write_beside",
]

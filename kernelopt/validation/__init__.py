"""Validation of arguments: every public argument is checked by one of these functions.

Each function returns a clean value, or raises a kernelopt error that states what was expected, what was
given, where, and what to do. No function changes a number without an error or a documented rule, and none
reads a stack more often than necessary.
"""

from kernelopt.validation.arrays import (
    LARGEST_SQUARED,
    Array,
    Floats,
    Index,
    Mask,
    as_expression,
    as_float_array,
    as_indices,
    as_list,
    as_vector,
    is_missing,
    is_number,
    numeric,
    plain,
)
from kernelopt.validation.labels import as_classes, as_labels, as_targets
from kernelopt.validation.matrices import (
    PSD_TOLERANCE,
    as_symmetric,
    asymmetry,
    check_psd,
    row_maxima,
    smallest_relative_eigenvalue,
    taken_as_symmetric,
)
from kernelopt.validation.messages import shown
from kernelopt.validation.scalars import (
    as_generator,
    as_model_path,
    as_path,
    bare,
    boolean,
    exponent,
    is_real,
    memory_size,
    one_of,
    positive,
    refuse_hidden,
    whole,
)

__all__ = [
    "LARGEST_SQUARED",
    "PSD_TOLERANCE",
    "Array",
    "Floats",
    "Index",
    "Mask",
    "as_classes",
    "as_expression",
    "as_float_array",
    "as_generator",
    "as_indices",
    "as_labels",
    "as_list",
    "as_model_path",
    "as_path",
    "as_symmetric",
    "as_targets",
    "as_vector",
    "asymmetry",
    "bare",
    "boolean",
    "check_psd",
    "exponent",
    "is_missing",
    "is_number",
    "is_real",
    "memory_size",
    "numeric",
    "one_of",
    "plain",
    "positive",
    "refuse_hidden",
    "row_maxima",
    "shown",
    "smallest_relative_eigenvalue",
    "taken_as_symmetric",
    "whole",
]

"""The gate for outside data: every public argument goes through one of these functions.

Each returns a clean value, or raises a kernelopt error that says what was expected, what came, where, and
what to do. None changes a number in silence, and none reads a stack more often than it must.
"""

from kernelopt.validation.arrays import (
    Array,
    Index,
    Mask,
    as_float_array,
    as_indices,
    as_list,
    as_vector,
    numeric,
    plain,
)
from kernelopt.validation.expressions import as_expression
from kernelopt.validation.labels import as_classes, as_labels, as_targets
from kernelopt.validation.matrices import (
    PSD_TOLERANCE,
    as_stack,
    as_symmetric,
    check_psd,
    row_maxima,
    smallest_relative_eigenvalue,
)
from kernelopt.validation.messages import shown
from kernelopt.validation.scalars import (
    as_generator,
    bare,
    boolean,
    exponent,
    is_real,
    one_of,
    positive,
    whole,
)

__all__ = [
    "PSD_TOLERANCE",
    "Array",
    "Index",
    "Mask",
    "as_classes",
    "as_expression",
    "as_float_array",
    "as_generator",
    "as_indices",
    "as_labels",
    "as_list",
    "as_stack",
    "as_symmetric",
    "as_targets",
    "as_vector",
    "bare",
    "boolean",
    "check_psd",
    "exponent",
    "is_real",
    "numeric",
    "one_of",
    "plain",
    "positive",
    "row_maxima",
    "shown",
    "smallest_relative_eigenvalue",
    "whole",
]

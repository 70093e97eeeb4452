"""The weights C of a loss: one number, one per sample, or a scalar cvxpy parameter."""

from __future__ import annotations

from typing import TypeAlias

import cvxpy as cp
import numpy as np

from kernelopt.errors import ParameterError, ShapeError
from kernelopt.validation import LARGEST_SQUARED, Array, as_float_array, positive

Weight: TypeAlias = float | Array | cp.Parameter


def checked_weight(C: object, what: str) -> Weight:
    """Return a loss weight after checking it: a positive number, one per sample, or a scalar parameter."""
    if isinstance(C, cp.Parameter):
        if C.size != 1 or not C.is_nonneg():
            found = f"shape {C.shape}" if C.size != 1 else f"sign {C.sign}"
            raise ParameterError(
                f"{what} as a cvxpy parameter must be a non-negative scalar, got {found}. "
                "Create it with cp.Parameter(pos=True)."
            )
        return C
    array = as_float_array(C, what, ndim=1) if is_vector(C) else np.array([positive(C, what)])
    if array.max(initial=0.0) > LARGEST_SQUARED:
        raise ParameterError(
            f"{what} must be at most {LARGEST_SQUARED:g}, since squares of dual variables up to it are "
            f"summed, got {array.max():g}. Choose a smaller one; for labels the limit is hard_margin()."
        )
    if not is_vector(C):
        return float(array[0])
    if array.size == 0 or array.min() <= 0:
        raise ParameterError(
            f"{what} must be positive for every sample, got a smallest value of "
            f"{array.min(initial=np.inf):g}. Leave out the samples that should not count."
        )
    read_only = array.copy()
    read_only.flags.writeable = False
    return read_only


def is_vector(C: object) -> bool:
    """Whether a loss weight is one number per sample, and not a single number."""
    if isinstance(C, cp.Expression) or not hasattr(C, "__len__") or isinstance(C, str | bytes | dict | set):
        return False
    return not isinstance(C, np.ndarray) or C.ndim > 0 or isinstance(C, np.ma.MaskedArray)


def per_sample(C: Weight, n: int) -> Array:
    """Return the weight of each of the n samples."""
    if isinstance(C, cp.Parameter):
        if C.value is None:
            raise ParameterError(
                f"the parameter {C.name()} must have a value here, got None. Set its .value before solving."
            )
        return np.full(n, positive(np.asarray(C.value).reshape(()), f"the parameter {C.name()}"))
    if isinstance(C, np.ndarray):
        if C.size != n:
            raise ShapeError(
                f"C must be a number or have one entry per labelled point ({n}), got {C.size}. "
                "Cut the weights to the labelled points."
            )
        return C.copy()  # writeable, as in the other cases
    return np.full(n, C)


def weighted_sum(C: Weight, terms: cp.Expression) -> cp.Expression:
    """Return sum_i C_i terms_i as a cvxpy expression that is DPP in a scalar parameter C."""
    if isinstance(C, np.ndarray):
        return per_sample(C, terms.size) @ terms
    return C * cp.sum(terms)

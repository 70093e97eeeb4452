"""Columns of A that are linearly dependent up to rounding."""

from __future__ import annotations

import numpy as np

from kernelopt.certificates.conic.cones import ConeProgram
from kernelopt.certificates.conic.tightening import Interval
from kernelopt.numerics.rounding import SMALLEST_DIVISOR
from kernelopt.validation import Array, Index

DEPENDENT = 1e-13  # relative to the largest singular value of columns of length one: rounding
MAX_COLUMNS = 500  # limits the cost of the dense singular value decomposition
MAX_RATIO = 2.0**16  # of a bound to the entries of x: wide, and far from the 1e13 at which rounding counts


def restricted_box(program: ConeProgram, box: Interval, x: Array) -> tuple[Interval, Index] | None:
    """Return a smaller box, and the columns it limits: those dependent up to rounding, without useful bounds.

    Let d be a direction with A d and c'd of the size of rounding. Along d the program of the stored numbers
    is determined by their rounding errors alone: at weights of 1e15 its optimum may differ from the one
    that is meant. The box limits the columns of such d to MAX_RATIO times the largest of their entries of
    |x|. A bound for this box assumes these limits. None where no columns are dependent.
    """
    largest = MAX_RATIO * max(float(np.abs(x).max(initial=0.0)), SMALLEST_DIVISOR)
    columns = np.flatnonzero(~(box.max_abs <= largest) & (program.curvature <= 0))
    if not 1 < columns.size <= MAX_COLUMNS:
        return None
    A = program.A[:, columns].toarray()
    length = np.sqrt((A**2).sum(axis=0))
    if not (np.isfinite(length).all() and (length > 0).all()):
        return None
    try:
        _, values, directions = np.linalg.svd(A / length, full_matrices=True)
    except np.linalg.LinAlgError:
        return None
    values = np.concatenate([values, np.zeros(columns.size - values.size)])
    null = directions[values <= DEPENDENT * float(values[0])]
    cost = program.c[columns] / length
    null = null[np.abs(null @ cost) <= DEPENDENT * np.abs(null) @ np.abs(cost)]
    dependent = np.abs(null).max(axis=0, initial=0.0) > np.sqrt(DEPENDENT)
    if not dependent.any():
        return None
    chosen = columns[dependent]
    radius = np.full(box.lower.size, np.inf)
    radius[chosen] = MAX_RATIO * max(float(np.abs(x[chosen]).max()), SMALLEST_DIVISOR)
    return Interval(np.maximum(box.lower, -radius), np.minimum(box.upper, radius)), chosen

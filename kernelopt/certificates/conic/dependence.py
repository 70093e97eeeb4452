"""Columns that rounding alone keeps independent of each other."""

from __future__ import annotations

import numpy as np

from kernelopt.certificates.conic.cones import ConeProgram
from kernelopt.certificates.conic.tightening import Interval
from kernelopt.validation import Array, Index

DEPENDENT = 1e-13  # of the largest singular value of columns of length one
LARGEST = 500  # columns that are looked at
REACH = 2.0**16


def restricted(program: ConeProgram, box: Interval, x: Array) -> tuple[Interval, Index] | None:
    """Return a box for columns without useful bounds that are dependent but for rounding, and these columns.

    Where A d is of the size of rounding, no bound is true for all weights: the optimum of the stored
    numbers may use their last digits, multiplied by 1e15. What is wanted is the optimum for weights of
    about the size of x, within `REACH` times its largest entry. None where no columns are dependent.
    """
    largest = REACH * max(float(np.abs(x).max(initial=0.0)), 1e-300)
    columns = np.flatnonzero(~(box.reach <= largest) & (program.curvature <= 0))
    if not 1 < columns.size <= LARGEST:
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
    touched = np.abs(null).max(axis=0, initial=0.0) > np.sqrt(DEPENDENT)
    if not touched.any():
        return None
    chosen = columns[touched]
    reach = np.full(box.lower.size, np.inf)
    reach[chosen] = REACH * max(float(np.abs(x[chosen]).max()), 1e-300)
    return Interval(np.maximum(box.lower, -reach), np.minimum(box.upper, reach)), chosen

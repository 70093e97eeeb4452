"""Doubles in exact rational arithmetic, and calls whose warnings are expected."""

from __future__ import annotations

import warnings
from fractions import Fraction
from typing import Any

import numpy as np

import kernelopt as ko


def exact(values: Any) -> np.ndarray:
    """Return an array of doubles as an array of fractions."""
    array = np.asarray(values, dtype=float)
    return np.array([Fraction(v) for v in array.ravel().tolist()], dtype=object).reshape(array.shape)


def eliminated(A: Any, b: Any) -> np.ndarray | None:
    """Return the solution of a square system of fractions, None where it is singular."""
    n = len(b)
    M = np.column_stack([np.array(A, dtype=object).reshape(n, n), np.array(b, dtype=object)])
    for i in range(n):
        pivot = next((r for r in range(i, n) if M[r, i]), None)
        if pivot is None:
            return None
        M[[i, pivot]] = M[[pivot, i]]
        M[i] = M[i] / M[i, i]
        others = np.arange(n) != i
        M[others] = M[others] - np.outer(M[others, i], M[i])
    return M[:, n]


def quietly(function: Any, *args: Any, **options: Any) -> Any:
    """Call without warnings: a bracket that is wide may be told as one, it must only be true."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ko.ConvergenceWarning)
        warnings.simplefilter("ignore", ko.errors.ConditionWarning)
        return function(*args, **options)

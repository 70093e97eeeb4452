"""`pytest.approx` of arrays in one step: pytest compares entry by entry, for ten microseconds each."""

from __future__ import annotations

import numpy as np
import pytest

ABSOLUTE, RELATIVE = 1e-12, 1e-6  # the tolerances of pytest where none is given


def doubles(value):
    return isinstance(value, np.ndarray) and value.dtype == np.float64


def all_near(approx, actual):
    """Whether an array of doubles is within the tolerances of an `approx`, by the rule of pytest.

    False is no answer: for other types, numbers that are not finite, and entries that differ, pytest decides.
    """
    expected = approx.expected
    if not doubles(actual):
        return False
    scalar = isinstance(expected, float | int) and not isinstance(expected, bool)
    if not scalar and not (doubles(expected) and expected.shape == actual.shape):
        return False
    absolute = ABSOLUTE if approx.abs is None else approx.abs
    relative = approx.rel
    if relative is None:
        relative = RELATIVE if approx.abs is None else 0.0
    with np.errstate(all="ignore"):
        near = np.abs(actual - expected) <= np.maximum(relative * np.abs(expected), absolute)
    return bool(near.all() and np.isfinite(expected).all())


def compare_arrays_at_once():
    """Let `pytest.approx` ask `all_near` first."""
    for kind in (type(pytest.approx(0.0)), type(pytest.approx(np.zeros(1)))):
        kind.__eq__ = either(all_near, kind.__eq__)


def either(quick, thorough):
    return lambda approx, actual: quick(approx, actual) or thorough(approx, actual)

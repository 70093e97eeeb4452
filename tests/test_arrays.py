"""What `tests.arrays` calls near is near for pytest."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from tests.arrays import all_near

NUMBERS = np.array([0.0, 1.0, -3.0, 1e-13, 1e300])
TOLERANCES = ({}, {"rel": 1e-3}, {"abs": 1e-3}, {"rel": 1e-9, "abs": 1e-7}, {"rel": 0, "abs": 0})
CHANGES = (0.0, 1e-14, 9e-7, 1.1e-6, 9e-4, 1.1e-3, 2e-7, np.nan, np.inf)


def entrywise(expected, actual, tolerances):
    """The answer of pytest for each entry alone."""
    pairs = zip(np.broadcast_to(expected, actual.shape).tolist(), actual.tolist(), strict=True)
    return all(a == pytest.approx(e, **tolerances) for e, a in pairs)


def test_arrays_are_compared_by_the_rule_of_pytest():
    found = set()
    for change, relative, tolerances in product(CHANGES, (True, False), TOLERANCES):
        with np.errstate(invalid="ignore"):  # 0 * inf
            actual = NUMBERS * (1 + change) if relative else NUMBERS + change
        answer = all_near(pytest.approx(NUMBERS, **tolerances), actual)
        assert answer == entrywise(NUMBERS, actual, tolerances)
        assert all_near(pytest.approx(0.5, **tolerances), 0.5 + 0 * NUMBERS + change) == entrywise(
            0.5, 0.5 + 0 * NUMBERS + change, tolerances
        )
        found.add(answer)
    assert found == {True, False}


def test_other_values_are_left_to_pytest():
    ones = np.ones(2)
    for expected, actual in (
        (ones, np.ones(3)), (ones, [1.0, 1.0]), (ones, np.ones(2, int)), (np.ones(2, int), ones),
        (np.array([1, np.inf]), np.array([1, np.inf])), (1.0, 1.0), ([1.0, 1.0], ones), (True, ones),
    ):  # fmt: skip
        assert not all_near(pytest.approx(expected), actual)
    assert ones == pytest.approx([1.0, 1.0]) and np.array([1, np.inf]) == pytest.approx(np.array([1, np.inf]))
    with pytest.raises(AssertionError, match="1 / 2"):
        assert np.array([1.0, 2.0]) == pytest.approx(ones)

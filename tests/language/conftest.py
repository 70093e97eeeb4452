"""What several tests of the language share."""

from __future__ import annotations

import cvxpy as cp
import pytest

from tests.language.cases import ball_problem
from tests.problems import solved


@pytest.fixture(scope="module")
def least():
    """The smallest risk over the ball of `ball_problem`."""
    return solved(ball_problem(lambda r, t: cp.Minimize(r))[0])

"""The one place that overrides private names of cvxpy.

cvxpy evaluates a tree through `Atom._value_impl`, from the leaves upwards. The expression inside a
risk has variables of its own, which have no value before a conic solve and a meaningless one after a
different method, while the risk at a kernel is a number at any time. There is no public hook for
that, so a node that knows its own value states it here. Nor is there one for the value of a problem,
which `Problem.unpack` takes from the objective: the certified value is that with its rounding paid.
Tested on the oldest and the newest cvxpy.
"""

from __future__ import annotations

from abc import abstractmethod

import cvxpy as cp
import numpy as np
from cvxpy.atoms.affine.wraps import Wrap


class ValuedWrap(Wrap):  # type: ignore[misc]
    """A cvxpy identity node whose value comes from `known_value` and not from its argument."""

    @abstractmethod
    def known_value(self) -> float | None:
        """Return the value at the current values of the variables, None if they have none."""

    def _value_impl(self) -> np.ndarray | None:
        value = self.known_value()
        return None if value is None else np.array(value)


def set_value(problem: cp.Problem, value: float) -> None:
    """Make a number the value of a solved problem."""
    problem._value = value

"""The only module that overrides names of cvxpy that it does not document.

cvxpy evaluates an expression through `Atom._value_impl`, from the leaves to the root. The expression inside a
risk has variables of its own. They have no value before a conic solve, and a meaningless one after another
method, although the risk at a kernel has a value at any time. cvxpy has no public hook for that, so a node
that computes its own value overrides `_value_impl`. `Problem.unpack` computes the value of a problem from the
objective. The certified value differs from that by its rounding error, so it is set afterwards.

`problem.solve(method=name)` takes the function of that name from `Problem.REGISTERED_SOLVE_METHODS`, a dict.
To have all names in it, kernelopt would read the entry points of every installed package when it is imported.
A dict that looks a name up when it is missing takes its place.

The module is tested with the oldest and the newest supported cvxpy.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import Any

import cvxpy as cp
import numpy as np
from cvxpy.atoms.affine.wraps import Wrap


class ValuedWrap(Wrap):  # type: ignore[misc]
    """A cvxpy identity node that computes its value by `known_value` and not from its argument."""

    @abstractmethod
    def known_value(self) -> float | None:
        """Return the value at the current values of the variables, None if a variable has none."""

    def _value_impl(self) -> np.ndarray | None:
        value = self.known_value()
        return None if value is None else np.array(value)


def set_value(problem: cp.Problem, value: float) -> None:
    """Set the value of a solved problem."""
    problem._value = value


class FoundMethods(dict[str, Callable[..., Any]]):
    """The registered methods by name, and for any other name the one that `find` returns."""

    def __init__(self, registered: dict[str, Callable[..., Any]], find: Callable[[str], Any]) -> None:
        super().__init__(registered)
        self._find = find

    def __missing__(self, name: str) -> Any:
        return self._find(name)


def find_methods(find: Callable[[str], Callable[..., Any]]) -> None:
    """Let `problem.solve(method=name)` call what `find(name)` returns, unless `name` is registered."""
    cp.Problem.REGISTERED_SOLVE_METHODS = FoundMethods(cp.Problem.REGISTERED_SOLVE_METHODS, find)

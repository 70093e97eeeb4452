"""The only module that overrides private names of cvxpy.

cvxpy evaluates an expression through `Atom._value_impl`, from the leaves to the root. The expression inside a
risk has variables of its own. They have no value before a conic solve, and a meaningless one after another
method, although the risk at a kernel has a value at any time. cvxpy has no public hook for that, so a node
that computes its own value overrides `_value_impl`. `Problem.unpack` computes the value of a problem from the
objective. The certified value differs from that by its rounding error, so it is set afterwards. A problem
keeps its compiled forms in private attributes, which cannot be pickled. The module is tested with the oldest
and the newest supported cvxpy.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence

import cvxpy as cp
import numpy as np
from cvxpy.atoms.affine.wraps import Wrap
from cvxpy.problems.problem import Cache

from kernelopt.threads import quietly


class ValuedWrap(Wrap):  # type: ignore[misc]
    """A cvxpy identity node that computes its value by `known_value` and not from its argument."""

    @abstractmethod
    def known_value(self) -> float | None:
        """Return the value at the current values of the variables, None if a variable has none."""

    def _value_impl(self) -> np.ndarray | None:
        value = self.known_value()
        return None if value is None else np.array(value)


def written_problem(objective: cp.Minimize | cp.Maximize, constraints: Sequence[cp.Constraint]) -> cp.Problem:
    """Return a problem that the package writes, however large.

    cvxpy warns of more than 10,000 subexpressions, such as 300 kernels and 10 risks have, and asks to
    vectorise the code; the user could not.
    """
    with quietly():
        return cp.Problem(objective, constraints)


def set_value(problem: cp.Problem, value: float) -> None:
    """Set the value of a solved problem."""
    problem._value = value


def is_compiled(problem: cp.Problem, solver: str) -> bool:
    """Whether `problem.get_problem_data(solver)` finds the form that the last solve has compiled."""
    cache = problem._cache
    return cache.param_prog is not None and cache.key == cache.make_key(solver, False, False, None)


def without_compiled(problem: cp.Problem) -> cp.Problem:
    """Return a copy of a problem, of the same class, without the compiled forms that cvxpy caches."""
    fresh = written_problem(problem.objective, problem.constraints)
    compiled = {name for name, value in vars(fresh).items() if isinstance(value, dict | Cache)}
    kept = {name: value for name, value in vars(problem).items() if name not in compiled}
    copied: cp.Problem = object.__new__(type(problem))
    vars(copied).update(vars(fresh) | kept)
    return copied

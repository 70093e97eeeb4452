"""The methods that are installed: what each needs, and how to run it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

import cvxpy as cp

from kernelopt.errors import MethodError
from kernelopt.solvers.solution import Solution


@dataclass(frozen=True)
class Method:
    """One route to the optimum.

    Attributes
    ----------
    name : str
    obstacles : function of the problem
        The constraints or terms that stand in the way, in words; empty if the method applies.
    run : function of (problem, **options)
        Returns a `Solution` and leaves the problem with status, value and every variable set.
    suits : function of the problem
        Whether "auto" may take it where it applies; by default always.
    """

    name: str
    obstacles: Callable[[cp.Problem], list[str]]
    run: Callable[..., Solution]
    suits: Callable[[cp.Problem], bool] = lambda problem: True


METHODS: dict[str, Method] = {}
T = TypeVar("T")


def required(read: T | str, method: str) -> T:
    """Return what was read of a problem, or raise if it is what stands in the way of the method."""
    if isinstance(read, str):
        raise MethodError(f"method {method!r} does not apply: {read}.")
    return read


def choose(problem: cp.Problem, name: str) -> Method:
    """Return the method called `name`, or for "auto" the last registered one that applies and suits.

    Raises
    ------
    MethodError
        If there is no such method or it does not apply, naming what stands in the way.
    """
    if name == "auto":
        for method in reversed(METHODS.values()):
            if method.suits(problem) and not method.obstacles(problem):
                return method
        raise MethodError("no method applies to this problem. kernelopt.explain(problem) says why.")
    if name not in METHODS:
        raise MethodError(
            f"method must be 'auto' or one of {', '.join(map(repr, METHODS))}, got {name!r}. "
            "kernelopt.explain(problem) lists those that apply."
        )
    in_the_way = METHODS[name].obstacles(problem)
    if in_the_way:
        raise MethodError(
            f"method {name!r} does not apply: {'; '.join(in_the_way)}. Use method='auto', or see explain()."
        )
    return METHODS[name]

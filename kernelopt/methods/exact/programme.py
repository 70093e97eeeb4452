"""A programme of a paper, and how the solution of the learning problem follows from it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, get_args

import cvxpy as cp

from kernelopt.errors import ParameterError
from kernelopt.validation import Array

Claim = Literal["equal", "upper", "lower", "relaxation"]


@dataclass(frozen=True, eq=False)
class Programme:
    """A conic programme as a paper prints it, for a learning problem that is stated elsewhere.

    Parameters
    ----------
    problem : cp.Problem
        The programme, which the method "exact" solves.
    recover : function without arguments
        Called after the solve. It returns the point of the learning problem (values by cvxpy variable) and
        one alpha per risk, computed from the values and multipliers of `problem`.
    claim : "equal", "upper", "lower" or "relaxation"
        How the optimum of `problem` relates to that of the learning problem.
    """

    problem: cp.Problem
    recover: Callable[[], tuple[dict[cp.Variable, Any], list[Array]]]
    claim: Claim = "equal"

    def __post_init__(self) -> None:
        if not isinstance(self.problem, cp.Problem):
            raise ParameterError(
                f"problem must be a cp.Problem, got {type(self.problem).__name__}: {self.problem!r:.60}. "
                "Call the function that builds it."
            )
        if not callable(self.recover):
            raise ParameterError(
                f"recover must be a function without arguments, got {type(self.recover).__name__}: "
                f"{self.recover!r:.60}. It reads point and alphas from the solved problem."
            )
        if self.claim not in get_args(Claim):
            claims = ", ".join(map(repr, get_args(Claim)))
            raise ParameterError(
                f"claim must be one of {claims}, got {self.claim!r}. Choose the one that holds."
            )

"""A programme of a paper, and how its solution is read."""

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
    """A programme as a paper prints it, beside the learning problem that it stands for.

    Attributes
    ----------
    problem : cp.Problem
        Made for this record, and solved by the method "exact".
    recover : function without arguments
        After a solve it returns the point of the learning problem (values by cvxpy variable) and one alpha
        per risk, from the values and multipliers of `problem`.
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
            words = ", ".join(map(repr, get_args(Claim)))
            raise ParameterError(
                f"claim must be one of {words}, got {self.claim!r}. Choose the one that holds."
            )

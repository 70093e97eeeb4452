"""A programme of a paper, and how its solution is read."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import cvxpy as cp

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

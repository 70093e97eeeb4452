"""Problems as text."""
from __future__ import annotations
import cvxpy as cp
def problem_text(problem: cp.Problem) -> str:
    return cp.Problem.__str__(problem)

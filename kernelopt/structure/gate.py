"""The problems that are accepted: convex cvxpy problems with real, continuous and dense variables."""

from __future__ import annotations

from typing import Any

import cvxpy as cp

from kernelopt.errors import ParameterError


def check_is_problem(problem: Any) -> None:
    """Raise unless `problem` is a cp.Problem."""
    if not isinstance(problem, cp.Problem):
        if hasattr(problem, "programmes"):
            raise ParameterError(
                f"problem must be a cvxpy.Problem, got a {type(problem).__name__}. Call its solve(), or pass "
                "its .problem, the learning problem as a cvxpy problem."
            )
        raise ParameterError(
            f"problem must be a cvxpy.Problem, got {type(problem).__name__}. "
            "Wrap an expression as cp.Problem(cp.Minimize(expression)). A Solution is certified already: "
            "read its .certificate."
        )


def check_values(problem: cp.Problem) -> None:
    """Raise unless every parameter of a problem has a value."""
    names = [parameter.name() for parameter in problem.parameters() if parameter.value is None]
    if names:
        raise ParameterError(
            f"the parameters of a problem must have values, got None for {', '.join(names)}. "
            "Set the .value of each before solving."
        )


def check_problem(problem: Any) -> None:
    """Raise unless `problem` is a convex cp.Problem with real continuous variables."""
    check_is_problem(problem)
    if not problem.is_dcp():  # checked with the risks: a variable in place of a risk may hide the violation
        raise cp.DCPError(
            "the problem does not follow the rules of disciplined convex programming. A risk is convex and "
            "decreasing in its kernel: minimise it, or bound it from above.\n" + str(problem)
        )
    if any(v.is_complex() for v in problem.variables()):
        raise ParameterError("problem must have real variables, got complex ones. Split them into two parts.")
    for v in problem.variables():
        if v.attributes["diag"] or v.attributes["sparsity"]:
            raise ParameterError(
                f"variables must be dense, got {v.name()} with a diag or sparsity attribute. "
                "Use a vector and cp.diag(vector), or write the zeros as constraints."
            )
    if problem.is_mixed_integer():
        raise ParameterError(
            "problem must have continuous variables, got boolean or integer ones. "
            "Relax them: certificates rest on convex duality."
        )

"""`assert_certified`: the assertion that a result is optimal, by its certificate."""

from __future__ import annotations

from typing import Any

import cvxpy as cp

from kernelopt.catalog import Formulation
from kernelopt.certificates import Certificate, certify
from kernelopt.errors import ParameterError
from kernelopt.methods.solution import Solution
from kernelopt.validation import positive


def assert_certified(problem_or_solution: Any, rtol: float = 1e-6) -> Certificate:
    """Assert that a result is optimal to a relative gap, by its certificate.

    Parameters
    ----------
    problem_or_solution : cp.Problem, Formulation, Solution or Certificate
        For a problem or a formulation the current values of the variables are certified, whichever solver
        they come from. The value that a problem or a solution claims must lie between the bounds.
    rtol : float > 0, default 1e-6
        The largest relative gap that is allowed.

    Returns
    -------
    Certificate
        The certificate that the assertion is made from.

    Raises
    ------
    AssertionError
        With the bounds, if the gap is above rtol, the claimed value is not between the bounds, or there is no
        feasible point.
    ParameterError
        If the argument is none of these.

    Examples
    --------
    >>> import cvxpy as cp, kernelopt as ko
    >>> from kernelopt.testing import assert_certified
    >>> x = cp.Variable(nonneg=True)
    >>> problem = cp.Problem(cp.Minimize(x), [x >= 3])
    >>> round(assert_certified(ko.solve(problem)).lower, 6)
    3.0
    >>> x.value = 4
    >>> assert_certified(problem)  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    AssertionError: the gap must be at most 1e-06, got 2.5e-01: ... <= optimum <= 4 (gap 2.5e-01, conic)
    """
    positive(rtol, "rtol")
    given = problem_or_solution
    if isinstance(given, Formulation):
        given = given.problem
    claimed: float | None = None
    if isinstance(given, Solution):
        certificate, claimed = given.certificate, given.value
    elif isinstance(given, Certificate):
        certificate = given
    elif isinstance(given, cp.Problem):
        solution = given.solution
        claimed = None if solution is None or solution.opt_val is None else float(solution.opt_val)
        certificate = certify(given)
    else:
        raise ParameterError(
            "assert_certified takes a cp.Problem, a Formulation, a Solution or a Certificate, got "
            f"{type(given).__name__}. Pass what `solve` returned, or the problem after it."
        )
    lower, upper = certificate.lower, certificate.upper
    slack = rtol * max(abs(lower), abs(upper))
    if certificate.proof is not None:
        raise AssertionError("the problem is infeasible: the certificate holds a Farkas ray")
    if not certificate.feasible:
        raise AssertionError(f"there must be a feasible point, got none: {certificate}")
    if not lower <= upper:
        raise AssertionError(f"the bounds must be in order, got {lower!r} and {upper!r}")
    if not certificate.gap <= rtol:
        raise AssertionError(f"the gap must be at most {rtol:g}, got {certificate.gap:.1e}: {certificate}")
    if claimed is not None and not lower - slack <= claimed <= upper + slack:
        raise AssertionError(f"the claimed value must lie between the bounds, got {claimed!r}: {certificate}")
    return certificate

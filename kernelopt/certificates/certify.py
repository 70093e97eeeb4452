"""`certify`: lower and upper bounds of a problem at any candidate, ours or a stranger's."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any, Literal

import cvxpy as cp
import numpy as np
from numpy.typing import ArrayLike

from kernelopt.certificates.boxes import Box, constraint_boxes, entry_bounds, flat
from kernelopt.certificates.candidates import as_alphas, needed, starting_point
from kernelopt.certificates.closed import closed_bound
from kernelopt.certificates.minorants import relaxation
from kernelopt.certificates.multipliers import Bound, conic_bound
from kernelopt.certificates.repair import Point, Violation, feasible_point, violations, write_point
from kernelopt.language.risk import Risk
from kernelopt.reading import check_problem, risks, visible_variables
from kernelopt.validation import Array

CROSSING = 1e-9
AS_GOOD = 1e-8
Route = Literal["closed", "conic", "none"]


@dataclass(frozen=True)
class Certificate:
    """Bounds lower <= optimum <= upper, in doubles, computed from the problem's data alone.

    Attributes
    ----------
    lower, upper : float
        Bounds of the optimal value, infinite where none was found.
    route : "closed", "conic" or "none"
        How the bound by duality was obtained.
    residuals : dict
        Constraints that the candidate violated, by name, relative to the size of their sides.
    reason : str
        What was missing, where a bound is infinite.
    feasible : bool
        Whether a feasible point was found.
    point : dict
        The feasible point that attains the bound: values by cvxpy variable.
    alphas : tuple of arrays
        The dual variables behind the bound by duality, one per risk.
    proof : array or None
        A Farkas ray, where the problem is infeasible.
    """

    lower: float
    upper: float
    route: Route
    residuals: dict[str, float] = field(default_factory=dict)
    reason: str = ""
    feasible: bool = False
    point: dict[Any, Array] = field(default_factory=dict, repr=False)
    alphas: tuple[Array, ...] = field(default=(), repr=False)
    proof: Array | None = field(default=None, repr=False)

    @property
    def gap(self) -> float:
        """The gap relative to max(1, |upper|); infinite where a bound is missing."""
        if not np.isfinite(self.lower) or not np.isfinite(self.upper):
            return np.inf
        return max(0.0, self.upper - self.lower) / max(1.0, abs(self.upper))

    def __str__(self) -> str:
        text = f"{self.lower:.9g} <= optimum <= {self.upper:.9g} (gap {self.gap:.1e}, {self.route})"
        return text + (f": {self.reason}" if self.reason else "")


def certify(
    problem: cp.Problem,
    candidate: Any = None,
    *,
    weights: ArrayLike | None = None,
    alpha: ArrayLike | Sequence[ArrayLike] | None = None,
    bounds: dict[Any, tuple[ArrayLike, ArrayLike]] | None = None,
    retrain: bool = True,
) -> Certificate:
    """Bound the optimum of a problem from any candidate, trusting no solver.

    For `Minimize`, with the roles swapped for `Maximize`:

    * lower: every alpha is projected on the dual domain of its loss, and every risk replaced by
      l(alpha) - 1/2 <alpha alpha', K>, which is never above it. The relaxation is bounded in closed
      form over simplices, l_p balls and spectrahedra, else by a repaired conic multiplier.
    * upper: the candidate is projected on the equalities, moved towards a strictly feasible point as
      far as the other constraints ask, and evaluated, every risk by a primal value.

    Parameters
    ----------
    problem : cp.Problem
        With or without risks.
    candidate : dict from cvxpy variable to value, or Solution, optional
        By default the current values of the variables.
    weights : array, optional
        Short for the candidate of a problem with one variable outside its risks.
    alpha : array of shape (n,), or one per risk, optional
        Signed dual variables; by default the better of `risk.alpha`, as the last solve left it, and
        those of the machines at the candidate's kernels.
    bounds : dict from cvxpy variable to (lower, upper), optional
        Bounds that are known to hold at an optimum, beyond those that attributes, traces and norm
        balls imply; they help where the lower bound names an unbounded variable.
    retrain : bool, default True
        Whether a machine is trained at the candidate's kernels. Otherwise every risk is valued at the
        machine of its alpha, which must be given: cheap, and as good as that alpha is.

    Returns
    -------
    Certificate
        Of this candidate: with a poor one the bounds are loose, never wrong. The variables hold
        the values that they had before.

    Examples
    --------
    >>> import cvxpy as cp, numpy as np, kernelopt as ko
    >>> mu = cp.Variable(2, nonneg=True)
    >>> K = ko.combine(mu, np.array([[[2.0, 0], [0, 2]], [[1, -1], [-1, 1]]]))
    >>> problem = cp.Problem(cp.Minimize(ko.risk(K, [1, -1], ko.hinge())), [ko.trace(K) == 4])
    >>> certificate = ko.certify(problem, weights=[0, 2], alpha=[0.25, -0.25])
    >>> round(certificate.lower, 6), round(certificate.upper, 6), certificate.route
    (0.25, 0.25, 'closed')
    """
    check_problem(problem)
    variables = visible_variables(problem)
    before = [(v, v.value) for v in problem.variables()]
    try:
        if hasattr(candidate, "certificate"):  # a Solution
            alpha = list(candidate.certificate.alphas) if alpha is None else alpha
            candidate = candidate.certificate.point
        start = starting_point(variables, problem.variables(), candidate, weights)
        found = risks(problem)
        alphas = as_alphas(found, alpha)
        # A stranger's numbers may be extreme; what is not finite is no bound.
        with ExitStack() as stack, np.errstate(all="ignore"):
            if not retrain:
                for node, pinned in zip(found, needed(alphas, found), strict=True):
                    stack.enter_context(node.pinned(pinned))
            return _certify(problem, variables, start, found, alphas, bounds)
    finally:
        for variable, value in before:
            variable.save_value(value)


def _certify(
    problem: cp.Problem,
    variables: list[cp.Variable],
    start: Point | None,
    found: list[Risk],
    alphas: list[Array] | None,
    bounds: dict[Any, tuple[ArrayLike, ArrayLike]] | None,
) -> Certificate:
    """Certify with the variables free to change."""
    residuals: dict[str, float] = {}
    if start is not None:
        write_point(variables, start)
        residuals = {v.name: v.size for v in violations(problem, variables)}
    point, left = feasible_point(problem, variables, start)
    maximize = isinstance(problem.objective, cp.Maximize)
    attained = -np.inf if maximize else np.inf
    if point is not None:
        write_point(variables, point)
        value = problem.objective.value
        attained = float(np.ravel(value)[0]) if value is not None and np.isfinite(value) else attained
    else:
        write_point(variables, start or {v.id: np.asarray(v.project(np.zeros(v.shape))) for v in variables})
    choices = [] if alphas is None else [alphas]
    stored = [node.alpha for node in found]
    if (
        found
        and alphas is None
        and all(a is not None and a.size == node.learner.n for a, node in zip(stored, found, strict=True))
    ):
        choices.append([np.asarray(a) for a in stored])
    if found and (alphas is None or not left):
        choices.append([node.oracle().alpha for node in found])
    bound, route, used = best_bound(problem, variables, found, choices or [[]], bounds)
    reason = bound.reason if not np.isfinite(bound.value) else ""
    if point is None and bound.value < np.inf:
        reason = "; ".join(filter(None, [reason, "no feasible point: " + listed(left)]))
    lower, upper = (attained, -bound.value) if maximize else (bound.value, attained)
    if lower > upper and point is not None and bound.ray is None:
        lower, upper, reason = uncrossed(lower, upper, maximize)
    return Certificate(
        lower=lower,
        upper=upper,
        route=route,
        residuals=residuals,
        reason=reason,
        feasible=point is not None,
        point={} if point is None else {v: point[v.id] for v in variables},
        alphas=tuple(used),
        proof=bound.ray,
    )


def uncrossed(lower: float, upper: float, maximize: bool) -> tuple[float, float, str]:
    """Return bounds for a bound by duality that round-off has carried past the value attained."""
    attained, excess = (lower if maximize else upper), lower - upper
    if excess <= CROSSING * max(1.0, abs(attained)):
        return attained, attained, ""
    reason = (
        f"the bound by duality passes the value attained by {excess:.1e}: too ill-conditioned for doubles"
    )
    return (attained, np.inf, reason) if maximize else (-np.inf, attained, reason)


def best_bound(
    problem: cp.Problem,
    variables: list[cp.Variable],
    found: list[Risk],
    choices: list[list[Array]],
    bounds: dict[Any, tuple[ArrayLike, ArrayLike]] | None,
) -> tuple[Bound, Route, list[Array]]:
    """Return the highest lower bound (of the minimisation) over the proposed dual variables."""
    best: tuple[Bound, Route, list[Array]] = (Bound(-np.inf, "no dual variable was proposed"), "none", [])
    for alphas in choices:
        relaxed = relaxation(problem, found, alphas, keep_sign=False)
        value = closed_bound(relaxed)
        if value is not None:
            bound, route = Bound(value), "closed"
        else:
            if found:
                relaxed = relaxation(problem, found, alphas, keep_sign=True)
            boxes = constraint_boxes(relaxed, variables, bounds)
            relaxed = cp.Problem(relaxed.objective, relaxed.constraints + given_bounds(bounds))
            present = [v for v in variables if any(v is w for w in relaxed.variables())]
            bound = conic_bound(relaxed, present, boxes)
            route = "conic" if bound.value > -np.inf else "none"
        # The machines re-trained at the kernel come last and win where they prove as much: they predict best.
        margin = AS_GOOD * max(1.0, abs(bound.value)) if np.isfinite(bound.value) else 0.0
        if bound.value > best[0].value - margin or not best[2]:
            best = (bound, route, alphas)  # type: ignore[assignment]
    return best


def given_bounds(bounds: dict[Any, tuple[ArrayLike, ArrayLike]] | None) -> list[cp.Constraint]:
    """Return the bounds of the caller as constraints: they are taken to hold at an optimum."""
    constraints: list[cp.Constraint] = []
    for variable, sides in (bounds or {}).items():
        lower, upper = (flat(np.broadcast_to(np.asarray(s, dtype=float), variable.shape)) for s in sides)
        constraints += entry_bounds(variable, Box(lower, upper))
    return constraints


def listed(left: list[Violation]) -> str:
    """Return the violated constraints as text."""
    return ", ".join(f"{v.name} (by {v.size:.1e})" for v in left[:3])

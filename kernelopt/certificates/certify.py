"""`certify`: lower and upper bounds of a problem from any candidate, wherever it comes from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import cvxpy as cp
import numpy as np
from numpy.typing import ArrayLike

from kernelopt.certificates.boxes import NO_BOXES, Boxes
from kernelopt.certificates.certificate import BoundedProblem, Certificate, combined_certificate
from kernelopt.certificates.conic.stated import coefficients_assumption
from kernelopt.certificates.gap import FLOOR_SHARE, Bound, floor, floor_of_coefficients, relative_gap
from kernelopt.certificates.lower.choices import best_bound
from kernelopt.certificates.statements.columns import Source
from kernelopt.certificates.statements.learning import read_kernel_problem
from kernelopt.certificates.statements.programs import read_programme
from kernelopt.certificates.upper.candidates import (
    as_alphas,
    as_bounds,
    dual_values,
    required_alphas,
    starting_point,
)
from kernelopt.certificates.upper.feasibility import FeasibleSet
from kernelopt.structure.attributes import projected
from kernelopt.structure.enclosure import assumption
from kernelopt.structure.evaluation import Evaluator, Given, sum_of_magnitudes
from kernelopt.structure.gate import check_problem, check_values
from kernelopt.structure.relaxed_cones import RelaxedCones
from kernelopt.structure.structure import Point, Structure
from kernelopt.validation import Array, boolean, positive

MOST_NAMED = 3  # violations that `reason` names, the largest
ROUNDING_SHARE = 0.25  # of the gap: from it on rounding counts as the cause
REPORTED_GAP = 1e-8  # from this relative gap on `reason` says where rounding is its cause


def certify(
    problem: cp.Problem,
    candidate: Any = None,
    *,
    weights: ArrayLike | None = None,
    alpha: ArrayLike | Sequence[ArrayLike] | None = None,
    bounds: dict[Any, tuple[ArrayLike, ArrayLike]] | None = None,
    retrain: bool = True,
    multipliers: Mapping[cp.Constraint, Any] | None = None,
    tol: float | None = None,
) -> Certificate:
    r"""Bound the optimum of a problem from any candidate, trusting no solver.

    For `Minimize`, with the roles swapped for `Maximize`:

    * lower: every alpha is projected on the dual domain of its loss, and every risk is replaced by
      its minorant :math:`\ell(\alpha) - \frac12 \langle \alpha \alpha', K \rangle`. The minimum of this
      relaxation is bounded in closed form over simplices, l_p balls, ellipsoids and spectrahedra and with
      prices of the weights; by a search for kernels near similarities; and otherwise by a corrected conic
      multiplier, from the dual values that the last solve has left.
    * upper: the candidate is projected on the equalities and moved towards a strictly feasible point
      until the other constraints hold. There the objective is evaluated, every risk by a primal value.

    Parameters
    ----------
    problem : cp.Problem
        With or without risks.
    candidate : dict from cvxpy variable to value, Solution, or SavedSolution, optional
        By default the current values of the variables.
    weights : array, optional
        The value of the variable, for problems with one variable outside their risks.
    alpha : array of shape (n,), or one per risk, optional
        Signed dual variables; by default the better of `risk.alpha`, set by `kernelopt.solve`, and the dual
        variables of the machines at the candidate's kernels. After a solve the bound by duality at any
        candidate is therefore as good as the bound of the solve, until ``risk.alpha = None`` deletes its
        dual variables.
    bounds : dict from cvxpy variable to (lower, upper), optional
        Bounds that are known to hold at an optimum, beyond the bounds that attributes, traces and norm
        balls imply. They are needed where `reason` names an unbounded variable.
    retrain : bool, default True
        Whether a machine is trained at the candidate's kernels. Otherwise every risk is evaluated at
        the machine of its alpha, which must be given, or at the machine of a candidate that is a solution;
        the upper bound is then as tight as that machine is.
    multipliers : dict from constraint to value, optional
        The multipliers of a solver of one's own, in the shapes of cvxpy's `dual_value`. For other constraints
        `dual_value` is taken, which the last solve has left. They may be wrong.
    tol : float, optional
        Where a conic multiplier gives the bound, the problem is solved for a better one if the relative gap
        exceeds `tol`. By default that is only where the dual values prove no finite bound, or do not
        determine the multipliers of atoms and attributes.

    Returns
    -------
    Certificate
        For a poor candidate the bounds are loose but valid. The problem is not changed. A candidate with NaN
        or infinite values is not used, such entries of alpha become zero, and `reason` says so.

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
    check_values(problem)
    retrain = boolean(retrain, "retrain")
    structure = Structure(problem)
    known, trained = as_bounds(structure, bounds), None
    if hasattr(candidate, "certificate"):  # a Solution, or one from a file, which has no cvxpy variables
        if alpha is None:
            alpha = list(candidate.certificate.alphas) or None
            trained, _ = as_alphas(structure, [m.alpha for m in candidate.certificate.machines] or None)
        saved = hasattr(candidate, "point_in")
        candidate = candidate.point_in(problem) if saved else candidate.certificate.point
    start, unused = starting_point(structure, candidate, weights)
    alphas, zeroed = as_alphas(structure, alpha)
    choices = [] if alphas is None else [alphas]
    stored = [term.node.alpha for term in structure.risks]
    fits = all(
        a is not None and a.size == term.learner.n for a, term in zip(stored, structure.risks, strict=True)
    )
    if structure.risks and alphas is None and fits:
        choices.append([np.asarray(a) for a in stored])
    given = None if retrain else [(a, None) for a in trained or required_alphas(alphas, structure)]
    left = dual_values(problem, multipliers)
    tol = None if tol is None else positive(tol, "tol", allow_zero=True)
    found = certificate_at(structure, start, choices, given=given, bounds=known, left=left, tol=tol)
    if isinstance(problem, BoundedProblem):
        duals = {c.label: c.dual_value for c in problem.constraints}
        finite = {k: v if v is not None and np.isfinite(v).all() else None for k, v in duals.items()}
        own = problem.bounds(start or {}, finite)
        best = combined_certificate(structure, own, found)
        found = replace(best, residuals=found.residuals, source=own.source)
    return replace(found, reason="; ".join(filter(None, [unused, zeroed, found.reason])))


def certificate_at(
    structure: Structure,
    start: Point | None,
    choices: Sequence[list[Array]],
    *,
    given: Sequence[Given] | None = None,
    bounds: Boxes = NO_BOXES,
    conic: bool = True,
    cones: RelaxedCones | None = None,
    left: Sequence[Array | None] = (),
    tol: float | None = None,
) -> Certificate:
    """Return the certificate of a problem given as a Structure; `certify` describes the bounds.

    Parameters
    ----------
    structure : Structure
    start : dict from variable id to value, or None
        The candidate.
    choices : sequence of lists of arrays
        Dual variables to try, one per risk in each list.
    given : sequence of (alpha, scales), optional
        The machine at which every risk is evaluated. Without it machines are trained at the candidate's
        kernels, and their dual variables are tried too.
    bounds : dict from id to Box, optional
        Bounds of the variables that hold at an optimum.
    conic : bool, default True
        Whether conic solves are allowed. Without them a bound may be missing.
    cones : RelaxedCones, optional
        A relaxation of the large matrix inequalities. Conic solves hold it instead of the inequalities.
    left, tol
        As in `conic_bound`: dual values of the problem's constraints, and the gap that they may leave.
    """
    # The candidate may be extreme: a bound that overflows is discarded.
    with np.errstate(all="ignore"):
        gap_floor = floor(structure)
        evaluator = Evaluator(structure, given)
        feasible_set = FeasibleSet(evaluator, conic, cones)
        residuals = {} if start is None else feasible_set.at(start)
        point, remaining = feasible_set.nearest(start, residuals)
        assumed = feasible_set.remark if point is not None else ""
        computed = assumption(structure) if point is not None else ""
        attained, choices = structure.sign * np.inf, list(choices)
        if point is not None:
            value, machines = evaluator.outward(point)
            attained = value if np.isfinite(value) else attained
            if not structure.risks:
                size = sum_of_magnitudes(structure.lifted.objective.args[0])
                gap_floor = FLOOR_SHARE * size if size else floor_of_coefficients(structure)
        else:
            origin = {v.id: projected(v, np.zeros(v.shape)) for v in structure.variables}
            evaluator.write(start or origin)
            machines = evaluator.machines() if not choices else ()
        if structure.risks and given is None and machines:
            choices.append([machine.alpha for machine in machines])
        bound, route, used = best_bound(
            structure, choices or [[]], bounds, conic, structure.sign * attained, cones, left, tol
        )
    if bound.ray is not None and np.isfinite(attained):
        bound = Bound(-np.inf, "a ray claims that the problem is infeasible, and a feasible point is known")
    limited = bound.reason if np.isfinite(bound.value) else ""
    reasons = [] if limited else [bound.reason]
    if point is not None and not np.isfinite(attained):
        reasons.append("the objective at the feasible point is infinite")
    if point is None and bound.value < np.inf:
        largest = [f"{name} (by {size:.1e})" for name, size in remaining.items()][:MOST_NAMED]
        reasons.append(f"no feasible point: {', '.join(largest)}")
    reason = "; ".join(filter(None, reasons))
    lower, upper = (attained, -bound.value) if structure.maximize else (bound.value, attained)
    summed = coefficients_assumption(structure) if route == "conic" else ""
    if point is not None and not (reason or limited or assumed):
        reason = rounding_note(lower, upper, gap_floor, bound.rounding, bool(bounds), summed)
    pairs = zip(structure.user_variables, structure.variables, strict=True)
    return Certificate(
        lower=lower,
        upper=upper,
        route=route,
        residuals=residuals,
        reason=reason,
        assumes=tuple(filter(None, [limited, assumed, computed, summed, *structure.assumes])),
        feasible=point is not None,
        point={} if point is None else {user: point[copy.id] for user, copy in pairs},
        alphas=tuple(used),
        machines=() if point is None else machines,
        proof=bound.ray,
        floor=gap_floor,
        source=read_source(structure),
    )


def rounding_note(
    lower: float, upper: float, gap_floor: float, rounding: float, given: bool, summed: str
) -> str:
    """Return a remark where two finite bounds contradict each other or rounding causes their gap."""
    if lower > upper and given:
        return "the given bounds do not hold at an optimum: a point outside of them is better. Widen bounds="
    if lower > upper and summed:
        return (
            f"the lower bound is {lower - upper:.1e} above the upper one: {summed}. State each as one number"
        )
    if lower > upper:
        return (
            f"the bounds contradict each other by {lower - upper:.1e}: one of them is false, which is a "
            "defect of kernelopt. Please report the problem"
        )
    if relative_gap(lower, upper, gap_floor) > REPORTED_GAP and rounding > ROUNDING_SHARE * (upper - lower):
        return (
            f"limited by rounding: sums of the bound by duality cancel up to {rounding:.1e}. Rescale the "
            "kernels to a mean diagonal near one, or centre them"
        )
    return ""


def read_source(structure: Structure) -> Source | str:
    """Return the source of a problem, or the reason why its certificates cannot be saved."""
    read = read_kernel_problem(structure)
    return read_programme(structure) if isinstance(read, str) and not structure.risks else read

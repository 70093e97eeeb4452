"""`certify`: lower and upper bounds of a problem at any candidate, ours or a stranger's."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import cvxpy as cp
import numpy as np
from numpy.typing import ArrayLike

from kernelopt.certificates.conic.multipliers import Bound
from kernelopt.certificates.gap import FLOOR_SHARE, floor, floor_of_coefficients, relative_gap
from kernelopt.certificates.lower.choices import Route, best_bound
from kernelopt.certificates.statements.sources import Source, read_source
from kernelopt.certificates.upper.candidates import Bounds, as_alphas, as_bounds, needed, starting_point
from kernelopt.certificates.upper.feasibility import FeasibleSet, Violation
from kernelopt.errors import MethodError
from kernelopt.learner import BlockMachine, Machine
from kernelopt.structure.evaluation import Evaluator, Given, sum_of_magnitudes
from kernelopt.structure.gate import check_problem, check_values
from kernelopt.structure.structure import Point, Structure
from kernelopt.threads import Watch
from kernelopt.validation import Array, boolean

LIMITED = 1e-8  # a gap from which it is said where rounding is the reason


@dataclass(frozen=True, eq=False)
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
        What was missing, where a bound is infinite, or what a finite one supposes.
    feasible : bool
        Whether a feasible point was found.
    point : dict
        The feasible point that attains the bound: values by cvxpy variable.
    alphas : tuple of arrays
        The dual variables behind the bound by duality, one per risk.
    machines : tuple of machines
        Those that attain the value of the point, one per risk.
    proof : array or None
        A Farkas ray, where the problem is infeasible.
    floor : float >= 0
        What the gap is relative to at least: a share of 1e-4 of the objective's value at f = 0.
    source : Source or str
        What `save` states, or why it cannot.
    """

    lower: float
    upper: float
    route: Route
    residuals: dict[str, float] = field(default_factory=dict)
    reason: str = ""
    feasible: bool = False
    point: dict[Any, Array] = field(default_factory=dict, repr=False)
    alphas: tuple[Array, ...] = field(default=(), repr=False)
    machines: tuple[Machine | BlockMachine, ...] = field(default=(), repr=False)
    proof: Array | None = field(default=None, repr=False)
    floor: float = 0.0
    source: Source | str = field(default="it was not made from a problem", repr=False)

    @property
    def gap(self) -> float:
        """The gap relative to max(|upper|, |lower|, floor).

        It is infinite where a bound is missing, and where the two contradict each other.
        """
        return np.inf if self.lower > self.upper else relative_gap(self.lower, self.upper, self.floor)

    @property
    def distance(self) -> float:
        """Upper - lower, infinite where a bound is missing or the two contradict each other.

        Of two certificates of a problem it tells the better one: the gap is one wherever a bound is zero.
        """
        found = self.upper - self.lower
        return float(found) if 0 <= found < np.inf else np.inf

    def save(self, path: str | Path) -> Path:
        """Write the problem, the bounds and their proof to a file that is checked without kernelopt.

        `python -m kernelopt.certificates.check FILE` or a copy of that module, which needs numpy only,
        recomputes the bounds in exact fractions: those of the file are true of the stored doubles
        without rounding. They are computed for the file, and as a rule differ from `lower` and `upper`
        in the last digits. See docs/certificates.md.

        Parameters
        ----------
        path : str or Path
            An NPZ archive; what is there is replaced.

        Returns
        -------
        Path

        Raises
        ------
        MethodError
            If the problem is not of a form that can be stated.
        ParameterError
            If the exponent of a ball is not a fraction of small numbers.
        """
        if isinstance(self.source, str):
            raise MethodError(
                "a certificate can be saved of one risk over a ball or a trace, of an alignment and of a "
                f"triplet programme, got another problem: {self.source}. Keep the problem itself instead."
            )
        return self.source.statement(self).save(path)

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
      form over simplices, l_p balls, ellipsoids and spectrahedra and with prices of the weights, by a
      search over kernels near similarities, else by a repaired conic multiplier.
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
        Of this candidate: with a poor one the bounds are loose, never wrong. The problem is left as it
        is.

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
    known = as_bounds(structure, bounds)
    if hasattr(candidate, "certificate"):  # a Solution
        alpha = list(candidate.certificate.alphas) if alpha is None else alpha
        candidate = candidate.certificate.point
    start = starting_point(structure, candidate, weights)
    alphas = as_alphas(structure, alpha)
    choices = [] if alphas is None else [alphas]
    stored = [term.node.alpha for term in structure.risks]
    fits = all(
        a is not None and a.size == term.learner.n for a, term in zip(stored, structure.risks, strict=True)
    )
    if structure.risks and alphas is None and fits:
        choices.append([np.asarray(a) for a in stored])
    given = None if retrain else [(a, None) for a in needed(alphas, structure)]
    return certificate_at(structure, start, choices, given=given, bounds=known)


def certificate_at(
    structure: Structure,
    start: Point | None,
    choices: Sequence[list[Array]],
    *,
    given: Sequence[Given] | None = None,
    bounds: Bounds | None = None,
    watch: Watch | None = None,
    conic: bool = True,
) -> Certificate:
    """Bound the optimum of a problem that was read.

    Parameters
    ----------
    structure : Structure
    start : dict from variable id to value, or None
        The candidate.
    choices : sequence of lists of arrays
        Proposed dual variables, one per risk in each list.
    given : sequence of (alpha, scales), optional
        Values every risk at this machine; without it machines are trained at the candidate's kernels,
        and propose dual variables too.
    bounds : dict, optional
        As in `certify`.
    watch : function, optional
        Called while the conic solves run; it may raise to end them.
    conic : bool, default True
        Whether conic solves are allowed. Without them a bound may be missing.
    """
    # A stranger's numbers may be extreme; what is not finite is no bound.
    with np.errstate(all="ignore"):
        least = floor(structure)
        evaluator = Evaluator(structure, given, watch)
        allowed = FeasibleSet(evaluator, watch, conic)
        residuals = {} if start is None else {v.name: v.size for v in allowed.at(start)}
        point, left = allowed.nearest(start)
        attained, choices = structure.sign * np.inf, list(choices)
        if point is not None:
            value, machines = evaluator.outward(point)
            attained = value if np.isfinite(value) else attained
            if not structure.risks:
                size = sum_of_magnitudes(structure.lifted.objective.args[0])
                least = FLOOR_SHARE * size if size else floor_of_coefficients(structure)
        else:
            origin = {v.id: np.asarray(v.project(np.zeros(v.shape))) for v in structure.variables}
            evaluator.write(start or origin)
            machines = evaluator.machines() if not choices else ()
        if structure.risks and given is None and machines:
            choices.append([machine.alpha for machine in machines])
        bound, route, used = best_bound(
            structure, choices or [[]], bounds, watch, conic, structure.sign * attained
        )
    if bound.ray is not None and np.isfinite(attained):
        bound = Bound(-np.inf, "a ray claims that the problem is infeasible, and a feasible point is known")
    reason = bound.reason
    if point is not None and not np.isfinite(attained):
        reason = "; ".join(filter(None, [reason, "the objective at the feasible point is infinite"]))
    if point is None and bound.value < np.inf:
        reason = "; ".join(filter(None, [reason, "no feasible point: " + listed(left)]))
    lower, upper = (attained, -bound.value) if structure.maximize else (bound.value, attained)
    if point is not None and not reason:
        reason = explained(lower, upper, least, bound.rounding)
    pairs = zip(structure.user_variables, structure.variables, strict=True)
    return Certificate(
        lower=lower,
        upper=upper,
        route=route,
        residuals=residuals,
        reason=reason,
        feasible=point is not None,
        point={} if point is None else {user: point[copy.id] for user, copy in pairs},
        alphas=tuple(used),
        machines=() if point is None else machines,
        proof=bound.ray,
        floor=least,
        source=read_source(structure),
    )


def explained(lower: float, upper: float, least: float, rounding: float) -> str:
    """Return why two finite bounds are as far apart as they are, where rounding is the reason."""
    if lower > upper:
        return (
            f"the bounds contradict each other by {lower - upper:.1e}: one of them is false, which is a "
            "defect of kernelopt. Please report the problem"
        )
    if relative_gap(lower, upper, least) > LIMITED and rounding > (upper - lower) / 4:
        return (
            f"limited by rounding: sums of the bound by duality cancel up to {rounding:.1e}. Rescale the "
            "kernels to a mean diagonal near one, or centre them"
        )
    return ""


def listed(left: list[Violation]) -> str:
    """Return the violated constraints as text."""
    return ", ".join(f"{v.name} (by {v.size:.1e})" for v in left[:3])

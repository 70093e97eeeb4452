"""The exact method: the explicit conic problem, a ladder of solvers, judged by the certificate."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import cvxpy as cp
import numpy as np

from kernelopt.certificates import Certificate
from kernelopt.certificates.bounded import BoundedProblem
from kernelopt.certificates.certify import certificate_at
from kernelopt.certificates.impossible import contradiction, raise_if_impossible, without_point
from kernelopt.certificates.separability import check_separable
from kernelopt.conic.ladder import AttemptResult, SolverAttempt, ladder, run_solver
from kernelopt.errors import MethodError, ParameterError, Stopped
from kernelopt.methods.control import Control
from kernelopt.methods.exact.programme import Programme
from kernelopt.methods.method import Cost, Method, Outcome
from kernelopt.methods.results import attained, united
from kernelopt.methods.sizing import Size, compilation_seconds, size
from kernelopt.structure.ball import BallProblem, read_ball
from kernelopt.structure.expansion import Expansion, expand
from kernelopt.structure.structure import Point, Structure
from kernelopt.structure.units import units
from kernelopt.threads import quietly
from kernelopt.validation import Array, boolean

PATIENCE = 3600.0  # seconds that a semidefinite problem may be predicted to take, without a time limit
MEMORY = 16e9  # bytes that it may be predicted to need
CLEARLY = 2.0  # times the time that is left a compilation may be predicted to take: predictions are rough
OWN_LIMIT = 0.8  # of the time, in which a solver is to return what it has: the certificate takes the rest
VANISHED = 1e-12  # a squared norm of f, relative to the value, that counts as zero
ALIKE = 1e-8  # gaps closer than this are the same
IMPOSSIBLE = ("infeasible", "unbounded")  # in the status of a solver
REMEDY = "Try another solver=, or accept the bounds."


@dataclass(frozen=True)
class Exact(Method):
    """Solves the explicit conic problem, trying solvers until the certificate meets the tolerance.

    With a `programme` that one is solved, and the point and alpha that it gives are certified on the
    learning problem.

    It has a point, which it reports to the callback, whenever a solver has ended and its point is certified:
    mostly once. cvxpy compiles the problem before a solver starts, which nothing can end; under a time limit
    that is not begun where it is predicted to take more than twice the time that is left.

    Parameters
    ----------
    solver : str or cvxpy solver, optional
        The only one to use.
    solver_options : dict, optional
        Handed to every solver.
    force : bool, default False
        Whether to try a semidefinite problem that is predicted not to finish.
    programme : Programme, optional
    """

    name = "exact"
    solver: Any = None
    solver_options: dict[str, Any] | None = None
    force: bool = False
    programme: Programme | None = None

    def __post_init__(self) -> None:
        boolean(self.force, "force")
        if not (self.solver_options is None or isinstance(self.solver_options, dict)):
            raise ParameterError(
                f"solver_options must be a dict of settings, got {self.solver_options!r} "
                f"({type(self.solver_options).__name__}). Pass {{'max_iter': 50}}, for instance."
            )

    def match(self, structure: Structure) -> Structure | str:
        """Take any problem whose parameters have values."""
        return structure.unset or structure

    def cost(self, match: Structure) -> Cost:
        expected = size(match)
        return Cost(expected.seconds, expected.memory)

    def run(self, match: Structure, control: Control) -> Outcome | None:
        if not self.force:
            check_size(size(match), control)
        for term in match.risks:
            check_separable(term.learner, control.check)
        search = Search(match, self.programme, control)
        with control:
            search.try_solvers(self.attempts(match, search.expansion, control))
        return search.outcome()

    def attempts(self, structure: Structure, expansion: Expansion, control: Control) -> list[SolverAttempt]:
        """Return the solvers to try, with their options."""
        limit = None if np.isinf(control.remaining) else OWN_LIMIT * control.remaining
        linear, cones = expansion.problem.is_lp(), size(structure).cones
        attempts = ladder(linear=linear, cones=cones, solver=self.solver, time_limit=limit)
        return [replace(r, options={**r.options, **(self.solver_options or {})}) for r in attempts]


def check_size(expected: Size, control: Control) -> None:
    """Raise for a semidefinite problem that cannot be finished."""
    patience = max(PATIENCE, control.time_limit or 0.0)  # a limit ends the call, with the best point so far
    room = MEMORY if control.memory is None else control.memory
    if expected.order and (expected.seconds > patience or expected.memory > room):
        raise MethodError(
            f"a semidefinite problem of order {expected.order} needs about {expected.seconds:.0f} s and "
            f"{expected.memory / 1e9:.1f} GB, more than {patience:.0f} s or {room / 1e9:.1f} GB. Give the "
            "weights nonneg=True (second-order cones), use fewer points, or pass force=True."
        )


class Search:
    """The explicit problem, and the best that solvers left: a certified point, bounds and multipliers."""

    def __init__(self, structure: Structure, programme: Programme | None, control: Control) -> None:
        self.structure, self.programme, self.control = structure, programme, control
        with quietly(control.check):
            self.expansion = (
                expand(structure.explicit, units(structure))
                if programme is None
                else expand(programme.problem)
            )
        self.compilation = compilation_seconds(size(structure).cones)  # of a programme it is about the same
        self.best: Outcome | None = None
        self.certificate: Certificate | None = None
        self.distance = np.inf  # of the bounds of the attempt that `best` is taken from
        self.claims: list[AttemptResult] = []
        self.build_time = 0.0

    def try_solvers(self, attempts: Sequence[SolverAttempt]) -> None:
        """Try solvers until the certificate meets the tolerance."""
        for attempt in attempts:
            tried = self.tried(attempt)
            self.claims.append(tried)
            if any(word in tried.status for word in IMPOSSIBLE):
                raise_if_impossible(self.structure, self.without_units(), tried, self.control.check)
            with self.control.certifying():
                found, certificate = self.certified(tried)
            if certificate.proof is not None:
                raise contradiction(self.structure, certificate.proof)
            self.keep(found, certificate)
            lower, upper = certificate.lower, certificate.upper
            if self.structure.maximize:
                lower, upper = -upper, -lower
            more = {"solver": attempt.name, "status": tried.status, "certificate": certificate}
            point = {v.id: np.copy(value) for v, value in certificate.point.items()}
            self.control.floor = max(self.control.floor, certificate.floor)
            if self.control.report(lower, upper, point=point, proof=True, **more):
                break

    def keep(self, found: Outcome, certificate: Certificate) -> None:
        """Keep the attempt with the nearer bounds, with the better point and the better bound of all."""
        nearer = certificate.distance < self.distance
        self.distance = min(certificate.distance, self.distance)
        if self.best is not None and self.certificate is not None:
            sign, old = self.structure.sign, self.certificate
            lower = sign * attained(self.structure, certificate) < sign * attained(self.structure, old)
            better, point = (found, certificate) if lower or not old.feasible else (self.best, old)
            other = old if point is certificate else certificate
            found = found if nearer else self.best
            found = replace(found, point=better.point, hidden=better.hidden)
            certificate = united(self.structure, point, other)
        self.best, self.certificate = replace(found, certificate=certificate), certificate

    def without_units(self) -> cp.Problem:
        """Return the explicit problem in the user's units, to which the ray of a proof belongs."""
        return (
            self.expansion.problem if self.programme is not None else expand(self.structure.explicit).problem
        )

    def tried(self, attempt: SolverAttempt) -> AttemptResult:
        """Solve with one attempt from a clean slate.

        Raises
        ------
        Stopped
            If there is clearly no time to compile the problem.
        """
        if self.compilation > CLEARLY * self.control.remaining:
            raise Stopped
        problem = self.expansion.problem
        for variable in problem.variables():
            variable.save_value(None)
        self.control.show(f"exact: {attempt.name}")
        clock = self.control.seconds
        tried = run_solver(problem, attempt, self.control.verbose, self.control.check)
        self.build_time += min(problem.compilation_time or 0.0, self.control.seconds - clock)
        return tried

    def certified(self, tried: AttemptResult) -> tuple[Outcome, Certificate]:
        """Certify the point that a attempt left."""
        structure, check = self.structure, self.control.check
        self.expansion.bring_back()
        point, alphas = self.proposed()
        multipliers = None
        if self.programme is None:
            constraints = structure.explicit.constraints
            multipliers = [[dual.value for dual in c.dual_variables] for c in constraints]
        problem = structure.problem
        if isinstance(problem, BoundedProblem):
            labels = [c.label for c in problem.constraints]
            values = {v.id: v.value for v in structure.variables}
            duals = {k: d[0] for k, d in zip(labels, multipliers or [], strict=True)}
            certificate = problem.bounds(values, duals)
        else:
            choices = [alphas] if alphas else []
            certificate = certificate_at(structure, point, choices, watch=check)
            certificate = with_equal_weights(structure, certificate, check)
        found = Outcome(
            {v.id: value for v, value in certificate.point.items()},
            list(certificate.alphas),
            multipliers=multipliers,
            hidden=self.hidden(),
            certificate=certificate,
            solver=tried.attempt.name,
            iterations=tried.iterations,
            remedy=REMEDY,
        )
        return found, certificate

    def proposed(self) -> tuple[Point | None, list[Array] | None]:
        """Return the point and the dual variables that a solver left."""
        structure = self.structure
        if self.programme is not None:
            if not finite(self.programme.problem.variables()):
                return None, None
            values, alphas = self.programme.recover()
            return {v.id: np.asarray(value, dtype=float) for v, value in values.items()}, alphas
        if not finite(structure.variables):
            return None, None
        alphas = []
        for written in self.expansion.risks:
            alpha = written.alpha()
            alphas.append(written.risk.oracle().alpha if alpha is None else alpha)
        return {v.id: np.array(v.value, dtype=float) for v in structure.variables}, alphas

    def hidden(self) -> Point:
        """Return the values of the user's variables inside the risks."""
        if self.programme is not None:
            return {}
        found: Point = {}
        for term, written in zip(self.structure.risks, self.expansion.risks, strict=True):
            found.update(same_places(term.node, written.risk))
        return found

    def outcome(self) -> Outcome | None:
        """Return the best certified point.

        Raises
        ------
        InfeasibleError, UnboundedError, SolverError
            What the solvers agree on, where none left a feasible point.
        """
        failed = bool(self.claims) and all(a.status == "failed" for a in self.claims)
        feasible = self.certificate is not None and self.certificate.feasible
        if self.best is not None and feasible and not failed:
            self.best.build_time = self.build_time
            return self.best
        if self.control.asked:
            return None
        raise without_point(self.claims, self.certificate)


def same_places(node: cp.Expression, copy: cp.Expression) -> Point:
    """Return the values of the variables of a copied risk under the ids of the original's."""
    pairs = zip(node.variables(), copy.variables(), strict=True)
    return {mine.id: theirs.value for mine, theirs in pairs if mine.id != theirs.id}


def finite(variables: Sequence[cp.Variable]) -> bool:
    """Whether all variables have finite values."""
    return all(v.value is not None and np.isfinite(np.asarray(v.value)).all() for v in variables)


def with_equal_weights(structure: Structure, certificate: Certificate, watch: Any) -> Certificate:
    """Return the certificate at equal weights where f = 0 is optimal, so that any weights are."""
    read = read_ball(structure)
    if not isinstance(read, BallProblem) or not certificate.feasible:
        return certificate
    alpha = certificate.alphas[0]
    form = float((read.reach * read.start) @ read.grams.forms(alpha))
    if form > VANISHED * max(abs(certificate.upper), certificate.floor):
        return certificate
    equal = certificate_at(structure, read.point(read.reach * read.start), [[alpha]], watch=watch)
    return equal if equal.gap <= certificate.gap + ALIKE else certificate

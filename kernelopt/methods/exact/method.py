"""The exact method: the explicit conic problem, solved by one conic solver after another."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import cvxpy as cp
import numpy as np

from kernelopt.certificates import Certificate
from kernelopt.certificates.certificate import BoundedProblem, combined_certificate
from kernelopt.certificates.certify import certificate_at
from kernelopt.certificates.impossible import (
    contradiction,
    no_feasible_point,
    raise_if_impossible,
    weights_that_grow,
)
from kernelopt.certificates.separability import check_separable
from kernelopt.conic.ladder import (
    AttemptResult,
    SolverAttempt,
    check_taken,
    ladder,
    refused_option,
    run_solver,
)
from kernelopt.errors import MethodError, ParameterError
from kernelopt.language.adapter import written_problem
from kernelopt.methods.control import Control
from kernelopt.methods.exact.programme import Programme
from kernelopt.methods.method import Cost, Method, Outcome
from kernelopt.methods.results import attained, bounded_certificate
from kernelopt.methods.sizing import Size, size
from kernelopt.running import check
from kernelopt.structure.ball import BallProblem, read_ball
from kernelopt.structure.expansion import Expansion, expand
from kernelopt.structure.structure import Point, Structure
from kernelopt.structure.units import units
from kernelopt.structure.zero_weights import all_zero_weights, equations_of
from kernelopt.threads import quietly
from kernelopt.validation import Array, boolean

IMPOSSIBLE = ("infeasible", "unbounded")  # parts of the status of a solver
REMEDY = "Give kernelopt.solve another solver=, or accept the bounds."


@dataclass(frozen=True)
class Settings:
    """Limits of the problems that are tried, and relative sizes.

    A semidefinite problem is tried only up to this predicted time and memory, unless a larger time limit or
    another memory is given.
    """

    largest_seconds: float = 3600.0
    largest_memory: float = 16e9  # bytes, the memory of a laptop
    solver_share: float = 0.8  # of the time left: the time limit of a solver; the certificate has the rest
    vanished: float = 1e-12  # f counts as zero if its squared norm is below this share of the value
    equal_gaps: float = 1e-8  # relative gaps that differ by less count as equal: the accuracy of a solver


SETTINGS = Settings()


@dataclass(frozen=True)
class Exact(Method):
    """Solves the explicit conic problem by one solver after another, until the certified gap meets `tol`.

    If a `programme` is given, that problem is solved instead. Its point and its alpha are then certified on
    the learning problem.

    After each solver its point is certified and reported to the callback. Mostly the first solver meets the
    tolerance, and there is one report. Before a solver starts, cvxpy compiles the problem. A compilation
    cannot be interrupted. Hence under a time limit a compilation is not started if its predicted time is more
    than twice the time left.

    Parameters
    ----------
    solver : str or cvxpy solver, optional
        The only solver to use.
    solver_options : dict, optional
        Settings that every solver receives.
    force : bool, default False
        Whether to try a semidefinite problem whose predicted time or memory is too large.
    programme : Programme, optional
        An equivalent problem that is solved in the place of the explicit one.
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
        """Return the structure of any problem whose parameters have values."""
        return structure.unset or structure

    def cost(self, match: Structure) -> Cost:
        expected = size(match)
        return Cost(expected.seconds, expected.memory)

    def run(self, match: Structure, control: Control) -> Outcome | None:
        if not self.force:
            check_size(size(match), control)
        for term in match.risks:
            check_separable(term.learner)
        run = ExactRun(match, self.programme, control)
        with control:
            run.try_solvers(self.attempts(match, run.expansion, control), self.solver_options or {})
        return run.outcome()

    def attempts(self, structure: Structure, expansion: Expansion, control: Control) -> list[SolverAttempt]:
        """Return the solvers to try, with their options."""
        limit = None if np.isinf(control.remaining) else SETTINGS.solver_share * control.remaining
        linear, cones = expansion.problem.is_lp(), size(structure).cones
        attempts = ladder(linear=linear, cones=cones, solver=self.solver, time_limit=limit)
        return [replace(r, options={**r.options, **(self.solver_options or {})}) for r in attempts]


def check_size(expected: Size, control: Control) -> None:
    """Raise `MethodError` for a semidefinite problem whose predicted time or memory is too large."""
    most_seconds = max(SETTINGS.largest_seconds, control.time_limit or 0.0)
    most_memory = SETTINGS.largest_memory if control.memory is None else control.memory
    if expected.order and (expected.seconds > most_seconds or expected.memory > most_memory):
        raise MethodError(
            f"a semidefinite problem of order {expected.order} needs about {expected.seconds:.0f} s and "
            f"{expected.memory / 1e9:.1f} GB, more than {most_seconds:.0f} s or {most_memory / 1e9:.1f} GB. "
            "Give the weights nonneg=True (second-order cones), use fewer points, or pass force=True."
        )


class ExactRun:
    """The state of a run: the explicit problem, and the certified outcome of every attempt to solve it."""

    def __init__(self, structure: Structure, programme: Programme | None, control: Control) -> None:
        self.structure, self.programme, self.control = structure, programme, control
        self.compilation = size(structure).cones.compilation_seconds  # also the guess for a programme
        check(self.compilation)
        with quietly():
            self.expansion = expanded(structure) if programme is None else expand(programme.problem)
        self.results: list[AttemptResult] = []
        self.found: list[tuple[Outcome, Certificate]] = []
        self.build_time = 0.0

    def try_solvers(self, attempts: Sequence[SolverAttempt], own: dict[str, Any]) -> None:
        """Run the solvers until the certified gap meets the tolerance.

        The options `own` are the user's. A solver that refuses one of them is not run again.

        Raises
        ------
        ParameterError
            If no solver takes one of these options.
        """
        refusing: set[str] = set()
        for attempt in attempts:
            if attempt.name in refusing:
                continue
            result = self.run_attempt(attempt)
            self.results.append(result)
            option = refused_option(result.failure, own)
            if option is not None:
                check_taken(option, own[option], attempts)
                refusing.add(attempt.name)
            if any(word in result.status for word in IMPOSSIBLE):
                raise_if_impossible(self.structure, self.without_units(), result)
            with self.control.certifying():
                found, certificate = self.certify_attempt(result)
            if certificate.proof is not None:
                raise contradiction(self.structure, certificate.proof)
            self.found.append((found, certificate))
            lower, upper = certificate.lower, certificate.upper
            if self.structure.maximize:
                lower, upper = -upper, -lower
            more: dict[str, Any] = {
                "solver": attempt.name,
                "status": result.status,
                "certificate": certificate,
            }
            point = {v.id: np.copy(value) for v, value in certificate.point.items()}
            self.control.floor = max(self.control.floor, certificate.floor)
            if self.control.report(lower, upper, point=point, proof=True, **more):
                break
            if certificate.feasible and weights_that_grow(self.structure):
                break  # the infimum is not attained, and another solver has no optimum to find

    def without_units(self) -> cp.Problem:
        """Return the explicit problem in the user's units, in which an infeasibility proof is checked."""
        expansion = self.expansion if self.programme is not None else expand(self.structure.explicit)
        return expansion.problem

    def run_attempt(self, attempt: SolverAttempt) -> AttemptResult:
        """Solve the explicit problem once, after the values of earlier attempts are deleted.

        Raises
        ------
        Stopped
            If the compilation is predicted to take more than the time left.
        """
        check(self.compilation)
        problem = self.expansion.problem
        for variable in problem.variables():
            variable.save_value(None)
        self.control.show(f"exact: {attempt.name}")
        clock = self.control.seconds
        result = run_solver(problem, attempt, self.control.verbose)
        self.build_time += min(problem.compilation_time or 0.0, self.control.seconds - clock)
        return result

    def certify_attempt(self, result: AttemptResult) -> tuple[Outcome, Certificate]:
        """Return the point of an attempt as an outcome, and its certificate."""
        structure = self.structure
        self.expansion.bring_back()
        point, alphas = self.proposed()
        multipliers = None
        if self.programme is None:
            constraints = structure.explicit.constraints
            multipliers = [[dual.value for dual in c.dual_variables] for c in constraints]
        if isinstance(structure.problem, BoundedProblem):
            values = {v.id: v.value for v in structure.variables}
            certificate = bounded_certificate(structure.problem, values, multipliers)
        else:
            choices = [alphas] if alphas else []
            certificate = certificate_at(structure, point, choices)
            certificate = with_equal_weights(structure, certificate)
        found = Outcome(
            {v.id: value for v, value in certificate.point.items()},
            list(certificate.alphas),
            multipliers=multipliers,
            hidden=self.hidden(),
            solver=result.attempt.name,
            iterations=result.iterations,
            remedy=REMEDY,
        )
        return found, certificate

    def proposed(self) -> tuple[Point | None, list[Array] | None]:
        """Return the point and the alphas of the solver, or None where a value is missing or not finite."""
        structure = self.structure
        if self.programme is not None:
            if not all_finite(self.programme.problem.variables()):
                return None, None
            values, alphas = self.programme.recover()
            return {v.id: np.asarray(value, dtype=float) for v, value in values.items()}, alphas
        if not all_finite(structure.variables):
            return None, None
        alphas = []
        for written in self.expansion.risks:
            alpha = written.alpha()
            alphas.append(written.risk.oracle().alpha if alpha is None else alpha)
        return {v.id: np.array(v.value, dtype=float) for v in structure.variables}, alphas

    def hidden(self) -> Point:
        """Return the values of the auxiliary variables inside the user's risks."""
        if self.programme is not None:
            return {}
        found: Point = {}
        for term, written in zip(self.structure.risks, self.expansion.risks, strict=True):
            found.update(paired_values(term.node, written.risk))
        return found

    def outcome(self) -> Outcome | None:
        """Return the best outcome; None where the caller ended the call before there was one.

        Its point is the feasible point with the best value among those of all attempts. Its bound by duality
        is the best bound of all attempts. Its multipliers, its solver and its iterations are those of the
        attempt with the smallest absolute gap. If two attempts have equal values, or equal gaps, the earlier
        one counts.

        Raises
        ------
        InfeasibleError, UnboundedError, SolverError
            If no solver found a feasible point. The solvers agree on the class.
        """
        structure, certificates = self.structure, [certificate for _, certificate in self.found]
        feasible = [k for k, certificate in enumerate(certificates) if certificate.feasible]
        if feasible and any(result.status != "failed" for result in self.results):
            best = min(feasible, key=lambda k: structure.sign * attained(structure, certificates[k]))
            nearest = min(range(len(certificates)), key=lambda k: certificates[k].absolute_gap)
            certificate = certificates[best]
            for other in certificates:
                certificate = combined_certificate(structure, certificate, other)
            point = self.found[best][0]
            return replace(
                self.found[nearest][0],
                point=point.point,
                hidden=point.hidden,
                certificate=certificate,
                build_time=self.build_time,
            )
        if self.control.ended_by_caller:
            return None
        raise no_feasible_point(self.results, certificates[-1] if certificates else None)


def expanded(structure: Structure) -> Expansion:
    """Return the explicit form in which the weights that signs force to zero are stated to be zero."""
    expansion = expand(structure.explicit, units(structure))
    problem, zeros = expansion.problem, all_zero_weights(structure)
    if not zeros:
        return expansion
    leaves = {variable.id: variable for variable in problem.variables()}
    equations = equations_of({leaves[variable.id]: zero for variable, zero in zeros.items()})
    return replace(expansion, problem=written_problem(problem.objective, [*problem.constraints, *equations]))


def paired_values(node: cp.Expression, copy: cp.Expression) -> Point:
    """Return the values of the variables of a copied risk, by the ids of the original variables."""
    pairs = zip(node.variables(), copy.variables(), strict=True)
    return {mine.id: theirs.value for mine, theirs in pairs if mine.id != theirs.id}


def all_finite(variables: Sequence[cp.Variable]) -> bool:
    """Whether all variables have finite values."""
    return all(v.value is not None and np.isfinite(np.asarray(v.value)).all() for v in variables)


def with_equal_weights(structure: Structure, certificate: Certificate) -> Certificate:
    """Return the certificate at equal weights if f = 0 is an optimal predictor, else the given certificate.

    If f = 0 is optimal, the optimum does not depend on the weights: all feasible weights are optimal. The
    weights of the solver are then arbitrary, and equal weights replace them. The
    test is whether sum_m theta_m alpha'K_m alpha, the squared norm of f, is zero up to rounding at equal
    positive weights theta. The new certificate is returned if its gap is as small as that of the given one.
    """
    read = read_ball(structure)
    if not isinstance(read, BallProblem) or not certificate.feasible:
        return certificate
    alpha = certificate.alphas[0]
    form = float((read.reach * read.start) @ read.grams.forms(alpha))
    if form > SETTINGS.vanished * max(abs(certificate.upper), certificate.floor):
        return certificate
    equal = certificate_at(structure, read.point(read.reach * read.start), [[alpha]])
    return equal if equal.gap <= certificate.gap + SETTINGS.equal_gaps else certificate

"""Cutting planes for any problem with risks, stabilised by the level method."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from kernelopt.certificates import Certificate
from kernelopt.certificates.certify import certificate_at
from kernelopt.certificates.impossible import contradiction, raise_if_unbounded
from kernelopt.certificates.lower.choices import best_bound
from kernelopt.certificates.multiplier import constraint_multipliers
from kernelopt.certificates.separability import check_separable
from kernelopt.certificates.upper.feasibility import FeasibleSet
from kernelopt.conic.costs import MAX_BYTES
from kernelopt.errors import MethodError, SolverError
from kernelopt.methods.checkpoint import State
from kernelopt.methods.control import Control
from kernelopt.methods.cutting_plane.master import Master, MasterFailure
from kernelopt.methods.cutting_plane.taylor import TaylorMaster
from kernelopt.methods.method import Cost, Method, Outcome
from kernelopt.methods.sizing import size
from kernelopt.running import check
from kernelopt.structure.ball import read_ball
from kernelopt.structure.counting import of_user
from kernelopt.structure.evaluation import Evaluator, Given
from kernelopt.structure.expansion import expand
from kernelopt.structure.relaxed_cones import RelaxedCones, relaxed_cones
from kernelopt.structure.structure import Point, Structure
from kernelopt.validation import Array, boolean, one_of, whole

REMEDY = "Give kernelopt.solve more max_iterations."


@dataclass(frozen=True)
class Settings:
    """Shares of the gap, and numbers of steps; found by measurements."""

    level: float = 0.3  # the level of the first step, as a share of the gap
    levels: tuple[float, float] = (0.1, 0.8)  # its range
    lower: float = 0.8  # factor of the level after a step that improved the objective
    raise_: float = 1.2  # factor of the level after another step
    stall_gap: float = 1e-4  # gap below which cuts that do not raise the bound are due to rounding
    halvings: int = 30  # of the distance to the interior point, in the search for a kernel of finite risks
    compilations: float = 2.5  # of the time of one: the master problem and its scaling take as long


SETTINGS = Settings()


@dataclass(frozen=True)
class CuttingPlane(Method):
    """Alternates between training machines, which give cuts, and solving the master problem over the kernels.

    Each risk is replaced by a variable t_k above its cuts l(alpha) - 1/2 <alpha alpha', K>. The master value
    is a lower bound of the optimum. The bound that is reported is the bound of the average of all alphas,
    weighted by the multipliers of their cuts. This bound is at least the master value.

    A constraint K >> 0 on a large combination of kernels is relaxed to V'KV >> 0 with a few vectors V. Those
    eigenvectors are appended at which a point violates it, so that no conic problem of its order is solved.

    Without `stabilize` the next kernel is the master's solution (Kelley's method). With it, the level method
    of [1]_ is used: the next kernel is the projection of the best one on the level set {model <= level},
    where the level lies at a share of the gap above the master value. The share is decreased after a step
    that improves the objective, and increased after any other.

    `master="taylor"` is Algorithm 3 of [2]_, for one risk with weights in an l_p ball and 1 < p < inf. The
    norm constraint is expanded to second order, and the solution is projected on the sphere.

    Parameters
    ----------
    master : "exact" or "taylor", default "exact"
        The master problem: exact, or by Taylor expansion as in Kloft et al. (2011).
    stabilize : bool, default True
        Whether the level method chooses the next kernel.
    max_iterations : int > 0, default 500
        Planes.

    References
    ----------
    .. [1] Lemarechal, Nemirovskii, Nesterov, New variants of bundle methods, Math. Programming 69 (1995).
    .. [2] Kloft et al., lp-norm multiple kernel learning, JMLR 12 (2011).
    """

    name = "cutting-plane"
    master: Literal["exact", "taylor"] = "exact"
    stabilize: bool = True
    max_iterations: int = 500

    def __post_init__(self) -> None:
        one_of(self.master, "master", ("exact", "taylor"))
        boolean(self.stabilize, "stabilize")
        whole(self.max_iterations, "max_iterations")

    def match(self, structure: Structure) -> Structure | str:
        """Return the structure of any problem with a risk."""
        if not structure.risks:
            return "it needs a risk, the problem has none"
        return structure.unset or structure

    def cost(self, match: Structure) -> Cost:
        n = max(term.learner.n for term in match.risks)
        weights = sum(v.size for v in match.variables)
        # Measured: about 12 iterations more than weights. Each trains the machines and solves the master
        # twice, which takes 14 ms and 10 us for each weight, plus a tenth of the exact problem's time where
        # the master is semidefinite.
        cones = relaxed_cones(match)
        if cones is not None:  # compilations of the relaxation, and an eigendecomposition for each cone
            N = max(len(V) for V in cones.spaces.values())
            return Cost(min(self.max_iterations, 12 + 2 * weights) * (0.4 + 4e-9 * N**3), certified=True)
        machines = len(match.risks) * (3e-3 + 2e-8 * n**2.3)
        master = 1.4e-2 + 1e-5 * weights + (size(match).seconds / 10 if size(match).order else 0.0)
        return Cost(min(self.max_iterations, 12 + weights) * (machines + master))

    def run(self, match: Structure, control: Control) -> Outcome | None:
        for term in match.risks:
            check_separable(term.learner)
        if relaxed_cones(match) is None:
            outside = of_user(match.problem, match.user_variables)
            if outside.interior_memory > MAX_BYTES:
                raise MethodError(
                    f"the master problem with a semidefinite cone of order {outside.order} needs about "
                    f"{outside.interior_memory / 1e9:.0f} GB, more than {MAX_BYTES / 1e9:.0f} GB. Use "
                    "another method: kernelopt.explain(problem) lists those that apply."
                )
            check(SETTINGS.compilations * outside.compilation_seconds)
        run = CuttingPlaneRun(match, self, control)
        with control:
            run.run()
        return run.outcome()


class CuttingPlaneRun:
    """The state of a run: the master problem with its cuts, the current machines, and the bounds."""

    def __init__(self, structure: Structure, method: CuttingPlane, control: Control) -> None:
        self.structure, self.method, self.control = structure, method, control
        self.evaluator = Evaluator(structure)
        self.cones = relaxed_cones(structure) if method.master == "exact" else None
        if self.cones is not None and control.resumed:
            self.cones.restore(control.resumed["space"])
        self.feasible = FeasibleSet(self.evaluator, cones=self.cones)
        self.level = SETTINGS.level
        self.machines: list[Given] = []  # those at the last point
        self.cuts: list[list[Array]] = [[] for _ in structure.risks]  # the alphas of all cuts of every risk

    def run(self) -> None:
        """Add cuts and move the kernel until the bounds meet."""
        structure, control = self.structure, self.control
        try:
            model = build(structure, self.method.master, self.cones)
            inside = point = model.start()
        except MasterFailure as failure:
            raise infeasible_error(structure, failure) from failure
        if control.start is not None:
            point = control.start.point
        if control.resumed:
            point = self.restore(model, control.resumed)
        lower: float = -np.inf
        alphas: list[Array] | None = None
        for _ in control.counted(self.method.max_iterations):
            before = control.upper
            point, value = self.evaluate(point, inside)
            if control.report(
                lower, value, point=point, proof=alphas, machines=self.machines, state=self.state
            ):
                return
            if control.gap <= SETTINGS.stall_gap and control.stall():
                return
            if not self.machines:
                raise SolverError(
                    "cutting planes need a kernel at which every risk is finite, got none between the first "
                    "point and one inside the constraints. Use method='exact'."
                )
            self.add(model, [[alpha] for alpha, _ in self.machines])
            try:
                point, least, multipliers = model.solve()
                alphas = model.averaged_alphas(multipliers)
                bound = best_bound(structure, [alphas], cones=self.cones)[0].value
                lower = max(lower, bound)
                grown = self.grow(point)
                if self.method.stabilize and isinstance(model, Master) and np.isfinite(control.upper):
                    self.level *= SETTINGS.lower if value < before else SETTINGS.raise_
                    self.level = float(np.clip(self.level, *SETTINGS.levels))
                    level = least + self.level * (control.upper - least)
                    with suppress(MasterFailure):  # rounding may make the level set empty
                        point = model.nearest(control.best, level)
                    grown = self.grow(point) or grown
                if grown and isinstance(model, Master):
                    model = model.rebuilt()
            except MasterFailure as failure:
                raise_if_master_impossible(structure, model, failure)
                control.stopped = f"the master problem could not be solved ({failure})"
                return
            if lower >= control.upper - control.allowed:
                control.report(lower, np.inf, point=point, proof=alphas)
                return

    def add(self, model: Master | TaylorMaster, alphas: list[list[Array]]) -> None:
        """Add the cuts of the given alphas of every risk."""
        for k, own in enumerate(alphas):
            for alpha in own:
                model.add(k, alpha)
            self.cuts[k].extend(own)

    def state(self) -> State:
        """Return the cuts, the best point and the spaces of the relaxed cones."""
        point = [self.control.best[v.id] for v in self.structure.variables]
        spaces = [] if self.cones is None else list(self.cones.state())
        return {"level": self.level, "cuts": self.cuts, "point": point, "space": spaces}

    def restore(self, model: Master | TaylorMaster, state: State) -> Point:
        """Add the cuts of a state, and return its point."""
        self.level = state["level"]
        self.add(model, state["cuts"])
        return dict(zip((v.id for v in self.structure.variables), state["point"], strict=True))

    def grow(self, point: Point) -> bool:
        """Append eigenvectors that cut off a point to the relaxed cones; return whether there are any."""
        if self.cones is None:
            return False
        self.evaluator.write(point)
        return self.cones.grow()

    def evaluate(self, point: Point, inside: Point) -> tuple[Point, float]:
        """Return a feasible point near `point`, and the value of the minimisation there, or infinity.

        A risk may be infinite, such as the risk of a hard margin at a kernel that does not separate the
        points. No machine and hence no cut exists there, so the point is moved halfway towards `inside` and
        tried again.
        """
        for _ in range(SETTINGS.halvings):
            repaired, _ = self.feasible.nearest(point)
            value, machines = self.evaluator.at(point if repaired is None else repaired)
            if all(np.isfinite(machine.value) for machine in machines):
                self.machines = [(machine.alpha, machine.scales) for machine in machines]
                if repaired is None:
                    return point, np.inf
                return repaired, self.structure.sign * value if np.isfinite(value) else np.inf
            point = {key: (point[key] + inside[key]) / 2 for key in point}
        return point, np.inf

    def outcome(self) -> Outcome | None:
        """Return the best point, None if there is none."""
        control = self.control
        if control.best is None:
            return None
        alphas = control.proof or [alpha for alpha, _ in self.machines]
        given: list[Given] | None = control.machines
        certificate, multipliers = self.certified(alphas, given) if self.cones is not None else (None, None)
        return Outcome(
            control.best,
            alphas,
            given,
            multipliers=multipliers,
            certificate=certificate,
            lower=control.lower,
            solver=control.method,
            iterations=control.iterations,
            remedy=REMEDY,
        )

    def certified(
        self, alphas: list[Array], given: list[Given] | None
    ) -> tuple[Certificate | None, list[list[Any]] | None]:
        """Return the certificate and the multipliers with the relaxed cones, None where the time is over."""
        control, structure = self.control, self.structure
        control.exceed_limit()
        with control, control.certifying():
            certificate = certificate_at(structure, control.best, [alphas], given=given, cones=self.cones)
            own = list(certificate.alphas)
            return certificate, constraint_multipliers(structure, own, cones=self.cones)
        return None, None


def build(structure: Structure, master: str, cones: RelaxedCones | None) -> Master | TaylorMaster:
    """Return the master problem that is named by `master`."""
    if master == "exact":
        return Master(structure, cones)
    read = read_ball(structure)
    if isinstance(read, str) or read.p == 1 or np.isinf(read.p):
        why = read if isinstance(read, str) else f"p must be between 1 and infinity, got {read.p:g}"
        raise MethodError(f"master='taylor' does not apply: {why}. Use master='exact'.")
    return TaylorMaster(read)


def raise_if_master_impossible(
    structure: Structure, model: Master | TaylorMaster, failure: MasterFailure
) -> None:
    """Raise if the master is infeasible or unbounded and the problem itself can be proved to be so too."""
    if failure.ray is not None:
        bound, _, _ = best_bound(structure, [model.averaged_alphas(failure.ray)])
        if bound.ray is not None:
            raise contradiction(structure, bound.ray)
    if "DualInfeasible" in str(failure):
        raise_if_unbounded(structure, expand(structure.explicit).problem)


def infeasible_error(structure: Structure, failure: MasterFailure) -> Exception:
    """Return the error for constraints that no point satisfies, with a proof of that where one is found."""
    zero = {v.id: np.zeros(v.shape) for v in structure.variables}
    alphas = [np.zeros(term.learner.n) for term in structure.risks]
    given = [(a, None) for a in alphas]
    found = certificate_at(structure, zero, [alphas], given=given)
    if found.proof is not None:
        return contradiction(structure, found.proof)
    return SolverError(f"the master problem could not be solved ({failure}). Use method='exact'.")

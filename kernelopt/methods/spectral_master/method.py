"""The method "spectral-master": one risk over weights of any sign with a PSD combination of given trace."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from kernelopt.certificates.gap import Bound, floor
from kernelopt.certificates.lower.choices import refined
from kernelopt.certificates.lower.combined import (
    affine_objective,
    bound_of_factor,
    multiplier_of_trace,
)
from kernelopt.certificates.lower.minorants import Minorant
from kernelopt.certificates.upper.feasibility import FeasibleSet
from kernelopt.errors import MethodError
from kernelopt.methods.checkpoint import State
from kernelopt.methods.control import Control
from kernelopt.methods.method import Cost, Method, Outcome
from kernelopt.methods.results import closed_certificate
from kernelopt.methods.sizing import CLOSED_SECONDS
from kernelopt.methods.spectral_master.machines import Machines, Trained
from kernelopt.methods.spectral_master.master import Master
from kernelopt.methods.spectral_master.settings import SETTINGS
from kernelopt.numerics.decompositions import SECONDS
from kernelopt.structure.ball import read_kernels
from kernelopt.structure.combined.cone import CombinedCone, read_combined_cone
from kernelopt.structure.combined.coordinates import Coordinates, read_coordinates
from kernelopt.structure.evaluation import Evaluator
from kernelopt.structure.learning import one_risk
from kernelopt.structure.structure import Objective, Structure, every_multiplier
from kernelopt.validation import Array, whole
from kernelopt.witnesses.combined import NEARLY_ACTIVE, VECTORS, Subspace, feasible_share

REMEDY = "Try method='exact' if it fits, or accept the bounds."


Match = tuple[Structure, Objective, CombinedCone]  # a problem with one risk over a cone
# What proves a lower bound: a dual variable alpha of the risk, and F with the multiplier F F' of K >> 0. The
# multiplier belongs to the risk alone, without the factor of the objective.
Proof = tuple[Array, Array]


@dataclass(frozen=True)
class SpectralMaster(Method):
    r"""Learns weights of any sign with K(mu) >> 0 and a given trace, such as Lanckriet's free-sign SDP.

    The cone :math:`K(\mu) \succeq 0` of [1]_ is relaxed to :math:`F'K(\mu)F \succeq 0` with a few vectors F,
    in coordinates in which a matrix K0 inside the set is the identity. The risk is replaced by the cuts
    :math:`\ell(\alpha) - \tfrac12 \sum_i \mu_i \alpha'K_i\alpha` and its second derivative. The master
    problem in both is a semidefinite programme of small order. Its solution is moved towards K0 until K(mu)
    >> 0, where a machine is trained: its primal value is an upper bound. The lowest eigenvectors of K(mu) are
    appended to F. The multipliers of the master problem prove a lower bound by weak duality [2]_. Both are
    reported in every iteration.

    Parameters
    ----------
    max_iterations : int > 0, default 200
        Solutions of the master problem.

    References
    ----------
    .. [1] Lanckriet et al., Learning the kernel matrix with semidefinite programming, JMLR 5 (2004).
    .. [2] Helmberg, Rendl, A spectral bundle method for semidefinite programming, SIAM J. Optim. 10 (2000).
    """

    name = "spectral-master"
    max_iterations: int = 200

    def __post_init__(self) -> None:
        whole(self.max_iterations, "max_iterations")

    def match(self, structure: Structure) -> Match | str:
        """Read the risk and the set of weights; the loss must be finite for every kernel."""
        single = one_risk(structure)
        if isinstance(single, str):
            return single
        cone = read_combined_cone(structure)
        if isinstance(cone, str):
            return cone
        kernels = single.risk.kernels  # K >> 0 is on the same objects, or `read_combined_cone` had refused
        if isinstance(read_kernels(kernels, cone.variables), str):
            return "its risk must be on the combination that is PSD"
        _, curvature, _, lower, upper = single.risk.learner.loss.curve(single.risk.learner.y)
        if not ((np.isfinite(lower) & np.isfinite(upper)) | (curvature > 0)).all():
            return f"its loss must be finite for every kernel, {single.risk.learner.loss!r} may be infinite"
        return structure, single, cone

    def cost(self, match: Match) -> Cost:
        # Measured on ordinary families, where four to seven iterations suffice: a start, master problems, and
        # for each iteration passes over the kernels and a decomposition.
        m, N = match[2].whole.shape[:2]
        seconds = 3e-2 + 5e-3 * m + 3e-4 * m**2 + 6e-8 * m * N**2 + 1.2e-9 * N**3
        certification = CLOSED_SECONDS + (SECONDS.values + SETTINGS.proof_seconds) * N**3
        return Cost(seconds, 8.0 * (m + 8) * N**2, certified=True, certification=certification)

    def run(self, match: Match, control: Control) -> Outcome | None:
        run = SpectralMasterRun(match, self, control)
        with control:
            run.run()
        return run.outcome()


class SpectralMasterRun:
    """The state of a run: the space of vectors, the cuts, the best weights, and the best proof."""

    def __init__(self, match: Match, method: SpectralMaster, control: Control) -> None:
        self.structure, self.single, self.cone = match
        self.method, self.control = method, control
        coordinates = read_coordinates(self.structure)
        if isinstance(coordinates, str):
            raise MethodError(f"method {method.name!r} does not apply: {coordinates}. Use method='exact'.")
        self.at: Coordinates = coordinates
        self.best: Trained | None = None
        self.subspace = Subspace(coordinates)
        self.master = Master(self.subspace)

    def run(self) -> None:
        """Solve the master problem, train a machine and append eigenvectors until the bounds meet."""
        control, at, single = self.control, self.at, self.single
        machines = Machines(single.risk.learner, at.stack, SETTINGS.machine_gap * control.tol)
        subspace, master = self.subspace, self.master
        cuts = [machines.cut(alpha) for alpha in control.resumed.get("alpha", ())]
        self.best = best = machines.train(self.first_weights(), cuts[-1].alpha if cuts else self.warm_alpha())
        for cut in (*cuts, best.cut):
            master.add(cut, best.mu)
        p = at.D.shape[1]
        if not p:
            self.report(best, master.bound(best.cut, np.zeros((0, 0))), (best.cut.alpha, subspace.F))
            return
        random = np.random.default_rng(0).standard_normal(
            (at.rank, min(at.rank, SETTINGS.first_vectors * (p + 1)))
        )
        subspace.add(control.resumed.get("V", random))
        lower = -np.inf
        for _ in control.counted(self.method.max_iterations):
            control.check()
            distance = best.value - lower if np.isfinite(lower) else abs(best.value)
            distance = max(distance, 0.1 * control.tol * abs(best.value))
            mu, multipliers, Z = master.solve(best, SETTINGS.master_gap * distance, distance)
            mean = multipliers @ np.array([cut.alpha for cut in master.cuts])
            predicted = machines.predicted(best, mu) - best.cut.alpha + mean
            proof: Proof | None = None
            for cut in map(machines.cut, (mean, predicted)):
                if (bound := master.bound(cut, Z)) > lower:
                    lower, proof = bound, (cut.alpha, subspace.factor(Z))
            values, vectors = at.lowest(mu, VECTORS)
            trained = machines.train(self.inside(mu, float(values[0])), predicted)
            if trained.value < best.value:
                self.best = best = trained
            if self.report(trained, lower, proof) or control.stall():
                return
            master.add(trained.cut, best.mu)
            subspace.reduce(best.mu)
            subspace.add(vectors[:, values < NEARLY_ACTIVE])

    def first_weights(self) -> Array:
        """Return the weights of a checkpoint, moved to the centre until K is PSD; without one the centre."""
        at = self.at
        if not self.control.resumed:
            return at.centre
        mu: Array = at.centre + at.D @ self.control.resumed["x"]
        return self.inside(mu, float(at.lowest(mu, 1)[0][0]))

    def inside(self, mu: Array, lowest: float) -> Array:
        """Return weights, with this lowest eigenvalue of K, moved to the centre until K is PSD."""
        centre = self.at.centre
        return centre + min(feasible_share(lowest), self.at.null_share(mu)) * (mu - centre)

    def state(self) -> State:
        """Return the coordinates of the best weights, the space of vectors, and the alphas of the cuts."""
        at, best = self.at, self.best
        mu = at.centre if best is None else best.mu
        x = np.asarray(np.linalg.lstsq(at.D, mu - at.centre, rcond=None)[0], dtype=float)
        return {"x": x, "V": self.subspace.V, "alpha": [c.alpha for c in self.master.cuts]}

    def warm_alpha(self) -> Array | None:
        """Return the alpha of an earlier method, None without one."""
        earlier = self.control.start
        return (
            None if earlier is None or earlier.alphas is None else np.asarray(earlier.alphas[0], dtype=float)
        )

    def report(self, trained: Trained, lower: float, proof: Proof | None) -> bool:
        """Report the bounds of the objective; return whether to stop."""
        single = self.single
        bounds = [single.offset + single.factor * bound for bound in (lower, trained.value)]
        return self.control.report(
            *bounds,
            point=self.cone.point(trained.mu),
            proof=proof if proof is not None else self.control.proof,
            machines=[trained.cut.alpha],
            state=self.state,
        )

    def outcome(self) -> Outcome | None:
        """Return the best weights with their certificate, None before the first report."""
        control, structure = self.control, self.structure
        if control.best is None or control.proof is None:
            return None
        alpha, F = control.proof
        with control.certifying():
            feasible = FeasibleSet(Evaluator(structure), conic=False)
            point, _ = feasible.nearest(control.best)
            if point is None:
                return None
            upper, machines = Evaluator(structure, [(control.machines[0], None)]).outward(point)
            bound = self.proved(alpha, F)
            certificate = closed_certificate(structure, bound.value, upper, point, [alpha], machines)
            assumes = tuple(filter(None, [bound.reason, feasible.remark, *certificate.assumes]))
            certificate = replace(certificate, assumes=assumes)
        return Outcome(
            point,
            [alpha],
            [(control.machines[0], None)],
            multipliers=self.multipliers(alpha, F),
            certificate=certificate,
            lower=bound.value,
            solver=self.method.name,
            iterations=control.iterations,
            remedy=REMEDY,
        )

    def proved(self, alpha: Array, F: Array) -> Bound:
        """Return the rigorous bound of a proof, in twice the precision where rounding errors are large."""
        structure, F = self.structure, np.sqrt(self.single.factor) * F

        def bound_at(below: list[Minorant]) -> Bound | None:
            objective = affine_objective(structure, below)
            least = floor(structure)
            return None if objective is None else bound_of_factor(self.at, objective, F, least)

        return refined(structure, [alpha], bound_at) or Bound(-np.inf)

    def multipliers(self, alpha: Array, F: Array) -> list[list[Array]]:
        """Return the multipliers of the constraints, with the signs of cvxpy."""
        structure, at, single = self.structure, self.at, self.single
        Z = single.factor * (F @ F.T)
        forms = single.factor / 2 * at.cone.whole.forms(alpha)
        rho = -forms - at.stack.reshape(len(forms), -1) @ Z.ravel()
        known = {at.cone.cone_at: (Z + Z.T) / 2, at.cone.trace_at: -multiplier_of_trace(at, rho)}
        return every_multiplier(structure, known)

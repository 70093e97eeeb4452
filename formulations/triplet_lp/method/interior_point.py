"""The interior-point method for the programmes of relative comparisons."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

import kernelopt as ko
from formulations.triplet_lp.method.multipliers import TOLERANCES, Multipliers, cut, value
from formulations.triplet_lp.method.newton import Newton
from formulations.triplet_lp.method.problem import TripletProgramme, point_and_multipliers
from formulations.triplet_lp.method.rows import TUNED
from kernelopt.extend import FLOOR_SHARE, Cost, Method, Outcome, check, register_method


@dataclass(frozen=True)
class InteriorPointMethod(Method):
    """Newton steps on the kernel weights: every constraint, K >> 0 too, adds a matrix of order m.

    For `kernel_design` and `feature_selection` with gamma1 > 0, over any cone. Unlike a vertex of
    "column-generation", the point has small numbers where the weights of the optimum are zero.
    """

    name = "interior-point"

    def match(self, structure: ko.Structure) -> TripletProgramme | str:
        """Match the programmes of this package with a price of the weights."""
        problem = structure.problem
        if not isinstance(problem, TripletProgramme):
            return "it is for the programmes of triplet_lp.kernel_design and feature_selection"
        if structure.unset:
            return structure.unset
        return problem if problem.gamma1 > 0 else "it needs gamma1 > 0: without it the dual has no interior"

    def cost(self, match: TripletProgramme) -> Cost:
        data = match.data
        m, n = data.m, data.points.size
        pairs = n**2 / 2 if data.cone == "dominant" else min(2 * data.T, n**2 / 2)
        # Measured: 2 ms an iteration, 0.1 us for a triplet or pair, and 10 Gflop/s for the normal matrix.
        operations = 1.3 * m**2 * pairs + m**3
        if data.cone == "psd":
            operations += 4 * m * n**3 + m**2 * n**2
        return Cost(TUNED.usual * (2e-3 + 1e-7 * (data.T + pairs) + 1e-10 * operations))

    def run(self, match: TripletProgramme, control: Any) -> Outcome | None:
        data, gamma1 = match.data, match.gamma1
        iterate, at_zero = Newton(data, gamma1), data.margin * data.T
        iterate.restore(control.resumed)
        # For a larger gap the certificate of "psd" solves a conic programme, which takes longer than two more
        # iterations.
        tol = min(control.tol, TOLERANCES.loose / 2) if data.cone == "psd" else control.tol
        with control:
            for _ in range(TUNED.most):
                alpha, proof = iterate.alpha, Multipliers(*iterate.proof)
                inside = data.depth(alpha).min() >= 0
                upper = min(data.value(alpha, gamma1), at_zero) if inside else at_zero
                lower = value(data, gamma1, cut(data, proof))
                control.report(lower, upper, point=alpha, proof=proof, state=iterate.state)
                small = TUNED.enough * tol * max(upper, FLOOR_SHARE * at_zero)
                if control.stopped or control.gap <= tol or iterate.gap() <= small:
                    break
                check(TUNED.passes * iterate.rows.h.size)
                try:
                    with np.errstate(all="ignore"):  # numbers that are not finite are refused by the factors
                        if not iterate.iterate() > TUNED.stuck:
                            break
                except (np.linalg.LinAlgError, ValueError):  # a matrix is singular to the working precision
                    break
        if control.proof is None:
            return None
        # Where no weights were in the cone, the certificate moves the last ones into it.
        alpha = control.best if control.upper < at_zero else iterate.alpha
        point, multipliers = point_and_multipliers(match, data, alpha, *control.proof)
        return Outcome(point, multipliers=multipliers, solver=self.name, iterations=iterate.iterations)


register_method(InteriorPointMethod())

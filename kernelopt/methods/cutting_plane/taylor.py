"""The master problem of Algorithm 3 of Kloft et al. (2011), with the l_p norm expanded to second order."""

from __future__ import annotations

import cvxpy as cp
import numpy as np

from kernelopt.conic.ladder import ladder, run_solver
from kernelopt.methods.cutting_plane.master import MasterFailure, MasterSolution, averaged_alphas
from kernelopt.numerics.norms import lp_length
from kernelopt.structure.ball import BallProblem
from kernelopt.structure.structure import Point
from kernelopt.validation import Array

FLOOR = 1e-7  # smallest weight of an expansion: at zero the curvature is infinite for p < 2, zero for p > 2
STATIONARY = 1e-7  # largest change of the weights at which they count as stationary
EXPANSIONS = 50  # at most, for one master problem


class TaylorMaster:
    """min t over the unit l_p sphere, subject to the cuts, by sequential quadratic constraints.

    The constraint |w|_p^p <= 1 is replaced by its Taylor expansion of second order at the current weights.
    """

    def __init__(self, read: BallProblem) -> None:
        self.read = read
        self.alphas: list[Array] = []
        self.gains: list[float] = []
        self.forms: list[Array] = []
        self.w = read.start

    def start(self) -> Point:
        """Return equal weights."""
        return self.read.point(self.read.reach * self.w)

    def add(self, k: int, alpha: Array) -> None:
        """Add the cut at alpha."""
        self.alphas.append(alpha)
        self.gains.append(self.read.loss.dual_value(alpha, self.read.y))
        self.forms.append(self.read.reach * self.read.grams.forms(alpha))

    def solve(self) -> MasterSolution:
        """Expand at the weights, solve, and project on the sphere, until the weights are stationary."""
        p, M = self.read.p, self.read.reach.size
        w, t = cp.Variable(M, nonneg=True), cp.Variable()
        cuts = np.array(self.gains) - np.array(self.forms) @ w / 2 <= t
        for _ in range(EXPANSIONS):
            at = np.maximum(self.w, FLOOR)
            quadratic = p * (p - 1) / 2 * cp.sum_squares(cp.multiply(at ** ((p - 2) / 2), w))
            ball = quadratic - p * (p - 2) * at ** (p - 1) @ w <= p * (3 - p) / 2
            run_solver(
                cp.Problem(cp.Minimize(t), [cuts, ball, w <= 1]),
                ladder(linear=False, order=0)[0],
            )
            if w.value is None or not np.isfinite(w.value).all() or not w.value.max() > 0:
                raise MasterFailure("the expanded master has no solution")
            last, values = self.w, np.maximum(w.value, 0.0)
            self.w = values / lp_length(values, p)
            if np.abs(self.w - last).max() <= STATIONARY:
                break
        point = self.read.point(self.read.reach * self.w)
        return point, float(t.value), np.maximum(cuts.dual_value, 0.0)

    def averaged_alphas(self, multipliers: Array) -> list[Array]:
        """Return the average of the alphas of the cuts, weighted by the multipliers."""
        return [averaged_alphas(self.alphas, multipliers)]

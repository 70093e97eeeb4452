"""The master problem: cuts of the risk and its second derivative, over a relaxation of K(mu) >> 0."""

from __future__ import annotations

import numpy as np

from kernelopt.certificates.lower.combined import coordinate_radius
from kernelopt.methods.spectral_master.machines import Cut, Trained
from kernelopt.methods.spectral_master.settings import SETTINGS
from kernelopt.numerics.matrix_inequality import SmallProgram, solve_small
from kernelopt.validation import Array
from kernelopt.witnesses.combined import BOX, Subspace


class Master:
    """min t + 1/2 (mu - best)'H(mu - best) subject to the cuts t >= h_k + g_k'mu and F'K(mu)F >> 0.

    The quadratic term makes the step one of Newton's method where the last cut is active. The multipliers of
    the solution prove a lower bound of the problem itself.
    """

    def __init__(self, subspace: Subspace) -> None:
        self.subspace, self.at = subspace, subspace.coordinates
        self.cuts: list[Cut] = []
        self.radius = coordinate_radius(self.at)

    def add(self, cut: Cut, best: Array) -> None:
        """Append a cut, and drop low ones where there are many."""
        self.cuts.append(cut)
        if len(self.cuts) > SETTINGS.most_cuts:
            heights = [c.constant + c.slope @ best for c in self.cuts]
            self.cuts = [self.cuts[k] for k in sorted(np.argsort(heights)[-SETTINGS.most_cuts // 2 :])]

    def solve(self, best: Trained, gap: float, first_gap: float) -> tuple[Array, Array, Array]:
        """Return the weights mu, the multipliers of the cuts, whose sum is one, and of F'K(mu)F >> 0.

        They are a solution to the duality gap `gap`; `first_gap` is about the decrease that is expected.
        """
        at, p = self.at, self.at.D.shape[1]
        G = np.array([cut.slope for cut in self.cuts])
        h = np.array([cut.constant for cut in self.cuts])
        own = np.linalg.lstsq(at.D, best.mu - at.centre, rcond=None)[0]
        H = np.zeros((p + 1, p + 1))
        H[:p, :p] = at.D.T @ best.curvature @ at.D
        c = np.append(-H[:p, :p] @ own, 1.0)
        box = np.hstack([np.vstack([np.eye(p), -np.eye(p)]), np.zeros((2 * p, 1))])
        A = np.vstack([np.hstack([-G @ at.D, np.ones((len(h), 1))]), box])
        b = np.concatenate([-h - G @ at.centre, np.full(2 * p, BOX)])
        S0, S = self.subspace.inequality()
        program = SmallProgram(c, H, A, b, S0, np.concatenate([S, np.zeros((1, *S0.shape))]))
        x = SETTINGS.start_share * own
        t = float((h + G @ (at.centre + at.D @ x)).max()) + 0.1 * first_gap
        x, multipliers, Z = solve_small(program, np.append(x, t), gap, first_gap)
        multipliers = multipliers[: len(h)]
        multipliers = multipliers / max(float(multipliers.sum()), 1e-300)
        return at.centre + at.D @ x[:p], multipliers, Z

    def bound(self, cut: Cut, Z: Array) -> float:
        """Return the lower bound of the risk that a cut and the multiplier Z prove, up to rounding.

        It is the bound of `proved_bound` without its rounding errors, from the compressed kernels.
        """
        at, subspace = self.at, self.subspace
        cone, T = at.cone, at.basis.T
        rho = cut.slope - subspace.compressed.reshape(len(cut.slope), -1) @ Z.ravel()
        row = T.T @ cone.row
        along = T.T @ rho
        nu = float(row @ along) / float(row @ row)
        return (
            cut.constant
            + nu * cone.total
            - abs(cone.trace) * self.radius * float(np.linalg.norm(along - nu * row))
        )

"""Mehrotra's predictor and corrector with Gondzio's corrections, on the kernel weights."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.linalg as sl

from formulations.triplet_lp.comparison_data import ComparisonData
from formulations.triplet_lp.method.multipliers import Multipliers, cut
from formulations.triplet_lp.method.primal_dual.constraints import Comparisons, Sizes
from formulations.triplet_lp.method.primal_dual.dominance import Dominance
from formulations.triplet_lp.method.primal_dual.entries import Entries
from formulations.triplet_lp.method.primal_dual.semidefinite import Semidefinite
from kernelopt.extend import FLOOR_SHARE, Array, check

ITERATIONS = 100  # ten times the usual number on easy problems
# Measured on programmes of 500 to 20 000 triplets: with these numbers there are a third fewer iterations than
# with 0.99, 2 and (1.08, 0.08).
FRACTION = 0.9  # of the longest step
CORRECTIONS = 3  # of centrality, where a step is short
SHORT = 0.9  # a longer step is not corrected
GAIN = 0.02  # a correction is kept where it makes the sum of the two steps longer by this
REACH = 0.3  # a correction aims at steps that are longer by this
STUCK = 1e-6  # shorter steps mean that rounding decides
PASSES = 2e-7  # seconds for each entry above the diagonal, measured: the factors, or a direction
RIDGE = 1e-14  # relative to the diagonal of the normal matrix: below its rounding errors
ENOUGH = 0.01  # of the tolerance: at such a gap the residuals are rounding errors, and grow from then on


class InteriorPoint:
    """The iterate of an infeasible primal-dual method for the programme of checked data.

    The variables eps, s and r, and all slacks are eliminated. A Newton step solves a system in the m weights.

    Attributes
    ----------
    alpha : array of shape (m,)
    iterations : int

    References
    ----------
    .. [1] Mehrotra, On the implementation of a primal-dual interior point method, SIAM J. Optim. 2 (1992).
    .. [2] Gondzio, Multiple centrality corrections in a primal-dual method for linear programming, COAP 6
       (1996).
    .. [3] Todd, Toh, Tutuncu, On the Nesterov-Todd direction in semidefinite programming, SIAM J. Optim. 8
       (1998).
    """

    def __init__(self, data: ComparisonData, gamma1: float) -> None:
        self.data, self.gamma1 = data, gamma1
        self.entries = Entries(data)
        self.comparisons = Comparisons(data, self.entries)
        unit = float(np.abs(data.diagonal).mean()) or 1.0
        self.sizes = Sizes(data, gamma1, data.margin / unit)
        self.cone: Any = None
        if data.cone == "dominant":
            self.cone = Dominance(data, self.entries, gamma1)
        elif data.cone == "psd" and data.cone_entries.any():
            self.cone = Semidefinite(data, gamma1)
        self.constraints: list[Any] = [self.comparisons, self.sizes]
        self.constraints += [] if self.cone is None else [self.cone]
        self.alpha, self.cost = np.zeros(data.m), data.gamma2 * data.q
        self.iterations, self.now = 0, self.entries.at(self.alpha)

    @property
    def multipliers(self) -> tuple[Array, Array]:
        """The multipliers of the triplets, u, and of the cone: (v, w) in one vector, vec Z, or none."""
        none = np.zeros(len(self.data.cone_entries))
        return self.comparisons.u, none if self.cone is None else self.cone.multipliers

    def run(self, control: Any, tol: float) -> None:
        """Iterate until the gap of the bounds is below `tol`, or until rounding decides."""
        self.restore(control.resumed)
        for _ in range(ITERATIONS):
            lower, upper = self.bounds()
            proof = self.multipliers
            control.report(lower, upper, point=self.alpha, proof=proof, state=self.state)
            if control.stopped or control.gap <= tol or self.gap_is_below(ENOUGH * tol):
                return
            try:
                with np.errstate(all="ignore"):  # numbers that are not finite are refused by the factors
                    longest = self.iterate()
            except (np.linalg.LinAlgError, ValueError):  # a matrix is singular to the working precision
                return
            self.iterations += 1
            if not longest > STUCK:
                return

    def state(self) -> dict[str, Array]:
        """Return the arrays from which the iteration can go on."""
        parts = {f"{k}.{name}": getattr(c, name) for k, c in enumerate(self.constraints) for name in c.point}
        return {"alpha": self.alpha, **parts}

    def restore(self, state: dict[str, Array]) -> None:
        """Go on from what `state` has returned; empty leaves the start."""
        self.alpha = state.get("alpha", self.alpha)
        self.now = self.entries.at(self.alpha)
        for k, constraint in enumerate(self.constraints):
            for name in constraint.point:
                setattr(constraint, name, state.get(f"{k}.{name}", getattr(constraint, name)))

    def bounds(self) -> tuple[float, float]:
        """Return a lower and an upper bound of the optimum, up to rounding errors.

        They are bounds at any iterate. The lower is that of `multipliers.value`. The upper is the objective
        at the weights if they are in the cone, and that of zero weights otherwise.
        """
        data, y = self.data, cut(self.data, Multipliers(*self.multipliers))
        z = self.entries.weighted(data, y) - self.cost
        largest = float(data.by_group(data.sizes(z), np.add).max())
        lower = data.margin * float(y.u.sum()) * (self.gamma1 / max(self.gamma1, largest))
        at_zero = data.margin * data.T
        depth = (
            self.alpha.min() if data.cone == "nonnegative" else self.cone.depth(self.now) if self.cone else 0
        )
        if not depth >= 0:
            return lower, at_zero
        hinges = np.maximum(data.margin - self.entries.differences @ self.now.off, 0.0).sum()
        sizes = data.by_group(np.abs(self.alpha), np.maximum).sum()
        return lower, min(float(hinges + self.gamma1 * sizes + self.cost @ self.alpha), at_zero)

    def gap_is_below(self, tol: float) -> bool:
        """Whether the sum of the products is below `tol` relative to the objective."""
        value = float(self.comparisons.x.sum() + self.gamma1 * self.sizes.x.sum() + self.cost @ self.alpha)
        floor = FLOOR_SHARE * self.data.margin * self.data.T
        return bool(sum(c.gap() for c in self.constraints) <= tol * max(abs(value), floor))

    def iterate(self) -> float:
        """Take a step, and return the longer of its two lengths."""
        self.factor()
        gap, count = sum(c.gap() for c in self.constraints), sum(c.count for c in self.constraints)
        primal, dual = self.direction([c.centred(0.0, False) for c in self.constraints])
        after = sum(c.gap_after(primal, dual) for c in self.constraints)
        target = max(after / gap, 0.0) ** 3 * gap / count
        primal, dual = self.direction([c.centred(target, True) for c in self.constraints])
        for _ in range(CORRECTIONS):
            if min(primal, dual) > SHORT:
                break
            primal, dual, better = self.correction(target, primal, dual)
            if not better:
                break
        self.alpha = self.alpha + primal * self.step
        for constraint in self.constraints:
            constraint.move(primal, dual)
        self.now = self.entries.at(self.alpha)
        return max(primal, dual)

    def factor(self) -> None:
        """Factor the normal matrix of the weights."""
        check(PASSES * len(self.entries.off))
        self.H = np.zeros((self.data.m,) * 2)
        parts = [part for c in self.constraints if (part := c.normal_matrix(self.now, self.H)) is not None]
        self.H += self.entries.normal_matrix(sum(parts[1:], parts[0]).tocsr())
        self.H[np.diag_indices(self.data.m)] *= 1 + RIDGE
        self.factored = sl.cho_factor(self.H)

    def direction(self, targets: list[Array]) -> tuple[float, float]:
        """Compute the Newton step for these targets; return its lengths, which keep all slacks positive."""
        check(PASSES * len(self.entries.off))
        out = self.entries.zeros()
        for constraint, target in zip(self.constraints, targets, strict=True):
            constraint.right_side(target, out)
        right = self.entries.adjoint(out) - self.cost
        self.step = sl.cho_solve(self.factored, right)
        self.step = self.step + sl.cho_solve(self.factored, right - self.H @ self.step)  # one refinement
        step = self.entries.at(self.step)
        for constraint in self.constraints:
            constraint.step(step)
        primal, dual = zip(*(c.lengths() for c in self.constraints), strict=True)
        return min(1.0, FRACTION * min(primal)), min(1.0, FRACTION * min(dual))

    def correction(self, target: float, primal: float, dual: float) -> tuple[float, float, bool]:
        """Correct the centrality of the step; return the lengths, and whether they are longer."""
        kept = [{name: getattr(c, name) for name in c.fields} for c in self.constraints], self.step
        aim = [min(1.0, length + REACH) for length in (primal, dual)]
        longer = self.direction([c.corrected(target, *aim) for c in self.constraints])
        if sum(longer) >= primal + dual + GAIN:
            return *longer, True
        self.step = kept[1]
        for constraint, values in zip(self.constraints, kept[0], strict=True):
            vars(constraint).update(values)
        return primal, dual, False

"""Diagonal dominance as inequalities of an interior-point method."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.linalg as sl
import scipy.sparse as sp

from formulations.triplet_lp.comparison_data import ComparisonData
from formulations.triplet_lp.method.primal_dual.constraints import Inequalities, first_price
from formulations.triplet_lp.method.primal_dual.entries import Entries, Vectors
from kernelopt.extend import Array


class Dominance(Inequalities):
    """r >= K_ij and r >= -K_ij for the pairs i < j, and K_ii >= sum_j r_ij with multipliers v.

    With weights a, b and g of the three, the block of r of the normal equations is E + B' diag(g) B, with the
    diagonal matrix E = a + b and the incidence matrix B of points and pairs. By the formula of Woodbury its
    inverse needs the factor of C = diag(1 / g) + B E^-1 B', of order n_S. What is left for alpha is
    off' diag(4 a b / E) off + J' C^-1 J with J = diagonal + B diag((b - a) / E) off.
    """

    def __init__(self, data: ComparisonData, entries: Entries, gamma1: float) -> None:
        self.entries, self.first, self.second = entries, data.first, data.second
        self.P, self.n, self.of_pairs = data.first.size, data.points.size, data.of_pairs
        self.incidence = data.incidence
        count = 2 * self.P + self.n
        self.h, self.cost, self.x = np.zeros(count), np.zeros(self.P), np.full(self.P, data.margin)
        self.y, self.lam = np.full(count, data.margin), np.full(count, first_price(data, gamma1))

    @property
    def multipliers(self) -> Array:
        """The multipliers v and w of the dual in one vector."""
        above, below, v = self.parts(self.lam)
        return np.concatenate([v, below - above])

    def parts(self, values: Array) -> tuple[Array, Array, Array]:
        """Return what belongs to r - K_ij, to r + K_ij and to the sums."""
        P = self.P
        return values[:P], values[P : 2 * P], values[2 * P :]

    def depth(self, entries: Vectors) -> float:
        """Return the smallest K_ii - sum_j |K_ij|: the weights are in the cone where it is not negative."""
        return float((entries.diagonal - self.incidence @ np.abs(entries.off)).min())

    def rows(self, entries: Vectors, x: Array) -> Array:
        return np.concatenate([x - entries.off, x + entries.off, entries.diagonal - self.incidence @ x])

    def adjoint(self, lam: Array, out: Vectors) -> Array:
        above, below, v = self.parts(lam)
        out.off += below - above
        out.diagonal += v
        return np.asarray(above + below - v[self.first] - v[self.second])

    def factor(self, W: Array, H: Array) -> Any:
        above, below, self.sums = self.parts(W)
        self.both, self.mixed = above + below, below - above
        C = np.zeros((self.n, self.n))
        C[self.first, self.second] = C[self.second, self.first] = 1 / self.both
        C[np.diag_indices(self.n)] = 1 / self.sums + self.incidence @ (1 / self.both)
        self.factored = sl.cho_factor(C)
        J = self.entries.diagonal + self.of_pairs(self.mixed / self.both) @ self.entries.off
        H += J.T @ sl.cho_solve(self.factored, J)
        return sp.diags_array(4 * above * below / self.both)

    def solved(self, b: Array) -> Array:
        """Return the solution of (E + B' diag(g) B) r = b."""
        r = b / self.both
        inner = sl.cho_solve(self.factored, self.incidence @ r)
        return np.asarray(r - (inner[self.first] + inner[self.second]) / self.both)

    def couple(self, b: Array, out: Vectors) -> None:
        r = self.solved(b)
        out.off -= self.mixed * r
        out.diagonal += self.sums * (self.incidence @ r)

    def back(self, step: Vectors, b: Array) -> Array:
        v = self.sums * step.diagonal
        return self.solved(b - self.mixed * step.off + v[self.first] + v[self.second])

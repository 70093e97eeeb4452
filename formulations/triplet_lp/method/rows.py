"""The linear inequalities of a triplet programme, and the elimination of all variables but the weights."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np
import scipy.linalg as sl
import scipy.sparse as sp

from formulations.triplet_lp.comparison_data import ComparisonData
from formulations.triplet_lp.method.settings import SETTINGS
from kernelopt.extend import Array


@dataclass(frozen=True, eq=False)
class Rows:
    """G p >= h over points p = (x, e) of the variables x = (eps, s, r) and the entries e = K alpha, at c'p.

    The entries are K above the diagonal, the diagonal, and the weights. A triplet is the difference
    of two entries. There are at most n_S (n_S - 1) / 2 of them, however many triplets there are, so that the
    work of an iteration does not grow with T.

    Attributes
    ----------
    K : array of shape (., m)
    G : sparse array
    h, c : arrays
    own : int
        How many rows, the first ones, have one entry of x at most. The others are the sums of dominance.
    """

    K: Array
    G: Any
    h: Array
    c: Array
    own: int

    @classmethod
    def of(cls, data: ComparisonData, gamma1: float) -> Rows:
        """Return the rows of eps and of s, and for "dominant" the rows of r and of the sums."""
        n, T, m, F = data.points.size, data.T, data.m, data.F
        (first, second), S = data.pairs, data.points
        R = first.size
        i, j, k = np.searchsorted(S, data.triplets).T
        pairs = np.concatenate([np.minimum(i, other) * n + np.maximum(i, other) for other in (j, k)])
        known = first * n + second if R else np.unique(pairs)
        off = data.off if R else data.grams.entries(S[known // n], S[known % n]).T
        terms = np.repeat([1.0, -1.0], T), (np.tile(np.arange(T), 2), np.searchsorted(known, pairs))
        gains = sp.csr_array(terms, shape=(T, known.size))
        member = data.members.T
        below = 0.0 if data.cone == "nonnegative" else 1.0  # -alpha_p <= s_f, or alpha_p >= 0
        one = partial(sp.eye_array, format="csr")
        sums = n if R else 0
        blocks = [  # of eps, s, r, and of the entries above the diagonal, of those on it and of the weights
            [one(T), None, None, gains, None, None],
            [one(T), None, None, None, sp.csr_array((T, n)), None],
            [None, member, None, None, None, -one(m)],
            [None, below * member, None, None, None, one(m)],
            [None, None, one(R), -one(known.size)[:R], None, None],
            [None, None, one(R), one(known.size)[:R], None, None],
            [None, None, -data.incidence[:sums], None, one(n)[:sums], None],
        ]
        G, K = sp.block_array(blocks, format="csr"), np.concatenate([off, data.diagonal, np.eye(m)])
        c = np.repeat([1.0, gamma1, 0.0], [T, F, R + len(K)])
        c[-m:] = data.gamma2 * data.q
        return cls(K, G, np.repeat([data.margin, 0.0], [T, G.shape[0] - T]), c, G.shape[0] - sums)

    @cached_property
    def transposed(self) -> Any:
        """G'."""
        return self.G.T.tocsr()

    @cached_property
    def parts(self) -> tuple[Any, Any, Any, Any]:
        """The blocks of e and of x in the first rows, and in the others."""
        x, first, others = -len(self.K), self.G[: self.own], self.G[self.own :]
        return first[:, x:], first[:, :x], others[:, x:], others[:, :x]


class Normal:
    """The normal equations G'WG p = g over p = (x, K alpha), for a diagonal W, reduced to alpha.

    Let 1 be the rows with one variable, whose E = B_1'W_1 B_1 is diagonal, and 2 the others, G = (B, S). With
    the multiplier v of the rows 2 as an unknown, x and then v are eliminated. This leaves
    H = K'MK + J'C^-1 J with Q = S_1'W_1 B_1 and

        M = S_1'W_1 S_1 - Q E^-1 Q',  C = W_2^-1 + B_2 E^-1 B_2',  J = (S_2 - B_2 E^-1 Q') K.
    """

    def __init__(self, rows: Rows, W: Array) -> None:
        self.K, (S, B, self.S, self.B) = rows.K, rows.parts
        weighted = times(S.T.tocsr(), W[: rows.own])
        self.E, self.Q = B.power(2).T @ W[: rows.own], (weighted @ B).tocsr()
        self.QT, self.BT = self.Q.T, self.B.T
        half = times(self.B, 1 / self.E)
        self.J = (self.S - half @ self.QT) @ self.K
        self.C = (half @ self.BT).toarray() + np.diag(1 / W[rows.own :])
        product = (weighted @ S - times(self.Q, 1 / self.E) @ self.QT) @ self.K
        lower = np.zeros((self.K.shape[1],) * 2)
        for strip in np.array_split(np.arange(len(lower)), SETTINGS.strips):
            end = int(strip.max(initial=0)) + 1
            lower[strip, :end] = self.K[:, strip].T @ product[:, :end]
        self.H = np.tril(lower) + np.tril(lower, -1).T + self.J.T @ np.linalg.solve(self.C, self.J)

    def factor(self, more: Array | float) -> None:
        """Factor H plus what other constraints of the weights add to it."""
        self.H = self.H + more
        self.H[np.diag_indices(len(self.H))] *= 1 + SETTINGS.ridge
        self.factored = sl.cho_factor(self.H)

    def solve(self, g: Array) -> Array:
        """Return p, with one step of refinement for alpha."""
        b, a = np.split(g, [self.E.size])
        v = np.linalg.solve(self.C, self.B @ (b / self.E))
        right = (a - self.Q @ (b / self.E)) @ self.K - v @ self.J
        alpha = sl.cho_solve(self.factored, right)
        e = self.K @ (alpha + sl.cho_solve(self.factored, right - self.H @ alpha))
        b = b - self.QT @ e
        v = np.linalg.solve(self.C, self.S @ e + self.B @ (b / self.E))
        return np.concatenate([(b - self.BT @ v) / self.E, e])


def times(A: Any, d: Array) -> sp.csr_array:
    """Return A diag(d) for a sparse A by rows."""
    return sp.csr_array((A.data * d[A.indices], A.indices, A.indptr), shape=A.shape)

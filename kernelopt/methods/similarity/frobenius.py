"""Frobenius fidelities: |D| is the least |D|^2 / (2 s) + s / 2, a fixed point on the scales s."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from kernelopt.certificates.lower.near import Proof
from kernelopt.methods.control import Control
from kernelopt.methods.similarity.iterate import (
    Iterate,
    Response,
    allowance,
    ascent,
    point,
    risk_bounds,
    set_matrix,
)
from kernelopt.methods.similarity.spectra import Ascent
from kernelopt.structure.nearness import Nearness
from kernelopt.validation import Array

FIRST_STEPS, STEPS = 3, 200
SHARE = 0.3  # accuracy of the inner problem, as a share of the tolerance and of the gap
LEAST, START = 1e-6, 1e-2  # scale, relative to the similarity: always, and where K = S to begin with


class Scales:
    """The scales s_ik ~ |X_i - S_ik| of every fidelity, and the means B_i of weights W_i that they make."""

    def __init__(self, read: Nearness, inner: Ascent) -> None:
        self.read, self.inner = read, inner
        self.S = [block.targets for block in read.blocks]
        sizes = [np.where(lengths(S) > 0, lengths(S), 1.0) for S in self.S]
        self.least = [LEAST * size for size in sizes]
        self.B = [S.mean(axis=0) for S in self.S]
        self.W = np.zeros(len(self.S))
        self.s = []
        for i, block in enumerate(read.blocks):
            set_matrix(inner, read, i, self.B[i])
            apart = lengths(block.piece.nearest(self.B[i]) - self.S[i])
            self.s.append(np.where(apart > self.least[i], apart, START * sizes[i]))

    def apply(self) -> None:
        """Put the weights price / (2 s) into the inner problem: a decomposition where a mean moved."""
        self.W = np.array([(self.read.price / (2 * s)).sum() for s in self.s])
        for i, (s, S) in enumerate(zip(self.s, self.S, strict=True)):
            if len(s) > 1:
                self.B[i] = np.tensordot(1 / s, S, 1) / (1 / s).sum()
                set_matrix(self.inner, self.read, i, self.B[i])

    def distances(self) -> tuple[list[Array], list[Array]]:
        """Return |X - S| and <X - S, S> of every fidelity, without X where it stands alone."""
        if all(len(s) == 1 for s in self.s):
            d = [np.sqrt(self.inner.distances[i : i + 1]) for i in range(len(self.s))]
            sizes = [(S**2).sum() for S in self.S]
            products = (self.inner.squares - np.array(sizes) - self.inner.distances) / 2
            return d, [products[i : i + 1] for i in range(len(self.s))]
        differences = [x - S for x, S in zip(point(self.inner, self.read), self.S, strict=True)]
        inner = [
            np.einsum("kp,kp->k", D.reshape(len(D), -1), S.reshape(len(D), -1))
            for D, S in zip(differences, self.S, strict=True)
        ]
        return [lengths(D) for D in differences], inner

    def move(self, d: list[Array]) -> None:
        """Take the distances as the next scales."""
        self.s = [np.maximum(new, least) for new, least in zip(d, self.least, strict=True)]


def frobenius(read: Nearness, control: Control) -> Iterator[Iterate]:
    """Alternate between the inner problem with squares over 2 s, and s = |X - S|.

    Lower bound, free of eigenvalues: U = kappa (X - S) / s with kappa = min(1, min s / |X - S|) is in the
    unit ball, and then price sum U - kappa zz' / (2 gamma) = 2 kappa W (K - B - c zz'), whose least
    eigenvalue is - 2 kappa W theta by the optimality of the projection; so sqrt(kappa) alpha is proved.
    """
    inner = ascent(read)
    scales = Scales(read, inner)
    tol, steps = np.inf, FIRST_STEPS
    totals = np.array([block.total or 0.0 for block in read.blocks])
    learner = read.risk.learner
    while True:
        scales.apply()
        _, gap = inner.solve(scales.W, tol, steps, control.check)
        d, products = scales.distances()
        s, B, W = scales.s, list(scales.B), scales.W
        kappa = min(1.0, *(float((a / np.maximum(b, 1e-300)).min()) for a, b in zip(s, d, strict=True)))
        alpha, gamma = inner.alpha.copy(), inner.gamma.copy()
        paid = read.price * sum(float((p / a).sum()) for p, a in zip(products, s, strict=True))
        below = -paid - 2 * float(totals @ (W * inner.shifts))
        lower = learner.loss.dual_value(kappa**0.5 * alpha, learner.y) + kappa * below
        upper = risk_bounds(inner, read, gap)[1] + read.price * sum(float(each.sum()) for each in d)
        made = Response(read, B, W, alpha, gamma, s, kappa)
        yield Iterate(lower, upper, made.X, alpha, gamma, Proof(kappa**0.5 * alpha, gamma, made.U))
        scales.move(d)
        open_gap = (control.upper - control.lower) / read.factor
        tol, steps = SHARE * max(allowance(read, control, upper), open_gap), STEPS


def lengths(D: Array) -> Array:
    """Return the l2 norms of all entries of D[0], D[1], ..."""
    return np.asarray(np.linalg.norm(D.reshape(len(D), -1), axis=1))

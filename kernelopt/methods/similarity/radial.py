"""Fidelities h(|D|): each is replaced by the square |D|^2 / (2 s) that touches it, a fixed point on s."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from kernelopt.certificates.lower.near import Proof, dual_factor, lengths
from kernelopt.fidelities import Radial
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
LEAST, START = 1e-6, 1e-2  # length |K - S|, relative to |S|, of a scale: always, and where K = S at first


class Scales:
    """The scales s_ik of the fidelities at |X_i - S_ik|, and the means B_i of weights W_i that they make."""

    def __init__(self, read: Nearness, inner: Ascent, radial: Radial) -> None:
        self.read, self.inner, self.radial = read, inner, radial
        self.S = [block.targets for block in read.blocks]
        sizes = [np.where(lengths(S) > 0, lengths(S), 1.0) for S in self.S]
        self.least = [LEAST * size for size in sizes]
        self.B = [S.mean(axis=0) for S in self.S]
        self.W = np.zeros(len(self.S))
        self.s = []
        for i, block in enumerate(read.blocks):
            set_matrix(inner, read, i, self.B[i])
            apart = lengths(block.piece.nearest(self.B[i]) - self.S[i])
            self.s.append(radial.scale(np.where(apart > self.least[i], apart, START * sizes[i])))

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
        """Take the scales at the distances as the next ones."""
        pairs = zip(d, self.least, strict=True)
        self.s = [self.radial.scale(np.maximum(new, least)) for new, least in pairs]


def by_scales(read: Nearness, control: Control, radial: Radial) -> Iterator[Iterate]:
    """Alternate between the inner problem with squares over 2 s, and the scales s of |X - S|.

    Lower bound, free of eigenvalues: U = kappa (X - S) / s is in the domain of L*, and then price sum U -
    kappa zz' / (2 gamma) = 2 kappa W (K - B - c zz'), whose least eigenvalue is - 2 kappa W theta by the
    optimality of the projection; so sqrt(kappa) alpha is proved.
    """
    inner = ascent(read)
    scales = Scales(read, inner, radial)
    tol, steps = np.inf, FIRST_STEPS
    totals = np.array([block.total or 0.0 for block in read.blocks])
    learner = read.risk.learner
    while True:
        scales.apply()
        _, gap = inner.solve(scales.W, tol, steps, control.check)
        d, products = scales.distances()
        s, B, W = scales.s, list(scales.B), scales.W
        kappa = dual_factor(read.fidelity, d, s)
        alpha, gamma = inner.alpha.copy(), inner.gamma.copy()
        paid = read.price * sum(float((p / a).sum()) for p, a in zip(products, s, strict=True))
        below = -paid - 2 * float(totals @ (W * inner.shifts))
        slopes = np.concatenate([kappa * a / b for a, b in zip(d, s, strict=True)])
        conjugates = read.price * sum(read.fidelity.conjugate(np.array([slope])) for slope in slopes)
        lower = learner.loss.dual_value(kappa**0.5 * alpha, learner.y) + kappa * below - conjugates
        far = sum(read.fidelity.value(np.array([length])) for length in np.concatenate(d))
        upper = risk_bounds(inner, read, gap)[1] + read.price * far
        made = Response(read, B, W, alpha, gamma, s, kappa)
        yield Iterate(lower, upper, made.X, alpha, gamma, Proof(kappa**0.5 * alpha, gamma, made.U))
        scales.move(d)
        open_gap = (control.upper - control.lower) / read.factor
        tol, steps = SHARE * max(allowance(read, control, upper), open_gap), STEPS

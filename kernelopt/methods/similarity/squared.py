"""Multiples of the squared Frobenius norm: one eigendecomposition per kernel, all in all."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from kernelopt.certificates.lower.near import Proof
from kernelopt.fidelities import Radial
from kernelopt.methods.control import Control
from kernelopt.methods.similarity.iterate import Iterate, Response, allowance, ascent, set_matrix
from kernelopt.structure.nearness import Nearness

STEPS = 2000  # accelerated steps between two reports
SHARE = 0.1  # of the gap, that the next report asks for
ACCURACY = 0.9  # of the tolerance


def squared(read: Nearness, control: Control, radial: Radial) -> Iterator[Iterate]:
    """Maximise l(alpha) + sum_i min_K [ -z'Kz / (2 gamma_i) + price sum_k |K - S_ik|^2 / (2 s) ].

    The sum of squares is k |K - mean|^2 plus a constant, so that the inner problem is the whole problem.
    """
    inner = ascent(read)
    means = [block.targets.mean(axis=0) for block in read.blocks]
    scales = [radial.scale(np.ones(len(block.fidelities))) for block in read.blocks]  # of any length
    W = read.price * np.array([(1 / (2 * s)).sum() for s in scales])
    constant = 0.0
    for i, (block, mean) in enumerate(zip(read.blocks, means, strict=True)):
        set_matrix(inner, read, i, mean)
        constant += read.price * sum(read.fidelity.value(S - mean) for S in block.targets)
    tol, steps = np.inf, 1
    while True:
        value, gap = inner.solve(W, tol, steps, control.check)
        lower, upper = value + constant, value + constant + gap
        alpha, gamma = inner.alpha.copy(), inner.gamma.copy()
        made = Response(read, means, W, alpha, gamma, scales)
        yield Iterate(lower, upper, made.X, alpha, gamma, Proof(alpha, gamma, made.U))
        tol, steps = max(ACCURACY * allowance(read, control, upper), SHARE * gap), STEPS

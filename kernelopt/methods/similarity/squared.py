"""Squared Frobenius distances: the learning problem itself is the inner problem of `Ascent`."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from kernelopt.certificates.lower.near import Proof
from kernelopt.fidelities import Radial
from kernelopt.methods.checkpoint import kept
from kernelopt.methods.control import Control
from kernelopt.methods.similarity.iterate import (
    BestResponse,
    Iterate,
    allowed_gap,
    inner_problem,
    present_values,
    set_matrix,
)
from kernelopt.methods.similarity.settings import SETTINGS
from kernelopt.structure.nearness import Nearness


def squared_iterates(problem: Nearness, control: Control, radial: Radial) -> Iterator[Iterate]:
    """Solve the problem for L(D) = |D|_F^2 / (2 s), where s is a constant.

    The sum of the fidelities of one kernel is a square around the mean B_i of its similarities,

        price sum_k L(K_i - S_ik) = W_i |K_i - B_i|_F^2 + price sum_k L(S_ik - B_i)

    with W_i = price sum_k 1 / (2 s). So `Ascent` maximises the dual of the problem, up to the constant
    price sum_ik L(S_ik - B_i). One eigendecomposition of every B_i is enough.
    """
    inner = inner_problem(problem, control.resumed)
    means = [block.targets.mean(axis=0) for block in problem.blocks]
    scales = [radial.scale(np.ones(len(block.fidelities))) for block in problem.blocks]  # s, at any length
    W = problem.price * np.array([(1 / (2 * s)).sum() for s in scales])
    constant = 0.0
    for i, (block, mean) in enumerate(zip(problem.blocks, means, strict=True)):
        set_matrix(inner, problem, i, mean)
        constant += problem.price * sum(problem.fidelity.value(S - mean) for S in block.targets)
    tol, steps = np.inf, 1  # bounds are reported after the first step
    while True:
        value, gap = inner.solve(W, tol, steps)
        lower, upper = value + constant, value + constant + gap
        alpha, gamma = inner.alpha.copy(), inner.gamma.copy()
        response = BestResponse(problem, present_values(inner, problem), scales)
        state = kept(alpha=alpha, gamma=gamma)
        yield Iterate(lower, upper, response.X, alpha, gamma, Proof(alpha, gamma, response.U), state)
        tol = max(
            SETTINGS.squared_accuracy * allowed_gap(problem, control, upper), SETTINGS.gap_reduction * gap
        )
        steps = SETTINGS.squared_steps

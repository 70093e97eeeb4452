"""The certificate of kernels near similarities, computed anew from a primal and a dual point."""

from __future__ import annotations

import numpy as np

from kernelopt.certificates import Certificate
from kernelopt.certificates.lower.near import Proof, lower_bound
from kernelopt.methods.results import closed_certificate
from kernelopt.methods.similarity.iterate import Iterate
from kernelopt.methods.similarity.settings import SETTINGS
from kernelopt.numerics.rounding import gamma
from kernelopt.numerics.semidefinite import semidefinite_beyond
from kernelopt.structure.evaluation import Evaluator
from kernelopt.structure.nearness import Block, Nearness
from kernelopt.structure.structure import Structure
from kernelopt.validation import Array


def certify_iterate(
    structure: Structure, problem: Nearness, best: Iterate, proof: Proof
) -> tuple[Certificate, dict[int, float]]:
    """Return the certificate of a primal and a dual point, and the multipliers of the traces by position.

    Of the iterations only the two points are used. The upper bound is the objective at X, see `feasible`,
    with the risk of the machine of alpha and gamma. The lower bound, without the factor and the offset, is

        l(alpha) - price sum_ik (<U_ik, S_ik> + L*(U_ik)) + sum_i min <G_i, X_i>,
        G_i = price sum_k U_ik - A_i / (2 gamma_i),

    with alpha, gamma and U_ik projected on their domains. A_i is the derivative of z'K_i z by the variable.
    For a matrix of trace tau_i it is zz', and the minimum over X_i is tau_i lambda_min(G_i).
    """
    X = [feasible(block, x) for block, x in zip(problem.blocks, best.X(), strict=True)]
    point = {block.piece.variable.id: x for block, x in zip(problem.blocks, X, strict=True)}
    upper, machines = Evaluator(structure, [(best.alpha, 1 / best.gamma)]).outward(point)
    lower, multipliers = lower_bound(problem, proof, upper)
    return closed_certificate(structure, lower, upper, point, [proof.alpha], machines), multipliers


def feasible(block: Block, X: Array) -> Array:
    """Return X made positive semidefinite beyond rounding, or non-negative, and scaled to its trace."""
    if block.V is None:
        X = (X + X.T) / 2
        if not semidefinite_beyond(X, SETTINGS.roundings * gamma(len(X) + 2) * float(np.trace(X))):
            X = block.piece.project(X)
            X = (X + X.T) / 2
        size = float(np.trace(X))
    else:
        X = np.maximum(X, 0.0)
        size = float(X.sum())
    return X if block.total is None or not size > 0 else X * (block.total / size)

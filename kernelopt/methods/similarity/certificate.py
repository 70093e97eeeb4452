"""The certificate of kernels near similarities, from the data, a point and a dual point alone."""

from __future__ import annotations

import numpy as np

from kernelopt.certificates import Certificate
from kernelopt.certificates.lower.near import Proof, lower_bound
from kernelopt.methods.results import closed_certificate
from kernelopt.methods.similarity.iterate import Iterate
from kernelopt.structure.evaluation import Evaluator
from kernelopt.structure.nearness import Block, Nearness
from kernelopt.structure.structure import Structure
from kernelopt.validation import Array

ROUND_OFF = 1e-12  # of an eigenvalue decomposition, relative to the largest entry


def certificate(
    structure: Structure, read: Nearness, best: Iterate, proof: Proof
) -> tuple[Certificate, list[float]]:
    """Return bounds that repeat nothing of what a method computed, and the sigma of every block.

    upper: the objective at X, made PSD with its trace, with the machine of alpha and gamma.
    lower: l(alpha) - price sum (<U, S> + L*(U)) + sum_i tau_i lambda_min(price sum U - zz' / (2 gamma_i)),
    with alpha, gamma and U brought into their domains first.
    """
    X = [cleaned(block, x) for block, x in zip(read.blocks, best.X(), strict=True)]
    point = {block.piece.variable.id: x for block, x in zip(read.blocks, X, strict=True)}
    upper, machines = Evaluator(structure, [(best.alpha, 1 / best.gamma)]).outward(point)
    lower, least = lower_bound(read, proof, upper)
    return closed_certificate(structure, lower, upper, point, [proof.alpha], machines), least


def cleaned(block: Block, X: Array) -> Array:
    """Return X without negative eigenvalues beyond round-off, or negative entries, with its trace."""
    if block.V is None:
        X = (X + X.T) / 2
        if block.piece.linear_minimum(X) < -ROUND_OFF * float(np.abs(X).max()):
            X = block.piece.nearest(X)
            X = (X + X.T) / 2
        size = float(np.trace(X))
    else:
        X = np.maximum(X, 0.0)
        size = float(X.sum())
    return X if block.total is None or not size > 0 else X * (block.total / size)

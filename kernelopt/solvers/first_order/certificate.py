"""The certificate of kernels near similarities, from the data, a point and a dual point alone."""

from __future__ import annotations

import numpy as np

from kernelopt.certificates import Certificate
from kernelopt.certificates.certify import uncrossed
from kernelopt.solvers.first_order.iterate import Iterate, Proof
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
    upper, machines = Evaluator(structure, [(best.alpha, 1 / best.gamma)]).at(point)
    lower, least = lower_bound(read, proof, upper)
    reason = ""
    if lower > upper:
        lower, upper, reason = uncrossed(lower, upper, maximize=False)
    return Certificate(
        lower,
        upper,
        "closed",
        reason=reason,
        feasible=True,
        point={variable: point[variable.id] for variable in structure.user_variables},
        alphas=(proof.alpha,),
        machines=machines,
    ), least


def lower_bound(read: Nearness, proof: Proof, upper: float) -> tuple[float, list[float]]:
    """Return the bound of a dual point, and the sigma of every block; `upper` is any value attained."""
    learner = read.risk.learner
    alpha = learner.loss.project(proof.alpha, learner.y, learner.bias is not None)
    gamma = np.maximum(proof.gamma, 1e-12)
    gamma = gamma / max(1.0, gamma.sum())
    z, known = read.padded(alpha), (upper - read.offset) / read.factor
    bound, least = learner.loss.conjugate(alpha, learner.y), []
    for block, U, share in zip(read.blocks, proof.U(), gamma, strict=True):
        pairs = list(zip(block.fidelities, U, strict=True))
        G = -block.pull(z) / (2 * share)
        for fidelity, u in pairs:
            u = fidelity.admitted(u)
            G += read.price * u
            bound -= fidelity.paid(u) / read.factor
        bound += block.least(G, read.price, known)
        least.append(read.factor * block.piece.least(G))
    return read.offset + read.factor * bound, least


def cleaned(block: Block, X: Array) -> Array:
    """Return X without negative eigenvalues beyond round-off, or negative entries, with its trace."""
    if block.V is None:
        X = (X + X.T) / 2
        if block.piece.least(X) < -ROUND_OFF * float(np.abs(X).max()):
            X = block.piece.nearest(X)
            X = (X + X.T) / 2
        size = float(np.trace(X))
    else:
        X = np.maximum(X, 0.0)
        size = float(X.sum())
    return X if block.total is None or not size > 0 else X * (block.total / size)

"""The certificate of kernels near similarities, from the data, a point and a dual point alone."""

from __future__ import annotations

import numpy as np

from kernelopt.certificates import Certificate
from kernelopt.certificates.gap import floor
from kernelopt.certificates.minorants import gain_of
from kernelopt.rounding import gamma as roundings
from kernelopt.rounding import upwards
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
    upper, machines = Evaluator(structure, [(best.alpha, 1 / best.gamma)]).outward(point)
    lower, least = lower_bound(read, proof, upper)
    return Certificate(
        lower,
        upper,
        "closed",
        feasible=True,
        point={variable: point[variable.id] for variable in structure.user_variables},
        alphas=(proof.alpha,),
        machines=machines,
        floor=floor(structure),
    ), least


def lower_bound(read: Nearness, proof: Proof, upper: float) -> tuple[float, list[float]]:
    """Return the bound of a dual point, and the sigma of every block; `upper` is any value attained.

    All roundings are paid for.
    """
    learner = read.risk.learner
    alpha = learner.loss.project(proof.alpha, learner.y, learner.bias is not None)
    gamma = np.maximum(proof.gamma, 1e-12)
    gamma = gamma / max(1.0, gamma.sum())
    z, known = read.padded(alpha), (upper - read.offset) / read.factor
    gain, _ = gain_of(learner, alpha)
    bound, lost, least = gain.value, gain.error, list[float]()
    for block, U, share in zip(read.blocks, proof.U(), gamma, strict=True):
        pairs = list(zip(block.fidelities, U, strict=True))
        G = -block.pull(z) / (2 * share)
        size = float(np.linalg.norm(G))
        for fidelity, u in pairs:
            u = fidelity.admitted(u)
            G += read.price * u
            size += read.price * float(np.linalg.norm(u))
            bound -= fidelity.paid(u) / read.factor
            lost += (fidelity.paid_error(u) + roundings(4) * abs(fidelity.paid(u))) / read.factor
        paid = block.least(G, read.price, known, roundings(16) * size)
        bound += paid
        lost += roundings(8) * (abs(bound) + abs(paid))
        least.append(read.factor * block.piece.least(G))
    value = read.offset + read.factor * bound
    size = abs(read.offset) + abs(read.factor * bound)
    return -upwards(-value + read.factor * lost + roundings(8) * size), least


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

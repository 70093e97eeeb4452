"""A combination of kernels of any signature whose least eigenvalue is about the largest possible."""

from __future__ import annotations

import numpy as np

from kernelopt.numerics.decompositions import eigenpairs, eigenvalues
from kernelopt.numerics.matrix_inequality import SmallProgram, solve_small
from kernelopt.validation import Array

RANGE = 1e-14  # of the largest eigenvalue of sum_i K_i^2: smaller ones are outside the joint range
ROUNDS = 40  # of eigenvectors; a few are usual
NEW_VECTORS = 6  # eigenvectors that are added in a round
ACCEPTED = 0.3  # of the largest least eigenvalue: a combination with this share of it is well inside
PRECISION = 1e-3  # of the trace over the order: gap of the small programmes
NONE = 1e-9  # of the mean eigenvalue: a largest least eigenvalue below this counts as zero


def largest_least_eigenvalue(stack: Array, mu: Array, D: Array, trace: float) -> Array | None:
    """Return weights mu + D x for which K is well inside the PSD matrices on the joint range, or None.

    The problem max t subject to K >> t I on the joint range of all K_i is solved on a growing space V of
    eigenvectors: V'K V >> t I follows from the former.
    """
    m, N = stack.shape[:2]
    flat = stack.reshape(m, -1)
    sizes = np.abs(flat).max(axis=1)
    scaled = [K / s for K, s in zip(stack, sizes, strict=True) if s > 0]
    values, vectors = eigenpairs(np.asarray(sum(K @ K for K in scaled)))
    Q = vectors[:, values > RANGE * values[-1]]
    if not D.shape[1]:
        return None
    mean = trace / Q.shape[1]
    reduced = np.stack(
        [Q.T @ (mu @ flat).reshape(N, N) @ Q] + [Q.T @ (d @ flat).reshape(N, N) @ Q for d in D.T]
    )
    x, V = np.zeros(D.shape[1]), np.zeros((Q.shape[1], 0))
    for _ in range(ROUNDS):
        K = np.tensordot(np.append(1.0, x), reduced, 1)
        _, new = eigenpairs(K, NEW_VECTORS)
        V = np.linalg.qr(np.hstack([V, new]))[0]
        S = np.stack([V.T @ R @ V for R in reduced])
        p = x.size
        identity = np.eye(V.shape[1])
        # |x_j| <= 2: |K(mu)|_F <= trace, both at mu and at the centre, and D is orthonormal times the trace.
        A = np.hstack([np.vstack([np.eye(p), -np.eye(p)]), np.zeros((2 * p, 1))])
        start = float(np.linalg.eigvalsh(np.tensordot(np.append(1.0, x), S, 1))[0]) - mean
        program = SmallProgram(
            np.append(np.zeros(p), -1.0),
            np.zeros((p + 1, p + 1)),
            A,
            np.full(2 * p, 2.0),
            S[0],
            np.concatenate([S[1:], -identity[None]]),
        )
        found = solve_small(program, np.append(0.9 * x, start - abs(start) * 0.2), PRECISION * mean, 2 * mean)
        x, bound = found.x[:-1], found.x[-1] + found.gap
        if not bound > NONE * mean:
            return None
        least = float(eigenvalues(np.tensordot(np.append(1.0, x), reduced, 1))[0])
        if least >= ACCEPTED * bound:
            return mu + D @ x
    return None

"""Matrix inequalities of low rank, written on the range of their base kernels.

Where all K_i vanish on a common subspace, sum_i w_i K_i >> 0 has no interior, and interior-point
methods fail. With Q an orthonormal basis of the joint range, Q'KQ >> 0 is the same set.
"""

from __future__ import annotations

from typing import Any

import cvxpy as cp
import numpy as np

from kernelopt.grams import Grams
from kernelopt.language.combination import combine
from kernelopt.language.penalty import Penalty
from kernelopt.language.terms import terms
from kernelopt.validation import Array

RANGE_TOLERANCE = 1e-10


def joint_range(K: cp.Expression, n: int) -> Array | None:
    """Return an orthonormal basis of the joint range of the base kernels on the first n points.

    None where K is not a combination or the range is everything.
    """
    parts = terms(K)
    if parts is None:
        return None
    blocks = [gram[:n, :n] for _, grams in parts for gram in grams]
    scaled = [block / np.abs(block).max() for block in blocks if block.any()]
    if not scaled:
        return None
    basis, sizes, _ = np.linalg.svd(np.hstack(scaled), full_matrices=False)
    rank = int((sizes > RANGE_TOLERANCE * sizes[0]).sum())
    return None if rank == n else basis[:, :rank]


def restricted(K: cp.Expression, Q: Array) -> cp.Expression:
    """Return Q' K[:n, :n] Q as a combination, where Q has n rows."""
    n = len(Q)
    pieces = []
    for weights, grams in terms(K) or []:
        stack = np.stack([Q.T @ gram[:n, :n] @ Q for gram in grams])
        pieces.append(combine(weights, Grams.from_array((stack + stack.transpose(0, 2, 1)) / 2)))
    return pieces[0] if len(pieces) == 1 else sum(pieces[1:], pieces[0])


def facial_reduction(constraint: Any) -> tuple[Any, Array | None]:
    """Return a constraint K >> 0 on the range of K with its basis, any other constraint with None."""
    if not isinstance(constraint, cp.constraints.PSD):
        return constraint, None
    K = constraint.args[0]
    Q = joint_range(K, K.shape[0])
    if Q is None:
        return constraint, None
    smaller = restricted(K, Q) >> 0
    return (smaller.set_label(constraint.label) if constraint.label else smaller), Q


def faced_penalty(part: Penalty, K: cp.Expression, n: int) -> tuple[Penalty, cp.Expression | None]:
    """Return a semidefinite penalty on the range of K, and f there; any other penalty with None."""
    Q = joint_range(K, n) if part.form == "semidefinite" else None
    if Q is None:
        return part, None
    g = cp.Variable(Q.shape[1], name="g")
    f = Q @ g
    return Penalty(f, cp.matrix_frac(g, restricted(K, Q)), None, part.form), f

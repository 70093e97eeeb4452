"""Facial reduction: matrix inequalities of low rank, restricted to the range of their base kernels.

If all K_i vanish on a common subspace, no point satisfies sum_i w_i K_i >> 0 strictly, and interior-point
methods fail. With an orthonormal basis Q of the joint range, Q'KQ >> 0 describes the same set.

References
----------
.. [1] Drusvyatskiy, Wolkowicz, The many faces of degeneracy in conic optimization (2017).
"""

from __future__ import annotations

from typing import Any

import cvxpy as cp
import numpy as np

from kernelopt.grams import Grams
from kernelopt.language.combination import combine
from kernelopt.language.terms import terms
from kernelopt.validation import Array

RANGE_TOLERANCE = 1e-10  # relative singular values below this count as zero


def joint_range(K: cp.Expression, n: int) -> Array | None:
    """Return an orthonormal basis of the joint range of the base kernels on the first n points.

    None is returned if K is not a combination, or if the range is the whole space.
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


def restricted_to_range(K: cp.Expression, Q: Array) -> cp.Expression:
    """Return Q' K[:n, :n] Q as a combination, for Q with n rows."""
    n = len(Q)
    pieces = []
    for weights, grams in terms(K) or []:
        stack = np.stack([Q.T @ gram[:n, :n] @ Q for gram in grams])
        pieces.append(combine(weights, Grams.from_array((stack + stack.transpose(0, 2, 1)) / 2)))
    return pieces[0] if len(pieces) == 1 else sum(pieces[1:], pieces[0])


def facial_reduction(constraint: Any) -> tuple[Any, Array | None]:
    """Return (Q'KQ >> 0, Q) for a constraint K >> 0 of low rank, and (constraint, None) for any other."""
    K = constraint.args[0]
    Q = joint_range(K, K.shape[0]) if isinstance(constraint, cp.constraints.PSD) else None
    return (constraint, None) if Q is None else restricted(constraint, Q)


def restricted(constraint: Any, V: Array) -> tuple[Any, Array]:
    """Return (V'KV >> 0, V) for a constraint K >> 0, with its label."""
    smaller = restricted_to_range(constraint.args[0], V) >> 0
    return (smaller.set_label(constraint.label) if constraint.label else smaller), V

"""An orthonormal basis of the span of some kernels in the Frobenius inner product, also of collinear ones."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from kernelopt.numerics.ball import Ball
from kernelopt.structure.combined.settings import SETTINGS
from kernelopt.validation import Array, Mask


class FrobeniusBasis(NamedTuple):
    r"""Coordinates y of weights mu = c T y + (dependent directions), with |K(mu)|_F >= c shrink |y|.

    K(mu) of trace c that is PSD has \|K(mu)\|_F <= c. Hence |y| <= 1 / shrink for all such mu without
    components in dependent directions.

    Attributes
    ----------
    T : array of shape (m, d)
        Column j holds the weights of a combination of Frobenius norm one. The columns are nearly orthogonal
        as matrices.
    dependent : array of shape (m, e)
        Directions whose combinations of the kernels, scaled to norm one, vanish up to rounding.
    norms : array of shape (m,)
        The Frobenius norms of the kernels; one in the place of zero.
    zero : array of shape (m,) of bool
        Which kernels are zero.
    copies : array of shape (m,) of bool
        Which kernels are equal to an earlier one, entry by entry. Their rows of T are zero: the weight of a
        copy counts as one of the first.
    shrink : float in (0, 1]
        Its distance from one bounds the rounding errors of the basis.
    """

    T: Array
    dependent: Array
    norms: Array
    zero: Mask
    copies: Mask
    shrink: float


def frobenius_basis(stack: Array) -> FrobeniusBasis:
    """Return an orthonormal basis of the span of the matrices of a stack, shape (m, N, N).

    An eigenvector of the Gram matrix <K_i, K_j> of an eigenvalue g gives a combination of norm sqrt(g). Small
    eigenvalues have no correct digits. Their combinations are therefore formed, scaled to norm one, and
    their own Gram matrix is taken.
    """
    m, order = len(stack), stack.shape[1]
    flat = stack.reshape(m, -1)
    norms = np.sqrt(np.einsum("ij,ij->i", flat, flat))
    zero: Mask = norms == 0
    copies = equal_to_earlier(stack, norms)
    norms = np.where(zero, 1.0, norms)
    used = np.flatnonzero(~zero & ~copies)
    left = np.zeros((m, used.size))  # the weights of the combinations that are not resolved yet
    left[used, np.arange(used.size)] = 1 / norms[used]
    found: list[Array] = []
    dependent: list[Array] = []
    error = 0.0
    for level in range(SETTINGS.passes):
        if left.shape[1] == 0:
            break
        if level == 0:
            G = gram_matrix(flat, order)[np.ix_(used, used)] / np.outer(norms[used], norms[used])
        else:
            matrices = left.T @ flat
            sizes = np.sqrt(np.einsum("ij,ij->i", matrices, matrices))
            resolved = sizes > SETTINGS.dependent * (np.abs(left).T @ norms)
            dependent.append(left[:, ~resolved])
            left, matrices = left[:, resolved] / sizes[resolved], matrices[resolved] / sizes[resolved, None]
            if left.shape[1] == 0:
                break
            G = gram_matrix(matrices, order)
        values, vectors = np.linalg.eigh(G)
        strong = values > SETTINGS.strong * values[-1]
        found.append(left @ (vectors[:, strong] / np.sqrt(values[strong])))
        error = max(error, product_error(G, order) / float(values[strong][0]))
        left = left @ vectors[:, ~strong]
    dependent.append(left)
    T = np.hstack(found) if found else np.zeros((m, 0))
    if len(found) > 1:
        error = deviation(T, flat, norms, order)
    directions = np.hstack(dependent)
    return FrobeniusBasis(T, directions, norms, zero, copies, float(np.sqrt(max(0.0, 1 - error))))


def equal_to_earlier(stack: Array, norms: Array) -> Mask:
    """Return for every matrix whether an earlier one that is not zero is equal to it, entry by entry."""
    found = np.zeros(len(stack), dtype=bool)
    for i in range(1, len(stack)):
        alike = [k for k in range(i) if norms[k] == norms[i] > 0 and not found[k]]
        found[i] = any(np.array_equal(stack[i], stack[k]) for k in alike)
    return found


def gram_matrix(flat: Array, order: int) -> Array:
    """Return the inner products of matrices stored as rows, with the rounding of 2 `order` additions."""
    m = len(flat)
    G = np.zeros((m, m))
    for start in range(0, order * order, order):
        rows = flat[:, start : start + order]
        G += rows @ rows.T
    return np.asarray((G + G.T) / 2)


def deviation(T: Array, flat: Array, norms: Array, order: int) -> float:
    """Return a bound of |G - I| for the Gram matrix G of the combinations with the weights T."""
    matrices = T.T @ flat
    G = gram_matrix(matrices, order)
    own = (Ball(G) - np.eye(len(G))).norm(2)
    # The entries of a combination have errors whose norm is at most gamma_m sum_i |t_i| |K_i|.
    errors = Ball(Ball.computed(0.0, np.abs(T).T @ norms, len(norms) + 4).rad).norm(2)
    of_entries = errors * (errors + 1) * 2 * Ball(len(G)).root(2)
    return float((own + of_entries + product_error(G, order)).above)


def product_error(G: Array, order: int) -> float:
    """Return a bound of the Frobenius norm of the errors of `gram_matrix`, for matrices of norm one."""
    return float(Ball.computed(0.0, len(G), 2 * order + 16).rad)

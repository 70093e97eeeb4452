"""Kernels that are centred but for rounding: the vector of ones is in their null space, but for rounding."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from kernelopt.numerics.ball import Ball
from kernelopt.structure.structure import Structure
from kernelopt.validation import Array

# |K 1| / sqrt(N), of the norm of K. Centring leaves 5e-14 of a wide Gaussian, whose entries are a thousand
# times as large as those of the result.
VANISHING = 1e-12


class Centring(NamedTuple):
    r"""What rounding has left of centred kernels on the vector of ones.

    Large weights of both signs multiply these errors: K(mu) may have a negative eigenvalue there that says
    nothing of the kernels. Therefore H K(mu) H >> 0 is required in the place of K(mu) >> 0, for the projector
    H = I - 11'/N. A risk with an intercept is the same at K and at H K H, since the dual variables of its
    machine have the sum zero. So the problem is that of the kernels H K_i H.

    Attributes
    ----------
    sizes : array of shape (m,)
        Upper bounds of \|K_i 1\| / sqrt(N), the distances of K_i H from K_i in the Frobenius norm.
    change : float
        The largest of them relative to the norm of K_i.
    """

    sizes: Array
    change: float

    @property
    def remark(self) -> str:
        """What the bounds assume."""
        return (
            f"the kernels are taken as exactly centred, which they are up to {self.change:.0e} of their "
            "norms: K >> 0 holds orthogonally to the vector of ones"
        )

    def errors(self, F: Array) -> Array:
        r"""Return bounds of \|<F F', K_i - H K_i H>\|, shape (m,).

        With r = \|F'1\| / sqrt(N) they are sizes_i r (2 \|F\| + r).
        """
        size, along = Ball(F).norm(2), Ball(F).sum(axis=0).norm(2) / Ball(len(F)).root(2)
        return (along * (size * 2 + along) * self.sizes).above


def read_centring(stack: Array, norms: Array) -> Centring | None:
    """Return the centring of a stack of shape (m, N, N), None where a K_i is not centred.

    `norms` are the Frobenius norms of the K_i, with one in the place of zero.
    """
    sizes = (Ball(stack).sum(axis=2).norm(2, axis=1) / Ball(stack.shape[1]).root(2)).above
    change = float((sizes / norms).max())
    return Centring(sizes, change) if change <= VANISHING else None


def centred(K: Array) -> Array:
    """Return H K H for a symmetric K."""
    means = K.mean(axis=0)
    return np.asarray(K - means - means[:, None] + means.mean())


def has_intercepts(structure: Structure) -> bool:
    """Whether every risk of a problem has an intercept, so that it is the same at K and at H K H."""
    return all(term.learner.bias is not None for term in structure.risks)

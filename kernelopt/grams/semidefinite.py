"""A quick test whether the kernels of a stack are positive semidefinite."""

from __future__ import annotations

import numpy as np

from kernelopt.grams.grams import Grams
from kernelopt.validation import PSD_TOLERANCE

LEADING_POINTS = 100  # order of the block that is tested: its factorisation takes 0.1 ms


def check_leading_blocks(grams: Grams) -> None:
    """Raise `NotPSDError` for a kernel whose block on the first hundred points is indefinite.

    Methods that factor no kernel would not notice an indefinite one. A Cholesky factor of all N points
    would take as long as such a method. Kernels that are PSD by construction are not evaluated.
    """
    if grams.known_semidefinite:
        return
    size = min(grams.n_points, LEADING_POINTS)
    block = grams if size == grams.n_points else grams.block(slice(0, size))
    for i, K in enumerate(block):
        shifted = np.array(K)
        shifted[np.diag_indices(size)] += PSD_TOLERANCE * float(np.abs(np.diag(K)).max(initial=0.0))
        try:
            np.linalg.cholesky(shifted)
        except np.linalg.LinAlgError:  # indefinite, or zero, or singular up to rounding: `factor` decides
            grams.factor(i)

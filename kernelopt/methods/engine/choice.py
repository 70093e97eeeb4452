"""The choice of the provider for the kernels of a problem."""

from __future__ import annotations

from kernelopt.grams.caching import CACHE_BYTES
from kernelopt.grams.stored import ArrayStorage
from kernelopt.methods.control import Control
from kernelopt.methods.engine.compressed import Compressed, numerical_basis
from kernelopt.methods.engine.family import family
from kernelopt.methods.engine.on_the_fly import OnTheFly
from kernelopt.methods.engine.precomputed import Precomputed
from kernelopt.methods.engine.provider import Provider
from kernelopt.methods.engine.radial import Radial
from kernelopt.structure.ball import BallProblem

EXACT_GAP = 1e-4  # below this gap predictions in float32 are not exact enough
# A basis is looked for from this many kernels on. It is used where its rank is at most this share of them:
# a combination then reads a quarter of the numbers, which pays for the projection of the new rows.
FEWEST, RANK_SHARE = 24, 0.25
MATRIX_SHARE = (
    2.0  # the bytes of all matrices in float64 and of the panels in float32, relative to the former
)


def provider_name(read: BallProblem) -> str:
    """Return the name of the provider that `choose_provider` takes."""
    return Precomputed.name


def choose_provider(read: BallProblem, memory: float | None, control: Control) -> Provider:
    """Return the provider of the kernels of a problem within `memory` bytes.

    * Stored arrays: `Compressed` if there are many and their numerical rank is small, else `Precomputed`.
    * Functions of one distance: `Radial`.
    * Other kernels: `Precomputed`, after evaluating them once, if all matrices fit into the memory, else
      `OnTheFly`.

    Parameters
    ----------
    read : BallProblem
    memory : float or None
        None stands for the size of the cache of a stack.
    control : Control
        Its `tol` says how exact predictions need to be.
    """
    grams, reach, n = read.whole, read.reach, read.y.size
    m = len(grams)
    if isinstance(grams.storage, ArrayStorage):
        if m >= FEWEST:
            U = numerical_basis(grams, n)
            if U.shape[1] <= RANK_SHARE * m:
                return Compressed(grams, reach, n, U)
        return Precomputed(grams, reach, n)
    radial = family(grams.storage)
    if radial is not None:
        return Radial(radial, grams, reach, n, exact=control.tol < EXACT_GAP)
    budget = CACHE_BYTES if memory is None else memory
    if 8 * MATRIX_SHARE * m * grams.n_points**2 <= budget:
        return Precomputed(grams, reach, n)
    return OnTheFly(grams, reach, n, budget)

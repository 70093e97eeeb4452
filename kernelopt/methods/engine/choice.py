"""The choice of the provider for the kernels of a problem."""

from __future__ import annotations

import numpy as np
from scipy.linalg import orth

from kernelopt.grams import Grams
from kernelopt.grams.caching import CACHE_BYTES
from kernelopt.grams.stored import ArrayStorage
from kernelopt.methods.engine.family import family
from kernelopt.methods.engine.panels import Panels
from kernelopt.methods.engine.provider import Provider
from kernelopt.methods.engine.radial import Radial, radial_bytes
from kernelopt.methods.engine.settings import SETTINGS
from kernelopt.methods.engine.working_set import is_sparse
from kernelopt.structure.ball import BallProblem
from kernelopt.validation import Array


def provider_name(read: BallProblem, memory: float | None = None) -> str:
    """Return the name of the provider of the kernels of a problem within `memory` bytes.

    * Functions of one distance: "radial".
    * Stored arrays: "compressed" where a sample of their entries has a small numerical rank, else
      "precomputed".
    * Other kernels: "precomputed" if the panels of all points fit into the memory, else "on the fly".

    Parameters
    ----------
    read : BallProblem
    memory : float or None
        None stands for the size of the cache of a stack.
    """
    if family(read.whole.storage) is not None:
        return "radial"
    return panels_name(read, memory) if compressing_basis(read) is None else "compressed"


def panels_name(read: BallProblem, memory: float | None = None) -> str:
    """Return the name of the provider of kernels that no basis compresses."""
    stored = isinstance(read.whole.storage, ArrayStorage)
    return "precomputed" if stored or panel_bytes(read) <= (memory or CACHE_BYTES) else "on the fly"


def choose_provider(read: BallProblem, memory: float | None, tol: float) -> Provider:
    """Return the provider of `provider_name`; the tolerance says how exact predictions need to be."""
    radial = family(read.whole.storage)
    if radial is not None:
        return Radial(radial, read.whole, read.reach, read.n, exact=tol < SETTINGS.exact_gap)
    U = compressing_basis(read)
    name = panels_name(read, memory) if U is None else "compressed"
    most = (memory or CACHE_BYTES) if name == "on the fly" else np.inf
    return Panels(read.whole, read.reach, read.n, name, most, U=U)


def double_provider(read: BallProblem, memory: float | None) -> Provider:
    """Return the provider of any kernels in double precision, within `memory` bytes."""
    return Panels(read.whole, read.reach, read.n, "float64", memory or CACHE_BYTES, np.float64)


def provider_bytes(read: BallProblem) -> float:
    """Return the most memory that the provider needs beside kernels that are given as arrays."""
    if (radial := family(read.whole.storage)) is not None:
        return radial_bytes(radial, usual_support(read), *read.whole.shape[:2])
    return panel_bytes(read) if panels_name(read) == "precomputed" else CACHE_BYTES


def usual_support(read: BallProblem) -> int:
    """Return how many points a working set from n points has at its end, measured within a factor of 2.6.

    That is so where alpha may be zero. The data decide it, and nothing before the search tells.
    """
    dense = any(not is_sparse(each.loss, each.loss.curve(each.y)) for each in read.learners)
    return read.n if dense or read.n < SETTINGS.grown else int(read.n**SETTINGS.usual_growth)


def compressing_basis(read: BallProblem) -> Array | None:
    """Return the basis of stored kernels that need few combinations; None where there is no such basis."""
    grams, m = read.whole, len(read.whole)
    if m < SETTINGS.fewest_kernels or not isinstance(grams.storage, ArrayStorage):
        return None
    U = numerical_basis(grams, read.n)
    return U if U.shape[1] <= SETTINGS.rank_share * m else None


def numerical_basis(grams: Grams, n: int, seed: int = 0) -> Array:
    """Return U, shape (m, r), with orthonormal columns and K_m ~ sum_r U_mr B_r for matrices B_r.

    The kernels have diagonals of at most one here. A singular value decomposition of a sample of entries
    gives U, so that nothing is proved of the other entries.
    """
    rng = np.random.default_rng(seed)
    rows, columns = rng.integers(0, n, (2, SETTINGS.sampled_entries))
    sizes = grams.diagonals[:, :n].max(axis=1, initial=0.0)
    scales = np.divide(1.0, sizes, out=np.zeros(sizes.size), where=sizes > 0)
    sampled = scales[:, None] * grams.entries(rows, columns)
    # R' of a QR decomposition of the long transpose has the same range and values, at a quarter of the time.
    R = np.asarray(np.linalg.qr(sampled.T, mode="r"))
    return np.ascontiguousarray(orth(R.T, SETTINGS.basis_accuracy))


def panel_bytes(read: BallProblem) -> float:
    """Return the bytes of the panels of all points and of the combined matrix, in float32."""
    m, n = len(read.whole), read.n
    return 4.0 * (m * n * (n + 1) / 2 + n**2)

"""The choice of the provider for the kernels of a problem."""

from __future__ import annotations

from kernelopt.grams.caching import CACHE_BYTES
from kernelopt.grams.stored import ArrayStorage
from kernelopt.methods.control import Control
from kernelopt.methods.engine.compressed import Compressed, numerical_basis
from kernelopt.methods.engine.family import family
from kernelopt.methods.engine.on_the_fly import Double, OnTheFly
from kernelopt.methods.engine.precomputed import Precomputed
from kernelopt.methods.engine.provider import Provider
from kernelopt.methods.engine.radial import Radial
from kernelopt.structure.ball import BallProblem
from kernelopt.validation import Array

EXACT_GAP = 1e-4  # below this gap predictions in float32 are not exact enough
# A basis is looked for from this many kernels on. It is used where its rank is at most this share of them:
# a combination then reads a quarter of the numbers, which pays for the projection of the new rows.
FEWEST, RANK_SHARE = 24, 0.25
MATRIX_SHARE = (
    2.0  # the bytes of all matrices in float64 and of the panels in float32, relative to the former
)


def provider_kind(read: BallProblem, memory: float | None = None) -> type[Provider]:
    """Return the provider of the kernels of a problem within `memory` bytes, without reading a kernel.

    Of stored kernels it is `Precomputed`; `choose_provider` reads a sample of their entries, and may take its
    subclass `Compressed`.

    * Stored arrays: `Precomputed`.
    * Functions of one distance: `Radial`.
    * Other kernels: `Precomputed`, after evaluating them once, if all matrices fit into the memory, else
      `OnTheFly`.

    Parameters
    ----------
    read : BallProblem
    memory : float or None
        None stands for the size of the cache of a stack.
    """
    grams = read.whole
    if isinstance(grams.storage, ArrayStorage):
        return Precomputed
    if family(grams.storage) is not None:
        return Radial
    return Precomputed if evaluated_bytes(read) <= available(memory) else OnTheFly


def provider_name(read: BallProblem, memory: float | None = None) -> str:
    """Return the name of the provider that `choose_provider` takes."""
    kind = provider_kind(read, memory)
    return kind.name if compressing_basis(read) is None else Compressed.name


def choose_provider(read: BallProblem, memory: float | None, control: Control) -> Provider:
    """Return the provider of `provider_kind`, or `Compressed` for stored kernels of small numerical rank.

    Parameters
    ----------
    read, memory
        As for `provider_kind`.
    control : Control
        Its `tol` says how exact predictions need to be.
    """
    grams, reach, n = read.whole, read.reach, read.n
    radial, kind = family(grams.storage), provider_kind(read, memory)
    if kind is Radial and radial is not None:
        return Radial(radial, grams, reach, n, exact=control.tol < EXACT_GAP)
    if kind is OnTheFly:
        return OnTheFly(grams, reach, n, available(memory))
    U = compressing_basis(read)
    return Precomputed(grams, reach, n) if U is None else Compressed(grams, reach, n, U)


def double_provider(read: BallProblem, memory: float | None) -> Provider:
    """Return the provider of any kernels in double precision, within `memory` bytes."""
    return Double(read.whole, read.reach, read.n, available(memory))


def provider_bytes(read: BallProblem) -> float:
    """Return the most memory that the provider needs beside kernels that are given as arrays."""
    m, n, kind = len(read.whole), read.n, provider_kind(read)
    if kind is OnTheFly:
        return available(None)
    if kind is Radial:  # distances and combined matrix in float32, and images in float64
        return 2 * 4.0 * n**2 + 8.0 * m * n
    panels = 4.0 * (m * n * (n + 1) / 2 + n**2)
    return panels if isinstance(read.whole.storage, ArrayStorage) else panels + evaluated_bytes(read)


def compressing_basis(read: BallProblem) -> Array | None:
    """Return the basis of stored kernels that need few combinations; None where there is no such basis."""
    grams, m = read.whole, len(read.whole)
    if m < FEWEST or not isinstance(grams.storage, ArrayStorage):
        return None
    U = numerical_basis(grams, read.n)
    return U if U.shape[1] <= RANK_SHARE * m else None


def evaluated_bytes(read: BallProblem) -> float:
    """Return the bytes of all matrices where they are evaluated once."""
    return 8 * MATRIX_SHARE * len(read.whole) * read.whole.n_points**2


def available(memory: float | None) -> float:
    """Return the bytes that a provider may take."""
    return CACHE_BYTES if memory is None else memory

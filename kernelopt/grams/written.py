"""Stacks of kernel functions as records: the kernels with the points that are needed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any

import numpy as np

from kernelopt.errors import InputError, MethodError
from kernelopt.grams.caching import read_only
from kernelopt.grams.evaluated import KernelStorage
from kernelopt.grams.grams import Grams
from kernelopt.grams.joined import JoinedStorage
from kernelopt.grams.normalized import CenteredStorage, ChangedStorage, ScaledStorage, SphericalStorage
from kernelopt.grams.storage import Storage
from kernelopt.grams.stored import IdentityStorage
from kernelopt.kernels import Kernel
from kernelopt.records import record
from kernelopt.validation import Array, Index, as_indices

SAMPLED = 64  # points: no kernel is evaluated or read as a whole


def leaves(storage: Storage) -> Iterator[Storage]:
    """Yield what a storage is made of: storages of kernel functions, of numbers, and identities."""
    match storage:
        case JoinedStorage():
            for part in storage.parts:
                yield from leaves(part)
        case ChangedStorage():
            yield from leaves(storage.base)
        case _:
            yield storage


def is_evaluated(storage: Storage) -> bool:
    """Whether a storage is made of kernel functions, and perhaps identities: it has values at new points."""
    return all(isinstance(leaf, KernelStorage | IdentityStorage) for leaf in leaves(storage))


def sampled(grams: Grams) -> Array:
    """Return the kernels between some points, spread over all, which tell a stack from others."""
    spread = np.linspace(0, grams.n_points - 1, min(grams.n_points, SAMPLED)).astype(int)
    return np.asarray(grams.block(spread))


@record("identity", IdentityStorage)
def identity(n_points: int) -> Storage:
    """Return the identity."""
    return IdentityStorage(n_points)


@record("joined", JoinedStorage)
def joined(parts: tuple[Storage, ...]) -> Storage:
    """Return the matrices of all parts."""
    if len({part.n_points for part in parts}) != 1:
        raise InputError("the parts of a stack must be on the same points")
    return JoinedStorage(parts)


@record("scaled", ScaledStorage)
def scaled(base: Storage, constants: Annotated[Array, "m"]) -> Storage:
    """Return the matrices of a storage, divided by positive constants."""
    if constants.size != len(base) or not (constants > 0).all():
        raise InputError(f"constants must be {len(base)} positive numbers, got {constants}.")
    return ScaledStorage(base, constants)


@record("spherical", SphericalStorage)
def spherical(base: Storage) -> Storage:
    """Return the matrices of a storage, normalised by their diagonals."""
    return SphericalStorage(base)


def centred_parts(storage: CenteredStorage) -> dict[str, Any]:
    """Return the storage of all points that enter the mean, its row means, and the points."""
    return {"whole": storage.whole, "row_means": storage.whole.row_means, "rows": storage.points}


@record("centred", CenteredStorage, centred_parts)
def centred(whole: Storage, row_means: Annotated[Array, "m N"], rows: Annotated[Index, "n"]) -> Storage:
    """Return a centred storage, whose means are known."""
    if row_means.shape != whole.shape[:2]:
        raise InputError(f"row_means must have shape {whole.shape[:2]}, got {row_means.shape}.")
    whole.row_means = read_only(row_means)
    rows = as_indices(rows, whole.n_points, "rows")
    return CenteredStorage(whole.block(rows), whole, rows)


def evaluated_parts(storage: KernelStorage) -> dict[str, Any]:
    """Return the kernels and the points, or raise a `MethodError` if a file cannot hold them."""
    if not isinstance(storage.X, np.ndarray) or not all(isinstance(k, Kernel) for k in storage.kernels):
        kinds = ", ".join(sorted({type(k).__name__ for k in storage.kernels}))
        raise MethodError(
            "a stack that is saved must be of kernels of kernelopt.kernels on numbers or strings, got "
            f"kernels of class {kinds}. Evaluate them: solve with Grams.from_array(numpy.asarray(grams)), "
            "and pass the saved model the kernels between new points and the N as an array."
        )
    return {"kernels": storage.kernels, "X": storage.X}


@record("kernels", KernelStorage, evaluated_parts)
def evaluated(kernels: tuple[Kernel, ...], X: Any) -> Storage:
    """Return the matrices of kernel functions on points."""
    return KernelStorage(kernels, X)

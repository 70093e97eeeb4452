"""Stacks of kernel functions as JSON and arrays, with the points that are needed, and back.

Kernel functions are written as text, and their scaling by its constants.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from kernelopt.errors import InputError, MethodError
from kernelopt.grams.caching import read_only
from kernelopt.grams.centered import CenteredStorage
from kernelopt.grams.evaluated import KernelStorage, is_numeric
from kernelopt.grams.joined import JoinedStorage
from kernelopt.grams.normalized import KnownConstants, ScaledStorage, SphericalStorage
from kernelopt.grams.storage import ChosenStorage, Storage
from kernelopt.grams.stored import IdentityStorage
from kernelopt.kernels import Kernel, kernel_text, parse_kernel
from kernelopt.validation import Array, Index, as_float_array, as_indices, shown

Description = dict[str, Any]  # of one storage: its form is the first key


def leaves(storage: Storage) -> Iterator[Storage]:
    """Yield what a storage is made of: storages of kernel functions, of numbers, and identities."""
    match storage:
        case JoinedStorage():
            for part in storage.parts:
                yield from leaves(part)
        case ScaledStorage():
            yield from leaves(storage.unscaled()[0])
        case SphericalStorage():
            yield from leaves(storage.base)
        case CenteredStorage() | ChosenStorage():
            yield from leaves(storage.parts()[0])
        case _:
            yield storage


def is_evaluated(storage: Storage) -> bool:
    """Whether a storage is made of kernel functions, and perhaps identities: it has values at new points."""
    return all(isinstance(leaf, KernelStorage | IdentityStorage) for leaf in leaves(storage))


class StackWriter:
    """Describes stacks of kernel functions, and collects what the descriptions refer to."""

    def __init__(self) -> None:
        self._points: list[tuple[Array, np.ndarray[Any, np.dtype[np.bool_]]]] = []  # with the needed rows
        self._means: list[tuple[Array, Index]] = []

    def describe(self, storage: Storage, rows: Index) -> Description:
        """Return the description of a storage, and keep what its values at the points `rows` need.

        Raises
        ------
        MethodError
            If a kernel cannot be written as text, or its points are neither numbers nor strings.
        """
        match storage:
            case IdentityStorage():
                return {"identity": True}
            case JoinedStorage():
                return {"joined": [self.describe(part, rows) for part in storage.parts]}
            case ScaledStorage():
                base, constants = storage.unscaled()
                return {"scaled": constants.tolist(), "base": self.describe(base, rows)}
            case SphericalStorage():
                return {"spherical": True, "base": self.describe(storage.base, rows)}
            case ChosenStorage():
                whole, chosen = storage.parts()
                return {"chosen": chosen.tolist(), "base": self.describe(whole, rows)}
            case CenteredStorage():
                _, whole, indices = storage.parts()
                self._means.append((whole.row_means, indices))
                k, points = len(self._means) - 1, np.arange(whole.n_points)  # the mean was taken over all
                return {"centred": k, "base": self.describe(whole, points)}
            case KernelStorage():
                return {"kernels": texts(storage), "points": self._number_of_points(storage.X, rows)}
        raise MethodError(
            f"a stack that is saved must be of kernel functions, got {storage.described()}. Pass kernels "
            "and points: Grams.from_kernels(kernels, X)."
        )

    @property
    def arrays(self) -> dict[str, Any]:
        """The arrays that the descriptions so far refer to."""
        found: dict[str, Any] = {}
        for k, (X, needed) in enumerate(self._points):
            found |= {f"points.{k}": as_stored(X[needed]), f"points.{k}.rows": np.flatnonzero(needed)}
        for k, (means, indices) in enumerate(self._means):
            found |= {f"means.{k}": means, f"means.{k}.rows": indices}
        return found

    def _number_of_points(self, X: Array, rows: Index) -> int:
        known = [k for k, (other, _) in enumerate(self._points) if np.array_equal(other, X)]
        if not known:
            self._points.append((X, np.zeros(len(X), dtype=bool)))
        k = known[0] if known else len(self._points) - 1
        self._points[k][1][rows] = True
        return k


def texts(storage: KernelStorage) -> list[str]:
    """Return the kernel functions of a storage as text."""
    if not isinstance(storage.X, np.ndarray) or not all(isinstance(k, Kernel) for k in storage.kernels):
        kinds = ", ".join(sorted({type(k).__name__ for k in storage.kernels}))
        raise MethodError(
            "a stack that is saved must be of kernels of kernelopt.kernels on numbers or strings, got "
            f"kernels of class {kinds}. Evaluate them: solve with Grams.from_array(numpy.asarray(grams)), "
            "and pass the saved model the kernels between new points and the N as an array."
        )
    try:
        return [kernel_text(kernel) for kernel in storage.kernels if isinstance(kernel, Kernel)]
    except InputError as error:
        raise MethodError(str(error)) from error


def as_stored(points: Any) -> Any:
    """Return points as a file can hold them: strings as an array of text.

    Raises
    ------
    MethodError
        If numpy cuts a string off, as it does with null characters at the end.
    """
    if is_numeric(points):
        return points
    text = points.astype(str)
    for i in np.flatnonzero(text != points)[:1]:
        raise MethodError(
            f"strings that are saved must not end with a null character, got {shown(points[i])}. Strip it."
        )
    return text


class StackReader:
    """Makes stacks from descriptions.

    Parameters
    ----------
    arrays : dict of arrays
        Those of `StackWriter.arrays`.

    Its methods raise an error of Python or of kernelopt where a description or an array is wrong.
    """

    def __init__(self, arrays: Mapping[str, Any]) -> None:
        self.arrays = arrays

    def storage(self, described: Description, rows: Index) -> Storage:
        """Return the storage of a description on the points `rows`."""
        if "identity" in described:
            return IdentityStorage(rows.size)
        if "joined" in described:
            return JoinedStorage([self.storage(part, rows) for part in described["joined"]])
        if "kernels" in described:
            kernels = [parse_kernel(text) for text in described["kernels"]]
            return KernelStorage(kernels, self._points(described["points"], rows))
        if "centred" in described:
            return self._centred(described, rows)
        base = self.storage(described["base"], rows)
        if "scaled" in described:
            constants = as_float_array(described["scaled"], "constants", ndim=1)
            floats = all(isinstance(constant, float) for constant in described["scaled"])
            if constants.size != len(base) or not floats or not (constants > 0).all():
                raise InputError(f"constants must be {len(base)} positive numbers, got {constants}.")
            return ScaledStorage(base, KnownConstants(constants))
        if "chosen" in described:
            return base.subset(as_indices(described["chosen"], len(base), "chosen", "kernels"))
        if described["spherical"] is not True:
            raise InputError(f"a normalised stack must be spherical, got {shown(described['spherical'])}.")
        return SphericalStorage(base)

    def _centred(self, described: Description, rows: Index) -> Storage:
        """Return a centred storage, whose means are known."""
        key = f"means.{int(described['centred'])}"
        means = as_float_array(self.arrays[key], "means", ndim=2)
        whole = self.storage(described["base"], np.arange(means.shape[1]))
        if means.shape != whole.shape[:2]:
            raise InputError(f"means must have shape {whole.shape[:2]}, got {means.shape}.")
        whole.row_means = read_only(means)
        indices = as_indices(self.arrays[key + ".rows"], whole.n_points, "rows")[rows]
        return CenteredStorage(whole.block(indices), whole, indices)

    def _points(self, k: int, rows: Index) -> Array:
        """Return the points with the numbers `rows`."""
        kept, points = self.arrays[f"points.{k}.rows"], self.arrays[f"points.{k}"]
        at = np.searchsorted(kept, rows)
        if not np.array_equal(kept[at], rows):
            raise InputError(f"points must hold the rows {rows}, got the rows {kept}.")
        return np.asarray(points[at])

"""Stacks as JSON and arrays, with those of their points that are needed, and back.

Kernel functions are written as text, and their scaling by its constants. A stack that was given as an array
is not written: whoever reads the description passes it again.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
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
from kernelopt.kernels.base import Domain
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


def points_of(storage: Storage) -> Array | None:
    """Return the points at which kernel functions are evaluated, None if there are none or several sets."""
    sets = [leaf.X for leaf in leaves(storage) if isinstance(leaf, KernelStorage)]
    return sets[0] if sets and all(np.array_equal(sets[0], other) for other in sets[1:]) else None


class StackWriter:
    """Describes stacks, and collects what the descriptions refer to.

    Attributes
    ----------
    given : list of Storage
        The stacks that were given as arrays, which are not written.
    """

    def __init__(self) -> None:
        self.given: list[Storage] = []
        self._points: list[tuple[Array, np.ndarray[Any, np.dtype[np.bool_]]]] = []  # with the needed rows
        self._means: list[tuple[Array, Index]] = []

    def describe(self, storage: Storage, rows: Index | None) -> Description:
        """Return the description of a storage, and keep what its values at the points `rows` need.

        Where `rows` is None, the reader has all points and all arrays that the stack was made from.

        Raises
        ------
        MethodError
            If a kernel function cannot be written as text, or its points are neither numbers nor strings.
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
                return self._describe_centred(storage, rows)
            case KernelStorage():
                k = None if rows is None else self._number_of_points(storage.X, rows)
                return {"kernels": texts(storage), "points": k}
        return {"given": self._number_given(storage)}

    def _describe_centred(self, storage: CenteredStorage, rows: Index | None) -> Description:
        """Return the description of a centred storage; the mean needs all points that it was taken over."""
        base, whole, indices = storage.parts()
        if rows is None and whole is base:
            return {"centred": None, "base": self.describe(base, None)}
        if not is_evaluated(storage):
            return {"given": self._number_given(storage)}
        self._means.append((whole.row_means, indices))
        k = len(self._means) - 1
        return {"centred": k, "base": self.describe(whole, np.arange(whole.n_points))}

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

    def _number_given(self, storage: Storage) -> int:
        if not any(storage is known for known in self.given):
            self.given.append(storage)
        return next(k for k, known in enumerate(self.given) if known is storage)


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


def domain_of(described: Description) -> Domain | None:
    """Return the function that checks the points of a description; None if it has no kernel functions."""
    if "kernels" in described:
        return parse_kernel(described["kernels"][0]).domain
    parts = described.get("joined", [described["base"]] if "base" in described else [])
    return next((found for part in parts if (found := domain_of(part)) is not None), None)


class StackReader:
    """Makes stacks from descriptions.

    Parameters
    ----------
    arrays : dict of arrays
        Those of `StackWriter.arrays`.
    X : array of shape (N, d) or of N strings, optional
        All points, in place of those in `arrays`; the ones that a mean was taken over are still from there.
    given : sequence of Storage, optional
        The stacks that were given as arrays.

    Its methods raise an error of Python or of kernelopt where a description or an array is wrong.
    """

    def __init__(
        self, arrays: Mapping[str, Any], X: Array | None = None, given: Sequence[Storage] = ()
    ) -> None:
        self.arrays, self.X, self.given = arrays, X, given

    def storage(self, described: Description, rows: Index) -> Storage:
        """Return the storage of a description on the points `rows`."""
        if "identity" in described:
            return IdentityStorage(rows.size)
        if "joined" in described:
            return JoinedStorage([self.storage(part, rows) for part in described["joined"]])
        if "given" in described:
            return self.given[described["given"]]
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
        """Return a centred storage; its means are known unless it has all points that they are taken over."""
        if described["centred"] is None and (self.X is not None or self.given):
            return CenteredStorage(self.storage(described["base"], rows))
        key = f"means.{int(described['centred'])}"
        means, X, self.X = as_float_array(self.arrays[key], "means", ndim=2), self.X, None
        try:
            whole = self.storage(described["base"], np.arange(means.shape[1]))
        finally:
            self.X = X
        if means.shape != whole.shape[:2]:
            raise InputError(f"means must have shape {whole.shape[:2]}, got {means.shape}.")
        whole.row_means = read_only(means)
        indices = as_indices(self.arrays[key + ".rows"], whole.n_points, "rows")[rows]
        return CenteredStorage(whole.block(indices), whole, indices)

    def _points(self, k: int | None, rows: Index) -> Array:
        """Return the points with the numbers `rows`."""
        if self.X is not None:
            return self.X[rows]
        kept, points = self.arrays[f"points.{k}.rows"], self.arrays[f"points.{k}"]
        at = np.searchsorted(kept, rows)
        if not np.array_equal(kept[at], rows):
            raise InputError(f"points must hold the rows {rows}, got the rows {kept}.")
        return np.asarray(points[at])

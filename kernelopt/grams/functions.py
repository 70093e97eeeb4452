"""Kernel functions and their points as a user gives them: checks, and what a stack asks of them."""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from typing import Any, Protocol, TypeAlias, TypeGuard

import numpy as np

from kernelopt.errors import InputError, ShapeError
from kernelopt.grams.caching import IN_PLACE_BYTES
from kernelopt.grams.rows import Rows, rows_of_map
from kernelopt.kernels import Kernel, Profile, as_points, gaussian, identity, linear, polynomial
from kernelopt.kernels.profile import Metric
from kernelopt.validation import Array, shown

SMALLEST_POINTS = 1e-100  # the square of smaller numbers is close to the smallest normal number

Distance: TypeAlias = tuple[Metric | None, tuple[int, ...] | None]


class KernelFunction(Protocol):
    """A positive semidefinite function of two points, such as `gaussian(1.0)`."""

    def __call__(self, X: Any, Z: Any = None, /) -> Array:
        """Return k(x_i, z_j), shape (len(X), len(Z)); Z = None means Z = X."""

    def diagonal(self, X: Any, /) -> Array:
        """Return k(x_i, x_i), shape (len(X),)."""

    def rank(self, X: Any, /) -> int:
        """Return an upper bound of the rank of the matrix on X."""


def is_polynomial(kernel: Any) -> TypeGuard[polynomial]:
    """Whether a kernel is a polynomial of the inner product, as kernelopt evaluates it."""
    return type(kernel) in (polynomial, linear)


def is_quick(kernel: Any) -> bool:
    """Whether a kernel of kernelopt is made of functions of one inner product or one Euclidean distance."""
    if isinstance(kernel, gaussian | polynomial | identity):
        return True
    return isinstance(kernel, Kernel) and all(
        map(is_quick, getattr(kernel, "parts", (getattr(kernel, "kernel", None),)))
    )


def is_numeric(X: Any) -> bool:
    """Whether points are rows of numbers, and neither strings nor the nodes of a graph."""
    return isinstance(X, np.ndarray) and X.dtype == np.float64


def is_moderate(rows: Rows) -> bool:
    """Whether squares of the differences of points are numbers of normal size."""
    size = float(rows.ranges.max())
    return size == 0 or SMALLEST_POINTS < size < 1 / SMALLEST_POINTS


def groups(
    members: Sequence[int], profiles: Sequence[Profile | None]
) -> list[tuple[Distance, list[tuple[int, Profile]]]]:
    """Return the kernels that have profiles, by the distance that they are functions of."""
    found: dict[Distance, list[tuple[int, Profile]]] = {}
    for i in members:
        if (profile := profiles[i]) is not None:
            found.setdefault(profile.distance, []).append((i, profile))
    return list(found.items())


def as_kernels(kernels: Any) -> tuple[KernelFunction, ...]:
    """Return a list of kernel functions as a tuple, after checking them."""
    if callable(kernels):
        raise InputError(f"kernels must be a list of kernels, got {kernels!r}. Wrap it: [{kernels!r}].")
    if isinstance(kernels, str) or not isinstance(kernels, Sequence):
        raise InputError(
            f"kernels must be a list of kernels, got {shown(kernels)} ({type(kernels).__name__}). "
            "Pass kernels before the points: from_kernels([...], X)."
        )
    if not len(kernels):
        raise ShapeError("kernels must hold at least one kernel, got none. Add one, such as linear().")
    for kernel in kernels:
        if isinstance(kernel, str):
            raise InputError(
                f"kernels must be kernel objects such as gaussian(1.0), got the text {kernel!r}. Read it: "
                f"from_kernels([parse_kernel({kernel!r})], X)."
            )
        if isinstance(kernel, type) or not (callable(kernel) and hasattr(kernel, "rank")):
            raise InputError(
                f"kernels must be kernel objects such as gaussian(1.0), got {kernel!r}. "
                "Create it first, and pass kernels before the points: from_kernels([...], X)."
            )
    return tuple(kernels)


def copied_points(X: Any, kernels: Sequence[KernelFunction]) -> Any:
    """Return a copy of the points: an array of shape (N, d), strings, or the nodes of a graph kernel.

    Points in blocks are used themselves, and so is a large memory map of a file.
    """
    if (isinstance(X, list | tuple) and not X) or (isinstance(X, np.ndarray) and not X.size):
        raise ShapeError("X must hold at least one point, got none. Pass the data, shape (N, d).")
    own = [kernel for kernel in kernels if isinstance(kernel, Kernel)]
    if isinstance(X, Rows):
        other = next((kernel for kernel in own if kernel.domain is not as_points), None)
        if other is not None:
            raise InputError(
                f"kernels of points in blocks must take rows of numbers, got {other!r}. Pass its points."
            )
        return X
    if isinstance(X, list | tuple) and len(own) < len(kernels):
        return deepcopy(list(X))
    domains = list(dict.fromkeys(kernel.domain for kernel in own)) or [as_points]
    if len(domains) > 1:
        raise InputError(
            f"kernels of one stack must take the same points, got {shown(list(own))}. Evaluate those of "
            "strings and those of numbers apart, and stack the matrices with Grams.from_array."
        )
    if domains == [as_points] and len(own) == len(kernels) and getattr(X, "nbytes", 0) >= IN_PLACE_BYTES:
        rows = rows_of_map(X)
        if rows is not None:
            return rows
    points = domains[0](X, "X", None).copy()
    points.flags.writeable = False  # kernels are evaluated later, on the same points
    return points

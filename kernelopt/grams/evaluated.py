"""Storages of kernel functions, evaluated when needed."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from copy import copy
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np

from kernelopt.errors import InputError, NotFiniteError, ShapeError
from kernelopt.grams.caching import BoundedCache, all_cached, cached_array, pieces, read_only
from kernelopt.grams.functions import (
    Distance,
    KernelFunction,
    copied_points,
    groups,
    is_moderate,
    is_numeric,
    is_polynomial,
    is_quick,
)
from kernelopt.grams.interpolated import interpolated_forms, interpolated_images
from kernelopt.grams.interpolation import FEWEST_POINTS, is_worthwhile
from kernelopt.grams.rows import ArrayRows, Rows
from kernelopt.grams.storage import EVERY, Points, Storage, power_of_two, remembered
from kernelopt.grams.sweeps import Place, cross_values, own_values
from kernelopt.kernels import Kernel, Profile, as_points
from kernelopt.kernels.base import claims, foreign
from kernelopt.kernels.profile import Metric, distances, to_squared_distances
from kernelopt.running import Steps, announce, check
from kernelopt.validation import Array, Index, as_float_array, as_symmetric, numeric, shown
from kernelopt.validation.matrices import symmetrised

MANY_POINTS = 4000  # from which kernels of one distance are summed over all pairs from polynomials
PAIRS = 1 << 18  # pairs of points in a block: 2 MB, for a fast cache, and enough for matrix products
FEW_COLUMNS = 64  # of points whose inner product takes no longer than to write and read it: measured
EVALUATING = "evaluating kernels"
FORMS = b"forms"  # after the bytes of an alpha: the key of its forms


class KernelStorage(Storage):
    """The Gram matrices of kernel functions on a copy of the points X, evaluated when needed.

    Attributes
    ----------
    rows : Rows, or None
        The points, where they are rows of numbers.
    """

    known_semidefinite = pointwise = True
    rows: Rows | None = None
    _image: tuple[Array, Array, Array] | None = None  # the last weights and alpha, and their image

    def __init__(self, kernels: Sequence[KernelFunction], X: Any) -> None:
        self.kernels = tuple(kernels)
        self._points_as_given = points = copied_points(X, self.kernels)
        if isinstance(points, Rows):
            self.rows = points
        elif is_numeric(points):
            self.rows = ArrayRows(points)
        super().__init__(len(self.kernels), len(points), [repr(k) for k in self.kernels])
        self._cache, self._distances = BoundedCache(), BoundedCache()

    @property
    def X(self) -> Any:
        """The points in memory."""
        return self._points_as_given if self.rows is None else self.rows.array()

    def gram(self, i: int) -> Array:
        return self._cache.get(i, self._evaluated)

    def _evaluated(self, i: int) -> Array:
        check()
        kernel, profile = self.kernels[i], self.profiles[i]
        if profile is not None:
            K = self._at_distances(i, profile, self._all_distances(profile))
            np.fill_diagonal(K, profile.own)
            return K
        if is_polynomial(kernel) and self.rows is not None:
            with np.errstate(all="ignore"):
                return kernel._finite(kernel.of_products(self._all_products()))
        K = kernel(self.X)
        if not isinstance(kernel, Kernel) or foreign(kernel):  # else it is exactly symmetric already
            K = as_symmetric(K, self.names[i])
        if len(K) != self.n_points:
            raise ShapeError(
                f"{self.names[i]} must give a matrix on {self.n_points} points, got shape {K.shape}."
                " A kernel is called as k(X) and returns an array of shape (len(X), len(X))."
            )
        # A `Kernel` computes a new matrix. Any other kernel may return an array that it changes later.
        return K if isinstance(kernel, Kernel) else K.copy()

    def _at_distances(self, i: int, profile: Profile, D: Array) -> Array:
        """Return kernel i at distances between different points."""
        K, kernel = profile.function(D), self.kernels[i]
        if isinstance(kernel, Kernel) and (foreign(kernel) or not np.isfinite(profile.own)):
            return kernel._finite(K)
        return K  # a decreasing function is at most its value for a point and itself

    def _all_distances(self, profile: Profile) -> Array:
        """Return the distances between all points, which are kept where several kernels depend on them."""

        def computed(distance: Distance) -> Array:
            if distance == ("sqeuclidean", None) and self._products_serve:
                products = self._all_products()
                squares, D = np.diag(products).copy(), products.copy()
                to_squared_distances(D, squares, squares)
                np.fill_diagonal(D, 0.0)
                return D
            points = self.centred(np.arange(self.n_points), distance[1])
            return symmetrised(distances(points, None, distance[0]), "the distances")

        several = sum(p is not None and p.distance == profile.distance for p in self.profiles) > 1
        return self._distances.get(profile.distance, computed) if several else computed(profile.distance)

    def _all_products(self) -> Array:
        """Return the inner products of all points, which are kept where several kernels depend on them."""

        def computed(_: Any) -> Array:
            return symmetrised(self.X @ self.X.T, "the inner products")

        several = sum(map(is_polynomial, self.kernels)) > 1 or self._products_serve
        return self._distances.get("products", computed) if several else computed(None)

    @cached_property
    def _products_serve(self) -> bool:
        """Whether inner products that polynomials need give distances of points that are close to the origin.

        The rounding errors of |x|^2 - 2 x'z + |z|^2 are relative to |x|^2. So they are at most twice as large
        as for points less their mean, if the mean is no longer than the deviation from it is on average.
        """
        if not any(map(is_polynomial, self.kernels)) or not isinstance(self.rows, ArrayRows):
            return False
        centre = self.rows.centre
        return float(centre @ centre) <= float(np.square(self.X - centre).sum()) / self.n_points

    def image(self, w: Array, a: Array) -> Array:
        active, last = np.flatnonzero(w), self._image
        if not active.size:
            return np.zeros(self.n_points)
        if last is not None and np.array_equal(w, last[0]) and np.array_equal(a, last[1]):
            return last[2]
        known = self._known_images(a)
        if all_cached(self.shape) or (known is not None and known[0].size == self.n_points):
            image = w[active] @ self.subset(active).images(a, np.arange(self.n_points))
        else:
            image = self._combined_image(w, a, active)
        if self.rows is not None:
            self.rows.check_unchanged()
        self._image = w.copy(), a.copy(), read_only(image)
        return self._image[2]

    def _combined_image(self, w: Array, a: Array, active: Index) -> Array:
        """Return sum_i w_i K_i a, without an array of all kernels and all points.

        A positive combination of completely monotone functions is one, so that polynomials serve for all of
        them at once.
        """
        every, support, rest = np.arange(self.n_points), np.flatnonzero(a), set(active.tolist())
        image, c = np.zeros(self.n_points), a[support]
        positive = [i for i in active.tolist() if w[i] > 0]
        for numbers, located, metric in self._interpolated(positive, every, support, a.size):
            profile = weighted([p for i in numbers if (p := self.profiles[i])], w[numbers])
            names = [self.names[i] for i in numbers if self._claims(i)]
            tested = {0: ", ".join(names)} if names else {}
            image += interpolated_images([profile], located, metric, (every, support), c, tested)[0]
            rest.difference_update(numbers)
        if rest:
            others = np.array(sorted(rest))
            storage = self.subset(others)
            for part in pieces(self.n_points, others.size):
                image[part] += w[others] @ storage._images(a, every[part])
        return image

    def _interpolated(
        self, chosen: Collection[int], rows: Index, support: Index, n: int
    ) -> Iterator[tuple[list[int], tuple[Rows, Place], Metric | None]]:
        """Yield the kernels of one distance whose images are summed from polynomials, and their points."""
        missing = [i for i in chosen if i not in self._cache]
        for (metric, columns), group in groups(missing, self.profiles):
            several = [i for i, profile in group if profile.completely_monotone]
            if several and is_worthwhile(rows.size, support.size, n):
                yield several, self.located(columns), metric

    def _apply(self, a: Array) -> Array:
        m, n, _ = self.shape
        anew = self.quick and np.count_nonzero(a) <= n / 2 and not all_cached((2 * m, n, n))
        if all_cached(self.shape) and not (anew and not all(map(self._at_hand, range(m)))):
            return super()._apply(a)
        return self._images(a, np.arange(self.n_points))

    def keep_images(self, alphas: Array) -> None:
        if all_cached(self.shape) and all(map(self._at_hand, range(len(self)))):
            self._keep_products(alphas)

    def forms(self, a: Array) -> Array:
        """Return (a'K_i a)_i, shape (m,): of functions of one distance as sums over the blocks of the points.

        They are kept as images are. Where images of a are known, forms are sums of these.
        """
        key, support, every = a.tobytes() + FORMS, np.flatnonzero(a), range(len(self))
        known = self._known(key)
        if known is not None:
            return known[1]
        parts = list(self._interpolated(every, support, support, a.size))
        if not parts or self._known_images(a) is not None:
            return super().forms(a)
        found, rest, unit = np.empty(len(self)), set(every), power_of_two(a)
        for numbers, located, metric in parts:
            profiles, tested = self._summed(numbers)
            found[numbers] = interpolated_forms(profiles, located, metric, a / unit, tested) * unit * unit
            rest.difference_update(numbers)
        if rest:
            found[sorted(rest)] = self.subset(np.array(sorted(rest))).forms(a)
        self._last = remembered(self._last, key, (support[:0], read_only(found)))
        return found

    def passing_forms(self, a: Array) -> Array:
        """Return (a'K_i a)_i for an alpha of all points; entries are evaluated once, and none is kept.

        Half of a symmetric matrix is evaluated: rows with their own columns and, twice, with later ones.
        Functions of one distance are summed from polynomials where there are many points. It is the variance
        of normalize("multiplicative") that needs it.
        """
        self._announce(
            "normalize('multiplicative')", "normalize('trace') and normalize('spherical') need none"
        )
        found, every, rest = np.zeros(len(self)), np.arange(self.n_points), set(range(len(self)))
        if self.n_points > MANY_POINTS:
            for numbers, located, metric in self._interpolated(rest, every, every, 2 * self.n_points):
                profiles, tested = self._summed(numbers)
                found[numbers] = interpolated_forms(profiles, located, metric, a, tested)
                rest.difference_update(numbers)
        steps = Steps(EVALUATING, len(rest))
        for rows in pieces(self.n_points, self.n_points, PAIRS) if rest else []:
            later = np.where(every < rows.stop, a, 2 * a)[rows.start :]
            for i, part, K in self._blocks(every[rows], every[rows.start :], rest):
                found[i] += a[rows][part] @ (K @ later)
            steps.take(len(rest) * (rows.stop - rows.start) / self.n_points)
        return found

    @cached_array
    def mean_entries(self) -> Array:
        if all_cached(self.shape):
            return super().mean_entries
        return self.passing_forms(np.full(self.n_points, 1 / self.n_points))

    @cached_array
    def row_means(self) -> Array:
        self._announce("center()", "a risk with an intercept has the same value without it")
        return super().row_means

    def _announce(self, purpose: str, instead: str) -> None:
        """Say that all pairs of points are evaluated for a purpose that keeps no matrix of them."""
        if not all_cached(self.shape):
            n, others = self.n_points, len(self) - 1
            names = self.names[0] + f" and {others} other kernel{'s' * (others > 1)}" * (others > 0)
            announce(f"{purpose} needs all {n * (n - 1) // 2:,} pairs of {n:,} points of {names}; {instead}")

    @cached_property
    def quick(self) -> bool:
        """Whether entries take about as long to evaluate as to write and read: no matrix need be kept."""
        few = isinstance(self.rows, ArrayRows) and self.rows.shape[1] <= FEW_COLUMNS
        return few and all(isinstance(k, Kernel) and not foreign(k) and is_quick(k) for k in self.kernels)

    def _images(self, a: Array, points: Index) -> Array:
        at_hand = all_cached(self.shape) and all(map(self._at_hand, range(len(self))))
        if at_hand and points.size > self.n_points / 2:
            return super()._apply(a)[:, points]
        support = np.flatnonzero(a)
        c, found = a[support], np.zeros((len(self), points.size))
        rest = set(range(len(self)))
        for numbers, located, metric in self._interpolated(range(len(self)), points, support, a.size):
            profiles, tested = self._summed(numbers)
            found[numbers] = interpolated_images(profiles, located, metric, (points, support), c, tested)
            rest.difference_update(numbers)
        steps = Steps(EVALUATING, len(rest))
        for i, part, K in self._blocks(points, support, rest):
            found[i, part] = K @ c
            steps.take((part.stop - part.start) / points.size)
        return found

    def _summed(self, numbers: Sequence[int]) -> tuple[list[Profile], dict[int, str]]:
        """Return the profiles of some kernels, and the names of those to be tested, by their position."""
        tested = {k: self.names[i] for k, i in enumerate(numbers) if self._claims(i)}
        return [p for i in numbers if (p := self.profiles[i])], tested

    def _claims(self, i: int) -> list[str]:
        """Return the classes by whose word a kernel may be summed from polynomials."""
        kernel = self.kernels[i]
        return claims(kernel) if isinstance(kernel, Kernel) else []

    @property
    def assumes(self) -> tuple[str, ...]:  # type: ignore[override]
        if not is_worthwhile(self.n_points, FEWEST_POINTS, self.n_points):
            return ()
        names = dict.fromkeys(name for i in range(len(self)) for name in self._claims(i))
        return tuple(f"the kernel {name} is completely monotone, as its class claims" for name in names)

    def between(self, rows: Points, columns: Points) -> Array:
        rows = np.arange(self.n_points)[rows]
        found = np.empty((len(self), rows.size, len(np.arange(self.n_points)[columns])))
        for i, part, K in self._blocks(rows, columns, range(len(self))):
            found[i, part] = K
        return found

    def _blocks(
        self, rows: Index, columns: Points, chosen: Collection[int]
    ) -> Iterator[tuple[int, slice, Array]]:
        """Return the chosen matrices at all pairs of rows and columns, some rows at a time.

        Kernels of one distance share it. A block may be overwritten by the next one.
        """
        width = self.n_points if isinstance(columns, slice) else columns.size
        if not rows.size or not width:
            return
        missing = [i for i in chosen if i not in self._cache]
        for i in set(chosen).difference(missing):
            K = self.gram(i)  # symmetric: the fewer rows of it are read
            fewer = not isinstance(columns, slice) and columns.size < rows.size
            yield i, slice(0, rows.size), K[columns][:, rows].T if fewer else K[rows][:, columns]
        parts = list(pieces(rows.size, width, PAIRS))
        owns = [own_entries(rows[part], columns) for part in parts] if missing else []
        for (metric, used), members in groups(missing, self.profiles):
            right = self.centred(columns, used)
            for part, own in zip(parts, owns, strict=True):
                D = distances(self.centred(rows[part], used), right, metric)
                for i, profile in members:
                    K = self._at_distances(i, profile, D)
                    K[own] = profile.own
                    yield i, part, K
        others = [i for i in missing if self.profiles[i] is None]
        points = self._points(columns) if others else None
        for part, own in zip(parts, owns, strict=True) if others else []:
            check()
            left = self._points(rows[part])
            for i in others:
                K = self._between(i, left, points)
                # k(X, Z) treats Z as other points, for which `identity()` is zero; x_i and z_i are the same.
                K[own] = self.diagonals[i, rows[part][own[0]]]
                yield i, part, K

    def combine(self, w: Array) -> Array:
        if all_cached(self.shape):
            return super().combine(w)
        every, rest = np.arange(self.n_points), w.copy()
        shared = [i for i in np.flatnonzero(w).tolist() if self.profiles[i] and i not in self._cache]
        rest[shared] = 0.0
        return self._added(super().combine(rest), w, every, EVERY, shared)

    def combine_block(self, w: Array, rows: Index) -> Array:
        return self._added(np.zeros((rows.size, rows.size)), w, rows, rows, np.flatnonzero(w).tolist())

    def _added(self, total: Array, w: Array, rows: Index, columns: Points, chosen: Sequence[int]) -> Array:
        """Return the symmetric part of a matrix at rows and columns, to which chosen kernels are added."""
        for i, part, K in self._blocks(rows, columns, chosen):
            total[part] += w[i] * K
        return (total + total.T) / 2

    def _at_hand(self, i: int) -> bool:
        return i in self._cache

    def _between(self, i: int, left: Any, right: Any) -> Array:
        kernel = self.kernels[i]
        if isinstance(kernel, Kernel) and not foreign(kernel):  # a new array, which is checked
            return kernel(left, right)
        part = np.array(as_float_array(kernel(left, right), self.names[i]))
        if part.shape != (len(left), len(right)):
            raise ShapeError(
                f"{self.names[i]} must give rows of shape {(len(left), len(right))}, got {part.shape}. "
                "A kernel is called as k(X, Z) and returns an array of shape (len(X), len(Z))."
            )
        return part

    @cached_property
    def profiles(self) -> tuple[Profile | None, ...]:
        """The profiles of the kernels; None where a kernel is no function of one distance of points of R^d.

        Squares of distances must neither overflow nor underflow, else there are none.
        """
        read = self.rows is not None and is_moderate(self.rows)
        return tuple(k.profile() if read and isinstance(k, Kernel) else None for k in self.kernels)

    def located(self, columns: tuple[int, ...] | None) -> tuple[Rows, Place]:
        """Return the points, and the map to some columns less the mean of all points.

        None stands for all columns; those in which all points agree are left out.
        """
        if self.rows is None:
            raise InputError(f"columns must be of rows of numbers, got {shown(self.X)}. Pass such points.")
        used = np.flatnonzero(self.rows.ranges) if columns is None else np.array(columns)
        if not used.size:
            used = np.zeros(1, dtype=np.intp)
        every = columns is None and used.size == self.rows.shape[1]
        return self.rows, Place(self.rows.centre, None if every else used)

    def centred(self, points: Points, columns: tuple[int, ...] | None) -> Array:
        """Return columns of some points, less the mean of all points: distances are then more exact."""
        rows, place = self.located(columns)
        return place(rows.take(points))

    @property
    def constant_diagonals(self) -> bool:  # type: ignore[override]
        return None not in self.profiles

    @cached_array
    def diagonals(self) -> Array:
        if self.constant_diagonals:
            return np.broadcast_to(np.array([[p.own] for p in self.profiles if p]), self.shape[:2])
        found, rest = np.empty(self.shape[:2]), list[int]()
        for i, (kernel, profile) in enumerate(zip(self.kernels, self.profiles, strict=True)):
            check()
            if profile is not None:
                found[i] = profile.own
            elif self._elsewhere is None:
                found[i] = kernel.diagonal(self.X)
            else:
                rest.append(i)
        if self._elsewhere is not None and rest:
            for at, values in self._elsewhere.each(own_values, [self.kernels[i] for i in rest]):
                found[rest, at] = values
        return found

    @property
    def _elsewhere(self) -> Rows | None:
        """The points where they are rows of numbers that need not fit into the memory."""
        return None if isinstance(self.rows, ArrayRows) else self.rows

    @cached_property
    def rank_bounds(self) -> tuple[int, ...]:
        if self._elsewhere is not None:
            return (self.n_points,) * len(self)
        X = self.X
        ranks = (k.gram_rank(X) if isinstance(k, Kernel) else k.rank(X) for k in self.kernels)
        return tuple(min(self.n_points, rank) for rank in ranks)  # the points are checked already

    def forget_matrices(self) -> None:
        """Free the cached matrices. They are evaluated again when they are needed."""
        self._cache.clear()
        self._distances.clear()

    def _points(self, rows: Any) -> Any:
        if self.rows is not None:
            return self.rows.take(rows)
        if isinstance(self.X, np.ndarray):
            return self.X[rows]
        return [self.X[i] for i in np.arange(self.n_points)[rows]]

    def _subset(self, chosen: Index) -> Storage:
        part = copy(self)  # the points are not checked and copied again
        part.kernels = tuple(self.kernels[i] for i in chosen)
        part.names = tuple(self.names[i] for i in chosen)
        part.shape = (len(chosen), *self.shape[1:])
        part.profiles = tuple(self.profiles[i] for i in chosen)
        part._last, part._image = {}, None
        part._cache = self._cache.part(chosen)
        return self._sharing(part, chosen)

    def block(self, rows: slice | Index) -> Storage:
        return KernelStorage(self.kernels, self._points(rows)).renamed(self.names)

    def cross(self, X_new: Any) -> Array:
        new = self._new(X_new)
        if self._elsewhere is None:
            pairs = zip(self.kernels, self.names, strict=True)
            cross = np.stack([numeric(k(new, self.X), name) for k, name in pairs])
        else:  # a block at a time
            blocks = self._elsewhere.each(cross_values, (self.kernels, new))
            cross = np.concatenate([values for _, values in blocks], axis=2)
        if not np.isfinite(cross).all():
            raise NotFiniteError("cross kernels must be finite, got NaN or infinity. Check the new points.")
        return cross

    def self_similarity(self, X_new: Any) -> Array:
        new = self._new(X_new)
        pairs = zip(self.kernels, self.names, strict=True)
        return np.stack([as_float_array(k.diagonal(new), name, ndim=1) for k, name in pairs])

    def _new(self, X_new: Any) -> Any:
        """Return new points after checking them: rows of numbers if the points of the stack are."""
        if self.rows is None:
            return X_new
        new = as_points(X_new, "X_new")
        if new.shape[1] != self.rows.shape[1]:
            raise ShapeError(
                f"X_new must have {self.rows.shape[1]} columns, as the points of the kernels, got shape "
                f"{new.shape}. Apply the same preprocessing to the new points."
            )
        return new


def weighted(profiles: Sequence[Profile], w: Array) -> Profile:
    """Return the profile of sum_i w_i k_i, for completely monotone functions of one distance and w > 0."""

    def function(d: Array) -> Array:
        total = np.zeros(d.shape)
        for weight, profile in zip(w, profiles, strict=True):
            total += weight * profile.function(d)
        return total

    own = float(sum(weight * profile.own for weight, profile in zip(w, profiles, strict=True)))
    return replace(profiles[0], function=function, own=own)


def own_entries(rows: Index, columns: Index | slice) -> tuple[Index, Index]:
    """Return the entries of a matrix at which row and column are the same point."""
    if isinstance(columns, slice):
        return np.arange(rows.size), rows
    order = np.argsort(columns, kind="stable")
    first, last = (np.searchsorted(columns, rows, side, sorter=order) for side in ("left", "right"))
    counts = last - first
    at = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts - first, counts)
    return np.repeat(np.arange(rows.size), counts), order[at]

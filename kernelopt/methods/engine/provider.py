"""`Provider`: the interface by which the Newton method reads its kernels."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from kernelopt.grams import Grams
from kernelopt.validation import Array, Index

Block: TypeAlias = NDArray[np.float32 | np.float64]


class Provider(ABC):
    """The kernels of a problem on its n labelled points, m of them, each times its reach.

    In what follows K_m is the kernel m times its reach. The method works on a set A of points, the working
    set, and asks for everything else by the points that have a coefficient, the support. Points are numbers
    in 0..n-1, and positions are numbers of entries of A.

    Exact images and predictions come from the storage of the kernels in float64. It keeps the images of the
    last coefficients, where the certificate finds them.

    Parameters
    ----------
    grams : Grams
        On N >= n points; the first n points are labelled.
    reach : array of shape (m,)
    n : int

    Attributes
    ----------
    name : str
        By which reports name the provider.
    m, n : int
    refined : bool
        Whether changes of alpha are added to exact images. Otherwise `images` are exact enough for the gap.
    passes : float
        The number of entries of kernels that were read or evaluated so far, divided by m n^2. Entries that
        the provider has kept in a copy of its own are not counted again.
    solves : int
        The number of machines that were trained on these kernels.
    """

    name: str
    refined: bool = True
    solves: int = 0
    _last: tuple[Array, Block] | None = None  # the last weights, and their kernel

    def __init__(self, grams: Grams, reach: Array, n: int) -> None:
        self.grams, self.reach, self.m, self.n = grams, reach, reach.size, n
        self.passes = 0.0

    @cached_property
    def sizes(self) -> Array:
        """The largest entry max_i K_m,ii of every kernel, shape (m,)."""
        return np.asarray(self.reach * self.grams.diagonals[:, : self.n].max(axis=1, initial=0.0))

    def unit(self, w: Array) -> float:
        """Return the least power of two that is at least sum_m w_m max_i K_m,ii; 1 where that is zero."""
        size = float(w @ self.sizes)
        mantissa, power = math.frexp(size)
        return math.ldexp(1.0, power - (mantissa == 0.5)) if size > 0 else 1.0

    def memory(self, size: int) -> float:
        """Return about the bytes that a working set of so many points takes, 0 for a budget that is kept."""
        return 0.0

    @abstractmethod
    def activate(self, points: Index) -> None:
        """Let A be the given points, in the given order, and keep what can be used again.

        Points that remain in A come first, in the order in which they were in A before.
        """

    @abstractmethod
    def combined(self, w: Array) -> Block:
        """Return the matrix sum_m w_m K_m[A, A] / unit(w) in the type of the provider.

        In this unit its entries are at most 1 in absolute value, at any scale of the kernels. The next call
        may write to the same memory.
        """

    def kernel(self, w: Array) -> Block:
        """Return `combined`, without any work where it was the last result."""
        if self._last is None or not np.array_equal(w, self._last[0]):
            self._last = None  # its memory is free for the next one
            self._last = w, self.combined(w)
        return self._last[1]

    def entries(self, w: Array, chosen: Index, numbers: Any = float) -> Array:
        """Return the entries of `combined` at the positions `chosen`, square, in the type `numbers`."""
        block, M = self.kernel(w), np.empty((chosen.size, chosen.size), numbers)
        for to, row in zip(M, chosen, strict=True):  # without a copy in the numbers of the block
            to[:] = block[row, chosen]
        return M

    @abstractmethod
    def images(self, c: Array, chosen: Index) -> Array:
        """Return the entries `chosen` of K_m[A, A] c, shape (m, len(chosen)).

        The entries of c belong to A. The kernels may be rounded to float32, the sums are in float64.
        """

    def predict(self, w: Array, support: Index, c: Array, points: Index) -> Array:
        """Return sum_m w_m K_m[points, support] c, shape (len(points),)."""
        return self.exact_predictions(w, support, c, points)

    def prediction_error(self, w: Array) -> float:
        """Return a proved bound of the error of an entry of `predict`, relative to |c|_1.

        It is zero where `predict` is exact up to rounding in float64.
        """
        return 0.0

    def exact_predictions(self, w: Array, support: Index, c: Array, points: Index) -> Array:
        """Return the result of `predict`, exact up to rounding in float64."""
        active = np.flatnonzero(w)
        if not active.size:
            return np.zeros(points.size)
        self.passes += active.size / self.m * support.size * points.size / self.n**2
        storage, alpha = self.grams.storage, self._alpha(support, c)
        if np.array_equal(points, np.arange(self.grams.n_points)):
            return storage.image(self.reach * w, alpha)
        return np.asarray((self.reach * w)[active] @ storage.subset(active).images(alpha, points))

    def exact_images(self, support: Index, c: Array, points: Index) -> Array:
        """Return K_m[points, support] c, shape (m, len(points)), exact up to rounding in float64."""
        if not support.size:
            return np.zeros((self.m, points.size))
        self.passes += support.size * points.size / self.n**2
        return self.reach[:, None] * self.grams.storage.images(self._alpha(support, c), points)

    def exact_forms(self, support: Index, c: Array) -> Array:
        """Return c'K_m[support, support] c, shape (m,), exact up to rounding in float64."""
        if not support.size:
            return np.zeros(self.m)
        self.passes += (support.size / self.n) ** 2
        return np.asarray(self.reach * self.grams.storage.forms(self._alpha(support, c)))

    def _alpha(self, support: Index, c: Array) -> Array:
        """Return the vector of the n labelled points with these coefficients."""
        alpha = np.zeros(self.n)
        alpha[support] = c
        return alpha


def kept_positions(before: Index, points: Index) -> Index:
    """Return the positions of `before` that come first in `points`, none where the order has changed."""
    kept = np.flatnonzero(np.isin(before, points))
    return kept if np.array_equal(before[kept], points[: kept.size]) else kept[:0]

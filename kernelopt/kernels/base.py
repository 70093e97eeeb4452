"""The base class of kernels on points of R^d or on strings, with sums, products and multiples of them."""

from __future__ import annotations

import math
import numbers
import operator
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, ClassVar, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.linalg import issymmetric

from kernelopt.errors import NotFiniteError, ParameterError, ShapeError
from kernelopt.kernels.profile import Profile
from kernelopt.validation import Array, as_float_array, positive, refuse_hidden

Domain: TypeAlias = Callable[..., NDArray[Any]]

BLOCK = 64  # points of one Gram matrix for a diagonal: large enough for the speed of arrays, small in memory


class Kernel(ABC):
    """A positive semidefinite function k(x, z) of two points, called on arrays with one point in each row.

    k1 + k2 and k1 * k2 are the sum and the product of two kernels, and c * k is a multiple by c > 0. All of
    them are positive semidefinite, the product by Schur's theorem.

    A new kernel states `gram`, which receives checked arrays. It may state `gram_diagonal`, which is then
    computed without Gram matrices, `gram_rank`, if its rank is bounded, and `profile`, if it is a function of
    one distance. Points are rows of numbers unless `domain` says otherwise.
    """

    __array_ufunc__: ClassVar[None] = None  # numpy scalars leave `*` to `__rmul__`

    def __init_subclass__(cls, **options: Any) -> None:
        """Raise where a field has the name of a method."""
        super().__init_subclass__(**options)
        refuse_hidden(cls)

    @property
    def domain(self) -> Domain:
        """The function that checks points: `as_points` for points of R^d, `as_strings` for strings.

        It is called as domain(X, name, like), where `like` are checked points that X is compared with, or
        None, and returns an array whose first axis counts the points.
        """
        return as_points

    @abstractmethod
    def gram(self, X: Array, Z: Array | None = None) -> Array:
        """Return k(x_i, z_j) for the rows x_i of X and z_j of Z.

        Call the kernel itself, ``kernel(X, Z)``, on arrays that are not checked.

        Parameters
        ----------
        X : array with one point in each row
            Checked by `domain`.
        Z : array with one point in each row, optional
            Checked by `domain`; None means X.
        """

    def gram_diagonal(self, X: Array) -> Array:
        """Return k(x_i, x_i), by default from `profile` or Gram matrices of few points.

        Parameters
        ----------
        X : array with one point in each row
            Checked by `domain`.
        """
        profile = self.profile()
        if profile is not None:
            return np.full(len(X), profile.own)
        blocks = (X[i : i + BLOCK] for i in range(0, len(X), BLOCK))
        return np.concatenate([np.diag(self.gram(block, None)) for block in blocks])

    def gram_rank(self, X: Array) -> int:
        """Return an upper bound of the rank of the Gram matrix, which may be above len(X).

        Parameters
        ----------
        X : array with one point in each row
            Checked by `domain`.
        """
        return len(X)

    def profile(self) -> Profile | None:
        """Return the kernel as a function of one distance; None if it is none.

        Methods then evaluate many such kernels at one distance, without a Gram matrix.
        """
        return None

    def __call__(self, X: ArrayLike, Z: ArrayLike | None = None) -> Array:
        """Return k(x_i, z_j), of shape (len(X), len(Z)); Z = None means X, exactly symmetric."""
        points = self.domain(X, "X", None)
        others = None if Z is None else self.domain(Z, "Z", points)
        with np.errstate(all="ignore"):
            K = self.gram(points, others)
            if others is None and not issymmetric(K):
                K = (K + K.T) / 2
            elif others is None and foreign(self):  # it may keep the array, or give whole numbers
                K = K / 1.0
            return self._finite(K)

    def diagonal(self, X: ArrayLike) -> Array:
        """Return the vector k(x_i, x_i), without the Gram matrix.

        Parameters
        ----------
        X : array-like with one point in each row
            Any points of the `domain`.
        """
        with np.errstate(all="ignore"):
            return self._finite(self.gram_diagonal(self.domain(X, "X", None)))

    def rank(self, X: ArrayLike) -> int:
        """Return an upper bound of the rank of the Gram matrix on X, from the shape of X alone.

        Parameters
        ----------
        X : array-like with one point in each row
            Any points of the `domain`.
        """
        return min(len(points := self.domain(X, "X", None)), self.gram_rank(points))

    def _finite(self, values: Array) -> Array:
        if np.isfinite(values.sum()):  # a sum that is not finite may be one of large numbers
            return values
        finite = np.isfinite(values)
        if not finite.all():
            where = np.argwhere(~finite)[0].tolist()
            raise NotFiniteError(
                f"values of {self!r} must be finite, got {values[tuple(where)]} at index {where}. "
                "Scale the columns of X to unit size, or choose a larger width or a lower degree."
            )
        return values

    def __add__(self, other: object) -> Kernel:
        return _join("+", self, other) if isinstance(other, Kernel) else NotImplemented

    def __mul__(self, other: object) -> Kernel:
        if isinstance(other, numbers.Real):
            return _join("*", self, _Joined("*", (), positive(other, "the factor of a kernel")))
        return _join("*", self, other) if isinstance(other, Kernel) else NotImplemented

    __rmul__ = __mul__


def claims(kernel: Kernel) -> list[str]:
    """Return the classes outside kernelopt by whose word alone a kernel's function is completely monotone."""
    read = [(part, part.profile()) for part in foreign(kernel)]
    return [type(part).__qualname__ for part, profile in read if profile and profile.completely_monotone]


def foreign(kernel: Kernel) -> list[Kernel]:
    """Return the kernels of classes outside kernelopt that a kernel is made of."""
    if type(kernel).__module__.partition(".")[0] != "kernelopt":
        return [kernel]
    parts = getattr(kernel, "parts", (getattr(kernel, "kernel", None),))
    return [found for part in parts if isinstance(part, Kernel) for found in foreign(part)]


def as_points(X: Any, what: str, like: Array | None = None) -> Array:
    """Return points as rows of an array of shape (points, columns), not empty; with the columns of `like`."""
    columns = None if like is None else like.shape[1]
    points = as_float_array(X, what)
    if points.ndim != 2 or points.size == 0 or points.shape[1] != (columns or points.shape[1]):
        raise ShapeError(
            f"{what} must have shape (points, {columns or 'columns'}), not empty, got {points.shape}. "
            f"Put points in rows: {what}.reshape(-1, 1) makes one column, {what}.reshape(1, -1) one point."
        )
    return points


@dataclass(frozen=True)
class _Joined(Kernel):
    """The sum ("+") or the product ("*") of kernels, times a factor."""

    operator: str
    parts: tuple[Kernel, ...]
    factor: float = 1.0

    def __repr__(self) -> str:
        text = f" {self.operator} ".join(map(repr, self.parts))
        return f"({text})" if self.operator == "+" else f"{self.factor!r} * {text}".removeprefix("1.0 * ")

    @property
    def domain(self) -> Domain:
        return self.parts[0].domain

    def _combined(self, values: Iterable[Any]) -> Any:
        return sum(values) if self.operator == "+" else math.prod(values)

    def gram(self, X: Array, Z: Array | None = None) -> Array:
        return np.asarray(self.factor * self._combined(part.gram(X, Z) for part in self.parts))

    def profile(self) -> Profile | None:
        operation = operator.add if self.operator == "+" else operator.mul
        total, *others = [part.profile() for part in self.parts]
        for other in others:
            total = total and other and total.joined(other, operation)
        return total and total.times(self.factor)

    def gram_diagonal(self, X: Array) -> Array:
        return np.asarray(self.factor * self._combined(part.gram_diagonal(X) for part in self.parts))

    def gram_rank(self, X: Array) -> int:
        return int(self._combined(part.gram_rank(X) for part in self.parts))


def _join(op: str, *kernels: Kernel) -> Kernel:
    flat = [k if isinstance(k, _Joined) and k.operator == op else _Joined(op, (k,)) for k in kernels]
    factor = positive(math.prod(k.factor for k in flat), "the product of the factors")
    parts = tuple(part for k in flat for part in k.parts)
    if len({part.domain for part in parts}) > 1:
        raise ParameterError(
            f"kernels that are joined by {op} must take the same points, got {parts!r}. Join kernels "
            "of strings with each other, and put both into one stack by their Gram matrices."
        )
    return _Joined(op, parts, factor)

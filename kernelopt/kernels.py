"""Base kernels on points of R^d; scikit-learn's pairwise functions do the arithmetic."""

from __future__ import annotations

import math
import numbers
from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
import sklearn
from numpy.typing import ArrayLike, NDArray
from sklearn.metrics import pairwise

from kernelopt.errors import InputError, NotFiniteError, ParameterError, ShapeError
from kernelopt.validation import Array, as_float_array, as_list, plain, positive, shown, whole

MANY = 10  # columns that a kernel's name lists; names of kernels on different columns should differ


class Kernel(ABC):
    """A positive semidefinite function k(x, z) of two points, called on the rows of arrays.

    `+` and `*` join two kernels entry by entry; a positive number scales one. A new kernel writes
    `gram`, which receives checked arrays, and may sharpen `gram_diagonal` and `gram_rank`.
    """

    __array_ufunc__: ClassVar[None] = None  # numpy scalars leave `*` to `__rmul__`

    @abstractmethod
    def gram(self, X: Array, Z: Array | None) -> Array:
        """Return k between the rows of X and those of Z, or of X where Z is None."""

    def gram_diagonal(self, X: Array) -> Array:
        """Return k(x, x) for each row x of X, from Gram matrices of 64 points at a time."""
        return np.concatenate([np.diag(self.gram(X[i : i + 64], None)) for i in range(0, len(X), 64)])

    def gram_rank(self, X: Array) -> int:
        """Return a bound on the rank of the Gram matrix; `rank` cuts it at len(X)."""
        return len(X)

    def __call__(self, X: ArrayLike, Z: ArrayLike | None = None) -> Array:
        """Return k(x_i, z_j), of shape (len(X), len(Z)); Z = None means X, exactly symmetric."""
        points = as_points(X, "X")
        others = None if Z is None else as_points(Z, "Z", points.shape[1])
        with np.errstate(all="ignore"), sklearn.config_context(assume_finite=True):
            K = self.gram(points, others)
            return self._finite((K + K.T) / 2 if others is None else K)

    def diagonal(self, X: ArrayLike) -> Array:
        """Return the vector k(x_i, x_i), without the Gram matrix."""
        with np.errstate(all="ignore"), sklearn.config_context(assume_finite=True):
            return self._finite(self.gram_diagonal(as_points(X, "X")))

    def rank(self, X: ArrayLike) -> int:
        """Return an upper bound of the rank of the Gram matrix on X, from the shape of X alone."""
        return min(len(points := as_points(X, "X")), self.gram_rank(points))

    def _finite(self, values: Array) -> Array:
        for where in np.argwhere(~np.isfinite(values))[:1].tolist():
            raise NotFiniteError(
                f"values of {self!r} must be finite, got {values[tuple(where)]} at index {where}. "
                "Scale the columns of X to unit size, or choose a larger width or a lower degree."
            )
        return values

    def __add__(self, other: Kernel) -> Kernel:
        return _join("+", self, other) if isinstance(other, Kernel) else NotImplemented

    def __mul__(self, other: Kernel | float) -> Kernel:
        if isinstance(other, numbers.Real):
            return _join("*", self, _Joined("*", (), positive(other, "the factor of a kernel")))
        return _join("*", self, other) if isinstance(other, Kernel) else NotImplemented

    __rmul__ = __mul__


def as_points(X: Any, what: str, columns: int | None = None) -> Array:
    """Return points as rows of an array of shape (points, columns), not empty."""
    points = as_float_array(X, what)
    if points.ndim != 2 or points.size == 0 or points.shape[1] != (columns or points.shape[1]):
        raise ShapeError(
            f"{what} must have shape (points, {columns or 'columns'}), not empty, got {points.shape}. "
            f"Put points in rows: {what}.reshape(-1, 1) makes one column, {what}.reshape(1, -1) one point."
        )
    return points


@dataclass(frozen=True)
class _Joined(Kernel):
    """Kernels added ("+") or multiplied ("*") entry by entry, times a factor."""

    operator: str
    parts: tuple[Kernel, ...]
    factor: float = 1.0

    def __repr__(self) -> str:
        text = f" {self.operator} ".join(map(repr, self.parts))
        return f"({text})" if self.operator == "+" else f"{self.factor!r} * {text}".removeprefix("1.0 * ")

    def _total(self, values: Iterable[Any]) -> Any:
        return sum(values) if self.operator == "+" else math.prod(values)

    def gram(self, X: Array, Z: Array | None) -> Array:
        return np.asarray(self.factor * self._total(part.gram(X, Z) for part in self.parts))

    def gram_rank(self, X: Array) -> int:
        return int(self._total(part.gram_rank(X) for part in self.parts))


def _join(op: str, *kernels: Kernel) -> Kernel:
    flat = [k if isinstance(k, _Joined) and k.operator == op else _Joined(op, (k,)) for k in kernels]
    factor = positive(math.prod(k.factor for k in flat), "the product of the factors")
    return _Joined(op, tuple(part for k in flat for part in k.parts), factor)


@dataclass(frozen=True)
class _Radial(Kernel):
    width: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "width", positive(self.width, "width"))

    def _reduced(self, X: Array, Z: Array | None) -> tuple[Array, Array | None]:
        """Return the points in units of the width, centred: a far origin would cost digits."""
        centre = X.mean(axis=0)
        return (X - centre) / self.width, None if Z is None else (Z - centre) / self.width


@dataclass(frozen=True)
class gaussian(_Radial):
    """The Gaussian kernel, k(x, z) = exp(-|x - z|^2 / (2 width^2)), width > 0 in units of x.

    Examples
    --------
    >>> from kernelopt.kernels import gaussian
    >>> gaussian(width=2.0)([[0.0], [2.0]]).round(4).tolist()
    [[1.0, 0.6065], [0.6065, 1.0]]
    """

    def gram(self, X: Array, Z: Array | None) -> Array:
        return np.asarray(pairwise.rbf_kernel(*self._reduced(X, Z), gamma=0.5))


@dataclass(frozen=True)
class laplacian(_Radial):
    """The Laplacian kernel, k(x, z) = exp(-|x - z|_1 / width), width > 0 in units of x."""

    def gram(self, X: Array, Z: Array | None) -> Array:
        return np.asarray(pairwise.laplacian_kernel(*self._reduced(X, Z), gamma=1.0))


@dataclass(frozen=True)
class polynomial(Kernel):
    """The polynomial kernel, k(x, z) = (x'z + offset)^degree, with a degree >= 1 and an offset >= 0.

    Its rank is at most the number of monomials: comb(d + degree, degree), or
    comb(d + degree - 1, degree) where the offset is zero.
    """

    degree: int = 2
    offset: float = 1.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "degree", whole(self.degree, "degree", wanted="an integer >= 1"))
        object.__setattr__(self, "offset", positive(self.offset, "offset", allow_zero=True))

    def gram(self, X: Array, Z: Array | None) -> Array:
        return np.asarray(pairwise.polynomial_kernel(X, Z, degree=self.degree, gamma=1.0, coef0=self.offset))

    def gram_rank(self, X: Array) -> int:
        return math.comb(X.shape[1] + self.degree - (self.offset == 0), self.degree)


@dataclass(frozen=True)
class linear(polynomial):
    """The linear kernel, k(x, z) = x'z, of rank at most d."""

    degree: int = field(default=1, init=False, repr=False)
    offset: float = field(default=0.0, init=False, repr=False)


@dataclass(frozen=True)
class identity(Kernel):
    """The identity kernel: 1 between a point and itself, 0 between two points.

    A point is its row number, not its coordinates: `identity()(X)` is the identity matrix even where
    rows are equal, and `identity()(X, Z)` is zero, even where Z is X: new points are other points.
    """

    def gram(self, X: Array, Z: Array | None) -> Array:
        return np.eye(len(X)) if Z is None else np.zeros((len(X), len(Z)))


@dataclass(frozen=True)
class _Wrapper(Kernel):
    kernel: Kernel

    def __post_init__(self) -> None:
        if not isinstance(self.kernel, Kernel):
            raise ParameterError(
                f"kernel must be a Kernel such as gaussian(1.0), got {shown(self.kernel)}. "
                "Subclass kernelopt.kernels.Kernel for a function of your own."
            )


@dataclass(frozen=True)
class normalized(_Wrapper):
    """A kernel scaled to unit diagonal, k(x, z) / sqrt(k(x, x) k(z, z)), on new points too."""

    def _lengths(self, X: Array, what: str) -> Array:
        diagonal = self.kernel._finite(self.kernel.gram_diagonal(X))
        for i in np.flatnonzero(diagonal <= 0)[:1]:
            raise InputError(
                f"{self.kernel!r} must be positive between a point and itself, got {diagonal[i]:g} at "
                f"{what}[{i}]. Drop that point, or add an offset: polynomial(1, offset=1.0) is linear plus 1."
            )
        return np.sqrt(diagonal)

    def gram(self, X: Array, Z: Array | None) -> Array:
        left = self._lengths(X, "X")
        K = self.kernel.gram(X, Z) / left[:, None] / (left if Z is None else self._lengths(Z, "Z"))
        if Z is None:
            np.fill_diagonal(K, 1.0)
        return K

    def gram_diagonal(self, X: Array) -> Array:
        return np.ones_like(self._lengths(X, "X"))

    def gram_rank(self, X: Array) -> int:
        return self.kernel.gram_rank(X)


@dataclass(frozen=True)
class on_columns(_Wrapper):
    """A kernel that sees some columns only (an integer >= 0, or several), k(x[columns], z[columns])."""

    columns: ArrayLike

    def __post_init__(self) -> None:
        super().__post_init__()
        chosen = np.atleast_1d(plain(self.columns, "columns"))
        if chosen.ndim != 1 or not chosen.size:
            raise ShapeError(
                f"on_columns must see columns of X, got columns of shape {chosen.shape}. Pass one number "
                "or a list."
            )
        wanted = "an integer >= 0"
        object.__setattr__(self, "columns", tuple(whole(c, "a column", 0, wanted) for c in chosen))

    def __repr__(self) -> str:
        chosen = np.asarray(self.columns)
        columns = repr(self.columns) if chosen.size <= MANY else shown(chosen)
        return f"on_columns(kernel={self.kernel!r}, columns={columns})"

    def _view(self, X: Array) -> Array:
        chosen = np.asarray(self.columns, dtype=int)
        if chosen.size == 0 or chosen.max() >= X.shape[1]:
            raise ShapeError(
                f"{self!r} must see columns of X, got shape {X.shape}. Choose from 0 to {X.shape[1] - 1}."
            )
        return X[:, chosen]

    def gram(self, X: Array, Z: Array | None) -> Array:
        return self.kernel.gram(self._view(X), None if Z is None else self._view(Z))

    def gram_rank(self, X: Array) -> int:
        return self.kernel.gram_rank(self._view(X))


class _PerFeature(tuple[on_columns, ...]):
    @property
    def groups(self) -> NDArray[np.int_]:
        """The feature of each kernel."""
        return np.array([kernel.columns for kernel in self], dtype=int).ravel()


def per_feature(kernels: Kernel | Iterable[Kernel], d: int) -> _PerFeature:
    """Return the kernels that see one of d columns each, feature by feature, a tuple with `.groups`.

    Examples
    --------
    >>> from kernelopt.kernels import gaussian, linear, per_feature
    >>> weak = per_feature([gaussian(1.0), linear()], d=3)
    >>> weak[3], weak.groups.tolist()
    (on_columns(kernel=linear(), columns=(1,)), [0, 0, 1, 1, 2, 2])
    """
    wanted = "a kernel or a list of them"
    each = (kernels,) if isinstance(kernels, Kernel) else as_list(kernels, "kernels", wanted)
    if not each:
        raise ShapeError("kernels must hold at least one kernel, got none. Pass [gaussian(1.0)], say.")
    features = range(whole(d, "d", wanted="an integer >= 1"))
    return _PerFeature(on_columns(kernel, j) for j in features for kernel in each)


def empirical_map(S: ArrayLike, S_new: ArrayLike | None = None) -> Array:
    """Similarities as features, K = S S': shape (n, r) gives (n, n), and (m, n, r) gives (m, n, n).

    New points, with S_new of shape (n_new, r) or (m, n_new, r), give the cross kernels S_new S'.
    """
    features = as_float_array(S, "S", ndim=(2, 3))
    new = features if S_new is None else as_float_array(S_new, "S_new", ndim=(2, 3))
    if new.shape[:-2] != features.shape[:-2] or new.shape[-1] != features.shape[-1]:
        raise ShapeError(
            f"S_new must differ from S {features.shape} in the number of points only, got {new.shape}. "
            "Compare the new points with the same references."
        )
    K = np.asarray(new @ np.swapaxes(features, -1, -2))
    return (K + np.swapaxes(K, -1, -2)) / 2 if S_new is None else K

"""Stacks of Gram matrices: given as an array, evaluated from kernels, or of rank one. Numpy only."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from kernelopt.errors import InputError, NotFiniteError, ParameterError, ShapeError
from kernelopt.factors import pivoted_cholesky
from kernelopt.validation import Array, as_float_array, as_stack, as_symmetric


class Grams(ABC):
    """m symmetric kernel matrices on the same N points, shape (m, N, N).

    Make one with `from_array`, `from_kernels`, `rank_one`, `from_eigenvectors` or `identity`; every
    public function that takes a `Grams` takes an (m, N, N) array too. Nothing is evaluated or factored
    before it is needed, and each matrix once.

    Examples
    --------
    >>> import numpy as np
    >>> import kernelopt as ko
    >>> X = np.array([[0.0], [1.0]])
    >>> grams = ko.Grams.from_kernels([ko.linear(), ko.gaussian(1.0)], X)
    >>> grams.shape
    (2, 2, 2)
    >>> grams.combine([1.0, 2.0]).round(3)
    array([[2.   , 1.213],
           [1.213, 3.   ]])
    """

    def __init__(self, m: int, n_points: int, names: Sequence[str] | None = None) -> None:
        self.shape: tuple[int, int, int] = (m, n_points, n_points)
        self.names: tuple[str, ...] = tuple(names) if names else tuple(f"K[{i}]" for i in range(m))
        self._factors: dict[int, Array] = {}

    @staticmethod
    def from_array(array: ArrayLike, names: Sequence[str] | None = None) -> Grams:
        """Return the stack of an (m, N, N) array of symmetric matrices, of any signature."""
        return ArrayGrams(as_stack(array), names)

    @staticmethod
    def from_kernels(kernels: Sequence[Callable[..., Array]], X: Any) -> Grams:
        """Return the Gram matrices of kernel functions on the N points X, evaluated when needed.

        Parameters
        ----------
        kernels : sequence of kernels
            Such as `gaussian(1.0)`; anything called as `k(X)` and `k(X, Z)` that has `diagonal(X)` and
            `rank(X)`.
        X : array of shape (N, d), or a sequence of N nodes for graph kernels
        """
        return KernelGrams(kernels, X)

    @staticmethod
    def rank_one(V: ArrayLike) -> Grams:
        """Return the m matrices v_i v_i', where v_i is column i of V, shape (N, m)."""
        return RankOneGrams(as_float_array(V, "V", ndim=2))

    @staticmethod
    def from_eigenvectors(K0: ArrayLike, rank: int | None = None) -> Grams:
        """Return v_i v_i' for the orthonormal eigenvectors of K0, largest eigenvalue first.

        Parameters
        ----------
        K0 : array of shape (N, N), symmetric, of any signature
        rank : int in 1..N, optional
            How many to keep; by default all.
        """
        K0 = as_symmetric(K0, "K0")
        keep = len(K0) if rank is None else rank
        if not 1 <= keep <= len(K0):
            raise ParameterError(
                f"rank must be between 1 and {len(K0)}, got {rank}. Leave it out to keep all."
            )
        _, vectors = np.linalg.eigh(K0)
        return RankOneGrams(np.ascontiguousarray(vectors[:, ::-1][:, :keep]))

    @staticmethod
    def identity(n_points: int) -> Grams:
        """Return the stack of the one matrix I, the kernel whose weight is Lanckriet's tau."""
        return IdentityGrams(n_points)

    @abstractmethod
    def gram(self, i: int) -> Array:
        """Return matrix i, shape (N, N)."""

    @abstractmethod
    def block(self, rows: Any) -> Grams:
        """Return the stack on the points `rows`: a slice or an index array."""

    @property
    def n_points(self) -> int:
        """N, the number of points."""
        return self.shape[1]

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, i: int) -> Array:
        return self.gram(range(len(self))[i])

    def __iter__(self) -> Iterator[Array]:
        return (self.gram(i) for i in range(len(self)))

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        return np.asarray(np.stack(list(self)), dtype=dtype)

    def __repr__(self) -> str:
        return f"Grams({len(self)} kernels on {self.n_points} points: {', '.join(self.names[:4])}" + (
            ", ...)" if len(self) > 4 else ")"
        )

    @cached_property
    def diagonals(self) -> Array:
        """The diagonals, shape (m, N)."""
        return np.stack([np.diag(K) for K in self])

    @property
    def traces(self) -> Array:
        """The traces r_i = tr K_i over all N points, shape (m,)."""
        total: Array = self.diagonals.sum(axis=1)
        return total

    @property
    def rank_bounds(self) -> tuple[int, ...]:
        """An upper bound of each rank, known without evaluating anything."""
        return (self.n_points,) * len(self)

    def combine(self, weights: ArrayLike) -> Array:
        """Return sum_i weights_i K_i, shape (N, N)."""
        w = np.ravel(np.asarray(weights, dtype=float))
        total = np.zeros(self.shape[1:])
        for i in np.flatnonzero(w):
            total += w[i] * self.gram(int(i))
        return total

    def apply(self, alpha: ArrayLike) -> Array:
        """Return (K_i alpha)_i, shape (m, N); a shorter alpha belongs to the first points."""
        a = np.asarray(alpha, dtype=float)
        return np.stack([K[:, : a.size] @ a for K in self])

    def forms(self, alpha: ArrayLike) -> Array:
        """Return (alpha' K_i alpha)_i, shape (m,); a shorter alpha belongs to the first points."""
        a = np.asarray(alpha, dtype=float)
        total: Array = self.apply(a)[:, : a.size] @ a
        return total

    def inner(self) -> Array:
        """Return the Frobenius inner products <K_i, K_j>, shape (m, m)."""
        flat = np.asarray(self).reshape(len(self), -1)
        return flat @ flat.T

    def entries(self, rows: ArrayLike, columns: ArrayLike) -> Array:
        """Return (K_i)_{rows, columns}, shape (m, len(rows))."""
        return np.stack([K[np.asarray(rows), np.asarray(columns)] for K in self])

    def vectorized(self) -> Array:
        """Return the matrix with vec K_i as column i, shape (N^2, m)."""
        return np.stack([K.ravel() for K in self], axis=1)

    def factor(self, i: int) -> Array:
        """Return L with K_i = L L', shape (N, r), by Cholesky with complete pivoting.

        Pivots below 1e-11 of the largest diagonal entry are dropped.

        Raises
        ------
        NotPSDError
            If K_i has an eigenvalue below -1e-8 of the largest.
        """
        if i not in self._factors:
            self._factors[i] = pivoted_cholesky(self.gram(i), self.names[i])
        return self._factors[i]

    def cross(self, X_new: Any) -> Array:
        """Return the kernels between new points and the N points, shape (m, n_new, N)."""
        raise InputError(
            f"cross kernels need kernel functions, got {self!r}. Evaluate the kernels between the "
            f"new points and the {self.n_points} points yourself and pass the (m, n_new, N) array."
        )


class ArrayGrams(Grams):
    """A stack held as an array."""

    def __init__(self, array: Array, names: Sequence[str] | None = None) -> None:
        super().__init__(array.shape[0], array.shape[1], names)
        self._array = array

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        return np.asarray(self._array, dtype=dtype)

    def gram(self, i: int) -> Array:
        return np.asarray(self._array[i])

    @property
    def rank_bounds(self) -> tuple[int, ...]:
        return tuple(self.n_points if K.any() else 0 for K in self._array)

    def block(self, rows: Any) -> Grams:
        return ArrayGrams(self._array[:, rows][:, :, rows], self.names)

    def combine(self, weights: ArrayLike) -> Array:
        total: Array = np.tensordot(np.ravel(np.asarray(weights, dtype=float)), self._array, 1)
        return total


class KernelGrams(Grams):
    """The Gram matrices of kernel functions on the points X, evaluated when needed."""

    def __init__(self, kernels: Sequence[Callable[..., Array]], X: Any) -> None:
        if callable(kernels):
            raise InputError(f"kernels must be a list of kernels, got {kernels!r}. Wrap it: [{kernels!r}].")
        if not len(kernels):
            raise ShapeError("kernels must hold at least one kernel, got none. Add one, such as linear().")
        if len(X) == 0:
            raise ShapeError("X must hold at least one point, got none. Pass the data, shape (N, d).")
        self.kernels = tuple(kernels)
        for kernel in self.kernels:
            if isinstance(kernel, type) or not (callable(kernel) and hasattr(kernel, "rank")):
                raise InputError(
                    f"kernels must be kernel objects such as gaussian(1.0), got {kernel!r}. "
                    "Create it first, and pass kernels before the points: from_kernels([...], X)."
                )
        self.X = X if isinstance(X, list | tuple) else as_float_array(X, "X", ndim=2)
        super().__init__(len(self.kernels), len(self.X), [repr(k) for k in self.kernels])
        self._grams: dict[int, Array] = {}

    def gram(self, i: int) -> Array:
        if i not in self._grams:
            K = as_symmetric(self.kernels[i](self.X), self.names[i])
            if len(K) != self.n_points:
                raise ShapeError(
                    f"{self.names[i]} must give a matrix on {self.n_points} points, got shape {K.shape}."
                    " A kernel is called as k(X) and returns an array of shape (len(X), len(X))."
                )
            self._grams[i] = K
        return self._grams[i]

    @cached_property
    def diagonals(self) -> Array:
        return np.stack([np.asarray(k.diagonal(self.X)) for k in self.kernels])  # type: ignore[attr-defined]

    @property
    def rank_bounds(self) -> tuple[int, ...]:
        return tuple(min(self.n_points, k.rank(self.X)) for k in self.kernels)  # type: ignore[attr-defined]

    def block(self, rows: Any) -> Grams:
        if isinstance(self.X, np.ndarray):
            return KernelGrams(self.kernels, self.X[rows])
        return KernelGrams(self.kernels, [self.X[i] for i in np.arange(self.n_points)[rows]])

    def cross(self, X_new: Any) -> Array:
        if isinstance(self.X, np.ndarray) and np.ndim(X_new) == 2 and np.shape(X_new)[1] != self.X.shape[1]:
            raise ShapeError(
                f"X_new must have {self.X.shape[1]} columns, as the points of the kernels, got shape "
                f"{np.shape(X_new)}. Apply the same preprocessing to the new points."
            )
        cross = np.stack([k(X_new, self.X) for k in self.kernels])
        if not np.isfinite(cross).all():
            raise NotFiniteError("cross kernels must be finite, got NaN or infinity. Check the new points.")
        return cross


class RankOneGrams(Grams):
    """The matrices v_i v_i' of the columns of V."""

    def __init__(self, V: Array) -> None:
        super().__init__(V.shape[1], V.shape[0], [f"v{i} v{i}'" for i in range(V.shape[1])])
        self.V = V

    def gram(self, i: int) -> Array:
        return np.outer(self.V[:, i], self.V[:, i])

    def block(self, rows: Any) -> Grams:
        return RankOneGrams(self.V[rows])

    @cached_property
    def diagonals(self) -> Array:
        return (self.V**2).T

    @property
    def rank_bounds(self) -> tuple[int, ...]:
        return (1,) * len(self)

    def combine(self, weights: ArrayLike) -> Array:
        return np.asarray((self.V * np.ravel(np.asarray(weights, dtype=float))) @ self.V.T)

    def apply(self, alpha: ArrayLike) -> Array:
        a = np.asarray(alpha, dtype=float)
        return (self.V * (a @ self.V[: a.size])).T

    def inner(self) -> Array:
        products: Array = (self.V.T @ self.V) ** 2
        return products

    def factor(self, i: int) -> Array:
        return self.V[:, i : i + 1]


class IdentityGrams(Grams):
    """The one matrix I: a point is similar to itself alone, so new points are similar to none."""

    def __init__(self, n_points: int) -> None:
        super().__init__(1, n_points, ["I"])

    def gram(self, i: int) -> Array:
        return np.eye(self.n_points)

    def block(self, rows: Any) -> Grams:
        return IdentityGrams(len(np.arange(self.n_points)[rows]))

    def factor(self, i: int) -> Array:
        return np.eye(self.n_points)

    def cross(self, X_new: Any) -> Array:
        return np.zeros((1, len(X_new), self.n_points))


def as_grams(grams: Grams | ArrayLike) -> Grams:
    """Return `grams` as a `Grams`, taking an (m, N, N) array as well."""
    return grams if isinstance(grams, Grams) else Grams.from_array(grams)

"""Operations on a stack of symmetric matrices: sums, products, rows and factors."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kernelopt.errors import ParameterError, ShapeError
from kernelopt.grams.caching import BoundedCache, all_cached, cached_array, chunks, positions, read_only
from kernelopt.numerics.factors import pivoted_cholesky
from kernelopt.validation import Array, Index, numeric, row_maxima, shown


class Matrices(ABC):
    """m symmetric matrices of order N; all operations follow from the method `gram`.

    A stack that can compute single rows overrides `rows`, which is used for matrices that are too large to
    cache. Several threads may read one stack. Cached arrays are read-only.
    """

    origin: tuple[Any, NDArray[np.intp]] | None = None
    """For a subset: the stack it was taken from, and the positions of its matrices there."""

    _applied: tuple[Array, Array] | None = None  # the last alpha, and its images

    def __init__(self, m: int, n_points: int, names: Sequence[str] | None = None) -> None:
        self.shape: tuple[int, int, int] = (m, n_points, n_points)
        self.names: tuple[str, ...] = tuple(names) if names else tuple(f"K[{i}]" for i in range(m))
        self._factors = BoundedCache()

    def __getstate__(self) -> dict[str, Any]:
        """Return the state of a copy, without caches and without the stack that a subset was taken from."""
        state = dict(vars(self))  # an atomic copy, since another thread may add to it
        return {
            k: v
            for k, v in state.items()
            if k not in ("origin", "_applied") and not isinstance(getattr(type(self), k, None), cached_array)
        }

    @abstractmethod
    def gram(self, i: int) -> Array:
        """Return matrix i, shape (N, N)."""

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
        if copy is False:
            raise ValueError(
                f"an array of all matrices is a copy, got copy=False for {self!r}. Leave it out."
            )
        return np.asarray(np.stack(list(self)), dtype=dtype)

    def __repr__(self) -> str:
        return f"Grams({len(self)} kernels on {self.n_points} points: {', '.join(self.names[:4])}" + (
            ", ...)" if len(self) > 4 else ")"
        )

    def rows(self, indices: Any) -> Array:
        """Return the rows `indices` of all matrices, shape (m, len(indices), N).

        Kernel functions, rank-one matrices and their normalised stacks compute only these rows. A solver
        that works on few points at a time therefore never holds a whole matrix.

        Parameters
        ----------
        indices : sequence of integers (in any order, with repetitions), or a slice
            As in numpy, -1 is the last point.

        Raises
        ------
        ParameterError
            If there is no such point.

        Examples
        --------
        >>> import numpy as np
        >>> import kernelopt as ko
        >>> ko.Grams.from_kernels([ko.linear()], [[1.0], [2.0], [3.0]]).rows([2])
        array([[[3., 6., 9.]]])
        """
        chosen = self._positions(indices)
        return np.stack([K[chosen] for K in self])

    def _positions(self, indices: Any) -> NDArray[np.intp]:
        """Return a slice or sequence of indices as an array of indices."""
        return positions(indices, self.n_points, "points", "Grams.rows")

    def _block(self, rows: Any) -> slice | NDArray[np.intp]:
        """Return the points of a block: a slice unchanged, anything else as an array of indices."""
        chosen = positions(rows, self.n_points, "points", "Grams.block", "rows")
        if not chosen.size:
            raise ParameterError(
                f"rows must choose at least one point, got {shown(rows)} in Grams.block of {self!r}. "
                "Pass the numbers of the points to keep."
            )
        return rows if isinstance(rows, slice) else chosen

    def _weights(self, weights: Any) -> Array:
        """Return one number per matrix, shape (m,). Numbers that are not finite are passed on."""
        w = np.atleast_1d(numeric(weights, "weights"))
        if w.shape != (len(self),):
            raise ShapeError(
                f"weights must have shape ({len(self)},), one per kernel, got {w.shape} for {self!r}. "
                "Take some of the kernels with grams.subset(indices)."
            )
        return w

    def _alpha(self, alpha: Any) -> Array:
        """Return one number for each of the first n points, shape (n,), finite or not."""
        a = numeric(alpha, "alpha")
        if a.ndim != 1 or a.size > self.n_points:
            raise ShapeError(
                f"alpha must have shape (n,) with n <= {self.n_points} points, got {a.shape} for {self!r}. "
                "Pass one number per point, those of the first points first."
            )
        return a

    def _pairs(self, rows: Any, columns: Any) -> tuple[Index, Index]:
        """Return row and column indices of entries as two vectors of one length."""
        where = "Grams.entries"
        i = positions(rows, self.n_points, "points", where, "rows")
        j = positions(columns, self.n_points, "points", where, "columns")
        if i.size != j.size:
            raise ShapeError(
                f"rows and columns must have one length, got {i.size} and {j.size}. "
                "Pass one row and one column per entry."
            )
        return i, j

    @cached_array
    def diagonals(self) -> Array:
        """The diagonals, shape (m, N)."""
        return np.stack([np.diag(K).copy() for K in self])  # a view would keep the whole matrix in memory

    @property
    def known_semidefinite(self) -> bool:
        """Whether the matrices are positive semidefinite by construction."""
        return False

    @property
    def magnitudes(self) -> Array:
        """Numbers d of shape (m, N) with |K_i,jk| <= sqrt(d_ij d_ik), for bounds of rounding errors.

        They are the diagonals of matrices that are PSD by construction, and else the largest entries of the
        rows.
        """
        return np.abs(self.diagonals) if self.known_semidefinite else self.largest_entries

    @cached_array
    def largest_entries(self) -> Array:
        """The largest absolute value in each row, shape (m, N)."""
        if all_cached(self.shape):
            return np.stack([row_maxima(K) for K in self])
        return np.concatenate([row_maxima(self.rows(chunk)) for chunk in chunks(self.shape)], axis=1)

    @property
    def traces(self) -> Array:
        """The traces r_i = tr K_i over all N points, shape (m,)."""
        total: Array = self.diagonals.sum(axis=1)
        return total

    @cached_array
    def row_means(self) -> Array:
        """The row means K_i 1 / N, shape (m, N)."""
        return self.apply(np.ones(self.n_points)) / self.n_points

    @property
    def rank_bounds(self) -> tuple[int, ...]:
        """An upper bound of the rank of each matrix, known without evaluating it."""
        return (self.n_points,) * len(self)

    def combine(self, weights: ArrayLike) -> Array:
        """Return sum_i weights_i K_i, shape (N, N)."""
        w = self._weights(weights)
        total = np.zeros(self.shape[1:])
        for i in np.flatnonzero(w):
            total += w[i] * self.gram(int(i))
        return total

    def apply(self, alpha: ArrayLike) -> Array:
        """Return (K_i alpha)_i, shape (m, N), read-only; a shorter alpha belongs to the first points.

        The images of the last alpha are cached, since certificates, multipliers and weights need the same
        ones.
        """
        a, last = self._alpha(alpha), self._applied
        if last is not None and np.array_equal(a, last[0]):
            return last[1]
        images = read_only(self._apply(a))
        self._applied = a.copy(), images
        return images

    def _apply(self, a: Array) -> Array:
        """Compute the result of `apply`."""
        if all_cached(self.shape):
            return np.stack([K[:, : a.size] @ a for K in self])
        images = [self.rows(chunk)[:, :, : a.size] @ a for chunk in chunks(self.shape)]
        return np.concatenate(images, axis=1)

    def forms(self, alpha: ArrayLike) -> Array:
        """Return (alpha' K_i alpha)_i, shape (m,); a shorter alpha belongs to the first points."""
        a = self._alpha(alpha)
        total: Array = self.apply(a)[:, : a.size] @ a
        return total

    def inner(self) -> Array:
        """Return the Frobenius inner products <K_i, K_j>, shape (m, m)."""
        flat = np.asarray(self).reshape(len(self), -1)
        return flat @ flat.T

    def entries(self, rows: ArrayLike, columns: ArrayLike) -> Array:
        """Return (K_i)_{rows, columns}, shape (m, len(rows))."""
        i, j = self._pairs(rows, columns)
        return np.stack([K[i, j] for K in self])

    def vectorized(self) -> Array:
        """Return the matrix with vec K_i as column i, shape (N^2, m)."""
        return np.stack([K.ravel() for K in self], axis=1)

    def factor(self, i: int) -> Array:
        """Return L with K_i = L L', shape (N, r), by Cholesky factorisation with complete pivoting.

        Pivots below 1e-11 of the largest diagonal entry are dropped.

        Raises
        ------
        NotPSDError
            If K_i has an eigenvalue below -1e-8 of the largest.
        """
        return self._factors.get(i, lambda i: pivoted_cholesky(self.gram(i), self.names[i]))

"""`Grams`: kernel matrices on N points, their construction, normalisation and extension to new points."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import wraps
from typing import Any, Literal, SupportsIndex, TypeVar, final

import numpy as np
from numpy.typing import ArrayLike

from kernelopt.errors import InputError, NotFiniteError, ParameterError, ShapeError, insufficient_memory
from kernelopt.grams.arguments import (
    as_alpha,
    as_names,
    as_pairs,
    as_weights,
    positions,
)
from kernelopt.grams.evaluated import KernelStorage
from kernelopt.grams.functions import KernelFunction, as_kernels
from kernelopt.grams.given import as_stack
from kernelopt.grams.normalized import CenteredStorage, normalized
from kernelopt.grams.storage import EVERY, Storage
from kernelopt.grams.stored import IdentityStorage, RankOneStorage
from kernelopt.validation import LARGEST_SQUARED, Array, Index, as_float_array, as_symmetric, shown, whole

F = TypeVar("F", bound=Callable[..., Any])


def in_memory(method: F) -> F:
    """Let a MemoryError of a method of `Grams` say how large the kernels are, and what would fit."""

    @wraps(method)
    def called(self: Any, *args: Any, **kwargs: Any) -> Any:
        try:
            return method(self, *args, **kwargs)
        except MemoryError as error:
            raise insufficient_memory(error, *self.shape[:2]) from error

    return called  # type: ignore[return-value]


@final
class Grams:
    """A stack of m symmetric kernel matrices on the same N points, shape (m, N, N).

    A stack is made by `from_array`, `from_kernels`, `rank_one`, `from_eigenvectors` or `identity`, and
    scaled by `center` and `normalize`. Every public function that takes a `Grams` also takes an (m, N, N)
    array. A large array is used in place: see `from_array`. Matrices are evaluated and
    factored when they are first needed. The results are cached while the cache of the stack is below 1 GB.

    This class checks arguments. The matrices are held by `storage`, whose class names their form, such
    as `ArrayStorage` or `KernelStorage`: it does the arithmetic and has the caches.

    Parameters
    ----------
    storage : Storage
        What holds the matrices. The functions above make it.

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

    def __init__(self, storage: Storage) -> None:
        if not isinstance(storage, Storage):
            raise InputError(
                f"a Grams is made of a storage of matrices, got {shown(storage)} ({type(storage).__name__}). "
                "Make it with Grams.from_array, from_kernels, rank_one, from_eigenvectors or identity."
            )
        self.storage, self.shape, self.names = storage, storage.shape, storage.names
        self.n_points = storage.n_points

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, i: int) -> Array:
        if not isinstance(i, SupportsIndex):
            raise InputError(
                f"grams[i] is one matrix, i must be an integer, got {shown(i)} ({type(i).__name__}). "
                "grams.subset([0, 2]) selects kernels, grams.block(rows) selects points."
            )
        return self.gram(range(len(self))[i])

    def __iter__(self) -> Iterator[Array]:
        try:
            yield from self.storage
        except MemoryError as error:
            raise insufficient_memory(error, *self.shape[:2]) from error

    @in_memory
    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        return self.storage.__array__(dtype, copy)

    def __repr__(self) -> str:
        return self.storage.described()

    @staticmethod
    def from_array(array: ArrayLike, names: Sequence[str] | None = None) -> Grams:
        """Return the stack of an (m, N, N) array of symmetric matrices, of any signature.

        Parameters
        ----------
        array : array of shape (m, N, N)
            It is checked in one pass. A relative asymmetry up to 1e-8 is rounding, and is averaged. An array
            of at least 32 MB, or a read-only one, is used without a copy if it is symmetric to the last bit
            and its entries are contiguous float64 or float32 numbers: what is computed after a change of its
            numbers mixes both. Other arrays are copied. A float32 array is kept as float32, at half the
            memory. Its entries are exact as doubles, and all sums are of doubles.
        names : sequence of m str, optional
            The names of the kernels; by default "K[0]", "K[1]", ...

        Raises
        ------
        ShapeError, NotFiniteError, NotSymmetricError
            If it is no such array; the message names the matrix and the entry.
        """
        storage: Storage = as_stack(array)
        return Grams(storage if names is None else storage.renamed(as_names(names, len(storage))))

    @staticmethod
    def from_kernels(kernels: Sequence[KernelFunction], X: Any) -> Grams:
        """Return the Gram matrices of kernel functions on the N points X, evaluated when needed.

        Parameters
        ----------
        kernels : sequence of kernels
            Such as `gaussian(1.0)`. A kernel is called as `k(X)` and `k(X, Z)`, and has the methods
            `diagonal(X)` and `rank(X)`.
        X : array of shape (N, d), or a sequence of N strings or nodes for kernels of strings or nodes
            The stack keeps a copy. Of a read-only memory map of a whole .npy file, of at least 32 MB, it
            reads the file instead, block by block, as `kernelopt.cluster.rows` does; a file that changes
            later is an error.
        """
        return Grams(KernelStorage(as_kernels(kernels), X))

    @staticmethod
    def rank_one(V: ArrayLike) -> Grams:
        """Return the m matrices v_i v_i', where v_i is column i of V, shape (N, m).

        Parameters
        ----------
        V : array of shape (N, m)
            The vectors v_i as columns.
        """
        vectors = as_float_array(V, "V", ndim=2)
        if not vectors.size:
            raise ShapeError(
                f"V must hold at least one vector, got shape {vectors.shape}. Put one in each column."
            )
        largest = float(np.abs(vectors).max())
        if largest > LARGEST_SQUARED:
            raise NotFiniteError(
                f"V must hold numbers of at most {LARGEST_SQUARED:g} in size, since the matrices hold their "
                f"products, got {largest:g}. Divide its columns by a unit."
            )
        return Grams(RankOneStorage(vectors.copy()))

    @staticmethod
    def from_eigenvectors(K0: ArrayLike, rank: int | None = None) -> Grams:
        """Return v_i v_i' for the orthonormal eigenvectors of K0, largest eigenvalue first.

        Parameters
        ----------
        K0 : array of shape (N, N), symmetric, of any signature
            The matrix whose eigenvectors are taken.
        rank : int in 1..N, optional
            The number of eigenvectors; by default N.
        """
        K0 = as_symmetric(K0, "K0")
        keep = len(K0) if rank is None else whole(rank, "rank", wanted=f"an integer between 1 and {len(K0)}")
        if keep > len(K0):
            raise ParameterError(
                f"rank must be between 1 and {len(K0)}, got {rank}. Leave it out to keep all."
            )
        _, vectors = np.linalg.eigh(K0)
        return Grams.rank_one(vectors[:, ::-1][:, :keep])

    @staticmethod
    def identity(n_points: int) -> Grams:
        """Return the stack of the single matrix I, whose weight is the ridge tau of Lanckriet et al.

        Parameters
        ----------
        n_points : int >= 1
            N.
        """
        return Grams(IdentityStorage(whole(n_points, "n_points")))

    def block(self, rows: Any) -> Grams:
        """Return the stack on the points `rows`: a slice or an index array; itself if all are in order.

        Parameters
        ----------
        rows : slice, or integer array
            Numbers of points, in any order.
        """
        chosen = positions(self.storage, rows, "points", "Grams.block", "rows", least=1)
        if np.array_equal(chosen, np.arange(self.n_points)):
            return self
        return Grams(self.storage.block(rows if isinstance(rows, slice) else chosen))

    def subset(self, indices: Any) -> Grams:
        """Return the stack of the kernels `indices` on the same points.

        Nothing is evaluated. Both stacks share one cache, with one limit.

        Parameters
        ----------
        indices : sequence of integers (in any order, with repetitions), a mask or a slice
            As in numpy, -1 is the last kernel. At least one kernel.

        Returns
        -------
        Grams
            A stack of `len(indices)` kernels with their names; the stack itself if `indices` are all in
            order.

        Raises
        ------
        ParameterError
            If there is no such kernel, or none is chosen.

        Examples
        --------
        >>> import kernelopt as ko
        >>> grams = ko.Grams.from_kernels([ko.linear(), ko.gaussian(1.0), ko.laplacian(2.0)], [[0.0], [1.0]])
        >>> grams.subset([2, 0])
        Grams(2 kernels on 2 points: laplacian(width=2.0), linear())
        """
        part = self.storage.subset(positions(self.storage, indices, "kernels", "Grams.subset", least=1))
        return self if part is self.storage else Grams(part)

    @in_memory
    def gram(self, i: int) -> Array:
        """Return matrix i, shape (N, N).

        Parameters
        ----------
        i : int from 0 to m - 1
            The number of the kernel.
        """
        return self.storage.gram(i)

    @in_memory
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
        return self.storage.between(positions(self.storage, indices, "points", "Grams.rows"), EVERY)

    @property
    def diagonals(self) -> Array:
        """The diagonals, shape (m, N)."""
        return self.storage.diagonals

    @property
    def traces(self) -> Array:
        r"""The traces :math:`r_i = \mathrm{tr}\, K_i` over all N points, shape (m,)."""
        return np.asarray(self.diagonals.sum(axis=1))

    @property
    @in_memory
    def row_means(self) -> Array:
        """The row means K_i 1 / N, shape (m, N)."""
        return self.storage.row_means

    @property
    def known_semidefinite(self) -> bool:
        """Whether the matrices are positive semidefinite by construction."""
        return self.storage.known_semidefinite

    @property
    def magnitudes(self) -> Array:
        """Numbers d of shape (m, N) with |K_i,jk| <= sqrt(d_ij d_ik), for bounds of rounding errors.

        They are the diagonals of matrices that are PSD by construction, and else the largest entries of the
        rows.
        """
        return self.storage.magnitudes

    @property
    def rank_bounds(self) -> tuple[int, ...]:
        """An upper bound of the rank of each matrix, known without evaluating it."""
        return self.storage.rank_bounds

    @in_memory
    def combine(self, weights: ArrayLike) -> Array:
        """Return sum_i weights_i K_i, shape (N, N).

        Parameters
        ----------
        weights : array of shape (m,)
            Of any sign.
        """
        return self.storage.combine(as_weights(self.storage, weights))

    @in_memory
    def apply(self, alpha: ArrayLike) -> Array:
        """Return (K_i alpha)_i, shape (m, N), read-only; a shorter alpha belongs to the first points.

        The images of the last alpha are cached, since certificates, multipliers and weights need the same
        ones.

        Parameters
        ----------
        alpha : array of shape (N,), or shorter
            A shorter one belongs to the first points.
        """
        return self.storage.apply(as_alpha(self.storage, alpha))

    @in_memory
    def images(self, alpha: ArrayLike, points: Index) -> Array:
        """Return the entries `points` of (K_i alpha)_i, shape (m, len(points)).

        A shorter alpha belongs to the first points. Kernel functions are evaluated at these points alone.

        Parameters
        ----------
        alpha : array of shape (N,), or shorter
            A shorter one belongs to the first points.
        points : integer array
            Numbers of points, in any order.
        """
        return self.storage.images(as_alpha(self.storage, alpha), points)

    @in_memory
    def forms(self, alpha: ArrayLike) -> Array:
        """Return (alpha' K_i alpha)_i, shape (m,); a shorter alpha belongs to the first points.

        Parameters
        ----------
        alpha : array of shape (N,), or shorter
            A shorter one belongs to the first points.
        """
        a = as_alpha(self.storage, alpha)
        with np.errstate(over="ignore"):  # the form of a large alpha may be infinite
            return self.storage.forms(a)

    @in_memory
    def inner(self) -> Array:
        """Return the Frobenius inner products <K_i, K_j>, shape (m, m)."""
        return self.storage.inner()

    @in_memory
    def entries(self, rows: ArrayLike, columns: ArrayLike) -> Array:
        """Return (K_i)_{rows, columns}, shape (m, len(rows)).

        Parameters
        ----------
        rows, columns : integer arrays of one length
            The numbers of the two points of each entry.
        """
        return self.storage.entries(*as_pairs(self.storage, rows, columns))

    @in_memory
    def vectorized(self) -> Array:
        """Return the matrix with vec K_i as column i, shape (N^2, m)."""
        return np.stack([K.ravel() for K in self], axis=1)

    @in_memory
    def factor(self, i: int) -> Array:
        """Return L with K_i = L L', shape (N, r), by Cholesky factorisation with complete pivoting.

        Pivots below 1e-11 of the largest diagonal entry are dropped.

        Parameters
        ----------
        i : int from 0 to m - 1
            The number of the kernel.

        Raises
        ------
        NotPSDError
            If K_i has an eigenvalue below -1e-8 of the largest.
        """
        return self.storage.factor(i)

    @in_memory
    def cross(self, X_new: Any) -> Array:
        """Return the kernels between new points and the N points, shape (m, n_new, N).

        Parameters
        ----------
        X_new : points as the stack was made from
            The n_new new points.
        """
        return self.storage.cross(X_new)

    @in_memory
    def self_similarity(self, X_new: Any) -> Array:
        """Return the kernels k_i(x, x) of each new point with itself, shape (m, n_new).

        Parameters
        ----------
        X_new : points as the stack was made from
            The n_new new points.
        """
        return self.storage.self_similarity(X_new)

    def center(self) -> Grams:
        r"""Return the kernels of the features minus their mean over these N points.

        .. math:: \tilde k(x, z) = k(x, z) - \frac1N \sum_i k(x, x_i) - \frac1N \sum_i k(x_i, z)
                  + \frac1{N^2} \sum_{i,j} k(x_i, x_j)

        New points have the same mean of the N points subtracted, in `cross` and in any `block`.

        Examples
        --------
        >>> import kernelopt as ko
        >>> grams = ko.Grams.from_kernels([ko.linear()], [[0.0], [4.0]]).center()
        >>> grams[0]
        array([[ 4., -4.],
               [-4.,  4.]])
        >>> grams.cross([[3.0]])
        array([[[-2.,  2.]]])
        """
        return Grams(CenteredStorage(self.storage))

    def normalize(self, kind: Literal["multiplicative", "spherical", "trace"]) -> Grams:
        r"""Return the kernels on a common scale, so that their weights compare.

        ================  ============================================================  ======================
        kind              the kernel k(x, z) becomes                                    afterwards
        ================  ============================================================  ======================
        "multiplicative"  :math:`k(x, z) \,/\, (\frac1N \sum_i k(x_i, x_i)              features of variance 1
                          - \frac1{N^2} \sum_{ij} k(x_i, x_j))`
        "spherical"       :math:`k(x, z) \,/ \sqrt{k(x, x)\, k(z, z)}`                  k(x, x) = 1
        "trace"           :math:`k(x, z) \,/\, \frac1N \sum_i k(x_i, x_i)`              tr K = N
        ================  ============================================================  ======================

        The first two are (26) and (27) of [1]_. The sums run over the N points of this stack, also in
        `cross`, for new points, and in any `block`; k(x, x) is each point's own. The names stay. Nothing is
        evaluated here: a kernel that cannot be scaled is found out when its values are needed.

        Parameters
        ----------
        kind : "multiplicative", "spherical" or "trace"
            The scale; see the table.

        Raises
        ------
        ParameterError
            If there is no such kind.
        InputError
            When values are needed: if a variance (a trace) is not above 1e-11 of the mean diagonal
            (zero), or for "spherical" if some k(x, x) <= 0. It names the kernel, and the point.

        References
        ----------
        .. [1] Kloft et al., JMLR 12 (2011), equations (26) and (27).

        Examples
        --------
        >>> import kernelopt as ko
        >>> grams = ko.Grams.from_kernels([ko.linear()], [[0.0], [4.0]]).center().normalize("multiplicative")
        >>> grams[0]
        array([[ 1., -1.],
               [-1.,  1.]])
        >>> grams.cross([[3.0]])
        array([[[-0.5,  0.5]]])
        """
        return Grams(normalized(self.storage, kind))


def as_grams(grams: Grams | ArrayLike, what: str = "grams") -> Grams:
    """Return a stack of kernels as `Grams`.

    Parameters
    ----------
    grams : Grams or array of shape (m, N, N)
        Symmetric matrices on the same N points.
    what : str, default "grams"
        The name of the argument, for the message.

    Returns
    -------
    Grams
        `grams` itself where it is one.

    Raises
    ------
    ShapeError, NotFiniteError, NotSymmetricError
        If it is no such stack.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelopt.extend import as_grams
    >>> as_grams([np.eye(2), np.ones((2, 2))]).shape
    (2, 2, 2)
    """
    return grams if isinstance(grams, Grams) else Grams(as_stack(grams, what))

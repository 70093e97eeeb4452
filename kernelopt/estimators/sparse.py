"""Sparse points: kernels that are functions of inner products, from sparse products."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated, Any

import numpy as np
import scipy.sparse as sp

from kernelopt.errors import InputError, ParameterError
from kernelopt.estimators.columns import is_default
from kernelopt.estimators.dictionary import as_kernel, kernel_triples
from kernelopt.estimators.kernels import NORMALIZATIONS, PAIRS, scaled_by
from kernelopt.grams import Grams
from kernelopt.grams.caching import pieces
from kernelopt.grams.storage import numbered
from kernelopt.kernels import Kernel, normalized, polynomial
from kernelopt.records import digest, record
from kernelopt.validation import Array, Index, one_of


class SparsePoints:
    """Checked sparse points, indexed by sample as an array is.

    Parameters
    ----------
    matrix : sparse array of shape (n, d), in rows
    """

    ndim = 2

    def __init__(self, matrix: Any) -> None:
        self.matrix = sp.csr_array(matrix, copy=True)
        self.matrix.sum_duplicates()
        self.matrix.eliminate_zeros()
        self.shape = self.matrix.shape

    def __len__(self) -> int:
        return int(self.shape[0])

    def __getitem__(self, chosen: Any) -> SparsePoints:
        rows = chosen[0] if isinstance(chosen, tuple) else chosen  # scikit-learn writes array[chosen, ...]
        return SparsePoints(self.matrix[rows])

    def joined(self, other: SparsePoints) -> SparsePoints:
        """Return these points followed by others."""
        return SparsePoints(sp.vstack([self.matrix, other.matrix]))

    @property
    def kinds(self) -> Index:
        """A number for each row, equal for equal rows, shape (n,)."""
        A = self.matrix
        ends = zip(A.indptr[:-1], A.indptr[1:], strict=True)
        rows = [(A.indices[a:b].tobytes(), A.data[a:b].tobytes()) for a, b in ends]
        numbers = {row: k for k, row in enumerate(sorted({*rows}))}
        return np.array([numbers[row] for row in rows])

    @property
    def checksum(self) -> str:
        """A checksum of the entries."""
        A = self.matrix
        return digest((A.data, A.indices.astype(np.int64), A.indptr.astype(np.int64), A.shape[1]))

    @property
    def squares(self) -> Array:
        """The squared lengths |x_i|^2, shape (n,)."""
        return np.asarray(self.matrix.multiply(self.matrix).sum(axis=1)).ravel()


def sparse_kernel(kernel: Kernel, X: SparsePoints, Z: SparsePoints | None = None) -> Array:
    r"""Return k(x_i, z_j) for sparse points, where Z = None means X.

    Inner products are sparse, and :math:`|x - z|^2 = |x|^2 + |z|^2 - 2 x'z`; the points are not moved to
    their mean, which would fill them, so that they should be near the origin.

    Raises
    ------
    ParameterError
        If the kernel is no function of x'z or |x - z|^2 of all columns.
    """
    if isinstance(kernel, normalized):
        left = lengths(kernel.kernel, X)
        return (
            sparse_kernel(kernel.kernel, X, Z)
            / left[:, None]
            / (left if Z is None else lengths(kernel.kernel, Z))
        )
    profile = kernel.profile()
    inner = (X.matrix @ (X if Z is None else Z).matrix.T).toarray()
    if isinstance(kernel, polynomial):
        powers: Array = (inner + kernel.offset) ** kernel.degree
        return powers
    if profile is None or profile.metric != "sqeuclidean" or profile.columns is not None:
        raise ParameterError(
            "kernels of sparse points must be functions of x'z or |x - z|^2, such as linear(), polynomial(2) "
            f"and gaussian(1.0), got {kernel!r}. Choose others, or pass X.toarray()."
        )
    D = X.squares[:, None] + (X if Z is None else Z).squares - 2 * inner
    K = np.asarray(profile.function(np.maximum(D, 0.0)))
    if Z is None:
        np.fill_diagonal(K, profile.own)
    return K


def lengths(kernel: Kernel, X: SparsePoints) -> Array:
    """Return the roots of k(x_i, x_i) for sparse points, which must be positive."""
    profile = kernel.profile()
    if isinstance(kernel, polynomial):
        found = (X.squares + kernel.offset) ** kernel.degree
    else:  # a function of |x - z|^2, or `sparse_kernel` refuses it
        found = np.full(len(X), 1.0 if profile is None else profile.own)
    for i in np.flatnonzero(found <= 0)[:1]:
        raise InputError(
            f"{kernel!r} must be positive between a point and itself, got {found[i]:g} at X[{i}]. Drop that "
            "point, or add an offset: polynomial(1, offset=1.0) is linear plus 1."
        )
    return np.asarray(np.sqrt(found))


@record("sparse points")
@dataclass(frozen=True, eq=False)
class SparseKernels:
    """Normalised kernel functions k_m / c_m and sparse training points, as `PointKernels`.

    Attributes
    ----------
    constants : array of shape (m,)
    kernels : tuple of m Kernels
    names : tuple of m str
    data, indices, indptr : arrays
        The training points, of shape (s, d), as `scipy.sparse.csr_array` has them.
    d : int
    """

    constants: Annotated[Array, "m"]
    kernels: Annotated[tuple[Kernel, ...], "m"]
    names: Annotated[tuple[str, ...], "m"]
    data: Annotated[Array, "e"]
    indices: Annotated[Index, "e"]
    indptr: Annotated[Index, "r"]
    d: int

    def __post_init__(self) -> None:
        matrix = sp.csr_array((self.data, self.indices, self.indptr), shape=(self.indptr.size - 1, self.d))
        matrix.check_format(full_check=True)

    @property
    def points(self) -> SparsePoints:
        """The training points."""
        shape = (self.indptr.size - 1, self.d)
        return SparsePoints(sp.csr_array((self.data, self.indices, self.indptr), shape=shape))

    def at(self, X: SparsePoints, weights: Array) -> Array:
        """Return sum_m weights_m k_m(x, x_i) / c_m at new points x and the training points x_i."""
        factors, Z = np.asarray(weights) / self.constants, self.points
        total = np.zeros((len(X), len(Z)))
        for part in pieces(len(X), len(Z), PAIRS):
            for i in np.flatnonzero(factors):
                total[part] += factors[i] * sparse_kernel(self.kernels[i], X[part], Z)
        return total

    def own(self, samples: Any, weights: Array) -> Array:
        """Return the sum of `at` between the training points. The stack of `StackKernels` is not needed."""
        return self.at(self.points, weights)

    def moved(self, samples: SparsePoints) -> SparseKernels:
        """Return the kernels with other training points."""
        return replace(self, **stored(samples))

    def only(self, points: Index) -> SparseKernels:
        """Return the kernels with some of the training points, such as the support points."""
        return self.moved(self.points[points])

    def check(self, features: Any) -> int:
        """Return the number of training points, and raise unless they have the columns of X."""
        if self.d != features:
            raise ValueError(f"sparse points of {features} columns expected, got {self.d}")
        return len(self.points)


def stored(X: SparsePoints) -> dict[str, Any]:
    """Return sparse points as `SparseKernels` keeps them."""
    A = X.matrix
    return {"data": A.data, "indices": A.indices.astype(np.intp), "indptr": A.indptr.astype(np.intp)}


def trained_on_sparse(
    kernels: Any, X: SparsePoints, normalize: str, weights: Array
) -> tuple[SparseKernels, Grams]:
    """Return the normalised kernels of an argument `kernels`, and their stack on weighted sparse points."""
    spherical = one_of(normalize, "normalize", NORMALIZATIONS) == "spherical"
    found, names = list[Kernel](), list[str]()
    for name, kernel, columns in kernel_triples(kernels):
        if is_default(kernel) or columns is not None:
            which = "the default kernels, which standardise" if kernel is None else f"{kernel!r}"
            what = which if columns is None else "a kernel of chosen columns"
            raise ParameterError(
                f"kernels of sparse X must be given, and read all columns as they are, got {what}. Pass for "
                'instance ["linear()", "gaussian(1.0)"], or X.toarray().'
            )
        read = as_kernel(kernel)
        names.append(name or repr(read))
        found.append(normalized(read) if spherical else read)
    stack = np.stack([sparse_kernel(kernel, X) for kernel in found])
    grams = Grams.from_array((stack + stack.transpose(0, 2, 1)) / 2, list(numbered(names)))
    scaled, constants = scaled_by(grams, normalize, weights)
    return SparseKernels(constants, tuple(found), numbered(names), d=X.shape[1], **stored(X)), scaled

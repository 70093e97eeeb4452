"""`Grams`: kernel matrices on N points, their construction, normalisation and extension to new points."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kernelopt.errors import InputError, ParameterError, ShapeError
from kernelopt.grams.caching import positions
from kernelopt.grams.matrices import Matrices
from kernelopt.validation import (
    PSD_TOLERANCE,
    Array,
    as_float_array,
    as_list,
    as_stack,
    as_symmetric,
    shown,
    whole,
)

if TYPE_CHECKING:
    from kernelopt.grams.evaluated import KernelFunction

LEADING_POINTS = 100  # order of the block that is tested: its factorisation takes 0.1 ms

# The factories import their subclasses of `Grams` when they are called, since those import this module.


class Grams(Matrices):
    """m symmetric kernel matrices on the same N points, shape (m, N, N).

    A stack is made by `from_array`, `from_kernels`, `rank_one`, `from_eigenvectors` or `identity`, and
    scaled by `center` and `normalize`. Every public function that takes a `Grams` also takes an (m, N, N)
    array. Matrices are evaluated and factored when they are first needed. The results are cached while the
    cache of the stack is below 1 GB.

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

    @staticmethod
    def from_array(array: ArrayLike, names: Sequence[str] | None = None) -> Grams:
        """Return the stack of an (m, N, N) array of symmetric matrices, of any signature."""
        from kernelopt.grams.stored import ArrayGrams

        stack, largest = as_stack(array)
        return ArrayGrams(stack, None if names is None else as_names(names, len(stack)), largest)

    @staticmethod
    def from_kernels(kernels: Sequence[KernelFunction], X: Any) -> Grams:
        """Return the Gram matrices of kernel functions on the N points X, evaluated when needed.

        Parameters
        ----------
        kernels : sequence of kernels
            Such as `gaussian(1.0)`. A kernel is called as `k(X)` and `k(X, Z)`, and has the methods
            `diagonal(X)` and `rank(X)`.
        X : array of shape (N, d), or a sequence of N nodes for graph kernels
            The stack keeps a copy.
        """
        from kernelopt.grams.evaluated import KernelGrams

        return KernelGrams(kernels, X)

    @staticmethod
    def rank_one(V: ArrayLike) -> Grams:
        """Return the m matrices v_i v_i', where v_i is column i of V, shape (N, m)."""
        from kernelopt.grams.stored import RankOneGrams

        vectors = as_float_array(V, "V", ndim=2)
        if not vectors.size:
            raise ShapeError(
                f"V must hold at least one vector, got shape {vectors.shape}. Put one in each column."
            )
        return RankOneGrams(vectors.copy())

    @staticmethod
    def from_eigenvectors(K0: ArrayLike, rank: int | None = None) -> Grams:
        """Return v_i v_i' for the orthonormal eigenvectors of K0, largest eigenvalue first.

        Parameters
        ----------
        K0 : array of shape (N, N), symmetric, of any signature
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
        """Return the stack of the single matrix I, whose weight is the ridge tau of Lanckriet et al."""
        from kernelopt.grams.stored import IdentityGrams

        return IdentityGrams(whole(n_points, "n_points"))

    @abstractmethod
    def block(self, rows: Any) -> Grams:
        """Return the stack on the points `rows`: a slice or an index array."""

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
        chosen = positions(indices, len(self), "kernels", "Grams.subset")
        if not chosen.size:
            raise ParameterError(
                f"indices must choose at least one kernel, got {shown(indices)} in Grams.subset of {self!r}. "
                "Pass the numbers of the kernels to keep."
            )
        if np.array_equal(chosen, np.arange(len(self))):
            return self
        if self.origin is not None:
            whole: Grams = self.origin[0]
            return whole.subset(self.origin[1][chosen])
        return self._subset(chosen)

    def check_leading_blocks(self) -> None:
        """Raise `NotPSDError` for a kernel whose block on the first hundred points is indefinite.

        Methods that factor no kernel would not notice an indefinite one. A Cholesky factor of all N points
        would take as long as such a method. Kernels that are PSD by construction are not evaluated.
        """
        if self.known_semidefinite:
            return
        size = min(self.n_points, LEADING_POINTS)
        block = self if size == self.n_points else self.block(slice(0, size))
        for i, K in enumerate(block):
            shifted = np.array(K)
            shifted[np.diag_indices(size)] += PSD_TOLERANCE * float(np.abs(np.diag(K)).max(initial=0.0))
            try:
                np.linalg.cholesky(shifted)
            except np.linalg.LinAlgError:  # indefinite, or zero, or singular up to rounding: `factor` decides
                self.factor(i)

    def _subset(self, chosen: NDArray[np.intp]) -> Grams:
        """Return the stack of some matrices. Subclasses override it where they can select many at once."""
        from kernelopt.grams.joined import ChosenGrams

        return self._sharing(ChosenGrams(self, chosen), chosen)

    def _sharing(self, part: Grams, chosen: NDArray[np.intp]) -> Grams:
        """Let a new stack of the matrices `chosen` share the cache of this one."""
        part.origin = self, chosen
        part._factors = self._factors.part(chosen)
        return part

    def cross(self, X_new: Any) -> Array:
        """Return the kernels between new points and the N points, shape (m, n_new, N)."""
        raise InputError(
            f"cross kernels need kernel functions, got {self!r}. Evaluate the kernels between the "
            f"new points and the {self.n_points} points yourself and pass the (m, n_new, N) array."
        )

    def self_similarity(self, X_new: Any) -> Array:
        """Return the kernels k_i(x, x) of each new point with itself, shape (m, n_new)."""
        raise InputError(
            f"similarities of new points need kernel functions, got {self!r}. Evaluate the kernels between "
            "each new point and itself yourself, or make the stack with Grams.from_kernels."
        )

    def center(self) -> Grams:
        r"""Return the kernels of the features minus their mean over these N points.

        .. math:: \tilde k(x, z) = k(x, z) - \frac1N \sum_i k(x, x_i) - \frac1N \sum_i k(x_i, z)
                  + \frac1{N^2} \sum_{i,j} k(x_i, x_j)

        New points have the same mean subtracted: that of the N points, in `cross` and in any `block`.

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
        from kernelopt.grams.centered import CenteredGrams

        return CenteredGrams(self)

    def normalize(self, kind: Literal["multiplicative", "spherical", "trace"]) -> Grams:
        r"""Return the kernels on a common scale, so that their weights compare.

        ================  ============================================================  ================
        kind              the kernel k(x, z) becomes                                    afterwards
        ================  ============================================================  ================
        "multiplicative"  k(x, z) / (Σᵢ k(xᵢ, xᵢ) / N - Σᵢⱼ k(xᵢ, xⱼ) / N²)  [1]_ (26)  features have
                                                                                        variance one
        "spherical"       k(x, z) / sqrt(k(x, x) k(z, z))  [1]_ (27)                    k(x, x) = 1
        "trace"           k(x, z) / (Σᵢ k(xᵢ, xᵢ) / N)                                  tr K = N
        ================  ============================================================  ================

        The sums run over the N points of this stack, also in `cross`, for new points, and in any `block`;
        k(x, x) is each point's own. The names stay. Nothing is evaluated here: a kernel that cannot be
        scaled is found out when its values are needed.

        Parameters
        ----------
        kind : "multiplicative", "spherical" or "trace"

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
        from kernelopt.grams.normalized import scaled

        return scaled(self, kind)


def as_names(names: Sequence[str], m: int) -> tuple[str, ...]:
    """Return the names of m kernels, after checking them."""
    listed = as_list(names, "names", f"{m} strings, one per kernel")
    if len(listed) != m or not all(isinstance(name, str) for name in listed):
        raise ShapeError(
            f"names must be {m} strings, one per kernel, got {shown(names)}. Pass a list of words, or "
            "leave it out."
        )
    return tuple(str(name) for name in listed)


def as_grams(grams: Grams | ArrayLike, what: str = "grams") -> Grams:
    """Return `grams`, a `Grams` or an (m, N, N) array, as a `Grams`; messages name the argument `what`."""
    from kernelopt.grams.stored import ArrayGrams

    if isinstance(grams, Grams):
        return grams
    stack, largest = as_stack(grams, what)
    return ArrayGrams(stack, largest=largest)

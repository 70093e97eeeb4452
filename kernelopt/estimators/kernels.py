"""The kernels of a fitted estimator: evaluated between the training points, and at new points."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray

from kernelopt.errors import InputError, ShapeError
from kernelopt.estimators.dictionary import Dictionary
from kernelopt.estimators.precomputed import KernelStack, as_stack, refuse_other
from kernelopt.grams import Grams
from kernelopt.grams.arguments import as_names
from kernelopt.grams.caching import CACHE_BYTES, all_cached, pieces
from kernelopt.grams.evaluated import KernelStorage
from kernelopt.grams.functions import groups, is_moderate, is_numeric
from kernelopt.grams.normalized import ScaledStorage
from kernelopt.grams.rows import ArrayRows
from kernelopt.kernels import Kernel, as_strings, normalized
from kernelopt.kernels.profile import distances
from kernelopt.numerics.decompositions import RANK_TOLERANCE
from kernelopt.records import Digest, record
from kernelopt.running import Steps
from kernelopt.validation import Array, Index, as_float_array, as_indices, one_of, shown
from kernelopt.validation.messages import listed

NORMALIZATIONS = ("multiplicative", "spherical", "trace", "none")
MATRICES = 2  # of each kernel that are in memory while it is centred: the kernel and its centred form
PAIRS = 1 << 18  # of a new and a training point in a block: 2 MB for each matrix, which fits a fast cache


@record("points")
@dataclass(frozen=True, eq=False)
class PointKernels:
    """Normalised kernel functions k_m / c_m and the training points.

    Attributes
    ----------
    constants : array of shape (m,)
        The constants c of the normalisation, computed from the training points. The normalisation
        "spherical" has none: there they are one.
    dictionary : Dictionary
        The kernels as they are evaluated. It computes the points that they see from the columns of X.
    points : array of shape (n, d), or of n strings
        The training points that the kernels see.
    """

    constants: Annotated[Array, "m"]
    dictionary: Dictionary
    points: Annotated[Array, "n d"] | Annotated[NDArray[np.object_], "n"]

    def __post_init__(self) -> None:
        if self.constants.size != len(self.names):
            raise InputError(f"{len(self.names)} constants expected, got {self.constants.size}")

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the m kernels."""
        return self.dictionary.names

    @property
    def kernels(self) -> tuple[Kernel, ...]:
        """The m kernels, as they are evaluated."""
        return self.dictionary.kernels

    def at(self, X: Any, weights: Array) -> Array:
        """Return sum_m weights_m k_m(x, x_i) / c_m at new points x and the training points x_i.

        Parameters
        ----------
        X : array of shape (n_new, d), or of n_new strings
            Checked already.
        weights : array of shape (m,)
            Kernels of weight zero are not evaluated.

        Returns
        -------
        array of shape (n_new, n)
        """
        return weighted_kernel(
            self.kernels, np.asarray(weights) / self.constants, self.dictionary.points(X), self.points
        )

    def own(self, samples: Any, weights: Array) -> Array:
        """Return the sum of `at` between the training points. The stack of `StackKernels` is not needed."""
        return weighted_kernel(self.kernels, np.asarray(weights) / self.constants, self.points, self.points)

    def moved(self, samples: Any) -> PointKernels:
        """Return the kernels with other training points."""
        return replace(self, points=self.dictionary.points(samples))

    def only(self, points: Index) -> PointKernels:
        """Return the kernels with some of the training points, such as the support points."""
        return replace(self, points=self.points[points])

    def check(self, features: Any) -> int:
        """Return the number of training points, and raise unless their width is that of X of d columns."""
        if self.points.dtype == object:
            return len(as_strings(self.points, "points"))
        used = [column for block in self.dictionary.blocks for column in block.columns]
        width = len(used) or features
        if type(features) is not int or self.points.shape[1] != width or max(used, default=0) >= features:
            raise ValueError(f"points of {width} columns expected, got shape {self.points.shape}")
        return len(self.points)


@record("stack")
@dataclass(frozen=True, eq=False)
class StackKernels:
    """Precomputed kernels of the training samples, normalised as those of `PointKernels`.

    It has no matrices: they come with new samples, from the same `KernelStack` or as an array.

    Attributes
    ----------
    constants : array of shape (m,)
    names : tuple of m str
    samples : array of shape (n,)
        The training samples, as positions in the stack.
    n_points : int
        The number of all samples of the stack.
    checksum : str
        That of the stack.
    kept : array of int
        The training samples that are left after `only`, as positions in `samples`.
    spherical : bool
        Whether the kernels are normalised by their diagonals.
    complete : bool
        Whether every sample of the stack has every view.
    """

    constants: Annotated[Array, "m"]
    names: Annotated[tuple[str, ...], "m"]
    samples: Annotated[Index, "n"]
    n_points: int
    checksum: Digest
    kept: Annotated[Index, "s"]
    spherical: bool
    complete: bool
    kernels = None

    def __post_init__(self) -> None:
        as_names(self.names, self.constants.size)
        as_indices(self.samples, self.n_points, "samples")
        if self.kept.size:
            as_indices(self.kept, self.samples.size, "kept")

    def at(self, X: Any, weights: Array) -> Array:
        """Return what `PointKernels.at` does for a stack, or an array of kernels at new points."""
        factors = np.asarray(weights) / self.constants
        if not isinstance(X, KernelStack):
            return np.tensordot(factors, self.read(X)[:, :, self.kept], 1)
        refuse_other(X, self.checksum)
        used = np.flatnonzero(factors)
        if not used.size:
            return np.zeros((len(X), self.kept.size))
        grams = X.grams.normalize("spherical") if self.spherical else X.grams
        cross = grams.subset(used).storage.between(X.samples, self.samples[self.kept])
        return np.tensordot(factors[used], cross, 1)

    def read(self, cross: Any) -> Array:
        """Return kernels between new points and the training samples, given as an array, a list or a dict."""
        if isinstance(cross, dict):
            if set(cross) != {*self.names}:
                raise InputError(
                    f"X must have the kernels of fit, {listed(self.names)}, got the names "
                    f"{listed([*map(str, cross)])}. Pass one matrix of shape (n_new, n) for each."
                )
            cross = [cross[name] for name in self.names]
        array = as_float_array(cross, "X", ndim=3)
        wanted = (len(self.names), self.samples.size)
        if (array.shape[0], array.shape[2]) != wanted:
            raise ShapeError(
                f"X must hold the kernels between new points and the training samples, shape (m, n_new, n) = "
                f"({wanted[0]}, n_new, {wanted[1]}), got {array.shape}. Evaluate each of the {wanted[0]} "
                f"kernels at all {wanted[1]} training samples, or pass a KernelStack."
            )
        if not self.complete:
            raise InputError(
                "new samples of a stack with missing views must be chosen from that stack, got an array, "
                "which does not say which views a sample lacks. Make one stack of the training and the new "
                "samples, KernelStack(kernels, missing=...), fit on stack[train] and pass stack[new]."
            )
        if self.spherical:
            raise InputError(
                "new points of kernels with normalize='spherical' must come as a KernelStack, got an array: "
                "it does not hold their kernels with themselves. Normalise the kernels yourself and fit with "
                "normalize='none'."
            )
        return array

    def own(self, samples: Any, weights: Array) -> Array:
        """Return the sum of `at` between the training samples, from any choice of samples of their stack."""
        training = as_stack(samples)[:]
        training.samples = self.samples[self.kept]
        return self.at(training, weights)

    def moved(self, samples: Any) -> StackKernels:
        """Return the kernels with other training samples of the same stack."""
        stack = as_stack(samples)
        refuse_other(stack, self.checksum)
        return replace(self, samples=stack.samples, kept=np.arange(len(stack)))

    def only(self, points: Index) -> StackKernels:
        """Return the kernels with some of the training samples."""
        return replace(self, kept=self.kept[points])

    def check(self, features: Any) -> int:
        """Return the number of training samples; there are no points, whatever the columns of X are."""
        return self.kept.size


TrainedKernels = PointKernels | StackKernels


def trained_on_points(
    dictionary: Dictionary, X: Array, normalize: str, weights: Array
) -> tuple[PointKernels, Grams]:
    """Return the normalised kernels of a dictionary, and their stack on weighted training points X."""
    one_of(normalize, "normalize", NORMALIZATIONS)
    points = dictionary.points(X)
    if normalize == "spherical":
        dictionary = replace(dictionary, kernels=tuple(map(normalized, dictionary.kernels)))
    grams = Grams(Grams.from_kernels(dictionary.kernels, points).storage.renamed(dictionary.names))
    scaled, constants = scaled_by(grams, normalize, weights)
    return PointKernels(constants, dictionary, points), scaled


def trained_on_stack(stack: KernelStack, normalize: str, weights: Array) -> tuple[StackKernels, Grams]:
    """Return the normalised kernels of a precomputed stack, and their stack on weighted training samples."""
    spherical = one_of(normalize, "normalize", NORMALIZATIONS) == "spherical"
    grams = stack.gram()
    scaled, constants = scaled_by(grams.normalize("spherical") if spherical else grams, normalize, weights)
    kept, known = np.arange(len(stack)), (stack.grams.n_points, stack.checksum)
    how = spherical, stack.complete
    return StackKernels(constants, stack.names, stack.samples, *known, kept, *how), scaled


def scaled_by(grams: Grams, normalize: str, weights: Array) -> tuple[Grams, Array]:
    """Return kernels divided by the constants of a normalisation, and the constants.

    With the shares v of the points in the sum of the weights, the constants are sum_i v_i k(x_i, x_i) for
    "trace", and that minus v'K v for "multiplicative". With equal weights they are the constants of
    `Grams.normalize`.
    """
    if normalize not in ("multiplicative", "trace"):
        return grams, np.ones(len(grams))
    shares, storage = weights / weights.sum(), grams.storage
    passing = isinstance(storage, KernelStorage) and (storage.quick or not all_cached(grams.shape))
    functions = storage if isinstance(storage, KernelStorage) and passing else None
    if have_room(grams) or (all_cached(grams.shape) and functions is None):
        steps = Steps("evaluating kernels", len(grams))
        for _ in grams:  # each kernel is evaluated once, and is then taken from the cache
            steps.take()
    means = grams.diagonals @ shares
    if normalize == "trace":
        c = means
    elif functions is not None and not have_room(grams):
        c = means - functions.passing_forms(shares)
    else:
        c = means - grams.apply(weights) @ shares / weights.sum()
    for i in np.flatnonzero(np.minimum(means, c) < -RANK_TOLERANCE * np.abs(means))[:1]:
        raise InputError(
            f"{grams.names[i]} must be positive semidefinite, got mean diagonal {means[i]:.3g} and variance "
            f"{c[i]:.3g} over {grams.n_points} samples with normalize={normalize!r}. SimilarityClassifier "
            "learns from indefinite similarities, and kernelopt.repair makes kernels of them."
        )
    for i in np.flatnonzero(~((c > RANK_TOLERANCE * means) & (means > 0)))[:1]:
        raise InputError(
            f"{grams.names[i]} must vary between the training samples, got variance {c[i]:.3g} at mean "
            f"diagonal {means[i]:.3g} over {grams.n_points} samples with normalize={normalize!r}. Leave it "
            "out: a kernel of constant columns tells no samples apart."
        )
    return divided(grams, c), c


def have_room(grams: Grams) -> bool:
    """Whether the matrices of kernels, and again as many, fit into the memory of caches."""
    m, n, _ = grams.shape
    return 8 * MATRICES * m * n * n <= CACHE_BYTES


def of_one_distance(kernels: Sequence[Kernel]) -> bool:
    """Whether kernels are functions of one distance, from which the method "newton" needs no matrices."""
    found = {profile and profile.distance for profile in (kernel.profile() for kernel in kernels)}
    return len(found) == 1 and None not in found


def divided(grams: Grams, constants: Array) -> Grams:
    """Return the kernels divided by constants of shape (m,)."""
    return Grams(ScaledStorage(grams.storage, constants))


def forget_matrices(grams: Grams) -> None:
    """Free the matrices of kernel functions in `scaled_by`'s stack; they are evaluated again when needed.

    A fitted estimator keeps its solution, which keeps the stack.
    """
    storage = grams.storage
    if isinstance(storage, ScaledStorage):
        storage = storage.base
    if isinstance(storage, KernelStorage):
        storage.forget_matrices()


def weighted_kernel(kernels: Sequence[Kernel], factors: Array, X: Any, Z: Any) -> Array:
    """Return sum_m factors_m k_m(x_i, z_j), shape (len(X), len(Z)), a few rows of X at a time.

    Kernels that are functions of one distance share it.
    """
    used = np.flatnonzero(factors).tolist()
    total = np.zeros((len(X), len(Z)))
    if not len(Z):
        return total
    moderate = is_numeric(Z) and is_moderate(ArrayRows(Z))
    profiles = [k.profile() if moderate else None for k in kernels]
    origin = Z.mean(axis=0) if moderate else np.zeros(())
    for part in pieces(len(X), len(Z), PAIRS):
        rows, sums = X[part], total[part]
        for (metric, columns), members in groups(used, profiles):
            chosen = slice(None) if columns is None else np.asarray(columns)
            D = distances((rows - origin)[:, chosen], (Z - origin)[:, chosen], metric)
            for i, profile in members:
                sums += factors[i] * profile.function(D)
        for i in used:
            if profiles[i] is None:
                sums += factors[i] * kernels[i](rows, Z)
    if not np.isfinite(total).all():
        raise InputError(
            "kernels must be finite at new points, got NaN or infinity from one of "
            f"{shown([repr(k) for k in kernels])}. Check the size of the new points."
        )
    return total

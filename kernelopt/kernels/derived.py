"""Kernels made from others: normalised, of some columns, and of similarities to reference points."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kernelopt.errors import InputError, ParameterError, ShapeError
from kernelopt.kernels.base import Domain, Kernel, as_points
from kernelopt.kernels.profile import Profile
from kernelopt.kernels.strings import as_strings
from kernelopt.validation import Array, as_float_array, as_list, plain, shown, whole

LISTED_COLUMNS = 10  # of a kernel's repr: short, and yet different for kernels on different few columns


def check_inner(kernel: object) -> None:
    """Raise a `ParameterError` unless what another kernel is made of is a kernel."""
    if not isinstance(kernel, Kernel):
        raise ParameterError(
            f"kernel must be a Kernel such as gaussian(1.0), got {shown(kernel)}. "
            "Subclass kernelopt.kernels.Kernel for a function of your own."
        )


@dataclass(frozen=True)
class normalized(Kernel):
    r"""A kernel scaled to unit diagonal, also at new points.

    .. math:: \frac{k(x, z)}{\sqrt{k(x, x)\, k(z, z)}}

    Parameters
    ----------
    kernel : Kernel
        With k(x, x) > 0 at the points where it is evaluated.
    """

    kernel: Kernel

    def __post_init__(self) -> None:
        check_inner(self.kernel)

    @property
    def domain(self) -> Domain:
        return self.kernel.domain

    def _norms(self, X: Array, what: str) -> Array:
        diagonal = self.kernel._finite(self.kernel.gram_diagonal(X))
        for i in np.flatnonzero(diagonal <= 0)[:1]:
            if self.domain is as_strings:
                remedy = (
                    f", the string {shown(X[i])}: it has {len(X[i])} letters, and no substring of the length "
                    f"k of a spectrum kernel. Drop it, or choose k of at most {len(X[i])}."
                )
            else:
                remedy = ". Drop that point, or add an offset: polynomial(1, offset=1.0) is linear plus 1."
            raise InputError(
                f"{self.kernel!r} must be positive between a point and itself, got {diagonal[i]:g} at "
                f"{what}[{i}]{remedy}"
            )
        return np.sqrt(diagonal)

    def gram(self, X: Array, Z: Array | None = None) -> Array:
        left = self._norms(X, "X")
        K = self.kernel.gram(X, Z) / left[:, None] / (left if Z is None else self._norms(Z, "Z"))
        if Z is None:
            np.fill_diagonal(K, 1.0)
        return K

    def gram_diagonal(self, X: Array) -> Array:
        return np.ones_like(self._norms(X, "X"))

    def profile(self) -> Profile | None:
        read = self.kernel.profile()
        return read.times(1 / read.own) if read and read.own > 0 else None

    def gram_rank(self, X: Array) -> int:
        return self.kernel.gram_rank(X)


@dataclass(frozen=True)
class on_columns(Kernel):
    """A kernel of some columns of the points, k(x[columns], z[columns]).

    Parameters
    ----------
    kernel : Kernel
        Of points with as many columns as are chosen.
    columns : int >= 0, or integer array
        Of the points, counted from 0.
    """

    kernel: Kernel
    columns: ArrayLike

    def __post_init__(self) -> None:
        check_inner(self.kernel)
        if self.kernel.domain is not as_points:
            raise ParameterError(
                f"the kernel of on_columns must take points of R^d, got {self.kernel!r}. Strings have no "
                "columns: leave on_columns out."
            )
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
        columns = repr(self.columns) if chosen.size <= LISTED_COLUMNS else shown(chosen)
        return f"on_columns(kernel={self.kernel!r}, columns={columns})"

    def _chosen(self, X: Array) -> Array:
        chosen = np.asarray(self.columns, dtype=int)
        if chosen.size == 0 or chosen.max() >= X.shape[1]:
            raise ShapeError(
                f"{self!r} must see columns of X, got shape {X.shape}. Choose from 0 to {X.shape[1] - 1}."
            )
        return X[:, chosen]

    def gram(self, X: Array, Z: Array | None = None) -> Array:
        return self.kernel.gram(self._chosen(X), None if Z is None else self._chosen(Z))

    def gram_rank(self, X: Array) -> int:
        return self.kernel.gram_rank(self._chosen(X))

    def profile(self) -> Profile | None:
        read = self.kernel.profile()
        return read and read.on(tuple(np.asarray(self.columns, dtype=int).tolist()))


class _PerFeature(tuple[on_columns, ...]):
    @property
    def groups(self) -> NDArray[np.int_]:
        """The feature of each kernel."""
        return np.array([kernel.columns for kernel in self], dtype=int).ravel()


def per_feature(kernels: Kernel | Iterable[Kernel], d: int) -> _PerFeature:
    """Return every kernel on every one of d columns, as a tuple ordered by column.

    Its attribute `groups` is the column of each kernel.

    Parameters
    ----------
    kernels : Kernel or sequence of Kernel
        Of points with one column.
    d : int >= 1
        The number of columns.

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
    """Return K = S S', the linear kernel of the rows of S, which are similarities to r reference points.

    Parameters
    ----------
    S : array of shape (n, r) or (m, n, r)
        Of n points to r reference points, by rows; m of them are as many similarities.
    S_new : array of shape (n_new, r) or (m, n_new, r), optional
        The similarities of new points to the same references.

    Returns
    -------
    array of shape (n, n) or (m, n, n)
        With S_new the cross kernels S_new S', of shape (n_new, n) or (m, n_new, n).

    Raises
    ------
    ShapeError
        If S_new differs from S in more than the number of points.

    Examples
    --------
    >>> from kernelopt.kernels import empirical_map
    >>> empirical_map([[1.0, 2.0], [0.0, 1.0]]).tolist()
    [[5.0, 2.0], [2.0, 1.0]]
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

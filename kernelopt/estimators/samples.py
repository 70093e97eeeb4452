"""Samples of estimators: points, strings and precomputed kernels, told apart, checked, and reduced."""

from __future__ import annotations

from collections.abc import Sized
from typing import Any

import numpy as np
from sklearn.utils.validation import check_array

from kernelopt.errors import GramWarning, InputError, NotFiniteError, ParameterError
from kernelopt.estimators.precomputed import KernelStack
from kernelopt.estimators.sparse import SparsePoints
from kernelopt.methods.describe import warn_caller
from kernelopt.validation import (
    Array,
    Index,
    as_float_array,
    as_symmetric,
    check_psd,
    is_number,
    numeric,
    plain,
    shown,
)
from kernelopt.validation.messages import listed

NO_NUMBER = "could not convert string to float"  # how the message of numpy begins


def is_stack(X: Any) -> bool:
    """Whether samples are precomputed kernels: a `KernelStack`, an array (m, n, n), or m matrices."""
    return isinstance(X, KernelStack) or getattr(X, "ndim", None) == 3 or is_matrices(X)


def is_matrices(X: Any) -> bool:
    """Whether samples are a list of arrays of two dimensions, or a dict from name to them."""
    members = X.values() if isinstance(X, dict) else X if isinstance(X, list | tuple) else ()
    return bool(members) and all(getattr(member, "ndim", None) == 2 for member in members)


def is_strings(X: Any) -> bool:
    """Whether samples are strings: a list, tuple, series or array of one dimension that begins with one."""
    flat = isinstance(X, list | tuple) or (isinstance(X, Sized) and getattr(X, "ndim", None) == 1)
    return flat and len(X) > 0 and isinstance(next(iter(X)), str)


LARGEST_POINT = 1e300
"""Sums and differences of coordinates up to this size are doubles."""


class EntryError(InputError, TypeError):
    """An object in X is no number: a TypeError, as scikit-learn's checks of estimators ask for."""


def warn_of_gram(points: Array, estimator: Any) -> None:
    """Warn if points are a symmetric positive semidefinite matrix, as kernels are, and not diagonal.

    Warns
    -----
    GramWarning
    """
    n, d = points.shape
    if n != d or not np.count_nonzero(points - np.diag(points.diagonal())):
        return
    try:
        check_psd(as_symmetric(points, "X"), "X")
    except InputError:
        return
    name = type(estimator).__name__
    warn_caller(
        GramWarning(
            f"X should hold points, got a symmetric positive semidefinite matrix of shape ({n}, {n}) in "
            f"{name}, as a kernel between samples is. If it is one, pass {name}(kernels='precomputed'). If "
            "its columns are coordinates, pass a data frame, which has names for them."
        )
    )


def refuse_misread(X: Any, estimator: Any) -> None:
    """Raise an `InputError` for samples that `check_array` would misread, or refuse without a name.

    It drops masks, counts dates and spans of time in a unit of their own, and takes no two columns of one
    name.
    """
    if not hasattr(X, "columns"):
        refuse_objects(X, "X")
        return
    names = list(X.columns)
    if not names:
        raise InputError(
            f"X must have a column at least, got none in the samples of {type(estimator).__name__}. Choose "
            "the columns that the kernels read."
        )
    twice = [name for k, name in enumerate(names) if name in names[:k]]
    if twice:
        raise InputError(
            f"X must have columns of different names, got two of the name {shown(twice[0])} in the samples "
            f"of {type(estimator).__name__}. Rename one of them, or pass X.to_numpy()."
        )
    for name in names:
        dtype = X[name].dtype
        if type(dtype).__name__ == "SparseDtype":
            raise InputError(
                f"X must have dense columns, got {dtype} in the column {name!r} of the samples of "
                f"{type(estimator).__name__}. Pass X.sparse.to_dense()."
            )
        if getattr(dtype, "kind", "") in "mMO":
            refuse_objects(X[name], f"X[{name!r}]")


def refuse_objects(value: Any, what: str) -> None:
    """Raise an `InputError` for times, records, and Python objects other than numbers, text and None."""
    array = plain(value, what)
    misread = array.dtype.kind in "mMV" or (
        array.dtype.kind == "O"
        and any(not is_number(e) and not isinstance(e, str | bytes | None) for e in array.flat)
    )
    if misread:
        numeric(value, what, EntryError)


def finite_points(X: Any, estimator: Any, *, fitting: bool) -> Array:
    """Return points as an array of finite numbers of shape (n, d).

    Parameters
    ----------
    X : array or data frame of shape (n, d)
    estimator : estimator
        It is named in messages.
    fitting : bool
        Whether these are the samples of `fit`: there must be two.

    Raises
    ------
    InputError
        If an entry is text, a time, masked, NaN, infinite or larger than `LARGEST_POINT`, or if two columns
        have one name.
    """
    refuse_misread(X, estimator)
    where = f"the {'training' if fitting else 'new'} samples of {type(estimator).__name__}"
    try:
        points: Array = check_array(
            X, dtype=np.float64, ensure_all_finite=False, ensure_min_samples=1 + fitting, estimator=estimator
        )
    except OverflowError as error:
        raise NotFiniteError(
            f"X must be finite, got an integer too large for a double in {where}. Divide its column by a "
            "unit."
        ) from error
    except ValueError as error:
        if not str(error).startswith(NO_NUMBER):
            raise
        raise InputError(
            f"X must hold numbers, got text in {where} ({error}). Encode columns of text by OneHotEncoder(). "
            "Where a sample is one string, pass a list of strings with kernels of strings, such as "
            "kernelopt.spectrum(3), or their matrices as a KernelStack."
        ) from error
    bad = np.argwhere(~(np.abs(points) <= LARGEST_POINT))
    if bad.size:
        names = getattr(X, "columns", None)
        missing = int(np.isnan(points).sum())
        places = [f"(row {i}, column {j if names is None else repr(names[j])})" for i, j in bad.tolist()]
        raise NotFiniteError(
            f"X must be finite and at most {LARGEST_POINT:g} in size, got {missing} NaN and "
            f"{len(bad) - missing} infinite or larger entries in {where}, at {listed(places, 3)}. Rows "
            "count from 0. Drop these rows, divide columns by a unit, or fit a model that imputes them, "
            "make_pipeline(SimpleImputer(), model). Where samples lack all columns of a kernel, pass "
            "KernelStack(kernels, missing=...)."
        )
    return points


def distinct(samples: Array | KernelStack | SparsePoints, y: Array, weights: Array) -> tuple[Index, Array]:
    """Return one of each set of equal samples of positive weight, and the sums of their weights.

    A machine is the same if equal samples are one of their joint weight. They are put in ascending order, so
    that the result does not depend on the order of the samples.

    Parameters
    ----------
    samples : array of shape (n, d), array of n strings, or KernelStack
    y : array of shape (n,)
        Labels or targets. Samples are equal if they have the same one.
    weights : array of shape (n,)
        Not negative.

    Returns
    -------
    rows : array of shape (n_distinct,)
    weights : array of shape (n_distinct,)
    """
    rows = np.flatnonzero(weights)
    if isinstance(samples, KernelStack):
        points: Any = samples.samples[:, None]
    elif isinstance(samples, SparsePoints):
        points = samples.kinds[:, None]
    else:
        points = samples if samples.ndim == 2 else np.unique(samples, return_inverse=True)[1][:, None]
    columns = np.column_stack([points[rows], y[rows]])
    _, first, group = np.unique(columns, axis=0, return_index=True, return_inverse=True)
    return rows[first], np.bincount(group.ravel(), weights[rows], first.size).astype(np.float64)


def positive_weights(sample_weight: Any, n: int) -> Array:
    """Return sample weights as n non-negative numbers, not all zero; None stands for ones."""
    if sample_weight is None:
        return np.ones(n)
    weights = as_float_array(sample_weight, "sample_weight")
    if weights.ndim == 0:
        weights = np.full(n, float(weights))
    if weights.shape != (n,):
        raise ParameterError(
            f"sample_weight must have one entry for each of the {n} samples, got shape {weights.shape}. "
            "Pass one number for each row of X."
        )
    if (weights < 0).any():
        i = int(np.argmax(weights < 0))
        raise ParameterError(
            f"sample_weight must not be negative, got {weights[i]:g} at sample {i}. Leave samples out with 0."
        )
    if not weights.any():
        raise ParameterError(
            f"sample_weight must be positive for some sample, got zero for all {n}. Leave it out for ones."
        )
    return weights

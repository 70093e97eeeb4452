"""Validation of arrays: their entries, shapes, and indices; and of cvxpy expressions."""

from __future__ import annotations

import numbers
from collections.abc import Iterable, Mapping, Set
from datetime import date, timedelta
from decimal import Decimal
from typing import Any, TypeAlias

import cvxpy as cp
import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from kernelopt.errors import InputError, NotFiniteError, ParameterError, ShapeError
from kernelopt.validation.messages import LISTED, kind_of, shown

Array: TypeAlias = NDArray[np.float64]
Floats: TypeAlias = NDArray[np.float64] | NDArray[np.float32]
Index: TypeAlias = NDArray[np.intp]
Mask: TypeAlias = NDArray[np.bool_]

LARGEST_SQUARED = 1e150
"""Sums of products of two numbers up to this size are doubles."""

CONVERT = "Convert it with numpy.asarray(..., dtype=float) first"
CURES = {  # by the kind of a numpy dtype
    "c": "Take .real if the imaginary parts are meant to go",
    "M": "Count from a first date: t = numpy.asarray(..., dtype='datetime64[us]'), then "
    "(t - t.min()) / numpy.timedelta64(1, 'D')",
    "m": "Divide by a unit of time: numpy.asarray(..., dtype='timedelta64[us]') / numpy.timedelta64(1, 'D')",
    "V": "Take one field, array['name'], or numpy.lib.recfunctions.structured_to_unstructured(array)",
    "O": "Write numbers in the place of such objects: float()'s argument must be a string or a number",
}
KINDS = (  # of Python objects, which numpy does not tell apart
    ((date, np.datetime64), "M"),
    ((timedelta, np.timedelta64), "m"),
    ((complex, np.complexfloating), "c"),
    (np.void, "V"),
    ((str, bytes), "U"),
    (object, "O"),
)


def masked_entries(value: Any) -> int:
    """Return how many entries of a masked array, or of a list of them, are masked."""
    if isinstance(value, np.ma.MaskedArray):
        return int(np.ma.getmaskarray(value).sum())
    if isinstance(value, list | tuple) and value and isinstance(value[0], list | tuple | np.ndarray):
        return sum(masked_entries(part) for part in value)
    return 0


def refuse_masked(value: Any, what: str) -> None:
    """Raise a `NotFiniteError` if entries are masked, since the number under a mask is no datum."""
    hidden = masked_entries(value)
    if hidden:
        raise NotFiniteError(
            f"{what} must have no masked entries, got {hidden} of them. Drop them, or say what they are: "
            "numpy.ma.filled(array, number)."
        )


def plain(value: Any, what: str, error: type[InputError] = ShapeError) -> NDArray[Any]:
    """Return a value as a numpy array of any dtype; masked and sparse arrays and expressions are errors.

    Raises
    ------
    NotFiniteError
        If entries are masked, since the number under a mask is no datum.
    ShapeError, or the class `error`
        If the value is no array.
    """
    wanted = f"{what} must be an array of real numbers, got"
    if isinstance(value, cp.Expression):
        raise error(f"{wanted} the cvxpy expression {shown(value)}. Pass its .value, once it has one.")
    if sp.issparse(value):
        raise error(f"{wanted} a sparse {kind_of(value)}. Pass the dense array, {what}.toarray().")
    refuse_masked(value, what)
    try:
        return np.asarray(value)
    except Exception as failure:  # whatever the __array__ of a stranger raises
        raise error(f"{wanted} {kind_of(value)}: {failure}. {CONVERT}.") from failure


def numeric(value: Any, what: str, error: type[InputError] = ShapeError, *, single: bool = False) -> Array:
    """Return a value as a float64 array of any shape; only arrays of objects are read entry by entry.

    Parameters
    ----------
    value : array of real numbers, or what numpy converts to one
        Truth values count as 0 and 1.
    what : str
        The name of the argument, for the message.
    error : class of an InputError, default ShapeError
    single : bool, default False
        Whether a float32 array stays one.

    Raises
    ------
    NotFiniteError
        If entries are masked, missing or too large for a double.
    ShapeError, or the class `error`
        If it holds complex numbers, dates, records, text or anything else.
    """
    array = plain(value, what, error)
    kind = array.dtype.kind
    if single and array.dtype == np.float32:
        return array
    if kind == "O":
        return of_objects(array, value, what, error)
    if kind not in "biuf":
        cure = CURES.get(kind, CONVERT)
        raise error(
            f"{what} must be an array of real numbers, got {type(value).__name__} of dtype "
            f"{array.dtype}. {cure}."
        )
    with np.errstate(over="ignore"):  # of longer floats; infinity is found where it is not wanted
        return np.asarray(array, dtype=np.float64)


def of_objects(array: NDArray[Any], value: Any, what: str, error: type[InputError]) -> Array:
    """Return an array of Python objects as floats if each object is a real number."""
    for where, entry in np.ndenumerate(array):
        if array.ndim and is_missing(entry) and not isinstance(entry, numbers.Real):
            raise NotFiniteError(
                f"{what} must be finite, got {shown(entry)} at index {where}. Impute or drop it first."
            )
        if not is_number(entry):
            position = f" with {shown(entry)} at index {where}" if array.ndim else ""
            kind = next(kind for types, kind in KINDS if isinstance(entry, types))
            raise error(
                f"{what} must be an array of real numbers, got {type(value).__name__}{position}. "
                f"{CURES.get(kind, CONVERT)}."
            )
    try:
        return np.asarray(array, dtype=np.float64)
    except OverflowError as failure:
        raise NotFiniteError(
            f"{what} must be finite, got an integer too large for a double. Scale the numbers first."
        ) from failure


def is_number(entry: Any) -> bool:
    """Whether a Python object is a real number. numpy counts spans of time among the integers."""
    return isinstance(entry, numbers.Real | Decimal | np.bool_) and not isinstance(entry, np.timedelta64)


def is_missing(entry: Any) -> bool:
    """Whether a Python object is None, NaN, no time of numpy, or the missing value of pandas."""
    if entry is None or type(entry).__name__ in ("NAType", "NaTType"):
        return True
    if isinstance(entry, Decimal):
        return entry.is_nan()
    return isinstance(entry, numbers.Real | np.datetime64) and bool(entry != entry)


def as_list(value: Any, what: str, wanted: str) -> list[Any]:
    """Return the members of a sequence of any kind, in its order.

    Parameters
    ----------
    value : list, tuple, array, generator, ...
        Strings are not accepted, and neither are collections without an order, such as sets.
    what, wanted : str
        The name of the argument, and a description of valid values, for the message.

    Raises
    ------
    ParameterError
        If it is no such sequence.

    Examples
    --------
    >>> from kernelopt.extend import as_list
    >>> as_list((1, 2), "orders", "a list of orders")
    [1, 2]
    >>> as_list("12", "orders", "a list of orders")
    Traceback (most recent call last):
        ...
    kernelopt.errors.ParameterError: orders must be a list of orders, got '12' (str). Pass a list.
    """
    unordered = isinstance(value, str | bytes | Set | Mapping | cp.Expression) or sp.issparse(value)
    if unordered or not isinstance(value, Iterable) or (isinstance(value, np.ndarray) and not value.ndim):
        raise ParameterError(
            f"{what} must be {wanted}, got {shown(value)} ({type(value).__name__}). Pass a list."
        )
    if isinstance(value, np.ma.MaskedArray):
        refuse_masked(value, what)
    return list(value)


def as_float_array(value: Any, what: str, ndim: int | tuple[int, ...] | None = None) -> Array:
    """Return `value` as a finite float64 array, or say what is wrong with it.

    Parameters
    ----------
    value : array of real numbers, or what numpy makes one of
        What the user has passed.
    what : str
        The name of the argument, for the message.
    ndim : int or tuple of int, optional
        How many dimensions it may have.

    Returns
    -------
    array
        `value` itself where it is such an array already; copy what is to be kept.

    Raises
    ------
    ShapeError
        If it holds anything but real numbers, or has another number of dimensions.
    NotFiniteError
        If entries are NaN, infinite, missing or masked.

    Examples
    --------
    >>> from kernelopt.extend import as_float_array
    >>> as_float_array([[1, 2]], "X", ndim=2)
    array([[1., 2.]])
    """
    array = numeric(value, what)
    if ndim is not None:
        check_dimensions(array, what, ndim, "Reshape it first")
    if not np.isfinite(array).all():
        where = tuple(int(i) for i in np.argwhere(~np.isfinite(array))[0])
        raise NotFiniteError(
            f"{what} must be finite, got {array[where]} at index {where} "
            f"({int((~np.isfinite(array)).sum())} such entries). Impute or drop them first."
        )
    return array


def check_dimensions(value: Array | cp.Expression, what: str, ndim: int | tuple[int, ...], cure: str) -> None:
    """Raise a `ShapeError` unless an array or an expression has an allowed number of dimensions."""
    allowed = (ndim,) if isinstance(ndim, int) else ndim
    if value.ndim not in allowed:
        wanted = " or ".join(map(str, allowed))
        raise ShapeError(f"{what} must have {wanted} dimension(s), got shape {value.shape}. {cure}.")


def as_vector(value: Any, what: str, size: int | None = None, most: int | None = None) -> Array:
    """Return a finite vector of at least one entry, of `size` entries or at most `most` where that is given.

    Parameters
    ----------
    value : array of shape (n,)
        What the user has passed.
    what : str
        The name of the argument, for the message.
    size, most : int, optional
        The number of entries, or the largest number of them.

    Raises
    ------
    ShapeError, NotFiniteError
        If it is no such vector.

    Examples
    --------
    >>> from kernelopt.extend import as_vector
    >>> as_vector([1, 2], "theta", size=2)
    array([1., 2.])
    """
    array = as_float_array(value, what, ndim=1)
    good = array.size == size if size is not None else 0 < array.size <= (most or array.size)
    if not good:
        wanted = (
            f"({size},)" if size is not None else "(n,) with n >= 1" + (f" and n <= {most}" if most else "")
        )
        raise ShapeError(
            f"{what} must have shape {wanted}, got {array.shape}. Pass one number for each of them, in order."
        )
    return array


def as_indices(value: Any, count: int, what: str, things: str = "points", *, unique: bool = False) -> Index:
    """Return a vector of indices in 0..count-1, as given: in any order.

    Parameters
    ----------
    value : integer array of shape (k,), k >= 1
        What the user has passed.
    count : int
        The number of things.
    what, things : str
        The name of the argument and of what it numbers, for the message.
    unique : bool, default False
        Whether they must be different.

    Raises
    ------
    ShapeError, ParameterError
        If it is no vector of integers, one is out of range, or two are the same and must not be.

    Examples
    --------
    >>> from kernelopt.extend import as_indices
    >>> as_indices([2, 0], 3, "rows").tolist()
    [2, 0]
    """
    array = np.atleast_1d(plain(value, what))
    got = f"{type(value).__name__} of dtype {array.dtype} and shape {array.shape}"
    wanted = (
        f"{what} must be an integer vector with at least one entry (index vectors have one positive length)"
    )
    cure = f"Number the {things} from zero, in the order of the kernel"
    if array.ndim != 1 or not array.size:
        raise ShapeError(f"{wanted}, got {got}. {cure}.")
    if array.dtype.kind not in "iu":
        raise ParameterError(f"{wanted}, got {got}. {cure}.")
    outside = array.min() < 0 or array.max() >= count
    if outside or (unique and np.unique(array).size < array.size):
        wanted = "different and in" if unique else "integers in"
        cure += "; numpy.unique names each once." if unique else "."
        raise ParameterError(f"{what} must be {wanted} 0..{count - 1}, got {array[:LISTED].tolist()}. {cure}")
    return array.astype(np.intp)


def as_expression(value: Any, what: str, ndim: int | tuple[int, ...]) -> cp.Expression:
    """Return a real cvxpy expression, or an array of finite numbers as a constant.

    Parameters
    ----------
    value : cvxpy expression or array
    what : str
        The name of the argument, for the message.
    ndim : int or tuple of int
        The allowed numbers of dimensions.

    Raises
    ------
    ShapeError, ParameterError, NotFiniteError
        If it is neither.
    """
    if not isinstance(value, cp.Expression):
        array = as_float_array(value, what, ndim)
        if not array.size:
            raise ShapeError(f"{what} must not be empty, got shape {array.shape}. Pass at least one number.")
        return cp.Constant(array)
    check_dimensions(value, what, ndim, "Reshape it with cp.reshape")
    if value.is_complex():
        raise ParameterError(f"{what} must be real, got a complex expression. Take cp.real of it.")
    return value

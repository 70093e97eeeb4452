"""Careless values of every kind of argument, and the records of a table of calls."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import cvxpy as cp
import numpy as np
import pandas as pd
import scipy.sparse as sp

M = 3  # kernels
N = 5  # points


class Series:
    """A pandas Series as far as numpy sees it: an array with an index, read by position."""

    def __init__(self, values: Any) -> None:
        self.values = np.asarray(values)
        self.index = [f"row {i}" for i in range(len(self.values))]
        self.shape = self.values.shape

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return np.array(self.values, dtype=dtype)

    def __len__(self) -> int:
        return len(self.values)

    def __iter__(self) -> Any:
        return iter(self.values)

    def __eq__(self, other: object) -> Any:  # as pandas does: entry by entry
        return self.values == other

    __hash__ = None  # type: ignore[assignment]

    @property
    def iloc(self) -> np.ndarray:
        return self.values

    def take(self, indices: Any, axis: int = 0) -> Series:
        return Series(self.values.take(indices, axis))

    def __bool__(self) -> bool:
        raise ValueError("The truth value of a Series is ambiguous.")

    def __getitem__(self, key: Any) -> Any:
        raise KeyError(key)  # labels are words


class Hostile:
    """An object whose conversion to an array fails in a way of its own."""

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        raise RuntimeError("can't convert a tensor that requires grad")


def masked(value: Any, *, hiding: bool) -> np.ma.MaskedArray:
    """Return the value as a masked array that hides its first entry, or none."""
    array = np.ma.array(np.atleast_1d(value), dtype=float)
    if hiding:
        array[(0,) * array.ndim] = np.ma.masked
    return array


def spoiled(value: Any, entry: Any) -> np.ndarray:
    """Return the value with another first entry."""
    array = np.array(value, dtype=object if entry is None or isinstance(entry, str | int) else float)
    array[(0,) * array.ndim] = entry
    return array


def records(value: Any) -> np.ndarray:
    """Return the value as a structured array of one field."""
    return np.asarray(value, dtype=float).astype([("number", float)])


NOTHING: dict[str, Callable[[Any], Any]] = {
    "None": lambda v: None,
    "text": lambda v: "no",
    "empty text": lambda v: "",
    "bytes": lambda v: b"no",
    "set": lambda v: {1, 2},
    "dict": lambda v: {"a": 1},
    "generator": lambda v: (i for i in range(3)),
    "function": lambda v: len,
    "type": lambda v: float,
    "object": lambda v: object(),
    "hostile": lambda v: Hostile(),
    "Ellipsis": lambda v: ...,
    "complex number": lambda v: 1 + 2j,
    "NaN": lambda v: float("nan"),
    "date": lambda v: np.datetime64("2020-01-01"),
    "span of time": lambda v: np.timedelta64(1, "D"),
    "sparse": lambda v: sp.csr_array(np.eye(3)),
    "sparse matrix": lambda v: sp.csr_matrix(np.eye(3)),
    "unset parameter": lambda v: cp.Parameter(),
    "unset parameter vector": lambda v: cp.Parameter(M),
    "variable": lambda v: cp.Variable(),
    "variable matrix": lambda v: cp.Variable((2, 3)),
    "complex variable": lambda v: cp.Variable(M, complex=True),
    "masked": lambda v: np.ma.masked,
    "huge": lambda v: 10**400,
    "list of None": lambda v: [None, None],
    "list of text": lambda v: ["a", "b"],
    "nested": lambda v: [[[[1.0]]]],
    "ragged": lambda v: [[1.0], [1.0, 2.0]],
    "empty": lambda v: [],
    "empty array": lambda v: np.zeros((0, 0)),
    "array of objects": lambda v: np.array([object(), object()], dtype=object),
}
"""Values that are wrong for every argument, unless it is said otherwise."""

ARRAYS: dict[str, Callable[[Any], Any]] = {
    "complex": lambda v: np.asarray(v, dtype=float) + 1j,
    "real but complex": lambda v: np.asarray(v, dtype=complex),
    "masked entry": lambda v: masked(v, hiding=True),
    "list with a mask": lambda v: (
        [masked(v, hiding=True)[0]] if np.ndim(v) == 1 else list(masked(v, hiding=True))
    ),
    "dates": lambda v: np.full(np.shape(v), np.datetime64("2020-01-01")),
    "spans of time": lambda v: np.full(np.shape(v), np.timedelta64(1, "D")),
    "records": records,
    "as text": lambda v: np.asarray(v).astype(str),
    "as bytes": lambda v: np.asarray(v).astype("S"),
    "as objects of text": lambda v: np.asarray(v).astype(str).astype(object),
    "NaN entry": lambda v: spoiled(v, np.nan),
    "infinite entry": lambda v: spoiled(v, np.inf),
    "None entry": lambda v: spoiled(v, None),
    "text entry": lambda v: spoiled(v, "1"),
    "huge entry": lambda v: spoiled(v, 10**400),
    "one axis more": lambda v: np.asarray(v)[None],
    "number": lambda v: np.array(1.0),
    "generator of it": lambda v: (entry for entry in v),
    "set of numbers": lambda v: set(np.ravel(np.asarray(v)).tolist()),
    "unset parameter of its shape": lambda v: cp.Parameter(np.shape(v)),
    "list of expressions": lambda v: [cp.Variable() for _ in range(len(v))],
    "list of sparse": lambda v: [sp.csr_array(np.eye(N))] * 2,
}
SHORTER: dict[str, Callable[[Any], Any]] = {
    "longer": lambda v: np.concatenate([np.asarray(v), np.asarray(v)]),
    "much longer": lambda v: np.concatenate([np.asarray(v)] * 4),
}
SAME: dict[str, Callable[[Any], Any]] = {
    "list": lambda v: np.asarray(v).tolist(),
    "tuple": lambda v: tuple(np.asarray(v).tolist()),
    "Series": Series,
    "nothing masked": lambda v: masked(v, hiding=False),
    "objects": lambda v: np.asarray(v).astype(object),
    "float32": lambda v: np.asarray(v, dtype=np.float32),
    "longdouble": lambda v: np.asarray(v, dtype=np.longdouble),
    "big endian": lambda v: np.asarray(v).astype(np.asarray(v).dtype.newbyteorder(">")),
    "Fortran order": lambda v: np.asfortranarray(v),
    "not contiguous": lambda v: np.repeat(np.asarray(v), 2, axis=-1)[..., ::2],
    "read-only": lambda v: read_only(v),
}
"""Forms of one array: the answer is the same."""


def read_only(value: Any) -> np.ndarray:
    array = np.array(value)
    array.flags.writeable = False
    return array


EXTREME: dict[str, Callable[[Any], Any]] = {
    "1e200 times": lambda v: np.asarray(v, dtype=float) * 1e200,
    "1e-200 times": lambda v: np.asarray(v, dtype=float) * 1e-200,
    "all equal": lambda v: np.ones(np.shape(v)),
    "first alone": lambda v: np.asarray(v)[:1],
    "none": lambda v: np.asarray(v)[:0],
    "transposed": lambda v: np.asarray(v).T,
    "float16": lambda v: np.asarray(v, dtype=np.float16),
    "all masked": lambda v: np.ma.masked_all(np.shape(v)),
    "frame of one name": lambda v: frame(v, columns="a"),
    "frame of odd rows": lambda v: frame(v, rows=3),
    "frame of spans": lambda v: frame(np.full(np.shape(v), np.timedelta64(1, "D"))),
}
"""Values that are refused, or have a finite answer."""


def frame(value: Any, columns: str = "", rows: int = 1) -> Any:
    """Return an array as a data frame, with columns of one name, or with an index of its own."""
    array = np.atleast_2d(np.asarray(value))
    array = array.reshape(len(array), -1)
    names = [columns or f"x{j}" for j in range(array.shape[1])]
    return pd.DataFrame(array, columns=names, index=np.arange(len(array)) * rows)


NUMBERS: dict[str, Callable[[Any], Any]] = {
    "array": lambda v: np.array([v, v]),
    "array of one": lambda v: np.array([v]),
    "list of one": lambda v: [v],
    "Series of one": lambda v: Series([v]),
    "minus infinity": lambda v: -np.inf,
    "negative": lambda v: -1.0,
    "true": lambda v: True,
    "numpy true": lambda v: np.True_,
    "as text": str,
    "set parameter": lambda v: cp.Parameter(value=float(v)),
    "constant": lambda v: cp.Constant(v),
}
SAME_NUMBER: dict[str, Callable[[Any], Any]] = {
    "numpy": lambda v: np.float64(v),
    "array without axes": lambda v: np.array(v),
}

FEW_FORMS = {"list", "Series", "not contiguous"}  # for formulations, whose arrays meet the same functions

LIKE_OTHERS = {  # left to the slow test where the arguments are those of a formulation
    *("empty text", "bytes", "dict", "function", "type", "object", "Ellipsis", "date", "span of time"),
    *("sparse matrix", "unset parameter vector", "variable matrix", "complex variable", "list of None"),
    *("list of text", "nested", "real but complex", "list with a mask", "spans of time", "as bytes"),
    *("as objects of text", "None entry", "text entry", "set of numbers", "list of expressions"),
    *("list of sparse", "much longer", "numpy true", "array of one", "Series of one"),
}

KINDS: dict[str, dict[str, Callable[[Any], Any]]] = {
    "array": NOTHING | ARRAYS,
    "vector": NOTHING | ARRAYS | SHORTER,
    "number": NOTHING | NUMBERS | {"infinite": lambda v: np.inf},
    "exponent": NOTHING | NUMBERS | {"half": lambda v: 0.5, "zero": lambda v: 0},
    "size": NOTHING
    | NUMBERS
    | {"zero": lambda v: 0, "half": lambda v: 1.5, "infinite": lambda v: np.inf, "1e30": lambda v: 10**30},
    "flag": NOTHING
    | {
        "one": lambda v: 1,
        "zero": lambda v: 0,
        "no": lambda v: "False",
        "array": lambda v: np.array([True, False]),
        "Series": lambda v: Series([True]),
        "infinite": lambda v: np.inf,
    },
    "word": NOTHING
    | {
        "one": lambda v: 1,
        "array": lambda v: np.array([v, v]),
        "Series": lambda v: Series([v, v]),
        "list": lambda v: [v],
        "bytes of it": lambda v: str(v).encode(),
        "capitals": lambda v: str(v).upper(),
    },
    "indices": NOTHING
    | ARRAYS
    | {
        "floats": lambda v: v + 0.5,
        "far": lambda v: v + 10**6,
        "huge": lambda v: spoiled(v, 10**30),
        "negative": lambda v: -1 - v,
        "flags": lambda v: v > 0,
        "a slice": lambda v: slice("a", 2),
    },
    "thing": NOTHING | {"array": lambda v: np.ones(3), "Series": lambda v: Series([1.0]), "one": lambda v: 1},
}
TAKEN: dict[str, dict[str, Callable[[Any], Any]]] = {
    "array": SAME,
    "vector": SAME,
    "number": SAME_NUMBER,
    "exponent": SAME_NUMBER,
    "size": {"numpy": lambda v: np.int64(v), "array without axes": lambda v: np.array(v)},
    "flag": {"numpy": lambda v: np.bool_(v), "array without axes": lambda v: np.array(v)},
    "word": {"numpy": lambda v: np.str_(v)},
    "indices": {
        "list": lambda v: v.tolist(),
        "tuple": lambda v: tuple(v.tolist()),
        "Series": Series,
        "int8": lambda v: v.astype(np.int8),
        "unsigned": lambda v: v.astype(np.uint64),
        "big endian": lambda v: v.astype(">i4"),
        "read-only": read_only,
    },
    "thing": {},
}


@dataclass(frozen=True)
class Arg:
    """A valid value of an argument, its kind, and what else is right here.

    Names of careless values are separated by ", ".
    """

    value: Any
    kind: str
    takes: str = ""  # careless values that have an answer here
    refuses: str = ""  # forms of the value that are not taken
    skips: str = ""  # careless values that are none here: what they do is not ours
    named: str = ""  # how messages may name the argument, beside its own name


@dataclass(frozen=True)
class Call:
    """A valid call: a function, its arguments by name, and what is read of what it returns."""

    function: Callable[..., Any]
    arguments: dict[str, Arg]
    read: Callable[[Any], Any]

    def __call__(self, **changed: Any) -> Any:
        return self.read(self.function(**{name: a.value for name, a in self.arguments.items()} | changed))


CALLS: dict[str, Call] = {}


def entry(name: str, function: Callable[..., Any], read: Any = lambda r: r, **arguments: Arg) -> None:
    CALLS[name] = Call(function, arguments, read)


DEFAULT = "None"  # where an argument may be left out
THROUGH = "NaN entry, infinite entry"  # where what is not finite shows in the result
CLASSES = (  # where labels may be of any type that can be sorted
    "complex, real but complex, dates, spans of time, records, as text, as bytes, as objects of text, "
    "infinite entry, huge entry"
)
SEEDS = "None, huge, zero, 1e30"
ITEMS = (
    "generator, list of None, list of text, nested, ragged, empty, empty array, array of objects, array, "
    "Series"
)
UNSET = "unset parameter of its shape"  # where a cvxpy parameter may have its value later


def number(value: float, takes: str = "", **rest: Any) -> Arg:
    return Arg(value, "number", takes, **rest)


def indices(value: Any, takes: str = "", **rest: Any) -> Arg:
    return Arg(np.asarray(value), "indices", takes, **rest)


def flag(value: bool, takes: str = "", **rest: Any) -> Arg:
    return Arg(value, "flag", takes, **rest)


def word(value: str, takes: str = "", **rest: Any) -> Arg:
    return Arg(value, "word", takes, **rest)


def size(value: int, takes: str = "", **rest: Any) -> Arg:
    return Arg(value, "size", takes, **rest)


def vector(value: Any, takes: str = "", **rest: Any) -> Arg:
    return Arg(value, "vector", takes, **rest)


def array(value: Any, takes: str = "", **rest: Any) -> Arg:
    return Arg(value, "array", takes, **rest)


def exponent(value: float = 1.5, **rest: Any) -> Arg:
    return Arg(value, "exponent", **rest)


def thing(value: Any, takes: str = "", **rest: Any) -> Arg:
    return Arg(value, "thing", takes, **rest)


def evaluated(expression: Any) -> Any:
    """Return the value of an expression with every variable at one."""
    for variable in expression.variables():
        variable.value = variable.project(np.ones(variable.shape))
    return np.asarray(expression.value, dtype=float)


def value_of(problem: Any) -> Any:
    """Return the objective and the violations of a problem with its variables at fixed values."""
    problem = getattr(problem, "problem", problem)
    for variable in problem.variables():
        start = np.eye(len(range(variable.shape[0]))) if variable.ndim == 2 else np.ones(variable.shape)
        variable.value = variable.project(start / max(variable.size, 1))
    found = [problem.objective.value, *(c.violation() for c in problem.constraints)]
    return np.concatenate([np.ravel(np.asarray(v, dtype=float)) for v in found])

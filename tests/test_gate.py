"""Every public argument meets every careless value: a kernelopt error that names it, or the right answer.

The table below has one valid call of every public function. Each argument is replaced in turn by every
careless value of its kind. What comes back must be an error of kernelopt, never one of Python, numpy or
cvxpy, and its message must name the argument; or the value is listed as one that is taken, and then the
answer is that of the valid call.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from inspect import isfunction
from typing import Any

import cvxpy as cp
import networkx as nx
import numpy as np
import pytest
import scipy.sparse as sp

import kernelopt as ko
from formulations import lanckriet, linear_functional, lp_norm, similarity, triplet_lp
from kernelopt.grams import join
from kernelopt.plotting import plot_bounds, plot_weights
from kernelopt.solvers.registry import METHODS
from tests.problems import labels, points, stack, targets

N, M = 5, 3
X, Y, V, KS = points(N), labels(N), targets(N), stack(N)
K0 = KS[0] + np.eye(N)
TRIPLETS = np.array([[0, 1, 2], [1, 2, 3]])


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


# ----------------------------------------------------------------------------- kernels and graphs

KERNELS = [ko.gaussian(1.0), ko.linear()]
GRAPH = nx.path_graph(N)
NODES = "generator, array, Series"  # any sequence of nodes

for kernel in (ko.gaussian, ko.laplacian):
    entry(kernel.__name__, kernel, lambda k: k(X), width=number(2.0))
entry("polynomial", ko.polynomial, lambda k: k(X), degree=size(2), offset=number(1.0))
entry("normalized", ko.normalized, kernel=thing(ko.gaussian(1.0)))
entry(
    "on_columns",
    ko.on_columns,
    lambda k: k(X),
    kernel=thing(ko.gaussian(1.0)),
    columns=indices([0, 1], named="column"),
)
entry("per_feature", ko.per_feature, kernels=thing([ko.gaussian(1.0)], named="kernel"), d=size(3))
entry("kernel(X)", lambda X: ko.gaussian(1.0)(X), X=array(X))
entry("kernel(X, Z)", lambda X, Z: ko.gaussian(1.0)(X, Z), X=array(X, named="Z"), Z=array(X, DEFAULT))
entry("kernel.diagonal", lambda X: ko.polynomial().diagonal(X), X=array(X))
entry("kernel.rank", lambda X: ko.linear().rank(X), X=array(X))
entry("empirical_map", ko.empirical_map, S=array(KS[0], named="S_new"), S_new=array(KS[0], DEFAULT))
entry(
    "diffusion", lambda graph, beta: ko.diffusion(graph, beta)([0, 1]), graph=thing(GRAPH), beta=number(0.5)
)
entry(
    "diffusion(X, Z)",
    lambda X, Z: ko.diffusion(GRAPH, 0.5)(X, Z),
    X=thing([0, 1], NODES),
    Z=thing([0, 1], f"{DEFAULT}, {NODES}"),
)
entry("diffusion.diagonal", lambda X: ko.diffusion(GRAPH, 0.5).diagonal(X), X=thing([0, 1], NODES))
entry("diffusion.rank", lambda X: ko.diffusion(GRAPH, 0.5).rank(X), X=thing([0, 1], NODES))

# ----------------------------------------------------------------------------------------- stacks

entry("as_grams", ko.as_grams, np.asarray, grams=array(KS))
entry("Grams.from_array", ko.Grams.from_array, np.asarray, array=array(KS, named="grams"))
entry(
    "Grams.from_array, named",
    lambda names: ko.Grams.from_array(KS, names).names,
    names=thing(["a", "b", "c"], DEFAULT),
)
entry(
    "Grams.from_kernels",
    ko.Grams.from_kernels,
    np.asarray,
    kernels=thing(KERNELS, named="kernel"),
    X=array(X),
)
entry("Grams.rank_one", ko.Grams.rank_one, np.asarray, V=array(X))
entry("Grams.from_eigenvectors", ko.Grams.from_eigenvectors, len, K0=array(K0), rank=size(2, DEFAULT))
entry("Grams.identity", ko.Grams.identity, np.asarray, n_points=size(3))
SEVERAL = "list of None, list of text, nested, ragged, array of objects, array, Series"
STACKS = {
    "array": ko.Grams.from_array(KS),
    "kernels": ko.Grams.from_kernels(KERNELS, X),
    "rank one": ko.Grams.rank_one(X),
    "identity": ko.Grams.identity(N),
    "centred": ko.Grams.from_kernels(KERNELS, X).center(),
    "scaled": ko.Grams.from_kernels(KERNELS, X).normalize("trace"),
    "spherical": ko.Grams.from_kernels([ko.gaussian(1.0), ko.gaussian(2.0)], X).normalize("spherical"),
    "subset": ko.Grams.from_kernels([*KERNELS, ko.gaussian(3.0)], X).center().subset([2, 0]),
    "joined": join([(2.0, ko.Grams.from_kernels(KERNELS, X)), (1.0, ko.Grams.rank_one(X))]),
}
for title, grams in STACKS.items():
    one_kernel = ", NaN, number" if len(grams) == 1 else ""
    entry(
        f"{title}.combine",
        grams.combine,
        weights=vector(np.arange(1.0, len(grams) + 1), THROUGH + one_kernel),
    )
    entry(f"{title}.apply", grams.apply, alpha=vector(V, "empty, " + THROUGH))
    entry(f"{title}.forms", grams.forms, alpha=vector(V, "empty, " + THROUGH))
    entry(
        f"{title}.entries",
        grams.entries,
        rows=indices([0, 1], "negative"),
        columns=indices([1, 2], "negative", named="rows"),
    )
    entry(f"{title}.rows", grams.rows, indices=indices([0, 1], "negative, empty, empty array"))
    entry(f"{title}.block", grams.block, np.asarray, rows=indices([0, 1], "negative"))
    entry(f"{title}.subset", grams.subset, np.asarray, indices=indices([0], "negative"))
    entry(f"{title}.normalize", grams.normalize, np.asarray, kind=word("trace"))
for title in ("kernels", "centred", "scaled", "spherical", "subset"):
    entry(f"{title}.cross", STACKS[title].cross, X_new=array(X[:2]))
    entry(f"{title}.self_similarity", STACKS[title].self_similarity, X_new=array(X[:2]))
entry("identity.cross", STACKS["identity"].cross, X_new=thing(X[:2], SEVERAL))  # it counts the points
entry("identity.self_similarity", STACKS["identity"].self_similarity, X_new=thing(X[:2], SEVERAL))
entry("join, parts", lambda parts: join(parts), np.asarray, parts=thing([(2.0, STACKS["array"])]))
entry(
    "join",
    lambda factor: join([(factor, STACKS["array"])]),
    np.asarray,
    factor=vector(np.ones(M) * 2, "number"),
)

# ----------------------------------------------------------------------------------------- losses

for loss in (ko.hinge, ko.squared_hinge, ko.huberized_hinge, ko.logistic):
    one = lambda made: made.value(np.linspace(-1, 1, N), Y)  # noqa: E731
    entry(f"{loss.__name__}, one C", loss, one, C=number(2.0))
    entry(
        f"{loss.__name__}, C per sample",
        loss,
        one,
        C=vector(np.arange(1.0, N + 1), "number"),
    )
for loss in (ko.squared, ko.epsilon_insensitive, ko.one_class):
    entry(
        loss.__name__,
        loss,
        lambda made: made.value(V, V[::-1]),
        C=vector(np.arange(1.0, N + 1), "number"),
    )
entry("huberized_hinge, tau", lambda tau: ko.huberized_hinge(1.0, tau).value(V, Y), tau=number(0.5))
entry("epsilon_insensitive, eps", lambda eps: ko.epsilon_insensitive(1.0, eps).value(V, Y), eps=number(0.5))
entry("hinge.scaled", ko.hinge().scaled, lambda made: made.C, factor=number(2.0))
entry("hard_margin.scaled", ko.hard_margin().scaled, repr, factor=number(2.0))
entry("hinge.targets", lambda y: ko.hinge().targets(y, N), y=vector(Y))
entry("squared.targets", lambda y: ko.squared().targets(y, N), y=vector(V))
entry("one_class.targets", lambda y: ko.one_class().targets(y, N), y=vector(V, DEFAULT))

# ------------------------------------------------------------------------------------ the language

W = cp.Variable(M, nonneg=True, name="w")
HINGE = ko.hinge(1.0)
entry("lp_length", ko.lp_length, v=vector(V, "empty, longer, much longer, " + THROUGH), p=exponent())
entry("conjugate_exponent", ko.conjugate_exponent, p=exponent())
entry("positive", lambda value: ko.positive(value, "value"), value=number(2.0))
entry("exponent", lambda value: ko.exponent(value, "value"), value=exponent())
entry("whole", lambda value: ko.whole(value, "value"), value=size(2))
entry("boolean", lambda value: ko.boolean(value, "value"), value=flag(True))
entry("one_of", lambda value: ko.one_of(value, "value", ("a", "b")), value=word("a"))
entry(
    "as_float_array",
    lambda value: ko.as_float_array(value, "value", 1),
    value=vector(V, "empty, longer, much longer"),
)
entry("as_vector", lambda value: ko.as_vector(value, "value", N), value=vector(V))
entry(
    "as_classes",
    lambda value: ko.as_classes(value, "value"),
    value=vector(Y, f"{CLASSES}, empty, list of text, longer, much longer"),
)
entry("as_list", lambda value: ko.as_list(value, "value", "a list"), value=thing([1], ITEMS))
entry("as_generator", lambda value: ko.as_generator(value, "value").random(), value=size(0, SEEDS))
entry("as_symmetric", lambda value: ko.as_symmetric(value, "value"), value=array(K0))
entry("as_indices", lambda value: ko.as_indices(value, N, "value"), value=indices([1, 0]))
entry(
    "combine",
    ko.combine,
    evaluated,
    weights=vector(np.ones(M), f"{UNSET}, unset parameter vector"),
    grams=array(KS),
)
entry("combine, a variable", lambda grams: ko.combine(W, grams), evaluated, grams=array(KS))
for name, function in {"trace": ko.trace, "frobenius": ko.frobenius}.items():
    entry(name, function, evaluated, K=array(K0, UNSET))
entry(
    "entries",
    ko.entries,
    evaluated,
    K=array(K0, UNSET),
    rows=indices([0, 1]),
    columns=indices([1, 2], named="rows"),
)
entry("alignment", ko.alignment, evaluated, K=array(K0, UNSET), y=vector(Y))
entry(
    "p_norm",
    ko.p_norm,
    evaluated,
    x=vector(V, f"{UNSET}, unset parameter vector, longer, much longer"),
    p=exponent(),
)
entry(
    "lp_ball",
    ko.lp_ball,
    lambda ball: value_of(cp.Problem(cp.Minimize(0), ball)),
    theta=thing(W, skips="unset parameter vector"),
    p=exponent(),
    radius=number(2.0, "variable, set parameter, constant", skips="unset parameter"),
)
entry("triplet_gains", ko.triplet_gains, evaluated, K=array(K0, UNSET), triplets=indices(TRIPLETS))
entry(
    "triplet_hinge",
    ko.triplet_hinge,
    evaluated,
    K=array(K0, UNSET),
    triplets=indices(TRIPLETS),
    margin=number(1.0),
)
entry("diagonally_dominant", ko.diagonally_dominant, len, K=array(K0, UNSET), points=indices([0, 1], DEFAULT))
entry(
    "risk",
    ko.risk,
    evaluated,
    K=array(K0, UNSET, refuses="list, tuple"),  # a list is one of several kernels
    y=vector(Y),
    loss=thing(HINGE),
    bias=flag(True, DEFAULT),
    norm=exponent(2.0),
)
entry("risk of targets", lambda y: ko.risk(K0, y, ko.squared()), evaluated, y=vector(V))
entry("risk of a list", lambda K: ko.risk([K, K0], Y, HINGE), evaluated, K=array(K0, UNSET))

# ------------------------------------------------------------------------------------- comparisons

entry("as_triplets", ko.as_triplets, triplets=indices(TRIPLETS), n_points=size(N, DEFAULT))
entry("comparisons", ko.comparisons, str, triplets=indices(TRIPLETS), n_points=size(N, DEFAULT))
entry(
    "Comparisons.describe",
    ko.comparisons(TRIPLETS).describe,
    cycle=indices([0, 1], "empty, empty array, generator of it"),
)
entry(
    "sample_triplets",
    ko.sample_triplets,
    y=vector(Y, f"{CLASSES}, longer, much longer", skips="dates, spans of time"),  # one class
    size=size(3),
    random_state=size(0, SEEDS),
    both_anchors=flag(True),
)
entry("triplet_score", ko.triplet_score, K=array(K0), triplets=indices(TRIPLETS), distance=flag(True))

# -------------------------------------------------------------------------- problems and solutions


def learning(radius: Any = 1.0) -> cp.Problem:
    K = ko.combine(W, KS)
    return cp.Problem(cp.Minimize(ko.risk(K, Y, HINGE)), ko.lp_ball(W, 2, radius))


PROBLEM = learning()


@cache
def solution() -> ko.Solution:
    return ko.solve(learning())


CROSS = np.arange(M * 2 * N, dtype=float).reshape(M, 2, N)


GARBAGE = f"{DEFAULT}, {THROUGH}"  # what is not finite proves nothing: the bracket is wide, and true


def bracket(certificate: ko.Certificate) -> Any:
    return np.array([certificate.lower, certificate.upper])


entry(
    "certify",
    lambda problem, weights, alpha, retrain: ko.certify(
        problem, weights=weights, alpha=alpha, retrain=retrain
    ),
    bracket,
    problem=thing(PROBLEM),
    weights=vector(np.ones(M) / 2, GARBAGE),
    alpha=vector(Y / 2, GARBAGE),
    retrain=flag(True),
)
entry(
    "certify, a candidate",
    lambda candidate: ko.certify(PROBLEM, candidate),
    candidate=thing({W: np.ones(M)}, DEFAULT),
)
entry(
    "certify, a value",
    lambda value: ko.certify(PROBLEM, {W: value}),
    bracket,
    value=vector(np.ones(M), GARBAGE, named="candidate"),
)
entry(
    "certify, several alphas",
    lambda alpha: ko.certify(PROBLEM, alpha=[alpha]),
    bracket,
    alpha=vector(Y / 2, THROUGH),
)
entry(
    "certify, bounds", lambda bounds: ko.certify(PROBLEM, bounds=bounds), bounds=thing({W: (0, 1)}, DEFAULT)
)
entry(
    "certify, a bound",
    lambda bound: ko.certify(PROBLEM, bounds={W: (0, bound)}),
    bracket,
    bound=vector(np.ones(M), "infinite entry, number", named="bounds"),
)
entry(
    "solve",
    ko.solve,
    lambda s: s.status,
    problem=thing(PROBLEM),
    method=word("exact"),
    tol=number(0.3),
    time_limit=number(9.0, DEFAULT),
    memory=number(1e9, DEFAULT),
    callback=thing(lambda event: None, "None, function", skips="type"),
    verbose=flag(False),
    solver=word("CLARABEL", "None, capitals"),
    solver_options=thing({"max_iter": 50}, DEFAULT, named="setting"),
    force=flag(True, DEFAULT),
)
for method, options in {
    "interleaved": {"max_chunks": size(50, DEFAULT), "chunk": size(2, DEFAULT)},
    "cutting-plane": {
        "master": word("exact", DEFAULT),
        "stabilize": flag(True, DEFAULT),
        "max_iterations": size(50, DEFAULT),
    },
    "block-descent": {"update": word("descent", DEFAULT), "max_iterations": size(50, DEFAULT)},
}.items():
    entry(
        f"solve by {method}",
        lambda method=method, **options: ko.solve(learning(), method, tol=0.3, **options),
        lambda s: s.status,
        **options,
    )
entry("explain", ko.explain, str, problem=thing(PROBLEM))
entry("expand", ko.expand, lambda e: len(e.risks), problem=thing(PROBLEM))
entry("register_method", ko.register_method, method=thing(METHODS["exact"]))
entry(
    "decision_function",
    lambda cross, risk: solution().decision_function(cross, risk=risk),
    cross=array(CROSS, DEFAULT),
    risk=size(0, "None, zero"),
)
entry(
    "kernel_at",
    lambda cross, risk: solution().kernel_at(cross, risk=risk),
    cross=array(CROSS),
    risk=size(0, "None, zero"),
)
entry("Risk.at", lambda alpha: risk_at().at(alpha).value, alpha=vector(Y / 2))
entry(
    "plot_weights",
    plot_weights,
    lambda ax: None,
    solutions=thing({"a": solution()}),
    names=thing(list("abc"), "None, generator, array"),
)
entry(
    "plot_bounds",
    plot_bounds,
    lambda ax: None,
    solutions=thing({"a": solution()}),
    references=thing({"b": 1.0}, "None, dict"),
)


def risk_at() -> ko.Risk:
    return ko.risk(K0, Y, HINGE)


# ------------------------------------------------------------------------------------ formulations

GRAMS = KS + np.eye(N)
RIDGE, TRACE = number(0.5, named="tau"), number(3.0)
COMMON = {"grams": array(GRAMS), "y": vector(Y)}
for name, more in {
    "margin": {"C": number(1.0, "infinite"), "tau": RIDGE, "weights": word("nonnegative"), "trace": TRACE},
    "hard_margin": {"weights": word("nonnegative"), "trace": TRACE},
    "soft_margin": {"C": number(1.0), "weights": word("nonnegative"), "trace": TRACE},
    "soft_margin_squared": {"C": number(1.0), "weights": word("nonnegative"), "trace": TRACE},
    "learned_tau": {"weights": word("nonnegative"), "trace": TRACE},
    "alignment": {"weights": word("free"), "norm": word("train"), "prediction": word("svm")},
    "qcqp": {"C": number(1.0, "infinite"), "tau": RIDGE, "trace": TRACE},
    "sdp": {"C": number(1.0, "infinite"), "tau": RIDGE, "weights": word("free"), "trace": TRACE},
    "block_norm": {"C": number(1.0, "infinite"), "tau": RIDGE, "trace": TRACE},
}.items():
    entry(f"lanckriet.{name}", getattr(lanckriet, name), value_of, **COMMON, **more)
entry(
    "lanckriet.rank_one",
    lanckriet.rank_one,
    value_of,
    V=array(X),
    y=vector(Y),
    C=number(1.0, "infinite"),
    tau=RIDGE,
    trace=TRACE,
)


@cache
def transduced() -> ko.Solution:
    grams = ko.Grams.from_kernels(KERNELS, points(6))
    return lanckriet.soft_margin(grams, np.array([1.0, -1, 1]), C=1.0).solve()


entry(
    "lanckriet.transduction_bound",
    lanckriet.transduction_bound,
    lambda b: b.bound,
    solution=thing(transduced()),
    delta=number(0.1),
    y=vector(np.array([1.0, -1, 1]), DEFAULT),
    samples=size(10),
    random_state=size(0, SEEDS),
)
LOSS = {"loss": thing(HINGE), "bias": flag(True, DEFAULT)}
E = np.eye(M) + 0.1
for name, more in {
    "primal": {"p": exponent()},
    "dual": {"p": exponent()},
    "tikhonov": {"p": exponent(), "penalty": number(1.0)},
    "dual_tikhonov": {"p": exponent(), "penalty": number(1.0)},
    "block_norm": {"r": exponent(), "squared": flag(True)},
    "dual_block_norm": {"r": exponent(), "squared": flag(True)},
    "elastic_net": {"l1": number(1.0), "l2": number(1.0)},
    "dual_elastic_net": {"l1": number(1.0), "l2": number(1.0)},
    "non_isotropic": {"E": array(E)},
    "dual_non_isotropic": {"E": array(E)},
}.items():
    entry(f"lp_norm.{name}", getattr(lp_norm, name), value_of, **COMMON, **more, **LOSS)
for name in ("one_class", "dual_one_class"):
    function = getattr(lp_norm, name)
    entry(
        f"lp_norm.{name}, C",
        function,
        value_of,
        grams=array(GRAMS),
        p=exponent(),
        C=vector(np.ones(N) * 2, "number"),
    )
    entry(f"lp_norm.{name}, nu", function, value_of, grams=array(GRAMS), p=exponent(), nu=number(0.5))
entry(
    "lp_norm.ivanov_from_tikhonov",
    lp_norm.ivanov_from_tikhonov,
    lambda found: found.tau,
    solution=thing(solution()),
    p=exponent(),
    loss=thing(HINGE),
)
entry(
    "lp_norm.tikhonov_from_ivanov",
    lp_norm.tikhonov_from_ivanov,
    lambda found: found.penalty,
    solution=thing(solution()),
    loss=thing(HINGE),
    tau=number(2.0),
)
S = np.array([K0, K0 - 2 * np.eye(N)])
NEAR = {
    "similarities": array(S),
    "y": vector(Y),
    "C": number(2.0),
    "rho": number(0.5),
    "trace": number(3.0, DEFAULT),
    "fidelity": word("frobenius"),
}
for name in ("single_kernel", "kernel_per_similarity", "restricted_spectral"):
    entry(f"similarity.{name}", getattr(similarity, name), value_of, **NEAR)
    entry(f"similarity.dual_{name}", getattr(similarity, f"dual_{name}"), value_of, **NEAR)
for name in ("denoise", "flip", "shift", "default_trace"):
    entry(f"similarity.{name}", getattr(similarity, name), similarities=array(S))
entry(
    "similarity.loss",
    lambda loss: similarity.single_kernel(S, Y, rho=1.0, trace=1.0, loss=loss),
    value_of,
    loss=thing(HINGE, DEFAULT),
)
entry(
    "similarity.indefinite_svm",
    similarity.indefinite_svm,
    value_of,
    **{k: NEAR[k] for k in ("similarities", "y", "C", "rho")},
)
entry(
    "similarity.optimal_kernel",
    similarity.optimal_kernel,
    similarities=array(S),
    alpha=vector(V),
    rho=number(0.5),
    trace=number(1.0, DEFAULT),
)
entry("similarity.gammas", similarity.gammas, kernels=array(GRAMS), alpha=vector(V))
entry(
    "similarity.spectral_extension",
    similarity.spectral_extension,
    learned=word("denoise"),
    similarities=array(S),
    S_new=array(S[:, :2]),
)
entry(
    "similarity.spectral_extension, mu",
    lambda learned: similarity.spectral_extension(learned, S, S[:, :2]),
    learned=array(np.ones((2, N)), named="mu"),
)
DESIGN = {
    "grams": array(KS),
    "triplets": indices(TRIPLETS),
    "gamma2": number(0.1),
    "cone": word("dominant"),
    "points": indices([0, 1, 2, 3], DEFAULT),
    "margin": number(1.0),
}
entry("triplet_lp.kernel_design", triplet_lp.kernel_design, value_of, **DESIGN, gamma1=number(0.1))
GROUPS = vector(np.array([0, 1, 1]), f"{DEFAULT}, {CLASSES}")
entry(
    "triplet_lp.feature_selection",
    triplet_lp.feature_selection,
    value_of,
    **DESIGN,
    groups=GROUPS,
    gamma1=number(0.1),
)
entry("triplet_lp.gamma1_max", triplet_lp.gamma1_max, **DESIGN, groups=GROUPS)
entry(
    "triplet_lp.regularization_path",
    triplet_lp.regularization_path,
    lambda path: path.upper,
    **DESIGN,
    groups=GROUPS,
    gamma1=vector([0.1, 0.2], "generator of it, longer, much longer", skips="None"),  # None has a warning
)
entry(
    "triplet_lp.regularization_path, size",
    lambda size: triplet_lp.regularization_path(GRAMS, TRIPLETS, gamma2=0.0, size=size).upper,
    size=size(2),
)
entry(
    "triplet_lp.selected",
    triplet_lp.selected,
    solution=thing(solution()),
    groups=vector(np.array([0, 1, 1]), CLASSES),
    tol=number(1e-6),
)
STRATEGY = {"grams": array(GRAMS), "targets": vector(V)}
entry(
    "functional_strategy",
    linear_functional.functional_strategy,
    value_of,
    **STRATEGY,
    regularization=vector(np.ones(M), "number"),
    convention=word("mean"),
    ridge=number(0.5),
    weights=word("free"),
    columns=word("split"),
    filter=thing(linear_functional.cut_off),
    intercept=word("mean"),
    held_out=indices([0, 2], DEFAULT),
    n_jobs=size(1, DEFAULT),
)
entry(
    "functional_strategy, a grid",
    lambda grid, regularization: linear_functional.functional_strategy(
        GRAMS, V, regularization=regularization, grid=grid
    ),
    value_of,
    grid=vector([0.1, 1.0], "None, number, longer, much longer"),
    regularization=word("gcv", "one"),
)


@cache
def strategy() -> Any:
    return linear_functional.functional_strategy(GRAMS, V, regularization=0.1)


entry("strategy.at", lambda weights: strategy().at(weights).value, weights=vector(np.ones(M)))
entry(
    "strategy.solve_directly",
    lambda by, rcond: strategy().solve_directly(by, rcond).value,
    by=word("qr"),
    rcond=number(1e-9),
)
entry(
    "strategy.with_weights",
    lambda weights, ridge: strategy().with_weights(weights, ridge=ridge),
    value_of,
    weights=word("simplex"),
    ridge=number(0.5),
)
LEVELS, LEVEL = array(np.array([0.5, 1.0, 2.0]), "empty"), number(0.5)
for name in ("tikhonov", "cut_off", "landweber"):
    entry(f"linear_functional.{name}", getattr(linear_functional, name), eigenvalues=LEVELS, level=LEVEL)
entry(
    "linear_functional.iterated_tikhonov",
    lambda times, eigenvalues, level: linear_functional.iterated_tikhonov(times)(eigenvalues, level),
    times=size(2),
    eigenvalues=LEVELS,
    level=LEVEL,
)
entry(
    "Formulation.solve",
    lambda method, programme: lanckriet.qcqp(GRAMS, Y, C=1.0).solve(method, programme=programme).status,
    method=word("exact"),
    programme=word("qcqp", DEFAULT),
)

# ------------------------------------------------------------------------------------------- tests

CASES = [(call, argument) for call, made in CALLS.items() for argument in made.arguments]
FORMULATIONS = ("lanckriet.", "lp_norm.", "similarity.", "triplet_lp.", "functional_strategy")
NAMES = [f"{call}-{argument}" for call, argument in CASES]


def outcome(call: Call, argument: str, value: Any) -> str:
    """Return "" where a careless value has an answer, "refused" for a good error, else what is wrong."""
    name = "|".join(filter(None, [argument, call.arguments[argument].named]))
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)  # of sums with infinite numbers
            warnings.simplefilter("error", np.exceptions.ComplexWarning)
            call(**{argument: value})
    except ko.KerneloptError as error:
        message = str(error)
        good = len(message.split()) >= 8 and re.search(rf"\b({name})\b", message)
        return "refused" if good else f"does not name it: {message}"
    except Exception as error:
        return f"raises {type(error).__name__}: {error}"
    return ""


def answers(made: Call, argument: str, left_out: set[str]) -> tuple[dict[str, str], dict[str, str]]:
    """Return what every careless value of an argument meets, and what it should meet."""
    arg = made.arguments[argument]
    names = KINDS[arg.kind].keys() - left_out - set(arg.skips.split(", "))
    found = {name: outcome(made, argument, KINDS[arg.kind][name](arg.value)) for name in sorted(names)}
    return found, {name: "" if name in arg.takes.split(", ") else "refused" for name in found}


@pytest.mark.parametrize(("call", "argument"), CASES, ids=NAMES)
def test_a_careless_value_is_refused_by_name_or_is_known_to_be_right(call, argument):
    found, wanted = answers(CALLS[call], argument, LIKE_OTHERS if call.startswith(FORMULATIONS) else set())
    assert found == wanted


@pytest.mark.slow
@pytest.mark.parametrize("call", [call for call in CALLS if call.startswith(FORMULATIONS)])
def test_every_careless_value_is_refused_by_a_formulation(call):
    for argument in CALLS[call].arguments:
        found, wanted = answers(CALLS[call], argument, set())
        assert found == wanted, argument


@cache
def answer(call: str) -> Any:
    """Return the answer of a valid call."""
    return CALLS[call]()


@pytest.mark.parametrize(("call", "argument"), CASES, ids=NAMES)
def test_other_forms_of_a_value_have_the_same_answer(call, argument):
    made, arg = CALLS[call], CALLS[call].arguments[argument]
    expected = answer(call)
    forms = TAKEN[arg.kind]
    for name in (
        FEW_FORMS.intersection(forms)
        if call.startswith((*FORMULATIONS, "certify")) and arg.kind in ("array", "vector")
        else forms
    ):
        make = forms[name]
        if name in arg.refuses.split(", "):
            assert outcome(made, argument, make(arg.value)) == "refused", name
            continue
        found = made(**{argument: make(arg.value)})
        if isinstance(expected, float | np.ndarray) and np.asarray(expected).dtype.kind in "fiu":
            assert np.asarray(found, dtype=float) == pytest.approx(expected, rel=1e-5, abs=1e-6), name


def test_the_table_has_every_public_function():
    """Those without arguments, records, and classes that only functions of ours make are not in it."""
    listed = {getattr(made.function, "__name__", "") for made in CALLS.values()} | set(CALLS)
    functions = {
        f"{module.__name__.rpartition('.')[2]}.{name}": name
        for module in (lanckriet, linear_functional, lp_norm, similarity, triplet_lp)
        for name in module.__all__
        if isfunction(getattr(module, name))
    } | {name: name for name in ko.__all__ if isfunction(getattr(ko, name))}
    whole_names = " ".join(CALLS)
    missing = {
        full
        for full, name in functions.items()
        if name not in listed and not re.search(rf"\b{name}\b", whole_names)
    }
    assert missing == {"catalogue", "shown"}


# ------------------------------------------------------------------- what the caller does later


@pytest.mark.parametrize("loss", [ko.hinge, ko.squared, ko.logistic, ko.one_class])
def test_labels_and_weights_are_copied(loss):
    y, C = Y.copy(), np.arange(1.0, N + 1)
    risk = ko.risk(K0, y, loss(C))
    before = float(risk.value)
    y[:], C[:] = y[::-1].copy(), 7.0
    risk.forget()
    assert float(risk.value) == before
    assert not risk.learner.loss.C.flags.writeable


def test_a_kernel_and_a_stack_are_copied():
    K, grams = K0.copy(), KS.copy()
    risk, stack_of_them = ko.risk(K, Y, HINGE), ko.as_grams(grams)
    before = float(risk.value)
    K[:], grams[:] = 0.0, 0.0
    risk.forget()
    assert float(risk.value) == before and np.array_equal(stack_of_them, KS)


@pytest.mark.parametrize("as_given", [np.array, np.ndarray.tolist], ids=["array", "nested list"])
def test_points_are_copied(as_given):
    given = as_given(X.copy())
    grams = ko.Grams.from_kernels([ko.linear()], given)
    given[0][0] = 99.0
    assert grams[0] == pytest.approx(X @ X.T)
    with pytest.raises(ValueError, match="read-only"):
        grams.X[0, 0] = 99.0


@pytest.mark.parametrize("title", STACKS)
def test_a_returned_array_is_read_only_or_a_copy(title):
    grams = STACKS[title]
    chosen = np.array([0, 1])

    def everything():
        yield from grams
        yield from (grams.factor(0), grams.diagonals, grams.traces, grams.row_means, grams.inner())
        yield from (np.asarray(grams), grams.rows(chosen), grams.entries(chosen, chosen), grams.vectorized())
        yield from (grams.combine(np.ones(len(grams))), grams.apply(V), grams.forms(V))

    before = [array.copy() for array in everything()]
    for array in everything():
        if array.flags.writeable:
            array *= 0
    assert all(np.array_equal(a, b) for a, b in zip(before, everything(), strict=True))


def test_the_machine_that_a_risk_keeps_is_not_changed_from_outside():
    risk = ko.risk(K0, Y, HINGE)
    before = risk.oracle().alpha.copy()
    with pytest.raises(ValueError, match="read-only"):
        risk.oracle().alpha[:] = 0.0
    assert np.array_equal(risk.oracle().alpha, before)


BUILDERS = {
    "lp_norm.primal": lambda grams, y: lp_norm.primal(grams, y, p=2),
    "lp_norm.block_norm": lambda grams, y: lp_norm.block_norm(grams, y, r=1.5),
    "lp_norm.elastic_net": lambda grams, y: lp_norm.elastic_net(grams, y, l1=1.0, l2=1.0),
    "lp_norm.tikhonov": lambda grams, y: lp_norm.tikhonov(grams, y, p=2, penalty=1.0),
    "lp_norm.one_class": lambda grams, y: lp_norm.one_class(grams, p=2, nu=0.5),
    "lanckriet.qcqp": lambda grams, y: lanckriet.qcqp(grams, y, C=1.0),
    "lanckriet.rank_one": lambda grams, y: lanckriet.rank_one(grams[0], y, C=1.0),
    "similarity.single_kernel": lambda grams, y: similarity.single_kernel(grams, y, rho=1.0, trace=3.0),
    "functional_strategy": lambda grams, y: linear_functional.functional_strategy(
        grams, y, regularization=np.ones(M)
    ),
}


@pytest.mark.parametrize("name", BUILDERS)
def test_a_formulation_copies_what_it_is_given(name):
    grams, y = GRAMS.copy(), Y.copy()
    made, before = BUILDERS[name](grams, y), BUILDERS[name](GRAMS, Y)
    y[:], grams[:] = y[::-1].copy(), np.eye(N)
    for mine, reference in ((made.problem, before.problem), (made.dual(), before.dual())):
        assert value_of(mine) == pytest.approx(value_of(reference), rel=1e-12, abs=1e-12)


def test_the_ellipsoid_is_copied():
    mine = E.copy()
    made = lp_norm.non_isotropic(GRAMS, Y, E=mine)
    mine[:] = 5 * np.eye(M)
    expected = lp_norm.non_isotropic(GRAMS, Y, E=E)
    assert value_of(made.dual()) == pytest.approx(value_of(expected.dual()), rel=1e-12)


# ------------------------------------------------------------------------------ what was silent


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: ko.risk(K0 + 1e-3j, Y, HINGE), "K must be .* real numbers, got .*complex.*Take .real"),
        (lambda: ko.risk(K0, Y, HINGE, bias="no"), "bias must be True or False, got 'no'"),
        (
            lambda: ko.risk(K0, np.full(N, np.datetime64("2020-01-01")), ko.squared()),
            "y .*datetime64.*first date",
        ),
        (lambda: ko.as_grams(np.ma.masked_less(KS, 0.1)), "grams must have no masked entries, got [0-9]+"),
        (lambda: ko.Grams.from_kernels([ko.linear()], records(X)), "X must be .*real numbers.*structured"),
        (lambda: ko.Grams.from_kernels([ko.linear()], sp.csr_array(X)), r"X .*sparse.*X.toarray\(\)"),
        (lambda: ko.Grams.from_kernels([ko.linear()], []), "X must hold at least one point"),
        (lambda: ko.Grams.from_kernels(KERNELS, X).combine([1.0]), r"weights must have shape \(2,\)"),
        (lambda: ko.lp_length(V, 0.5), "p must be at least 1, got 0.5"),
        (lambda: lanckriet.transduction_bound(transduced(), samples=0), "samples must be a positive whole"),
        (lambda: ko.lp_ball(W, cp.Parameter(value=2)), "p must be a positive number, got Parameter"),
        (lambda: ko.lp_ball(W, Series([2.0])), "p must be a positive number, got .*Series"),
        (lambda: ko.lp_ball(W, np.array([1.5, 2.0])), "p must be a positive number, got .*ndarray"),
        (lambda: ko.risk(K0, Y, HINGE, norm="2"), r"norm must be a positive number, got '2' \(str\)"),
        (
            lambda: ko.solve(learning(cp.Parameter(pos=True, name="radius"))),
            "None for radius. Set the .value",
        ),
        (
            lambda: ko.certify(learning(cp.Parameter(pos=True, name="radius"))),
            "None for radius. Set the .value",
        ),
        (lambda: linear_functional.landweber([1.0, -0.5], 0.5), "eigenvalues must be non-negative, got -0.5"),
        (
            lambda: linear_functional.functional_strategy(
                GRAMS, V, regularization=1.0, filter=lambda eigenvalues, level: 1.0
            ),
            "filter must return one number per eigenvalue",
        ),
        (
            lambda: linear_functional.functional_strategy(
                GRAMS,
                V,
                regularization=1.0,
                filter=lambda eigenvalues, level: 1 / eigenvalues - level * np.nan,
            ),
            "filter, at the eigenvalues, must be finite",
        ),
    ],
    ids=[
        *("complex kernel", "a word for a flag", "dates for targets", "masked grams", "records", "sparse X"),
        *(
            "no X",
            "one weight of two",
            "p below 1",
            "no samples",
            "p a parameter",
            "p a Series",
            "p an array",
        ),
        *(
            "norm a word",
            "unset radius",
            "unset radius, certified",
            "negative spectrum",
            "filter of one number",
        ),
        "filter of NaN",
    ],
)
def test_what_was_wrong_in_silence_or_foreign_is_refused(call, message):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        with pytest.raises(ko.InputError, match=message):
            call()


def test_a_large_stack_is_read_no_more_often_than_before(monkeypatch):
    """The gate of a stack is two passes for finiteness, and three for the symmetry of each matrix."""
    passes = []
    isfinite = np.isfinite

    def counted(array, *rest, **more):
        passes.append(np.size(array))
        return isfinite(array, *rest, **more)

    monkeypatch.setattr(np, "isfinite", counted)
    grams = np.stack([np.eye(50)] * 4)
    ko.as_grams(grams)
    assert sum(size for size in passes if size > 1) == 2 * grams.size

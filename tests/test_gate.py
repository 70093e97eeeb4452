"""Every public argument meets every careless value: a kernelopt error that names it, or the right answer.

The table below has one valid call of every public function. Each argument is replaced in turn by every
careless value of its kind. What comes back must be an error of kernelopt, never one of Python, numpy or
cvxpy, and its message must name the argument; or the value is listed as one that is taken, and then the
answer is that of the valid call.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
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
    """A valid value of an argument, its kind, and the careless values that it may take."""

    value: Any
    kind: str
    takes: str = ""  # names of careless values, separated by ", ", that are an answer here and no error
    named: str = ""  # how messages may name it, beside its own name
    refuses: str = ""  # names of forms that are not taken here


@dataclass(frozen=True)
class Call:
    """A valid call: a function, its arguments by name, and what is read of what it returns."""

    function: Callable[..., Any]
    arguments: dict[str, Arg]
    read: Callable[[Any], Any] = field(default=lambda result: result)
    positional: tuple[str, ...] = ()


CALLS: dict[str, Call] = {}


def entry(name: str, function: Callable[..., Any], read: Any = lambda r: r, **arguments: Arg) -> None:
    CALLS[name] = Call(function, arguments, read)


def number(value: float, **rest: Any) -> Arg:
    return Arg(value, "number", **rest)


def indices(value: Any, **rest: Any) -> Arg:
    return Arg(np.asarray(value), "indices", **rest)


def flag(value: bool, takes: str = "", **rest: Any) -> Arg:
    return Arg(value, "flag", takes=takes, **rest)


def word(value: str, **rest: Any) -> Arg:
    return Arg(value, "word", **rest)


def size(value: int, **rest: Any) -> Arg:
    return Arg(value, "size", **rest)


def vector(value: Any, **rest: Any) -> Arg:
    return Arg(value, "vector", **rest)


def array(value: Any, **rest: Any) -> Arg:
    return Arg(value, "array", **rest)


def exponent(value: float = 1.5, **rest: Any) -> Arg:
    return Arg(value, "exponent", **rest)


def thing(value: Any, **rest: Any) -> Arg:
    return Arg(value, "thing", **rest)


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
entry("kernel(X, Z)", lambda X, Z: ko.gaussian(1.0)(X, Z), X=array(X, named="Z"), Z=array(X))
entry("kernel.diagonal", lambda X: ko.polynomial().diagonal(X), X=array(X))
entry("kernel.rank", lambda X: ko.linear().rank(X), X=array(X))
entry("empirical_map", ko.empirical_map, S=array(KS[0], named="S_new"), S_new=array(KS[0]))
entry(
    "diffusion", lambda graph, beta: ko.diffusion(graph, beta)([0, 1]), graph=thing(GRAPH), beta=number(0.5)
)
entry("diffusion(X, Z)", lambda X, Z: ko.diffusion(GRAPH, 0.5)(X, Z), X=thing([0, 1]), Z=thing([0, 1]))
entry("diffusion.diagonal", lambda X: ko.diffusion(GRAPH, 0.5).diagonal(X), X=thing([0, 1]))
entry("diffusion.rank", lambda X: ko.diffusion(GRAPH, 0.5).rank(X), X=thing([0, 1]))

# ----------------------------------------------------------------------------------------- stacks

entry("as_grams", ko.as_grams, np.asarray, grams=array(KS))
entry("Grams.from_array", ko.Grams.from_array, np.asarray, array=array(KS, named="grams"))
entry(
    "Grams.from_array, named",
    lambda names: ko.Grams.from_array(KS, names).names,
    names=thing(["a", "b", "c"]),
)
entry(
    "Grams.from_kernels",
    ko.Grams.from_kernels,
    np.asarray,
    kernels=thing(KERNELS, named="kernel"),
    X=array(X),
)
entry("Grams.rank_one", ko.Grams.rank_one, np.asarray, V=array(X))
entry("Grams.from_eigenvectors", ko.Grams.from_eigenvectors, len, K0=array(K0), rank=size(2))
entry("Grams.identity", ko.Grams.identity, np.asarray, n_points=size(3))
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
    entry(f"{title}.combine", grams.combine, weights=vector(np.arange(1.0, len(grams) + 1)))
    entry(f"{title}.apply", grams.apply, alpha=vector(V))
    entry(f"{title}.forms", grams.forms, alpha=vector(V))
    entry(f"{title}.entries", grams.entries, rows=indices([0, 1]), columns=indices([1, 2], named="rows"))
    entry(f"{title}.rows", grams.rows, indices=indices([0, 1]))
    entry(f"{title}.block", grams.block, np.asarray, rows=indices([0, 1], named="indices"))
    entry(f"{title}.subset", grams.subset, np.asarray, indices=indices([0]))
    entry(f"{title}.normalize", grams.normalize, np.asarray, kind=word("trace"))
for title in ("kernels", "identity", "centred", "scaled", "spherical", "subset"):
    entry(f"{title}.cross", STACKS[title].cross, X_new=array(X[:2]))
    entry(f"{title}.self_similarity", STACKS[title].self_similarity, X_new=array(X[:2]))
entry("join", lambda factor: join([(factor, STACKS["array"])]), np.asarray, factor=vector(np.ones(M) * 2))

# ----------------------------------------------------------------------------------------- losses

for loss in (ko.hinge, ko.squared_hinge, ko.huberized_hinge, ko.logistic):
    one = lambda made: made.value(np.linspace(-1, 1, N), Y)  # noqa: E731
    entry(f"{loss.__name__}, one C", loss, one, C=number(2.0))
    entry(f"{loss.__name__}, C per sample", loss, one, C=vector(np.arange(1.0, N + 1)))
for loss in (ko.squared, ko.epsilon_insensitive, ko.one_class):
    entry(loss.__name__, loss, lambda made: made.value(V, V[::-1]), C=vector(np.arange(1.0, N + 1)))
entry("huberized_hinge, tau", lambda tau: ko.huberized_hinge(1.0, tau).value(V, Y), tau=number(0.5))
entry("epsilon_insensitive, eps", lambda eps: ko.epsilon_insensitive(1.0, eps).value(V, Y), eps=number(0.5))
entry("hinge.scaled", ko.hinge().scaled, lambda made: made.C, factor=number(2.0))
entry("hard_margin.scaled", ko.hard_margin().scaled, repr, factor=number(2.0))
entry("hinge.targets", lambda y: ko.hinge().targets(y, N), y=vector(Y))
entry("squared.targets", lambda y: ko.squared().targets(y, N), y=vector(V))
entry("one_class.targets", lambda y: ko.one_class().targets(y, N), y=vector(V))

# ------------------------------------------------------------------------------------ the language

W = cp.Variable(M, nonneg=True, name="w")
HINGE = ko.hinge(1.0)
entry("lp_length", ko.lp_length, v=vector(V), p=exponent())
entry("conjugate_exponent", ko.conjugate_exponent, p=exponent())
entry("positive", lambda value: ko.positive(value, "value"), value=number(2.0))
entry("exponent", lambda value: ko.exponent(value, "value"), value=exponent())
entry("whole", lambda value: ko.whole(value, "value"), value=size(2))
entry("boolean", lambda value: ko.boolean(value, "value"), value=flag(True))
entry("one_of", lambda value: ko.one_of(value, "value", ("a", "b")), value=word("a"))
entry("as_float_array", lambda value: ko.as_float_array(value, "value", 1), value=vector(V))
entry("as_symmetric", lambda value: ko.as_symmetric(value, "value"), value=array(K0))
entry("as_indices", lambda value: ko.as_indices(value, N, "value"), value=indices([1, 0]))
entry("combine", ko.combine, evaluated, weights=vector(np.ones(M)), grams=array(KS))
entry("combine, a variable", lambda grams: ko.combine(W, grams), evaluated, grams=array(KS))
for name, function in {"trace": ko.trace, "frobenius": ko.frobenius}.items():
    entry(name, function, evaluated, K=array(K0))
entry(
    "entries",
    ko.entries,
    evaluated,
    K=array(K0),
    rows=indices([0, 1]),
    columns=indices([1, 2], named="rows"),
)
entry("alignment", ko.alignment, evaluated, K=array(K0), y=vector(Y))
entry("p_norm", ko.p_norm, evaluated, x=vector(V), p=exponent())
entry(
    "lp_ball",
    ko.lp_ball,
    lambda ball: value_of(cp.Problem(cp.Minimize(0), ball)),
    theta=thing(W),
    p=exponent(),
    radius=number(2.0),
)
entry("triplet_gains", ko.triplet_gains, evaluated, K=array(K0), triplets=indices(TRIPLETS))
entry(
    "triplet_hinge", ko.triplet_hinge, evaluated, K=array(K0), triplets=indices(TRIPLETS), margin=number(1.0)
)
entry("diagonally_dominant", ko.diagonally_dominant, len, K=array(K0), points=indices([0, 1]))
entry(
    "risk",
    ko.risk,
    evaluated,
    K=array(K0),
    y=vector(Y),
    loss=thing(HINGE),
    bias=flag(True),
    norm=exponent(2.0),
)
entry("risk of targets", lambda y: ko.risk(K0, y, ko.squared()), evaluated, y=vector(V))
entry("risk of a list", lambda K: ko.risk([K, K0], Y, HINGE), evaluated, K=array(K0))

# ------------------------------------------------------------------------------------- comparisons

entry("as_triplets", ko.as_triplets, triplets=indices(TRIPLETS), n_points=size(N))
entry("comparisons", ko.comparisons, str, triplets=indices(TRIPLETS), n_points=size(N))
entry("Comparisons.describe", ko.comparisons(TRIPLETS).describe, cycle=indices([0, 1]))
entry(
    "sample_triplets",
    ko.sample_triplets,
    y=vector(Y),
    size=size(3),
    random_state=size(0),
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


def bracket(certificate: ko.Certificate) -> Any:
    return np.array([certificate.lower, certificate.upper])


entry(
    "certify",
    lambda problem, weights, alpha, retrain: ko.certify(
        problem, weights=weights, alpha=alpha, retrain=retrain
    ),
    bracket,
    problem=thing(PROBLEM),
    weights=vector(np.ones(M) / 2),
    alpha=vector(Y / 2),
    retrain=flag(True),
)
entry(
    "certify, a candidate", lambda candidate: ko.certify(PROBLEM, candidate), candidate=thing({W: np.ones(M)})
)
entry(
    "certify, a value",
    lambda value: ko.certify(PROBLEM, {W: value}),
    bracket,
    value=vector(np.ones(M), named="candidate"),
)
entry(
    "certify, several alphas", lambda alpha: ko.certify(PROBLEM, alpha=[alpha]), bracket, alpha=vector(Y / 2)
)
entry("certify, bounds", lambda bounds: ko.certify(PROBLEM, bounds=bounds), bounds=thing({W: (0, 1)}))
entry(
    "certify, a bound",
    lambda bound: ko.certify(PROBLEM, bounds={W: (0, bound)}),
    bracket,
    bound=vector(np.ones(M), named="bounds"),
)
entry(
    "solve",
    ko.solve,
    lambda s: s.status,
    problem=thing(PROBLEM),
    method=word("exact"),
    tol=number(1e-3),
    time_limit=number(9.0),
    memory=number(1e9),
    callback=thing(lambda event: None),
    verbose=flag(False),
    solver=word("CLARABEL"),
    solver_options=thing({"max_iter": 50}),
    force=flag(True),
)
for method, options in {
    "interleaved": {"max_chunks": size(50), "chunk": size(2)},
    "cutting-plane": {"master": word("exact"), "stabilize": flag(True), "max_iterations": size(50)},
    "block-descent": {"update": word("descent"), "max_iterations": size(50)},
}.items():
    entry(
        f"solve by {method}",
        lambda method=method, **options: ko.solve(learning(), method, **options),
        lambda s: s.status,
        **options,
    )
entry("explain", ko.explain, str, problem=thing(PROBLEM))
entry("expand", ko.expand, lambda e: len(e.risks), problem=thing(PROBLEM))
entry("register_method", ko.register_method, method=thing(METHODS["exact"]))
entry(
    "decision_function",
    lambda cross, risk: solution().decision_function(cross, risk=risk),
    cross=array(CROSS),
    risk=size(0),
)
entry(
    "kernel_at", lambda cross, risk: solution().kernel_at(cross, risk=risk), cross=array(CROSS), risk=size(0)
)
entry("Risk.at", lambda alpha: risk_at().at(alpha).value, alpha=vector(Y / 2))
entry(
    "plot_weights",
    plot_weights,
    lambda ax: None,
    solutions=thing({"a": solution()}),
    names=thing(list("abc")),
)
entry(
    "plot_bounds",
    plot_bounds,
    lambda ax: None,
    solutions=thing({"a": solution()}),
    references=thing({"b": 1.0}),
)


def risk_at() -> ko.Risk:
    return ko.risk(K0, Y, HINGE)


# ------------------------------------------------------------------------------------ formulations

GRAMS = KS + np.eye(N)
RIDGE, TRACE = number(0.5, named="tau"), number(3.0)
COMMON = {"grams": array(GRAMS), "y": vector(Y)}
for name, more in {
    "margin": {"C": number(1.0), "tau": RIDGE, "weights": word("nonnegative"), "trace": TRACE},
    "hard_margin": {"weights": word("nonnegative"), "trace": TRACE},
    "soft_margin": {"C": number(1.0), "weights": word("nonnegative"), "trace": TRACE},
    "soft_margin_squared": {"C": number(1.0), "weights": word("nonnegative"), "trace": TRACE},
    "learned_tau": {"weights": word("nonnegative"), "trace": TRACE},
    "alignment": {"weights": word("free"), "norm": word("train"), "prediction": word("svm")},
    "qcqp": {"C": number(1.0), "tau": RIDGE, "trace": TRACE},
    "sdp": {"C": number(1.0), "tau": RIDGE, "weights": word("free"), "trace": TRACE},
    "block_norm": {"C": number(1.0), "tau": RIDGE, "trace": TRACE},
}.items():
    entry(f"lanckriet.{name}", getattr(lanckriet, name), value_of, **COMMON, **more)
entry(
    "lanckriet.rank_one",
    lanckriet.rank_one,
    value_of,
    V=array(X),
    y=vector(Y),
    C=number(1.0),
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
    y=vector(np.array([1.0, -1, 1])),
    samples=size(10),
    random_state=size(0),
)
LOSS = {"loss": thing(HINGE), "bias": flag(True)}
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
        f"lp_norm.{name}, C", function, value_of, grams=array(GRAMS), p=exponent(), C=vector(np.ones(N) * 2)
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
    "trace": number(3.0),
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
    loss=thing(HINGE),
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
    trace=number(1.0),
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
    "points": indices([0, 1, 2, 3]),
    "margin": number(1.0),
}
entry("triplet_lp.kernel_design", triplet_lp.kernel_design, value_of, **DESIGN, gamma1=number(0.1))
GROUPS = vector(np.array([0, 1, 1]))
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
    gamma1=vector([0.1, 0.2]),
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
    groups=GROUPS,
    tol=number(1e-6),
)
STRATEGY = {"grams": array(GRAMS), "targets": vector(V)}
entry(
    "functional_strategy",
    linear_functional.functional_strategy,
    value_of,
    **STRATEGY,
    regularization=vector(np.ones(M)),
    convention=word("mean"),
    ridge=number(0.5),
    weights=word("free"),
    columns=word("split"),
    filter=thing(linear_functional.cut_off),
    intercept=word("mean"),
    held_out=indices([0, 2]),
    n_jobs=size(1),
)
entry(
    "functional_strategy, a grid",
    lambda grid, regularization: linear_functional.functional_strategy(
        GRAMS, V, regularization=regularization, grid=grid
    ),
    value_of,
    grid=vector([0.1, 1.0]),
    regularization=word("gcv"),
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
LEVELS, LEVEL = array(np.array([0.5, 1.0, 2.0])), number(0.5)
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
    programme=word("qcqp"),
)

"""One valid call of every public function, argument by argument: a new function is a new row.

What the rows mean is in `careless.py` beside it, and what is asked of them in `test_gate.py`.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import cvxpy as cp
import networkx as nx
import numpy as np
from matplotlib.figure import Figure

import kernelopt as ko
from formulations import lanckriet, linear_functional, lp_norm, similarity, triplet_lp
from kernelopt import extend
from kernelopt.extend import (
    as_classes,
    as_fidelity,
    as_float_array,
    as_generator,
    as_grams,
    as_indices,
    as_list,
    as_symmetric,
    as_vector,
    boolean,
    norms,
    one_of,
    positive,
    register_method,
    whole,
)
from kernelopt.grams import join
from kernelopt.methods.selection import METHODS
from kernelopt.plotting import (
    plot_bounds,
    plot_comparisons,
    plot_duality,
    plot_history,
    plot_kernels,
    plot_kkt,
    plot_weights,
)
from tests.problems import labels, points, stack, targets
from tests.validation.careless import (
    CLASSES,
    DEFAULT,
    ITEMS,
    SEEDS,
    THROUGH,
    UNSET,
    M,
    N,
    array,
    entry,
    evaluated,
    exponent,
    flag,
    indices,
    number,
    size,
    thing,
    value_of,
    vector,
    word,
)

X, Y, V, KS = points(N), labels(N), targets(N), stack(N)
K0 = KS[0] + np.eye(N)
TRIPLETS = np.array([[0, 1, 2], [1, 2, 3]])

# ----------------------------------------------------------------------------- kernels and graphs

KERNELS = [ko.gaussian(1.0), ko.linear()]
GRAPH = nx.path_graph(N)
STRINGS = ["GATT", "CATG"]
NODES = "generator, array, Series"  # any sequence of nodes

for kernel in (ko.gaussian, ko.laplacian):
    entry(kernel.__name__, kernel, lambda k: k(X), width=number(2.0))
entry("polynomial", ko.polynomial, lambda k: k(X), degree=size(2), offset=number(1.0))
entry("spectrum", ko.spectrum, lambda k: k(STRINGS), k=size(2))
entry("weighted_degree", ko.weighted_degree, lambda k: k(STRINGS), d=size(2), shift=size(1, "zero"))
entry(
    "spectrum(X, Z)",
    lambda X, Z: ko.spectrum(2)(X, Z),
    X=thing(STRINGS, "list of text"),
    Z=thing(STRINGS, f"{DEFAULT}, list of text"),
)
entry("normalized", ko.normalized, kernel=thing(ko.gaussian(1.0)))
entry(
    "on_columns",
    ko.on_columns,
    lambda k: k(X),
    kernel=thing(ko.gaussian(1.0)),
    columns=indices([0, 1], named="column"),
)
entry("per_feature", ko.per_feature, kernels=thing([ko.gaussian(1.0)], named="kernel"), d=size(3))
entry("parse_kernel", ko.parse_kernel, text=word("gaussian(1.0)"))
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

entry("as_grams", as_grams, np.asarray, grams=array(KS))
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
entry(
    "kernel_report",
    ko.kernel_report,
    lambda r: r.alignments,
    grams=array(KS, "NaN entry, infinite entry"),
    y=vector(Y, f"{DEFAULT}, list of text, as text, as bytes, as objects of text"),
)
for how in ("clip", "nearest"):
    entry(
        f"repair, {how}",
        lambda grams, how=how: ko.repair(grams, how),
        lambda r: np.array(r.grams),
        grams=array(KS),
    )
entry("repair, how", lambda how: ko.repair(KS, how), lambda r: np.array(r.grams), how=word("flip"))
entry("repair(...).transform", ko.repair(KS, "flip").transform, cross=array(KS[:, :2]))
# ----------------------------------------------------------------------------------------- losses

for loss in (ko.hinge, ko.squared_hinge, ko.huberized_hinge, ko.logistic):
    one = lambda made: made.value(np.linspace(-1, 1, N), Y)  # noqa: E731
    entry(f"{loss.__name__}, one C", loss, one, C=number(2.0))
    entry(f"{loss.__name__}, C per sample", loss, one, C=vector(np.arange(1.0, N + 1), "number"))
for loss in (ko.squared, ko.epsilon_insensitive, ko.one_class):
    entry(loss.__name__, loss, lambda made: made.value(V, V[::-1]), C=vector(np.arange(1.0, N + 1), "number"))
entry("huberized_hinge, tau", lambda tau: ko.huberized_hinge(1.0, tau).value(V, Y), tau=number(0.5))
entry("epsilon_insensitive, eps", lambda eps: ko.epsilon_insensitive(1.0, eps).value(V, Y), eps=number(0.5))
entry("hinge.scaled", ko.hinge().scaled, lambda made: made.C, factor=number(2.0))
entry("hard_margin.scaled", ko.hard_margin().scaled, repr, factor=number(2.0))
entry("hinge.targets", lambda y: ko.hinge().targets(y, N), y=vector(Y))
entry("squared.targets", lambda y: ko.squared().targets(y, N), y=vector(V))
entry("one_class.targets", lambda y: ko.one_class().targets(y, N), y=vector(np.ones(N), DEFAULT))

# ------------------------------------------------------------------------------------ the language

W = cp.Variable(M, nonneg=True, name="w")
HINGE = ko.hinge(1.0)
entry("lp_length", norms.lp_length, v=vector(V, "empty, longer, much longer, " + THROUGH), p=exponent())
entry("conjugate_exponent", norms.conjugate_exponent, p=exponent())
entry("positive", lambda value: positive(value, "value"), value=number(2.0))
entry("exponent", lambda value: extend.exponent(value, "value"), value=exponent())
entry("whole", lambda value: whole(value, "value"), value=size(2))
entry("boolean", lambda value: boolean(value, "value"), value=flag(True))
entry("one_of", lambda value: one_of(value, "value", ("a", "b")), value=word("a"))
entry(
    "as_float_array",
    lambda value: as_float_array(value, "value", 1),
    value=vector(V, "empty, longer, much longer"),
)
entry("as_vector", lambda value: as_vector(value, "value", N), value=vector(V))
entry(
    "as_classes",
    lambda value: as_classes(value, "value"),
    value=vector(Y, f"{CLASSES}, empty, list of text, longer, much longer"),
)
entry("as_list", lambda value: as_list(value, "value", "a list"), value=thing([1], ITEMS))
entry("as_generator", lambda value: as_generator(value, "value").random(), value=size(0, SEEDS))
entry("as_symmetric", lambda value: as_symmetric(value, "value"), value=array(K0))
entry("as_indices", lambda value: as_indices(value, N, "value"), value=indices([1, 0]))
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
entry("fidelity", ko.fidelity, evaluated, K=array(K0, UNSET), S=array(np.eye(N)), kind=word("l1"))
entry("fidelity, a spectrum", ko.fidelity, evaluated, K=vector(V, UNSET), S=vector(V), kind=word("l1"))
entry("as_fidelity", lambda value: as_fidelity(value, "value").value(V), value=word("l1"))
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
    memory=number(1e9, f"{DEFAULT}, as text"),
    callback=thing(lambda event: None, "None, function", skips="type"),
    verbose=flag(False),
    solver=word("CLARABEL", "None, capitals"),
    solver_options=thing({"max_iter": 50}, DEFAULT, named="setting"),
    force=flag(True, DEFAULT),
)
for method, options in {
    "interleaved": {"max_chunks": size(50, DEFAULT), "chunk": size(2, DEFAULT)},
    "newton": {"random_state": size(3, f"{DEFAULT}, zero")},
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
entry("show", ko.show, str, problem=thing(PROBLEM), dual=thing(ko.dualize(PROBLEM), "None, Problem"))
entry("derive", ko.derive, lambda d: len(d.steps), problem=thing(PROBLEM), random_state=size(3, SEEDS))
entry(
    "kkt_table",
    ko.kkt_table,
    lambda t: len(t.conditions),
    solution=thing(solution()),
    problem=thing(solution().problem, "None, Problem"),
)
entry("dualize", ko.dualize, lambda d: len(d.variables()), problem=thing(PROBLEM))
entry("register_method", register_method, method=thing(METHODS["exact"]))
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
FOLDER = TemporaryDirectory()  # deleted at the end of the process
EVALUATED = ko.combine(W, ko.Grams.from_kernels([ko.linear(), ko.gaussian(1.0), ko.gaussian(2.0)], X))
LEARNED = ko.solve(cp.Problem(cp.Minimize(ko.risk(EVALUATED, Y, HINGE)), ko.lp_ball(W, 2)))
FILE = LEARNED.save(Path(FOLDER.name) / "model.npz")
entry("load", ko.load, lambda model: model.decision_function(X), path=thing(FILE))
SDPA, LP = (Path(FOLDER.name) / name for name in ("small.dat-s", "small.lp"))
LINEAR = cp.Problem(cp.Minimize(cp.sum(W)), [W >= 1])
ko.write_sdpa(LINEAR, SDPA)
LP.write_text("min\n obj: x + 2 y\nst\n c1: x + y >= 1\nend\n", encoding="utf-8")
entry("read_sdpa", ko.read_sdpa, lambda problem: problem.objective.args[0].size, path=thing(SDPA))
entry("read_mps", ko.read_mps, lambda problem: problem.objective.args[0].size, path=thing(LP))
entry(
    "write_sdpa",
    ko.write_sdpa,
    lambda nothing: nothing,
    problem=thing(LINEAR),
    path=thing(SDPA, skips="text"),
)
entry("saved.decision_function", lambda X: ko.load(FILE).decision_function(X), X=array(X, named="X_new"))
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
entry(
    "plot_history",
    lambda solutions, gap: plot_history(solutions, gap=gap, ax=Figure().subplots()),
    lambda ax: None,
    solutions=thing({"a": solution()}),
    gap=flag(True, DEFAULT),
)
entry(
    "plot_kernels",
    lambda **given: plot_kernels(**given, ax=Figure().subplots()),
    lambda ax: None,
    solution=thing(solution()),
    sort_by=word("labels", DEFAULT),
    most=size(1),
    names=thing(list("abc"), "None, generator, array"),
)
entry(
    "plot_kkt",
    lambda table, tol: plot_kkt(table, tol, ax=Figure().subplots()),
    lambda ax: None,
    table=thing(ko.kkt_table(solution())),
    tol=number(1e-5),
)
entry(
    "plot_comparisons",
    lambda compared, names: plot_comparisons(compared, names, ax=Figure().subplots()),
    lambda ax: None,
    compared=indices(TRIPLETS, named="triplets"),
    names=thing(list("abcd"), "None"),
)
entry(
    "plot_duality",
    lambda path, points: plot_duality(solution().problem, path, points=points),
    lambda ax: None,
    path=thing([solution(), solution()]),
    points=size(2),
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
entry(
    "lanckriet.gaussian_process", lanckriet.gaussian_process, value_of, precisions=array(GRAMS), y=vector(V)
)
entry(
    "lanckriet.completion",
    lanckriet.completion,
    value_of,
    matrix=thing(K0),
    known=thing(np.abs(np.subtract.outer(range(N), range(N))) <= 1),
    S=array(np.eye(N), DEFAULT),
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
    "tikhonov": {"p": exponent(), "penalty": number(1.0)},
    "block_norm": {"r": exponent(), "squared": flag(True)},
    "elastic_net": {"l1": number(1.0), "l2": number(1.0)},
    "non_isotropic": {"E": array(E)},
}.items():
    entry(f"lp_norm.{name}", getattr(lp_norm, name), value_of, **COMMON, **more, **LOSS)
entry("screen", ko.screen, len, solution=thing(lp_norm.primal(GRAMS, Y, p=1).solve("exact")))
entry(
    "price",
    lambda solution, kernel: ko.price(solution, kernel).at_least,
    solution=thing(lp_norm.primal(GRAMS, Y, p=2).solve("exact")),
    kernel=array(K0),
)
entry(
    "lp_norm.path",
    lp_norm.path,
    lambda path: path.upper,
    **COMMON,
    **LOSS,
    p=vector([1.0, 2.0], "generator of it, longer, much longer, infinite entry", skips="None, number"),
)
entry(
    "lp_norm.continuous_width",
    lp_norm.continuous_width,
    lambda found: found.upper,
    X=array(X),
    y=vector(Y),
    bounds=vector([0.5, 4.0], "generator of it"),
    family=thing(ko.gaussian),
    tol=number(1e-3),
    max_rounds=size(40),
    time_limit=number(60.0, DEFAULT),
    **LOSS,
)
entry(
    "lp_norm.path, C",
    lambda C: lp_norm.path(GRAMS, Y, C=C).upper,
    C=vector([1.0, 2.0], "generator of it, longer, much longer", skips="None"),
)
ONE_CLASS = {"grams": array(GRAMS), "p": exponent()}
COSTS = vector(np.ones(N) * 2, "number")
entry("lp_norm.one_class, C", lp_norm.one_class, value_of, **ONE_CLASS, C=COSTS)
entry("lp_norm.one_class, nu", lp_norm.one_class, value_of, **ONE_CLASS, nu=number(0.5))
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
    "path",
    lambda make_problem: ko.path(make_problem, [1.0, 2.0]).upper,
    make_problem=thing(lambda p: lp_norm.primal(GRAMS, Y, p=p), skips="function"),
)
entry(
    "path, values",
    lambda values: ko.path(lambda p: lp_norm.primal(GRAMS, Y, p=p), values).upper,
    values=vector([1.0, 2.0], "generator of it, longer, much longer, infinite entry", named="p"),
)
entry(
    "Formulation.solve",
    lambda method, programme: lanckriet.qcqp(GRAMS, Y, C=1.0).solve(method, programme=programme).status,
    method=word("exact"),
    programme=word("qcqp", DEFAULT),
)

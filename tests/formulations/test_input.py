"""What the formulations refuse, with which error, and what the error says.

`tests/validation` asks this of every argument and every careless value. Here stand the messages of the
formulations themselves, and the borders of what is taken.
"""

from __future__ import annotations

from functools import partial

import cvxpy as cp
import numpy as np
import pytest

import kernelopt as ko
from formulations import lanckriet, linear_functional, lp_norm, similarity, triplet_lp
from formulations.linear_functional.method.filters import cut_off, iterated_tikhonov
from kernelopt.errors import (
    InfeasibleError,
    InputError,
    LabelError,
    MethodError,
    NotFiniteError,
    NotPSDError,
    NotSymmetricError,
    ParameterError,
    ShapeError,
)
from kernelopt.extend import as_grams
from tests.every import every
from tests.formulations.lanckriet.cases import KS, N, Y, close, n
from tests.formulations.triplet_lp.cases import plain
from tests.problems import solved

TRIPLETS = plain(0)[1]
WEIGHTED = {  # builders with non-negative weights of kernels that must be positive semidefinite
    "hard_margin": lanckriet.hard_margin,
    "soft_margin": lanckriet.soft_margin,
    "soft_margin_squared": lanckriet.soft_margin_squared,
    "learned_tau": lanckriet.learned_tau,
    "margin": partial(lanckriet.margin, C=1.0, tau=0.5),
    "sdp": partial(lanckriet.sdp, weights="nonnegative"),
    "qcqp": lanckriet.qcqp,
    "block norm": lanckriet.block_norm,
    "alignment": lanckriet.alignment,
}
FREE = {
    "hard_margin, free": partial(lanckriet.hard_margin, weights="free"),
    "sdp, free": lanckriet.sdp,
    "alignment, free": partial(lanckriet.alignment, weights="free"),
}
LP = {
    "primal": partial(lp_norm.primal, p=1.5),
    "tikhonov": partial(lp_norm.tikhonov, p=1.5, penalty=1.0),
    "block_norm": partial(lp_norm.block_norm, r=1.5),
    "powers": partial(lp_norm.block_norm, r=1.5, squared=False),
    "steep powers": partial(lp_norm.block_norm, r=3, squared=False),
    "non_isotropic": partial(lp_norm.non_isotropic, E=np.eye(3)),
    "elastic_net": partial(lp_norm.elastic_net, l1=0.5, l2=0.5),
}
NEAR = {
    "single": partial(similarity.single_kernel, rho=1.0, trace=1.0),
    "several": partial(similarity.kernel_per_similarity, rho=1.0, trace=1.0),
    "spectral": partial(similarity.restricted_spectral, rho=1.0, trace=1.0),
}
LFS = partial(linear_functional.functional_strategy, regularization=0.03)
PRICES = {"gamma1": 0.1, "gamma2": 0.1}
TRIPLET = {  # every function of triplets, called with the same words
    "design": lambda grams, triplets, groups=None, **rest: triplet_lp.kernel_design(
        grams, triplets, **PRICES | rest
    ),
    "selection": lambda grams, triplets, groups=(0, 1, 2), **rest: triplet_lp.feature_selection(
        grams, triplets, groups, **PRICES | rest
    ),
    "gamma1_max": lambda grams, triplets, gamma1=None, **rest: triplet_lp.gamma1_max(
        grams, triplets, **{"gamma2": 0.1, **rest}
    ),
    "path": lambda grams, triplets, gamma1=0.1, **rest: triplet_lp.regularization_path(
        grams, triplets, **{"gamma2": 0.1, "gamma1": [gamma1], **rest}
    ),
}
LABELLED = WEIGHTED | FREE | LP | NEAR
EVERY = {name: partial(build, y=Y) for name, build in LABELLED.items()}
EVERY |= {"strategy": partial(LFS, targets=Y)}
EVERY |= {name: partial(build, triplets=TRIPLETS) for name, build in TRIPLET.items()}
EVERY |= {"one class": partial(lp_norm.one_class, p=2, nu=0.5)}


def changed(*where, value):
    Ks = KS.copy()
    Ks[where] = value
    return Ks


BAD_KERNELS = {
    "NaN": (changed(1, 2, 3, value=np.nan), NotFiniteError, r"must be finite, got nan.*Impute or drop"),
    "asymmetric": (
        changed(2, 1, 0, value=9.0),
        NotSymmetricError,
        r"\[2\] must be symmetric .*pass \(K \+ K.T\) / 2",
    ),
    "not square": (KS[:, :, :5], ShapeError, r"must have shape \(m, N, N\), got \(3, 18, 5\)"),
    "a vector": (KS[0, 0], ShapeError, r"must have shape \(m, N, N\), got \(18,\)"),
    "no kernel": (KS[:0], ShapeError, r"at least one"),
    "of several sizes": ([KS[0], KS[1][:5, :5]], ShapeError, r"the same N points, got shapes|of one size"),
}
BAD_LABELS = {
    "zero and one": ((Y + 1) / 2, "must hold labels -1 and \\+1, got 0 at index.*Map two classes with"),
    "one class": (np.ones(n), "must hold both labels, got only \\+1 on 14 points.*use one_class\\(C\\)"),
    "none": ([], "got no label at all. Pass at least one point of each class"),
    "too many": (np.tile(Y, 2), "must have at most 18 entries.*got 28. The labelled points come first"),
    "a column": (Y[:, None], r"must have 1 dimension\(s\), got shape \(14, 1\). Reshape it first"),
    "text": (["a"] * n, "must hold labels -1 and [+]1, got.*Map two classes"),
    "missing": (None, "needs y, got None. Pass the labels of the first points"),
}


@every("build", EVERY.values(), ids=EVERY)
@every("bad", BAD_KERNELS)
def test_bad_kernels(build, bad):
    grams, error, message = BAD_KERNELS[bad]
    with pytest.raises(error, match=message):
        build(grams)


@every("build", LABELLED.values(), ids=LABELLED)
@every("bad", BAD_LABELS)
def test_bad_labels(build, bad):
    y, message = BAD_LABELS[bad]
    with pytest.raises(InputError, match=message):
        build(KS, y)


@every("build", LP.values(), ids=LP)
def test_losses_are_checked_with_their_targets(build):
    for y, error, message in (
        ([], LabelError, "at least one target"),
        (None, ShapeError, "Pass the targets"),
    ):
        with pytest.raises(error, match=message):
            build(KS, y, loss=ko.epsilon_insensitive(1.0, 0.1))
    for loss in (ko.hinge, "hinge", None):
        with pytest.raises(ParameterError, match=r"loss such as kernelopt.hinge\(1.0\), got .*Create"):
            build(KS, Y, loss=loss)
    with pytest.raises(ShapeError, match=r"one entry per labelled point \(14\), got 5"):
        build(KS, Y, loss=ko.hinge(np.ones(5)))
    with pytest.raises(ParameterError, match="no intercept, got bias=True.* Leave bias out"):
        build(KS, Y, loss=ko.one_class(1.0), bias=True)


@every("name", [*WEIGHTED, *LP])
def test_nonnegative_weights_need_psd_kernels(name):
    """Indefinite on the labelled points, or on the others alone: at building, or on solving at the latest."""
    for lowered in (0.1 * np.eye(N), np.diag(5.0 * (np.arange(N) == N - 1))):
        Ks = KS.copy()
        Ks[2] -= lowered
        with pytest.raises(NotPSDError, match=r"K\[2\] must be positive semidefinite.*of the largest"):
            EVERY[name](Ks).solve()
        with pytest.raises(NotPSDError, match=r"K\[2\] must be positive semidefinite"):
            EVERY[name](Ks).dual()
    with pytest.raises(NotPSDError, match=r"K\[2\] must be positive semidefinite"):
        lp_norm.one_class(Ks, p=2, nu=0.5)
    with pytest.raises(NotPSDError, match=r"K\[2\] must be positive semidefinite"):
        triplet_lp.kernel_design(Ks, TRIPLETS, **PRICES, cone="nonnegative", points=np.arange(N))


@every("name", WEIGHTED)
def test_the_border_of_positive_semidefinite(name):
    """lambda_min < -1e-8 lambda_max is refused, by convention; above is round-off."""
    Q = np.linalg.qr(np.random.default_rng(0).normal(size=(N, N)))[0]
    spectrum = np.append(np.linspace(1, 2, N - 1), 0.0)
    for smallest, fine in ((-1e-9, True), (-1e-7, False)):
        spectrum[-1] = smallest * 2
        K = Q @ np.diag(spectrum) @ Q.T
        Ks = np.array([KS[0], (K + K.T) / 2])
        if fine:
            assert WEIGHTED[name](Ks, Y).solve().gap <= 1e-5
        else:
            with pytest.raises(NotPSDError, match="kernelopt.repair"):
                WEIGHTED[name](Ks, Y)


@every("name", FREE)
def test_free_signs_take_any_symmetric_kernel(name):
    Ks = np.concatenate([KS, [KS[1] - KS[0]]])
    assert FREE[name](Ks, Y).solve().gap <= 1e-5


def test_free_signs_need_some_psd_combination():
    with pytest.raises(InfeasibleError, match="contradict.*Loosen one of: trace, K >> 0") as caught:
        lanckriet.sdp([np.diag([2.0, -1, 0, 0])], [1, -1, 1, -1], C=1.0).solve()
    assert caught.value.proof
    Ks = np.array([np.diag([1.0, -1, 0, 0]), np.diag([0, 0, 1.0, -1])])
    with pytest.raises(ParameterError, match="sum of the traces must be positive, got 0. Pass trace= as a"):
        lanckriet.sdp(Ks, [1, -1, 1, -1], C=1.0)


@every("build", (WEIGHTED | FREE).values(), ids=WEIGHTED | FREE)
def test_zero_kernels(build):
    with pytest.raises(InputError, match="one kernel must be different from zero, got 2 zero kernels"):
        build(np.zeros((2, N, N)), Y)
    solution = build(np.stack([np.zeros((N, N)), *KS]), Y).solve()
    assert solution.gap <= 1e-5
    assert solution.weights.shape == (4,) and solution.weights[0] == 0
    assert solution.value == close(build(KS, Y).solve().value, 1e-5)
    values = solution.decision_function()
    assert values.shape == (N,) and np.isfinite(values).all()


def words(build, options, message):
    """A row of the table below for every set of options."""
    return [(build, row, message) for row in options]


BAD_NUMBERS = [
    *words(lanckriet.soft_margin, [{"C": C} for C in (0, -1.0)], "Choose a value in that range"),
    *words(lanckriet.soft_margin, [{"C": np.inf}], "hard_margin"),
    *words(lanckriet.soft_margin_squared, [{"C": 0}], "Choose a value in that range"),
    *words(lanckriet.margin, [{"C": 0}, {"C": -2.0}], "C must be a positive number.*Choose"),
    *words(lanckriet.margin, [{"C": [1.0, 2.0]}], "Pass one number"),
    *words(lanckriet.margin, [{"tau": -0.1}, {"tau": np.inf}], "tau must be a non-negative.*Choose"),
    *words(lanckriet.margin, [{"tau": "learn"}], "tau must be .*got 'learn'"),
    *words(lanckriet.margin, [{"trace": t} for t in (0, -1.0, np.inf)], "trace must be a positive.*Choose"),
    *words(lanckriet.margin, [{"trace": "all"}], "trace must be 'sum' or a positive number, got 'all'"),
    *words(lanckriet.sdp, [{"weights": "signed"}], "weights must be 'nonnegative' or 'free', got 'signed'"),
    *words(lanckriet.alignment, [{"norm": "test"}], "norm must be 'full' or 'train', got 'test'"),
    *words(lanckriet.alignment, [{"prediction": "knn"}], "prediction must be 'parzen' or 'svm', got 'knn'"),
    (lambda grams, y, **rest: lanckriet.rank_one(grams[0], y, **rest), {"tau": "learned"}, "Use learned_tau"),
    *words(LP["primal"], [{"p": p} for p in (0.5, -1.0, -np.inf, True)], "p must be (at least 1|a positive)"),
    *words(LP["powers"], [{"r": r} for r in (0.5, "2", None)], "r must be (at least 1|a positive number)"),
    *words(LP["powers"], [{"r": np.inf}], "r must be finite for squared=False, got inf.* squared=True"),
    *words(LP["tikhonov"], [{"penalty": t} for t in (0.0, np.inf)], "penalty must be a positive finite"),
    *words(LP["elastic_net"], [{"l1": 0.0}], r"l1 must be .*, got 0: .* Use primal\(p=numpy.inf\)"),
    *words(LP["elastic_net"], [{"l1": -1.0}, {"l2": -1.0}, {"l2": None}], "l[12] must be .*, got"),
    *words(LP["non_isotropic"], [{"E": np.diag([1, 1, -0.1])}], "got a smallest eigenvalue of -0.1"),
    *words(LP["non_isotropic"], [{"E": np.ones((3, 3))}], "Add a multiple of the identity"),
    *words(LP["non_isotropic"], [{"E": np.eye(2)}], r"E must have shape \(3, 3\), one row per kernel"),
    *words(LP["non_isotropic"], [{"E": np.triu(np.ones((3, 3)))}], r"pass \(E \+ E.T\) / 2"),
]


@every(("build", "options", "message"), BAD_NUMBERS)
def test_bad_numbers(build, options, message):
    with pytest.raises(InputError, match=message):
        build(KS, Y, **options)


@every(
    ("options", "message"),
    [
        ({"C": 1.0, "nu": 0.5}, "exactly one of C and nu must be given, got C=1.0 and nu=0.5. Drop one"),
        ({}, "exactly one of C and nu must be given, got C=None and nu=None"),
        ({"nu": 0.0}, "nu must be a positive finite number, got 0"),
        ({"nu": 3}, r"nu must be a fraction in \(0, 1\], got 3. Divide"),
        ({"C": 0.0}, "C must be a positive finite number, got 0"),
        ({"C": 1.0, "p": 0.5}, "p must be at least 1"),
        ({"nu": 0.5, "p": np.nan}, "p must be"),
    ],
)
def test_one_class_learning_takes_C_or_nu(options, message):
    with pytest.raises(ParameterError, match=message):
        lp_norm.one_class(KS, **{"p": 2, **options})


@pytest.mark.parametrize("number", [np.float32(1.0), np.int64(1)])
def test_numbers_of_any_type_are_numbers(number):
    V = np.random.default_rng(0).normal(size=(N, 4))
    options = {"C": number, "tau": number, "trace": number}
    plain = dict.fromkeys(options, 1.0)
    assert lanckriet.margin(KS, Y, **options).solve().value == lanckriet.margin(KS, Y, **plain).solve().value
    assert lanckriet.rank_one(V, Y, **options).solve().value == close(
        lanckriet.rank_one(V, Y, **plain).solve().value
    )


def test_without_l1_the_elastic_net_is_the_machine_that_the_error_names():
    """Penalty l2/2 sum |w_m|^2 is l2 times that of the sum kernel."""
    grams = as_grams(KS[:, :6, :6])
    w = [cp.Variable(grams.factor(m).shape[1]) for m in range(3)]
    f = cp.sum([grams.factor(m) @ v for m, v in enumerate(w)]) + cp.Variable()
    penalty = 2.0 / 2 * cp.sum([cp.sum_squares(v) for v in w])
    net = cp.Problem(cp.Minimize(penalty + ko.hinge(1.0).expression(f, Y[:6])))
    plain = lp_norm.primal(grams, Y[:6], p=np.inf, loss=ko.hinge(1.0).scaled(1 / 2.0)).solve("exact")
    assert solved(net) == pytest.approx(2.0 * plain.value, rel=1e-6)


@every("name", LP)
def test_a_hard_margin_that_no_kernel_meets_is_infeasible(name):
    """Two equal points of different classes; proved before solving, or by a Farkas ray."""
    X = np.array([[0.0], [0.0], [1.0]])
    grams = np.array([X @ X.T, np.ones((3, 3)), np.exp(-((X - X.T) ** 2))])
    with pytest.raises(InfeasibleError) as caught:
        LP[name](grams, [1, -1, 1], loss=ko.hard_margin()).solve()
    assert caught.value.proof is not None


def test_theorem_1_needs_a_machine():
    flat = np.full(N, 2.0)
    ivanov = lp_norm.primal(KS, flat, p=2, loss=ko.squared()).solve()
    with pytest.raises(InputError, match="be different from zero, got .*not determined. Increase C"):
        lp_norm.tikhonov_from_ivanov(ivanov, loss=ko.squared())
    penalised = lp_norm.tikhonov(KS, flat, p=2, penalty=1.0, loss=ko.squared()).solve()
    with pytest.raises(InputError, match="must be different from zero"):
        lp_norm.ivanov_from_tikhonov(penalised, p=2, loss=ko.squared())
    alone = ko.solve(cp.Problem(cp.Minimize(cp.square(cp.Variable(3)[0] - 1))))
    with pytest.raises(InputError, match=r"must have one machine with weights, got 0 machine\(s\)"):
        lp_norm.ivanov_from_tikhonov(alone, p=2, loss=ko.squared())
    solution = lp_norm.primal(KS, Y, p=2).solve()
    for tau in (0.0, -1.0, np.inf):
        with pytest.raises(ParameterError, match="tau must be a positive finite number, got"):
            lp_norm.tikhonov_from_ivanov(solution, loss=ko.hinge(), tau=tau)
    with pytest.raises(ParameterError, match="p must be at least 1"):
        lp_norm.ivanov_from_tikhonov(solution, p=0.5, loss=ko.hinge())


SIMILAR = {
    "rho": ({"rho": -1.0}, "rho must be a non-negative finite number, got -1"),
    "C": ({"C": 0.0}, "C must be a positive"),
    "trace": ({"trace": 0.0}, "trace must be a positive finite number, got 0"),
    "a trace in words": ({"trace": "mean"}, "trace must be a positive"),
    "no price": ({"trace": None, "rho": 0.0}, "trace must be given where rho is 0, got None"),
    "fidelity": ({"fidelity": "l2"}, "fidelity must be 'l1', 'frobenius'.* got 'l2'"),
    "a class": ({"fidelity": ko.fidelities.l1}, r"fidelity must be .*got the class l1\. Create one first"),
    "a matrix": ({"fidelity": cp.abs}, "must return a convex cvxpy expression of one entry"),
    "concave": ({"fidelity": lambda X: -cp.sum_squares(X)}, "must return a convex"),
    "a number": ({"fidelity": lambda X: 1.0}, "must return a convex .* got 1.0"),
    "a function that fails": ({"fidelity": lambda X: X.nothing}, "got .*, which fails: .*Pass one such as"),
    "no loss": ({"loss": "hinge"}, "loss must be a loss such as"),
    "C beside a loss": ({"loss": ko.logistic(1.0), "C": np.ones(n)}, "Write it into the loss"),
    "2 beside a loss": ({"loss": ko.logistic(1.0), "C": 2.0}, "got C = 2.0 beside loss"),
}
STRATEGY = [
    ({"regularization": 0.0}, ParameterError, "regularization must be positive"),
    ({"regularization": [0.1, 0.2]}, ShapeError, r"one per kernel \(3\), got 2 values"),
    ({"regularization": "cv"}, ParameterError, "'gcv' or 'leave-one-out', got 'cv'"),
    ({"regularization": "gcv", "grid": [0.0]}, ParameterError, "grid must be positive"),
    ({"ridge": -1.0}, ParameterError, "ridge must be a non-negative"),
    ({"weights": "positive"}, ParameterError, "weights must be 'free'"),
    ({"columns": "loo"}, ParameterError, "columns must be 'training'"),
    ({"convention": "median"}, ParameterError, "convention must be 'mean' or 'sum'"),
    ({"intercept": True}, ParameterError, "intercept must be 'none'"),
    ({"filter": "tikhonov"}, ParameterError, "filter must be a function"),
    ({"filter": cut_off, "columns": "leave-one-out"}, ParameterError, "filter=tikhonov only"),
    ({"filter": cut_off, "regularization": "leave-one-out"}, ParameterError, "filter=tikhonov only"),
    ({"held_out": [1]}, ParameterError, 'belongs to columns="split"'),
    ({"columns": "split", "held_out": [25]}, ParameterError, r"held_out must be .* in 0..13"),
    ({"columns": "split", "held_out": [1, 1]}, ParameterError, "names each once"),
    ({"columns": "split", "held_out": np.arange(n)}, ShapeError, "points for both stages"),
    ({"targets": Y[:1], "columns": "leave-one-out"}, ShapeError, "points for both stages"),
    ({"targets": np.ones(N + 1)}, ShapeError, "at most 18 entries"),
    ({"targets": 1e90 * Y}, LabelError, "Divide them by a unit"),
    ({"grams": -KS}, NotPSDError, "positive semidefinite"),
]


def test_bad_input_is_refused():
    for build in NEAR.values():
        for name, (options, message) in SIMILAR.items():
            with pytest.raises(ParameterError, match=message) as raised:
                build(KS, Y, **options)
            assert ".." not in str(raised.value).replace("...", ""), name
    for options, error, message in STRATEGY:
        with pytest.raises(error, match=message):
            LFS(**{"grams": KS, "targets": Y, **options})
    strategy = LFS(KS, Y)
    for call, error, message in (
        (lambda: iterated_tikhonov(0), ParameterError, "times must be an integer >= 1"),
        (lambda: strategy.with_weights("simplex").solve_directly(), MethodError, 'weights="free"'),
        (lambda: strategy.solve_directly("cholesky"), ParameterError, "by must be 'svd' or 'qr'"),
        (lambda: strategy.solve_directly(rcond=1.0), ParameterError, "rcond must be below 1"),
        (lambda: strategy.at([1.0]), ShapeError, "weights must be 3 finite numbers"),
    ):
        with pytest.raises(error, match=message):
            call()


def test_bad_input_of_the_helpers_of_similarities_is_refused():
    extend, S = similarity.spectral_extension, KS[:2]
    given = {"rho": 0.5, "trace": 1.0, "fidelity": "frobenius"}
    single, spectral = (NEAR[name](S, Y, **given).solve() for name in ("single", "spectral"))
    for call, error, message in (
        (lambda: similarity.default_trace(-np.eye(3)), ParameterError, "similarity must have a positive"),
        (lambda: similarity.indefinite_svm(S, Y, rho=0), ParameterError, "rho must be a positive finite"),
        (lambda: similarity.optimal_kernel(S, np.ones(N + 1), rho=1), ShapeError, "alpha must be finite of"),
        (lambda: similarity.denoise(np.triu(np.ones((3, 3)))), NotSymmetricError, r"similarities\[0\]"),
        (lambda: extend("shift", S, S), InputError, "got 'shift'. The shift has no rule at new points"),
        (lambda: extend("flip", S, S[:1]), ShapeError, r"S_new must be finite of shape .* with m = 2"),
        (lambda: extend(np.ones(N), S, S), ShapeError, "mu must be finite of shape"),
        (lambda: extend(single, S, S), InputError, "the kernel must have the eigenvectors of the simil"),
        (lambda: single.decision_function(S), InputError, "new points need a combination"),
        (lambda: extend(spectral, S[::-1], S), InputError, "the kernel must have the eigenvectors"),
        (lambda: ko.solve(NEAR["single"](S, Y)), ParameterError, "Call its solve"),
    ):
        with pytest.raises(error, match=message):
            call()


OF_TRIPLETS = {
    "index out of range": ({"triplets": [[0, 1, 18]]}, r"0..17, got \(0, 1, 18\) in row 0"),
    "repeated index": ({"triplets": [[0, 1, 2], [4, 1, 4]]}, r"different .*\(4, 1, 4\) in row 1"),
    "no triplets": ({"triplets": np.zeros((0, 3), int)}, r"T >= 1, got \(0, 3\)"),
    "pairs": ({"triplets": TRIPLETS[:, :2]}, r"shape \(T, 3\)"),
    "fractions": ({"triplets": [[0.5, 1, 2]]}, r"whole numbers, got \(0.5, 1.0, 2.0\)"),
    "gamma2": ({"gamma2": -0.1}, r"gamma2 must be a non-negative .*-0.1"),
    "cone": ({"cone": "dd"}, r"cone must be 'dominant', 'psd' or 'nonnegative', got 'dd'"),
    "margin": ({"margin": 0.0}, r"margin must be a positive finite number, got 0"),
    "points": (
        {"points": np.setdiff1d(np.arange(N), TRIPLETS[0, 0])},
        r"must hold those .* got a set without",
    ),
    "far points": ({"points": np.arange(20)}, r"integers in 0..17"),
    "no points": ({"points": []}, r"points must be an integer vector with at least one entry"),
}
OF_PRICES = [
    ({"gamma1": -0.1}, r"gamma1 must be a .*number, got -0.1", ("design", "selection", "path")),
    ({"gamma1": 0.0}, r"gamma1 must be a positive finite number, got 0", ("path",)),
    (
        {"gamma1": cp.Parameter(name="price", value=-1.0)},
        r"gamma1 must be a non-negative scalar, got the parameter price .*UNKNOWN.*nonneg=True",
        ("design", "selection"),
    ),
    ({"gamma1": cp.Parameter(3, nonneg=True)}, r"got the parameter .* of shape \(3,\)", ("design",)),
    (
        {"groups": [0, 0]},
        r"one entry per kernel \(3\), got shape \(2,\)",
        ("selection", "gamma1_max", "path"),
    ),
]


def test_bad_triplets_and_prices_are_named():
    for options, message in OF_TRIPLETS.values():
        for call in TRIPLET.values():
            with pytest.raises(InputError, match=message):
                call(**{"grams": KS, "triplets": TRIPLETS, **options})
    for options, message, names in OF_PRICES:
        for name in names:
            with pytest.raises(InputError, match=message):
                TRIPLET[name](KS, TRIPLETS, **options)
    grams = ko.Grams.from_kernels([ko.gaussian(1.0), ko.polynomial(200)], 1e6 * np.ones((5, 2)))
    with pytest.raises(NotFiniteError, match="values of polynomial"):
        triplet_lp.kernel_design(grams, [[0, 1, 2]], **PRICES)

"""Lanckriet 9.1 to 11.2 (docs/theory): bad input, hard margins without solution, prediction, the error bound.

The page lists the tests of each fact.
"""

from __future__ import annotations

from itertools import product

import cvxpy as cp
import numpy as np
import pytest

import kernelopt as ko
from formulations import lanckriet
from tests.every import every
from tests.formulations.lanckriet.test_lanckriet import (
    CRITERIA,
    KS,
    N,
    Y,
    close,
    criteria,
    fixed,
    learned,
    n,
    omega,
    random_kernels,
    small_case,
    solved,
    with_learned,
)

both_signs = pytest.mark.parametrize("weights", ["nonnegative", "free"])
BUILDERS = {
    "hard_margin": lanckriet.hard_margin,
    "hard_margin, free": lambda grams, y: lanckriet.hard_margin(grams, y, weights="free"),
    "soft_margin": lanckriet.soft_margin,
    "soft_margin_squared": lanckriet.soft_margin_squared,
    "learned_tau": lanckriet.learned_tau,
    "margin": lambda grams, y: lanckriet.margin(grams, y, C=1.0, tau=0.5),
    "sdp": lanckriet.sdp,
    "sdp, nonnegative": lambda grams, y: lanckriet.sdp(grams, y, weights="nonnegative"),
    "qcqp": lanckriet.qcqp,
    "block_norm": lanckriet.block_norm,
    "alignment": lanckriet.alignment,
    "alignment, free": lambda grams, y: lanckriet.alignment(grams, y, weights="free"),
}
NONNEGATIVE = [name for name in BUILDERS if name != "sdp" and "free" not in name]
builders = pytest.mark.parametrize("build", BUILDERS.values(), ids=BUILDERS)

# --------------------------------------------------------------- Lanckriet 1.9 and 9.3: bad input


def changed(*where, value):
    Ks = KS.copy()
    Ks[where] = value
    return Ks


BAD_KERNELS = {
    "NaN": (changed(1, 2, 3, value=np.nan), "must be finite, got nan at index.*Impute or drop them first"),
    "infinite": (
        changed(0, 0, 0, value=np.inf),
        "must be finite, got inf at index.*Impute or drop them first",
    ),
    "asymmetric": (changed(2, 1, 0, value=9.0), r"must be symmetric.*got .* against .*pass \(K \+ K.T\) / 2"),
    "one matrix": (
        KS[0],
        r"must have shape \(m, N, N\), got \(18, 18\). Wrap a single matrix with grams\[None\]",
    ),
    "not square": (
        KS[:, :, :5],
        r"must have shape \(m, N, N\), got \(3, 18, 5\). Stack the m square matrices",
    ),
    "a vector": (KS[0, 0], r"must have shape \(m, N, N\), got \(18,\). Stack the m square matrices"),
    "no kernel": (KS[:0], r"must hold at least one kernel.*got shape \(0, 18, 18\). Add a kernel"),
    "text": ([["a"]], "must be an array of real numbers, got list.*Convert it"),
    "of several sizes": ([KS[0], KS[1][:5, :5]], "must be an array of real numbers, got list.*Convert it"),
}
BAD_LABELS = {
    "zero and one": ((Y + 1) / 2, "must hold labels -1 and \\+1, got 0 at index.*Map two classes with"),
    "three classes": (
        np.append(Y[:-1], 2.0),
        "must hold labels -1 and \\+1, got 2 at index 13.*Map two classes",
    ),
    "one class": (np.ones(n), "must hold both labels, got only \\+1 on 14 points.*use one_class\\(C\\)"),
    "the other class": (-np.ones(3), "must hold both labels, got only -1 on 3 points.*use one_class\\(C\\)"),
    "none": ([], "got no label at all. Pass at least one point of each class"),
    "too many": (np.tile(Y, 2), "must have at most 18 entries.*got 28. The labelled points come first"),
    "a column": (Y[:, None], r"must have 1 dimension\(s\), got shape \(14, 1\). Reshape it first"),
    "NaN": (np.append(Y[:-1], np.nan), "must be finite, got nan at index.*Impute or drop them first"),
    "text": (["a"] * n, "must hold labels -1 and [+]1, got.*Map two classes"),
    "missing": (None, "needs y, got None. Pass the labels of the first points"),
}


@builders
@every("bad", BAD_KERNELS)
def test_bad_kernels(build, bad):
    grams, message = BAD_KERNELS[bad]
    with pytest.raises(ko.InputError, match=message):
        build(grams, Y)


@builders
@every("bad", BAD_LABELS)
def test_bad_labels(build, bad):
    y, message = BAD_LABELS[bad]
    with pytest.raises(ko.InputError, match=message):
        build(KS, y)


@pytest.mark.parametrize("name", NONNEGATIVE)
@every("block", ["labelled", "whole"])
def test_nonnegative_weights_need_psd_kernels(name, block):
    # "whole": positive semidefinite on the labelled points, indefinite with the others
    Ks = KS.copy()
    Ks[2] -= 0.1 * np.eye(N) if block == "labelled" else np.diag(5.0 * (np.arange(N) == N - 1))
    assert (np.linalg.eigvalsh(Ks[2][:n, :n])[0] < -0.01) == (block == "labelled")
    with pytest.raises(
        ko.NotPSDError, match=r"must be positive semidefinite.*got -.* of the largest.*K >> 0"
    ):
        BUILDERS[name](Ks, Y)


@pytest.mark.parametrize("name", NONNEGATIVE)
def test_the_border_of_positive_semidefinite(name):
    # lambda_min < -1e-8 lambda_max is refused, by convention; above is round-off
    Q = np.linalg.qr(np.random.default_rng(0).normal(size=(N, N)))[0]
    spectrum = np.append(np.linspace(1, 2, N - 1), 0.0)
    for smallest, fine in ((-1e-9, True), (-1e-7, False)):
        spectrum[-1] = smallest * 2
        K = Q @ np.diag(spectrum) @ Q.T
        Ks = np.array([KS[0], (K + K.T) / 2])
        if fine:
            assert BUILDERS[name](Ks, Y).solve().gap <= 1e-5
        else:
            with pytest.raises(ko.NotPSDError, match="clip the spectrum yourself"):
                BUILDERS[name](Ks, Y)


@pytest.mark.parametrize("name", ["hard_margin, free", "sdp", "alignment, free"])
def test_free_signs_take_any_symmetric_kernel(name):
    Ks = np.concatenate([KS, [KS[1] - KS[0]]])
    assert BUILDERS[name](Ks, Y).solve().gap <= 1e-5


def test_free_signs_need_some_psd_combination():
    with pytest.raises(ko.InfeasibleError, match="contradict.*Loosen one of: trace, K >> 0") as caught:
        lanckriet.sdp([np.diag([2.0, -1, 0, 0])], [1, -1, 1, -1], C=1.0).solve()
    assert caught.value.proof


BAD_NUMBERS = [
    *[(lanckriet.soft_margin, {"C": C}, "Choose a value in that range") for C in (0, -1.0, np.nan)],
    (lanckriet.soft_margin, {"C": np.inf}, "hard_margin"),
    *[(lanckriet.soft_margin_squared, {"C": C}, "Choose a value in that range") for C in (0, -1.0, np.nan)],
    *[(lanckriet.margin, {"C": C}, "C must be a positive number.*Choose") for C in (0, -2.0, np.nan)],
    *[(lanckriet.sdp, {"C": C}, "C must be a positive number.*Choose") for C in (0, -2.0)],
    *[(lanckriet.block_norm, {"C": C}, "C must be a positive number.*Choose") for C in (0, -2.0)],
    (lanckriet.soft_margin, {"C": "1"}, "C must be .* got '1'.*Pass one number"),
    (lanckriet.margin, {"C": [1.0, 2.0]}, "Pass one number"),
    *[(lanckriet.margin, {"tau": t}, "tau must be a non-negative.*Choose") for t in (-0.1, np.nan, np.inf)],
    (lanckriet.margin, {"tau": "learn"}, "tau must be .*got 'learn'"),
    *[
        (lanckriet.margin, {"trace": t}, "trace must be a positive.*Choose")
        for t in (0, -1.0, np.nan, np.inf)
    ],
    *[
        (lanckriet.hard_margin, {"trace": t, "weights": "free"}, "trace must be a positive")
        for t in (0, -1.0)
    ],
    *[(lanckriet.learned_tau, {"trace": t}, "trace must be a positive") for t in (0, -1.0)],
    (lanckriet.margin, {"trace": "all"}, "trace must be 'sum' or a positive number, got 'all'"),
    (lanckriet.margin, {"weights": "signed"}, "weights must be 'nonnegative' or 'free', got 'signed'"),
    (lanckriet.sdp, {"weights": "signed"}, "weights must be 'nonnegative' or 'free', got 'signed'"),
    (lanckriet.alignment, {"weights": "signed"}, "weights must be 'nonnegative' or 'free', got 'signed'"),
    (lanckriet.alignment, {"norm": "test"}, "norm must be 'full' or 'train', got 'test'"),
    (lanckriet.alignment, {"prediction": "knn"}, "prediction must be 'parzen' or 'svm', got 'knn'"),
]


@every(("build", "options", "message"), BAD_NUMBERS)
def test_bad_numbers(build, options, message):
    with pytest.raises(ko.ParameterError, match=message):
        build(KS, Y, **options)


@pytest.mark.parametrize("number", [np.float64(1.0), np.float32(1.0), np.int64(1), 1])
def test_numbers_of_any_type_are_numbers(number):
    V = np.random.default_rng(0).normal(size=(N, 4))
    options = {"C": number, "tau": number, "trace": number}
    plain = dict.fromkeys(options, 1.0)
    assert lanckriet.margin(KS, Y, **options).solve().value == lanckriet.margin(KS, Y, **plain).solve().value
    assert lanckriet.rank_one(V, Y, **options).solve().value == close(
        lanckriet.rank_one(V, Y, **plain).solve().value
    )


@builders
def test_zero_kernels(build):
    with pytest.raises(
        ko.InputError, match="at least one kernel must be different from zero, got 2 zero kernels"
    ):
        build(np.zeros((2, N, N)), Y)
    solution = build(np.stack([np.zeros((N, N)), *KS]), Y).solve()
    assert solution.gap <= 1e-5
    assert solution.weights.shape == (4,) and solution.weights[0] == 0
    assert solution.value == close(build(KS, Y).solve().value, 1e-5)
    values = solution.decision_function()
    assert values.shape == (N,) and np.isfinite(values).all()


def test_a_budget_without_positive_trace_is_asked_for():
    Ks = np.array([np.diag([1.0, -1, 0, 0]), np.diag([0, 0, 1.0, -1])])
    with pytest.raises(
        ko.ParameterError, match="sum of the traces must be positive, got 0. Pass trace= as a"
    ):
        lanckriet.sdp(Ks, [1, -1, 1, -1], C=1.0)


# ------------------------------------------------------------ Lanckriet 9.1 and 9.2: hard margins


def inseparable(seed):
    """Ten noisy labels in the plane, two unlabelled points, and kernels that stay in the plane."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(12, 2))
    y = np.where(rng.normal(size=10) > 0, 1.0, -1.0)
    y[:2] = 1.0, -1.0
    return np.array([X @ X.T, np.outer(X[:, 0], X[:, 0])]), y


def check_proof(error, Ks, y):
    """The proof in the words of the message: y a >= 0, sum |a| = 2, sum a = 0, and K_i a = 0."""
    alpha = error.proof["alpha"]
    assert (y * alpha >= 0).all() and np.abs(alpha).sum() == close(2) and abs(alpha.sum()) <= 1e-9
    labelled = Ks[:, : y.size, : y.size]
    assert np.abs(labelled @ alpha).max() <= 1e-4 * np.abs(labelled).max()
    assert max(alpha @ K @ alpha for K in labelled) <= 1e-9 * np.abs(labelled).max()


@both_signs
@pytest.mark.parametrize("seed", [0, 10, 11])
def test_a_hard_margin_that_no_kernel_can_meet(weights, seed):
    Ks, y = inseparable(seed)
    for written in (
        lanckriet.hard_margin(Ks, y, weights=weights),
        lanckriet.margin(Ks, y, weights=weights),
        lanckriet.sdp(Ks, y, weights=weights),
        lanckriet.block_norm(Ks, y),
    ):
        with pytest.raises(
            ko.InfeasibleError, match="got none in the set.*Use soft_margin, soft_margin_squared or"
        ) as e:
            written.solve()
        check_proof(e.value, Ks, y)
    with pytest.raises(ko.InfeasibleError, match="got none in the set"):
        ko.solve(lanckriet.hard_margin(Ks, y, weights=weights).problem)
    with pytest.raises(ko.InfeasibleError, match="got none in the set"):
        lanckriet.rank_one(np.random.default_rng(seed).normal(size=(12, 2)), y).solve()


@both_signs
@pytest.mark.parametrize("points", [[0, 0, 1, 2, 3, 4, 5], [3, 1, 2, 5, 3, 0]])
def test_a_point_with_both_labels(weights, points):
    Ks = KS[:, points][:, :, points]
    twin = points.index(points[0], 1)
    y = np.array([1.0, -1, 1, -1, 1, -1])[: len(points)]
    y[0], y[twin] = 1.0, -1.0
    with pytest.raises(ko.InfeasibleError, match="got none in the set.*Use soft_margin") as caught:
        lanckriet.hard_margin(Ks, y, weights=weights).solve()
    check_proof(caught.value, Ks, y)


@pytest.mark.parametrize("seed", range(4))
def test_hulls_that_touch(seed):
    # a kernel of full rank but one, where a point of one class is a mean of points of the other
    rng = np.random.default_rng(seed)
    F = rng.normal(size=(10, 13))
    y = np.where(rng.normal(size=10) > 0, 1.0, -1.0)
    y[0], y[1:4] = 1.0, -1.0
    F[0] = rng.dirichlet(np.ones(3)) @ F[1:4]
    Ks = (F @ F.T)[None]
    with pytest.raises(ko.InfeasibleError, match="got none in the set") as caught:
        lanckriet.hard_margin(Ks, y).solve()
    check_proof(caught.value, Ks, y)


@both_signs
@pytest.mark.parametrize("criterion", [{"C": 0.6}, {"tau": 0.5}, {"C": 0.6, "tau": 0.5}, {"tau": "learned"}])
def test_soft_criteria_are_always_attained(weights, criterion):
    Ks, y = inseparable(0)
    solution = lanckriet.margin(Ks, y, weights=weights, **criterion).solve()
    assert solution.gap <= 1e-5 and 0 < solution.value < 100


@pytest.mark.parametrize("kappa", [0.1, 1.0, 30.0])
def test_the_separability_test_is_one_over_omega(kappa):
    K = kappa * KS[0][:n, :n]
    a = cp.Variable(n, nonneg=True)
    form = cp.quad_form(cp.multiply(Y, a), cp.psd_wrap(K))
    least = solved(cp.Problem(cp.Minimize(form), [cp.sum(a) == 1, Y @ a == 0]))
    assert 1 / least == close(fixed(K, Y).value)


def test_statuses_of_solvers_are_not_proofs():
    # Interior-point solves of the LMI on inseparable data have come back "optimal" at 1e7, or failed;
    # the QCQP is unbounded, and says so. `solve` does not ask them.
    seen = []
    for seed in (0, 10, 11):
        Ks, y = inseparable(seed)
        qcqp = lanckriet.qcqp(Ks, y).programmes["qcqp"]().problem
        qcqp.solve(solver=cp.CLARABEL, warm_start=False)
        assert qcqp.status == cp.UNBOUNDED
        for weights in ("nonnegative", "free"):
            lmi = lanckriet.sdp(Ks, y, weights=weights).programmes["sdp"]().problem
            try:
                lmi.solve(solver=cp.CLARABEL, warm_start=False)
            except (cp.SolverError, UserWarning):
                continue
            seen.append((lmi.status, float(lmi.value)))
    assert all(status == cp.INFEASIBLE or value > 1e6 for status, value in seen)


def test_a_tiny_margin_warns():
    # two points of opposite labels at distance 1e-3 of unit kernels: omega is about 4e6
    X = np.array([0.0, 1e-3, 2.0, 3.0])
    K = np.exp(-((X[:, None] - X) ** 2) / 2)
    with pytest.warns(ko.ConditionWarning, match="squared distance of only.*Prefer a soft margin"):
        solution = lanckriet.hard_margin(K[None], [1, -1, 1, -1]).solve()
    assert solution.value > 1e6


# ------------------------------------------------------- Lanckriet 10: transduction and induction


@with_learned
@both_signs
def test_the_svm_at_the_learned_kernel_has_the_learned_value(criterion, weights):
    solution = learned(lanckriet.margin(KS, Y, **criterion, weights=weights))
    tau = solution.tau if criterion["tau"] == "learned" else criterion["tau"]
    assert omega(solution.kernel, Y, criterion.get("C", np.inf), tau) == close(solution.value)


@with_learned
@both_signs
def test_transduction_is_the_machine_on_the_other_points(criterion, weights):
    solution = learned(lanckriet.margin(KS, Y, **criterion, weights=weights))
    K = np.tensordot(solution.weights, KS, 1)
    values = solution.decision_function()
    assert values.shape == (N,)
    assert values[n:] == pytest.approx(K[n:, :n] @ solution.alpha + solution.intercept, abs=1e-12)
    polished = lanckriet.margin(K[None], Y, C=criterion.get("C", np.inf), trace=float(np.trace(K)), tau=(
        solution.tau if criterion["tau"] == "learned" else criterion["tau"]
    )).solve(tol=1e-6)  # fmt: skip
    assert values == pytest.approx(polished.decision_function(), abs=1e-3)


def other_unlabelled_points():
    """The same labelled blocks and traces, all else about the unlabelled points different."""
    Ks = np.zeros_like(KS)
    Ks[:, :n, :n] = KS[:, :n, :n]
    rest = KS[:, n:, n:].trace(axis1=1, axis2=2)
    shares = np.random.default_rng(0).dirichlet(np.ones(N - n), size=3)
    Ks[:, range(n, N), range(n, N)] = rest[:, None] * shares
    return Ks


@with_learned
def test_unlabelled_points_enter_through_traces_alone(criterion):
    one = learned(lanckriet.margin(KS, Y, **criterion))
    two = learned(lanckriet.margin(other_unlabelled_points(), Y, **criterion))
    assert one.value == close(two.value)
    assert one.weights == pytest.approx(two.weights, abs=1e-6)
    assert one.decision_function()[:n] == pytest.approx(two.decision_function()[:n], abs=1e-5)


@pytest.mark.parametrize("criterion", [{}, {"tau": 0.05}])
def test_unlabelled_points_bound_free_signs(criterion):
    # The same labelled blocks and traces: where the unlabelled points are like nothing else, K(mu) >> 0
    # asks less, and a more negative weight is allowed.
    Ks, y = small_case(15)
    apart = np.zeros_like(Ks)
    apart[:, :6, :6] = Ks[:, :6, :6]
    apart[:, 6, 6] = Ks[:, 6, 6] + Ks[:, 7, 7]
    tied = [learned(lanckriet.margin(K, y, **criterion, trace=8.0)).value for K in (Ks, apart)]
    assert tied[0] == close(tied[1])
    close_by, far = (learned(lanckriet.sdp(K, y, **criterion, trace=8.0)) for K in (Ks, apart))
    assert far.upper < close_by.lower * 0.99
    assert far.weights.min() < close_by.weights.min() - 1e-3 < -1e-3


KERNELS = [ko.normalized(ko.gaussian(1.0)), ko.normalized(ko.polynomial(2)), ko.normalized(ko.linear())]
RAW = [ko.gaussian(1.0), 0.3 * ko.polynomial(2), ko.linear()]


def cloud(unlabelled, kernels=KERNELS, seed=16):
    """Kernels on 14 fixed labelled points and the first of 40 others, the labels, and all points."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n + 40, 3))
    y = np.sign(X[:n, 0] + X[:n, 1] * X[:n, 2] + 0.4 * rng.normal(size=n))
    y[:2] = 1.0, -1.0
    return ko.Grams.from_kernels(kernels, X[: n + unlabelled]), y, X


def test_normalised_kernels_have_trace_N():
    grams, _, X = cloud(7)
    assert grams.traces == pytest.approx(np.full(3, n + 7.0))
    raw = ko.Grams.from_kernels([ko.polynomial(2)], X[:5])
    d = np.sqrt(np.diag(raw.gram(0)))
    assert ko.normalized(ko.polynomial(2))(X[:5]) == pytest.approx(raw.gram(0) / np.outer(d, d))
    with pytest.raises(ko.InputError, match="must be positive between a point and itself.*Drop that point"):
        ko.Grams.from_kernels([ko.normalized(ko.linear())], np.zeros((2, 3))).gram(0)


@with_learned
def test_weights_do_not_depend_on_the_number_of_others(criterion):
    grams, y, _ = cloud(0)
    first = learned(lanckriet.margin(grams, y, **criterion))
    assert (first.weights > 1e-2).sum() > 1
    for unlabelled in (1, 10, 40):
        grams, y, _ = cloud(unlabelled)
        other = learned(lanckriet.margin(grams, y, **criterion))
        assert other.value == close(first.value)
        assert other.weights == pytest.approx(first.weights, abs=1e-6)
        assert other.decision_function()[:n] == pytest.approx(first.decision_function(), abs=1e-5)
        if criterion["tau"] == "learned":
            assert other.tau == pytest.approx(first.tau, abs=1e-6)


@criteria
def test_a_fixed_trace_leaves_the_hard_margin_alone(criterion):
    c = 20.0
    (near, y, _), (far, _, _) = cloud(2), cloud(40)
    one = learned(lanckriet.margin(near, y, **criterion, trace=c))
    two = learned(lanckriet.margin(far, y, **criterion, trace=c))
    shares = [s.weights / s.weights.sum() for s in (one, two)]
    if criterion == CRITERIA["hard margin"]:
        assert two.weights * (n + 40) / (n + 2) == pytest.approx(one.weights, abs=1e-3)
        assert shares[0] == pytest.approx(shares[1], abs=1e-3)
        assert two.decision_function()[:n] == pytest.approx(one.decision_function()[:n], abs=1e-3)
        assert two.value == close(one.value * (n + 40) / (n + 2))
    else:
        assert np.abs(shares[0] - shares[1]).max() > 1e-2


@with_learned
def test_new_points_are_predicted_as_if_they_had_been_there(criterion):
    grams, y, X = cloud(6)
    inductive = learned(lanckriet.margin(grams, y, **criterion))
    new = X[n + 6 :]
    predicted = inductive.decision_function(grams.cross(new))
    assert predicted.shape == (34,)
    transductive = learned(lanckriet.margin(cloud(40)[0], y, **criterion)).decision_function()[n + 6 :]
    assert predicted == pytest.approx(transductive, abs=1e-5)
    assert inductive.decision_function(grams.cross(new)[:, :, :n]) == pytest.approx(predicted, abs=1e-12)
    K = np.tensordot(inductive.weights, np.stack([k(new, X[:n]) for k in KERNELS]), 1)
    assert predicted == pytest.approx(K @ inductive.alpha + inductive.intercept, abs=1e-12)


@with_learned
def test_raw_kernels_predict_alike_where_all_traces_grow_alike(criterion):
    # What the QCQP sees is c / r_i. The new points are the labelled ones, turned around the origin: raw
    # kernels have the same diagonal there, so that every r_i doubles, and with it the default budget.
    grams, y, X = cloud(0, RAW)
    turn = np.linalg.qr(np.random.default_rng(1).normal(size=(3, 3)))[0]
    new = X[:n] @ turn
    inductive = learned(lanckriet.margin(grams, y, **criterion))
    both = ko.Grams.from_kernels(RAW, np.vstack([X[:n], new]))
    assert both.traces == pytest.approx(2 * grams.traces) and np.ptp(grams.traces) > 10
    transductive = learned(lanckriet.margin(both, y, **criterion))
    assert inductive.value == close(transductive.value)
    assert inductive.weights == pytest.approx(transductive.weights, abs=1e-6)
    assert inductive.decision_function(grams.cross(new)) == pytest.approx(
        transductive.decision_function()[n:], abs=1e-4
    )
    # one kernel function, any points: the budget in proportion to its trace
    (few, _, _), (many, _, _) = cloud(6, RAW[1:2]), cloud(40, RAW[1:2])
    ratio = float(many.traces[0] / few.traces[0])
    if criterion["tau"] != "learned":
        one = learned(lanckriet.margin(few, y, **criterion, trace=5.0))
        two = learned(lanckriet.margin(many, y, **criterion, trace=5.0 * ratio))
        assert one.weights == pytest.approx(two.weights)
        assert one.decision_function(few.cross(X[n + 6 :])) == pytest.approx(
            two.decision_function()[n + 6 :], abs=1e-6
        )


@both_signs
def test_free_signs_are_refused_at_new_points(weights):
    grams, y, X = cloud(6)
    solution = learned(lanckriet.soft_margin(grams, y, C=0.6, weights=weights))
    cross = grams.cross(X[n + 6 :])
    if weights == "nonnegative":
        assert solution.decision_function(cross).shape == (34,)
        return
    message = (
        "got a kernel with free signs.*Learn with the new points among the N.*call decision_function\\(\\)"
    )
    with pytest.raises(ko.InputError, match=message):
        solution.decision_function(cross)
    assert solution.decision_function().shape == (n + 6,)


@pytest.mark.parametrize("shape", [(2, 5, n + 6), (3, 5, n - 1)])
def test_cross_kernels_have_a_shape(shape):
    grams, y, _ = cloud(6)
    solution = lanckriet.soft_margin(grams, y).solve()
    with pytest.raises(
        ko.ShapeError,
        match=r"cross must have shape \(m, n_new, N\) with m = 3.*got.*Use grams.cross\(X_new\)",
    ):
        solution.decision_function(np.zeros(shape))


@pytest.mark.parametrize("norm", ["full", "train"])
def test_prediction_after_alignment(norm):
    grams, y, X = cloud(6)
    solution = learned(lanckriet.alignment(grams, y, norm=norm))
    K = np.tensordot(solution.weights, np.asarray(grams), 1)
    means = K[:, :n][:, y > 0].mean(axis=1) - K[:, :n][:, y < 0].mean(axis=1)
    assert solution.decision_function() == pytest.approx(means, abs=1e-12)
    cross = np.tensordot(solution.weights, grams.cross(X[n + 6 :]), 1)[:, :n]
    means = cross[:, y > 0].mean(axis=1) - cross[:, y < 0].mean(axis=1)
    assert solution.decision_function(grams.cross(X[n + 6 :])) == pytest.approx(means, abs=1e-12)
    machine = lanckriet.alignment(grams, y, norm=norm, prediction="svm").solve(tol=1e-6)
    assert machine.value == close(solution.value)
    svm = fixed(K * (n + 6) / np.trace(K), y, C=1.0)  # at a mean diagonal of one
    assert machine.decision_function() == pytest.approx(svm.decision_function(), abs=1e-4)
    free = lanckriet.alignment(grams, y, norm=norm, weights="free").solve(tol=1e-6)
    with pytest.raises(ko.InputError, match="got a kernel with free signs"):
        free.decision_function(grams.cross(X[n + 6 :]))


@both_signs
def test_the_margin_is_the_distance_of_the_nearest_point(weights):
    solution = learned(lanckriet.hard_margin(KS, Y, weights=weights))
    K = solution.kernel[:n, :n]
    length = np.sqrt(solution.alpha @ K @ solution.alpha)
    nearest = (Y * solution.decision_function()[:n]).min() / length
    # alpha is known to the root of the gap; the plain SVM at the learned kernel is known better
    assert solution.margin == close(nearest, 3e-4) and solution.margin == close(solution.value**-0.5)
    polished = fixed(K, Y)
    length = np.sqrt(polished.alpha @ K @ polished.alpha)
    assert solution.margin == close((Y * polished.decision_function()).min() / length)


@with_learned
def test_the_margin_of_every_criterion(criterion):
    solution = learned(lanckriet.margin(KS, Y, **criterion))
    assert solution.margin == close(solution.value**-0.5)
    with pytest.raises(ko.InputError, match="one risk, got 0"):
        _ = learned(lanckriet.alignment(KS, Y)).margin


# ------------------------------------------------------------------ Lanckriet 11: the error bound


def halves(size, seed=0, m=3):
    """As many unlabelled points as labelled ones."""
    y = np.where(np.arange(size // 2) % 2 == 0, 1.0, -1.0)
    return random_kernels(size, m, size // 2, seed), y


def mean_over_signs(Ks):
    """E max_i sigma'K_i sigma / r_i over all signs, one at a time."""
    r = np.trace(Ks, axis1=1, axis2=2)
    signs = [np.array(s) for s in product((-1.0, 1.0), repeat=Ks.shape[1])]
    return float(np.mean([max(s @ K @ s / ri for K, ri in zip(Ks, r, strict=True)) for s in signs]))


@pytest.mark.parametrize("size", [6, 8])
@pytest.mark.parametrize("tau", [0.5, "learned"])
def test_the_complexity_is_the_mean_over_all_signs(size, tau):
    Ks, y = halves(size)
    solution = learned(lanckriet.margin(Ks, y, tau=tau, trace=float(size)))
    found = lanckriet.transduction_bound(solution, y=y)
    # a learned ridge is one more kernel of the set, I
    whole = np.concatenate([Ks, [np.eye(size)]]) if tau == "learned" else Ks
    assert found.complexity == pytest.approx(size * mean_over_signs(whole), rel=1e-9)
    r = np.trace(whole, axis1=1, axis2=2)
    largest = max(np.linalg.eigvalsh(K)[-1] / ri for K, ri in zip(whole, r, strict=True))
    assert found.complexity_bound == pytest.approx(size * min(len(whole), size * largest), rel=1e-9)
    assert found.complexity <= found.complexity_bound


def test_twelve_points_are_enumerated_exactly():
    Ks, y = halves(12)
    solution = learned(lanckriet.soft_margin(Ks, y, C=0.6, trace=12.0))
    signs = np.array(list(product((-1.0, 1.0), repeat=12)))
    forms = np.stack([((signs @ K) * signs).sum(axis=1) / np.trace(K) for K in Ks])
    found = [lanckriet.transduction_bound(solution, y=y, random_state=seed).complexity for seed in (0, 1)]
    assert found[0] == found[1] == pytest.approx(12 * forms.max(axis=0).mean(), rel=1e-9)


def test_the_complexity_is_sampled_beyond_twelve_points():
    Ks, y = halves(14)
    solution = learned(lanckriet.soft_margin(Ks, y, C=0.6, trace=14.0))
    signs = np.array(list(product((-1.0, 1.0), repeat=14)))
    forms = np.stack([((signs @ K) * signs).sum(axis=1) / np.trace(K) for K in Ks]).max(axis=0)
    found = lanckriet.transduction_bound(solution, y=y, samples=4000)
    assert found.complexity == pytest.approx(14 * forms.mean(), abs=14 * 5 * forms.std() / np.sqrt(4000))
    assert found.complexity == lanckriet.transduction_bound(solution, y=y, samples=4000).complexity
    other = lanckriet.transduction_bound(solution, y=y, samples=4000, random_state=1)
    assert other.complexity != found.complexity


def test_a_full_set_of_rank_one_kernels_attains_c_N():
    # N = 4 and all sigma sigma' / N: max_i (sigma'sigma_i)^2 / N = N for every sigma, so 4 c; printed: 2 c
    signs = np.array(list(product((-1.0, 1.0), repeat=4)))
    Ks, y, c = np.einsum("si,sj->sij", signs, signs) / 4, np.array([1.0, -1.0]), 3.0
    solution = learned(lanckriet.soft_margin(Ks, y, C=0.6, trace=c))
    found = lanckriet.transduction_bound(solution, y=y)
    assert found.complexity == close(4 * c) and found.complexity_bound == close(4 * c)


def test_free_signs_have_complexity_c_N():
    Ks, y = halves(8)
    solution = learned(lanckriet.soft_margin(Ks, y, C=0.6, weights="free", trace=8.0))
    found = lanckriet.transduction_bound(solution, y=y)
    assert found.complexity == found.complexity_bound == close(64)


@with_learned
@every("delta", [0.05, 0.5])
def test_the_bound_is_the_sum_of_its_parts(criterion, delta):
    Ks, y = halves(12, seed=2)
    solution = learned(lanckriet.margin(Ks, y, **criterion, trace=12.0))
    found = lanckriet.transduction_bound(solution, delta, y=y)
    half = y.size
    error = np.maximum(1 - y * solution.decision_function()[:half], 0).mean()
    square = solution.alpha @ solution.kernel[:half, :half] @ solution.alpha  # |w|^2 = 1 / gamma^2
    capacity = np.sqrt(found.complexity * square / half)
    assert found.margin_error == pytest.approx(error, abs=1e-12)
    assert found.confidence == pytest.approx(np.sqrt(2 * np.log(1 / delta)), rel=1e-12)
    assert found.capacity == pytest.approx(capacity, rel=1e-9)
    assert found.bound == pytest.approx(
        error + (4 + np.sqrt(2 * np.log(1 / delta)) + capacity) / np.sqrt(half), rel=1e-9
    )
    if criterion == CRITERIA["hard margin"]:  # then |w|^2 = omega
        assert found.capacity == pytest.approx(np.sqrt(found.complexity * solution.value / half), rel=1e-3)


def test_the_bound_needs_equal_halves():
    solution = lanckriet.soft_margin(KS, Y).solve()
    with pytest.raises(ko.ParameterError, match="got 14 labelled of 18.*Learn with n further points"):
        lanckriet.transduction_bound(solution, y=Y)
    Ks, y = halves(8)
    solution = lanckriet.soft_margin(Ks, y).solve()
    with pytest.raises(ko.ParameterError, match="and 3 labels"):
        lanckriet.transduction_bound(solution, y=y[:3])
    for delta in (0.0, -1.0, 1.0, 2.0, np.nan):
        with pytest.raises(ko.ParameterError, match="delta must be"):
            lanckriet.transduction_bound(solution, delta, y=y)

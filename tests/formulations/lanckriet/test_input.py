"""Lanckriet et al. (2004): bad input."""

from __future__ import annotations

import numpy as np
import pytest

import kernelopt as ko
from formulations import lanckriet
from tests.every import every
from tests.formulations.lanckriet.cases import KS, N, Y, close, n

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
    "of several sizes": (
        [KS[0], KS[1][:5, :5]],
        r"the same N points, got shapes \[\(5, 5\), \(18, 18\)\]",
    ),
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
        ko.errors.NotPSDError, match=r"must be positive semidefinite.*got -.* of the largest.*K >> 0"
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
            with pytest.raises(ko.errors.NotPSDError, match="clip the spectrum yourself"):
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
    with pytest.raises(ko.errors.ParameterError, match=message):
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
        ko.errors.ParameterError, match="sum of the traces must be positive, got 0. Pass trace= as a"
    ):
        lanckriet.sdp(Ks, [1, -1, 1, -1], C=1.0)

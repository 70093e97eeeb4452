"""What estimators take for samples: matrices by list and by name, and matrices that are asked about."""

from __future__ import annotations

import inspect
import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.calibration import CalibratedClassifierCV
from sklearn.model_selection import KFold, cross_val_score

import kernelopt as ko
from kernelopt.errors import GramWarning
from kernelopt.estimators import (
    KernelAlignment,
    KernelStack,
    MKLClassifier,
    MKLClassifierCV,
    MKLRegressor,
    OneClassMKL,
)
from tests.every import every

RNG = np.random.default_rng(0)
X = RNG.normal(size=(30, 3))
Y = np.where(X[:, 0] + X[:, 1] ** 2 > 0.5, 1, -1)
NEAR, LINE = np.exp(-((X[:, None] - X) ** 2).sum(-1)), X @ X.T
STACK = np.array([NEAR, LINE])
NEW = [0, 3, 7, 20]


@every("model", [MKLClassifier(), MKLClassifier("precomputed"), MKLRegressor(), KernelAlignment()])
def test_a_list_or_a_dict_of_matrices_is_the_stack_of_them(model):
    value = "predict" if hasattr(model, "predict") else "transform"
    expected = getattr(model.fit(STACK, Y), value)(STACK[:, NEW])
    forms = (
        ([NEAR, LINE], [NEAR[NEW], LINE[NEW]], ("K[0]", "K[1]")),
        ((pd.DataFrame(NEAR), LINE), STACK[:, NEW], ("K[0]", "K[1]")),
        ({"near": NEAR, "line": LINE}, {"line": LINE[NEW], "near": NEAR[NEW]}, ("near", "line")),
        (KernelStack({"near": NEAR, "line": LINE}), [NEAR[NEW], LINE[NEW]], ("near", "line")),
    )
    for given, new, names in forms:
        model.fit(given, Y)
        assert model.kernel_names_ == names and model.kernels_ is None
        assert getattr(model, value)(new) == pytest.approx(expected, rel=1e-9, abs=1e-12)


def test_wrong_lists_and_dicts_are_told_apart():
    with pytest.raises(ko.InputError, match=r"on the same N points, got shapes \[\(4, 4\), \(30, 30\)\]"):
        MKLClassifier().fit([NEAR, LINE[:4, :4]], Y)
    model = MKLClassifier().fit({"near": NEAR, "line": LINE}, Y)
    with pytest.raises(
        ko.InputError, match="must have the kernels of fit, near, line, got the names near, far"
    ):
        model.predict({"near": NEAR, "far": LINE})
    with pytest.raises(ko.InputError, match=r"\(m, n_new, n\) = \(2, n_new, 30\), got \(1, 30, 30\)"):
        model.predict([NEAR])
    with pytest.raises(ko.InputError, match="names must be None for a dict of kernels"):
        KernelStack({"near": NEAR}, ["near"])
    with pytest.raises(ko.InputError, match="kernels must be None for precomputed"):
        MKLClassifier("linear()").fit([NEAR, LINE], Y)


def test_precomputed_takes_one_matrix_as_scikit_learn_does():
    points, given = MKLClassifier(ko.gaussian(np.sqrt(0.5))), MKLClassifier("precomputed")
    assert given.fit(NEAR, Y).decision_function(NEAR[NEW]) == pytest.approx(
        points.fit(X, Y).decision_function(X[NEW]), rel=1e-6
    )
    assert cross_val_score(given, NEAR, Y, cv=3).tolist() == cross_val_score(points, X, Y, cv=3).tolist()
    for wrong, said in (
        (NEAR[:5], r"kernel matrix of shape \(n, n\) .* got \(5, 30\)"),
        (["a", "b"], "X must hold kernels for kernels='precomputed'"),
    ):
        with pytest.raises(ko.InputError, match=said):
            given.fit(wrong, Y[: len(wrong)])
    with pytest.raises(ko.InputError, match="samples must be a KernelStack or kernels"):
        MKLClassifier().fit([NEAR], Y).predict(NEAR[NEW])


def test_a_matrix_that_is_probably_a_kernel_is_asked_about():
    for model in (MKLClassifier(C=0.1), OneClassMKL(nu=0.5)):
        with pytest.warns(GramWarning, match=r"kernels='precomputed'\).* pass a data frame") as caught:
            model.fit(NEAR, Y)
        assert [warning.filename for warning in caught] == [__file__]
        assert model.n_features_in_ == 30
    indefinite, skew = NEAR - 0.9 * np.eye(30), NEAR + np.triu(np.ones((30, 30)))
    frame = pd.DataFrame(NEAR, columns=[f"distance {i}" for i in range(30)])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for points in (indefinite, skew, np.eye(30), NEAR[:, :29], frame):  # deliberately, by names
            MKLClassifier(C=0.1).fit(points, Y)


def test_a_missing_predict_proba_says_how_to_calibrate():
    model = MKLClassifier("linear()").fit(X, Y)
    assert not hasattr(model, "predict_proba") and "predict_proba" not in vars(model)
    with pytest.raises(AttributeError, match="MKLClassifier has no predict_proba.* CalibratedClassifierCV"):
        _ = model.predict_proba
    assert "CalibratedClassifierCV" in inspect.getdoc(MKLClassifier.predict_proba)
    calibrated = CalibratedClassifierCV(MKLClassifier("linear()"), ensemble=False, cv=3).fit(X, Y)
    assert calibrated.predict_proba(X[:4]).sum(axis=1) == pytest.approx(1)


def test_a_missing_view_is_not_seen_and_the_diagonal_is_kept():
    """The formula of the notes, by loops; what stands in the rows of a missing view does not matter."""
    cosine = LINE / np.sqrt(np.outer(LINE.diagonal(), LINE.diagonal()))
    kernels = {"near": NEAR, "line": cosine, "both": NEAR * cosine}
    missing = RNG.random((3, 30)) < 0.4
    missing[:, missing.all(axis=0)] = False
    holes = {
        name: np.where(gaps | gaps[:, None], np.nan, K)
        for (name, K), gaps in zip(kernels.items(), missing, strict=True)
    }
    stack = KernelStack(holes, missing=missing)
    found = np.asarray(stack.grams)
    assert stack.names == ("near", "line", "both")
    for m, K in enumerate(kernels.values()):
        for i, j in np.ndindex(30, 30):
            scale = 3 / np.sqrt((~missing[:, i]).sum() * (~missing[:, j]).sum())
            there = not (missing[m, i] or missing[m, j])
            assert found[m, i, j] == pytest.approx(scale * K[i, j] if there else 0.0)
        assert np.linalg.eigvalsh(found[m])[0] > -1e-12
    assert found.sum(axis=0).diagonal() == pytest.approx(3.0)
    model = MKLClassifier(normalize="none").fit(stack[:25], Y[:25])
    K = sum(w * K for w, K in zip(model.weights_, found, strict=True))
    values = K[25:, model.support_] @ model.dual_coef_[0] + model.intercept_
    assert model.decision_function(stack[25:]) == pytest.approx(values)
    with pytest.raises(ko.InputError, match="which views a sample lacks"):
        model.predict(np.array([*kernels.values()])[:, 25:, :25])
    whole = KernelStack(kernels, missing=np.zeros((3, 30), bool))
    assert np.array_equal(np.asarray(whole.grams), np.asarray(KernelStack(kernels).grams))


def test_wrong_marks_of_missing_views_are_said():
    for missing, said in (
        (
            np.zeros((30, 2), bool),
            r"boolean array of shape \(m, N\) = \(2, 30\), got bool of shape \(30, 2\)",
        ),
        (np.zeros((2, 30)), "got float64 of shape"),
        (np.arange(30) == np.array([[3], [3]]), "leave each sample a view, got none of sample 3"),
    ):
        with pytest.raises(ko.InputError, match=said):
            KernelStack(STACK, missing=missing)
    with pytest.raises(ko.InputError, match=r"pass KernelStack\(kernels, missing=...\)"):
        MKLClassifier().fit(np.where(X > 2, np.nan, X), Y)


def test_matrices_that_are_no_kernels_are_said():
    with pytest.raises(ko.InputError, match=r"kernel matrix of shape \(n, n\) .* got \(30, 3\)"):
        MKLClassifier("precomputed").fit(X, Y)
    with pytest.raises(ko.InputError, match="positive semidefinite, got mean diagonal -1.* Similarity"):
        MKLClassifier("precomputed").fit(NEAR - 2.0, Y)
    with pytest.raises(ko.InputError, match="none of class True in split 0"):
        MKLClassifierCV(cv=KFold(3)).fit(X, np.arange(30) == 7)

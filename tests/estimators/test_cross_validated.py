"""`MKLClassifierCV` and `MKLRegressorCV` against `GridSearchCV`, which starts every fit anew."""

from __future__ import annotations

import numpy as np
import pytest
from joblib import parallel_config
from sklearn.datasets import load_diabetes, load_iris
from sklearn.model_selection import GridSearchCV, KFold

import kernelopt as ko
from kernelopt.estimators import KernelStack, MKLClassifier, MKLClassifierCV, MKLRegressor, MKLRegressorCV
from kernelopt.estimators.cross_validated import chosen

KERNELS = ["gaussian(0.5)", "gaussian(2.0)", "linear()"]
CS = [10.0, 0.01, 1.0]
X, y = load_iris(return_X_y=True)
X, y = X[::2], np.array(["setosa", "versicolor", "virginica"])[y[::2]]


@pytest.mark.parametrize("multiclass", [pytest.param("shared", marks=pytest.mark.slow), "per-class"])
def test_a_path_has_the_scores_of_a_grid(multiclass):
    options = {"multiclass": multiclass, "tol": 1e-4}
    splits = KFold(3, shuffle=True, random_state=0)
    grid = GridSearchCV(MKLClassifier(KERNELS, **options), {"C": sorted(CS)}, cv=splits).fit(X, y)
    model = MKLClassifierCV(KERNELS, Cs=CS, cv=splits, **options).fit(X, y)
    np.testing.assert_array_equal(model.scores_.mean(axis=0), grid.cv_results_["mean_test_score"])
    assert model.best_score_ == grid.best_score_
    np.testing.assert_array_equal(model.Cs_, sorted(CS))
    means = grid.cv_results_["mean_test_score"].tolist()
    best = [C for C, mean in zip(sorted(CS), means, strict=True) if mean == max(means)]
    assert model.C_ == min(best, key=lambda C: abs(np.log10(C)))
    again = grid.best_estimator_.set_params(C=model.C_).fit(X, y)
    np.testing.assert_allclose(model.decision_function(X), again.decision_function(X), atol=1e-10)


def test_a_path_of_a_regression_has_the_scores_of_a_grid(tmp_path):
    X, y = (data[:90] for data in load_diabetes(return_X_y=True))  # in no order
    options = {"tol": 1e-8, "loss": "squared", "kernels": ["gaussian(0.1)", "gaussian(0.3)", "linear()"]}
    grid = GridSearchCV(MKLRegressor(**options), {"C": sorted(CS)}, cv=3).fit(X, y)
    model = MKLRegressorCV(**options, Cs=CS, cv=3).fit(X, y)
    np.testing.assert_allclose(model.scores_.mean(axis=0), grid.cv_results_["mean_test_score"], atol=1e-4)
    assert model.C_ == grid.best_params_["C"] and model.C_ in model.Cs_
    assert model.best_score_ == model.scores_.mean(axis=0).max()
    np.testing.assert_allclose(model.predict(X), grid.predict(X), rtol=1e-3)
    loaded = ko.load(model.save(tmp_path / "model.npz"))
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))
    assert loaded.certify(X, y).gap <= 1e-6
    mean = MKLRegressorCV(**options, Cs=CS, cv=3, scoring="neg_mean_absolute_error").fit(X, y)
    assert (mean.scores_ < 0).all()


@pytest.mark.parametrize("backend", ["threading", pytest.param("loky", marks=pytest.mark.slow)])
def test_processes_have_the_scores_of_one(backend):
    targets = X @ np.arange(4.0)
    for make, y_ in ((MKLClassifierCV, y), (MKLRegressorCV, targets)):
        one, two = (make(KERNELS, Cs=CS, cv=3, n_jobs=n_jobs, tol=1e-5) for n_jobs in (None, 2))
        with parallel_config(backend=backend):
            two.fit(X, y_)
        one.fit(X, y_)
        np.testing.assert_allclose(two.scores_, one.scores_, rtol=1e-6)
        assert two.C_ == one.C_
        np.testing.assert_allclose(two.weights_, one.weights_, atol=1e-6)
    for n_jobs in (0, 1.5, "two"):
        with pytest.raises(ko.errors.ParameterError, match="n_jobs must be None or a whole number other"):
            MKLRegressorCV(KERNELS, n_jobs=n_jobs).fit(X, targets)


def test_values_of_C_are_checked_and_of_equal_scores_the_nearest_to_the_default_is_chosen():
    for Cs, words in (([], "at least one"), ([1.0, -1.0], "Cs must be"), (1.0, "Cs must be")):
        with pytest.raises(ko.errors.ParameterError, match=words):
            MKLClassifierCV(KERNELS, Cs=Cs).fit(X, y)
    for Cs, means, C in (
        ([1e-3, 1e-2, 1e-1, 1.0], [0.9, 0.9, 0.8, 0.8], 1e-2),  # a plateau at the lower end
        ([1e-3, 1e-2, 1e-1, 1.0], [0.9, 0.9, 0.8, 0.9], 1.0),
        ([0.1, 1.0, 10.0], [0.9, 0.8, 0.9], 0.1),
        ([10.0, 100.0, 1000.0], [0.1 + 0.2, 0.3, 0.3], 10.0),  # equal but for rounding
        ([10.0, 100.0, 1000.0], [0.3, 0.1 + 0.2, 0.3], 10.0),
        ([0.1, 1.0], [-3.0, -4.0], 0.1),  # scores may be negative
        ([1.0, 10.0], [0.0, 0.0], 1.0),
    ):
        assert Cs[chosen(np.array(Cs), np.array(means))] == C
    with pytest.raises(ko.errors.ParameterError, match=r"got NaN as the mean score at C = 10 .*Choose"):
        chosen(np.array([1.0, 10.0]), np.array([1.0, np.nan]))
    for score in (None, "0.5", [0.5]):
        with pytest.raises(ko.errors.ParameterError, match="scoring must return numbers, got .*Pass the"):
            MKLClassifierCV("linear()", Cs=[0.1], cv=2, scoring=lambda *_, s=score: s).fit(X[::4], y[::4])
    equal = MKLClassifierCV("linear()", Cs=[0.1, 1.0], cv=2, scoring=lambda *_: 0.5).fit(X[::4], y[::4])
    assert (equal.C_, equal.best_score_) == (1.0, 0.5)


@pytest.mark.slow
def test_precomputed_kernels_scorers_and_files(tmp_path):
    two = y != "setosa"
    stack = KernelStack(ko.Grams.from_kernels([ko.parse_kernel(text) for text in KERNELS], X[two]))
    model = MKLClassifierCV(Cs=CS, cv=3, scoring="roc_auc").fit(stack, y[two])
    points = MKLClassifierCV(KERNELS, Cs=CS, cv=3, scoring="roc_auc").fit(X[two], y[two])
    np.testing.assert_allclose(model.scores_, points.scores_, atol=1e-12)
    loaded = ko.load(points.save(tmp_path / "model.npz"))
    np.testing.assert_array_equal(loaded.predict(X), points.predict(X))
    assert loaded.C_ == points.C_

"""`MKLClassifierCV` against `GridSearchCV`, which starts every fit anew."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.model_selection import GridSearchCV, KFold

import kernelopt as ko
from kernelopt.estimators import KernelStack, MKLClassifier, MKLClassifierCV

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
    assert (model.C_, model.best_score_) == (grid.best_params_["C"], grid.best_score_)
    np.testing.assert_array_equal(model.Cs_, sorted(CS))
    np.testing.assert_allclose(
        model.decision_function(X), grid.best_estimator_.decision_function(X), atol=1e-10
    )


def test_precomputed_kernels_scorers_and_files(tmp_path):
    two = y != "setosa"
    stack = KernelStack(ko.Grams.from_kernels([ko.parse_kernel(text) for text in KERNELS], X[two]))
    model = MKLClassifierCV(Cs=CS, cv=3, scoring="roc_auc").fit(stack, y[two])
    points = MKLClassifierCV(KERNELS, Cs=CS, cv=3, scoring="roc_auc").fit(X[two], y[two])
    np.testing.assert_allclose(model.scores_, points.scores_, atol=1e-12)
    loaded = ko.load(points.save(tmp_path / "model.npz"))
    np.testing.assert_array_equal(loaded.predict(X), points.predict(X))
    assert loaded.C_ == points.C_


def test_values_of_C_are_checked():
    for Cs, words in (([], "at least one"), ([1.0, -1.0], "Cs must be"), (1.0, "Cs must be")):
        with pytest.raises(ko.ParameterError, match=words):
            MKLClassifierCV(KERNELS, Cs=Cs).fit(X, y)

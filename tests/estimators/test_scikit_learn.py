"""The estimators work with scikit-learn: its own checks, model selection, pipelines, calibration, display."""

from __future__ import annotations

import warnings
from unittest import SkipTest

import numpy as np
import pytest
from sklearn import config_context
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_breast_cancer, load_diabetes
from sklearn.inspection import permutation_importance
from sklearn.model_selection import GridSearchCV, cross_val_predict, cross_val_score, learning_curve
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from sklearn.utils import estimator_html_repr, get_tags
from sklearn.utils.estimator_checks import estimator_checks_generator

import kernelopt as ko
from kernelopt.estimators import (
    FormulationClassifier,
    KernelAlignment,
    KernelStack,
    LinearFunctionalMKLClassifier,
    LinearFunctionalMKLRegressor,
    MKLClassifier,
    MKLClassifierCV,
    MKLRegressor,
    MKLRegressorCV,
    OneClassMKL,
    SimilarityClassifier,
    TransductiveKernelClassifier,
    TripletKernel,
)

KERNELS = ["gaussian(2.0)", "gaussian(8.0)", "linear()"]
QUICK = {"kernels": ["gaussian(1.0)", "linear()"], "tol": 1e-2}


@pytest.fixture(scope="module")
def cancer():
    X, y = load_breast_cancer(return_X_y=True)
    return X[:150], np.array(["malignant", "benign"])[y[:150]]


def check(estimator):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the checks test warnings themselves
        ran = 0
        for fitted, statement in estimator_checks_generator(estimator, legacy=True):
            try:
                statement(fitted)
            except SkipTest:
                continue
            ran += 1
        assert ran > 40


@pytest.mark.slow
@pytest.mark.parametrize(
    "estimator",
    [
        FormulationClassifier(),
        KernelAlignment(),
        LinearFunctionalMKLClassifier(),
        LinearFunctionalMKLRegressor(),
        MKLClassifier(),
        MKLClassifier(**QUICK, multiclass="per-class"),
        MKLClassifierCV("linear()", Cs=[1.0], cv=2, tol=1e-2, multiclass="per-class"),
        MKLRegressor(),
        MKLRegressorCV("linear()", Cs=[1.0], cv=2, tol=1e-2),
        OneClassMKL(),
        SimilarityClassifier(),
        TransductiveKernelClassifier(),
        TripletKernel(),
    ],
    ids=lambda estimator: type(estimator).__name__,
)
def test_checks_of_scikit_learn_with_default_arguments(estimator):
    check(estimator)


@pytest.mark.slow
def test_splits_of_points_and_of_precomputed_kernels_have_the_same_scores(cancer):
    X, y = cancer
    X = StandardScaler().fit_transform(X)
    stack = KernelStack(ko.Grams.from_kernels([ko.gaussian(2.0), ko.gaussian(8.0), ko.linear()], X))
    points, given = MKLClassifier(KERNELS), MKLClassifier()
    assert cross_val_score(given, stack, y, cv=3).tolist() == cross_val_score(points, X, y, cv=3).tolist()
    grid = {"C": [0.01, 1.0], "p": [1, 2]}
    found = [GridSearchCV(model, grid, cv=3).fit(data, y) for model, data in ((given, stack), (points, X))]
    scores = [search.cv_results_["mean_test_score"] for search in found]
    assert scores[0] == pytest.approx(scores[1])
    assert found[0].predict(stack[:5]).tolist() == found[1].predict(X[:5]).tolist()
    curves = [
        learning_curve(model, data, y, cv=3, train_sizes=[0.4, 1.0])[2]
        for model, data in ((given, stack), (points, X))
    ]
    assert curves[0] == pytest.approx(curves[1])


def test_a_pipeline_is_tuned_cloned_and_shown(cancer):
    X, y = cancer
    pipe = make_pipeline(StandardScaler(), MKLClassifier(KERNELS))
    grid = {"mklclassifier__C": [0.1, 1.0], "mklclassifier__kernels": [KERNELS, None]}
    search = GridSearchCV(pipe, grid, cv=2).fit(X, y)
    assert search.best_score_ > 0.9
    assert set(search.best_estimator_.classes_) == {"benign", "malignant"}
    model = clone(search.best_estimator_[-1])
    assert model.get_params() == search.best_estimator_[-1].get_params()
    assert not hasattr(model, "weights_")
    assert "MKLClassifier" in estimator_html_repr(search)
    assert "p=1" in repr(MKLClassifier(p=1))


@pytest.mark.slow
def test_searches_pass_on_weights_of_samples_as_metadata(cancer):
    X, y = cancer[0][:80], cancer[1][:80]
    weights = np.where(y == "benign", 5.0, 1.0)
    model = MKLClassifier(["gaussian(5.0)"], normalize="none")
    with config_context(enable_metadata_routing=True):
        scaler = StandardScaler().set_fit_request(sample_weight=False)
        asking = clone(model).set_fit_request(sample_weight=True).set_score_request(sample_weight=True)
        routed = make_pipeline(scaler, asking)
        search = GridSearchCV(routed, {"mklclassifier__C": [0.5]}, cv=2).fit(X, y, sample_weight=weights)
    direct = model.set_params(C=0.5).fit(StandardScaler().fit_transform(X), y, sample_weight=weights)
    assert search.best_estimator_[-1].intercept_ == pytest.approx(direct.intercept_)
    unweighted = clone(direct).fit(StandardScaler().fit_transform(X), y)
    assert direct.intercept_ != pytest.approx(unweighted.intercept_, rel=1e-2)


def test_probabilities_are_calibrated(cancer):
    X, y = cancer
    machine = make_pipeline(StandardScaler(), MKLClassifier(KERNELS))
    model = CalibratedClassifierCV(machine, cv=2, ensemble=False).fit(X, y)
    probabilities = model.predict_proba(X)
    assert probabilities.shape == (len(y), 2)
    assert probabilities.sum(axis=1) == pytest.approx(1)
    assert (model.classes_[probabilities.argmax(axis=1)] == y).mean() > 0.9


def test_raw_columns_give_a_good_model_with_default_arguments():
    X, y = load_breast_cancer(return_X_y=True)
    X, y = X[::2], y[::2]  # columns between 0.001 and 4000
    ours = cross_val_score(MKLClassifier(), X, y, cv=3).mean()
    assert ours > cross_val_score(SVC(), X, y, cv=3).mean() + 0.03
    assert ours > cross_val_score(make_pipeline(StandardScaler(), SVC()), X, y, cv=3).mean() - 0.02
    X, y = load_diabetes(return_X_y=True)
    assert cross_val_score(MKLRegressor(), X[::2], y[::2], cv=3).mean() > 0.4


def test_regression_and_outliers_are_cross_validated(cancer):
    X, _ = cancer
    predicted = cross_val_predict(MKLRegressor(C=10.0), X[:, 1:], X[:, 0], cv=3)
    assert np.corrcoef(predicted, X[:, 0])[0, 1] > 0.95
    outliers = OneClassMKL(nu=0.2).fit_predict(X)
    assert 0.1 < (outliers == -1).mean() <= 0.2


def test_importance_of_columns(cancer):
    X, y = cancer
    chosen = np.c_[X[:, 0], np.random.default_rng(0).normal(size=len(X))]
    model = MKLClassifier().fit(chosen, y)
    found = permutation_importance(model, chosen, y, n_repeats=2, random_state=0).importances_mean
    assert found[0] > found[1] + 0.1


def test_tags():
    tags = get_tags(MKLClassifier())
    assert tags.estimator_type == "classifier"
    assert tags.classifier_tags.multi_class
    assert tags.target_tags.required
    assert not tags.input_tags.allow_nan
    assert not tags.input_tags.sparse
    assert get_tags(MKLRegressor()).estimator_type == "regressor"
    assert get_tags(OneClassMKL()).estimator_type == "outlier_detector"

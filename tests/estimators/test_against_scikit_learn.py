"""With one kernel the estimators are scikit-learn's SVC, SVR, KernelRidge and OneClassSVM."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_diabetes, load_wine
from sklearn.kernel_ridge import KernelRidge
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, SVR, OneClassSVM

from kernelopt.estimators import MKLClassifier, MKLRegressor, OneClassMKL
from tests.every import every

WIDTH = 3.0
GAMMA = 1 / (2 * WIDTH**2)
ONE = {"kernels": f"gaussian({WIDTH})", "normalize": "none", "tol": 1e-9}
CLOSE = 1e-5  # of the largest decision value: both solvers stop at duality gaps of about 1e-9


def scaled(load, n):
    X, y = load(return_X_y=True)
    chosen = np.random.default_rng(0).permutation(len(X))[:n]
    return StandardScaler().fit_transform(X[chosen]), y[chosen]


def agree(ours, theirs):
    assert np.abs(ours - theirs).max() <= CLOSE * np.abs(theirs).max()


@every("options", [{}, {"class_weight": {0: 3.0, 1: 0.5}}, {"class_weight": "balanced"}])
def test_two_classes(options):
    X, y = scaled(load_breast_cancer, 160)
    ours = MKLClassifier(**ONE, C=2.0, **options).fit(X[:120], y[:120])
    theirs = SVC(C=2.0, gamma=GAMMA, tol=1e-10, **options).fit(X[:120], y[:120])
    agree(ours.decision_function(X), theirs.decision_function(X))
    assert ours.weights_ == pytest.approx([1.0])
    assert ours.predict(X).tolist() == theirs.predict(X).tolist()


def test_sample_weights_are_factors_of_C():
    X, y = scaled(load_breast_cancer, 120)
    weights = np.random.default_rng(1).uniform(0.2, 3.0, len(y))
    weights[::7] = 0.0
    ours = MKLClassifier(**ONE, C=1.0).fit(X, y, sample_weight=weights)
    theirs = SVC(gamma=GAMMA, tol=1e-10).fit(X, y, sample_weight=weights)
    agree(ours.decision_function(X), theirs.decision_function(X))
    assert not set(ours.support_) & set(range(0, len(y), 7))


def test_support_points_and_dual_variables():
    X, y = scaled(load_breast_cancer, 120)
    ours = MKLClassifier(**ONE, C=1.0).fit(X, y)
    kernel = rbf_kernel(X, X[ours.support_], gamma=GAMMA)
    agree(kernel @ ours.dual_coef_[0] + ours.intercept_[0], ours.decision_function(X))
    assert (np.sign(ours.dual_coef_[0]) == np.where(y[ours.support_] == 1, 1, -1)).all()
    assert np.abs(ours.dual_coef_).max() <= 1 + 1e-9


def test_several_classes_are_one_against_the_rest():
    X, y = scaled(load_wine, 100)
    names = np.array(["red", "rose", "white"])[y]
    ours = MKLClassifier(**ONE, C=1.0, multiclass="per-class").fit(X, names)
    assert ours.classes_.tolist() == ["red", "rose", "white"]
    for k, name in enumerate(ours.classes_):
        theirs = SVC(gamma=GAMMA, tol=1e-10).fit(X, names == name)
        agree(ours.decision_function(X)[:, k], theirs.decision_function(X))


def test_regression():
    X, y = scaled(load_diabetes, 120)
    tube = {"loss": "epsilon_insensitive", "C": 10.0}
    ours = MKLRegressor(**ONE, **tube, epsilon=5.0, target_scale="none").fit(X, y)
    agree(ours.predict(X), SVR(gamma=GAMMA, C=10.0, epsilon=5.0, tol=1e-9).fit(X, y).predict(X))
    mean, unit = y.mean(), y.std()
    ours = MKLRegressor(**ONE, **tube, epsilon=0.1).fit(X, y)
    theirs = SVR(gamma=GAMMA, C=10.0, epsilon=0.1, tol=1e-9).fit(X, (y - mean) / unit)
    agree(ours.predict(X), unit * theirs.predict(X) + mean)


def test_constant_targets_are_predicted_at_no_loss():
    X, _ = scaled(load_diabetes, 30)
    weights = np.random.default_rng(0).uniform(size=30)  # their mean of equal numbers is off by a rounding
    for y, options in (
        (np.full(30, 0.1), {}), (np.full(30, 0.1), {"loss": "epsilon_insensitive"}),
        (np.full(30, 3.7), {"loss": "epsilon_insensitive", "epsilon": 0.0}),
        (np.zeros(30), {"target_scale": "none"}), (np.zeros(30), {"p": 1.0}),
    ):  # fmt: skip
        model = MKLRegressor(["gaussian(3.0)", "linear()"], **options).fit(X, y, sample_weight=weights)
        assert (model.predict(X) == y).all()
        assert 0 <= model.certificate_.lower <= model.certificate_.upper < 1e-300
        assert model.dual_gap_ < 1e-15


def test_squared_loss_is_kernel_ridge_regression_with_an_intercept():
    X, y = scaled(load_diabetes, 80)
    ours = MKLRegressor(**ONE, C=4.0, loss="squared", target_scale="none").fit(X, y)
    b = ours.intercept_[0]
    theirs = KernelRidge(alpha=1 / 4.0, kernel="rbf", gamma=GAMMA).fit(X, y - b)
    agree(ours.predict(X), theirs.predict(X) + b)
    assert ours.dual_coef_.sum() == pytest.approx(0, abs=1e-6 * np.abs(ours.dual_coef_).sum())


@every("nu", [0.05, 0.3, 0.9])
def test_one_class(nu):
    X, _ = scaled(load_diabetes, 120)
    ours = OneClassMKL(**ONE, nu=nu).fit(X)
    theirs = OneClassSVM(gamma=GAMMA, nu=nu, tol=1e-10).fit(X)
    agree(ours.score_samples(X), theirs.score_samples(X))
    assert ours.offset_ == pytest.approx(theirs.offset_[0], rel=CLOSE)
    assert ours.dual_coef_.sum() == pytest.approx(nu * len(X), rel=1e-6)
    assert len(ours.support_) / len(X) >= nu


@every("nu", [0.01, 0.05, 0.3, 0.75])
def test_share_of_outliers(nu):
    X, _ = scaled(load_wine, 40)
    copies = np.random.default_rng(1).integers(1, 4, len(X))
    rows = np.repeat(X, copies, axis=0)
    for data, weights in ((X, np.ones(len(X))), (rows, np.ones(len(rows))), (X, copies)):
        model = OneClassMKL(nu=nu).fit(data, sample_weight=weights)
        outliers, scores = model.predict(data) == -1, model.score_samples(data)
        boundary = np.abs(model.decision_function(data)) <= 2e-9 * scores.max()
        assert weights[outliers].sum() / weights.sum() <= nu
        assert weights[outliers | boundary].sum() / weights.sum() >= nu
        for x, out in zip(data[:10], outliers, strict=False):
            assert (model.predict(x[None])[0] == -1) == out

        def value(rho, scores=scores, weights=weights):
            return -rho + weights @ np.maximum(rho - scores, 0) / (nu * weights.sum())

        # A convex function that is linear between the scores has its least value at one of them.
        assert value(model.offset_) <= min(map(value, scores)) + 3e-9 * scores.max() / nu

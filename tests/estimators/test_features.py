"""`kernel` and `transform`: the learned kernel in other models, and against its formula."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.exceptions import NotFittedError
from sklearn.kernel_approximation import Nystroem
from sklearn.linear_model import Ridge
from sklearn.metrics.pairwise import linear_kernel, rbf_kernel
from sklearn.pipeline import make_pipeline
from sklearn.svm import SVC

import kernelopt as ko
from kernelopt.estimators import (
    KernelAlignment,
    KernelStack,
    MKLClassifier,
    MKLRegressor,
    OneClassMKL,
)

KERNELS = ["gaussian(0.7)", "gaussian(2.0)", "linear()"]
X, y = load_iris(return_X_y=True)
X, NEW, y = X[50:150:2], X[51:150:4], y[50:150:2]  # two classes
T = X[:, 0] * X[:, 1] + np.sin(X[:, 2])


def by_formula(model, A, B):
    """sum_m theta_m k_m / c_m with the constants mean k(x, x) - mean k(x, x') of the training samples."""

    def kernels(A, B):
        return [rbf_kernel(A, B, 1 / (2 * 0.7**2)), rbf_kernel(A, B, 1 / 8), linear_kernel(A, B)]

    distinct = np.unique(X, axis=0)
    assert len(distinct) == len(X)
    constants = [np.trace(K) / len(X) - K.mean() for K in kernels(X, X)]
    weights = np.atleast_2d(model.weights_).sum(axis=0)
    return sum(w * K / c for w, K, c in zip(weights, kernels(A, B), constants, strict=True))


@pytest.mark.parametrize(
    "model",
    [
        MKLClassifier(KERNELS, tol=1e-6).fit(X, y),
        MKLClassifier(KERNELS, multiclass="per-class", tol=1e-6).fit(X, np.arange(50) % 3),
        MKLRegressor(KERNELS, loss="squared", tol=1e-6).fit(X, T),
        KernelAlignment(KERNELS).fit(X, y),
    ],
    ids=lambda model: type(model).__name__,
)
def test_the_kernel_is_the_weighted_sum_of_the_normalised_kernels(model):
    np.testing.assert_allclose(model.kernel(NEW, X), by_formula(model, NEW, X), rtol=1e-9)
    np.testing.assert_allclose(model.kernel(X), by_formula(model, X, X), rtol=1e-9)
    np.testing.assert_allclose(model.kernel(NEW), by_formula(model, NEW, NEW), rtol=1e-9)


def test_a_machine_on_the_kernel_is_the_machine_of_the_model():
    model = MKLClassifier(KERNELS, C=2.0, tol=1e-8).fit(X, y)
    machine = SVC(kernel="precomputed", C=2.0, tol=1e-8).fit(model.kernel(X), y)
    np.testing.assert_allclose(
        machine.decision_function(model.kernel(NEW, X)), model.decision_function(NEW), atol=1e-4
    )


def test_linear_models_on_the_features_are_the_machines_of_the_model():
    model = MKLClassifier(KERNELS, C=2.0, tol=1e-8).fit(X, y)
    linear = SVC(kernel="linear", C=2.0, tol=1e-8).fit(model.transform(X), y)
    np.testing.assert_allclose(
        linear.decision_function(model.transform(NEW)), model.decision_function(NEW), atol=1e-4
    )
    regression = MKLRegressor(KERNELS, C=3.0, loss="squared", target_scale="none", tol=1e-8).fit(X, T)
    ridge = make_pipeline(regression, Ridge(1 / 3.0)).fit(X, T)
    np.testing.assert_allclose(ridge.predict(NEW), regression.predict(NEW), rtol=1e-4)
    support = model.transform(X[model.support_])
    f = model.transform(NEW) @ (support.T @ model.dual_coef_[0]) + model.intercept_
    np.testing.assert_allclose(f, model.decision_function(NEW), atol=1e-9)
    per_class = MKLClassifier(KERNELS, multiclass="per-class").fit(X, np.arange(50) % 3)
    features, r = per_class.transform(X), per_class.support_.size
    assert features.shape == (50, 3 * r)
    for k in range(3):
        part = features[:, k * r : (k + 1) * r]
        f = part @ (part[per_class.support_].T @ per_class.dual_coef_[k]) + per_class.intercept_[k]
        np.testing.assert_allclose(f, per_class.decision_function(X)[:, k], atol=1e-9)


def test_inner_products_are_the_kernel_at_the_support_points_and_of_nystroem_elsewhere():
    model = MKLClassifier("gaussian(0.7)", p=np.inf, normalize="none").fit(X, y)
    S = X[model.support_]
    features, at_support = model.transform(NEW), model.transform(S)
    np.testing.assert_allclose(features @ at_support.T, model.kernel(NEW, S), atol=1e-9)
    gamma = 1 / (2 * 0.7**2)
    known = Nystroem(gamma=gamma, n_components=len(S), random_state=0).fit(S).transform(NEW)
    np.testing.assert_allclose(features @ features.T, known @ known.T, atol=1e-6)
    assert np.linalg.matrix_rank(features) <= len(S) and features.shape == (len(NEW), len(S))
    below = model.kernel(NEW) - features @ features.T
    assert np.linalg.eigvalsh(below).min() > -1e-9


def test_features_have_names_and_files_have_them_too(tmp_path):
    model = OneClassMKL(KERNELS, nu=0.3).fit(X)
    names = model.get_feature_names_out().tolist()
    assert names == [f"oneclassmkl{j}" for j in range(model.support_.size)]
    frame = model.set_output(transform="pandas").transform(NEW)
    assert [*frame.columns] == names
    model.set_output(transform="default")
    loaded = ko.load(model.save(tmp_path / "model.npz"))
    np.testing.assert_array_equal(loaded.transform(NEW), model.transform(NEW))
    np.testing.assert_array_equal(loaded.kernel(NEW, X), model.kernel(NEW, X))
    fitted = MKLRegressor(KERNELS)
    np.testing.assert_allclose(fitted.fit_transform(X, T), fitted.transform(X))


def test_stacks_and_strings():
    both = np.concatenate([X, NEW])
    parsed = [ko.parse_kernel(text) for text in KERNELS]
    stack = KernelStack(ko.Grams.from_kernels(parsed, both))
    given = MKLClassifier(C=1.0, tol=1e-9).fit(stack[:50], y)
    points = MKLClassifier(KERNELS, C=1.0, tol=1e-9).fit(X, y)
    np.testing.assert_allclose(given.kernel(stack[50:], stack[:50]), points.kernel(NEW, X), atol=1e-4)
    np.testing.assert_allclose(given.kernel(stack[50:]), given.kernel(stack[50:], stack[50:]))
    features, support = given.transform(stack[50:]), given.transform(stack[given.support_])
    expected = given.kernel(stack[50:], stack[given.support_])
    np.testing.assert_allclose(features @ support.T, expected, atol=1e-8)
    spherical = MKLClassifier(normalize="spherical").fit(stack[:50], y)
    np.testing.assert_allclose(np.diag(spherical.kernel(stack)), spherical.weights_.sum())
    cross = stack[50:].cross(stack[:50])
    for call in (lambda: given.transform(cross), lambda: given.kernel(cross)):
        with pytest.raises(ko.InputError, match=r"must be a KernelStack for .* got .*Pass stack\[test\]"):
            call()
    words = ["".join(word) for word in np.random.default_rng(0).choice(list("ACG"), (12, 6))]
    labels = ["A" in word[:3] for word in words]
    model = KernelAlignment([ko.spectrum(1), ko.spectrum(2)]).fit(words, labels)
    np.testing.assert_allclose(model.kernel(words, words), model.transform(words))
    with pytest.raises(NotFittedError):
        MKLClassifier().kernel(X)
    with pytest.raises(NotFittedError):
        MKLClassifier().transform(X)

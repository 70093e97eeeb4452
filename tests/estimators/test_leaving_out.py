"""`leave_one_out` against loops that train a machine without each sample."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize
from sklearn.datasets import load_diabetes, load_iris
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, SVR

import kernelopt as ko
from kernelopt.estimators import (
    KernelStack,
    MKLClassifier,
    MKLClassifierCV,
    MKLRegressor,
    MKLRegressorCV,
    OneClassMKL,
    leave_one_out,
)
from tests.every import every

KERNELS = ["gaussian(0.7)", "gaussian(2.0)", "linear()"]
X, kinds = (data[::3] for data in load_iris(return_X_y=True))
A, b = X[17:], np.where(kinds[17:] > 1, "late", "early")
F, T = (data[:40] for data in load_diabetes(return_X_y=True))
WEIGHTS = 1.0 + np.arange(40) % 3


def loop(n, value):
    """The values `value(rest, i)` of the machines that are trained on the rest."""
    return np.array([value(np.delete(np.arange(n), i), i) for i in range(n)])


def by_equations(K, y, C):
    """The value at each sample of kernel ridge regression on the rest, by its linear equations."""

    def value(rest, i):
        n = rest.size
        M = np.block(
            [[K[np.ix_(rest, rest)] + np.diag(1 / C[rest]), np.ones((n, 1))], [np.ones((1, n)), 0.0]]
        )
        *alpha, intercept = np.linalg.solve(M, [*y[rest], 0.0])
        return K[i, rest] @ alpha + intercept

    return loop(len(y), value)


def test_the_closed_form_is_the_loop_over_the_equations():
    samples, targets = np.vstack([F, F[:3], F[:2]]), np.concatenate([T, T[:3] + 9, T[:2]])  # two are repeated
    weights = np.concatenate([WEIGHTS, [1.0, 2.0, 3.0, 0.5, 1.0]])
    model = MKLRegressor(["gaussian(0.2)", "linear()"], C=2.0, loss="squared")
    model.fit(samples, targets, sample_weight=weights)
    found = leave_one_out(model, samples, targets, weights)
    scaled = (targets - model.target_mean_) / model.target_unit_
    expected = by_equations(model.kernel(samples), scaled, 2.0 * weights)
    np.testing.assert_allclose(found, model.target_mean_ + model.target_unit_ * expected, rtol=1e-9)
    K, C = model.kernel(samples), 2.0 * weights  # and it is the residual over 1 - H_ii
    ones = np.ones((len(C), 1))
    inverse = np.linalg.inv(np.block([[K + np.diag(1 / C), ones], [ones.T, 0.0]]))[:-1, :-1]
    H = np.eye(len(C)) - inverse / C[:, None]
    np.testing.assert_allclose(scaled - expected, (scaled - H @ scaled) / (1 - np.diag(H)), atol=1e-8)


def test_machines_with_hinges_are_those_of_libsvm():
    for multiclass in ("shared", "per-class"):
        model = MKLClassifier(KERNELS, C=3.0, class_weight={"early": 2.0}, multiclass=multiclass)
        weights = 1.0 + np.arange(len(b)) % 2
        K = model.fit(A, b, sample_weight=weights).kernel(A)
        machine = SVC(kernel="precomputed", C=3.0, class_weight={"early": 2.0}, tol=1e-8)

        def value(rest, i, K=K, machine=machine, weights=weights):
            machine.fit(K[np.ix_(rest, rest)], b[rest], sample_weight=weights[rest])
            return machine.decision_function(K[i : i + 1, rest])[0]

        found = leave_one_out(model, A, b, weights)
        np.testing.assert_allclose(found, loop(len(b), value), atol=2e-3)
    options = {"loss": "epsilon_insensitive", "epsilon": 0.2, "target_scale": "none"}
    model = MKLRegressor(["gaussian(0.2)", "linear()"], C=2.0, **options)
    K = model.fit(F, T / 50).kernel(F)
    machine = SVR(kernel="precomputed", C=2.0, epsilon=0.2, tol=1e-8)

    def predicted(rest, i):
        return machine.fit(K[np.ix_(rest, rest)], T[rest] / 50).predict(K[i : i + 1, rest])[0]

    np.testing.assert_allclose(leave_one_out(model, F, T / 50), loop(40, predicted), atol=2e-3)


def test_logistic_machines_are_those_of_logistic_regression_on_the_features():
    model = MKLClassifier(KERNELS, C=3.0, loss="logistic").fit(A, b)
    features = model.transform(A)
    linear = LogisticRegression(C=3.0, tol=1e-10, max_iter=10_000)

    def value(rest, i):
        return linear.fit(features[rest], b[rest]).decision_function(features[i : i + 1])[0]

    np.testing.assert_allclose(leave_one_out(model, A, b), loop(len(b), value), atol=1e-3)


def test_machines_with_squared_hinges_are_those_of_scipy():
    model = MKLClassifier(KERNELS, C=0.5, loss="squared_hinge").fit(A, b)
    values, V = np.linalg.eigh(model.kernel(A))
    features, labels = V * np.sqrt(np.maximum(values, 0.0)), np.where(b == model.classes_[1], 1.0, -1.0)

    def value(rest, i):
        Phi, y = np.column_stack([features[rest], np.ones(rest.size)]), labels[rest]

        def objective(w):
            slack = np.maximum(1 - y * (Phi @ w), 0.0)
            penalty = np.append(w[:-1], 0.0)
            return w[:-1] @ w[:-1] / 2 + 0.5 * slack @ slack / 2, penalty - 0.5 * Phi.T @ (y * slack)

        w = minimize(objective, np.zeros(Phi.shape[1]), jac=True, method="BFGS", options={"gtol": 1e-8}).x
        return features[i] @ w[:-1] + w[-1]

    np.testing.assert_allclose(leave_one_out(model, A, b), loop(len(b), value), atol=1e-3)


def test_several_classes_chosen_C_stacks_and_weights_of_zero():
    model = MKLClassifierCV(KERNELS, Cs=[0.5, 5.0], cv=2).fit(X, kinds)
    values, plain = leave_one_out(model, X, kinds), MKLClassifier(KERNELS, C=model.C_).fit(X, kinds)
    assert values.shape == (50, 3)
    np.testing.assert_allclose(values, leave_one_out(plain, X, kinds), atol=1e-2)
    for k in range(3):
        K, labels = model.kernel(X), np.where(kinds == k, 1, -1)
        machine = SVC(kernel="precomputed", C=model.C_, tol=1e-8)

        def value(rest, i, K=K, labels=labels, machine=machine):
            return machine.fit(K[np.ix_(rest, rest)], labels[rest]).decision_function(K[i : i + 1, rest])[0]

        np.testing.assert_allclose(values[:, k], loop(50, value), atol=2e-3)
    per_class = MKLClassifier(KERNELS, multiclass="per-class").fit(X, kinds)
    outside = per_class.dual_coef_.any(axis=0)
    assert outside.all()
    free = np.setdiff1d(np.arange(50), per_class.support_)  # the machine without them is the machine
    np.testing.assert_allclose(
        leave_one_out(per_class, X, kinds)[free], per_class.decision_function(X)[free], atol=2e-3
    )
    stack = KernelStack(ko.Grams.from_kernels([ko.parse_kernel(text) for text in KERNELS], A))
    given, weights = MKLRegressor(loss="squared", target_scale="none"), np.arange(len(b)) % 3
    found = leave_one_out(given.fit(stack, A[:, 0], weights), stack, A[:, 0], weights)
    np.testing.assert_allclose(found[weights == 0], given.predict(stack)[weights == 0])
    rest = np.flatnonzero(weights)
    K = given.kernel(stack[rest])
    np.testing.assert_allclose(found[rest], by_equations(K, A[rest, 0], given.C_ * weights[rest]))
    search = MKLRegressorCV(KERNELS, Cs=[0.1], cv=2, loss="squared").fit(A, A[:, 0])
    direct = MKLRegressor(KERNELS, C=0.1, loss="squared").fit(A, A[:, 0])
    np.testing.assert_allclose(leave_one_out(search, A, A[:, 0]), leave_one_out(direct, A, A[:, 0]))


@every("multioutput", ["shared", "per-target"])
def test_several_targets_are_left_out_with_their_sample(multioutput):
    """The closed form, and machines of scikit-learn, on the kernel of each target without a sample."""
    samples, targets = F[:12], np.column_stack([T[:12], F[:12, 2], -1e3 * F[:12, 3] ** 2])
    kernels, weights = ["gaussian(0.1)", "linear()"], WEIGHTS[:12]
    grams = ko.Grams.from_kernels([*map(ko.parse_kernel, kernels)], samples)
    for loss, tolerance in (("squared", 1e-9), ("epsilon_insensitive", 5e-3)):
        options = {"C": 2.0, "loss": loss, "normalize": "none", "multioutput": multioutput}
        model = MKLRegressor(kernels, **options).fit(samples, targets, weights)
        found = leave_one_out(model, samples, targets, weights)
        scaled = (targets - model.target_mean_) / model.target_unit_
        assert found.shape == (12, 3)
        for k, theta in enumerate(np.broadcast_to(model.weights_, (3, 2))):
            K, y = grams.combine(theta), scaled[:, k]
            machine = SVR(kernel="precomputed", C=2.0, tol=1e-9)

            def value(rest, i, K=K, y=y, machine=machine):
                machine.fit(K[np.ix_(rest, rest)], y[rest], sample_weight=weights[rest])
                return machine.predict(K[i : i + 1, rest])[0]

            expected = by_equations(K, y, 2.0 * weights) if loss == "squared" else loop(12, value)
            units = (found[:, k] - model.target_mean_[k]) / model.target_unit_[k]
            np.testing.assert_allclose(units, expected, atol=tolerance)
        if multioutput == "per-target":
            alone = MKLRegressor(kernels, **options).fit(samples, targets[:, 1], weights)
            each = leave_one_out(alone, samples, targets[:, 1], weights)
            np.testing.assert_allclose(found[:, 1], each, rtol=1e-9)
        with pytest.raises(ko.InputError, match="X and y must be the data"):
            leave_one_out(model, samples, targets[:, 0], weights)


def test_what_has_no_machines_of_this_kind_or_other_data_is_said():
    model = MKLClassifier(KERNELS).fit(A, b)
    for call, words in (
        (lambda: leave_one_out(OneClassMKL(KERNELS).fit(A), A, b), "model must be a fitted MKLClassifier"),
        (lambda: leave_one_out(make_pipeline(StandardScaler(), model), A, b), r"pass pipe\[-1\]"),
        (lambda: leave_one_out(model, A[::-1], b), "X and y must be the data .* got 33 samples with other"),
        (lambda: leave_one_out(model, A, b[::-1]), "same X and y, in the same order"),
        (lambda: leave_one_out(model, A, np.where(b == "late", "y", "x")), "same X and y"),
        (lambda: leave_one_out(model, A, b, WEIGHTS[:33]), "with the same sample_weight"),
    ):
        with pytest.raises(ko.InputError, match=words):
            call()

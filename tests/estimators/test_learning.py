"""The learned weights and bounds are those of `kernelopt.solve` for the same problem, written by hand."""

from __future__ import annotations

import warnings

import cvxpy as cp
import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_wine
from sklearn.model_selection import GridSearchCV

import kernelopt as ko
from kernelopt.estimators import KernelStack, MKLClassifier, MKLRegressor, kernels
from kernelopt.grams import evaluated
from tests.every import every

KERNELS = [ko.gaussian(1.0), ko.gaussian(5.0), ko.polynomial(2), ko.linear()]


@pytest.fixture(scope="module")
def cancer():
    X, y = load_breast_cancer(return_X_y=True)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    return X[:90], y[:90], X[90:130]


@pytest.fixture(scope="module")
def wine():
    X, y = load_wine(return_X_y=True)
    chosen = np.random.default_rng(0).permutation(len(X))[:60]
    return ((X - X.mean(axis=0)) / X.std(axis=0))[chosen], y[chosen]


def problem(grams, labels, C, p):
    theta = cp.Variable(len(grams), nonneg=True)
    K = ko.combine(theta, grams)
    total = sum(ko.risk(K, y, ko.hinge(C)) for y in labels)
    return cp.Problem(cp.Minimize(total), ko.lp_ball(theta, p))


@every("p", [1, 4 / 3, 2, np.inf])
def test_weights_bounds_and_new_samples_are_those_of_the_problem(cancer, p):
    X, y, X_new = cancer
    model = MKLClassifier(KERNELS, p=p, C=0.7, tol=1e-7).fit(X, y)
    grams = ko.Grams.from_kernels(KERNELS, X).normalize("multiplicative")
    solution = ko.solve(problem(grams, [2.0 * y - 1], 0.7, p), tol=1e-7)
    assert model.certificate_.lower <= solution.upper
    assert solution.lower <= model.certificate_.upper
    assert model.dual_gap_ <= 1e-7
    assert np.abs(model.weights_ - solution.weights).max() < 2e-3
    values = solution.decision_function(grams.cross(X_new))
    assert np.abs(model.decision_function(X_new) - values).max() < 2e-3 * np.abs(values).max()
    grams = ko.Grams.from_kernels(KERNELS, X[model._rows]).normalize("multiplicative").center()
    own = model.solution_.decision_function(grams.cross(X_new))
    assert np.abs(model.decision_function(X_new) - own).max() < 1e-8 * np.abs(values).max()


@pytest.mark.slow
def test_cvxpy_does_not_ask_to_vectorise_what_the_estimator_has_written():
    """2100 kernels of ten risks are more than its 10,000 subexpressions; warnings are errors."""
    F = np.random.default_rng(0).normal(size=(210, 20, 2))
    model = MKLClassifier(C=0.1, tol=0.1).fit(F @ F.transpose(0, 2, 1), np.arange(20) % 10)
    assert model.weights_.shape == (210,) and model.dual_gap_ <= 0.1


@every("loss", ["hinge", "squared_hinge", "logistic"])
def test_extreme_data_print_nothing_and_warn_of_what_they_say_alone(loss, capfd):
    """Solvers write to the file of the process, and numpy and cvxpy warn by classes of their own."""
    X = np.random.default_rng(0).normal(size=(40, 3))
    y = X[:, 0] + X[:, 1] ** 2 > 0.5
    with warnings.catch_warnings(record=True) as given:
        warnings.simplefilter("always")
        for unit in (1e-8, 1e150):
            MKLClassifier(loss=loss).fit(unit * X, y)
            MKLRegressor().fit(X, unit * X[:, 0])
        for C in (1e-12, 1e12):
            MKLClassifier(C=C, loss=loss).fit(X, y)
    assert capfd.readouterr() == ("", "")
    assert all(each.category.__module__ == "kernelopt.errors" for each in given)


def test_shared_weights_minimise_the_sum_of_the_risks(wine):
    X, y = wine
    shared = MKLClassifier(KERNELS, C=1.0, p=2, tol=1e-5).fit(X, y)
    own = MKLClassifier(KERNELS, C=1.0, p=2, tol=1e-5, multiclass="per-class").fit(X, y)
    grams = ko.Grams.from_kernels(KERNELS, X).normalize("multiplicative")
    solution = ko.solve(problem(grams, [np.where(y == k, 1.0, -1.0) for k in range(3)], 1.0, 2), "exact")
    assert shared.weights_.shape == (4,) and shared.weights_unique_ is True
    assert own.weights_.shape == (3, 4)
    assert shared.certificate_.lower <= solution.upper * (1 + 1e-12)
    assert solution.lower <= shared.certificate_.upper
    assert sum(c.lower for c in own.certificate_) <= solution.upper  # own weights can only be better
    assert shared.decision_function(X).shape == (60, 3)
    assert (shared.predict(X) == y).all()


@every("normalize", ["multiplicative", "spherical", "trace", "none"])
def test_points_and_precomputed_kernels_give_one_model(cancer, normalize):
    X, y, X_new = cancer
    options = {"normalize": normalize, "tol": 1e-6, "C": 0.3}
    points = MKLClassifier(KERNELS, **options).fit(X, y)
    stack = KernelStack(ko.Grams.from_kernels(KERNELS, np.vstack([X, X_new])))
    given = MKLClassifier(**options).fit(stack[: len(X)], y)
    assert np.abs(given.weights_ - points.weights_).max() < 1e-3
    expected, new = points.decision_function(X_new), stack[len(X) :]
    cross = [new] if normalize == "spherical" else [new, new.cross(stack[: len(X)])]  # or as an array
    for samples in cross:
        assert np.abs(given.decision_function(samples) - expected).max() < 1e-3 * np.abs(expected).max()


def test_strings_are_samples_as_their_precomputed_kernels_are_and_have_kernels_of_strings():
    drawn = np.random.default_rng(0).choice(list("ACG"), (60, 8))
    words = np.array(list(dict.fromkeys("".join(word) for word in drawn))[:58])
    y = np.char.count(words, "CA") > 0
    kernels = [ko.spectrum(1), ko.spectrum(2), ko.weighted_degree(2)]
    stack = KernelStack(ko.Grams.from_kernels(kernels, words))
    for samples in (words, words.tolist()):
        found = GridSearchCV(MKLClassifier(kernels), {"C": [0.1, 1.0]}, cv=3).fit(samples, y)
        assert np.isfinite(found.cv_results_["mean_test_score"]).all()
        model = found.best_estimator_
        given = MKLClassifier(C=model.C).fit(stack, y)
        # One optimum lies between all bounds, while machines of a given gap may differ by its root.
        bounds = model.certificate_, given.certificate_
        assert max(b.lower for b in bounds) <= min(b.upper for b in bounds)
        assert max(model.dual_gap_, given.dual_gap_) <= model.tol
        grams = ko.Grams.from_kernels(kernels, words[model._rows]).normalize("multiplicative").center()
        own = model.solution_.decision_function(grams.cross(words[:5]))
        assert found.decision_function(samples[:5]) == pytest.approx(own)
    assert MKLRegressor(kernels).fit(words, y + 0.5).predict(words[:2]).shape == (2,)
    text = r"got text in .*OneHotEncoder.*spectrum\(3\).*KernelStack"
    wrong = [(None, "got the default kernels.*spectrum.*KernelStack"), (["linear()"], r"got linear\(\)")]
    wrong.append(([("a", ko.spectrum(2), 0)], r"got spectrum\(k=2\) of the columns 0"))
    for given, said in wrong:
        with pytest.raises(ko.errors.ParameterError, match=f"strings must have.*{said}"):
            MKLClassifier(given).fit(words, y)
    with pytest.raises(ko.InputError, match=text):
        MKLClassifier().fit(words.reshape(-1, 2), y[::2])
    with pytest.raises(ko.InputError, match="must hold strings"):
        found.predict(np.ones((3, 4)))
    with pytest.raises(ko.InputError, match="must be points"):
        MKLClassifier("linear()").fit(np.arange(58.0)[:, None], y).predict(words)


def test_prediction_evaluates_only_kernels_with_a_weight_at_support_points(cancer):
    X, y, X_new = cancer
    calls = []

    def seen(A, B):
        calls.append(len(B))
        return A @ B.T

    def useless(A, B):
        calls.append("useless")
        return 1e-3 * np.eye(len(A)) if A.shape == B.shape and (A == B).all() else np.zeros((len(A), len(B)))

    model = MKLClassifier([seen, useless], p=1, normalize="none", method="newton").fit(X, y)
    assert model.weights_[1] == 0
    calls.clear()
    model.predict(X_new)
    assert calls == [len(model.support_)]
    assert len(model.support_) < len(X)


def test_a_fitted_model_holds_no_matrices(cancer):
    X, y, _ = cancer
    model = MKLClassifier(KERNELS).fit(X, y)
    (part,) = model.solution_.learned[0].parts
    leaf = part.grams.storage
    while hasattr(leaf, "base"):
        leaf = leaf.base
    assert not any(i in leaf._cache for i in range(len(KERNELS)))
    values = model.solution_.decision_function()  # the matrices are evaluated again
    assert np.allclose(values, model.decision_function(X[model._rows]))


@pytest.mark.slow
def test_results_do_not_depend_on_order_and_repeated_samples_are_weights(cancer):
    X, y, X_new = cancer
    model = MKLClassifier(C=0.5).fit(X, y)
    order = np.random.default_rng(3).permutation(len(X))
    again = MKLClassifier(C=0.5).fit(X[order], y[order])
    assert (again.decision_function(X_new) == model.decision_function(X_new)).all()
    assert (np.sort(order[again.support_]) == np.sort(model.support_)).all()
    counts = np.random.default_rng(4).integers(0, 4, len(y))
    weighted = MKLRegressor(C=0.5).fit(X, y, sample_weight=counts)
    repeated = MKLRegressor(C=0.5).fit(X.repeat(counts, axis=0), y.repeat(counts))
    assert (weighted.predict(X_new) == repeated.predict(X_new)).all()


def test_normalisation_uses_the_constants_of_the_training_samples(cancer):
    X, y, X_new = cancer
    model = MKLClassifier("linear()", normalize="multiplicative").fit(X, y)
    assert model._trained.constants == pytest.approx([X.var(axis=0).sum()])
    assert np.allclose(model.decision_function(X_new)[:1], model.decision_function(X_new[:1]))


@every("normalize", ["multiplicative", "trace"])
def test_large_matrices_of_points_are_not_kept_for_their_constants(cancer, normalize, monkeypatch):
    """Limits of memory that are small stand for many samples; the constants and the model are the same."""
    X, y, new = cancer
    given = [*KERNELS, 2.0 * ko.gaussian(2.0) + ko.on_columns(ko.linear(), [0, 3])]
    weights = 1.0 + np.arange(len(y)) % 3
    known = MKLClassifier(given, C=1.0, normalize=normalize, tol=1e-8).fit(X, y, weights)
    monkeypatch.setattr(kernels, "CACHE_BYTES", 0)
    monkeypatch.setattr(evaluated, "PAIRS", 7 * len(y))
    kept = []
    monkeypatch.setattr(evaluated.KernelStorage, "_evaluated", lambda storage, i: kept.append(i))
    trained, _ = kernels.trained_on_points(known._trained.dictionary, X, normalize, weights)
    assert not kept
    np.testing.assert_allclose(trained.constants, known._trained.constants, rtol=1e-13)
    monkeypatch.undo()
    monkeypatch.setattr(kernels, "CACHE_BYTES", 0)
    model = MKLClassifier(given, C=1.0, normalize=normalize, tol=1e-8).fit(X, y, weights)
    np.testing.assert_allclose(model.decision_function(new), known.decision_function(new), atol=1e-5)

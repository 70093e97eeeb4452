"""Regressions of several targets: one stack, with weights that all share or weights for each."""

from __future__ import annotations

import cvxpy as cp
import numpy as np
import pytest
from sklearn.kernel_ridge import KernelRidge
from sklearn.metrics import r2_score
from sklearn.model_selection import cross_val_score
from sklearn.multiclass import OneVsRestClassifier
from sklearn.multioutput import MultiOutputRegressor

import kernelopt as ko
from kernelopt.estimators import LinearFunctionalMKLRegressor, MKLClassifier, MKLRegressor, MKLRegressorCV
from tests.every import every

RNG = np.random.default_rng(0)
X = RNG.normal(size=(50, 3))
Y = np.stack([np.sin(X[:, 0]), 100 * X[:, 1] ** 2, 5 + X[:, 2]], axis=1)
NEW = RNG.normal(size=(7, 3))
KERNELS = [ko.gaussian(1.0), ko.polynomial(2), ko.linear()]
OPTIONS = {"C": 5.0, "p": 1.5, "tol": 1e-6}


@every("loss", ["squared", "epsilon_insensitive"])
def test_weights_for_each_target_are_the_weights_of_separate_regressions(loss):
    model = MKLRegressor(KERNELS, loss=loss, multioutput="per-target", **OPTIONS).fit(X, Y)
    apart = MultiOutputRegressor(MKLRegressor(KERNELS, loss=loss, **OPTIONS)).fit(X, Y)
    assert model.predict(NEW) == pytest.approx(apart.predict(NEW), rel=1e-9, abs=1e-9)
    assert model.weights_ == pytest.approx(np.array([each.weights_ for each in apart.estimators_]))
    assert [c.gap <= 1e-6 for c in model.certificate_] == [True] * 3 and model.intercept_.shape == (3,)


@every("sample_weight", [None, np.where(X[:, 0] > 0, 2.0, 0.5)])
def test_shared_weights_minimise_the_sum_of_the_risks(sample_weight):
    """The problem by hand, for targets in units of their weighted deviations."""
    model = MKLRegressor(KERNELS, loss="squared", **OPTIONS).fit(X, Y, sample_weight=sample_weight)
    v = np.ones(50) if sample_weight is None else sample_weight
    mean = np.average(Y, axis=0, weights=v)
    unit = np.sqrt(np.average((Y - mean) ** 2, axis=0, weights=v))
    if sample_weight is None:
        grams = ko.Grams.from_kernels(KERNELS, X).normalize("multiplicative")
        theta = cp.Variable(3, nonneg=True)
        K = ko.combine(theta, grams)
        total = sum(ko.risk(K, y, ko.squared(5.0)) for y in ((Y - mean) / unit).T)
        by_hand = ko.solve(cp.Problem(cp.Minimize(total), ko.lp_ball(theta, 1.5)), tol=1e-7)
        assert model.certificate_.lower <= by_hand.upper and by_hand.lower <= model.certificate_.upper
        assert model.weights_ == pytest.approx(by_hand.weights, abs=1e-3)
        K = np.tensordot(model.weights_, np.asarray(grams), 1)
        centre = np.eye(50) - 1 / 50
        ridge = KernelRidge(alpha=1 / 5.0, kernel="precomputed").fit(centre @ K @ centre, Y - mean)
        expected = mean + centre @ K @ centre @ ridge.dual_coef_
        assert model.predict(X) == pytest.approx(expected, rel=1e-3, abs=1e-3 * np.abs(Y).max())
    assert model.target_mean_ == pytest.approx(mean) and model.target_unit_ == pytest.approx(unit)
    assert model.weights_.shape == (3,) and model.dual_coef_.shape == (3, model.support_.size)


def test_one_kernel_has_one_weight_either_way():
    one = {"kernels": "gaussian(1.0)", "tol": 1e-9}
    shared, apart = (MKLRegressor(**one, multioutput=how).fit(X, Y) for how in ("shared", "per-target"))
    assert shared.predict(NEW) == pytest.approx(apart.predict(NEW), rel=1e-4, abs=1e-3)


def test_several_targets_are_scored_saved_certified_and_cross_validated(tmp_path):
    for how in ("shared", "per-target"):
        model = MKLRegressor(KERNELS, C=5.0, multioutput=how).fit(X, Y)
        assert model.score(X, Y) == pytest.approx(r2_score(Y, model.predict(X)))
        huge = np.array([1e200, 1.0, 1e-200])
        scaled = MKLRegressor(KERNELS, C=5.0, multioutput=how).fit(X, Y * huge)
        assert scaled.score(X, Y * huge) == pytest.approx(model.score(X, Y), rel=1e-3)
        loaded = ko.load(model.save(tmp_path / "model.npz"))
        assert np.array_equal(loaded.predict(NEW), model.predict(NEW))
        found = loaded.certify(X, Y)
        assert all(each.gap <= 1e-3 for each in (found if how == "per-target" else (found,)))
        with pytest.raises(ko.InputError, match="y must be the data"):
            loaded.certify(X, Y[:, ::-1])
    assert cross_val_score(MKLRegressor(KERNELS), X, Y, cv=3).mean() > 0.5
    options = {"multioutput": "per-target", "tol": 1e-5}
    searched = MKLRegressorCV(KERNELS, Cs=[0.01, 5.0], cv=3, **options).fit(X, Y)
    assert searched.C_ == 5.0 and searched.weights_.shape == (3, 3)
    model = MKLRegressor(KERNELS, C=5.0, **options).fit(X, Y)
    assert searched.predict(NEW) == pytest.approx(model.predict(NEW))
    each = cross_val_score(MKLRegressor(KERNELS, C=5.0, **options), X, Y, cv=3)
    assert searched.scores_[:, 1] == pytest.approx(each, abs=1e-3)


def test_what_are_no_targets_is_said():
    with pytest.raises(ko.InputError, match="multioutput must be"):
        MKLRegressor(multioutput="both").fit(X, Y)
    with pytest.warns(UserWarning, match="column-vector y was passed"):
        assert MKLRegressor(KERNELS).fit(X, Y[:, :1]).predict(NEW).shape == (7,)
    with pytest.raises(ValueError, match="y should be a 1d array"):
        LinearFunctionalMKLRegressor(KERNELS).fit(X, Y)
    with pytest.raises(
        ko.InputError, match=r"got shape \(50, 3\) in MKLC.* to OneVsRestClassifier\(MKLClass"
    ):
        MKLClassifier(KERNELS).fit(X, Y > np.median(Y, axis=0))
    labels = OneVsRestClassifier(MKLClassifier(KERNELS)).fit(X, Y > np.median(Y, axis=0))
    first = MKLClassifier(KERNELS).fit(X, Y[:, 0] > np.median(Y[:, 0]))
    assert (labels.predict(NEW)[:, 0] == first.predict(NEW)).all()
    model = MKLRegressor(KERNELS).fit(X, Y)
    with pytest.raises(
        ko.InputError, match=r"y must have the shape \(50, 3\) of what is predicted, got \(50,\)"
    ):
        model.score(X, Y[:, 0])

"""Masks, times, scales, labels of one class and equal names, once misread: each is refused or read right."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import kernelopt as ko
from formulations import linear_functional, lp_norm, similarity
from kernelopt.estimators import (
    KernelStack,
    LinearFunctionalMKLRegressor,
    MKLClassifier,
    MKLRegressor,
    SimilarityClassifier,
)
from kernelopt.estimators.dictionary import fit_dictionary
from tests.problems import points

N = 12
X = points(N, d=3)
Y = np.where(X[:, 0] > np.median(X[:, 0]), 1, -1)
T = X[:, 1] + X[:, 0] ** 2
KERNELS = ["gaussian(1.0)", "linear()"]
HIDDEN = np.arange(N) == 3


def test_masks_are_not_dropped():
    masked_points = np.ma.array(X, mask=np.repeat(HIDDEN[:, None], 3, axis=1))
    model, classifier = MKLRegressor(KERNELS).fit(X, T), MKLClassifier(KERNELS).fit(X, Y)
    for call in (
        lambda: MKLClassifier(KERNELS).fit(masked_points, Y),
        lambda: MKLClassifier(KERNELS).fit(X, np.ma.array(Y, mask=HIDDEN)),
        lambda: MKLRegressor(KERNELS).fit(X, np.ma.array(T, mask=HIDDEN)),
        lambda: MKLRegressor(KERNELS).fit(X, T, np.ma.array(T**2, mask=HIDDEN)),
        lambda: model.predict(masked_points),
        lambda: model.certify(X, np.ma.array(T, mask=HIDDEN)),
        lambda: model.score(X, np.ma.array(T, mask=HIDDEN)),
        lambda: classifier.score(X, np.ma.array(Y, mask=HIDDEN)),
    ):
        with pytest.raises(ko.errors.NotFiniteError, match="must have no masked entries, got [13]"):
            call()
    unmasked = MKLRegressor(KERNELS).fit(np.ma.array(X), np.ma.array(T))
    assert np.array_equal(unmasked.predict(X), model.predict(X))


@pytest.mark.parametrize("scale", [1e200, 1e155, 1e-200, 1e-300])
def test_predictions_have_the_scale_of_the_targets(scale):
    model, scaled = MKLRegressor(KERNELS).fit(X, T), MKLRegressor(KERNELS).fit(X, T * scale)
    assert scaled.predict(X) / scale == pytest.approx(model.predict(X), rel=1e-3, abs=1e-3)
    assert scaled.certify(X, T * scale).gap < 1e-2


@pytest.mark.parametrize("scale", [1e200, 1e-200])
def test_the_default_kernels_have_the_scale_of_the_points(scale):
    model, scaled = MKLClassifier().fit(X, Y), MKLClassifier().fit(X * scale, Y)
    assert scaled.decision_function(X * scale) == pytest.approx(model.decision_function(X), abs=1e-2)


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: MKLRegressor(KERNELS, target_scale="none").fit(X, T * 1e200), "y must be at most 1e\\+150"),
        (lambda: MKLRegressor(KERNELS).fit(X, T * 1e305), "y must hold numbers of at most 1e\\+300"),
        (lambda: LinearFunctionalMKLRegressor(KERNELS).fit(X, T * 1e200), "targets must be at most 1e\\+150"),
        (lambda: LinearFunctionalMKLRegressor(KERNELS).fit(X, T * 1e-200), "targets must be zero or"),
        (lambda: MKLClassifier(KERNELS).fit(X * 1e200, Y), "values of gaussian.*must be finite.*Scale"),
        (lambda: MKLClassifier().fit(X * 1e305, Y), "X must be finite and at most 1e\\+300"),
        (lambda: SimilarityClassifier().fit(X @ X.T * 1e200, Y), "similarities must be at most 1e\\+150"),
        (lambda: ko.risk(np.eye(N), T * 1e200, ko.squared()), "y must be at most 1e\\+150 .*Divide"),
        (lambda: ko.hinge(1e200), "C must be at most 1e\\+150"),
        (lambda: ko.Grams.rank_one(X * 1e200), "V must hold numbers of at most 1e\\+150"),
        (
            lambda: linear_functional.functional_strategy(X[None] @ X.T, T * 1e100, regularization=1.0),
            "targets must be zero or have a largest size from 1e-70 to 1e\\+70",
        ),
        (lambda: similarity.optimal_kernel(X @ X.T, T * 1e200, rho=1.0), "alpha must be at most 1e\\+150"),
    ],
)
def test_what_no_double_holds_is_refused(call, said):
    with pytest.raises(ko.InputError, match=said):
        call()


@pytest.mark.parametrize("kind", ["m8[s]", "M8[s]"])
def test_times_are_no_numbers(kind):
    for call in (
        lambda: MKLRegressor(KERNELS).fit(X, np.arange(N).astype(kind)),
        lambda: MKLRegressor(KERNELS).fit(np.arange(2 * N).reshape(N, 2).astype(kind), T),
        lambda: MKLRegressor(KERNELS).fit(np.arange(2 * N).reshape(N, 2).astype(kind).astype(object), T),
    ):
        with pytest.raises(ko.InputError, match="must be an array of real numbers"):
            call()


def test_data_frames_with_times_or_two_columns_of_one_name():
    frame = pd.DataFrame(X, columns=["a", "b", "a"])
    with pytest.raises(ko.InputError, match=r"X must have columns of different names, got two of .*'a'"):
        MKLRegressor(KERNELS).fit(frame, T)
    frame = pd.DataFrame(X, columns=list("abc")).assign(c=pd.to_timedelta(np.arange(N), unit="s"))
    with pytest.raises(ko.InputError, match=r"X\['c'\] must be .*timedelta64.*Divide by a unit of time"):
        MKLRegressor(KERNELS).fit(frame, T)


def test_labels_of_one_class_are_not_ignored():
    grams = np.array([np.eye(N)])
    for y in (Y, T, np.zeros(N)):
        with pytest.raises(ko.errors.LabelError, match="y must be None, or ones for the first points"):
            lp_norm.primal(grams, y, p=2, loss=ko.one_class())


def test_kernels_have_different_names():
    assert fit_dictionary(["linear()", "linear()", ("linear()", "gaussian(1.0)", [0])], X).names == (
        "linear()",
        "linear() (2)",
        "linear() (3)",
    )
    twice = ko.Grams.from_kernels([ko.linear(), ko.linear()], X)
    assert twice.names == ("linear()", "linear() (2)") and twice.subset([1]).names == ("linear() (2)",)
    for call in (
        lambda: fit_dictionary([("a", "linear()", [0]), ("a", "linear()", [1])], X),
        lambda: ko.Grams.from_array(np.array([np.eye(3)] * 2), ["a", "a"]),
        lambda: KernelStack(np.array([np.eye(3)] * 2), ["a", "a"]),
    ):
        with pytest.raises(ko.errors.ParameterError, match=r"different.* got .*'a'"):
            call()
    three = np.array([np.eye(3)] * 3)
    assert ko.Grams.from_array(three, ["a", "b", "a (2)"]).subset([0, 0, 2]).names == ("a", "a (3)", "a (2)")

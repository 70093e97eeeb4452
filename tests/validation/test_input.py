"""Masks, times, scales, labels of one class and equal names, once misread: each is refused or read right."""

from __future__ import annotations

from datetime import date, datetime, time, timedelta
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import r2_score

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
MACHINE = MKLClassifier(KERNELS).fit(X, Y)


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


WEIGHTS = 1.0 + np.arange(N) % 3


@pytest.mark.parametrize("weights", [None, WEIGHTS, 2.0**1020 * WEIGHTS], ids=["none", "some", "large"])
@pytest.mark.parametrize("unit", [1.0, 2.0**-600, 2.0**660], ids=["one", "small", "large"])
def test_the_score_of_a_regressor_has_no_unit(unit, weights):
    model = MKLRegressor(KERNELS).fit(X, unit * T)
    found, predicted = model.score(X, unit * T[::-1], weights), model.predict(X) / unit
    assert found == r2_score(T[::-1], predicted, sample_weight=weights if weights is None else WEIGHTS)
    assert model.score(X, np.zeros(N)) == 0.0  # scikit-learn's value of constant targets


def test_the_score_reads_its_weights_as_fit_does():
    regressor, classifier = MKLRegressor(KERNELS).fit(X, T), MKLClassifier(KERNELS).fit(X, Y)
    hidden = np.ma.array(WEIGHTS, mask=HIDDEN)
    for weights, said in ((hidden, "masked"), (-WEIGHTS, "negative"), (WEIGHTS[1:], "one entry for each")):
        for call in (lambda w=weights: regressor.score(X, T, w), lambda w=weights: classifier.score(X, Y, w)):
            with pytest.raises(ko.InputError, match=f"sample_weight must .*{said}"):
                call()


OBJECTS = {
    "date": (date(2020, 1, 2), "got .*date.* at index .*Count from a first date"),
    "datetime": (datetime(2020, 1, 2), "got .*datetime.* at index .*Count from a first date"),
    "timestamp": (pd.Timestamp("2020-01-02"), "got .*Timestamp.* at index .*Count from a first date"),
    "datetime64": (np.datetime64("2020-01-02"), "got .*datetime64.* at index .*Count from a first date"),
    "timedelta": (timedelta(days=3), "got .*timedelta.* at index .*Divide by a unit of time"),
    "timedelta64": (np.timedelta64(3, "D"), "got .*timedelta.* at index .*Divide by a unit of time"),
    "time": (time(12), r"got .*datetime.time\(12, 0\) at index .*Write numbers in the place"),
    "period": (pd.Period("2020-01"), r"got .*Period\('2020-01', 'M'\) at index .*Write numbers"),
    "dict": ({"foo": "bar"}, "got .*foo.* at index .*Write numbers"),
    "list": (np.array([1.0, 2.0]), "got .*1.0, 2.0.* at index .*Write numbers"),
    "record": (np.void(b"1"), "got .*void.* at index .*Take one field"),
    "complex": (1j, "got .*1j at index .*Take .real"),
    "NaT": (pd.NaT, "must be finite, got NaT at index .*Impute"),
    "NA": (pd.NA, "must be finite, got <NA> at index .*Impute"),
    "no time": (np.datetime64("NaT"), "must be finite, got .*NaT.* at index .*Impute"),
}


@pytest.mark.parametrize("name", OBJECTS)
def test_objects_that_are_no_numbers_are_named_with_what_to_do(name):
    entry, said = OBJECTS[name]
    points, targets = X.astype(object), T.astype(object)
    points[1, 2], targets[1] = entry, entry
    regressor = MKLRegressor(KERNELS)
    for call in (
        lambda: regressor.fit(points, T),
        lambda: regressor.fit(X, targets),
        lambda: regressor.fit(X, T, sample_weight=targets),
        lambda: ko.Grams.from_kernels([ko.linear()], points),
        lambda: ko.risk(np.eye(N), targets, ko.squared()),
        *([lambda: regressor.fit(pd.DataFrame(points), T)] if name != "complex" else ()),
    ):
        with pytest.raises(ko.InputError, match=said):
            call()
    with pytest.raises(ko.errors.LabelError, match="y must hold (classes|a label)"):
        MKLClassifier(KERNELS).fit(X, targets)


@pytest.mark.parametrize("number", [Decimal, Fraction.from_float, np.longdouble, np.float32])
def test_numbers_of_any_class_are_numbers(number):
    points, targets = (np.vectorize(number, otypes=[object])(np.round(64 * a) / 64) for a in (X, T))
    expected = MKLRegressor(KERNELS).fit(np.round(64 * X) / 64, np.round(64 * T) / 64).predict(X)
    assert np.array_equal(MKLRegressor(KERNELS).fit(points, targets).predict(X), expected)


def test_the_advice_for_times_is_right():
    """The cures of the message, as they are printed there."""
    dates, spans = [date(2020, 1, 1), date(2020, 1, 3)], [timedelta(days=1), timedelta(days=3)]
    t = np.asarray(dates, dtype="datetime64[us]")
    assert np.array_equal((t - t.min()) / np.timedelta64(1, "D"), [0.0, 2.0])
    assert np.array_equal(np.asarray(spans, dtype="timedelta64[us]") / np.timedelta64(1, "D"), [1.0, 3.0])


def test_data_frames_with_times_or_two_columns_of_one_name():
    frame = pd.DataFrame(X, columns=["a", "b", "a"])
    with pytest.raises(ko.InputError, match=r"X must have columns of different names, got two of .*'a'"):
        MKLRegressor(KERNELS).fit(frame, T)
    frame = pd.DataFrame(X, columns=list("abc")).assign(c=pd.to_timedelta(np.arange(N), unit="s"))
    with pytest.raises(ko.InputError, match=r"X\['c'\] must be .*timedelta64.*Divide by a unit of time"):
        MKLRegressor(KERNELS).fit(frame, T)


@pytest.mark.parametrize(
    ("points", "said"),
    [
        (pd.DataFrame(X)[[]], "X must have a column at least, got none in the samples of MKLClassifier"),
        (pd.DataFrame(X).astype(pd.SparseDtype(float)), r"X must have dense columns, got Sparse.*to_dense"),
        (pd.Series(X[:, 0]), "Expected a 2-dimensional container"),
        ({"a": X}, "kernels must be None for precomputed kernels, got both|X must be .* numbers, got dict"),
    ],
)
def test_frames_without_dense_columns_series_and_dicts_are_no_points(points, said):
    for call in (lambda: MKLClassifier(KERNELS).fit(points, Y), lambda: MACHINE.predict(points)):
        with pytest.raises(ValueError, match=said):
            call()


def test_a_path_has_no_null_character():
    for call in (lambda: MACHINE.save("a\0b"), lambda: ko.load("a\0b")):
        with pytest.raises(ko.InputError, match="path must be the path of a file, got 'a"):
            call()


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

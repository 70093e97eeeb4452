"""`stability` against loops of whole fits."""

from __future__ import annotations

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
from joblib import parallel_config
from matplotlib.figure import Figure
from scipy.stats import sem
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris
from sklearn.model_selection import KFold, StratifiedKFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

import kernelopt as ko
from kernelopt.estimators import KernelStack, MKLClassifier, MKLRegressor, MKLRegressorCV, stability

mpl.use("Agg")

KERNELS = ["gaussian(3.0)", "gaussian(9.0)", "linear()"]
X, y = (data[:80] for data in load_breast_cancer(return_X_y=True))
X = StandardScaler().fit_transform(X)
MODEL = MKLClassifier(KERNELS, C=1.0, p=2, tol=1e-6)
F, T = (data[:80] for data in load_diabetes(return_X_y=True))
REGRESSION = MKLRegressor(["gaussian(0.2)", "linear()"], C=1.0, p=2, loss="squared", tol=1e-6)


def without(kernels, i):
    return [kernel for j, kernel in enumerate(kernels) if j != i]


@pytest.fixture(scope="module")
def found():
    return stability(MODEL, X, y, 6, cv=3, random_state=0)


def test_the_weights_are_those_of_fits_with_weighted_samples(found):
    rng, classes = np.random.default_rng(0), np.unique(y)
    for row in found.resampled:
        drawn = np.concatenate([rng.choice(np.flatnonzero(y == c), (y == c).sum()) for c in classes])
        counts = np.bincount(drawn, minlength=len(y))
        np.testing.assert_array_equal(
            [counts[y == c].sum() for c in classes], [(y == c).sum() for c in classes]
        )
        expected = clone(MODEL).fit(X, y, sample_weight=counts).weights_
        np.testing.assert_allclose(row, expected, atol=1e-3)
    np.testing.assert_allclose(found.weights, clone(MODEL).fit(X, y).weights_)
    rng = np.random.default_rng(1)
    regression = stability(REGRESSION, F, T, 3, cv=2, random_state=1)
    for row in regression.resampled:
        drawn = rng.integers(len(T), size=len(T))
        expected = clone(REGRESSION).fit(F[drawn], T[drawn]).weights_
        np.testing.assert_allclose(row, expected, atol=1e-3)


def test_the_losses_are_those_of_models_of_the_other_kernels(found):
    splits = StratifiedKFold(3)
    scores = cross_val_score(MODEL, X, y, cv=splits)
    assert found.score == pytest.approx(scores.mean())
    for i in range(3):
        rest = clone(MODEL).set_params(kernels=without(KERNELS, i))
        np.testing.assert_allclose(found.losses[:, i], scores - cross_val_score(rest, X, y, cv=splits))
    options = {"cv": KFold(2), "scoring": "neg_mean_absolute_error"}
    regression = stability(REGRESSION, F, T, 2, random_state=0, **options)
    scores = cross_val_score(REGRESSION, F, T, **options)
    for i in range(2):
        rest = clone(REGRESSION).set_params(kernels=without(REGRESSION.kernels, i))
        expected = scores - cross_val_score(rest, F, T, **options)
        np.testing.assert_allclose(regression.losses[:, i], expected, atol=0.05)
    assert regression.measure == "neg_mean_absolute_error"


def test_the_table_has_quantiles_and_standard_errors(found):
    frame = pd.DataFrame(found.as_dict()).set_index("kernel")
    assert [*frame.index] == KERNELS_SHOWN and found.names == tuple(KERNELS_SHOWN)
    for i, name in enumerate(KERNELS_SHOWN):
        row, weights = frame.loc[name], found.resampled[:, i]
        assert row["lower"] == pytest.approx(np.quantile(weights, 0.025))
        assert row["upper"] == pytest.approx(np.quantile(weights, 0.975))
        assert row["used"] == np.mean(weights > 1e-6 * found.resampled.max(axis=1))
        assert row["loss"] == pytest.approx(found.losses[:, i].mean())
        assert row["standard_error"] == pytest.approx(sem(found.losses[:, i]))
    lines = str(found).splitlines()
    assert lines[0] == f"6 resamples; accuracy {found.score:.3f} with all kernels"
    assert lines[1].split()[:5] == ["kernel", "weight", "2.5%", "97.5%", "used"] and len(lines) == 5
    assert repr(found) == str(found)
    ax = found.plot(ax=Figure().subplots())
    assert [label.get_text() for label in ax.get_yticklabels()] == KERNELS_SHOWN
    *losses, head = (text.get_text() for text in ax.texts)
    assert head.startswith("accuracy lost without it") and losses == [
        f"{loss:+.3f} ± {error:.3f}"
        for loss, error in zip(frame["loss"], frame["standard_error"], strict=True)
    ]
    (line,) = ax.lines
    np.testing.assert_array_equal(line.get_xdata(), found.weights)


KERNELS_SHOWN = ["gaussian(width=3.0)", "gaussian(width=9.0)", "linear()"]


def test_what_replaces_each_other_loses_nothing_and_what_is_needed_does():
    rng = np.random.default_rng(0)
    Z = rng.normal(size=(60, 3))
    kernels = [("needed", "linear()", [0]), ("its copy", "linear()", [0]), ("noise", "linear()", [1])]
    target = 3 * Z[:, 0]
    both = stability(MKLRegressor(kernels, C=1.0, p=1), Z, target, 5, cv=3, random_state=0)
    assert np.abs(both.losses).max() < 0.01  # R^2
    alone = stability(MKLRegressor(kernels[1:], C=1.0, p=1), Z, target, 5, cv=3, random_state=0)
    assert (alone.losses[:, 0] > 0.5).all() and alone.used[0] == 1.0
    assert alone.weights[0] > 0.9 and alone.intervals[0, 0] > 0.9


def test_several_targets_with_shared_weights():
    targets = np.column_stack([T, -1e3 * F[:, 2]])
    found = stability(REGRESSION, F, targets, 4, cv=2, random_state=1)
    rng = np.random.default_rng(1)
    for row in found.resampled:
        drawn = rng.integers(len(T), size=len(T))
        np.testing.assert_allclose(row, clone(REGRESSION).fit(F[drawn], targets[drawn]).weights_, atol=1e-3)
    np.testing.assert_array_equal(found.intervals, np.quantile(found.resampled, [0.025, 0.975], axis=0))
    scores = cross_val_score(REGRESSION, F, targets, cv=KFold(2))
    assert found.score == pytest.approx(scores.mean()) and found.machines == ()
    for i in range(2):
        rest = clone(REGRESSION).set_params(kernels=without(REGRESSION.kernels, i))
        expected = scores - cross_val_score(rest, F, targets, cv=KFold(2))
        np.testing.assert_allclose(found.losses[:, i], expected, atol=1e-3)


def test_weights_of_each_target_and_class_have_their_own_intervals():
    targets = np.column_stack([T, -1e3 * F[:, 2]])
    model = clone(REGRESSION).set_params(multioutput="per-target")
    found = stability(model, F, targets, 4, cv=2, random_state=1)
    assert found.weights.shape == found.used.shape == (2, 2) and found.intervals.shape == (2, 2, 2)
    for k, target in enumerate(targets.T):
        alone = stability(REGRESSION, F, target, 4, cv=2, random_state=1)
        np.testing.assert_allclose(found.resampled[:, k], alone.resampled, atol=1e-3)
        np.testing.assert_allclose(found.intervals[:, k], alone.intervals, atol=1e-3)
        np.testing.assert_array_equal(found.used[k], alone.used)
    scores = cross_val_score(model, F, targets, cv=KFold(2))
    for i in range(2):
        rest = clone(model).set_params(kernels=without(REGRESSION.kernels, i))
        expected = scores - cross_val_score(rest, F, targets, cv=KFold(2))
        np.testing.assert_allclose(found.losses[:, i], expected, atol=1e-3)
    A, b = (data[::4] for data in load_iris(return_X_y=True))
    names = np.array(["setosa", "versicolor", "virginica"])[b]
    classes = stability(clone(MODEL).set_params(multiclass="per-class"), A, names, 3, cv=2, random_state=0)
    rng = np.random.default_rng(0)
    for row in classes.resampled:
        drawn = np.concatenate([rng.choice(np.flatnonzero(b == c), (b == c).sum()) for c in range(3)])
        for k in range(3):
            one = clone(MODEL).fit(A[drawn], b[drawn] == k)
            np.testing.assert_allclose(row[k], one.weights_, atol=1e-3)
    frame = pd.DataFrame(classes.as_dict())
    assert [*frame["machine"]] == [*np.repeat(np.unique(names), 3)] and [
        *frame["kernel"]
    ] == KERNELS_SHOWN * 3
    np.testing.assert_array_equal(frame["weight"].to_numpy().reshape(3, 3), classes.weights)
    np.testing.assert_array_equal(frame["upper"].to_numpy().reshape(3, 3), classes.intervals[1])
    lines = str(classes).splitlines()
    assert lines[1].split()[:3] == ["machine", "kernel", "weight"] and len(lines) == 11
    assert lines[-1].startswith("virginica")
    ax = classes.plot(ax=Figure().subplots())
    assert (
        len(ax.get_yticklabels()) == 9
        and ax.get_yticklabels()[3].get_text() == "versicolor, " + KERNELS_SHOWN[0]
    )
    assert str(found).splitlines()[2].startswith("target 0")


def test_pipelines_chosen_C_stacks_threads_and_seeds(found):
    search = MKLRegressorCV(REGRESSION.kernels, Cs=[0.1, 10.0], cv=2, p=2, loss="squared", tol=1e-6)
    fixed = clone(REGRESSION).set_params(C=clone(search).fit(F, T).C_)
    one, other = (stability(model, F, T, 2, cv=2, random_state=0) for model in (search, fixed))
    np.testing.assert_allclose(one.resampled, other.resampled, atol=1e-12)
    np.testing.assert_allclose(one.losses, other.losses, atol=1e-12)
    raw = 100 * X + 5
    piped = stability(make_pipeline(StandardScaler(), MODEL), raw, y, 2, cv=2, random_state=0)
    train, test = next(StratifiedKFold(2).split(raw, y))
    scaled = StandardScaler().fit(raw[train])
    score = (
        clone(MODEL).fit(scaled.transform(raw[train]), y[train]).score(scaled.transform(raw[test]), y[test])
    )
    less = clone(MODEL).set_params(kernels=KERNELS[:2]).fit(scaled.transform(raw[train]), y[train])
    assert piped.losses[0, 2] == pytest.approx(score - less.score(scaled.transform(raw[test]), y[test]))
    stack = KernelStack(ko.Grams.from_kernels([ko.parse_kernel(text) for text in KERNELS], X))
    with parallel_config(backend="threading"):
        given = stability(clone(MODEL).set_params(kernels=None), stack, y, 6, cv=3, n_jobs=2, random_state=0)
    np.testing.assert_allclose(given.resampled, found.resampled, atol=1e-3)
    np.testing.assert_allclose(given.losses, found.losses, atol=1e-12)
    assert given.names == found.names
    again = stability(MODEL, X, y, 2, cv=2, random_state=1)
    assert np.abs(again.resampled - found.resampled[:2]).max() > 1e-3


def test_what_has_no_stability_is_said():
    for call, words in (
        (lambda: stability(SVC(), X, y), r"model must be an MKLClassifier, .* in stability\."),
        (lambda: stability(MKLClassifier("linear()"), X, y), "at least two kernels, got one in stability"),
        (lambda: stability(MODEL, X, y, 1), "n_resamples must be a whole number of at least 2, got 1"),
        (lambda: stability(MODEL, X, y, level=1.5), "level must be"),
    ):
        with pytest.raises(ko.InputError, match=words):
            call()

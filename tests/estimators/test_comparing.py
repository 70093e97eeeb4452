"""`compare` against the same models in scikit-learn's own cross-validation."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from joblib import parallel_config
from scipy.stats import sem
from sklearn.base import clone
from sklearn.datasets import load_diabetes, load_wine
from sklearn.linear_model import LinearRegression, RidgeClassifierCV, RidgeCV
from sklearn.metrics import r2_score
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import GridSearchCV, KFold, StratifiedKFold, cross_val_score
from sklearn.multioutput import MultiOutputRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, SVR

import kernelopt as ko
from kernelopt.estimators import (
    KernelStack,
    MKLClassifier,
    MKLClassifierCV,
    MKLRegressor,
    OneClassMKL,
    compare,
)

KERNELS = [ko.gaussian(2.0), ko.gaussian(6.0), ko.linear()]
SPLITS = StratifiedKFold(3, shuffle=True, random_state=1)
X, y = (data[::2] for data in load_wine(return_X_y=True))
X = StandardScaler().fit_transform(X)
T = load_diabetes(return_X_y=True)
T = T[0][:90], T[1][:90]
MODEL = MKLClassifier(KERNELS, normalize="none", tol=1e-2)


def matrices(A, B):
    """The kernels of the dictionary by scikit-learn and numpy."""
    return [rbf_kernel(A, B, gamma=1 / (2 * width**2)) for width in (2.0, 6.0)] + [A @ B.T]


@pytest.fixture(scope="module")
def found():
    return compare(MODEL, X, y, cv=SPLITS)


def test_each_row_is_the_score_of_its_model_in_scikit_learn(found):
    inner = StratifiedKFold(3, shuffle=True, random_state=0)
    grid = {"C": [0.1, 1.0, 10.0, 100.0]}
    gammas = [factor / X.shape[1] for factor in (0.1, 0.3, 1.0, 3.0)]
    rivals = {
        "learned kernel": MODEL,
        "tuned Gaussian kernel": GridSearchCV(
            make_pipeline(StandardScaler(), SVC()),
            {"svc__C": grid["C"], "svc__gamma": gammas},
            cv=inner,
        ),
        "ridge": make_pipeline(StandardScaler(), RidgeClassifierCV(np.logspace(-3, 3, 7))),
    }
    for name, rival in rivals.items():
        assert found.scores[name].tolist() == cross_val_score(rival, X, y, cv=SPLITS).tolist(), name
    average, single, names = [], [], []
    for train, test in SPLITS.split(X, y):
        within, across = matrices(X[train], X[train]), matrices(X[test], X[train])
        search = GridSearchCV(SVC(kernel="precomputed"), grid, cv=inner)
        average.append(search.fit(sum(within) / 3, y[train]).score(sum(across) / 3, y[test]))
        searches = [clone(search).fit(K, y[train]) for K in within]
        best = int(np.argmax([each.best_score_ for each in searches]))
        single.append(searches[best].score(across[best], y[test]))
        names.append(repr(KERNELS[best]))
    assert found.scores["average kernel"].tolist() == average
    assert found.scores["best single kernel"].tolist() == single and list(found.single) == names


def test_the_table_has_means_standard_errors_and_paired_differences(found):
    frame = pd.DataFrame(found.as_dict()).set_index("model")
    assert [*frame.index] == [*found.scores] and (frame["seconds"] > 0).all()
    for name, scores in found.scores.items():
        row, difference = frame.loc[name], found.scores["learned kernel"] - scores
        assert row["score"] == pytest.approx(scores.mean())
        assert row["standard_error"] == pytest.approx(sem(scores))
        assert row["difference"] == pytest.approx(difference.mean())
        assert row["standard_error_of_difference"] == pytest.approx(sem(difference))
    lines = str(found).splitlines()
    assert " ".join(lines[0].split()) == "accuracy std. error learned minus it std. error s / split"
    assert len(lines) == 6 and f"{found.scores['ridge'].mean():.3f}" in lines[-1]
    assert repr(found) == str(found)


def test_a_regression_does_not_depend_on_the_unit_of_its_targets():
    features, targets = T
    model = MKLRegressor([ko.gaussian(0.1), ko.linear()], tol=1e-4)
    options = {"cv": KFold(3), "scoring": "neg_mean_absolute_error"}
    found = compare(model, features, targets, **options)
    other = compare(model, features, 1e4 * targets + 7.0, **options)
    for name, scores in found.scores.items():
        np.testing.assert_allclose(1e4 * scores, other.scores[name], rtol=1e-3, err_msg=name)
    assert "neg_mean_absolute_error" in str(found)
    train, test = next(KFold(3).split(features))
    unit = targets[train].std()
    search = GridSearchCV(
        make_pipeline(StandardScaler(), SVR(epsilon=0.1 * unit, tol=1e-3 * unit)),
        {"svr__C": unit * np.array([0.1, 1.0, 10.0, 100.0]), "svr__gamma": [0.01, 0.03, 0.1, 0.3]},
        cv=KFold(3, shuffle=True, random_state=0),
        scoring=options["scoring"],
    ).fit(features[train], targets[train])
    assert search.score(features[test], targets[test]) == found.scores["tuned Gaussian kernel"][0]
    ridge = make_pipeline(StandardScaler(), RidgeCV(np.logspace(-3, 3, 7)))
    assert found.scores["ridge"].tolist() == cross_val_score(ridge, features, targets, **options).tolist()


def test_several_targets_have_a_machine_each_with_a_common_choice():
    features, targets = T[0], np.column_stack([T[1], 1e-3 * T[1] ** 2 + T[0][:, 2], -1e4 * T[0][:, 3]])
    model = MKLRegressor([ko.gaussian(0.1), ko.linear()], normalize="none", tol=1e-4)
    splits = KFold(2, shuffle=True, random_state=0)
    found = compare(model, features, targets, cv=splits)
    assert found.measure == "R^2" and found.scores["learned kernel"].shape == (2,)
    scores = cross_val_score(model, features, targets, cv=splits)
    np.testing.assert_allclose(found.scores["learned kernel"], scores, rtol=1e-9)
    Cs, inner = [0.1, 1.0, 10.0, 100.0], KFold(3, shuffle=True, random_state=0)
    for i, (train, test) in enumerate(splits.split(features)):
        A, B, a = features[train], features[test], targets[train]
        unit = a.std(axis=0)
        a, b = a / unit, targets[test] / unit  # R^2 does not depend on it
        ridges = make_pipeline(StandardScaler(), MultiOutputRegressor(RidgeCV(np.logspace(-3, 3, 7))))
        assert found.scores["ridge"][i] == pytest.approx(ridges.fit(A, a).score(B, b))
        search = GridSearchCV(
            make_pipeline(StandardScaler(), MultiOutputRegressor(SVR())),
            {
                "multioutputregressor__estimator__C": Cs,
                "multioutputregressor__estimator__gamma": [0.01, 0.03, 0.1, 0.3],
            },
            cv=inner,
        )
        assert found.scores["tuned Gaussian kernel"][i] == pytest.approx(
            search.fit(A, a).score(B, b), rel=1e-3
        )
        averages = [
            (rbf_kernel(left, right, gamma=50.0) + left @ right.T) / 2 for left, right in ((A, A), (B, A))
        ]

        def score(C, K, new, y, truth):
            """The score of regressions on a kernel matrix."""
            machine = MultiOutputRegressor(SVR(kernel="precomputed", C=C)).fit(K, y)
            return r2_score(truth, machine.predict(new))

        K, parts = averages[0], [*inner.split(A)]
        means = [
            np.mean([score(C, K[np.ix_(r, r)], K[np.ix_(s, r)], a[r], a[s]) for r, s in parts]) for C in Cs
        ]
        expected = score(Cs[int(np.argmax(means))], *averages, a, b)
        assert found.scores["average kernel"][i] == pytest.approx(expected, rel=1e-3)


def test_pipelines_stacks_strings_and_threads(found):
    raw = load_wine(return_X_y=True)[0][::2]
    piped = compare(make_pipeline(StandardScaler(), MODEL), raw, y, cv=SPLITS)
    train, test = next(SPLITS.split(X, y))
    scaled = StandardScaler().fit(raw[train])
    direct = compare(MODEL, scaled.transform(raw), y, cv=[(train, test)])
    assert {name: scores[0] for name, scores in piped.scores.items()} == {
        name: scores[0] for name, scores in direct.scores.items()
    }
    assert np.isnan(direct.as_dict()["standard_error"]).all()
    stack = KernelStack(ko.Grams.from_kernels(KERNELS, X))
    with parallel_config(backend="threading"):
        precomputed = compare(clone(MODEL).set_params(kernels=None), stack, y, cv=SPLITS, n_jobs=2)
    assert [*precomputed.scores] == ["learned kernel", "average kernel", "best single kernel"]
    for name, scores in precomputed.scores.items():
        assert scores.tolist() == found.scores[name].tolist(), name
    words = ["".join(word) for word in np.random.default_rng(0).choice(list("ACG"), (40, 8))]
    labels = ["A" if word.count("A") > 2 else "other" for word in words]
    spectra = compare(MKLClassifier([ko.spectrum(1), ko.spectrum(2)], tol=1e-2), words, labels, cv=2)
    assert [*spectra.scores] == [*precomputed.scores]
    assert spectra.scores["learned kernel"].mean() > 0.7


def test_what_cannot_be_compared_is_said():
    for model in (OneClassMKL(), SVC(), make_pipeline(StandardScaler(), LinearRegression()), MKLClassifier):
        with pytest.raises(ko.InputError, match=r"model must be an MKLClassifier, .* in compare\. Pass MKLC"):
            compare(model, X, y)
    with pytest.raises(ko.InputError, match="cv must give at least one split, got none"):
        compare(MODEL, X, y, cv=[])
    few = np.r_[0:3, 60:63]
    with pytest.raises(ko.InputError, match="two training samples of each class.* got 3 training samples"):
        compare(MKLClassifierCV(KERNELS), X[few], y[few], cv=2)
    with pytest.raises(ko.InputError, match="two training samples in two parts"):
        compare(MKLRegressor(KERNELS), X[:6], X[:6, 0], cv=2)

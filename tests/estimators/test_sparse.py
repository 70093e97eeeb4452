"""Sparse points: kernels of inner products, the same as of the dense array."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler

import kernelopt as ko
from kernelopt.estimators import (
    KernelAlignment,
    MKLClassifier,
    MKLClassifierCV,
    MKLRegressor,
    OneClassMKL,
    TransductiveKernelClassifier,
    compare,
    leave_one_out,
)
from tests.every import every

RNG = np.random.default_rng(0)
A = sp.random_array((60, 40), density=0.1, rng=RNG, format="csr")
A.data -= 0.3
X = A.toarray()
Y = np.where(X[:, :5].sum(axis=1) > 0, "up", "down")
KERNELS = ["linear()", "gaussian(1.0)", ko.polynomial(2), ko.gaussian(2.0) * 0.5]


def close(one, two):
    assert one == pytest.approx(two, rel=1e-4, abs=1e-4 * np.abs(two).max())


@every("normalize", ["multiplicative", "trace", "none", "spherical"])
@every("form", [sp.csr_array, sp.csc_matrix, sp.coo_array])
def test_sparse_and_dense_points_have_the_same_machine(normalize, form):
    kernels = KERNELS if normalize != "spherical" else ["gaussian(1.0)", "polynomial(2)"]
    model = MKLClassifier(kernels, normalize=normalize, tol=1e-6)
    dense = model.fit(X, Y).decision_function(X[:9])
    weights, names = model.weights_, model.kernel_names_
    model.fit(form(A), Y)
    close(model.decision_function(form(A[:9])), dense)
    close(model.decision_function(X[:9]), dense)
    assert model.kernel_names_ == names and model.n_features_in_ == 40
    assert model.weights_ == pytest.approx(weights, abs=1e-3 * weights.max())


def test_the_kernels_are_those_of_the_points():
    model = KernelAlignment(KERNELS, normalize="none").fit(A, Y)
    expected = sum(
        w * ko.Grams.from_kernels([k], X)[0] for w, k in zip(model.weights_, model.kernels_, strict=True)
    )
    assert model.transform(A) == pytest.approx(expected, rel=1e-12, abs=1e-12)


def test_every_estimator_of_points_takes_them():
    values = X[:, 0] + X[:, 1] ** 2
    model = MKLRegressor(KERNELS, tol=1e-6)
    close(model.fit(A, values).predict(A), model.fit(X, values).predict(X))
    model = OneClassMKL(KERNELS[1:], nu=0.3, tol=1e-6)
    close(model.fit(A).score_samples(A), model.fit(X).score_samples(X))
    model = MKLRegressor(KERNELS, loss="squared", tol=1e-8)
    found = []
    for Z in (A, X):
        model.fit(Z, values)
        found.append((model.kernel(Z), model.kernel(Z[:3], Z), leave_one_out(model, Z, values)))
        features = model.transform(Z)
        assert features @ features.T == pytest.approx(found[-1][0], abs=1e-6)
    for sparse, dense in zip(*found, strict=True):
        close(sparse, dense)
    half = TransductiveKernelClassifier(["polynomial(2)", "gaussian(1.0)"])
    found = half.fit(A[:30], Y[:30], A[30:]).transduction_
    assert found.tolist() == half.fit(X[:30], Y[:30], X[30:]).transduction_.tolist()


def test_sparse_points_are_split_searched_and_weighted():
    scores = [
        cross_val_score(make_pipeline(MaxAbsScaler(), MKLClassifier(KERNELS)), Z, Y, cv=3) for Z in (A, X)
    ]
    assert scores[0].tolist() == scores[1].tolist()
    judged, dense = (compare(MKLClassifier(KERNELS), Z, Y, cv=2) for Z in (A, X))
    assert judged.scores.keys() == dense.scores.keys()
    assert judged.scores["learned kernel"] == pytest.approx(dense.scores["learned kernel"])
    searched = [MKLClassifierCV(KERNELS, Cs=[0.1, 1.0], cv=3).fit(Z, Y) for Z in (A, X)]
    assert searched[0].scores_.tolist() == searched[1].scores_.tolist()
    given = A.copy()
    model = MKLClassifier(KERNELS).fit(sp.csr_array((A.data, A.indices, A.indptr)), Y)
    order = RNG.permutation(60)
    values = model.decision_function(A)
    close(MKLClassifier(KERNELS).fit(A[order], Y[order]).decision_function(A), values)
    assert (given != A).nnz == 0
    twice, chosen = (
        np.where(np.arange(60) % 3, 1.0, 2.0),
        np.repeat(np.arange(60), 1 + (np.arange(60) % 3 == 0)),
    )
    model = MKLClassifier(KERNELS, tol=1e-7)
    values = model.fit(A, Y, sample_weight=twice).decision_function(A)
    close(values, model.fit(A[chosen], Y[chosen]).decision_function(A))


def test_a_model_of_sparse_points_is_saved_and_certified(tmp_path):
    model = MKLClassifier(KERNELS, C=5.0).fit(A, Y)
    path = model.save(tmp_path / "model.npz")
    loaded = ko.load(path)
    assert np.array_equal(loaded.decision_function(A), model.decision_function(A))
    assert loaded.certify(A, Y).gap <= 1e-3 and loaded.kernels_ == model.kernels_
    with pytest.raises(ko.InputError, match="X must be the data that the estimator was fitted on"):
        loaded.certify(2 * A, Y)


def test_what_sparse_points_cannot_be_used_for_is_said():
    for kernels, said in (
        (None, "got the default kernels, .*X.toarray"),
        ("gaussian(0.5 median)", "got 'gaussian\\(0.5 median\\)'"),
        ([("first", "linear()", [0])], "got a kernel of chosen columns"),
        ("laplacian(1.0)", r"functions of x'z or \|x - z\|\^2, .* got laplacian"),
        (ko.on_columns(ko.gaussian(1.0), [0, 1]), "got on_columns"),
    ):
        with pytest.raises(ko.InputError, match=said):
            MKLClassifier(kernels).fit(A, Y)
    with pytest.raises(ValueError, match="NaN"):
        MKLClassifier(KERNELS).fit(A * np.nan, Y)
    with pytest.raises(ValueError, match="40 features"):
        MKLClassifier(KERNELS).fit(A, Y).predict(A[:, :3])
    with pytest.raises(ko.InputError, match=r"got a sparse csr_array .*X.toarray\(\)"):
        MKLClassifier(KERNELS).fit(X, Y).predict(A)
    with pytest.raises(ko.InputError, match="must be positive between a point and itself, got 0 at X"):
        MKLClassifier("linear()", normalize="spherical").fit(sp.vstack([A, 0 * A]), [*Y, *Y])

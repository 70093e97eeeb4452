"""A damaged file of an estimator is refused, or predicts as before: every damage of every entry of all."""

from __future__ import annotations

import numpy as np
import pytest

import kernelopt as ko
from kernelopt.estimators import (
    FormulationClassifier,
    KernelAlignment,
    KernelStack,
    LinearFunctionalMKLClassifier,
    LinearFunctionalMKLRegressor,
    MKLClassifier,
    MKLClassifierCV,
    MKLRegressor,
    MKLRegressorCV,
    OneClassMKL,
    SimilarityClassifier,
    TransductiveKernelClassifier,
    TripletKernel,
)
from tests.damage import check_damages
from tests.problems import points

N = 8
X = points(N, d=3)
Y = np.where(X[:, 0] + X[:, 1] > 0, "yes", "no")
CLASSES = np.arange(N) % 3
T = X[:, 0] - X[:, 1] ** 2
K = ["gaussian(1.0)", "linear()"]
STACK = KernelStack(np.asarray(ko.Grams.from_kernels([ko.gaussian(1.0), ko.linear()], X)))
WORDS = ["".join(word) for word in np.random.default_rng(0).choice(list("ACG"), (N, 5))]
COLUMNS = [("one", "linear()", [0, 2]), ("two", "gaussian(1 median)", [1, 2])]
FITTED = {
    "points": (lambda: MKLClassifier(K).fit(X, Y), X),
    "columns": (lambda: MKLClassifier(COLUMNS).fit(X, Y), X),
    "several classes": (lambda: MKLClassifier(K, C=0.1, multiclass="per-class").fit(X, CLASSES), X),
    "stack": (lambda: MKLClassifier(normalize="spherical").fit(STACK, Y), STACK),
    "strings": (lambda: MKLClassifier([ko.spectrum(2)], normalize="none").fit(WORDS, CLASSES > 0), WORDS),
    "cross-validated": (lambda: MKLClassifierCV(K, Cs=[0.1, 1.0], cv=2).fit(X, Y), X),
    "cross-validated regression": (lambda: MKLRegressorCV(K, Cs=[0.1, 1.0], cv=2).fit(X, T), X),
    "regressor": (lambda: MKLRegressor(K).fit(X, T), X),
    "one class": (lambda: OneClassMKL(K, nu=0.5).fit(X), X),
    "functions": (lambda: LinearFunctionalMKLRegressor(K).fit(X, T), X),
    "functions of two classes": (lambda: LinearFunctionalMKLClassifier(K).fit(X, Y), X),
    "formulation": (lambda: FormulationClassifier("lp_norm.primal", K, options={"p": 2.0}).fit(X, Y), X),
    "similarity": (lambda: SimilarityClassifier().fit(X @ X.T, Y), X @ X.T),
    "transduction": (lambda: TransductiveKernelClassifier(K).fit(X, Y, X + 0.1), X),
    "alignment": (lambda: KernelAlignment(K).fit(X, Y), X),
    "comparisons": (lambda: TripletKernel(K, cone="nonnegative").fit(X, triplets=[[0, 1, 2], [3, 4, 5]]), X),
}


def predictions(model, samples):
    """What a model says of samples: values and classes side by side, as objects, so that types count."""
    if not hasattr(model, "predict"):
        return model.transform(samples)
    values = getattr(model, "decision_function", model.predict)(samples)
    said = model.predict(samples)
    return np.concatenate([np.ravel(values).astype(object), said.astype(object), [said.dtype.kind]])


SOONER = ("points", "stack", "regressor", "functions", "alignment")


@pytest.mark.parametrize(
    "name", [name if name in SOONER else pytest.param(name, marks=pytest.mark.slow) for name in FITTED]
)
def test_a_damaged_file_is_refused_or_predicts_as_before(name):
    fit, samples = FITTED[name]
    new = KernelStack(np.asarray(samples.grams)) if name == "stack" else samples
    count = check_damages(fit(), lambda model: predictions(model, new))
    assert count > 500

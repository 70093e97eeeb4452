"""The estimators on formulations of the catalogue, against the formulations themselves and scikit-learn."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.svm import SVC

import kernelopt as ko
from formulations import lanckriet, linear_functional, similarity, triplet_lp
from kernelopt.estimators import (
    FormulationClassifier,
    KernelAlignment,
    KernelStack,
    LinearFunctionalMKLClassifier,
    LinearFunctionalMKLRegressor,
    SimilarityClassifier,
    TransductiveKernelClassifier,
    TripletKernel,
)
from kernelopt.estimators.formulation import WRAPPED
from kernelopt.grams import join
from tests.every import every

ROOT = Path(__file__).parents[2]
KERNELS = ["gaussian(0.5)", "gaussian(2.0)", "linear()"]
X, SPECIES = load_iris(return_X_y=True)
X, SPECIES = X[::3], SPECIES[::3]  # 50 flowers of three species
TWO = SPECIES > 0
FLOWERS, NAMES = X[TWO], np.array(["versicolor", "virginica"])[SPECIES[TWO] - 1]  # two that overlap
SIGNS = np.where(NAMES == "virginica", 1.0, -1.0)


def scaled(points):
    """The kernels on points as the estimators normalise them."""
    return ko.Grams.from_kernels([ko.parse_kernel(text) for text in KERNELS], points).normalize(
        "multiplicative"
    )


@pytest.mark.parametrize("labels", [SPECIES, SPECIES == 1], ids=["three classes", "two"])
def test_alignment_is_the_cosine_of_the_centred_kernel_and_the_target(labels):
    model = KernelAlignment(KERNELS).fit(X, labels)
    K = model.transform(X)
    H = np.eye(len(X)) - 1 / len(X)
    positives = np.unique(labels) if np.unique(labels).size > 2 else [True]
    target = sum(np.outer(s, s) for s in (np.where(labels == k, 1.0, -1.0) for k in positives))
    cosine = np.sum(H @ K @ H * target) / np.linalg.norm(H @ K @ H) / np.linalg.norm(target)
    assert model.alignment_ == pytest.approx(cosine, rel=1e-4)
    assert model.weights_.sum() == pytest.approx(1.0)
    for other in np.eye(3):
        G = H @ scaled(X).combine(other) @ H
        assert np.sum(G * target) / np.linalg.norm(G) / np.linalg.norm(target) <= cosine * (1 + 1e-5)
    np.testing.assert_allclose(K, scaled(X).combine(model.weights_), atol=1e-12)


def test_alignment_goes_before_a_machine_on_precomputed_kernels():
    pipeline = make_pipeline(KernelAlignment(KERNELS), SVC(kernel="precomputed"))
    assert cross_val_score(pipeline, X, SPECIES, cv=3).mean() > 0.9
    names = KernelAlignment(KERNELS).fit(X, SPECIES).get_feature_names_out()
    assert names[0] == "kernelalignment0" and len(names) == len(X)


def test_transduction_is_that_of_the_formulation():
    labelled, rest = np.arange(0, 33, 2), np.arange(1, 33, 2)
    model = TransductiveKernelClassifier(KERNELS, C=2.0)
    model.fit(FLOWERS[labelled], NAMES[labelled], X_unlabeled=FLOWERS[rest])
    order = np.r_[labelled, rest]
    direct = lanckriet.soft_margin(scaled(FLOWERS[order]), SIGNS[labelled], C=2.0).solve()
    np.testing.assert_allclose(model.values_, direct.decision_function(), atol=1e-3)
    np.testing.assert_array_equal(model.transduction_, model.predict(FLOWERS[rest]))
    np.testing.assert_allclose(model.decision_function(FLOWERS[rest]), model.values_[17:], atol=1e-6)
    stack = KernelStack(ko.Grams.from_kernels([ko.parse_kernel(text) for text in KERNELS], FLOWERS))
    precomputed = TransductiveKernelClassifier(C=2.0).fit(stack[labelled], NAMES[labelled], stack[rest])
    np.testing.assert_allclose(precomputed.values_, model.values_, atol=1e-3)


def test_weights_of_any_sign_are_known_on_the_samples_of_fit_alone():
    model = TransductiveKernelClassifier(KERNELS, weights="free")
    model.fit(FLOWERS[:30:2], NAMES[:30:2], X_unlabeled=FLOWERS[1:30:2])
    assert model.transduction_.shape == (15,)
    model.weights_ = np.array([1.0, -0.1, 0.0])
    with pytest.raises(ko.InputError, match="X_unlabeled"):
        model.predict(FLOWERS)


def test_a_classifier_of_similarities_is_the_formulation_with_its_extension():
    noise = np.random.default_rng(0).normal(scale=0.2, size=(len(FLOWERS),) * 2)
    S = np.asarray(ko.Grams.from_kernels([ko.gaussian(1.0)], FLOWERS))[0] + noise + noise.T
    train, test = np.arange(0, 33, 2), np.arange(1, 33, 2)
    own = S[np.ix_(train, train)]
    model = SimilarityClassifier(C=2.0, fidelity="squared_frobenius").fit(own, NAMES[train])
    direct = similarity.restricted_spectral(
        own,
        SIGNS[train],
        C=2.0,
        rho=10.0,
        fidelity="squared_frobenius",
        trace=similarity.default_trace(own),
    ).solve(tol=1e-6)
    rows = similarity.spectral_extension(direct, own, S[np.ix_(test, train)])
    expected = rows @ direct.alpha + direct.intercept
    found = model.decision_function(S[np.ix_(test, train)])
    np.testing.assert_allclose(found, expected, atol=2e-2 * np.abs(expected).max())
    assert cross_val_score(SimilarityClassifier(), S, NAMES, cv=3).mean() > 0.8
    asymmetric = own.copy()
    asymmetric[0, 1] += 1.0
    with pytest.raises(ko.errors.NotSymmetricError):
        SimilarityClassifier().fit(asymmetric, NAMES[train])


def test_a_kernel_of_comparisons_is_the_formulation():
    triplets = ko.sample_triplets(SPECIES, 60, random_state=1)
    for cone in ("psd", "dominant"):
        model = TripletKernel(KERNELS, cone=cone).fit(X, triplets=triplets)
        grams = ko.Grams.from_kernels([*map(ko.parse_kernel, KERNELS)], X).normalize("multiplicative")
        if cone == "dominant":
            grams = join([(1.0, grams), (1.0, ko.Grams.identity(len(X)))])
        direct = triplet_lp.kernel_design(grams, triplets, gamma1=0.01, gamma2=0.001, cone=cone).solve()
        assert model.solution_.value == pytest.approx(direct.value, rel=1e-4)
        K = model.transform(X)
        margins = K[triplets[:, 0], triplets[:, 1]] - K[triplets[:, 0], triplets[:, 2]]
        assert (margins > 0).mean() >= 0.85
        K[np.diag_indices(len(X))] += model.ridge_
        assert np.linalg.eigvalsh(K)[0] >= -1e-6 * K.max()
    drawn = TripletKernel(KERNELS, n_triplets=60, random_state=1).fit(X, SPECIES)
    np.testing.assert_array_equal(drawn.triplets_, triplets)
    with pytest.raises(ko.errors.LabelError, match="triplets="):
        TripletKernel().fit(X)


def test_the_linear_functional_strategy_is_the_formulation():
    targets = FLOWERS[:, 3]
    model = LinearFunctionalMKLRegressor(KERNELS).fit(FLOWERS[:, :3], targets)
    strategy = linear_functional.functional_strategy(
        scaled(FLOWERS[:, :3]),
        targets,
        regularization="gcv",
        columns="leave-one-out",
        weights="simplex",
        intercept="mean",
    )
    direct = strategy.solve()
    np.testing.assert_allclose(model.predict(FLOWERS[:, :3]), direct.decision_function(), atol=1e-4)
    classifier = LinearFunctionalMKLClassifier(KERNELS)
    assert cross_val_score(classifier, FLOWERS, NAMES, cv=3).mean() > 0.85


OWN = {
    "a name": ("lanckriet.soft_margin", {"C": 2.0}),
    "a sum of functions": ("linear_functional.functional_strategy", {"regularization": 0.1}),
    "a kernel without a machine": (
        "triplet_lp.kernel_design",
        {"gamma1": 0.01, "gamma2": 0.001, "cone": "psd"},
    ),
    "a function": (lambda grams, y, C: lanckriet.soft_margin(grams, y, C=C), {"C": 2.0}),
}


@every("own", OWN.values(), ids=OWN)
def test_any_formulation_is_a_classifier(own, tmp_path):
    formulation, options = own
    model = FormulationClassifier(formulation, KERNELS, options=options).fit(FLOWERS, NAMES)
    assert model.score(FLOWERS, NAMES) > 0.85
    assert model.dual_gap_ <= 1e-4
    values = model.decision_function(FLOWERS)
    if model.solution_.alpha.size:
        np.testing.assert_allclose(values, model.solution_.decision_function(), atol=1e-6)
    if callable(formulation):  # it is proved in memory, and no file holds it
        for again in (
            model.certify(FLOWERS, NAMES),
            ko.certify(model.formulation_.problem, model.solution_),
        ):
            assert again.upper == pytest.approx(model.certificate_.upper, rel=1e-6)
            assert again.lower == pytest.approx(model.certificate_.lower, rel=1e-6)
        said = r"formulation of .*package.*model\.certify\(X, y\)"
        with pytest.raises(ko.errors.ParameterError, match=said):
            model.save(tmp_path / "model.npz")


def test_C_is_that_of_the_formulation():
    for formulation in ("lanckriet.soft_margin", OWN["a function"][0]):
        found = FormulationClassifier(formulation, KERNELS, C=0.01).fit(FLOWERS, NAMES)
        given = FormulationClassifier(formulation, KERNELS, options={"C": 0.01}).fit(FLOWERS, NAMES)
        np.testing.assert_array_equal(found.dual_coef_, given.dual_coef_)
        assert np.abs(found.dual_coef_).max() <= 0.01 * (1 + 1e-9)


def test_a_formulation_is_tuned_and_used_for_several_classes():
    model = FormulationClassifier("lp_norm.primal", KERNELS, options={"bias": True})
    search = GridSearchCV(model, {"options__p": [1.0, 2.0]}, cv=3).fit(FLOWERS, NAMES)
    assert search.best_score_ > 0.85
    best = search.best_estimator_
    assert best.options == {"bias": True, "p": search.best_params_["options__p"]}
    assert list(model.options) == ["bias"]  # the dict that was given is not changed
    given = FormulationClassifier("lp_norm.primal", KERNELS, options=dict(best.options))
    given.fit(FLOWERS, NAMES)
    np.testing.assert_array_equal(best.weights_, given.weights_)
    assert clone(best).get_params()["options__p"] == best.options["p"]
    assert OneVsRestClassifier(FormulationClassifier(kernels=KERNELS)).fit(X, SPECIES).score(X, SPECIES) > 0.9


def fitted():
    """Each estimator, fitted, with new samples, and the data that it was fitted on."""
    S = np.asarray(ko.Grams.from_kernels([ko.gaussian(1.0)], FLOWERS))[0]
    species, two, halves = (X, SPECIES), (FLOWERS, NAMES), (FLOWERS[::2], NAMES[::2], FLOWERS[1::2])
    yield KernelAlignment(KERNELS).fit(*species), X, species
    yield TripletKernel(KERNELS, n_triplets=30, cone="dominant").fit(*species), X, species
    yield TransductiveKernelClassifier(KERNELS).fit(*halves), FLOWERS, halves
    yield TransductiveKernelClassifier(KERNELS, weights="free").fit(*halves), None, halves
    yield SimilarityClassifier().fit(S, NAMES), S, (S, NAMES)
    yield LinearFunctionalMKLRegressor(KERNELS).fit(FLOWERS, SIGNS), FLOWERS, (FLOWERS, SIGNS)
    yield LinearFunctionalMKLClassifier(KERNELS, normalize="spherical").fit(*two), FLOWERS, two
    yield FormulationClassifier("lanckriet.soft_margin", KERNELS).fit(*two), FLOWERS, two
    name, options = OWN["a kernel without a machine"]
    yield FormulationClassifier(name, KERNELS, options=options).fit(*two), FLOWERS, two
    stack = KernelStack(S[None])
    yield FormulationClassifier("lanckriet.alignment").fit(stack, NAMES), stack, (stack, NAMES)


def test_a_loaded_estimator_is_the_saved_one(tmp_path):
    for model, samples, (X_given, y_given, *more) in fitted():
        loaded = ko.load(model.save(tmp_path / "model.npz"))
        assert type(loaded) is type(model) and loaded.get_params() == model.get_params()
        transforms = hasattr(model, "transform")
        values = [
            each.transform(samples) if transforms else each.predict(samples)
            for each in (model, loaded)
            if samples is not None
        ]
        if values and values[0].dtype.kind == "f":
            np.testing.assert_allclose(*values, rtol=1e-12, atol=1e-12)
        elif values:
            np.testing.assert_array_equal(*values)
        assert loaded.dual_gap_ == model.dual_gap_ and "support" not in str(loaded.solution_)
        name, known = type(model).__name__, model.certificate_
        further = {"X_unlabeled": more[0]} if more else {}
        again = loaded.certify(X_given, y_given, **further)
        assert again.gap <= 1e-4, name  # of triplets no multipliers are kept: they are solved for again
        assert again.lower <= known.upper and known.lower <= again.upper, name
        with pytest.raises(ko.InputError, match="y must be the data that"):
            loaded.certify(X_given, y_given[::-1], **further)


def test_what_is_no_classifier_is_refused():
    for name, words in (
        ("lanckriet.soft_margn", "Did you mean lanckriet.soft_margin"),
        ("similarity.single_kernel", "SimilarityClassifier"),
        ("lp_norm.one_class", "OneClassMKL"),
        (lambda grams, y: 3, "int"),
        (lambda grams: 3, r"the kernels and the labels.*of 1 arguments"),
        (lambda grams, y: lanckriet.soft_margin(grams, y).problem, re.escape(WRAPPED)),
        ("triplet_lp.kernel_design", r"options must hold the arguments gamma1.*options=\{\"gamma1\": \.\.\."),
    ):
        with pytest.raises(ko.errors.ParameterError, match=words):
            FormulationClassifier(name, KERNELS).fit(FLOWERS, NAMES)
    for name, options, words in (
        ("lanckriet.soft_margin", {"wieghts": "free"}, "Did you mean weights.*It has C, weights, trace"),
        ("lp_norm.primal", 2.0, "options must be a dict"),
        (lambda grams, y: None, {"p": 2.0}, "'p'. It has none"),
    ):
        with pytest.raises(ko.errors.ParameterError, match=words):
            FormulationClassifier(name, KERNELS, options=options).fit(FLOWERS, NAMES)
    for page in (
        "docs/write_your_own.md",
        "CONTRIBUTING.md",
        "docs/estimators.md",
    ):  # one minimal form in all places
        form = WRAPPED.partition('"mine"')[2].partition('"reference"')[0]
        assert form in (ROOT / page).read_text(encoding="utf-8"), page
    for unfitted in (FormulationClassifier(), SimilarityClassifier(), LinearFunctionalMKLClassifier()):
        with pytest.raises(NotFittedError):
            unfitted.predict(X)
    with pytest.raises(ko.errors.LabelError, match="Only binary classification is supported"):
        FormulationClassifier(kernels=KERNELS).fit(X, SPECIES)

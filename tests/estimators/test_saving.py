"""Saved estimators: they predict and prove as before, and nothing that is in a file is trusted."""

from __future__ import annotations

import copy
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_wine
from sklearn.preprocessing import StandardScaler

import kernelopt as ko
from kernelopt.estimators import KernelStack, MKLClassifier, MKLRegressor, OneClassMKL
from kernelopt.files import write_file
from kernelopt.records import decoded, encoded
from tests.every import every
from tests.pages import printed_by, python_blocks

ROOT = Path(__file__).parents[2]

X, Y = load_breast_cancer(return_X_y=True)
ALL_X, ALL_Y = StandardScaler().fit_transform(X[:, :10]), Y
X, Y = ALL_X[:120], np.array(["malignant", "benign"])[Y[:120]]
WINE, KIND = load_wine(return_X_y=True)
WINE, KIND = StandardScaler().fit_transform(WINE[::3]), KIND[::3]
K = np.asarray(ko.Grams.from_kernels([ko.gaussian(2.0), ko.gaussian(5.0)], WINE))
STACK = KernelStack(K)
TRAIN, TEST = np.arange(0, 60, 2), np.arange(1, 59, 2)
WORDS = ["".join(word) for word in np.random.default_rng(0).choice(list("ACG"), (40, 6))]
ENDS = [word.endswith(("A", "CG")) for word in WORDS]

MODELS = {
    "default": (MKLClassifier(), X, Y),
    "dictionary": (
        MKLClassifier({"wide": "gaussian(2)", "line": ko.linear()}, p=1, normalize="spherical"), X, Y
    ),
    "columns": (
        MKLClassifier(
            [("one", "linear()", [0, 2]), ("two", None, slice(3, 6))],
            p=np.inf, C=2.0, loss="squared_hinge", class_weight={"benign": 2.0},
        ), X, Y,
    ),
    "shared": (MKLClassifier(["gaussian(2)", "gaussian(5)"]), WINE, KIND),
    "per-class": (MKLClassifier(["gaussian(2)", "gaussian(5)"], multiclass="per-class"), WINE, KIND),
    "regressor": (MKLRegressor(["gaussian(2)", "linear()"], C=3.0), X[:, 1:], 100 * X[:, 0]),
    "one class": (OneClassMKL(["gaussian(2)", "gaussian(6)"], nu=0.3), X, None),
    "stack": (MKLClassifier(normalize="spherical"), STACK[TRAIN], KIND[TRAIN]),
    "strings": (MKLClassifier([ko.spectrum(2), ko.weighted_degree(3)], normalize="spherical"), WORDS, ENDS),
}  # fmt: skip


@cache
def fitted(name):
    model, samples, y = MODELS[name]
    return clone(model).fit(samples, y)


def gap_and_bounds(certificate):
    each = certificate if isinstance(certificate, tuple) else (certificate,)
    return [(c.lower, c.upper, c.gap) for c in each]


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.npz"


def test_a_loaded_estimator_predicts_and_proves_as_before(path):
    for name, (_, samples, y) in MODELS.items():
        model = fitted(name)
        loaded = ko.load(model.save(path))
        assert type(loaded) is type(model)
        stacked = name == "stack"
        near = samples[::2] if stacked or name == "strings" else samples[::2] + 0.01
        new = KernelStack(K.copy())[TEST] if stacked else near
        expected = model._machine_values(STACK[TEST] if stacked else new)
        np.testing.assert_array_equal(loaded._machine_values(new), expected, err_msg=name)
        np.testing.assert_array_equal(loaded.predict(new), model.predict(STACK[TEST] if stacked else new))
        assert gap_and_bounds(loaded.certificate_) == gap_and_bounds(model.certificate_)
        same = KernelStack(K.copy())[TRAIN] if stacked else samples
        for again in (loaded.certify(same, y), model.certify(samples, y)):
            found, known = gap_and_bounds(again), gap_and_bounds(model.certificate_)
            np.testing.assert_allclose(found, known, rtol=1e-9, atol=1e-12, err_msg=name)


def test_a_loaded_estimator_has_all_attributes_and_parameters_and_is_saved_again(path):
    for name, (model, _, _) in MODELS.items():
        loaded = ko.load(fitted(name).save(path))
        assert str(loaded.get_params()) == str(model.get_params())
        assert set(vars(loaded)) == set(vars(fitted(name)))
        for attribute in ("weights_", "support_", "dual_coef_", "intercept_"):
            np.testing.assert_array_equal(getattr(loaded, attribute), getattr(fitted(name), attribute))
        for attribute in ("kernel_names_", "dual_gap_", "n_iter_", "history_", "weights_unique_"):
            assert getattr(loaded, attribute) == getattr(fitted(name), attribute), attribute
        assert loaded.kernels_ == fitted(name).kernels_
        before = path.read_bytes()
        assert loaded.save(path).read_bytes() == before
        assert isinstance(clone(loaded), type(model))


def test_a_file_of_300_points_10_features_and_20_kernels_is_small(path):
    kernels = [ko.gaussian(1.0 + 0.5 * k) for k in range(20)]
    model = MKLClassifier(kernels, tol=0.05).fit(ALL_X[:300], ALL_Y[:300])
    assert model.save(path).stat().st_size < 100_000
    header, arrays = encoded(model)
    assert max(np.asarray(array).size for array in arrays.values()) == 10 * model.support_.size
    assert "objects" not in str(header)


def test_repeated_and_weighted_samples_are_proved_too(path):
    weight = np.arange(120) % 3
    twice = np.concatenate([np.arange(120), np.arange(30)])
    model = MKLClassifier("gaussian(2)").fit(X[twice], Y[twice], sample_weight=weight[twice % 120])
    loaded, given = ko.load(model.save(path)), weight[twice % 120]
    again = loaded.certify(X[twice], Y[twice], sample_weight=given)
    np.testing.assert_allclose(gap_and_bounds(again), gap_and_bounds(model.certificate_), rtol=1e-9)
    with pytest.raises(ko.InputError, match="y must be the data .* with the same sample_weight"):
        loaded.certify(X[twice], Y[twice], sample_weight=np.where(given, 1 + given, 0))


def test_other_samples_are_refused(path):
    loaded = ko.load(fitted("default").save(path))
    for X_given, y_given, piece in (
        (X + 1e-6, Y, "X must be the data"),
        (X, Y[::-1], "y must be the data"),
        (X[:50], Y[:50], "got 50 samples with other numbers"),
        (X, None, "MKLClassifier requires y"),
        (X, np.where(Y == "benign", "good", Y), r"labels of fit.*got \['good'\]"),
    ):
        with pytest.raises(ko.InputError, match=piece):
            loaded.certify(X_given, y_given)
    with pytest.raises(ValueError, match=r"inconsistent numbers of samples: \[120, 50\]"):
        fitted("regressor").certify(X[:, 1:], X[:50, 0])  # the words of fit, which are scikit-learn's
    with pytest.raises(ValueError, match="10 features"):
        loaded.predict(X[:, :9])
    stack = ko.load(fitted("stack").save(path))
    with pytest.raises(ko.InputError, match="must be chosen from the KernelStack of the training samples"):
        stack.predict(KernelStack(2 * K)[TEST])
    with pytest.raises(ko.InputError, match="must be a KernelStack"):
        stack.predict(WINE)


@every(
    "value",
    [
        None, True, 3, 0.1, np.inf, "text", [1, "a"], ("name", "linear()", [0, 1]), {0: 1.0, "b": 2.0},
        slice(1, None), [ko.gaussian(0.1) + ko.linear()], {"k": ko.on_columns(ko.linear(), range(12))},
    ],
)  # fmt: skip
def test_parameters_are_read_as_they_were_written(value):
    assert decoded(*encoded(value), "the file") == value


def test_a_loss_among_the_parameters_is_read_as_it_was_written():
    C = np.array([0.1, 0.2])
    read = decoded(*encoded({"loss": ko.huberized_hinge(C, tau=0.3)}), "the file")["loss"]
    assert type(read) is ko.huberized_hinge and read.tau == 0.3 and np.array_equal(read.C, C)


def test_what_cannot_be_written_is_refused(path):
    model = MKLClassifier([lambda X, Z: X @ Z.T]).fit(X[:30], Y[:30])
    with pytest.raises(
        ko.errors.ParameterError, match=r"kernels.0 of what is saved .*got <lambda> .function.*KernelStack"
    ):
        model.save(path)
    model = fitted("default")
    for each in (model, model.solution_, ko.load(model.save(path.with_name("m"))).solution_):
        with pytest.raises(ko.InputError, match=r"must not end in .PKL, got .*no pickle. Pass .*m.npz"):
            each.save(path.with_name("m.PKL"))
    model = copy.copy(model).set_params(random_state=np.random.default_rng(0))
    with pytest.raises(
        ko.errors.ParameterError, match=r"random_state of what is saved .*seed of a Generator"
    ):
        model.save(path)
    assert not path.exists()

    class Mine(MKLClassifier):
        pass

    mine = Mine("linear()").fit(X[:30], Y[:30])
    with pytest.raises(ko.InputError, match="must be one of .*MKLClassifier.*got 'Mine'"):
        mine.save(path)
    with pytest.raises(ValueError, match="not fitted"):
        MKLClassifier().save(path)


def test_the_class_is_looked_up_in_a_table(path):
    header, arrays = encoded(fitted("default"))
    content = header["estimator"]
    for name in ("KernelStack", "C_GRID", "os.system", "subprocess.Popen", "__import__"):
        write_file(path, "estimator", {"record": content | {"name": name}}, arrays)
        with pytest.raises(ko.errors.FileError, match="must be one of .*MKLClassifier.*got"):
            ko.load(path)
    content["fitted"]["dict"]["fit"] = 1
    write_file(path, "estimator", {"record": content}, arrays)
    with pytest.raises(ko.errors.FileError, match="no attribute that fit sets: 'fit'"):
        ko.load(path)


@pytest.mark.parametrize(
    ("page", "count"),
    [
        ("saving", 5),
        pytest.param("estimators", 13, marks=pytest.mark.slow),
        pytest.param("when_not_to_learn", 4, marks=pytest.mark.slow),
    ],
)
def test_the_page_prints_what_it_says(page, count, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    namespace = {}
    blocks = python_blocks((ROOT / "docs" / f"{page}.md").read_text(encoding="utf-8"))
    assert len(blocks) == count
    for source, said in blocks:
        assert printed_by(source, f"{page}.md", namespace) == (said or "")

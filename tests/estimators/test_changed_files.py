"""A changed file of an estimator gives a certificate of the problem of its parameters, or an error."""

from __future__ import annotations

import copy
import warnings

import numpy as np
import pytest
from sklearn.base import clone

import kernelopt as ko
from kernelopt.estimators import (
    FormulationClassifier,
    KernelAlignment,
    LinearFunctionalMKLClassifier,
    MKLClassifier,
    MKLClassifierCV,
    MKLRegressor,
    MKLRegressorCV,
    OneClassMKL,
    TripletKernel,
)
from kernelopt.files import write_file
from kernelopt.records import encoded
from tests.every import every

rng = np.random.default_rng(0)
X = rng.normal(size=(20, 3)) * [1.0, 5.0, 1.0]
Y = np.where(X[:, 0] + 0.5 * rng.normal(size=20) > 0, "yes", "no")
T = X[:, 0] ** 2 + 10.0
TWO, FIXED = ["gaussian(1.0 median)", "linear()"], ["gaussian(1)", "linear()"]
MODELS = {
    "classifier": (MKLClassifier(TWO, C=2.0, tol=1e-6), Y),
    "per class": (MKLClassifier(FIXED, multiclass="per-class", tol=1e-6), np.arange(20) % 3),
    "cross-validated": (MKLClassifierCV(TWO, Cs=[0.1, 1.0, 3.0], cv=2, tol=1e-6), Y),
    "cross-validated regression": (MKLRegressorCV(TWO, Cs=[0.1, 1.0, 3.0], cv=2, tol=1e-6), T),
    "regressor": (
        MKLRegressor(TWO, C=3.0, loss="epsilon_insensitive", normalize="trace", tol=1e-6), T
    ),
    "left out": (MKLRegressor(TWO, tol=1e-6), T),
    "one class": (OneClassMKL(["gaussian(2)", "gaussian(6)"], nu=0.3, tol=1e-6), None),
    "formulation": (FormulationClassifier("lanckriet.soft_margin", TWO, options={"C": 2.0}), Y),
    "sum of functions": (LinearFunctionalMKLClassifier(FIXED), Y),
    "alignment": (KernelAlignment(FIXED), Y),
    "comparisons": (TripletKernel(FIXED, n_triplets=8, cone="nonnegative"), Y),
}  # fmt: skip


def places(document, at=()):
    """The paths of all entries of a JSON document."""
    for key, value in document.items() if isinstance(document, dict) else enumerate(document):
        yield (*at, key)
        if isinstance(value, dict | list):
            yield from places(value, (*at, key))


def changed(document, place, other):
    """A copy of a document with another entry at a place, and whether it differs."""
    found = inner = copy.deepcopy(document)
    for key in place[:-1]:
        inner = inner[key]
    before = inner[place[-1]]
    inner[place[-1]] = other(before)
    return found, before != inner[place[-1]]


def other_number(value):
    """Another value of the same kind, or of none."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, int | float):
        return 1.5 * value + 0.25 if isinstance(value, float) else value + 1
    return value.replace("1", "2").replace("0", "3") if isinstance(value, str) else None


ARRAYS = (
    lambda a: 1.5 * a if a.dtype.kind == "f" else a + 1 if a.dtype.kind in "iu" else a[::-1],
    lambda a: a[::-1],
    lambda a: np.zeros_like(a),
    lambda a: np.full(a.shape, np.nan),
    lambda a: a[..., :-1],
)


def bounds(certificates):
    each = certificates if isinstance(certificates, tuple) else (certificates,)
    return np.array([(c.lower, c.upper) for c in each])


DEFAULT = ("classifier", "regressor", "one class")


@every("name", DEFAULT)
def test_no_field_of_a_file_states_another_problem(name, tmp_path):
    check_every_field(name, tmp_path / "model.npz")


@pytest.mark.slow
@every("name", [name for name in MODELS if name not in DEFAULT])
def test_no_field_of_any_file_states_another_problem(name, tmp_path):
    check_every_field(name, tmp_path / "model.npz")


def check_every_field(name, path):
    model, y = MODELS[name]
    model = clone(model).fit(X, y)
    header, arrays = encoded(model)
    known = bounds(model.certify(X, y))
    assert (known[:, 1] - known[:, 0] <= 1e-3 * np.abs(known[:, 1])).all()
    variants = [(place, *changed(header, place, other_number), arrays) for place in places(header)]
    for key, array in arrays.items():
        for other in ARRAYS:
            value = other(np.atleast_1d(array))
            differs = not np.array_equal(value, array)
            variants.append(((key,), header, differs, arrays | {key: value}))
    refused = 0
    for place, document, differs, numbers in variants:
        if not differs or place[1:2] == ("parameters",):
            continue
        write_file(path, "estimator", {"record": document["estimator"]}, numbers)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", RuntimeWarning)
                found = bounds(ko.load(path).certify(X, y))
        except ko.KerneloptError:
            refused += 1
            continue
        assert found.shape == known.shape, place
        slack = 1e-9 * np.abs(known).max()
        assert (found[:, 0] <= known[:, 1] + slack).all() and (found[:, 1] >= known[:, 0] - slack).all(), (
            place
        )
    assert refused > 20


@every(
    ("name", "parameter", "value"),
    [
        ("classifier", "C", 0.1),
        ("classifier", "p", 2.0),
        ("classifier", "loss", "squared_hinge"),
        ("classifier", "class_weight", "balanced"),
        ("regressor", "epsilon", 0.5),
        ("formulation", "options", {"C": 0.1}),
    ],
)
def test_the_problem_is_that_of_the_parameters(name, parameter, value, tmp_path):
    model, y = MODELS[name]
    model = clone(model).fit(X, y)
    loaded = ko.load(model.save(tmp_path / "model.npz"))
    other = clone(model).set_params(**{parameter: value}).fit(X, y)
    (expected,) = bounds(other.certificate_)
    for each in (model, loaded):
        before = each.certify(X, y)
        assert before.lower <= before.upper
        assert not (before.lower <= expected[1] and expected[0] <= before.upper)
        each.set_params(**{parameter: value})
        if parameter in ("C", "loss", "epsilon"):  # the best machine there has another alpha or intercept
            with pytest.raises(ko.InputError, match="(C_|the machine that predicts) must be what fit makes"):
                each.certify(X, y)
            continue
        again = each.certify(X, y)
        assert again.lower <= expected[1] and expected[0] <= again.upper


@every(
    ("parameter", "value"),
    [("kernels", ["gaussian(2.0 median)", "linear()"]), ("normalize", "trace"), ("kernels", ["linear()"])],
)
def test_other_kernels_than_those_that_predict_are_refused(parameter, value):
    model = MKLClassifier(TWO).fit(X, Y).set_params(**{parameter: value})
    with pytest.raises(ko.InputError, match="must be what fit makes of the parameters.*fit again"):
        model.certify(X, Y)


@pytest.mark.parametrize("name", ["classifier", "per class", "regressor", "one class", "cross-validated"])
def test_the_machine_that_predicts_is_the_one_that_is_certified(name):
    """A file with other machines predicted as it liked, beside true bounds of its problem."""
    model, y = MODELS[name]
    fitted = clone(model).fit(X, y)
    fitted.certify(X, y)
    changes = {"dual_coef_": lambda a: -a, "weights_": lambda w: w / 2}
    if name != "one class":  # its intercept is no part of the problem
        changes["intercept_"] = lambda b: b + 5
    for attribute, change in changes.items():
        other = copy.copy(fitted)
        setattr(other, attribute, change(getattr(fitted, attribute)))
        with pytest.raises(ko.InputError, match="(C_|the machine that predicts) must be what fit makes"):
            other.certify(X, y)

"""What `kernels=` may be, its defaults, and its errors."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial.distance import pdist
from sklearn.metrics.pairwise import laplacian_kernel

import kernelopt as ko
from kernelopt.errors import InputError, LabelError, NotFiniteError, NotPSDError, ParameterError, ShapeError
from kernelopt.estimators import KernelStack, MKLClassifier, MKLClassifierCV, MKLRegressor, OneClassMKL
from kernelopt.estimators.columns import median_distance
from kernelopt.estimators.dictionary import fit_dictionary
from kernelopt.estimators.labels import warn_of_targets
from tests.every import every

X = np.random.default_rng(0).normal(size=(40, 4)) * [1, 4, 16, 64] + [0, 5, 0, 7]
Y = np.where(X[:, 0] + X[:, 1] / 4 > 0.5, "yes", "no")
NAMES = ["age", "height", "weight", "income"]


def test_default_kernels_do_not_depend_on_the_units_of_the_columns():
    first, second = fit_dictionary(None, X), fit_dictionary(None, 7 * X - 3)
    Z = first.points(X)
    assert np.allclose(Z, second.points(7 * X - 3))
    assert (Z**2).sum(axis=1).mean() == pytest.approx(1)  # the mean square of a standardised point
    median = np.median(pdist(Z))
    widths = [k.width for k in first.kernels[:2]]
    assert widths == pytest.approx([0.6 * median, 1.2 * median], rel=1e-2)
    assert first.kernels[2:] == (ko.polynomial(1), ko.polynomial(2))


def test_columns_of_one_range_keep_their_common_unit():
    """So a pixel that is nearly always dark does not count as much as one that varies."""
    pixels = np.random.default_rng(3).integers(0, 17, size=(60, 5)).astype(float)
    pixels[:, 4] = 0
    pixels[7, 4] = 1  # fewer than half of the columns may stay inside of the range
    pixels[:2, :4] = [[0.0] * 4, [16.0] * 4]
    Z = fit_dictionary(None, pixels).points(pixels)
    unit = np.sqrt(pixels.var(axis=0).sum())
    assert np.allclose(Z, (pixels - pixels.mean(axis=0)) / unit)
    assert (Z**2).sum(axis=1).mean() == pytest.approx(1)
    assert np.allclose(fit_dictionary(None, 3 - 2 * pixels).points(3 - 2 * pixels), -Z)
    other = pixels * [1, 1, 1, 2, 2]  # two of five columns reach the largest number, all the smallest
    assert np.allclose(fit_dictionary(None, other).points(other).std(axis=0), 1 / np.sqrt(5))


def test_the_median_of_equal_weights_is_that_of_any_weights():
    """Of an even and an odd number of different distances, and with points that coincide."""
    for Z in (X, X[:7], X[:6], np.r_[X[:5], X[:3]], X[:2]):
        d = np.sort(pdist(Z))
        d = d[d > 0]
        half = d[np.searchsorted(np.arange(1, d.size + 1), d.size / 2)]  # the first with half of the pairs
        assert median_distance(Z, np.ones(len(Z))) == half
        almost = np.full(len(Z), 1.0)
        almost[0] += 1e-12
        assert median_distance(Z, almost) in d[np.abs(d - half).argsort()[:3]]


def test_median_is_of_a_sample_where_there_are_many_points():
    large = np.random.default_rng(1).normal(size=(3000, 2))
    first, again, other = (fit_dictionary(None, large, random_state=s).kernels[1].width for s in (0, 0, 1))
    assert first == again
    assert first == pytest.approx(other, rel=0.05)
    assert first != other


def test_constant_columns_are_left_out_of_the_default_kernels():
    wider = np.c_[X, np.ones(len(X))]
    assert (fit_dictionary(None, wider).points(wider) == fit_dictionary(None, X).points(X)).all()
    model, same = MKLClassifier(p=1).fit(X, Y), MKLClassifier(p=1).fit(wider, Y)
    assert same.kernel_names_ == model.kernel_names_ and (same.weights_ == model.weights_).all()
    for other in (1.0, 7.0):  # the value of the column at prediction does not count either
        values = same.decision_function(np.c_[X, np.full(len(X), other)])
        assert (values == model.decision_function(X)).all()


def test_columns_of_other_scales_are_named_unless_the_kernel_reads_one_alone():
    raw = X * [1.0, 1.0, 1.0, 1e4]
    said = r"at most 100 times.*in column 'income' and the median .* the 4 columns of .*StandardScaler"
    with pytest.warns(ko.errors.ScaleWarning, match=said):
        fit_dictionary(["identity()", "gaussian(1.0) + linear()"], raw, NAMES)
    own = [
        ("a", ko.normalized(ko.polynomial(2)), [1, 3]),
        ("b", "linear()", [0, 1]),
        ("c", "linear()", [3, 0]),
    ]
    said = r"in column 3 and .* over the 2 columns of a: it hardly .* holds for c, linear\(\)\. Standardise"
    with pytest.warns(ko.errors.ScaleWarning, match=said) as given:
        fit_dictionary([*own, "linear()"], raw)
    assert len(given) == 1
    with pytest.raises(
        ParameterError, match=r"X must hold strings for the kernel spectrum\(k=3\), got points"
    ):
        fit_dictionary([ko.spectrum(3)], raw)  # and no warning before it
    one_by_one = [
        None,
        *ko.per_feature(ko.gaussian(1.0), 4),
        "identity()",
        ("a", laplacian_kernel, [0, 1, 2]),
    ]
    for kernels in (one_by_one, None):  # warnings are errors in tests
        fit_dictionary(kernels, raw)
    fit_dictionary("linear()", np.c_[X, np.ones((len(X), 9))])  # constant columns have no scale


def test_triples_have_names_and_columns():
    kernels = [("a", "gaussian(2.0)", "height"), ("b", ko.linear(), [0, "income"]), ("c", None, slice(1, 3))]
    found = fit_dictionary(kernels, X, NAMES)
    assert found.names[:3] == ("a", "b", "c: gaussian(0.6 median)")
    Z = found.points(X)
    assert np.allclose(found.kernels[0](Z), ko.gaussian(2.0)(X[:, [1]]))
    assert np.allclose(found.kernels[1](Z), ko.linear()(X[:, [0, 3]]))
    alone = fit_dictionary(None, X[:, 1:3])
    assert np.allclose(found.kernels[4](Z), alone.kernels[2](alone.points(X[:, 1:3])))
    mask = fit_dictionary([("m", "linear()", np.array([True, False, True, False]))], X)
    assert mask.kernels == (ko.on_columns(ko.linear(), [0, 2]),)


@every("kernels, names", [
    (ko.linear(), ("linear()",)),
    ("2 * linear()", ("2.0 * linear()",)),
    (laplacian_kernel, ("laplacian_kernel",)),
    ({"one": "linear()", "two": laplacian_kernel}, ("one", "two")),
    ((ko.linear(), "gaussian(1.0)"), ("linear()", "gaussian(width=1.0)")),
])  # fmt: skip
def test_names(kernels, names):
    assert fit_dictionary(kernels, X).names == names


def test_names_of_default_gaussian_kernels_stand_for_them():
    full = fit_dictionary(None, X)
    alone = fit_dictionary("gaussian(0.6 median)", X)
    assert (alone.kernels, alone.names) == (full.kernels[:1], full.names[:1])
    assert (alone.points(X) == full.points(X)).all()
    entries = ["linear()", full.names[1], ("own", " gaussian( 1e-1 median ) ", [0, 2]), full.names[0], None]
    found, part = fit_dictionary(entries, X / X.std(axis=0)), fit_dictionary(None, X[:, [0, 2]])
    again = [f"{name} (2)" if name in full.names[:2] else name for name in full.names]
    assert found.names == ("linear()", full.names[1], "own", full.names[0], *again)
    Z, P = found.points(X / X.std(axis=0)), part.points(X[:, [0, 2]])
    assert Z.shape == (len(X), 4 + 4 + 2)  # kernels of the same columns share them
    width = part.kernels[0].width / 0.6
    assert np.allclose(found.kernels[1](Z), full.kernels[1](full.points(X)))
    assert np.allclose(found.kernels[2](Z), ko.gaussian(0.1 * width)(P))
    assert np.allclose(found.kernels[-1](Z), full.kernels[-1](full.points(X)))
    two = fit_dictionary(list(full.names[:2]), X)
    assert (two.kernels, two.points(X).shape) == (full.kernels[:2], X.shape)


@every("kernels, error, said", [
    ("gausian(1.0)", ParameterError, "gaussian"),
    ("gaussian(0 median)", ParameterError, r"the width of gaussian\(0 median\) must be a positive"),
    ([("a", "linear()", "heigth")], ParameterError, "Did you mean height"),
    ([("a", "linear()", 4)], ParameterError, "0 to 3"),
    ([("a", "linear()", [])], ParameterError, "at least one"),
    ([("a", "linear()", slice(2, 5))], ParameterError, r"slice\(2, 5, None\) .*4 columns.*to 4"),
    ([("a", "linear()", slice(4, None))], ParameterError, "got 4 columns"),
    ([("a", "linear()", slice(-5, 2))], ParameterError, "got 4 columns"),
    ([("a", "linear()", slice(1, "b"))], ParameterError, "got 4 columns"),
    ([("a", "linear()", slice(3, 3))], ParameterError, "at least one"),
    ([("a", "linear()", [True, False])], ParameterError, "one entry for each of the 4"),
    ([("a", "linear()")], ParameterError, r"\(name, kernel, columns\)"),
    ([], ParameterError, "at least one"),
    (3, ParameterError, "list of kernels"),
    ([3], ParameterError, "a text or a function"),
    ([ko.linear], ParameterError, "gaussian"),
    (lambda A, B: -(A @ B.T), NotPSDError, "positive semidefinite"),
    (lambda A, B: A[:, :1] - B[:, 0], InputError, "symmetric"),
    (lambda A, B: np.ones(3), ShapeError, "dimension"),
    (lambda A, B: np.ones((2, 2)), ShapeError, "one row for each row"),
])  # fmt: skip
def test_wrong_kernels(kernels, error, said):
    def first_matrix():
        return ko.Grams.from_kernels(fit_dictionary(kernels, X, NAMES).kernels, X).gram(0)

    with pytest.raises(error, match=said):
        first_matrix()


def test_names_of_columns_need_a_frame():
    with pytest.raises(ParameterError, match="got an array, which has none.*pandas"):
        MKLClassifier([("a", "linear()", "height")]).fit(X, Y)


def test_constant_columns_have_no_width_and_no_variance():
    constant = np.c_[X[:, 0], np.ones((len(X), 2))]
    with pytest.raises(ParameterError, match=r"constant columns \[1, 2\].*Leave them out"):
        MKLClassifier([("rest", None, [1, 2])]).fit(constant, Y)
    with pytest.raises(InputError, match="constant columns tells no samples apart"):
        MKLClassifier([("rest", "gaussian(1.0)", [1, 2])]).fit(constant, Y)
    assert MKLClassifier().fit(constant, Y).score(constant, Y) > 0.6


def test_missing_and_infinite_entries_are_counted_and_located():
    broken = X.copy()
    broken[3, 1], broken[5, 2], broken[7, 0], broken[8, 0] = np.nan, np.inf, np.nan, np.nan
    places = (
        r"at \(row 3, column 1\), \(row 5, column 2\), \(row 7, column 0\), \.\.\. \(4 in all\)\. .*impute"
    )
    with pytest.raises(NotFiniteError, match="3 NaN and 1 infinite.*the training samples of MKL.*" + places):
        MKLClassifier().fit(broken, Y)
    model = MKLRegressor().fit(X, X[:, 0])
    with pytest.raises(NotFiniteError, match="the new samples of MKLRegressor, " + places):
        model.predict(broken)


def test_one_class():
    with pytest.raises(LabelError, match="at least two classes, got one class, 'yes'"):
        MKLClassifier().fit(X, ["yes"] * len(X))
    with pytest.raises(LabelError, match="among samples of positive weight"):
        MKLClassifier().fit(X, Y, sample_weight=(Y == "no").astype(float))


def test_labels_that_are_none():
    texts, n = ["a", "b"] * 19 + ["a"], len(X)
    for labels in (texts, np.array(texts, dtype=object), [0.0, 1.0] * 19 + [0.0]):
        for missing in (None, np.nan):
            found = r"got 1 missing .* among the 40 labels of MKLClassifier, at sample 39\. .*Drop"
            with pytest.raises(LabelError, match=found):
                MKLClassifier().fit(X, [*labels, missing])
    mixed = r"got \['int', 'str'\] .*as the labels of MKLClassifier \(.*\)\. If .*make all of them text"
    with pytest.raises(LabelError, match=mixed):
        MKLClassifier().fit(X, np.array([*texts, 3], dtype=object))
    with pytest.raises(
        LabelError, match="y must hold numbers, got text in the targets of MKLReg.*MKLClassifier"
    ):
        MKLRegressor().fit(X, ["a"] * n)
    model = MKLClassifier("linear()", C=1e-3, multiclass="per-class")
    cv = MKLClassifierCV("linear()", Cs=[1e-3], cv=2, multiclass="per-class")
    ages = np.arange(n) % 11
    for each in (model, cv):
        said = f"got 11 different numbers among 40 samples in {type(each).__name__}, .*MKLRegressor"
        with pytest.warns(ko.errors.LabelWarning, match=said) as given:
            each.fit(X, ages)
        assert len(given) == 1
    with pytest.warns(ko.errors.LabelWarning, match="got 40 different"):
        warn_of_targets(np.arange(40.0), 399, model)
    for classes, samples in ((np.arange(40), 400), (np.arange(10), 20), (np.arange(40).astype(str), 40)):
        warn_of_targets(classes, samples, model)  # warnings are errors in tests


@every("options, said", [
    ({"C": 0}, "C must be"),
    ({"p": 0.5}, "p must be at least 1"),
    ({"loss": "hing"}, "loss must be"),
    ({"multiclass": "own"}, "multiclass must be"),
    ({"normalize": None}, "normalize must be"),
    ({"class_weight": {"perhaps": 2.0}}, "classes of y"),
    ({"class_weight": [1, 2]}, "class_weight must be"),
    ({"nu": 0}, "nu must be"),
    ({"nu": 1}, "nu must be"),
])  # fmt: skip
def test_wrong_parameters(options, said):
    kind = OneClassMKL if "nu" in options else MKLClassifier
    with pytest.raises(ParameterError, match=said):
        kind("linear()", **options).fit(X, Y)


@every(
    "weights, said",
    [([-1.0] + [1.0] * 39, "sample 0"), ([1.0], "each of the 40"), (np.zeros(40), "zero for all")],
)
def test_wrong_sample_weights(weights, said):
    with pytest.raises(ParameterError, match=said):
        MKLClassifier("linear()").fit(X, Y, sample_weight=weights)


def test_stack_is_indexed_by_sample():
    stack = KernelStack(ko.Grams.from_kernels([ko.linear(), ko.gaussian(1.0)], X), names=["a", "b"])
    assert stack.shape == (40, 2)
    assert len(stack[::2]) == 20
    assert stack[::2][[1, 3]].samples.tolist() == [2, 6]
    assert stack[np.arange(40) < 3].samples.tolist() == [0, 1, 2]
    assert stack[[4, 5], ...].samples.tolist() == [4, 5]
    assert np.allclose(stack[:3].cross(stack[5:9])[0], X[:3] @ X[5:9].T)
    assert np.allclose(np.asarray(stack[:3].gram())[0], X[:3] @ X[:3].T)
    assert "3 of 40 samples, 2 kernels: a, b" in repr(stack[:3])
    for grams in (stack.gram(), stack[:3].gram(), stack.gram().normalize("spherical")):
        assert grams.names == ("a", "b")  # which figures write


def test_wrong_uses_of_stacks():
    grams = ko.Grams.from_kernels([ko.linear()], X)
    stack = KernelStack(grams)
    model = MKLClassifier().fit(stack, Y)
    assert np.array_equal(model.predict(KernelStack(grams)), model.predict(stack))  # the same, made again
    with pytest.raises(InputError, match="another stack"):
        model.predict(KernelStack(ko.Grams.from_kernels([ko.gaussian(1.0)], X)))
    with pytest.raises(InputError, match="KernelStack or kernels of shape"):
        model.predict(X)
    with pytest.raises(ShapeError, match=r"\(1, n_new, 40\)"):
        model.predict(np.ones((1, 2, 39)))
    with pytest.raises(InputError, match="must be points"):
        MKLClassifier().fit(X, Y).predict(stack)
    with pytest.raises(ParameterError, match="kernels must be None"):
        MKLClassifier("linear()").fit(stack, Y)
    with pytest.raises(ShapeError, match="names must be 1 strings, one per kernel"):
        KernelStack(grams, names=["a", "b"])
    with pytest.raises(InputError, match="positions from 0 to 39"):
        stack[[40]]
    with pytest.raises(InputError, match="indexed by sample"):
        stack[:3, [0]]
    spherical = MKLClassifier(normalize="spherical").fit(KernelStack(grams), Y)
    with pytest.raises(InputError, match="must come as a KernelStack"):
        spherical.predict(np.ones((1, 2, 40)))

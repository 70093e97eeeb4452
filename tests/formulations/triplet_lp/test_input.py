"""What the formulations of comparisons refuse, with which error."""

from __future__ import annotations

import cvxpy as cp
import numpy as np
import pytest

import kernelopt as ko
from formulations import triplet_lp
from kernelopt.errors import (
    InputError,
    NotFiniteError,
    NotPSDError,
    NotSymmetricError,
    ParameterError,
    ShapeError,
)
from tests.every import every
from tests.formulations.triplet_lp.cases import cones, formulated, near, optimum, plain, quietly, tolerance
from tests.problems import points, solved


@cones
def test_gamma1_may_be_a_parameter(cone):
    grams, triplets, groups = plain(1, 8, 10)
    price = cp.Parameter(nonneg=True)
    formulation = formulated(grams, triplets, groups, gamma1=price, gamma2=0.02, cone=cone)
    for value in (0.3, 0.05):
        price.value = value
        solution = quietly(formulation.solve)
        fixed = optimum(grams, triplets, groups, gamma1=value, gamma2=0.02, cone=cone)
        assert near(solution.value, fixed.value, tolerance(cone))
        assert near(solved(formulation.dual()), fixed.value, 1e-6)


GRAMS, TRIPLETS, GROUPS = plain(0)


GOOD = {"grams": GRAMS, "triplets": TRIPLETS, "groups": GROUPS, "gamma1": 0.1, "gamma2": 0.1}


CALLS = {  # every public function, called with the same words
    "kernel_design": lambda grams, triplets, groups, **rest: triplet_lp.kernel_design(
        grams, triplets, **rest
    ),
    "feature_selection": triplet_lp.feature_selection,
    "gamma1_max": lambda grams, triplets, groups, gamma1, **rest: triplet_lp.gamma1_max(
        grams, triplets, groups=groups, **rest
    ),
    "regularization_path": lambda grams, triplets, groups, gamma1, **rest: triplet_lp.regularization_path(
        grams, triplets, groups=groups, gamma1=[gamma1], **rest
    ),
}


def spoilt(entry, value):
    grams = GRAMS.copy()
    grams[entry] = value
    return grams


def with_row(row):
    return np.concatenate([TRIPLETS[:2], [row]])


BAD = {  # name: (what is wrong, error, message)
    "NaN in a kernel": (
        {"grams": spoilt((1, 0, 2), np.nan)},
        NotFiniteError,
        r"got nan at index \(1, 0, 2\)",
    ),
    "infinite kernel": (
        {"grams": spoilt((2, 3, 3), np.inf)},
        NotFiniteError,
        r"got inf at index \(2, 3, 3\)",
    ),
    "asymmetric kernel": (
        {"grams": spoilt((3, 0, 1), 9.0)},
        NotSymmetricError,
        r"grams\[3\] must be symmetric",
    ),
    "no kernel": ({"grams": GRAMS[:0]}, ShapeError, r"at least one kernel"),
    "one matrix": ({"grams": GRAMS[0]}, ShapeError, r"must have shape \(m, N, N\)"),
    "index out of range": (
        {"triplets": with_row([0, 1, 12])},
        ParameterError,
        r"0..11, got \(0, 1, 12\) in row 2",
    ),
    "negative index": ({"triplets": with_row([0, -1, 2])}, ParameterError, r"got \(0, -1, 2\) in row 2"),
    "repeated index": (
        {"triplets": with_row([4, 1, 4])},
        ParameterError,
        r"different .*\(4, 1, 4\) in row 2",
    ),
    "no triplets": ({"triplets": np.zeros((0, 3), int)}, ShapeError, r"T >= 1, got \(0, 3\)"),
    "pairs": ({"triplets": TRIPLETS[:, :2]}, ShapeError, r"shape \(T, 3\)"),
    "fractions": (
        {"triplets": with_row([0.5, 1, 2])},
        ParameterError,
        r"whole numbers, got \(0.5, 1.0, 2.0\)",
    ),
    "names": ({"triplets": [["a", "b", "c"]]}, ShapeError, r"must hold integers"),
    "negative gamma2": ({"gamma2": -0.1}, ParameterError, r"gamma2 must be a non-negative .*-0.1"),
    "NaN gamma2": ({"gamma2": np.nan}, ParameterError, r"gamma2 must be a non-negative .*nan"),
    "infinite gamma2": (
        {"gamma2": np.inf},
        ParameterError,
        r"gamma2 must be a non-negative finite number, got inf",
    ),
    "wrong cone": (
        {"cone": "dd"},
        ParameterError,
        r"cone must be 'dominant', 'psd' or 'nonnegative', got 'dd'",
    ),
    "no cone": ({"cone": None}, ParameterError, r"cone must be .*got None"),
    "no margin": ({"margin": 0.0}, ParameterError, r"margin must be a positive finite number, got 0"),
    "negative margin": ({"margin": -1.0}, ParameterError, r"margin must be a positive finite number, got -1"),
    "points without a triplet's": (
        {"points": np.setdiff1d(np.arange(12), TRIPLETS[0, 0])},
        ParameterError,
        rf"points must hold those of the triplets, got a set without \[{TRIPLETS[0, 0]}\]",
    ),
    "points out of range": ({"points": np.arange(14)}, ParameterError, r"integers in 0..11"),
    "points that are negative": (
        {"points": np.arange(-1, 12)},
        ParameterError,
        r"integers in 0..11, got \[-1",
    ),
    "points that are floats": ({"points": np.arange(12.0)}, ParameterError, r"integer vector.*float64"),
    "no points": ({"points": []}, ShapeError, r"points must be an integer vector with at least one entry"),
    "an indefinite kernel with non-negative weights": (
        {"grams": spoilt((1, TRIPLETS[0, 0], TRIPLETS[0, 0]), -1.0), "cone": "nonnegative"},
        NotPSDError,
        r"K\[1\] must be positive semidefinite",
    ),
}


ONLY = {  # name: (what is wrong, error, message, which functions)
    "negative gamma1": ({"gamma1": -0.1}, r"gamma1 must be a .*number, got -0.1", (0, 1, 3)),
    "NaN gamma1": ({"gamma1": np.nan}, r"gamma1 must be a .*number, got nan", (0, 1, 3)),
    "text gamma1": ({"gamma1": "0.1"}, r"gamma1 must be a .*number, got '0.1'", (0, 1, 3)),
    "zero gamma1 on a path": ({"gamma1": 0.0}, r"gamma1 must be a positive finite number, got 0", (3,)),
    "a parameter of unknown sign": (
        {"gamma1": cp.Parameter(name="price", value=-1.0)},
        r"gamma1 must be a non-negative scalar, got the parameter price .*UNKNOWN.*nonneg=True",
        (0, 1),
    ),
    "a negative parameter": (
        {"gamma1": cp.Parameter(nonpos=True, name="price", value=-1.0)},
        r"gamma1 must be a non-negative scalar.*NONPOSITIVE",
        (0, 1),
    ),
    "a vector of prices": (
        {"gamma1": cp.Parameter(3, nonneg=True)},
        r"gamma1 must be a non-negative scalar, got the parameter .* of shape \(3,\)",
        (0, 1),
    ),
    "groups of another length": (
        {"groups": [0, 0, 1]},
        r"one entry per kernel \(5\), got shape \(3,\)",
        (1, 2, 3),
    ),
    "groups in a matrix": (
        {"groups": np.zeros((5, 1))},
        r"one entry per kernel \(5\), got shape \(5, 1\)",
        (1, 2, 3),
    ),
}


@every("call", CALLS.values(), ids=CALLS)
@every(("wrong", "error", "message"), BAD.values(), ids=BAD)
def test_bad_input_is_named(call, wrong, error, message):
    with pytest.raises(error, match=message) as raised:
        call(**{**GOOD, **wrong})
    assert isinstance(raised.value, InputError) and isinstance(raised.value, ValueError)


@pytest.mark.parametrize(("wrong", "message", "functions"), ONLY.values(), ids=ONLY)
def test_bad_prices_and_groups_are_named(wrong, message, functions):
    for number in functions:
        with pytest.raises(InputError, match=message):
            list(CALLS.values())[number](**{**GOOD, **wrong})


def test_kernel_functions_are_named_where_they_fail():
    grams = ko.Grams.from_kernels([ko.gaussian(1.0), ko.polynomial(200)], 1e6 * np.ones((5, 2)))
    with pytest.raises(NotFiniteError, match="values of polynomial"):
        triplet_lp.kernel_design(grams, [[0, 1, 2]], gamma1=0.1, gamma2=0.1)


def test_noise_in_the_weights_does_not_leave_a_cone_without_inside():
    """Equal points make every K singular: there is nothing inside to move towards, only noise to drop."""
    X = np.repeat(points(6, 2, seed=3), 2, axis=0)
    triplets = [[0, 1, 4], [2, 3, 6], [4, 5, 8]]
    weak = ko.per_feature([ko.gaussian(0.5), ko.gaussian(1.0)], 2)
    grams = ko.Grams.from_kernels(weak, X)
    both = [
        triplet_lp.feature_selection(
            grams, triplets, weak.groups, gamma1=0.1, gamma2=0.001, cone=cone
        ).solve()
        for cone in ("psd", "nonnegative")
    ]
    assert np.abs(both[0].weights).max() > 0.1 and both[0].gap <= 1e-5
    assert both[0].lower <= both[1].upper

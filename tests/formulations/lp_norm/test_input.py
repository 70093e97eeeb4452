"""What `formulations.lp_norm` refuses, with which error, and what the error says."""

from __future__ import annotations

import cvxpy as cp
import numpy as np
import pytest

import kernelopt as ko
from formulations import lp_norm
from kernelopt.errors import (
    InfeasibleError,
    InputError,
    LabelError,
    NotFiniteError,
    NotPSDError,
    NotSymmetricError,
    ParameterError,
    ShapeError,
)
from kernelopt.extend import as_grams
from tests.every import every
from tests.problems import labels, solved, stack

N = 6
GRAMS, Y = stack(N), labels(N)
E = np.eye(3)
BUILDERS = {
    "primal": lambda grams=GRAMS, y=Y, **rest: lp_norm.primal(grams, y, **{"p": 1.5, **rest}),
    "tikhonov": lambda grams=GRAMS, y=Y, **rest: lp_norm.tikhonov(
        grams, y, **{"p": 1.5, "penalty": 1.0, **rest}
    ),
    "block_norm": lambda grams=GRAMS, y=Y, **rest: lp_norm.block_norm(grams, y, **{"r": 1.5, **rest}),
    "powers": lambda grams=GRAMS, y=Y, **rest: lp_norm.block_norm(
        grams, y, **{"r": 1.5, "squared": False, **rest}
    ),
    "non_isotropic": lambda grams=GRAMS, y=Y, **rest: lp_norm.non_isotropic(grams, y, **{"E": E, **rest}),
    "elastic_net": lambda grams=GRAMS, y=Y, **rest: lp_norm.elastic_net(
        grams, y, **{"l1": 0.5, "l2": 0.5, **rest}
    ),
}
builders = every("build", BUILDERS.values(), ids=BUILDERS)


def changed(entry, value):
    grams = GRAMS.copy()
    grams[(1, *entry)] = value
    return grams


def indefinite():
    return np.array([GRAMS[0], GRAMS[1] - 0.5 * np.eye(N), GRAMS[2]])


@builders
@every(
    ("grams", "error", "message"),
    [
        (changed((0, 0), np.nan), NotFiniteError, r"must be finite, got nan at index \(1, 0, 0\)"),
        (changed((2, 3), np.inf), NotFiniteError, "got inf at index .* Impute or drop"),
        (changed((2, 3), 5.0), NotSymmetricError, r"grams\[1\] must be symmetric .* pass \(K \+ K.T\) / 2"),
        (GRAMS[0], ShapeError, r"must have shape \(m, N, N\), got \(6, 6\). Wrap a single matrix"),
        (GRAMS[:, :4], ShapeError, r"must have shape \(m, N, N\), got \(3, 4, 6\)"),
        (GRAMS[:0], ShapeError, "at least one kernel on one point"),
        (
            [GRAMS[0], GRAMS[1][:3, :3]],
            ShapeError,
            r"the same N points, got shapes \[\(3, 3\), \(6, 6\)\]",
        ),
        ([], ShapeError, r"got \(0,\)|got shape \(0,\)"),
    ],
)
def test_bad_kernels_are_refused_at_building(build, grams, error, message):
    with pytest.raises(error, match=message):
        build(grams)


@builders
def test_indefinite_kernels_are_refused_at_the_latest_on_solving(build):
    with pytest.raises(NotPSDError, match=r"K\[1\] must be positive semidefinite .*, got -.* of the largest"):
        build(indefinite()).solve()
    with pytest.raises(NotPSDError, match=r"K\[1\] must be positive semidefinite"):
        build(indefinite()).dual()


def test_a_kernel_must_be_positive_semidefinite_on_the_unlabelled_points_too():
    grams = np.array([GRAMS[0], GRAMS[1]])
    grams[1, 5, 5] = -1.0
    with pytest.raises(NotPSDError, match=r"K\[1\] must be positive semidefinite"):
        lp_norm.block_norm(grams, Y[:4], r=1.5)


@builders
@every(
    ("y", "error", "message"),
    [
        (np.arange(6.0), LabelError, r"must hold labels -1 and \+1, got 0 at index 0"),
        ([0, 1, 0, 1, 0, 1], LabelError, "Map two classes with numpy.where"),
        (np.ones(6), LabelError, r"must hold both labels, got only \+1 .* every kernel is optimal"),
        (["a", "b", "a", "b", "a", "b"], LabelError, "Map two classes"),
        ([1, -1, np.nan, 1, -1, 1], NotFiniteError, "got nan at index"),
        (np.tile(Y, 2), ShapeError, "at most 6 entries .*, got 12"),
        (Y[:, None], ShapeError, "1 dimension"),
        ([], LabelError, "no label at all"),
        (None, ShapeError, "needs y, got None"),
    ],
)
def test_bad_labels_are_refused_at_building(build, y, error, message):
    with pytest.raises(error, match=message):
        build(GRAMS, y)


@builders
@every(
    ("y", "error", "message"),
    [
        ([1.0, np.inf, 0, 0, 0, 0], NotFiniteError, "got inf at index"),
        ([], LabelError, "at least one target"),
        (None, ShapeError, "Pass the targets"),
    ],
)
def test_bad_targets_are_refused_at_building(build, y, error, message):
    with pytest.raises(error, match=message):
        build(GRAMS, y, loss=ko.epsilon_insensitive(1.0, 0.1))


@builders
@every("loss", [ko.hinge, "hinge", None, 1.0])
def test_what_is_no_loss_is_refused(build, loss):
    with pytest.raises(
        ParameterError, match=r"loss must be a loss such as kernelopt.hinge\(1.0\), got .*Create"
    ):
        build(loss=loss)


@every("C", [0.0, -1.0, np.nan, np.inf])
def test_a_loss_needs_a_positive_weight(C):
    with pytest.raises(ParameterError, match="C must be .*, got"):
        lp_norm.primal(GRAMS, Y, loss=ko.hinge(C))
    with pytest.raises(ParameterError, match="C must be .*, got"):
        lp_norm.one_class(GRAMS, p=2, C=C)


@builders
def test_weights_per_sample_must_match_the_labels(build):
    with pytest.raises(ShapeError, match=r"one entry per labelled point \(6\), got 5"):
        build(loss=ko.hinge(np.ones(5)))


@builders
def test_one_class_learning_with_an_intercept_is_refused(build):
    with pytest.raises(
        ParameterError, match="one-class learning has no intercept, got bias=True.* Leave bias out"
    ):
        build(loss=ko.one_class(1.0), bias=True)


BAD_EXPONENTS = (0.5, 0.999, 0.0, -1.0, np.nan, -np.inf, "2", None, True)


@every("p", BAD_EXPONENTS)
@pytest.mark.parametrize(
    "build",
    [
        BUILDERS["primal"],
        BUILDERS["tikhonov"],
        lambda p: lp_norm.one_class(GRAMS, p=p, C=1.0),
        lambda p: lp_norm.one_class(GRAMS, p=p, nu=0.5),
    ],
    ids=["primal", "tikhonov", "one_class C", "one_class nu"],
)
def test_p_below_1_is_refused(build, p):
    with pytest.raises(ParameterError, match="p must be (at least 1|a positive number), got"):
        build(p=p)


@every("r", BAD_EXPONENTS)
@every("squared", [True, False])
def test_r_below_1_is_refused(r, squared):
    with pytest.raises(ParameterError, match="r must be (at least 1|a positive number), got"):
        lp_norm.block_norm(GRAMS, Y, r=r, squared=squared)


def test_the_sum_of_powers_has_no_limit():
    with pytest.raises(ParameterError, match="r must be finite for squared=False, got inf.* squared=True"):
        lp_norm.block_norm(GRAMS, Y, r=np.inf, squared=False)


@every("penalty", [0.0, -1.0, np.nan, np.inf, None])
def test_a_penalty_must_be_positive(penalty):
    with pytest.raises(ParameterError, match="penalty must be a positive finite number, got"):
        lp_norm.tikhonov(GRAMS, Y, p=2, penalty=penalty)


@every(
    ("bad", "error", "message"),
    [
        (np.eye(2), ShapeError, r"E must have shape \(3, 3\), one row per kernel, got \(2, 2\)"),
        (np.ones(3), ShapeError, r"E must have 2 dimension\(s\), got shape \(3,\)"),
        (np.diag([1.0, np.nan, 1.0]), NotFiniteError, r"E must be finite, got nan at index \(1, 1\)"),
        (np.eye(3) + np.triu(np.ones((3, 3)), 1), NotSymmetricError, r"pass \(E \+ E.T\) / 2"),
        (np.diag([1.0, 1.0, -0.1]), NotPSDError, "positive definite, got a smallest eigenvalue of -0.1"),
        (np.ones((3, 3)), NotPSDError, "Add a multiple of the identity"),
        (np.zeros((3, 3)), NotPSDError, "E must be positive definite"),
        ("E", ShapeError, "E must be an array of real numbers"),
    ],
)
def test_a_matrix_that_is_no_norm_is_refused(bad, error, message):
    with pytest.raises(error, match=message):
        lp_norm.non_isotropic(GRAMS, Y, E=bad)


@every(
    ("l1", "l2", "message"),
    [
        (0.0, 1.0, r"l1 must be a positive finite number, got 0: .* Use primal\(p=numpy.inf\)"),
        (0.0, 0.0, "l1 must be a positive finite number, got 0"),
        (-1.0, 1.0, "l1 must be .*, got -1"),
        (np.nan, 1.0, "l1 must be .*, got nan"),
        (np.inf, 1.0, "l1 must be .*, got inf"),
        (1.0, -1.0, "l2 must be .*, got -1"),
        (1.0, np.nan, "l2 must be .*, got nan"),
        (1.0, None, "l2 must be .*, got None"),
    ],
)
def test_bad_prices_are_refused(l1, l2, message):
    with pytest.raises(ParameterError, match=message):
        lp_norm.elastic_net(GRAMS, Y, l1=l1, l2=l2)


def test_without_l1_the_elastic_net_is_the_machine_that_the_error_names():
    """Penalty l2/2 sum |w_m|^2 is l2 times that of the sum kernel."""
    w = [cp.Variable(L.shape[1]) for L in (as_grams(GRAMS).factor(m) for m in range(3))]
    f = cp.sum([as_grams(GRAMS).factor(m) @ v for m, v in enumerate(w)]) + cp.Variable()
    penalty = 2.0 / 2 * cp.sum([cp.sum_squares(v) for v in w])
    net = cp.Problem(cp.Minimize(penalty + ko.hinge(1.0).expression(f, Y)))
    plain = lp_norm.primal(GRAMS, Y, p=np.inf, loss=ko.hinge(1.0).scaled(1 / 2.0)).solve("exact")
    assert solved(net) == pytest.approx(2.0 * plain.value, rel=1e-6)


@every(
    ("C", "nu", "message"),
    [
        (1.0, 0.5, "exactly one of C and nu must be given, got C=1.0 and nu=0.5. Drop one"),
        (None, None, "exactly one of C and nu must be given, got C=None and nu=None"),
        (None, 0.0, "nu must be a positive finite number, got 0"),
        (None, -0.5, "nu must be .*, got -0.5"),
        (None, np.nan, "nu must be .*, got nan"),
        (None, 3, r"nu must be a fraction in \(0, 1\], got 3. Divide"),
        (0.0, None, "C must be a positive finite number, got 0"),
        (-1.0, None, "C must be .*, got -1"),
        (np.inf, None, "C must be finite, got inf"),
    ],
)
def test_one_class_learning_takes_C_or_nu(C, nu, message):
    with pytest.raises(ParameterError, match=message):
        lp_norm.one_class(GRAMS, p=2, C=C, nu=nu)


def test_one_class_learning_refuses_bad_kernels():
    with pytest.raises(NotPSDError, match=r"K\[1\]"):
        lp_norm.one_class(indefinite(), p=2, nu=0.5)
    with pytest.raises(NotPSDError, match=r"K\[1\]"):
        lp_norm.one_class(indefinite(), p=2, C=1.0).solve()
    with pytest.raises(ShapeError, match="Wrap a single matrix"):
        lp_norm.one_class(GRAMS[0], p=2, nu=0.5)


@pytest.mark.parametrize("name", [*BUILDERS, "steep powers"])
def test_a_hard_margin_that_no_kernel_meets_is_infeasible(name):
    """Two equal points of different classes; proved before solving, or by a Farkas ray."""
    X = np.array([[0.0], [0.0], [1.0]])
    grams = np.array([X @ X.T, np.ones((3, 3)), np.exp(-((X - X.T) ** 2))])
    build = BUILDERS.get(
        name, lambda grams, y, loss: lp_norm.block_norm(grams, y, r=3, loss=loss, squared=False)
    )
    with pytest.raises(InfeasibleError) as caught:
        build(grams, [1, -1, 1], loss=ko.hard_margin()).solve()
    assert caught.value.proof is not None


def test_theorem_1_needs_a_machine():
    flat = lp_norm.primal(GRAMS, np.full(N, 2.0), p=2, loss=ko.squared()).solve()
    with pytest.raises(
        InputError, match="must be different from zero, got .*weights are not determined. Increase C"
    ):
        lp_norm.tikhonov_from_ivanov(flat, loss=ko.squared())
    flat = lp_norm.tikhonov(GRAMS, np.full(N, 2.0), p=2, penalty=1.0, loss=ko.squared()).solve()
    with pytest.raises(InputError, match="must be different from zero"):
        lp_norm.ivanov_from_tikhonov(flat, p=2, loss=ko.squared())
    alone = ko.solve(cp.Problem(cp.Minimize(cp.square(cp.Variable(3)[0] - 1))))
    with pytest.raises(InputError, match=r"must have one machine with weights, got 0 machine\(s\)"):
        lp_norm.ivanov_from_tikhonov(alone, p=2, loss=ko.squared())


def test_theorem_1_checks_its_numbers():
    solution = lp_norm.primal(GRAMS, Y, p=2).solve()
    for tau in (0.0, -1.0, np.nan, np.inf):
        with pytest.raises(ParameterError, match="tau must be a positive finite number, got"):
            lp_norm.tikhonov_from_ivanov(solution, loss=ko.hinge(), tau=tau)
    with pytest.raises(ParameterError, match="p must be at least 1"):
        lp_norm.ivanov_from_tikhonov(solution, p=0.5, loss=ko.hinge())

"""The words that read numbers off a kernel, and the l_p ball, against numpy and closed forms."""

from __future__ import annotations

import cvxpy as cp
import numpy as np
import pytest

import kernelopt as ko
from kernelopt.errors import NotFiniteError, NotSymmetricError, ParameterError, ShapeError
from kernelopt.language.terms import terms
from tests.every import every
from tests.language.cases import KERNELS, SUMS, kernels
from tests.problems import labels, solved, stack

N, TRAINING = 8, 5
KS = stack(N)
GRAMS = ko.Grams.from_array(KS)


@kernels
def test_words_are_the_numbers_of_the_matrix(make):
    K, value = make()
    assert getattr(K, "value", K) == pytest.approx(value)
    i, j = np.array([0, 3, 5, 2]), np.array([1, 3, 0, 2])
    pairs = [
        (ko.trace(K), np.trace(value)),
        (ko.entries(K, i, j), value[i, j]),
        (ko.entries(K, 2, 1), value[[2], [1]]),
    ]
    for n in (TRAINING, len(value)):
        y = labels(n) * np.linspace(1, 2, n)
        pairs.append((ko.alignment(K, y), y @ value[:n, :n] @ y))
    for word, number in pairs:
        assert word.shape == np.shape(number) and word.is_affine()
        assert word.value == pytest.approx(number)
    norm = ko.frobenius(K)
    assert norm.shape == () and norm.is_convex() and norm.is_nonneg()
    assert norm.value == pytest.approx(np.linalg.norm(value), rel=1e-8)


@every("name", SUMS)
def test_sums_of_gram_matrices_are_read_as_such(name):
    """So that the words cost m numbers and the risk a second-order cone, not N^2 m."""
    K, value = KERNELS[name]()
    found = terms(K)
    assert found is not None
    assert sum(g.combine(w.value) for w, g in found) == pytest.approx(value)


def test_frobenius_of_nearly_equal_kernels_stays_accurate():
    Ks = np.stack([KS[0], KS[0], KS[0] + 1e-3 * KS[1]])
    assert ko.frobenius(ko.combine([1.0, 1.0, -2.0], Ks)).value == pytest.approx(
        2e-3 * np.linalg.norm(KS[1]), rel=1e-6
    )


def test_best_alignment_in_closed_form():
    """max y'K(mu)y with |K(mu)|_F <= 1 is sqrt(q'S^-1 q), q_i = y'K_i y (Lanckriet 7.1)."""
    mu, y = cp.Variable(3), labels(N)
    K = ko.combine(mu, GRAMS)
    q, S = GRAMS.forms(y), GRAMS.inner()
    value = solved(cp.Problem(cp.Maximize(ko.alignment(K, y)), [ko.frobenius(K) <= 1]))
    assert value == pytest.approx(np.sqrt(q @ np.linalg.solve(S, q)), rel=1e-7)
    assert mu.value == pytest.approx(np.linalg.solve(S, q) / value, rel=1e-4)


def test_words_work_as_constraints_of_one_problem():
    mu = cp.Variable(3, nonneg=True)
    K = ko.combine(mu, GRAMS)
    near = ko.entries(K, [0, 1], [2, 3]) <= 0.1
    value = solved(cp.Problem(cp.Maximize(ko.alignment(K, labels(N))), [ko.trace(K) == 1, near]))
    raw = KS[0] * mu[0] + KS[1] * mu[1] + KS[2] * mu[2]
    y = labels(N)
    plain = cp.Problem(
        cp.Maximize(cp.sum(cp.multiply(np.outer(y, y), raw))),
        [cp.trace(raw) == 1, raw[0, 2] <= 0.1, raw[1, 3] <= 0.1],
    )
    assert value == pytest.approx(solved(plain), rel=1e-6)


def test_a_principal_block_of_a_combination_is_a_combination():
    mu = cp.Variable(3, nonneg=True)
    K = ko.combine(mu, GRAMS)
    for rows in (slice(None, TRAINING), slice(2, 6), slice(None, None, 2), slice(None)):
        block = K[rows, rows]
        assert isinstance(block, ko.Combination) and block.weights is mu
        assert isinstance(block[:2, :2], ko.Combination)
        mu.value = np.arange(3.0)
        assert block.value == pytest.approx(K.value[rows, rows])
    for key in ((slice(0, 2), slice(1, 3)), (0, 1), (slice(0, 2), 0), ([0, 1], [1, 2])):
        assert not isinstance(K[key], ko.Combination)
        assert K[key].value == pytest.approx(K.value[key])


def test_a_combination_is_symmetric_and_affine_and_prints():
    mu = cp.Variable(3, name="mu")
    K = ko.combine(mu, GRAMS)
    assert K.shape == (N, N) and K.is_symmetric() and K.is_hermitian() and K.is_affine()
    assert K.value is None and K.variables() == [mu]
    assert str(K) == "combine(mu, 3 kernels)"


@pytest.mark.parametrize("solver_arguments", [{}, {"canon_backend": "CPP"}, {"canon_backend": "SCIPY"}])
def test_a_combination_is_its_own_sum_inside_a_problem(solver_arguments):
    """Compiled entry by entry: maximise <W, K(mu)> over a ball for a W that is not symmetric."""
    mu, W = cp.Variable(3), np.random.default_rng(3).normal(size=(N, N))
    problem = cp.Problem(cp.Maximize(cp.sum(cp.multiply(W, ko.combine(mu, GRAMS)))), [cp.norm2(mu) <= 1])
    value = solved(problem, **solver_arguments)
    assert value == pytest.approx(np.linalg.norm(np.einsum("ij,mij->m", W, KS)), rel=1e-7)


def test_combine_takes_one_scalar_weight_for_one_kernel():
    scale = cp.Variable(nonneg=True)
    scale.value = 2.0
    assert ko.combine(scale, KS[:1]).value == pytest.approx(2 * KS[0])
    assert ko.combine(3.0, KS[:1]).value == pytest.approx(3 * KS[0])
    assert ko.combine([1, 0, 2], GRAMS).value == pytest.approx(KS[0] + 2 * KS[2])


@every(
    ("call", "error", "message"),
    [
        *(
            (
                lambda w=w: ko.combine(w, GRAMS),
                ShapeError,
                r"shape \(3,\), one per kernel, got .* cp.Variable\(3, ",
            )
            for w in (cp.Variable(2), cp.Variable((3, 1)), cp.Variable(), np.ones(4), 1.0)
        ),
        (lambda: ko.trace(GRAMS), ShapeError, r"got a stack.*combine\(weights, grams\)"),
        (lambda: ko.trace(KS), ShapeError, r"got shape \(3, 8, 8\).*combine"),
        (lambda: ko.frobenius(cp.Variable((2, 3))), ShapeError, r"square matrix.*got shape \(2, 3\)"),
        (lambda: ko.trace(np.triu(np.ones((3, 3)))), NotSymmetricError, "K must be symmetric"),
        (lambda: ko.risk(np.triu(KS[0]), labels(N), ko.hinge()), NotSymmetricError, "K must be symmetric"),
        (lambda: ko.risk(KS[0] * np.nan, labels(N), ko.hinge()), NotFiniteError, "K must be finite"),
        (lambda: ko.entries(KS[0], [0, 1], [1]), ShapeError, r"got shapes \(2,\) and \(1,\)"),
        (lambda: ko.entries(KS[0], [0, 8], [1, 1]), ParameterError, r"rows .* in 0..7, got \[0, 8\]"),
        (lambda: ko.entries(KS[0], [0, 1], [-1, 1]), ParameterError, "columns must be integers in 0..7"),
        (lambda: ko.entries(KS[0], [0.5], [1]), ParameterError, "Number the points from zero"),
        (lambda: ko.entries(KS[0], [[0]], [[1]]), ShapeError, "index vectors"),
        (lambda: ko.entries(KS[0], [], []), ShapeError, "one positive length"),
        (lambda: ko.entries(KS[0], *2 * [np.array([], dtype=int)]), ShapeError, "one positive length"),
        (lambda: ko.alignment(KS[0], np.ones(9)), ShapeError, "at most 8 entries, got 9"),
        (lambda: ko.alignment(KS[0], np.ones((2, 2))), ShapeError, "1 dimension"),
        (lambda: ko.risk(KS[0], labels(N), "hinge"), ParameterError, "loss must be .*got 'hinge'"),
        (lambda: ko.risk(GRAMS, labels(N), ko.hinge()), ShapeError, "got a stack"),
        (lambda: ko.risk([KS[0], KS[0][:3, :3]], [1, -1], ko.hinge()), ShapeError, "must have one shape"),
        (lambda: ko.risk([], [1, -1], ko.hinge()), ShapeError, "must have one shape"),
        (lambda: ko.risk([KS[0], np.ones((2, 3))], [1, -1], ko.hinge()), ShapeError, r"K\[1\] must be"),
    ],
)
def test_misuse_is_refused_with_a_remedy(call, error, message):
    with pytest.raises(error, match=message):
        call()


G = np.array([2.0, -1.0, 0.5, 3.0])


@every("radius", [1.0, 2.5, cp.Parameter(nonneg=True, value=2.5)], ids=str)
@pytest.mark.parametrize("p", [1, 1.5, 2, 3, 17.3, np.inf])
@every("nonneg", [False, True])
def test_the_ball_has_its_support_function(p, radius, nonneg):
    """max g'theta over theta >= 0, |theta|_p <= R is R |g_+|_q with 1/p + 1/q = 1."""
    theta = cp.Variable(4, nonneg=nonneg)
    ball = ko.lp_ball(theta, p, radius)
    q = np.inf if p == 1 else 1.0 if p == np.inf else p / (p - 1)
    size = 2.5 if isinstance(radius, cp.Parameter) else radius
    value = solved(cp.Problem(cp.Maximize(G @ theta), ball))
    assert value == pytest.approx(size * np.linalg.norm(np.maximum(G, 0), q), rel=1e-6)
    assert theta.value.min() >= -1e-7 and np.linalg.norm(theta.value, p) <= size * (1 + 1e-6)


def test_the_ball_names_its_constraints_and_adds_signs_once():
    assert [c.label for c in ko.lp_ball(cp.Variable(3), 2)] == ["weights >= 0", "ball"]
    assert [c.label for c in ko.lp_ball(cp.Variable(3, nonneg=True), 2)] == ["ball"]
    shifted = ko.lp_ball(2 * cp.Variable(3) - 1, 3)
    assert len(shifted) == 2 and all(c.is_dcp() for c in shifted)


def test_a_forgotten_star_is_named():
    theta = cp.Variable(3)
    sets = (ko.lp_ball(theta, 2), ko.diagonally_dominant(np.eye(1)), ko.diagonally_dominant(np.eye(2)))
    for constraints in sets:
        assert isinstance(constraints, list) and len(cp.Problem(cp.Minimize(0), constraints).constraints) >= 1
        with pytest.raises(ValueError, match=r"a star before it, as in \[\*kernelopt.lp_ball\(theta, p\)\]"):
            cp.Problem(cp.Minimize(0), [constraints, theta <= 1])


@every(
    ("call", "error", "message"),
    [
        (lambda t: ko.lp_ball(t, 0.5), ParameterError, "p must be at least 1, got 0.5.*p = 1 is sparse"),
        (lambda t: ko.lp_ball(t, np.nan), ParameterError, "p must be"),
        (lambda t: ko.lp_ball(t, -1), ParameterError, "p must be"),
        (lambda t: ko.lp_ball(t, "2"), ParameterError, "p must be"),
        (lambda t: ko.lp_ball(t, 2, 0.0), ParameterError, "radius must be a positive finite number, got 0"),
        (lambda t: ko.lp_ball(t, 2, -1.0), ParameterError, "radius"),
        (lambda t: ko.lp_ball(t, 2, np.inf), ParameterError, "radius"),
        (lambda t: ko.lp_ball(cp.Variable((3, 1)), 2), ShapeError, r"got \(3, 1\). Use cp.Variable\(m\)"),
        (lambda t: ko.lp_ball(cp.Variable(), 2), ShapeError, r"shape \(m,\), got \(\)"),
        (lambda t: ko.lp_ball([1.0, 2.0], 2), ShapeError, "got list"),
    ],
)
def test_bad_balls_are_refused_with_a_remedy(call, error, message):
    with pytest.raises(error, match=message):
        call(cp.Variable(3))


def test_a_ball_with_a_convex_argument_is_not_dcp_where_it_is_not_convex():
    theta = cp.Variable(3)
    assert not all(c.is_dcp() for c in ko.lp_ball(cp.square(theta) - 1, 2))

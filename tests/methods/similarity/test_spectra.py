"""Projections after a rank-one change, roots of the secular equation and offsets, against dense algebra."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pytest

import kernelopt as ko
from kernelopt.methods.similarity.offset import box_maximiser, minimize_offset
from kernelopt.methods.similarity.projection import Eigenpairs, project, project_diagonal
from kernelopt.methods.similarity.secular import eigenvector_loop, secular_eigenvector, secular_root
from kernelopt.numerics.compiling import compiled
from kernelopt.numerics.norms import on_simplex
from tests.every import every
from tests.problems import labels, sample_weights, targets

SIZES = [1, 2, 3, 4, 12, 40]
CHANGES = [1e-8, 1e-4, 1e-1, 1.0, 1e2, 1e8]
TOTALS = [1e-2, 1.0, 30.0, None]


def orthogonal(n, rng):
    return np.linalg.qr(rng.normal(size=(n, n)))[0]


def spectral(Q, spectrum):
    return (Q * spectrum) @ Q.T


def with_zeros(n, rng):
    Q = orthogonal(n, rng)
    return spectral(Q, rng.normal(size=n)), Q @ (rng.normal(size=n) * (rng.random(n) < 0.5))


def nearly_equal(n, rng):
    spectrum = np.round(rng.normal(size=n)) + 1e-15 * rng.normal(size=n)
    return spectral(orthogonal(n, rng), spectrum), rng.normal(size=n)


def close(n, rng):
    spectrum = np.round(rng.normal(size=n)) + 10.0 ** rng.uniform(-16, -6, n)
    return spectral(orthogonal(n, rng), spectrum), rng.normal(size=n)


MATRICES = {  # of n and rng: B and z
    "random": lambda n, rng: ((A := rng.normal(size=(n, n))) + A.T, rng.normal(size=n)),
    "blocks": lambda n, rng: (np.kron(np.eye(n), np.ones((4, 4)))[:n, :n], rng.normal(size=n)),
    "identity": lambda n, rng: (np.eye(n), rng.normal(size=n)),
    "zero": lambda n, rng: (np.zeros((n, n)), rng.normal(size=n)),
    "negative": lambda n, rng: (-np.eye(n), rng.normal(size=n)),
    "no change": lambda n, rng: ((A := rng.normal(size=(n, n))) + A.T, np.zeros(n)),
    "some of u are zero": with_zeros,
    "nearly equal poles": nearly_equal,
    "close poles": close,
}


FORMS = {"Python": lambda loop: loop, "machine code": compiled}
forms = every("form", FORMS)
EIGENVECTORS = {"Python": secular_eigenvector, "machine code": eigenvector_loop}


class Values(NamedTuple):
    """Numbers of a projection K of M = B + c z z': z'Kz, |K - B|_F^2, |K|_F^2 and theta."""

    form: float
    distance: float
    square: float
    shift: float


def dense(B, z, c, total):
    """The projection by a full decomposition: K and theta."""
    mu, V = np.linalg.eigh(B + c * np.outer(z, z))
    kept, shift = on_simplex(mu, total)
    return spectral(V, kept), shift


def projected(B, z, c, total, form):
    """The same by the change of the decomposition of B: K, K z and what is known of K."""
    spectrum, Q = np.linalg.eigh((B + B.T) / 2)
    pairs, out = Eigenpairs.empty(z.size), np.empty(z.size)
    values = FORMS[form](project)(spectrum, Q.T @ z, c, np.nan if total is None else total, pairs, out)
    rank = np.count_nonzero(pairs.weights)
    rows = pairs.vectors[:rank] @ Q.T
    return (rows.T * (pairs.weights / pairs.squares)[:rank]) @ rows, Q @ out, Values(*values)


def check_projection(B, z, c, total, form):
    K, image_of_z, values = projected(B, z, c, total, form)
    exact, shift = dense(B, z, c, total)
    reach = np.linalg.norm(B, 2) + c * (z @ z)
    # Both start from eigenvalues that are known to rounding in the largest: it is magnified where K is less.
    size = max(np.linalg.norm(exact, 2), 1e-6 * reach, 1e-300)
    tol = 1e-9 * size
    assert K == pytest.approx(exact, abs=tol)
    assert image_of_z == pytest.approx(exact @ z, abs=tol * (np.linalg.norm(z) + 1e-300))
    assert values.form == pytest.approx(z @ exact @ z, abs=tol * (z @ z) + 1e-300)
    assert values.shift == pytest.approx(shift, abs=1e-13 * max(reach, size))
    assert values.square == pytest.approx((exact**2).sum(), abs=tol * size)
    scale = (B**2).sum() + (exact**2).sum()
    assert values.distance == pytest.approx(((exact - B) ** 2).sum(), abs=1e-9 * scale)
    if total is not None:
        assert np.trace(K) == pytest.approx(total, rel=1e-13)
    assert np.linalg.eigvalsh(K)[0] >= -1e-14 * size * z.size


@forms
@pytest.mark.parametrize("total", TOTALS)
@every("kind", MATRICES)
def test_the_projection_is_that_of_a_full_decomposition(kind, total, form):
    rng = np.random.default_rng(0)
    for n in SIZES:
        for c in CHANGES:
            B, z = MATRICES[kind](n, rng)
            check_projection(B, z, c, total, form)


@forms
def test_the_projection_of_equal_and_of_deflated_eigenvalues(form):
    B = np.kron(np.eye(10), np.ones((20, 20)))  # 10 eigenvalues of 20 and 190 of 0, and its trace is 200
    for total in (200.0, 20.0, None):
        check_projection(B, np.random.default_rng(1).normal(size=200), 0.01, total, form)
    # u_0 u_2 (b_2 - b_0) is rounding beside u_2^2, so that b_0 is done after b_1, which is larger. With a
    # trace of 3.78, theta is between them.
    B, z = np.diag([0.3, 0.35, 0.4, 2.0]), np.array([1e-14, 0.0, 1.0, 1.0])
    for total in (3.0, 3.78, None):
        check_projection(B, z, 1.0, total, form)


@forms
def test_values_keep_their_accuracy_where_the_change_is_large(form):
    # Worked out by hand: with z = e_1 and c = 1e12, K = total e_1 e_1', theta = lambda + c - total.
    B, z = np.diag([2.0, 1.0, -1.0]), np.array([1.0, 0.0, 0.0])
    _, image_of_z, values = projected(B, z, 1e12, 3.0, form)
    assert image_of_z == pytest.approx([3, 0, 0], abs=1e-14)
    assert values.form == pytest.approx(3, rel=1e-14)
    assert values.distance == pytest.approx(3, rel=1e-12)  # (3 - 2)^2 + 1 + 1
    assert values.shift == pytest.approx(1e12 - 1, rel=1e-14)


@forms
@pytest.mark.parametrize("rho", [1e-6, 1e-2, 1.0, 1e4])
def test_roots_give_orthogonal_eigenvectors_even_between_close_poles(rho, form):
    root_of, eigenvector = FORMS[form](secular_root), FORMS[form](EIGENVECTORS[form])
    rng = np.random.default_rng(2)
    for poles in (
        np.sort(rng.normal(size=60)),
        np.sort(10.0 ** rng.uniform(-8, 0, 60)),
        1 + 1e-10 * np.arange(60),
        np.array([0.3]),
        np.array([-1.0, 2.0]),
    ):
        n = poles.size
        z = rng.uniform(0.1, 1, n)
        z /= np.linalg.norm(z)
        gaps, rows, mu = np.empty(n), np.empty((n, n)), np.empty(n)
        for j in range(n):
            origin, eta = root_of(j, poles, z * z, rho, gaps)
            mu[j] = poles[origin] + eta
            square, quadratic, _ = eigenvector(gaps, eta, z, poles, z, rows[j])
            rows[j] /= np.sqrt(square)
            assert quadratic / square == pytest.approx((rows[j] ** 2) @ poles, rel=1e-12)
        M = np.diag(poles) + rho * np.outer(z, z)
        assert rows @ rows.T == pytest.approx(np.eye(n), abs=1e-13)
        assert (rows.T * mu) @ rows == pytest.approx(M, abs=1e-14 * n * np.abs(M).max())


@forms
@pytest.mark.parametrize("total", TOTALS)
def test_the_diagonal_projection_is_that_on_the_simplex(total, form):
    rng = np.random.default_rng(3)
    for n in SIZES:
        for c in CHANGES:
            spectrum, u = rng.normal(size=n), rng.normal(size=n)
            pairs, out = Eigenpairs.empty(n), np.empty(n)
            loop, trace = FORMS[form](project_diagonal), np.nan if total is None else total
            values = Values(*loop(spectrum, u, c, trace, pairs, out))
            mu, shift = on_simplex(spectrum + c * u * u, total)
            tol = 1e-13 * (1 + c * (u @ u))
            assert pairs.weights == pytest.approx(mu, abs=tol)
            assert out == pytest.approx(pairs.weights * u, rel=1e-14)
            assert values.shift == pytest.approx(shift, abs=tol)
            assert values.form == pytest.approx(pairs.weights @ u**2, rel=1e-13)
            assert values.distance == pytest.approx(((pairs.weights - spectrum) ** 2).sum(), rel=1e-13)
            assert values.square == pytest.approx((pairs.weights**2).sum(), rel=1e-13)


def test_on_simplex_meets_the_conditions_of_a_projection():
    rng = np.random.default_rng(4)
    for total in (1e-6, 1.0, 1e6):
        for values in (rng.normal(size=30), np.zeros(5), 1e8 + rng.normal(size=7), np.array([-4.0])):
            x, shift = on_simplex(values, total)
            assert x.min() >= 0 and x.sum() == pytest.approx(total, rel=1e-13)
            slack = 1e-12 * (np.abs(values).max() + total)
            assert x[x > 0] == pytest.approx((values - shift)[x > 0], abs=slack)
            assert (values[x == 0] <= shift + slack).all()
    x, shift = on_simplex(np.array([-1.0, 2.0]), None)
    assert x.tolist() == [0.0, 2.0] and shift == 0.0


# ------------------------------------------------------------------------------------- the offset

LOSSES = {
    "hinge": lambda C: ko.hinge(C=C),
    "huberized": lambda C: ko.losses.huberized_hinge(C=C, tau=0.4),
    "squared hinge": lambda C: ko.squared_hinge(C=C),
    "squared": lambda C: ko.squared(C=C),
}
losses = pytest.mark.parametrize("name", LOSSES)


def outcomes(name, n, seed=0):
    return (targets if name == "squared" else labels)(n, seed)


@forms
@losses
def test_the_offset_is_the_best_intercept_and_the_price_of_a_projection(name, form):
    offset, maximiser = FORMS[form](minimize_offset), FORMS[form](box_maximiser)
    rng = np.random.default_rng(5)
    for n in (2, 7, 60):
        y, loss, one, out = outcomes(name, n), LOSSES[name](sample_weights(n)), np.ones(n), np.empty(n)
        curve = loss.curve(y)
        for scale in (1e-3, 1.0, 1e3):
            f = scale * rng.normal(size=n)
            best = loss.value(f + loss.intercept(f, y), y)
            for slack, start in ((0.0, 0.0), (1e-3 * best, 5.0)):
                b, value = offset(curve.linear - f, curve.curvature, curve.lower, curve.upper, start, slack)
                assert value == pytest.approx(loss.value(f + b, y), rel=1e-12, abs=1e-12)
                assert best - 1e-12 * (1 + best) <= value <= best + slack + 1e-12 * (1 + best)
            for shift in (0.0, 1e6):  # of all entries, which the price takes back
                nu, _ = offset(f + shift, one, curve.lower, curve.upper, 0.0, -1.0)
                maximiser(nu, f + shift, one, curve.lower, curve.upper, True, out)
                assert out == pytest.approx(loss.project(f, y, bias=True), abs=1e-12 * scale + 1e-15 * shift)
                assert abs(out.sum()) <= 1e-14 * np.abs(out).sum()

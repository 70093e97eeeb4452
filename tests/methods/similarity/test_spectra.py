"""Projections after a rank-one change, and the ascent made of them, against dense algebra and cvxpy."""

from __future__ import annotations

from typing import NamedTuple

import cvxpy as cp
import numpy as np
import pytest

import kernelopt as ko
from kernelopt.methods.checkpoint import State
from kernelopt.methods.similarity.ascent import Ascent
from kernelopt.methods.similarity.offset import box_maximiser, minimize_offset
from kernelopt.methods.similarity.projection import Eigenpairs, project, project_diagonal
from kernelopt.methods.similarity.secular import secular_eigenvector, secular_root
from kernelopt.numerics.norms import on_simplex
from kernelopt.structure.nearness import read_nearness
from tests.every import every
from tests.problems import labels, sample_weights, solved, targets

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


def projected(B, z, c, total):
    """The same by the change of the decomposition of B: K, K z and what is known of K."""
    spectrum, Q = np.linalg.eigh((B + B.T) / 2)
    pairs, out = Eigenpairs.empty(z.size), np.empty(z.size)
    values = project(spectrum, Q.T @ z, c, np.nan if total is None else total, pairs, out)
    rank = np.count_nonzero(pairs.weights)
    rows = pairs.vectors[:rank] @ Q.T
    return (rows.T * (pairs.weights / pairs.squares)[:rank]) @ rows, Q @ out, Values(*values)


def check_projection(B, z, c, total):
    K, image_of_z, values = projected(B, z, c, total)
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


@pytest.mark.parametrize("total", TOTALS)
@every("kind", MATRICES)
def test_the_projection_is_that_of_a_full_decomposition(kind, total):
    rng = np.random.default_rng(0)
    for n in SIZES:
        for c in CHANGES:
            B, z = MATRICES[kind](n, rng)
            check_projection(B, z, c, total)


def test_the_projection_of_equal_and_of_deflated_eigenvalues():
    B = np.kron(np.eye(10), np.ones((20, 20)))  # 10 eigenvalues of 20 and 190 of 0, and its trace is 200
    for total in (200.0, 20.0, None):
        check_projection(B, np.random.default_rng(1).normal(size=200), 0.01, total)
    # u_0 u_2 (b_2 - b_0) is rounding beside u_2^2, so that b_0 is done after b_1, which is larger. With a
    # trace of 3.78, theta is between them.
    B, z = np.diag([0.3, 0.35, 0.4, 2.0]), np.array([1e-14, 0.0, 1.0, 1.0])
    for total in (3.0, 3.78, None):
        check_projection(B, z, 1.0, total)


def test_values_keep_their_accuracy_where_the_change_is_large():
    # Worked out by hand: with z = e_1 and c = 1e12, K = total e_1 e_1', theta = lambda + c - total.
    B, z = np.diag([2.0, 1.0, -1.0]), np.array([1.0, 0.0, 0.0])
    _, image_of_z, values = projected(B, z, 1e12, 3.0)
    assert image_of_z == pytest.approx([3, 0, 0], abs=1e-14)
    assert values.form == pytest.approx(3, rel=1e-14)
    assert values.distance == pytest.approx(3, rel=1e-12)  # (3 - 2)^2 + 1 + 1
    assert values.shift == pytest.approx(1e12 - 1, rel=1e-14)


@pytest.mark.parametrize("rho", [1e-6, 1e-2, 1.0, 1e4])
def test_roots_give_orthogonal_eigenvectors_even_between_close_poles(rho):
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
            origin, eta = secular_root(j, poles, z * z, rho, gaps)
            mu[j] = poles[origin] + eta
            square, form, _ = secular_eigenvector(gaps, eta, z, poles, z, rows[j])
            rows[j] /= np.sqrt(square)
            assert form / square == pytest.approx((rows[j] ** 2) @ poles, rel=1e-12)
        M = np.diag(poles) + rho * np.outer(z, z)
        assert rows @ rows.T == pytest.approx(np.eye(n), abs=1e-13)
        assert (rows.T * mu) @ rows == pytest.approx(M, abs=1e-14 * n * np.abs(M).max())


@pytest.mark.parametrize("total", TOTALS)
def test_the_diagonal_projection_is_that_on_the_simplex(total):
    rng = np.random.default_rng(3)
    for n in SIZES:
        for c in CHANGES:
            spectrum, u = rng.normal(size=n), rng.normal(size=n)
            pairs, out = Eigenpairs.empty(n), np.empty(n)
            values = Values(*project_diagonal(spectrum, u, c, np.nan if total is None else total, pairs, out))
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


@losses
def test_the_offset_is_the_best_intercept_and_the_price_of_a_projection(name):
    rng = np.random.default_rng(5)
    for n in (2, 7, 60):
        y, loss, one, out = outcomes(name, n), LOSSES[name](sample_weights(n)), np.ones(n), np.empty(n)
        curve = loss.curve(y)
        for scale in (1e-3, 1.0, 1e3):
            f = scale * rng.normal(size=n)
            best = loss.value(f + loss.intercept(f, y), y)
            for slack, start in ((0.0, 0.0), (1e-3 * best, 5.0)):
                b, value = minimize_offset(
                    curve.linear - f, curve.curvature, curve.lower, curve.upper, start, slack
                )
                assert value == pytest.approx(loss.value(f + b, y), rel=1e-12, abs=1e-12)
                assert best - 1e-12 * (1 + best) <= value <= best + slack + 1e-12 * (1 + best)
            for shift in (0.0, 1e6):  # of all entries, which the price takes back
                nu, _ = minimize_offset(f + shift, one, curve.lower, curve.upper, 0.0, -1.0)
                box_maximiser(nu, f + shift, one, curve.lower, curve.upper, True, out)
                assert out == pytest.approx(loss.project(f, y, bias=True), abs=1e-12 * scale + 1e-15 * shift)
                assert abs(out.sum()) <= 1e-14 * np.abs(out).sum()


# ------------------------------------------------------------------------------------- the ascent


class Problem(NamedTuple):
    """B_i, their decompositions and weights, and a loss."""

    loss: ko.Loss
    y: np.ndarray
    bias: bool
    B: list[np.ndarray]
    totals: list[float | None]
    diagonal: bool
    W: np.ndarray

    def ascent(self):
        """The ascent, and the matrices set."""
        X, K, sets, near = [], [], [], 0.0
        for B, total in zip(self.B, self.totals, strict=True):
            N, (spectrum, V) = len(B), np.linalg.eigh(B)
            x = cp.Variable(N, nonneg=True) if self.diagonal else cp.Variable((N, N), PSD=True)
            X, K = [*X, x], [*K, ko.combine(x, ko.Grams.rank_one(V)) if self.diagonal else x]
            near += cp.sum_squares(x - (spectrum if self.diagonal else B))
            sets += [] if total is None else [(cp.sum if self.diagonal else cp.trace)(x) == total]
        risk = ko.risk(K, self.y, self.loss, self.bias, norm=np.inf) if len(K) > 1 else None
        risk = ko.risk(K[0], self.y, self.loss, self.bias) if risk is None else risk
        made = Ascent(read_nearness(ko.Structure(cp.Problem(cp.Minimize(risk + near), sets))), State())
        return self.place(made)

    def place(self, ascent):
        for i, block in enumerate(ascent.problem.blocks):
            ascent.set_matrix(i, self.B[i] if block.V is None else np.linalg.eigh(self.B[i])[0])
        return ascent

    def optimum(self):
        """The value by cvxpy: each f_i with its norm in the corner of a semidefinite matrix."""
        n, N = self.y.size, len(self.B[0])
        b, t, fit, price, rules = cp.Variable(), cp.Variable(), 0, 0, []
        for B, total, W in zip(self.B, self.totals, self.W, strict=True):
            if self.diagonal:
                spectrum, Q = np.linalg.eigh(B)
                mu, c, r = cp.Variable(N, nonneg=True), cp.Variable(N), cp.Variable(N)
                f, trace, distance = Q @ c, cp.sum(mu), cp.sum_squares(mu - spectrum)
                rules += [cp.SOC(mu + r, cp.vstack([2 * c, mu - r]), axis=0), cp.sum(r) <= t]
            else:
                M = cp.Variable((N + 1, N + 1), PSD=True)
                f, trace, distance = M[:N, N], cp.trace(M[:N, :N]), cp.sum_squares(M[:N, :N] - B)
                rules += [M[N, N] <= t]
            fit, price = fit + f[:n], price + W * distance
            rules += [] if total is None else [trace == total]
        objective = self.loss.expression(fit + (b if self.bias else 0), self.y) + t / 2 + price
        return solved(cp.Problem(cp.Minimize(objective), rules))

    def bounds(self, ascent):
        """d and the objective at the point of the ascent, from dense kernels and the loss itself."""
        z, K, (alpha, _, gamma, *_) = padded(ascent), kernels(ascent), ascent.state
        forms = np.array([z @ k @ z for k in K])
        distance = sum(w * ((k - B) ** 2).sum() for w, k, B in zip(self.W, K, self.B, strict=True))
        f = sum(k @ z / g for k, g in zip(K, gamma, strict=True))[: self.y.size]
        b = self.loss.intercept(f, self.y) if self.bias else 0.0
        lower = self.loss.dual_value(alpha, self.y) - (forms / gamma).sum() / 2
        upper = self.loss.value(f + b, self.y) + (forms / gamma**2).max() / 2
        return lower + distance, upper + distance


def padded(ascent):
    return ascent.problem.padded(ascent.state.alpha)


def kernels(ascent):
    return [b.kernel(value()) for b, value in zip(ascent.problem.blocks, ascent.values(), strict=True)]


def similarities(N, m, seed=0):
    """Symmetric indefinite matrices, one of them of rank one."""
    rng = np.random.default_rng(seed)
    A = rng.normal(size=(m, N, N)) + 1.5 * np.eye(N)
    if m > 1:
        A[1] = np.outer(A[1, 0], A[1, 0]) / 2
    return list((A + A.transpose(0, 2, 1)) / 2)


def problem(name="hinge", m=1, bias=True, N=8, n=8, totals=(3.0, 5.0, 8.0), diagonal=False, W=0.3, C=1.3):
    B, W = similarities(N, m, seed=m), np.array([W, 2 * W, W / 2])[:m]
    loss = LOSSES[name](C * sample_weights(n))
    return Problem(loss, outcomes(name, n), bias, B, list(totals[:m]), diagonal, W)


PROBLEMS = {
    "one kernel": problem(),
    "one, squared hinge": problem("squared hinge"),
    "one, squared": problem("squared", bias=False),
    "one, huberized": problem("huberized"),
    "one of any trace": problem(totals=[None]),
    "unlabelled points": problem(N=11, n=7),
    "two": problem(m=2),
    "two, squared hinge, no bias": problem("squared hinge", m=2, bias=False),
    "two, squared, unlabelled": problem("squared", m=2, N=9, n=6),
    "three, traces and none": problem(m=3, totals=[2.0, None, 6.0]),
    "three of any trace, squared": problem("squared", m=3, totals=[None] * 3),
    "close to B": problem(m=2, W=30.0),
    "far from B": problem(m=2, W=1e-3),
    "large C": problem(m=2, C=50.0),
    "small trace": problem(m=2, totals=[0.2, 0.3]),
    "diagonal": problem(diagonal=True),
    "diagonal, two, squared hinge": problem("squared hinge", m=2, diagonal=True, bias=False),
    "diagonal, three, traces and none": problem(m=3, diagonal=True, totals=[2.0, None, 6.0], N=10),
    "diagonal, squared": problem("squared", m=2, diagonal=True, totals=[None, None]),
}
problems = pytest.mark.parametrize("name", PROBLEMS)


@problems
def test_the_ascent_ends_at_the_optimum_and_brackets_it_on_the_way(name):
    """And what it says of its point on the way is so."""
    given = PROBLEMS[name]
    exact, ascent, curve = given.optimum(), given.ascent(), given.loss.curve(given.y)
    scale = 1 + abs(exact)
    for steps in (1, 1, 3, 20):
        value, gap = ascent.solve(given.W, 0.0, steps)
        assert value <= exact + 1e-6 * scale and value + gap >= exact - 1e-6 * scale
        lower, upper = given.bounds(ascent)
        slack = 1e-10 * (1 + abs(lower) + abs(upper))
        assert value == pytest.approx(lower, abs=slack)
        assert upper - slack <= value + gap <= upper + 1e-8 * (1 + abs(upper))
        state, z = ascent.state, padded(ascent)
        assert state.gamma.min() > 0 and state.gamma.sum() == pytest.approx(1)
        assert (state.alpha >= curve.lower).all() and (state.alpha <= curve.upper).all()
        assert not given.bias or abs(state.alpha.sum()) <= 1e-13 * np.abs(state.alpha).sum()
        K = kernels(ascent)
        for i, k in enumerate(K):
            check_kernel(given, state, i, k, z)
        predictor = sum(k @ z / g for k, g in zip(K, state.gamma, strict=True))
        assert state.predictor == pytest.approx(predictor[: given.y.size], rel=1e-9, abs=1e-10)
    value, gap = ascent.solve(given.W, 1e-8 * scale, 5000)
    assert gap <= 1e-8 * scale
    assert value == pytest.approx(exact, abs=1e-6 * scale)


def check_kernel(given, state, i, K, z):
    """K_i is the projection that it is meant to be, and its numbers are those of the dense matrix."""
    B, total, c = given.B[i], given.totals[i], 1 / (4 * given.W[i] * state.gamma[i])
    spectrum = state.pairs.weights[i]
    assert np.linalg.eigvalsh(K) == pytest.approx(np.sort(spectrum), abs=1e-12 * (1 + spectrum.max()))
    assert np.linalg.eigvalsh(K)[0] >= -1e-13 * np.trace(K)
    assert total is None or np.trace(K) == pytest.approx(total, rel=1e-13)
    assert state.forms[i] == pytest.approx(z @ K @ z, rel=1e-9, abs=1e-12)
    assert state.distances[i] == pytest.approx(((K - B) ** 2).sum(), rel=1e-9, abs=1e-12)
    assert state.squares[i] == pytest.approx((K**2).sum(), rel=1e-10)
    eigenvalues, Q = np.linalg.eigh(B)
    changed = B + c * np.outer(z, z)
    if given.diagonal:
        best, shift = on_simplex(eigenvalues + c * (Q.T @ z) ** 2, total)
        exact = spectral(Q, best)
    else:
        exact, shift = dense(B, z, c, total)
    tol = 1e-10 * (1 + np.abs(changed).max())
    assert K == pytest.approx(exact, abs=tol)
    assert state.shifts[i] == pytest.approx(shift, abs=tol)


def test_a_second_call_starts_where_the_first_ended():
    given = problem("squared hinge", m=2, N=12, n=12)
    ascent, steps = given.ascent(), []
    for W, tol in ((given.W, 1e-6), (given.W, 1e-5), (1.01 * given.W, 1e-6)):
        ascent.solve(W, tol, 1000)
        steps.append(int(ascent.state.counts[0]))
    assert 5 < steps[0] <= ascent.state.counts[1]
    assert steps[1] == steps[0] + 1 and steps[2] - steps[1] < steps[0]


def test_a_matrix_can_be_placed_anew_and_the_kernels_of_before_remain():
    given = problem(m=2)
    moved = given._replace(B=similarities(8, 2, seed=9))
    ascent = given.ascent()
    ascent.solve(given.W, 1e-9, 1000)
    before, kept = kernels(ascent), ascent.values()
    value, gap = moved.place(ascent).solve(given.W, 1e-9, 5000)
    fresh, _ = moved.ascent().solve(given.W, 1e-9, 5000)
    assert gap <= 1e-9 and value == pytest.approx(fresh, abs=3e-9)
    for K, function, now in zip(before, kept, kernels(ascent), strict=True):
        assert np.array_equal(K, function()) and np.abs(K - now).max() > 1e-3


def test_the_ascent_is_quick_and_ends_at_rounding():
    given = problem(m=2, N=60, n=60, totals=[60.0, 90.0], W=0.05)
    ascent = given.ascent()
    _, gap = ascent.solve(given.W, 1e-6, 1000)
    steps, evaluations, _ = ascent.state.counts
    assert gap <= 1e-6 and steps <= 45 and evaluations <= 450  # now 34 and 346
    ascent.solve(given.W, 0.0, 10**6)
    assert ascent.state.counts[0] < 200


def test_splitting_a_kernel_in_equal_halves_shares_gamma_equally():
    # Two copies of B with half of the trace each: K_1 = K_2 and gamma = (1/2, 1/2) by symmetry.
    B = similarities(9, 1)[0]
    given = Problem(ko.hinge(C=2.0), labels(9), True, [B, B], [4.0, 4.0], False, np.array([0.5, 0.5]))
    ascent = given.ascent()
    ascent.state.gamma[:] = 0.01, 0.99
    ascent.solve(given.W, 1e-10, 5000)
    assert ascent.state.gamma == pytest.approx([0.5, 0.5], abs=1e-4)
    one, two = kernels(ascent)
    assert one == pytest.approx(two, abs=1e-3)


def test_small_distances_are_accurate():
    # B is nearly feasible: |K - B| is 1e-6 of |B|, and its square is below the rounding of |B|^2.
    A = np.random.default_rng(7).normal(size=(20, 4))
    B, trace = A @ A.T, float(np.trace(A @ A.T))
    given = Problem(ko.hinge(C=1.0), labels(20), True, [B], [trace], False, np.array([1e9 / trace]))
    ascent = given.ascent()
    value, gap = ascent.solve(given.W, 1e-6, 2000)
    exact = ((kernels(ascent)[0] - B) ** 2).sum()
    assert gap <= 1e-6 and exact < 1e-14 * (B**2).sum()
    assert ascent.state.distances[0] == pytest.approx(exact, rel=1e-4)
    lower, upper = given.bounds(ascent)
    assert value == pytest.approx(lower, abs=1e-6) and value + gap == pytest.approx(upper, abs=1e-6)


def test_a_kernel_that_wakes_up_late_gets_its_share():
    # z'K_2 z is zero until gamma_2 is so small that c z z' outweighs B_2 = -I: a kink, and a steep one.
    B, W = [np.eye(17), -np.eye(17)], np.full(2, 20.0)
    given = Problem(ko.squared(C=0.1), targets(17), False, B, [17.0, None], False, W)
    value, gap = given.ascent().solve(given.W, 1e-5, 3000)
    assert gap <= 1e-5 and value == pytest.approx(given.optimum(), abs=2e-5)


def test_no_target_no_ascent():
    B = [np.diag(np.arange(5.0) - 2)] * 2
    given = Problem(ko.squared(C=1.0), np.full(4, 2.5), True, B, [2.0, None], False, np.ones(2))
    ascent = given.ascent()
    value, gap = ascent.solve(given.W, 1e-12, 10)
    assert not ascent.state.alpha.any() and not ascent.state.forms.any()
    assert kernels(ascent)[1] == pytest.approx(np.diag([0, 0, 0, 1, 2.0]), abs=1e-14)
    # B_1 projected on trace 2: (0.5, 1.5) of its largest eigenvalues (1, 2); B_2: the negative part is lost
    assert value == pytest.approx(4 + 1 + 0.25 + 0.25 + 5) and gap <= 1e-12

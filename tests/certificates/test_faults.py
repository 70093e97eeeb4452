"""Bounds that were once false, each against a truth in exact fractions of the stored doubles.

Every problem here has a solution that is known by hand, or a feasible point or a dual point whose value is
computed in exact rational arithmetic. A lower bound above a feasible point's value is false, whatever the
units and however small the excess.
"""

from __future__ import annotations

import contextlib
import itertools
import math
import subprocess
import sys
import textwrap
from fractions import Fraction

import cvxpy as cp
import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer

import kernelopt as ko
from formulations import lanckriet
from tests.certificates.truth.draws import draw
from tests.every import every
from tests.exact_fractions import eliminated, exact, quietly

X = np.array([[1.0, 2.0], [-1.0, 1.0], [3.0, 0.0], [2.0, -2.0]])
Y = np.array([1.0, -1.0, 1.0, -1.0])
STACK = np.array([X @ X.T, np.eye(4)])


def form(a, K):
    """a'Ka in fractions."""
    a = exact(a)
    return a @ exact(K) @ a


def weights(size=2):
    return cp.Variable(size, nonneg=True, name="mu")


# ------------------------------------------------------------- 1. proofs of infeasibility


def two_prices(C, radius):
    """mu = 0 is feasible, with the value 4 C: two points of each class, and any intercept from -1 to 1."""
    mu = weights()
    risk = ko.risk(ko.combine(mu, STACK), Y, ko.hinge(C))
    return cp.Problem(cp.Minimize(risk), [mu[0] + 2 * mu[1] <= radius, 2 * mu[0] + mu[1] <= radius])


def least_of_two_prices(C, radius):
    """A lower bound: alpha = C y, and mu_0 a'K_0 a + mu_1 a'K_1 a is largest at a corner of the set."""
    C, radius = Fraction(C), Fraction(radius)
    first, second = (C**2 * form(Y, K) for K in STACK)
    corners = ((radius / 3, radius / 3), (radius / 2, 0), (0, radius / 2))
    return 4 * C - max(u * first + v * second for u, v in corners) / 2


SEEN = [(1e5, 1e-10), (1e6, 1e-7), (1e6, 1e-8), (1e7, 1e-7)]
GRID = [
    (C, radius)
    for C in (1e5, 1e6, 1e7)
    for radius in (1e-6, 1e-7, 1e-8, 1e-9, 1e-10)
    if (C, radius) not in SEEN
]


@pytest.mark.parametrize("method", ["auto", "exact", "cutting-plane"])
@pytest.mark.parametrize(
    ("C", "radius"), [*SEEN, *(pytest.param(*pair, marks=pytest.mark.slow) for pair in GRID)]
)
def test_no_proof_of_infeasibility_where_zero_weights_are_feasible(C, radius, method):
    # In these units no method reaches the tolerance; what counts are true bounds.
    solution = quietly(ko.solve, two_prices(C, radius), method=method, time_limit=2)
    assert solution.lower <= 4 * C
    assert np.isfinite(solution.upper) and solution.upper >= least_of_two_prices(C, radius)


@pytest.mark.parametrize("radius", [1e-7, 1e-8])
def test_certify_proves_no_infeasibility_where_zero_weights_are_feasible(radius):
    certificate = quietly(ko.certify, two_prices(1e6, radius), weights=[0, 0])
    assert certificate.proof is None
    assert certificate.lower <= 4e6 and certificate.upper >= least_of_two_prices(1e6, radius)


def test_no_proof_of_infeasibility_of_a_risk_that_large_weights_meet():
    """risk <= c with c > 0 and the identity among the kernels: some weight is large enough."""
    problem = draw(1026).problem
    with contextlib.suppress(ko.SolverError):  # two seconds may be too short for a feasible point
        solution = quietly(ko.solve, problem, method="cutting-plane", time_limit=2)
        assert solution.lower <= solution.upper


# ------------------------------------------------------------- 2. kernels of different scale


def classes(rows):
    """Raw rows of breast cancer data, features from 1e-3 to 1e3, half of each class."""
    data = load_breast_cancer()
    half = rows // 2
    points = np.vstack([data.data[data.target == 0][:half], data.data[data.target == 1][:half]])
    return points, np.repeat([-1.0, 1.0], half)


SCALES = {
    "polynomial": [ko.polynomial(2), ko.gaussian(1.0), ko.gaussian(100.0), ko.linear()],
    "linear": [ko.gaussian(10.0), ko.gaussian(100.0), ko.linear()],
    "widths": [ko.gaussian(1.0), ko.gaussian(100.0), ko.linear(), ko.gaussian(1000.0)],
}


@pytest.mark.parametrize("kernels", SCALES.values(), ids=SCALES.keys())
@pytest.mark.parametrize("rows", [8, 40])
def test_the_frobenius_norm_of_kernels_of_different_scale(rows, kernels):
    grams = ko.Grams.from_kernels(kernels, classes(rows)[0])
    m = len(kernels)
    for mu in (*np.eye(m), *(np.eye(m) @ np.diag(1 / np.sqrt(np.diag(grams.inner()))))):
        truth = math.sqrt(sum(v * v for v in (exact(grams.combine(mu)).ravel())))
        assert ko.frobenius(ko.combine(cp.Constant(mu), grams)).value == pytest.approx(truth, rel=1e-9)


def test_the_frobenius_norm_of_one_gaussian_beside_a_polynomial_kernel():
    points = load_breast_cancer().data
    grams = ko.Grams.from_kernels([ko.polynomial(2), ko.linear(), ko.gaussian(10.0)], points)
    truth = np.linalg.norm(grams.gram(2))
    assert ko.frobenius(ko.combine(cp.Constant([0.0, 0.0, 1.0]), grams)).value == pytest.approx(truth)


def best_alignment(grams, y, with_first):
    """The square of max q'mu / sqrt(mu'S mu) over mu >= 0 in fractions, by the set of weights in use.

    The first kernel is nearly the identity: sums in which it takes part are positive definite.
    """
    Ks = [exact(K).ravel() for K in grams]
    target = exact(np.outer(y, y)).ravel()
    S = [[a @ b for b in Ks] for a in Ks]
    q = [a @ target for a in Ks]
    best = Fraction(0)
    for size in range(1, len(Ks) + 1):
        for used in itertools.combinations(range(len(Ks)), size):
            if with_first and 0 not in used:
                continue
            part = [q[i] for i in used]
            mu = eliminated([[S[i][j] for j in used] for i in used], part)
            if min(mu) >= 0:
                best = max(best, sum(u * v for u, v in zip(part, mu, strict=True)))
    return best


@pytest.mark.parametrize("signs", ["nonnegative", "free"])
@pytest.mark.parametrize("kernels", ["linear", "widths"])
@every("rows", [8, 12, 16])
def test_alignment_on_raw_rows(rows, kernels, signs):
    points, y = classes(rows)
    grams = ko.Grams.from_kernels(SCALES[kernels], points)
    problem = lanckriet.alignment(grams, y, weights=signs)
    solution = quietly(problem.solve, time_limit=6)
    attained = best_alignment(grams, y, with_first=signs == "free")  # feasible with free signs too
    assert solution.upper == np.inf or Fraction(solution.upper) ** 2 >= attained
    if signs == "nonnegative":
        assert Fraction(solution.lower) ** 2 <= attained


# ------------------------------------------------------------- 3. residuals of free columns


def two_caps(C=1.0):
    mu = weights()
    risk = ko.risk(ko.combine(mu, STACK), Y, ko.squared_hinge(C))
    return cp.Problem(cp.Minimize(risk), [cp.sum(mu) <= 1, mu[0] <= 0.3])


def squared_hinge_value(K, alpha, b, y=Y):
    """The value of the machine f = K alpha + b in fractions."""
    alpha, y, K = exact(alpha), exact(y), exact(K)
    f = K @ alpha
    slack = [max(1 - s * (t + Fraction(b)), 0) for s, t in zip(y, f, strict=True)]
    return alpha @ f / 2 + sum(s * s for s in slack) / 2


DIRECTIONS = ([1, -1, 1, -1], [1, -1, 2, -2], [3, -1, 1, -3], [1, -2, 3, -4])
HUGE = (1e6, 1e8, 1e9, 1e10, 1e12)


@every("direction, size", [(d, size) for k, d in enumerate(DIRECTIONS) for size in HUGE[k % 2 :: 2]])
def test_a_huge_alpha_proves_nothing_above_a_feasible_point(direction, size):
    mu = np.array([0.25, 0.75])  # exactly feasible
    machine = ko.risk(mu @ STACK.transpose(1, 0, 2), Y, ko.squared_hinge(1.0)).oracle()
    attained = squared_hinge_value(np.tensordot(mu, STACK, 1), machine.alpha, machine.intercept)
    alpha = size * np.asarray(direction, dtype=float)
    certificate = quietly(ko.certify, two_caps(), weights=[0.25, 0.75], alpha=alpha, retrain=False)
    assert certificate.lower <= attained


# ------------------------------------------------------------- 4. sums that cancel


def ridge(x, t, bias):
    """min over w, b of 1/2 |w x + b - t|^2 + w^2/2 in fractions."""
    x, t = exact(x), exact(t)
    if bias:
        x, t = x - sum(x) / len(x), t - sum(t) / len(t)
    return (t @ t - (x @ t) ** 2 / (1 + x @ x)) / 2


@every("bias", [True, False], ids=["bias", "no-bias"])
@pytest.mark.parametrize("shift", [1e3, pytest.param(1e6, marks=pytest.mark.slow)])
def test_squared_loss_on_points_far_from_the_origin(shift, bias):
    rng = np.random.default_rng(0)
    x = shift + rng.integers(-5, 6, size=6)
    t = rng.integers(-3, 4, size=6).astype(float)
    problem = cp.Problem(cp.Minimize(ko.risk(np.outer(x, x), t, ko.squared(1.0), bias=bias)))
    solution = quietly(ko.solve, problem)
    assert solution.lower <= ridge(x, t, bias) <= solution.upper


@pytest.mark.parametrize("shift", [1e3, pytest.param(1e7, marks=pytest.mark.slow)])
def test_a_hard_margin_far_from_the_origin(shift):
    """w = 2, b = -2 shift - 1 separates by exactly one, and w^2 / 2 is 2."""
    x = shift + np.array([-1.0, 0.0, 1.0, 2.0])
    problem = cp.Problem(cp.Minimize(ko.risk(np.outer(x, x), [-1, -1, 1, 1], ko.hard_margin())))
    solution = quietly(ko.solve, problem)
    assert solution.lower <= 2 <= solution.upper


@pytest.mark.parametrize("size", [1e14, 1e15, 1e16, 1e17])
@every("seed", [13, 96, 172, 192])
def test_rounding_noise_of_an_alpha_in_the_null_space_predicts_nothing(seed, size):
    rng = np.random.default_rng(seed)
    x = rng.integers(-4, 5, size=5).astype(float)
    t = rng.integers(-3, 4, size=5).astype(float)
    v = rng.normal(size=5)
    v -= x * (x @ v) / (x @ x)
    problem = cp.Problem(cp.Minimize(ko.risk(np.outer(x, x), t, ko.squared(1.0), bias=False)))
    certificate = quietly(ko.certify, problem, alpha=size * v, retrain=False)
    assert certificate.lower <= ridge(x, t, bias=False) <= certificate.upper


# ------------------------------------------------------------- 5. the size of the terms


def tiny(kind, radius, scale):
    mu = weights()
    K = ko.combine(mu, scale * STACK)
    allowed = {
        "sum": [cp.sum(mu) <= radius],
        "ball": ko.lp_ball(mu, 2, radius),
        "power": ko.lp_ball(mu, 1.5, radius),
        "two": [mu[0] + 2 * mu[1] <= radius, 2 * mu[0] + mu[1] <= radius],
    }[kind]
    return cp.Problem(cp.Minimize(ko.risk(K, Y, ko.hinge(1.0))), allowed)


CANDIDATES = (1e-15, 5e-15, 1.0)  # ten radii, fifty, and one


@pytest.mark.parametrize("kind", ["sum", "ball", "power", "two"])
@every("scale, candidate", [(1e15, CANDIDATES[0]), *((1e16, candidate) for candidate in CANDIDATES)])
def test_a_tiny_radius_is_not_overstepped(scale, candidate, kind):
    """Every weight is at most the radius, and alpha = y proves the bound; f = 0 attains 4."""
    radius = Fraction(1e-16)
    certificate = quietly(ko.certify, tiny(kind, 1e-16, scale), weights=[candidate, candidate])
    least = 4 - radius * sum(form(Y, K) for K in scale * STACK) / 2
    assert certificate.lower <= 4
    assert certificate.upper >= least


# ------------------------------------------------------------- 6. contradictions


@every("seed", range(4))
@pytest.mark.parametrize("method", ["exact", "cutting-plane", "interleaved"])
def test_no_bracket_of_width_zero_where_sums_cancel(method, seed):
    """A crossing of bounds by rounding is paid for by both sides, not settled in favour of the upper one."""
    rng = np.random.default_rng(seed)
    x = 1e5 + rng.integers(-5, 6, size=6)
    t = rng.integers(-3, 4, size=6).astype(float)
    mu = weights(1)
    K = ko.combine(mu, [np.outer(x, x)])
    problem = cp.Problem(cp.Minimize(ko.risk(K, t, ko.squared(1.0))), ko.lp_ball(mu, 2))
    solution = quietly(ko.solve, problem, method=method)
    assert solution.lower <= ridge(x, t, bias=True) <= solution.upper


def test_a_crossing_is_no_gap_of_zero():
    try:
        certificate = ko.Certificate(lower=2.0, upper=1.0, route="closed")
    except ko.KerneloptError:
        return
    assert not 0 <= certificate.gap <= 1


# ------------------------------------------------------------- 8. "optimal" of nothing


def small(seed, loss_scale=1e-4):
    """A problem whose value is 1e-9 to 1e-5, and its value at f = 0 and b = 0."""
    rng = np.random.default_rng(seed)
    n = 8
    points = rng.normal(size=(n, 3))
    y = np.sign(points[:, 0] + 0.5 * rng.normal(size=n))
    y[:2] = 1, -1
    scale, C = 10.0 ** rng.integers(-8, 3), 10.0 ** rng.integers(-6, 4)
    squares = ((points[:, None] - points[None]) ** 2).sum(2)
    Ks = scale * np.array([np.exp(-squares / 2), points @ points.T, np.eye(n)])
    mu = weights(3)
    risk = ko.risk(ko.combine(mu, Ks), loss_scale * y, ko.squared(C))
    return cp.Problem(cp.Minimize(risk), ko.lp_ball(mu, 2)), C * n * loss_scale**2 / 2


@pytest.mark.parametrize("method", ["exact", "interleaved", "cutting-plane"])
@every("seed", [1, 3, 4, 14, 27])
def test_optimal_is_said_of_a_small_gap_in_units_of_the_problem(seed, method):
    """The floor of the gap's denominator is at most a thousandth of the value at f = 0."""
    problem, at_zero = small(seed)
    solution = quietly(ko.solve, problem, method=method, tol=1e-5)
    size = max(abs(solution.lower), abs(solution.upper)) + 1e-3 * at_zero
    assert solution.status != "optimal" or solution.upper - solution.lower <= 1e-5 * size


# ------------------------------------------------------------- 9. crashes


def in_a_process(code, seconds):
    """What a script prints, run apart: a crash must not end the tests."""
    done = subprocess.run(  # noqa: S603
        [sys.executable, "-W", "ignore", "-c", textwrap.dedent(code)],
        capture_output=True,
        text=True,
        timeout=seconds,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:] or f"killed by signal {-done.returncode}"
    return done.stdout


@pytest.mark.slow
def test_kernels_of_zeros_end_no_interpreter():
    out = in_a_process(
        """
        import numpy as np
        import kernelopt as ko
        from formulations import linear_functional
        for target in (np.arange(6.0), np.zeros(6), np.ones(6), -np.ones(6)):
            try:
                strategy = linear_functional.functional_strategy(
                    [np.zeros((6, 6))], target, regularization=0.1, weights="nonnegative")
                solution = strategy.solve()
                print(solution.lower <= solution.upper)
            except ko.KerneloptError as error:
                print(True)
        """,
        60,
    )
    assert out.split() == ["True"] * 4


def test_a_panic_of_a_solver_written_in_rust_is_a_failure_of_that_solver():
    """A PanicException is no Exception; a kernel of size 1e10 makes Clarabel raise it in the master."""
    solution = quietly(ko.solve, draw(166).problem, method="cutting-plane", time_limit=2)
    assert solution.lower <= solution.upper


@pytest.mark.slow
def test_free_alignment_of_four_kernels_on_forty_raw_points_is_quick():
    out = in_a_process(
        """
        import numpy as np
        import kernelopt as ko
        from formulations import lanckriet
        from sklearn.datasets import load_breast_cancer
        data = load_breast_cancer()
        X = np.vstack([data.data[data.target == k][:20] for k in (0, 1)])
        kernels = [ko.polynomial(2), ko.gaussian(10.0), ko.gaussian(100.0), ko.linear()]
        grams = ko.Grams.from_kernels(kernels, X)
        solution = lanckriet.alignment(grams, np.repeat([-1.0, 1.0], 20), weights="free").solve()
        print(solution.lower <= solution.upper)
        """,
        60,
    )
    assert out.strip() == "True"


# --------------------------------------------------------------------------- methods that rounding has ended


def far_from_the_origin(shift, loss, n=20):
    """A linear kernel of integers far from the origin, a Gaussian one and the identity."""
    rng = np.random.default_rng(0)
    x, z = shift + rng.integers(-5, 6, n).astype(float), rng.normal(size=n)
    Ks = np.array([np.outer(x, x), np.exp(-((z[:, None] - z) ** 2)), np.eye(n)])
    y = np.sign(z + 0.3 * rng.normal(size=n)) if loss.kind == "labels" else z
    mu = cp.Variable(3, nonneg=True)
    return cp.Problem(cp.Minimize(ko.risk(ko.combine(mu, Ks), y, loss)), ko.lp_ball(mu, 2))


@pytest.mark.parametrize(
    ("method", "shift", "loss"),
    [
        pytest.param("cutting-plane", 1e5, ko.squared(), marks=pytest.mark.slow, id="cutting-plane"),
        pytest.param("block-descent", 1e7, ko.hinge(), id="block-descent"),
    ],
)
def test_a_method_that_comes_no_nearer_ends_and_says_that_it_is_rounding(method, shift, loss):
    with pytest.warns(ko.ConvergenceWarning, match="limited by rounding"):
        solution = ko.solve(far_from_the_origin(shift, loss), method, tol=1e-9)
    assert solution.iterations < 250 and solution.status == "inaccurate"


# ------------------------------------------------------------------------------------ the domains of atoms


def test_a_point_outside_of_the_domain_of_an_atom_is_not_feasible():
    """cvxpy values inv_pos(-1) at -1, below every value of the problem, which is 1/2."""
    x = cp.Variable(name="x")
    problem = cp.Problem(cp.Minimize(cp.inv_pos(x)), [x <= 2])
    for candidate in (-1.0, -1e-9, 1.0, None):
        found = ko.certify(problem, None if candidate is None else {x: candidate})
        assert found.upper >= 0.5 and found.lower <= 0.5
    assert "domain" in next(iter(ko.certify(problem, {x: -1.0}).residuals))


def test_a_constraint_is_not_met_outside_of_the_domain_of_its_atoms():
    x = cp.Variable(name="x")
    problem = cp.Problem(cp.Minimize(x), [cp.inv_pos(x) <= 4, x >= -3])
    assert ko.certify(problem, {x: -2.0}).upper >= 0.25 * (1 - 1e-12)


def test_signs_hold_exactly_beside_kernels_of_very_different_size():
    """A weight of -6e-14 beside one of 1e8 is rounding, but its kernel is 1e13 times the other."""
    rng = np.random.default_rng(3)
    x = rng.normal(size=(11, 2))
    squares = ((x[:, None] - x) ** 2).sum(2)
    Ks = np.array([6e-8 * np.eye(11), 1.3e5 * np.exp(-squares)])
    y = np.sign(rng.normal(size=11))
    for total in (70.0, 7e3, 7e-3):
        mu = cp.Variable(2, nonneg=True)
        K = ko.combine(mu, Ks)
        problem = cp.Problem(cp.Minimize(ko.risk(K, y, ko.hard_margin())), [ko.trace(K) == total])
        solution = ko.solve(problem, "exact", tol=1e-9)
        assert (mu.value >= 0).all() and solution.lower <= solution.upper


@pytest.mark.slow
@pytest.mark.parametrize(("seed", "method"), [(1052, "exact"), (2700, "cutting-plane")])
def test_hard_margins_that_are_hardly_met_end_in_no_foreign_error(seed, method):
    with contextlib.suppress(ko.KerneloptError):
        solution = quietly(ko.solve, draw(seed).problem, method, time_limit=2)
        assert solution.lower <= solution.upper

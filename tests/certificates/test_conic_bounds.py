"""Bounds by multipliers in exact arithmetic: every number is compared with one made of fractions.

The cone programs have integer data times powers of two and a primal-dual pair that is known, so that the
optimum of the stored doubles is a rational number:

   cone          s on its boundary     z with z's = 0
   non-negative  (0, a)                (b, 0)
   second-order  (5, 3, 4)             (5, -3, -4)
   semidefinite  (1, 2, 2)             (2, -2, 1)      a d = b^2 / 2 for the scaled triangle (a, b, d)
   exponential   (0, 1, 1)             (-1, -1, 1)
   power, 1/2    (1, 1, 1)             (1, 1, -2)
"""

from __future__ import annotations

from fractions import Fraction
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse as sp

from kernelopt.certificates.boxes import Box
from kernelopt.certificates.conic.cones import ConeProgram, cones_of, curvature
from kernelopt.certificates.conic.dual_cones import into_dual_cone
from kernelopt.certificates.conic.lagrangian import correction_system, dual_value
from kernelopt.certificates.conic.proofs import corrected_multiplier, farkas, repaired_bound
from kernelopt.certificates.conic.symmetric_cones import verified_semidefinite
from kernelopt.certificates.conic.tightening import tightened
from kernelopt.conic.compiled import Compiled
from kernelopt.numerics.ball import Ball
from kernelopt.numerics.rounding import norm_above
from tests.every import every
from tests.exact_fractions import eliminated

PAIRS = {
    "soc": ((5, 3, 4), (5, -3, -4)),
    "psd": ((1, 2, 2), (2, -2, 1)),
    "exp": ((0, 1, 1), (-1, -1, 1)),
    "power": ((1, 1, 1), (1, 1, -2)),
}
KINDS = ("zero", "nonneg", *PAIRS)


def cone_program(P, c, A, b, zero=0, nonneg=0, soc=0, psd=0, exp=0, power=0):
    dims = SimpleNamespace(zero=zero, nonneg=nonneg, soc=[3] * soc, psd=[2] * psd, exp=exp, p3d=[0.5] * power)
    P, A = sp.csc_array(np.asarray(P, dtype=float)), sp.csc_array(np.asarray(A, dtype=float))
    c, b = np.asarray(c, dtype=float), np.asarray(b, dtype=float)
    return ConeProgram(
        P, c, A, b, 0.0, dims, cones_of(dims, True, True), {0: 0}, "CLARABEL", Compiled({}, None, None)
    )


def fractions(values):
    return [Fraction(float(v)) for v in np.ravel(values)]


def product(a, b):
    return sum((x * y for x, y in zip(fractions(a), fractions(b), strict=True)), Fraction(0))


def planted(rng, kind, curved, scale):
    """A program with cones of one kind and a few equations and signs, its optimum and (x, z)."""
    n, blocks = 3, 2
    dims = {"zero": 1, "nonneg": 4}
    s, z = [0, 0, 0, 2, 3], [int(rng.integers(-3, 4)), 1, 2, 0, 0]
    if kind in PAIRS:
        dims[kind] = blocks
        for _ in range(blocks):
            size = int(rng.integers(1, 4))
            s += [size * v for v in PAIRS[kind][0]]
            z += PAIRS[kind][1]
    elif kind == "zero":
        dims["zero"] = 2
        s, z = [0, *s], [2, *z]
    A = rng.integers(-4, 5, size=(len(s), n))
    x = rng.integers(-3, 4, size=n)
    root = rng.integers(-2, 3, size=(n, n))
    P = root @ root.T if curved else np.zeros((n, n), dtype=int)
    b, c = A @ x + np.array(s), -P @ x - A.T @ np.array(z)
    value = (Fraction(int(c @ x)) + Fraction(int(x @ P @ x), 2)) * Fraction(scale)
    program = cone_program(P * scale, c * scale, A, b, **dims)
    return program, value, x.astype(float), np.array(z, dtype=float) * scale


def everywhere(n, reach=np.inf):
    return Box(np.full(n, -reach), np.full(n, reach))


# ---------------------------------------------------------------------------------- single numbers


@pytest.mark.parametrize("scale", [1e-310, 1e-160, 1.0, 1e160])
def test_a_norm_is_never_too_small(scale):
    rng = np.random.default_rng(1)
    for _ in range(20):
        v = rng.standard_normal(7) * scale
        above = Fraction(norm_above(v))
        assert product(v, v) <= above**2 <= product(v, v) * (1 + Fraction(1, 10**13)) + Fraction(1, 10**600)


def is_psd(M):
    """Gauss' elimination in fractions."""
    M = [[Fraction(v) for v in row] for row in M]
    n = len(M)
    for k in range(n):
        if M[k][k] < 0 or (M[k][k] == 0 and any(M[k][j] != 0 for j in range(k, n))):
            return False
        for i in range(k + 1, n) if M[k][k] else ():
            share = M[i][k] / M[k][k]
            for j in range(k, n):
                M[i][j] -= share * M[k][j]
    return True


@pytest.mark.parametrize("shift", [0.0, 2.0**-52, -(2.0**-52), 2.0**-45, -(2.0**-45), -1e-9])
def test_what_is_called_semidefinite_is(shift):
    """Singular Gram matrices of integers, moved by about one rounding error."""
    L = np.random.default_rng(2).integers(-3, 4, size=(20, 5, 3)).astype(float)
    stack = L @ L.transpose(0, 2, 1) + shift * np.eye(5)
    verified = [bool(verified_semidefinite(Ball(M))) for M in stack]
    assert verified_semidefinite(Ball(stack)).tolist() == verified
    assert all(is_psd(M.tolist()) for M, shown in zip(stack, verified, strict=True) if shown)
    L = L[-1]
    assert verified_semidefinite(Ball(L @ L.T + 1e-12 * np.eye(5)))
    assert not verified_semidefinite(Ball(np.array([[1.0, np.nan], [np.nan, 1.0]])))


def test_the_curvature_is_below_the_matrix():
    """A block of rank one, a number alone, and a block that is not semidefinite."""
    P = np.zeros((6, 6))
    P[:2, :2], P[2, 2], P[3:5, 3:5] = [[1, 3], [3, 9]], 7, [[1, 2], [2, 1]]
    d = curvature(sp.csc_array(P))
    assert is_psd((P - np.diag(d)).tolist())
    assert d[2] == 7 and d[5] == 0 and -1e-12 < d[0] <= 0 and d[3] == pytest.approx(-1, abs=1e-12)
    full = np.array([[2.0, 1.0], [1.0, 2.0]])
    assert (curvature(sp.csc_array(full)) >= 0.4).all()


# ------------------------------------------------------------------------------------- dual cones


def inside(kind, v):
    """Membership of the dual cone in fractions; the exponential by a sum of its series."""
    v = fractions(v)
    if kind == "soc":
        return v[0] >= 0 and v[0] ** 2 >= sum(w * w for w in v[1:])
    if kind == "psd":  # order two
        return v[0] >= 0 and v[2] >= 0 and 2 * v[0] * v[2] >= v[1] ** 2
    if kind == "power":
        return v[0] >= 0 and v[1] >= 0 and 4 * v[0] * v[1] >= v[2] ** 2
    if v[0] == 0:
        return v[1] >= 0 and v[2] >= 0
    halved, squarings = v[1] / v[0] - 1, 0
    while abs(halved) > Fraction(1, 2):
        halved, squarings = halved / 2, squarings + 1
    series, term = Fraction(0), Fraction(1)
    for k in range(1, 30):
        series, term = series + term, term * halved / k
    below = series - abs(term) * 2
    value = below.limit_denominator(10**40)
    for _ in range(squarings):
        value = (value * value).limit_denominator(10**60)
    return v[0] < 0 and v[2] >= -v[0] * value * (1 - Fraction(1, 10**30))


@every("scale", [1e-200, 1e-12, 1.0, 1e12])
@pytest.mark.parametrize("kind", PAIRS)
def test_pushed_points_are_in_the_dual_cone(kind, scale):
    rng = np.random.default_rng(3)
    program = cone_program(np.zeros((1, 1)), [0], np.zeros((3, 1)), np.zeros(3), **{kind: 1})
    edge = np.array(PAIRS[kind][1], dtype=float)
    for t in (0.0, 1e-16, 1e-12, 1.0):
        for _ in range(5):
            z = into_dual_cone(program, scale * (edge + t * rng.standard_normal(3)))
            assert z is not None and inside(kind, z)
            again = into_dual_cone(program, z)
            np.testing.assert_allclose(again, z, rtol=1e-13)
            if t < 1e-10:
                np.testing.assert_allclose(z, scale * edge, rtol=1e-8)


def test_pushed_points_have_the_room_that_is_asked_for():
    rng = np.random.default_rng(4)
    program = cone_program(np.zeros((1, 1)), [0], np.zeros((8, 1)), np.zeros(8), nonneg=2, soc=1, psd=1)
    room = np.full(8, 1e-3)
    z = into_dual_cone(program, rng.standard_normal(8), room)
    for _ in range(50):
        near = z + room * rng.choice([-1.0, 1.0], 8)
        assert (near[:2] >= 0).all() and inside("soc", near[2:5]) and inside("psd", near[5:])
    exponential = cone_program(np.zeros((1, 1)), [0], np.zeros((3, 1)), np.zeros(3), exp=1)
    assert into_dual_cone(exponential, np.array([-1.0, 0.0, 5.0]), np.full(3, 1e-3)) is None


# ---------------------------------------------------------------------------- bounds of the columns


@pytest.mark.parametrize("kind", KINDS)
@every("curved", [False, True])
def test_boxes_contain_the_optimum(kind, curved):
    rng = np.random.default_rng(5)
    for _ in range(10):
        program, value, x, _ = planted(rng, kind, curved, 1.0)
        for most in (np.inf, float(value), float(value) + 1.0):
            box = tightened(program, everywhere(3), most)
            assert (box.lower <= x).all() and (x <= box.upper).all()


def test_boxes_of_what_cvxpy_makes_of_norms_and_squares():
    """min |x|_1 + t + u, t >= x_1^2 / x_2, u = x_3^2: with the objective all columns are bounded."""
    rows = [
        [-1, 0, 1, 0, 0, 0],
        [-1, 0, -1, 0, 0, 0],  # a_1 >= |x_1|
        [0, -1, 0, 1, 0, 0],
        [0, -1, 0, -1, 0, 0],  # a_2 >= |x_2|
        [0, 0, 0, -1, -1, 0],
        [0, 0, 0, -1, 1, 0],
        [0, 0, -2, 0, 0, 0],  # (x_2 + t, x_2 - t, 2 x_1) in the second-order cone
    ]
    P = np.zeros((6, 6))
    P[5, 5] = 2
    program = cone_program(P, [1, 1, 0, 0, 1, 0], rows, np.zeros(7), nonneg=4, soc=1)
    assert not tightened(program, everywhere(6)).bounded.all()
    box = tightened(program, everywhere(6), 4.0)
    assert box.bounded.all() and (box.max_abs <= 4 * (1 + 1e-12)).all()
    assert box.upper[5] == pytest.approx(2.0, abs=1e-12) and box.lower[4] >= -1e-12


def test_boxes_of_a_semidefinite_and_of_an_exponential_cone():
    """K PSD of trace 4, and y = 1, z <= 2 with z >= y exp(x / y)."""
    trace = cone_program(
        np.zeros((3, 3)), [0, 0, 0], [[1, 0, 1], *(-np.eye(3)).tolist()], [4, 0, 0, 0], zero=1, psd=1
    )
    box = tightened(trace, everywhere(3))
    assert box.upper[0] == pytest.approx(4) and box.max_abs[1] == pytest.approx(4 * np.sqrt(2))
    rows = [[0, 1], [-1, 0], [0, 0], [0, -1]]
    exponential = cone_program(np.zeros((2, 2)), [0, 0], rows, [2, 0, 1, 0], nonneg=1, exp=1)
    box = tightened(exponential, everywhere(2))
    assert 0.693 < box.upper[0] <= 1.0 and box.lower[1] >= -1e-15


# --------------------------------------------------------------------------------------- the bounds


@every("scale", [2.0**-40, 1.0, 2.0**40])
@every("curved", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_no_bound_is_above_the_true_optimum(kind, curved, scale):
    """Multipliers from exact to garbage; the good ones prove the optimum to eleven digits."""
    rng = np.random.default_rng(6)
    for _ in range(2):
        program, value, x, z = planted(rng, kind, curved, scale)
        size = float(np.abs(program.c).max())
        most = float(value) + 10 * size
        box = tightened(program, everywhere(3), most)
        repair = np.arange(3)
        for noise in (0.0, 1e-15, 1e-9, 1e-3, 1.0, 1e6):
            off = noise * scale * rng.standard_normal(z.size)
            point = x + min(noise, 1.0) * rng.standard_normal(3)
            proof = repaired_bound(program, box, point, z + off, repair)
            best = min(proof.value, most)
            assert best == -np.inf or Fraction(best) <= value
            for known in (everywhere(3, 1e6), everywhere(3, 16.0)):
                best = dual_value(program, point, into_dual_cone(program, z + off), known).value
                assert Fraction(best) <= value
            if noise == 0.0:
                assert best >= float(value) - 1e-10 * size


@pytest.mark.parametrize("seed", range(4))
def test_free_columns_are_balanced_exactly_or_not_at_all(seed):
    """Equations that hold only up to rounding: A'z = -c has no solution in doubles, yet a true bound.

    min c'x with -1 <= Ax <= 1 for an invertible A of odd numbers over 3: the optimum is -|A^-T c|_1.
    """
    rng = np.random.default_rng(seed)
    A = rng.integers(-9, 10, size=(3, 3)) / 3 + 4 * np.eye(3)
    c = rng.standard_normal(3)
    exact = eliminated([fractions(row) for row in A.T], fractions(c))
    value = -sum(abs(v) for v in exact)
    program = cone_program(np.zeros((3, 3)), c, np.vstack([A, -A]), np.ones(6), nonneg=6)
    y = -np.linalg.solve(A.T, c)
    z = np.concatenate([np.maximum(y, 0), np.maximum(-y, 0)])
    repair = np.arange(3)
    proof = repaired_bound(program, everywhere(3), np.zeros(3), z, repair)
    assert Fraction(proof.value) <= value and proof.value >= float(value) * (1 + 1e-12)


@pytest.mark.parametrize("angle", [2.0**-20, 2.0**-30, 2.0**-45])
def test_near_parallel_columns(angle):
    """min x_1 with x_1 + x_2 >= 1, x_1 + (1 + angle) x_2 <= 1 - angle and x_2 <= 4: x_1 = 2 or less.

    From the first two rows x_2 <= -1, x_1 >= 1 - x_2 >= 2: the multipliers are 1 / angle.
    """
    A = [[-1, -1], [1, 1 + angle], [0, 1]]
    program = cone_program(np.zeros((2, 2)), [1, 0], A, [-1, 1 - angle, 4], nonneg=3)
    true = np.array([1 + 1 / angle, 1 / angle, 0.0])
    assert (program.c + program.A.T @ true == 0).all() and -program.b @ true == 2.0
    repair = np.arange(2)
    for noise in (0.0, 1e-16, 1e-12, 1e-8):
        z = true * (1 + noise * np.array([1.0, -1.0, 1.0]))
        value = repaired_bound(program, everywhere(2), np.array([2.0, -1.0]), z, repair).value
        assert value == -np.inf or Fraction(value) <= 2
    if angle > 2.0**-40:
        plain = repaired_bound(program, everywhere(2), np.array([2.0, -1.0]), true, repair).value
        assert plain >= 2 - 1e-6


def test_singular_and_huge_data_give_no_bound_and_no_error():
    same = cone_program(np.zeros((2, 2)), [0, 0], [[1, 1], [0, 0]], np.zeros(2), nonneg=2)
    assert corrected_multiplier(same, np.arange(2), np.ones(2), np.array([1.0, 1.0])) is not None
    for size in (1e300, 1e160, 1e-300):
        program = cone_program(np.zeros((2, 2)), [size, size], np.eye(2) * size, [size, -size], nonneg=2)
        repair = np.arange(2)
        with np.errstate(all="ignore"):
            proof = repaired_bound(program, everywhere(2), np.ones(2), np.ones(2), repair)
            assert not proof.value > -1.0
            assert proof.value != np.inf
    assert correction_system(program, np.zeros(2), np.arange(2), 1.0) is None


# ----------------------------------------------------------------------------------------- rays


def test_a_contradiction_is_proved_in_every_scale():
    """x >= 2 and x <= 1, in units from 1e-12 to 1e12."""
    for scale in 10.0 ** np.arange(-12, 13, 6):
        program = cone_program([[0.0]], [0], [[-scale], [1.0]], [-2 * scale, 1], nonneg=2)
        assert farkas(program, np.array([1.0, scale]), everywhere(1)) is not None


@pytest.mark.parametrize("gap", [1e-12, 1e-9, 0.0, -1e-15, -1e-9])
def test_what_is_feasible_by_little_is_never_called_infeasible(gap):
    """a <= x1/3 + x2/7 <= a + gap with free variables: infeasible only where gap < 0."""
    row = np.array([1 / 3, 1 / 7])
    program = cone_program(np.zeros((2, 2)), [0, 0], [row, -row], [1 + gap, -1.0], nonneg=2)
    for z in ([1.0, 1.0], [1.0, 1 + 1e-12], [1.0, 1 - 1e-9]):
        ray = farkas(program, np.array(z), everywhere(2))
        assert (ray is not None) <= (gap < 0)
    if gap < -1e-14:
        assert ray is not None

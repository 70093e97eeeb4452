"""Sums with bounds of their errors, and the price of a machine, against exact fractions."""

from __future__ import annotations

import operator
from fractions import Fraction
from itertools import product

import cvxpy as cp
import numpy as np
import pytest
import scipy.sparse as sp

import kernelopt as ko
from kernelopt.certificates.lower.minorants import dual_value_of, minorant
from kernelopt.numerics.ball import Ball, form
from kernelopt.numerics.rounding import gamma, split_sums, upwards
from kernelopt.structure.affine import affine
from kernelopt.structure.evaluation import Evaluator
from kernelopt.structure.structure import Structure
from tests.every import every

LOSSES = {
    "hinge": ko.hinge(3.0),
    "squared_hinge": ko.squared_hinge(0.7),
    "huberized": ko.huberized_hinge(2.0, 0.3),
    "squared": ko.squared(5.0),
    "epsilon": ko.epsilon_insensitive(2.0, 0.3),
}


def exact(array):
    """Return an array of doubles as fractions."""
    return [Fraction(float(x)) for x in np.ravel(array)]


def exact_form(K, a):
    a = exact(a)
    return sum(a[i] * x * a[j] for i, row in enumerate(K) for j, x in enumerate(exact(row)))


def far_kernel(rng, n, shift):
    """Return a linear kernel of integers far from the origin, whose forms cancel where sum alpha = 0."""
    x = shift + rng.integers(-3, 4, n)
    return np.outer(x, x).astype(float)


@every("shift", [0.0, 1e3, 1e6, 1e9])
@every("size", [1e-8, 1.0, 1e8])
def test_sums_are_within_their_errors(shift, size):
    rng = np.random.default_rng(int(shift) + int(size))
    for n in (1, 2, 7, 20):
        A, b = rng.normal(size=(2, n)) * 10.0 ** rng.integers(-9, 9, (2, n)), size * rng.normal(size=n)
        A[0] = np.r_[A[0, : n // 2], -A[0, : n - n // 2]] + shift  # large terms that cancel
        heads, tails, errors = split_sums(A, b)
        for row, head, tail, error in zip(A, heads, tails, errors, strict=True):
            total = sum(x * y for x, y in zip(exact(row), exact(b), strict=True))
            assert abs(Fraction(head) + Fraction(tail) - total) <= Fraction(error)
            assert error <= 1e-28 * float(np.abs(row) @ np.abs(b)) + 1e-318
        tiny = np.array([1e-320, 1e-300, 1.7e-160])[:, None] * rng.uniform(1, 2, (3, n))  # products underflow
        b = 10.0 ** rng.uniform(-160, 0, n)
        for row, *parts, error in zip(tiny, *split_sums(tiny, b), strict=True):
            total = sum(x * y for x, y in zip(exact(row), exact(b), strict=True))
            assert abs(sum(map(Fraction, parts)) - total) <= Fraction(error)
        K, a = far_kernel(rng, n, shift), size * rng.normal(size=n)
        a -= a.mean()
        found, truth = form(K, a), exact_form(K, a)
        assert abs(Fraction(found.mid) - truth) <= Fraction(float(found.rad))
        assert Fraction(found.below) <= truth <= Fraction(found.above)
        assert found.rad <= 4e-16 * abs(found.mid) + 1e-24 * float(np.abs(a) @ np.abs(K) @ np.abs(a)) + 1e-299
        product, b = Ball(a).dots(K[:1]), exact(a)
        assert abs(
            Fraction(product.mid[0]) - sum(x * y for x, y in zip(exact(K[0]), b, strict=True))
        ) <= Fraction(product.rad[0])


def test_higham_and_the_next_double():
    assert gamma(1) == pytest.approx(2.0**-53, rel=1e-15)
    assert upwards(1.0) == 1.0 + 2.0**-52


def data(name, seed, n=9, shift=0.0):
    rng = np.random.default_rng(seed)
    loss = LOSSES[name]
    y = rng.normal(size=n) if loss.kind == "targets" else np.where(np.arange(n) % 2, 1.0, -1.0)
    Z = rng.normal(size=(n, n))
    return np.array([Z @ Z.T, far_kernel(rng, n, shift)]), y, loss, rng


def exact_loss(loss, t, y):
    """Return the summed loss of exact predictions, by its dual: sample by sample a concave quadratic."""
    linear, curvature, l1, lower, upper = loss.curve(y)
    total = Fraction(0)
    for i, s in enumerate(t):
        best = Fraction(0)
        pull = Fraction(float(linear[i])) - s
        k, c = Fraction(float(l1[i])), Fraction(float(curvature[i]))
        low, high = float(lower[i]), float(upper[i])
        ends = [Fraction(e) for e in (low, high) if np.isfinite(e)]
        if c:
            ends += [(pull - k) / c, (pull + k) / c]
        for a in ends:
            inside = (np.isinf(low) or a >= Fraction(low)) and (np.isinf(high) or a <= Fraction(high))
            if inside:
                best = max(best, pull * a - k * abs(a) - c * a * a / 2)
        total += best
    return total


@pytest.mark.parametrize("name", LOSSES)
@every("shift", [0.0, 1e4, 1e7])
def test_a_machine_costs_no_more_than_its_price(name, shift):
    """The price is not below the primal value in exact arithmetic, and close to it."""
    for seed in range(3):
        Ks, y, loss, _ = data(name, seed, shift=shift)
        weights = [0.3, 0.7]
        mu = cp.Variable(2, nonneg=True)
        structure = Structure(cp.Problem(cp.Minimize(ko.risk(ko.combine(mu, Ks), y, loss))))
        _, (machine,) = Evaluator(structure).at({mu.id: np.array(weights)})
        a, b = exact(machine.alpha), Fraction(float(machine.intercept))
        K = [[Fraction(0.3) * p + Fraction(0.7) * q for p, q in zip(exact(r), exact(s), strict=True)]
             for r, s in zip(Ks[0], Ks[1], strict=True)]  # fmt: skip
        f = [sum(x * c for x, c in zip(row, a, strict=True)) for row in K]
        truth = exact_loss(loss, [v + b for v in f], y) + sum(x * v for x, v in zip(a, f, strict=True)) / 2
        assert truth <= Fraction(machine.value)
        # Weights that meet a constraint up to rounding may move by 1e-14 of themselves: that is paid too.
        moved = 1e-14 * np.sqrt(np.mean(np.diag(Ks[1])))
        assert machine.value <= float(truth) * (1 + 1e-9 + 20 * moved)


@every("bias", [True, False], ids=["bias", "no bias"])
@pytest.mark.parametrize("name", LOSSES)
@every("shift", [0.0, 1e4, 1e7])
@every("accurate", [False, True], ids=["plain", "accurate"])
def test_a_minorant_is_below_its_exact_value(name, shift, bias, accurate):
    """Its constant and its slopes are within their errors of those of an alpha that is exactly feasible."""
    for seed in range(3):
        Ks, y, loss, rng = data(name, seed, shift=shift)
        mu = cp.Variable(2, nonneg=True)
        structure = Structure(cp.Problem(cp.Minimize(ko.risk(ko.combine(mu, Ks), y, loss, bias))))
        (term,) = structure.risks
        alpha = loss.project(rng.normal(size=y.size), y, bias)
        below = minorant(term, alpha, accurate)
        gain, moved = dual_value_of(term.learner, alpha)
        if bias:  # give what is left of the sum to the entry with the most room
            _, _, _, lower, upper = loss.curve(y)
            at = int(np.argmax(np.minimum(alpha - lower, upper - alpha)))
            repaired = exact(alpha)
            repaired[at] -= sum(repaired)
            assert abs(repaired[at] - Fraction(float(alpha[at]))) <= Fraction(moved)
        else:
            repaired = exact(alpha)
        linear, curvature, l1, _, _ = (
            exact(part) if np.isfinite(part).all() else part for part in loss.curve(y)
        )
        truth = sum(
            p * a - c * a * a / 2 - k * abs(a)
            for p, c, k, a in zip(linear, curvature, l1, repaired, strict=True)
        )
        assert abs(Fraction(float(gain.mid)) - truth) <= Fraction(float(gain.rad))
        (slopes,) = [matrix.toarray()[0] for matrix in affine(below.expression).matrices.values()]
        for K, slope, error in zip(Ks, slopes, below.slopes[structure.variables[0]].rad, strict=True):
            rows = [exact(row) for row in K]
            square = sum(repaired[i] * rows[i][j] * repaired[j] for i in range(y.size) for j in range(y.size))
            assert abs(Fraction(float(slope)) + square / 2) <= Fraction(float(error))


@every("sparse", [False, True])
def test_the_image_of_a_ball_holds_that_of_every_point_in_it(sparse):
    """Rows that cancel, products that underflow, and a row of zeros, which has an exact image."""
    rng = np.random.default_rng(0)
    A = rng.normal(size=(4, 6)) * 10.0 ** rng.integers(-9, 9, size=(4, 1))
    A[1], A[3] = 0.0, [1e-200, 0, 0, 0, 0, 0]
    mid, rad = rng.normal(size=6) * 1e-150, np.full(6, 1e-166)
    found = (sp.csr_array(A) if sparse else A) @ Ball(mid, rad)
    for sign in (-1, 1):
        point = [m + sign * r for m, r in zip(exact(mid), exact(rad), strict=True)]
        image = [sum(a * x for a, x in zip(exact(row), point, strict=True)) for row in A]
        errors = [abs(Fraction(float(m)) - e) for m, e in zip(found.mid, image, strict=True)]
        assert all(e <= Fraction(float(r)) for e, r in zip(errors, found.rad, strict=True))
    assert found.mid[1] == found.rad[1] == 0 < found.rad[3]


@every("op", [operator.add, operator.sub, operator.mul, operator.truediv], ids=lambda op: op.__name__)
@every("radius", [0.0, 1e-17, 0.3])
def test_the_operations_of_balls_hold_those_of_all_their_points(op, radius):
    """Of numbers of all sizes, as arrays and one by one; a divisor that may be zero has no bound."""
    rng = np.random.default_rng(1)
    x, y = rng.normal(size=(2, 40)) * 10.0 ** rng.integers(-9, 9, (2, 40))
    y[::3] = -x[::3] * (1 + 1e-15)
    a, b = Ball(x, radius * np.abs(x)), Ball(y, radius * np.abs(y))
    whole = op(a, b)
    for i in range(x.size):
        one = op(Ball(float(x[i]), float(a.rad[i])), Ball(float(y[i]), float(b.rad[i])))
        assert (one.mid, one.rad) == (whole.mid[i], whole.rad[i])
        for p, q in product((-1, 1), repeat=2):
            left = Fraction(float(x[i])) + p * Fraction(float(a.rad[i]))
            right = Fraction(float(y[i])) + q * Fraction(float(b.rad[i]))
            assert abs(Fraction(float(whole.mid[i])) - op(left, right)) <= Fraction(float(whole.rad[i]))
    assert np.isinf((a / Ball(1e-3 * y, 1e-3 * np.abs(y))).rad).all()


@every("p", [0.5, 1.5, 2.0])
def test_the_power_of_a_ball_that_reaches_below_zero_is_finite(p):
    found = Ball(np.array([-4e-17, 0.0]), np.array([3e-14, 1e-300])).power(p)
    assert (found.above >= np.array([3e-14 - 4e-17, 1e-300]) ** p).all()
    assert (found.above <= 1.001 * np.array([3e-14, 1e-300]) ** p + 1e-320).all()

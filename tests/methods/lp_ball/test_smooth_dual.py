"""The smooth dual."""

from __future__ import annotations

from dataclasses import dataclass

import cvxpy as cp
import numpy as np
import pytest

import kernelopt as ko
from kernelopt.extend import Curve
from kernelopt.methods.lp_ball.smooth_dual import BOX_MARGIN, box_margin
from tests.every import every
from tests.methods.lp_ball.cases import KS, LOSSES, N, learning
from tests.problems import by_blocks, conjugate


@pytest.mark.parametrize("p", [1.2, 2.0, 4.0])
def test_the_smooth_dual_of_the_squared_loss_is_solved_to_round_off(p):
    """max y'a - |a|^2/2C - 1/2 |s(a)|_q without intercept is unconstrained: stationary in closed form."""
    case = LOSSES["squared"]
    y = case.y(N)
    built = learning(ko.squared(1.3), p, y, bias=False)
    solution = ko.solve(built.problem, "smooth-dual", tol=1e-12)
    assert solution.status == "optimal" and solution.gap <= 1e-12
    alpha = solution.alpha
    s = np.einsum("i,mij,j->m", alpha, KS, alpha)
    q = conjugate(p)
    theta = (s / np.linalg.norm(s, q)) ** (q - 1)
    np.testing.assert_allclose(solution.weights, theta, atol=1e-5)
    residual = y - alpha / 1.3 - np.tensordot(theta, KS, 1) @ alpha
    np.testing.assert_allclose(residual, 0, atol=1e-5)


@dataclass(frozen=True, repr=False, eq=False)
class expectile(ko.Loss):
    """C sum_i (share (y_i - t_i)_+^2 + (1 - share) (t_i - y_i)_+^2), whose dual has no bounds."""

    kind = "targets"
    quadratic = False
    C: float = 1.0
    share: float = 0.3

    def expression(self, fit, y):
        above, below = cp.sum_squares(cp.pos(y - fit)), cp.sum_squares(cp.pos(fit - y))
        return self.C * (self.share * above + (1 - self.share) * below)

    def curve(self, y):
        zero = np.zeros(y.size)
        return Curve(y, zero, zero, zero - np.inf, zero + np.inf)

    def slopes(self, a):
        return 2 * self.C * np.where(a > 0, self.share, 1 - self.share)

    def responder(self, y):
        return lambda t: self.slopes(y - t) * (y - t)

    def dual_value(self, alpha, y):
        return float(y @ alpha - alpha @ (alpha / self.slopes(alpha)) / 2)

    def dual_gradient(self, alpha, y):
        return y - alpha / self.slopes(alpha)

    def dual_expression(self, alpha, y):
        above, below = cp.sum_squares(cp.pos(alpha)), cp.sum_squares(cp.neg(alpha))
        return y @ alpha - (above / self.share + below / (1 - self.share)) / (4 * self.C), []


@every("loss, p", [*((expectile(1.3, 0.2), p) for p in (1.2, 2.0, np.inf)), (ko.squared(1.3), 3.0)])
@every("bias", [False, True])
def test_the_primal_over_the_blocks_has_the_same_value(loss, p, bias):
    """Also for a dual without bounds that is not quadratic."""
    y = LOSSES["squared"].y(N) + 1
    value = by_blocks(KS, y, loss, bias, 2.0 if np.isinf(p) else 2 * p / (p + 1))
    solution = ko.solve(learning(loss, p, y, bias=bias).problem, "smooth-dual", tol=1e-7)
    assert solution.status == "optimal"
    assert solution.lower - 1e-6 <= value <= solution.upper + 1e-6


def test_the_margin_of_a_box_is_finite():
    """A box, a half-line on either side of the response -y at f = 0, and the line."""

    class Ends(expectile):
        def curve(self, y):
            zero = np.zeros(y.size)
            lower, upper = np.array([-4, -4, -np.inf, -np.inf]), np.array([4, np.inf, 4, np.inf])
            return Curve(y, zero, zero, lower, upper)

    margin = box_margin(Ends(0.5, 0.5), np.full(4, 1.0))
    assert margin == pytest.approx(BOX_MARGIN * np.array([8, 4.5, 3.5, 0]))


@every("C", [1e-2, 1e4])
@every("bias", [False, True])
def test_small_and_large_C_end_optimal(bias, C):
    built = learning(ko.squared(C), 2, LOSSES["squared"].y(N), bias=bias)
    assert ko.solve(built.problem, "smooth-dual", tol=1e-8).status == "optimal"


def test_the_remedy_fits_the_problem():
    def said(loss, p):
        with pytest.warns(ko.ConvergenceWarning) as record:
            ko.solve(learning(loss, p).problem, "smooth-dual", tol=1e-14, max_iterations=2)
        return str(record[-1].message).partition("Methods that apply too")[0]

    assert "p near 1: try method='interleaved' or 'cutting-plane'" in said(ko.squared_hinge(), 1.05)
    assert "p near 1: try method='cutting-plane'" in said(ko.logistic(), 1.05)
    assert "p near 1" not in said(ko.logistic(), 2) and "max_iterations" in said(ko.logistic(), 2)

"""The smooth dual."""

from __future__ import annotations

import cvxpy as cp
import numpy as np
import pytest

import kernelopt as ko
from tests.methods.lp_ball.cases import KS, LOSSES, N, conjugate, learning
from tests.problems import solved


@pytest.mark.parametrize("p", [1.2, 4 / 3, 2.0, 4.0])
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


@pytest.mark.parametrize("bias", [False, True], ids=["no bias", "bias"])
def test_the_smooth_dual_against_a_primal_by_hand(bias):
    """min C/2 |z|^2 + 1/2 sum |w_m|^2 / theta_m as cvxpy takes it."""
    y, p = LOSSES["squared"].y(N), 3.0
    roots = [np.linalg.eigh(K) for K in KS]
    Ls = [vectors * np.sqrt(np.maximum(values, 0)) for values, vectors in roots]
    w = [cp.Variable(N) for _ in Ls]
    f = sum(L @ v for L, v in zip(Ls, w, strict=True)) + (cp.Variable() if bias else 0.0)
    r = 2 * p / (p + 1)
    lengths = cp.hstack([cp.norm2(v) for v in w])
    penalty = cp.square(cp.pnorm(lengths, r, approx=False)) / 2
    value = solved(cp.Problem(cp.Minimize(1.3 / 2 * cp.sum_squares(f - y) + penalty)))
    built = learning(ko.squared(1.3), p, y, bias=bias)
    solution = ko.solve(built.problem, "smooth-dual", tol=1e-8)
    assert solution.lower - 1e-6 <= value <= solution.upper + 1e-6

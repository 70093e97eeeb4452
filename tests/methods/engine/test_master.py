"""The quadratic model on the l_p ball against a conic programme."""

import warnings

import cvxpy as cp
import numpy as np
import pytest

from kernelopt.methods.engine.master import minimum_on_ball
from tests.every import every


def model(kind, m, rng):
    """A gradient and a positive semidefinite Hessian, of full or low rank, zero, or with equal kernels."""
    rank = {"full": m + 2, "low": max(1, m // 3), "zero": 0, "equal": m, "signed": m}[kind]
    B, g = rng.standard_normal((rank, m)), -rng.random(m)
    if kind == "equal" and m > 1:
        B[:, 1], g[1] = B[:, 0], g[0]
    return (rng.standard_normal(m) if kind == "signed" else g), B.T @ B * 10.0 ** rng.integers(-4, 5)


def conic(g, H, w, p):
    v = cp.Variable(w.size, nonneg=True)
    length = cp.norm(v, p) if p in (1, np.inf) else cp.pnorm(v, p, approx=False)
    problem = cp.Problem(cp.Minimize(g @ (v - w) + cp.quad_form(v - w, cp.psd_wrap(H)) / 2), [length <= 1])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        problem.solve(solver=cp.CLARABEL, max_threads=1)
    return problem.value


@every("p", [1, 1.05, 4 / 3, 2, 4, 30, np.inf])
def test_the_minimum_is_that_of_a_conic_programme_at_any_scale(p):
    rng = np.random.default_rng(0)
    kinds = ("full", "low", "zero", "equal", "signed")
    many = {200: ("equal", "signed")} if p == 1 else {}  # where the minimiser is sought among some entries
    for m, chosen in {1: kinds, 2: kinds, 9: kinds, **many}.items():
        for kind in chosen:
            g, H = model(kind, m, rng)
            w = rng.random(m) * (rng.random(m) > 0.3)
            w /= max(1.0, np.linalg.norm(w, p))
            scale = 10.0 ** rng.integers(-30, 30)
            v = minimum_on_ball(scale * g, scale * H, w, p)
            assert v.min() >= 0 and np.linalg.norm(v, p) <= 1 + 1e-12
            value = g @ (v - w) + (v - w) @ H @ (v - w) / 2
            assert value == pytest.approx(conic(g, H, w, p), rel=2e-6, abs=2e-6)


def test_an_affine_model_on_the_simplex_has_a_vertex():
    v = minimum_on_ball(np.array([-1.0, -3.0, -2.0]), np.zeros((3, 3)), np.full(3, 1 / 3), 1)
    np.testing.assert_allclose(v, [0, 1, 0], atol=1e-9)
    assert v[0] == v[2] == 0


def test_without_a_gradient_the_point_stays():
    w = np.array([0.2, 0.3])
    assert (minimum_on_ball(np.zeros(2), np.zeros((2, 2)), w, 2) == w).all()

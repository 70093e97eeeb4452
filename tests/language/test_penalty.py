"""The squared norm of a function of a weighted kernel, as a cvxpy expression."""

from __future__ import annotations

import cvxpy as cp
import numpy as np

import kernelopt as ko
from kernelopt.extend import as_grams
from kernelopt.grams import join
from kernelopt.language.penalty import penalty
from tests.problems import points

N = 6


def test_each_kernel_has_its_own_coordinates_and_weight():
    """Kernels of the rank bounds 2, 6, 0 and 1: sum_i |u_i|^2 / w_i over consecutive parts of u."""
    X = points(N, 2)
    evaluated = ko.Grams.from_kernels([ko.linear(), ko.gaussian(1.0)], X)
    grams = join([(1.0, evaluated), (1.0, as_grams(np.zeros((1, N, N)))), (1.0, ko.Grams.rank_one(X[:, :1]))])
    assert grams.rank_bounds == (2, 6, 0, 1)
    w = cp.Variable(4, nonneg=True, name="w")
    found = penalty(ko.combine(w, grams), N, "")
    (u,) = found.f.variables()
    parts = (0, 0, 2), (1, 2, 8), (3, 8, 9)
    expected = cp.sum([cp.quad_over_lin(u[start:stop], w[i]) for i, start, stop in parts])
    u.value, w.value = np.arange(9.0), np.array([0.5, 2.0, 3.0, 4.0])
    assert str(found.square) == str(expected)
    assert found.square.value == expected.value == 1 / 0.5 + sum(i**2 for i in range(2, 8)) / 2 + 64 / 4
    problems = [cp.Problem(cp.Minimize(s - cp.sum(u)), [w <= 2]) for s in (found.square, expected)]
    one, two = (problem.get_problem_data(cp.CLARABEL)[0] for problem in problems)
    assert (one["A"] != two["A"]).nnz == 0
    assert one["dims"].soc == two["dims"].soc

"""The duals of the two large problems of docs/tour.md, without solving them: a conic solver takes minutes."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer
from sklearn.preprocessing import StandardScaler

import kernelopt as ko
from formulations import lp_norm, similarity

pytestmark = pytest.mark.slow


def tumours(*rows):
    data, chosen = load_breast_cancer(), slice(*rows)
    X = StandardScaler().fit(data.data[:60]).transform(data.data)
    return X[chosen], 2 * data.target[chosen] - 1


def test_the_dual_of_400_points_has_the_certified_value_at_the_alpha_of_the_solution():
    X, y = tumours(400)
    widths = [2.0 ** (k / 4) for k in range(-4, 20)]
    fused = ko.Grams.from_kernels([ko.gaussian(w) for w in widths], X).normalize("multiplicative")
    formulation = lp_norm.primal(fused, y, p=4 / 3, loss=ko.hinge(1.0))
    solution = formulation.solve("interleaved")
    dual = ko.dualize(formulation.problem)
    (alpha,) = dual.variables()
    alpha.value = solution.alpha
    assert all(np.max(c.violation()) <= 1e-9 for c in dual.constraints)
    assert float(dual.objective.value) == pytest.approx(solution.lower, rel=1e-6)
    assert float(dual.objective.value) <= solution.upper


def similar(*rows):
    X, y = tumours(*rows)
    S = np.tanh(X @ X.T / 30 - 1)
    return similarity.single_kernel(S, y, rho=0.1, trace=similarity.default_trace(S))


def test_the_dual_of_a_kernel_near_60_points_is_that_of_a_few_points():
    """The text has no sizes; the value of the dual of a few points is that of its primal."""
    few = similar(14, 26)
    dual = ko.dualize(few.problem)
    assert without_numbers(ko.dualize(similar(60).problem)) == without_numbers(dual)
    found, solution = dual.check(), few.solve()
    assert found.gap <= 1e-6 and solution.lower - 1e-5 <= found.dual <= solution.upper + 1e-5


def without_numbers(dual):
    """The text of a dual without its trace and without the number of points."""
    return [line.translate(str.maketrans("", "", "0123456789.")) for line in str(dual).split()]

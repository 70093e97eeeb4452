"""The interleaved method: kernels that are evaluated in chunks."""

from __future__ import annotations

import numpy as np
import pytest

import kernelopt as ko
from kernelopt.grams.evaluated import KernelStorage
from tests.every import every
from tests.methods.lp_ball.cases import learning
from tests.problems import labels, points


class Counted:
    """A kernel that keeps count of the rows asked of it."""

    def __init__(self, kernel, n):
        self.kernel, self.n, self.rows, self.whole = kernel, n, 0, 0

    def __call__(self, X, Z=None):
        self.rows += len(X)
        self.whole += len(X) == self.n and (Z is None or len(Z) == self.n)
        return self.kernel(X, Z) if Z is not None else self.kernel(X)

    def diagonal(self, X):
        return self.kernel.diagonal(X)

    def rank(self, X):
        return self.kernel.rank(X)


MANY = 40


KERNELS = (ko.gaussian(0.7), ko.gaussian(2.0), ko.linear(), ko.on_columns(ko.linear(), [0]))


def counted(loss, p, bias=True):
    X = points(MANY)
    kernels = [Counted(kernel, MANY) for kernel in KERNELS]
    built = learning(loss, p, labels(MANY), ko.Grams.from_kernels(kernels, X), bias)
    return built.problem, kernels


@pytest.mark.slow
@pytest.mark.parametrize("bias", [False, True], ids=["no bias", "bias"])
@every("memory", [5e8, 1e4])
@every("p", [1.0, 4 / 3, np.inf])
def test_kernels_as_functions_and_as_an_array_give_the_same(p, memory, bias):
    """1e4 bytes are the rows of 7 points, of 40: the smallest cache holds two chunks."""
    X, loss = points(MANY), ko.hinge(1.3)
    array = np.asarray(ko.Grams.from_kernels(KERNELS, X))
    held = ko.solve(learning(loss, p, labels(MANY), array, bias).problem, "interleaved", tol=1e-6)
    problem, _ = counted(loss, p, bias)
    solution = ko.solve(problem, "interleaved", tol=1e-6, memory=memory, chunk=4)
    assert solution.status == held.status == "optimal"
    assert solution.lower <= held.upper + 1e-9 and solution.upper >= held.lower - 1e-9
    np.testing.assert_allclose(solution.decision_function(), held.decision_function(), atol=2e-2)


@pytest.mark.parametrize("memory", [5e8, 1e4])
def test_no_gram_matrix_is_evaluated_before_the_certificate(memory, monkeypatch):
    matrices, at_reports = [], []
    whole = KernelStorage.gram
    monkeypatch.setattr(KernelStorage, "gram", lambda grams, i: (matrices.append(i), whole(grams, i))[1])
    problem, kernels = counted(ko.hinge(1.3), 4 / 3)

    def count(report):
        at_reports.append((len(matrices), [(k.rows, k.whole) for k in kernels]))

    solution = ko.solve(problem, "interleaved", tol=1e-7, memory=memory, chunk=4, callback=count)
    assert solution.status == "optimal" and len(at_reports) > 2
    asked, evaluated = at_reports[-1]
    assert asked == 0 and all(whole == 0 for _, whole in evaluated)
    if memory > 1e6:
        assert all(0 < rows <= MANY for rows, _ in evaluated), "every row at most once"
    else:
        assert all(rows > MANY for rows, _ in evaluated), "rows given up are evaluated again"


@pytest.mark.parametrize("bias", [False, True], ids=["no bias", "bias"])
@every("chunk", [1, 2, 7, 20, MANY, 3 * MANY])
def test_the_size_of_a_chunk_does_not_matter(chunk, bias):
    X, loss = points(MANY), ko.epsilon_insensitive(1.0, 0.1)
    y = X[:, 0] + 0.3 * labels(MANY)
    grams = np.asarray(ko.Grams.from_kernels(KERNELS, X))
    built = learning(loss, 4 / 3, y, grams, bias)
    exact = ko.solve(built.problem, "exact")
    solution = ko.solve(built.problem, "interleaved", chunk=chunk)
    assert solution.status == "optimal"
    assert solution.lower <= exact.upper + 1e-9 and solution.upper >= exact.lower - 1e-9


def test_an_overflow_is_no_warning_of_numpy():
    """An outlier of 1e15 under a kernel of degree two, whose entries differ by 60 orders of magnitude."""
    X = points(MANY).copy()
    X[-1] = 1e15
    grams = ko.Grams.from_kernels([ko.linear(), ko.polynomial(2), ko.gaussian(1.0)], X).normalize("trace")
    problem = learning(ko.squared_hinge(1.0), 2, labels(MANY), grams).problem
    with pytest.warns(ko.ConvergenceWarning) as caught:
        solution = ko.solve(problem, "interleaved", max_chunks=50)
    assert {warning.category for warning in caught} == {ko.ConvergenceWarning}
    assert 0 <= solution.lower <= solution.upper  # a bound may be infinite

"""Gram matrices are new, exactly symmetric arrays of floats, whatever `gram` of a kernel returns."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

import kernelopt as ko
from kernelopt.estimators.dictionary import FunctionKernel
from tests.every import every

X = np.random.default_rng(0).normal(size=(40, 3))
KEPT = X @ X.T


@dataclass(frozen=True)
class Kept(ko.Kernel):
    """It returns the same array at every call, of floats or of whole numbers."""

    whole: bool = False

    def gram(self, X, Z=None):
        return np.eye(len(X), dtype=int) if self.whole else KEPT


@every("kernel", [Kept(), Kept(True), 2.0 * Kept(), ko.polynomial(1), ko.polynomial(3), ko.linear()])
def test_a_matrix_is_new_symmetric_and_of_floats(kernel):
    K = kernel(X)
    assert K.dtype == np.float64 and (K == K.T).all() and not np.shares_memory(K, KEPT)
    stack = ko.Grams.from_kernels([kernel], X)
    assert (stack[0] == K).all() and not np.shares_memory(stack[0], KEPT)


def test_the_array_of_a_function_is_not_kept():
    known = KEPT.copy()
    kernel = FunctionKernel(lambda A, B: known)
    K = kernel(X)
    known[:] = 0
    assert (K == KEPT).all()


@every("share", [0.02, 0.3, 0.9])
def test_images_of_few_and_many_points_are_products(share):
    """Images of a sparse alpha are read from the rows of its support."""
    points = np.random.default_rng(1).normal(size=(300, 4))
    kernels = [ko.polynomial(2), ko.gaussian(2.0), ko.linear()]
    grams = ko.Grams.from_kernels(kernels, points).normalize("multiplicative").center()
    alpha = np.zeros(300)
    chosen = np.random.default_rng(2).choice(300, int(300 * share), replace=False)
    alpha[chosen] = np.random.default_rng(3).normal(size=chosen.size)
    direct = np.stack([K @ alpha for K in grams])
    scale = np.abs(direct).max()
    np.testing.assert_allclose(grams.apply(alpha), direct, atol=1e-12 * scale)
    fresh = ko.Grams.from_kernels(kernels, points).normalize("multiplicative").center()
    some = np.arange(0, 300, 3)
    np.testing.assert_allclose(fresh.images(alpha, some), direct[:, some], atol=1e-12 * scale)
    np.testing.assert_allclose(grams.forms(2 * alpha), 4 * direct @ alpha, atol=1e-12 * scale)

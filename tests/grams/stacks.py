"""Stacks of every kind, and the check that all they say is what numpy finds in their matrices."""

from __future__ import annotations

import cvxpy as cp
import numpy as np

import kernelopt as ko
from kernelopt.grams import join
from kernelopt.language.terms import ExpressionStorage
from tests.problems import points, stack

N = 9
X, NEW = points(N), points(3, seed=9)
V = np.random.default_rng(1).normal(size=(N, 4))
KERNELS = [ko.gaussian(1.0), ko.linear(), ko.polynomial(2), ko.identity(), ko.linear() + ko.laplacian(2.0)]
SIGNED = np.random.default_rng(2).normal(size=(N, N))
SIGNED = SIGNED + SIGNED.T


def lazy(n=N):
    return ko.Grams.from_kernels(KERNELS, points(n))


STACKS = {
    "kernels": lazy,
    "array": lambda: ko.Grams.from_array(stack(N), names=["a", "b", "c"]),
    "one kernel": lambda: ko.Grams.from_array(stack(N)[:1]),
    "with a zero kernel": lambda: ko.Grams.from_array(np.stack([stack(N)[0], np.zeros((N, N))])),
    "chosen arrays": lambda: ko.Grams.from_array(stack(N)).subset([2, 0]),
    "rank one": lambda: ko.Grams.rank_one(V),
    "eigenvectors": lambda: ko.Grams.from_eigenvectors(SIGNED, rank=3),
    "identity": lambda: ko.Grams.identity(N),
    "constant": lambda: ko.Grams(ExpressionStorage(cp.Constant(stack(N)[1]))),
    "block of a constant": lambda: ko.Grams(ExpressionStorage(cp.Constant(stack(N + 3)[0]), slice(2, 11))),
    "centred": lambda: lazy().center(),
    "centred array": lambda: ko.Grams.from_array(stack(N)).center(),
    "multiplicative": lambda: lazy().center().normalize("multiplicative"),
    "trace, centred and multiplicative": lambda: (
        lazy().normalize("trace").center().normalize("multiplicative")
    ),
    "spherical": lambda: lazy().normalize("spherical"),
    "block": lambda: lazy(12).center().normalize("trace").block(slice(1, 10)),
    "block of spherical": lambda: lazy(12).normalize("spherical").block(slice(9)),
    "subset": lambda: lazy().center().subset([3, 0, 2]),
    "two": lambda: join([(2.0, lazy()), (np.array([0.5, 1.0, 3.0]), ko.Grams.from_array(stack(N)))]),
    "with the identity": lambda: join(
        [(1.0, ko.Grams.rank_one(V)), (4.0, ko.Grams.identity(N)), (1.0, lazy())]
    ),
    "a stack and itself": lambda: join(
        [(1.0, one := lazy().center()), (2.0, one.subset([1, 0])), (0.1, one)]
    ),
    "centred after": lambda: join([(2.0, lazy()), (1.0, ko.Grams.identity(N))]).center(),
    "joined twice": lambda: join([(3.0, join([(2.0, lazy()), (1.0, ko.Grams.rank_one(V))])), (1.0, lazy())]),
}


class Counting(ko.kernels.Kernel):
    """A Gaussian kernel that counts calls, entries, rows and whole matrices, and the largest matrix."""

    def __init__(self):
        self.calls = self.entries = self.largest = self.rows = self.whole = 0

    def gram(self, A, B):
        size = len(A) * len(A if B is None else B)
        self.calls, self.entries, self.largest = self.calls + 1, self.entries + size, max(self.largest, size)
        self.rows, self.whole = self.rows + len(A) * (B is not None), self.whole + len(A) * (B is None)
        return ko.gaussian(1.0).gram(A, B)

    def gram_diagonal(self, A):
        self.entries += len(A)
        return np.ones(len(A))

    def __repr__(self):
        return "counting"


def near(found, expected):
    """Compare arrays; `pytest.approx` is slow on matrices."""
    np.testing.assert_allclose(
        found, expected, rtol=1e-8, atol=1e-9 * max(1.0, np.abs(expected).max(initial=0.0))
    )


def check(grams, Ks):
    """Everything a stack says is what numpy finds in its matrices Ks."""
    m, n, _ = Ks.shape
    rng = np.random.default_rng(3)
    w, a, i, j = rng.normal(size=m), rng.normal(size=n), rng.integers(-n, n, 5), rng.integers(-n, n, 5)
    assert grams.shape == Ks.shape and grams.n_points == n
    assert len(grams) == len(grams.names) == len(grams.rank_bounds) == m
    assert f"{m} kernels on {n} points" in repr(grams)
    near(np.asarray(grams), Ks)
    assert np.asarray(grams, dtype=np.float32).dtype == np.float32
    for chosen in (i, [n - 1], 0, -1, slice(1, n, 2), range(min(2, n)), np.arange(n) > n // 2):
        rows = grams.rows(chosen)
        near(rows, Ks[:, np.atleast_1d(np.arange(n)[chosen])])
        rows[:] = np.nan  # a copy: the stack does not follow
    assert grams.rows([]).shape == (m, 0, n)
    near(grams.rows(i), Ks[:, i])
    near(grams.diagonals, np.einsum("mii->mi", Ks))
    near(grams.traces, np.einsum("mii->m", Ks))
    near(grams.row_means, Ks.mean(axis=2))
    d = grams.magnitudes
    assert (np.abs(Ks) <= np.sqrt(d[:, :, None] * d[:, None]) * (1 + 1e-7) + 1e-12 * np.abs(Ks).max()).all()
    for weights in (w, w * (np.arange(m) == m - 1), 0 * w):
        near(grams.combine(weights), np.tensordot(weights, Ks, 1))
    for alpha in (a, a[: n // 2], np.where(np.arange(n) % 3 == 1, a, 0.0), 0 * a, a):
        k = alpha.size
        near(grams.apply(alpha), Ks[:, :, :k] @ alpha)  # the last images are kept, for the same alpha alone
        near(grams.images(alpha, i % n), (Ks[:, :, :k] @ alpha)[:, i])
        near(grams.forms(alpha), np.einsum("i,mij,j->m", alpha, Ks[:, :k, :k], alpha))
    near(grams.inner(), np.einsum("aij,bij->ab", Ks, Ks))
    near(grams.entries(i, j), Ks[:, i, j])
    near(grams.vectorized(), Ks.reshape(m, -1).T)
    for k, K in enumerate(Ks):
        near(grams.gram(k), K)
        L, rank = (
            grams.factor(k),
            np.linalg.matrix_rank(K, tol=1e-9 * np.abs(K).max(initial=1e-300), hermitian=True),
        )
        near(L @ L.T, K)
        assert rank <= grams.rank_bounds[k] <= n and L.shape[1] <= grams.rank_bounds[k]

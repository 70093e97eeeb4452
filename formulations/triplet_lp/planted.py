"""Linear programmes of relative comparisons with a known optimum.

With multipliers u of the triplets, v of dominance and w_ij = - sign(K_ij) (v_i + v_j), weights are optimal
where z_p = <M, K_p> has sum |z_p| = gamma1 over every group with a weight, M being the matrix

    M = sum_t u_t (e_i e_j' - e_i e_k') + sum_i (v_i - gamma2) e_i e_i' + sum_{i < j} w_ij e_i e_j'.

The value is the value of the dual, the sum of u.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

import kernelopt as ko
from formulations.planting import Knobs, entry, planted
from formulations.triplet_lp.feature_selection import feature_selection
from formulations.triplet_lp.kernel_design import kernel_design
from kernelopt.extend import Array, Planted


def kernel(rng: np.random.Generator, n: int, tight: Array) -> Array:
    """Return a dominant K with entries in multiples of 1/8, exact in doubles; with equality where `tight`."""
    off = rng.integers(-6, 15, (n, n)) / 8
    off = np.triu(off, 1) + np.triu(off, 1).T
    return np.asarray(off + np.diag(np.abs(off).sum(axis=1) + np.where(tight, 0.0, 0.5)))


def oriented_triplets(rng: np.random.Generator, K: Array, count: int) -> tuple[Array, Array, Array]:
    """Return triplets on all points, oriented so that K gains by them, with their gains and multipliers."""
    n = len(K)
    rows = [(i, (i + 1) % n, (i + 2) % n) for i in range(n)]  # every point occurs
    drawn = np.array([*rows, *(rng.permutation(n)[:3] for _ in range(count))])
    turned = K[drawn[:, 0], drawn[:, 1]] < K[drawn[:, 0], drawn[:, 2]]
    drawn[turned] = drawn[turned][:, [0, 2, 1]]
    triplets = np.unique(drawn, axis=0)
    i, j, k = triplets.T
    gains = K[i, j] - K[i, k]
    triplets, gains = triplets[gains > 0], gains[gains > 0]
    u = np.where(gains < 1, 1.0, np.where(gains > 1, 0.0, rng.uniform(0.2, 0.8, gains.size)))
    return triplets, gains, u


def symmetric(M: Array) -> Array:
    """Return the symmetric matrix with the same products with symmetric ones."""
    return np.asarray((M + M.T) / 2)


def plant(rng: np.random.Generator, knobs: Knobs, *, grouped: bool) -> Planted:
    """Return a problem with a known optimum, by kernels alone or in groups of two."""
    n, m = knobs.N, knobs.m
    tight = (np.arange(n) % 2 == 0) & (m > 1)
    v = np.where(tight, 0.0 if knobs.degenerate else 0.02, 0.0)
    K = kernel(rng, n, tight)
    triplets, gains, u = oriented_triplets(rng, K, 2 * n)
    # gamma1 sum_f s_f = <M, K> = u'gains - gamma2 tr K must be positive.
    gamma2 = 0.3 * float(u @ gains) / float(np.trace(K))
    M = np.diag(v - gamma2)
    i, j, k = triplets.T
    np.add.at(M, (i, j), u)
    np.add.at(M, (i, k), -u)
    M += np.triu(-np.sign(K) * (v[:, None] + v[None]), 1)
    M = symmetric(M)
    groups = np.arange(m) // 2 if grouped else np.arange(m)
    used = knobs.active if not grouped else groups < max(1, groups.max())
    sizes = rng.uniform(0.5, 1.5, groups.max() + 1)[groups] * used
    firsts = np.unique(groups, return_index=True)[1]
    gamma1 = 0.7 * float(u @ gains) / float(sizes[firsts].sum())
    signs = np.where(np.arange(m) % 3 == 1, -1.0, 1.0)
    members = np.bincount(groups)[groups]
    level = np.where(used, 1.0, 1.0 if knobs.degenerate else 0.5)
    alpha, z = signs * sizes, gamma1 * level * signs / members
    stack = [np.zeros_like(K)]
    for p, target in enumerate(z[1:], 1):
        A = symmetric(rng.normal(size=K.shape))
        if p == m - 1:  # in the interior of the cone: without such a kernel the cone may have none
            A = 5 * np.eye(n) + 0.05 * A
        stack.append(A + (target - float((M * A).sum())) / float((M**2).sum()) * M)
    stack[0] = (K - np.tensordot(alpha[1:], np.array(stack[1:]), 1)) / alpha[0] if m > 1 else K / alpha[0]
    owners, labels = knobs.owners, groups
    if grouped and knobs.duplicates:  # a group as a whole, as another group
        again = np.flatnonzero(groups == 0)
        owners = np.concatenate([np.arange(m), again])
        labels = np.concatenate([groups, np.full(again.size, groups.max() + 1)])
    weights = (alpha / np.bincount(owners))[owners]
    data = (np.array(stack)[owners], triplets)
    options: dict[str, Any] = {"gamma1": gamma1, "gamma2": gamma2, "points": np.arange(n)}
    formulation = feature_selection(*data, labels, **options) if grouped else kernel_design(*data, **options)
    return planted(formulation, float(u.sum()), None, **formulation.problem.data.point(weights))


def labelled_triplets(rng: np.random.Generator, d: int) -> tuple[Array, NDArray[np.intp]]:
    """Return points in two classes that differ in the first coordinate, and triplets of their labels."""
    y = np.repeat([0, 1], 6)
    X = rng.normal(size=(12, d))
    X[:, 0] += 3 * y
    return X, ko.sample_triplets(y, 30, random_state=rng)


def design_example(rng: np.random.Generator) -> ko.Formulation:
    """Narrow and wide Gaussians, and the identity."""
    X, triplets = labelled_triplets(rng, 2)
    kernels = [ko.gaussian(0.3), ko.gaussian(1.0), ko.gaussian(3.0), ko.identity()]
    return kernel_design(ko.Grams.from_kernels(kernels, X), triplets, gamma1=0.05, gamma2=0.02)


def selection_example(rng: np.random.Generator) -> ko.Formulation:
    """Two widths on each of four features, and the identity. One feature tells the classes apart."""
    X, triplets = labelled_triplets(rng, 4)
    weak = ko.per_feature([ko.gaussian(0.5), ko.gaussian(2.0)], 4)
    grams = ko.Grams.from_kernels([*weak, ko.identity()], X)
    return feature_selection(grams, triplets, [*weak.groups, 4], gamma1=0.1, gamma2=0.02)


CATALOGUE = [
    entry(kernel_design, "triplets", partial(plant, grouped=False), design_example),
    entry(feature_selection, "triplets", partial(plant, grouped=True), selection_example),
]

"""Comparisons with their kernels, and oracles of the triplet programme that are written once more here."""

from __future__ import annotations

import warnings
from functools import cache

import cvxpy as cp
import numpy as np
import pytest
from scipy.optimize import linprog

import kernelopt as ko
from formulations import triplet_lp
from kernelopt.errors import (
    ConditionWarning,
    ConvergenceWarning,
)
from tests.problems import solved

CONES = ("dominant", "psd", "nonnegative")


LINEAR = ("dominant", "nonnegative")


TIGHT = 1e-8  # of a linear programme: relative to max(1, value)


CONIC = 2e-6  # of a semidefinite one


cones = pytest.mark.parametrize("cone", CONES)


linear = pytest.mark.parametrize("cone", LINEAR)


def tolerance(cone):
    return CONIC if cone == "psd" else TIGHT


def near(value, other, tolerance):
    return abs(value - other) <= tolerance * max(1.0, abs(other))


def blobs(seed, n=14, d=3, T=25):
    """Points of two classes that differ in the first coordinate, and triplets of their labels."""
    rng = np.random.default_rng(seed)
    y = (np.arange(n) >= n // 2).astype(int)
    X = rng.normal(size=(n, d))
    X[:, 0] += 3 * y
    return X, ko.sample_triplets(y, T, random_state=rng)


@cache
def plain(seed, N=12, T=18):
    """Gaussians, the identity and a linear kernel, on more points than the triplets have."""
    X, triplets = blobs(seed, N, 3, T)
    kernels = [ko.gaussian(w) for w in (0.4, 1.0, 2.5)] + [ko.normalized(ko.linear()), ko.identity()]
    return np.asarray(ko.Grams.from_kernels(kernels, X)), triplets, np.arange(5)


@cache
def signed(seed, N=9, T=14):
    """Symmetric matrices of any signature in three groups, and triplets that may contradict each other."""
    rng = np.random.default_rng(seed)
    A = 0.3 * rng.normal(size=(5, N, N))
    diagonal = rng.uniform(0.0, 2.5, size=(5, N))
    K = (A + A.transpose(0, 2, 1)) / 2 + diagonal[:, :, None] * np.eye(N)
    triplets = np.array([rng.permutation(N - 1)[:3] for _ in range(T)])  # the last point is in none
    return np.concatenate([K, np.eye(N)[None]]), triplets, np.array([0, 0, 1, 2, 2, 3])


def semidefinite(seed, N=9, T=14):
    """As `signed`, with positive semidefinite matrices."""
    grams, triplets, groups = signed(seed, N, T)
    low = np.linalg.eigvalsh(grams)[:, 0]
    return grams - np.minimum(low, 0.0)[:, None, None] * np.eye(N), triplets, groups


DATA = {"plain": plain, "signed": signed, "semidefinite": semidefinite}


def distance(found):
    """The distance of two bounds relative to max(1, |upper|)."""
    return (found.upper - found.lower) / max(1.0, abs(found.upper))


def quietly(build, *arguments, **options):
    """Build or solve where contradictions and collapse are expected."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConditionWarning)
        return build(*arguments, **options)


def formulated(grams, triplets, groups, **options):
    return quietly(triplet_lp.feature_selection, grams, triplets, groups, **options)


@cache
def optimum_of(kind, data, **options):
    """The certified solution on the data of a kind, which tests read and never write."""
    return optimum(*DATA[kind](*data), **options)


def optimum(grams, triplets, groups, **options):
    """The certified solution, with a check of its bounds."""
    tight = tolerance(options.get("cone", "dominant"))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # near zero the gap is above the distance
        solution = quietly(formulated(grams, triplets, groups, **options).solve, tol=tight)
    assert (solution.status == "optimal") == (solution.gap <= tight) and distance(solution) <= tight
    return solution


def dominance(K, S):
    return np.array([K[i, i] - sum(abs(K[i, j]) for j in S if j != i) for i in S])


def phi(alpha, grams, triplets, groups, gamma1, gamma2, S=None, margin=1.0):
    """The objective in closed form, Fung 1.3."""
    K = sum(a * matrix for a, matrix in zip(alpha, grams, strict=True))
    S = np.unique(triplets) if S is None else S
    total = sum(max(margin - K[i, j] + K[i, k], 0.0) for i, j, k in triplets)
    for f in np.unique(groups):
        total += gamma1 * max(abs(a) for a, g in zip(alpha, groups, strict=True) if g == f)
    return total + gamma2 * sum(K[i, i] for i in S)


def programme(grams, triplets, groups, gamma1, gamma2, cone="dominant", S=None, margin=1.0):
    """The linear programme for scipy: (status, value, alpha). `cone` may also be "both" or "none"."""
    S = np.unique(triplets) if S is None else np.unique(S)
    labels, of = np.unique(groups, return_inverse=True)
    pairs = [(i, j) for a, i in enumerate(S) for j in S[a + 1 :]]
    m, F, P, T = len(grams), len(labels), len(pairs), len(triplets)
    q = np.array([sum(K[i, i] for i in S) for K in grams])
    cost = np.concatenate([gamma2 * q, np.full(F, gamma1), np.zeros(P), np.ones(T)])
    rows, right = [], []

    def at_most(bound, alpha=0.0, s=(), r=(), eps=()):
        row = np.zeros(m + F + P + T)
        row[:m] = alpha
        for start, entries in ((m, s), (m + F, r), (m + F + P, eps)):
            for index, entry in entries:
                row[start + index] += entry
        rows.append(row)
        right.append(bound)

    for t, (i, j, k) in enumerate(triplets):
        at_most(-margin, alpha=-(grams[:, i, j] - grams[:, i, k]), eps=[(t, -1.0)])
    for p in range(m):
        for sign in (1.0, -1.0):
            at_most(0.0, alpha=sign * np.eye(m)[p], s=[(of[p], -1.0)])
    if cone in ("dominant", "both"):
        for index, (i, j) in enumerate(pairs):
            for sign in (1.0, -1.0):
                at_most(0.0, alpha=sign * grams[:, i, j], r=[(index, -1.0)])
        for i in S:
            around = [(index, 1.0) for index, pair in enumerate(pairs) if i in pair]
            at_most(0.0, alpha=-grams[:, i, i], r=around)
    low = 0.0 if cone in ("nonnegative", "both") else None
    bounds = [(low, None)] * m + [(0, None)] * F + [(None, None)] * P + [(0, None)] * T
    found = linprog(cost, A_ub=np.array(rows), b_ub=right, bounds=bounds, method="highs-ds")
    return found.status, found.fun, None if found.x is None else found.x[:m]


def dual_programme(
    grams, triplets, groups, gamma1, gamma2, cone="dominant", S=None, margin=1.0, u_is_one=False
):
    """The dual for scipy, or with u = 1 the least gamma1 of which alpha = 0 is optimal."""
    S = np.unique(triplets) if S is None else np.unique(S)
    labels, of = np.unique(groups, return_inverse=True)
    place = {point: a for a, point in enumerate(S)}
    pairs = [(i, j) for a, i in enumerate(S) for j in S[a + 1 :]] if cone == "dominant" else []
    m, T, n, P = len(grams), len(triplets), len(S) if cone == "dominant" else 0, len(pairs)
    u, v, w = slice(0, T), slice(T, T + n), slice(T + n, T + n + P)
    above, below, price = slice(w.stop, w.stop + m), slice(w.stop + m, w.stop + 2 * m), w.stop + 2 * m
    size = price + 1
    equal, caps = np.zeros((m, size)), []
    for p, K in enumerate(grams):
        equal[p, u] = [K[i, j] - K[i, k] for i, j, k in triplets]
        equal[p, v] = [K[i, i] for i in S[:n]]
        equal[p, w] = [K[i, j] for i, j in pairs]
        equal[p, above.start + p], equal[p, below.start + p] = -1.0, 1.0
    for f in range(len(labels)):
        row = np.zeros(size)
        row[above] = of == f
        row[below] = 0.0 if cone == "nonnegative" else of == f
        row[price] = -1.0
        caps.append(row)
    for index, (i, j) in enumerate(pairs):
        for sign in (1.0, -1.0):
            row = np.zeros(size)
            row[w.start + index] = sign
            row[v.start + place[i]] = row[v.start + place[j]] = -1.0
            caps.append(row)
    q = np.array([sum(K[i, i] for i in S) for K in grams])
    bounds = [(1.0 if u_is_one else 0.0, 1.0)] * T + [(0, None)] * n + [(None, None)] * P
    bounds += [(0, None)] * (2 * m) + [(0, None) if u_is_one else (gamma1, gamma1)]
    cost = np.zeros(size)
    cost[price if u_is_one else u] = 1.0 if u_is_one else -margin
    found = linprog(
        cost, A_eq=equal, b_eq=gamma2 * q, A_ub=np.array(caps), b_ub=np.zeros(len(caps)), bounds=bounds
    )
    assert found.status == 0
    return found.fun if u_is_one else -found.fun


def semidefinite_programme(grams, triplets, groups, gamma1, gamma2, S=None, margin=1.0):
    """The same over K >> 0 on S, in plain cvxpy: the value."""
    S = np.unique(triplets) if S is None else S
    alpha = cp.Variable(len(grams))
    K = sum(alpha[p] * grams[p][np.ix_(S, S)] for p in range(len(grams)))
    gains = cp.hstack(
        [sum(alpha[p] * (M[i, j] - M[i, k]) for p, M in enumerate(grams)) for i, j, k in triplets]
    )
    groups = np.asarray(groups)
    sizes = [cp.norm_inf(alpha[np.flatnonzero(groups == f)]) for f in np.unique(groups)]
    cost = cp.sum(cp.pos(margin - gains)) + gamma1 * sum(sizes) + gamma2 * cp.trace(K)
    return solved(cp.Problem(cp.Minimize(cost), [K >> 0]))


def value_of(cone, grams, triplets, groups, gamma1, gamma2, **options):
    """The optimum by an oracle."""
    if cone == "psd":
        return semidefinite_programme(grams, triplets, groups, gamma1, gamma2, **options)
    status, value, _ = programme(grams, triplets, groups, gamma1, gamma2, cone, **options)
    assert status == 0
    return value


def bounds(formulation):
    """The paper's bounds, from what is left in the variables and multipliers of the problem."""
    values = {v.id: v.value for v in formulation.problem.variables()}
    multipliers = {c.label: c.dual_value for c in formulation.problem.constraints}
    return formulation.problem.bounds(values, multipliers)


def planted(seed, informative):
    """Eight features, of which the informative ones tell two classes apart."""
    rng = np.random.default_rng(seed)
    y = np.repeat([0, 1], 12)
    X = rng.normal(size=(24, 8))
    X[:, informative] += 4 * y[:, None]
    weak = ko.per_feature([ko.gaussian(0.3), ko.gaussian(1.0)], 8)
    grams = ko.Grams.from_kernels([*weak, 30 * ko.identity()], X)  # scaled: dominance is to cost little
    return grams, ko.sample_triplets(y, 150, random_state=rng), [*weak.groups, 8], y

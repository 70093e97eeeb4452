"""Comparisons with their kernels, and oracles of the triplet programme that are written once more here."""

from __future__ import annotations

import warnings
from functools import cache

import cvxpy as cp
import numpy as np
import pytest

import kernelopt as ko
from formulations import triplet_lp
from kernelopt.errors import ConditionWarning, ConvergenceWarning
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
    """The programme as one would type it: (status, value, alpha). `cone` may also be "both" or "none"."""
    S = np.unique(triplets) if S is None else np.unique(S)
    alpha, groups = cp.Variable(len(grams)), np.asarray(groups)
    (i, j, k), block = np.transpose(triplets), grams[:, S][:, :, S]
    K = cp.reshape(block.reshape(len(grams), -1).T @ alpha, (S.size, S.size), order="C")
    sizes = [cp.norm_inf(alpha[np.flatnonzero(groups == f)]) for f in np.unique(groups)]
    hinges = cp.pos(margin - (grams[:, i, j] - grams[:, i, k]).T @ alpha)
    problem = cp.Problem(cp.Minimize(cp.sum(hinges) + gamma1 * sum(sizes) + gamma2 * cp.trace(K)), [
        *([2 * cp.diag(K) >= cp.sum(cp.abs(K), axis=1)] if cone in ("dominant", "both") else []),
        *([alpha >= 0] if cone in ("nonnegative", "both") else []),
        *([K >> 0] if cone == "psd" else []),
    ])  # fmt: skip
    with np.errstate(invalid="ignore"):  # cvxpy propagates infinite bounds
        solved(problem) if cone == "psd" else problem.solve(solver=cp.HIGHS)
    return problem.status, problem.value, alpha.value


def value_of(cone, grams, triplets, groups, gamma1, gamma2, **options):
    """The optimum by an oracle."""
    status, value, _ = programme(grams, triplets, groups, gamma1, gamma2, cone, **options)
    assert status == cp.OPTIMAL
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

"""The grid of `auto_choice.py`: formulations on seeded synthetic data, by name."""

from __future__ import annotations

from functools import cache, partial

import numpy as np

import kernelopt as ko
from formulations import lanckriet, linear_functional, lp_norm, similarity, triplet_lp
from kernelopt.methods.selection import applicable
from kernelopt.numerics.rounding import split_sums
from kernelopt.structure.structure import Structure

LOSSES = {
    "hinge": ko.hinge(1.0),
    "squared_hinge": ko.squared_hinge(1.0),
    "logistic": ko.logistic(1.0),
    "squared": ko.squared(1.0),
    "epsilon_insensitive": ko.epsilon_insensitive(10.0, 0.5),
}
FIDELITIES = ("squared_frobenius", "frobenius", "l1")
NORMS = {"1": 1.0, "4/3": 4 / 3, "2": 2.0, "inf": np.inf}


@cache
def data(n, m):
    """Return m Gaussian kernels of many widths on pairs of six features, noisy labels and targets."""
    rng = np.random.default_rng(n * 100 + m)
    X = rng.normal(size=(n, 6))
    signal = X[:, 0] + np.sin(2 * X[:, 1]) + X[:, 2] * X[:, 3]
    labels = np.where(signal + 0.5 * rng.normal(size=n) > np.median(signal), 1.0, -1.0)
    targets = 2 * signal + 0.5 * rng.normal(size=n)
    Ks = np.empty((m, n, n))
    for k, width in enumerate(np.geomspace(0.3, 6.0, m)):
        F = X[:, rng.permutation(6)[: 2 + k % 3]]
        Ks[k] = np.exp(-((F[:, None] - F[None]) ** 2).sum(2) / (2 * width**2))
    return Ks, labels, targets, X


def answers(n, m, loss):
    """Return the labels or the targets that a loss takes."""
    _, labels, targets, _ = data(n, m)
    return targets if loss in ("squared", "epsilon_insensitive") else labels


@cache
def similarities(n, m):
    """Return noisy similarities of either signature, labels, and a trace."""
    rng = np.random.default_rng(n * 100 + m)
    Ks, labels, _, _ = data(n, m)
    noise = rng.normal(size=(m, n, n))
    S = Ks + 0.1 * (noise + noise.transpose(0, 2, 1))
    return S, labels, similarity.default_trace(S)


def of_margin(builder, n, m, **options):
    """A formulation of lanckriet."""
    Ks, labels, _, _ = data(n, m)
    return builder(Ks, labels, **options)


def of_loss(builder, n, m, loss, **options):
    """A formulation of lp_norm with a loss."""
    return builder(data(n, m)[0], answers(n, m, loss), loss=LOSSES[loss], **options)


def of_pairs(n, m, loss):
    """`non_isotropic` with weak interactions of neighbours."""
    E = np.eye(m) + 0.3 * (np.eye(m, k=1) + np.eye(m, k=-1))
    return of_loss(lp_norm.non_isotropic, n, m, loss, E=E)


def of_similarities(builder, n, m, fidelity, loss, free=False):
    """A formulation of similarity, its trace fixed or free."""
    S, labels, trace = similarities(n, m)
    trace = None if free else trace
    return builder(S, labels, rho=0.05, trace=trace, fidelity=fidelity, loss=LOSSES[loss])


def of_triplets(n, m, cone):
    """`kernel_design` with 5 triplets a point."""
    Ks, labels, _, _ = data(n, m)
    triplets = ko.sample_triplets(labels, 5 * n, random_state=0)
    stack = np.concatenate([Ks, np.eye(n)[None]])
    return triplet_lp.kernel_design(stack, triplets, gamma1=0.1, gamma2=0.01, cone=cone)


def of_functional(n, m, weights):
    """`functional_strategy`; its first stage is not in the time of the solve."""
    Ks, _, targets, _ = data(n, m)
    return linear_functional.functional_strategy(
        Ks, targets, regularization=0.05, ridge=1e-3, weights=weights
    )


def margins():
    """Yield the cells of lanckriet."""
    sizes = {
        "soft_margin": [(12, 3), (30, 3), (60, 10), (100, 10), (100, 30), (200, 10), (300, 10), (400, 3)],
        "hard_margin": [(12, 3), (30, 10), (60, 10), (100, 10), (200, 10)],
        "learned_tau": [(12, 3), (60, 10), (200, 10), (300, 10)],
        "alignment": [(12, 3), (60, 10), (200, 10), (300, 30)],
    }
    for name, pairs in sizes.items():
        for n, m in pairs:
            yield f"lanckriet.{name} n={n} m={m}", partial(of_margin, getattr(lanckriet, name), n, m)
    for n, m in [(12, 3), (30, 3), (30, 10), (60, 3)]:
        yield f"lanckriet.sdp n={n} m={m}", partial(of_margin, lanckriet.sdp, n, m, C=1.0)
    for n, m in [(12, 3), (30, 3)]:
        build = partial(of_margin, lanckriet.alignment, n, m, weights="free")
        yield f"lanckriet.alignment free n={n} m={m}", build


def norms():
    """Yield the cells of lp_norm."""
    for p, value in NORMS.items():
        for loss in LOSSES:
            small = [(12, 3), (30, 3), (100, 30), (400, 10)] if loss == "hinge" else []
            for n, m in [(60, 10), (200, 10), *small]:
                build = partial(of_loss, lp_norm.primal, n, m, loss, p=value)
                yield f"lp_norm.primal p={p} {loss} n={n} m={m}", build
    for n, m in [(30, 3), (100, 10), (200, 10)]:
        for loss in ("hinge", "logistic"):
            for p in (1.0, 2.0):
                build = partial(of_loss, lp_norm.tikhonov, n, m, loss, p=p, penalty=0.5)
                yield f"lp_norm.tikhonov p={p:g} {loss} n={n} m={m}", build
            yield f"lp_norm.non_isotropic {loss} n={n} m={m}", partial(of_pairs, n, m, loss)
            build = partial(of_loss, lp_norm.elastic_net, n, m, loss, l1=0.5, l2=0.5)
            yield f"lp_norm.elastic_net {loss} n={n} m={m}", build
    for n, m in [(12, 3), (100, 10), (300, 10)]:
        build = partial(one_class, n, m)
        yield f"lp_norm.one_class n={n} m={m}", build


def one_class(n, m):
    """`one_class` at nu = 0.3."""
    return lp_norm.one_class(data(n, m)[0], p=2.0, nu=0.3)


def nearness():
    """Yield the cells of similarity."""
    builders = ("single_kernel", "kernel_per_similarity", "restricted_spectral")
    for name in builders:
        for fidelity in FIDELITIES:
            for n, m in [(12, 3), (30, 3), (60, 3)]:
                build = partial(of_similarities, getattr(similarity, name), n, m, fidelity, "hinge")
                yield f"similarity.{name} {fidelity} hinge n={n} m={m}", build
    for n in (100, 200):
        for fidelity in FIDELITIES[:2]:
            build = partial(of_similarities, similarity.single_kernel, n, 3, fidelity, "hinge")
            yield f"similarity.single_kernel {fidelity} hinge n={n} m=3", build
    for n in (12, 30, 60):
        for name in builders[:2]:
            build = partial(of_similarities, getattr(similarity, name), n, 3, "squared_frobenius", "logistic")
            yield f"similarity.{name} squared_frobenius logistic n={n} m=3", build
    build = partial(of_similarities, similarity.single_kernel, 30, 3, "l1", "hinge", free=True)
    yield "similarity.single_kernel l1 hinge free n=30 m=3", build


def others():
    """Yield the cells of triplet_lp and linear_functional."""
    for cone, sizes in {
        "dominant": [(12, 3), (30, 10), (60, 30), (100, 30), (200, 30)],
        "nonnegative": [(12, 3), (30, 10), (100, 30), (300, 30)],
        "psd": [(12, 3), (30, 10), (60, 10)],
    }.items():
        for n, m in sizes:
            yield f"triplet_lp.kernel_design {cone} n={n} m={m}", partial(of_triplets, n, m, cone)
    for weights in ("free", "nonnegative", "simplex"):
        for n, m in [(30, 3), (100, 10), (300, 30)]:
            build = partial(of_functional, n, m, weights)
            yield f"linear_functional {weights} n={n} m={m}", build


def grid(quick):
    """Yield the name of every cell, and a function that builds its formulation."""
    for part in (margins, norms, nearness, others):
        for name, build in part():
            points = int(name.partition(" n=")[2].split()[0])
            if not quick or points <= 30:
                yield name, build


def warm_up(solve):
    """Run the methods on small problems, so that numba has compiled what they use.

    "exact" and "cutting-plane" use what the others use, and the one machine of the certificates.
    """
    for order in "CF":  # compensated sums are used only where sums cancel
        for writeable in (True, False):
            A = np.eye(2, order=order)
            A.setflags(write=writeable)
            split_sums(A, np.ones(2))
    builds = [
        *(partial(of_loss, lp_norm.primal, 20, 3, loss, p=p) for loss in LOSSES for p in (4 / 3, np.inf)),
        *(
            partial(of_similarities, getattr(similarity, name), 12, 2, fidelity, "hinge")
            for name in ("single_kernel", "kernel_per_similarity", "restricted_spectral")
            for fidelity in FIDELITIES
        ),
        partial(of_triplets, 12, 3, "dominant"),
        partial(of_functional, 12, 3, "free"),
        partial(of_margin, lanckriet.alignment, 12, 3),
    ]
    for build in builds:
        for candidate in applicable(Structure(build().problem)):
            if candidate.method.name not in ("exact", "cutting-plane"):
                solve(build, candidate.method.name)

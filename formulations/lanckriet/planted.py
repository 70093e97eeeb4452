"""Problems of Lanckriet et al. with a known optimum.

The problem is to minimise 2 * risk(K) over K = sum_i mu_i K_i with mu >= 0 and tr K = c. Let r_i = tr K_i,
and let alpha be optimal for K. Then mu is optimal if alpha'K_i alpha / r_i <= alpha'K alpha / c for all i,
with equality wherever mu_i > 0. The optimal value is 2 l(alpha) - alpha'K alpha.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

import kernelopt as ko
from formulations.lanckriet.alignment import alignment, powers_of_two
from formulations.lanckriet.block_norm import block_norm
from formulations.lanckriet.completion import completion
from formulations.lanckriet.gaussian_process import gaussian_process
from formulations.lanckriet.hard_margin import hard_margin
from formulations.lanckriet.learned_tau import learned_tau
from formulations.lanckriet.margin import margin
from formulations.lanckriet.qcqp import qcqp
from formulations.lanckriet.rank_one import rank_one
from formulations.lanckriet.sdp import sdp
from formulations.lanckriet.soft_margin import soft_margin
from formulations.lanckriet.soft_margin_squared import soft_margin_squared
from formulations.lanckriet.transduction_data import criterion, transduction_data
from formulations.planting import (
    Knobs,
    Machine,
    contradicting,
    entry,
    labelled_kernels,
    machine,
    planted,
    singular_kernel,
    split,
    weighted,
)
from kernelopt.extend import Array, Entry, Planted


def of_trace(
    rng: np.random.Generator,
    knobs: Knobs,
    m: Machine,
    build: Callable[..., ko.Formulation],
    c: float | None = None,
    **more: Any,
) -> Planted:
    """Return a problem over non-negative weights of given trace with a known optimum.

    z'K_i z / tr K_i is z'g / tr K for every active kernel, and half of it (if degenerate all of it) for the
    others. c is the trace, or the trace of K.
    """
    sizes = rng.uniform(0.5, 2.0, knobs.m)
    mu = knobs.shared(np.where(knobs.active, rng.uniform(0.5, 1.5, knobs.m), 0.0))

    def built(stack: Any, y: Any) -> ko.Formulation:
        return build(stack, y, trace=float(mu @ np.trace(stack, axis1=1, axis2=2)) if c is None else c)

    forms = (knobs.level * sizes)[knobs.owners]
    return weighted(rng, knobs, m, mu, forms, built, factor=2.0, traces=sizes, **more)


def of_criterion(
    build: Callable[..., ko.Formulation], bound: float = np.inf, ridge: float = 0.0, /, **options: Any
) -> Entry:
    """Return the entry of a builder, with optima for non-negative weights at C = `bound`, tau = `ridge`."""

    def plant(rng: np.random.Generator, knobs: Knobs) -> Planted:
        m = machine(rng, criterion(bound, ridge), knobs)
        return of_trace(rng, knobs, m, partial(build, **options))

    return entry(build, "labels", plant, example_of(build, **options), np.isinf(bound) and ridge == 0)


def example_of(
    build: Callable[..., ko.Formulation], **options: Any
) -> Callable[[np.random.Generator], ko.Formulation]:
    """Return the example of a builder: three kernels on sixteen points, twelve of them labelled."""
    return lambda rng: build(*labelled_kernels(rng), **options)


def precisions_of_graphs(rng: np.random.Generator) -> ko.Formulation:
    """Return the example of a Gaussian process: Laplacians of two graphs and the identity, twelve points."""
    A = np.triu(rng.uniform(size=(2, 12, 12)) < 0.3, 1).astype(float)
    A += A.transpose(0, 2, 1)
    laplacians = [np.diag(one.sum(axis=0)) - one for one in A]
    return gaussian_process([*laplacians, np.eye(12)], rng.normal(size=12).cumsum())


def partly_known(rng: np.random.Generator) -> ko.Formulation:
    """Return the example of a completion: half of the pairs of a kernel on twelve points are known."""
    K = np.asarray(ko.Grams.from_kernels([ko.gaussian(1.0)], rng.normal(size=(12, 2))))[0]
    known = np.triu(rng.uniform(size=K.shape) < 0.5, 1)
    return completion(K + 0.1 * np.eye(12), known | known.T | np.eye(12, dtype=bool))


def of_learned_tau(rng: np.random.Generator, knobs: Knobs) -> Planted:
    """Return a problem with a learned ridge and a known optimum: a hard margin with the identity."""
    m = machine(rng, ko.hard_margin(), knobs)
    slope = m.form / float(m.z @ m.z)  # alpha'I alpha / N = alpha'K alpha / c for the whole kernel
    tau = 0.2 * slope  # the ridge tau I has a fifth of the trace c of the whole kernel
    c = knobs.N * slope
    rest = replace(m, g=m.g - tau * m.z)
    return of_trace(rng, knobs, rest, learned_tau, c, total=c - knobs.N * tau, tau=tau)


def of_rank_one(rng: np.random.Generator, knobs: Knobs) -> Planted:
    """Return a problem with kernels of rank one and a known optimum, at C = 1.

    The kernels are K_i = v_i v_i' with |v_i| = 1, so that r_i = 1. The weights are optimal if v_i'alpha = t
    for all kernels with mu_i > 0, |v_i'alpha| <= t for the others, and t^2 = alpha'K alpha / c. Such vectors
    are v_i = t alpha / |alpha|^2 + h_i with h_i orthogonal to alpha. All h_i have one length, as |v_i| = 1.
    The equation K alpha = t sum_i mu_i v_i = g determines their weighted mean h. Pairs h + e and h - e, with
    e orthogonal to alpha and h, have this mean.
    """
    m = machine(rng, ko.hinge(1.0), knobs)
    size = float(m.z @ m.z)
    rest = m.g - m.form / size * m.z
    # |t alpha / |alpha|^2 + h|^2 = t^2 (1 / |alpha|^2 + |rest|^2 / form^2) must be at most |v_i|^2 = 1. This
    # t makes it 1/2, so that |e_i|^2 is the other half.
    t = np.sqrt(0.5 / (1 / size + float(rest @ rest) / m.form**2))
    mean, c = rest * (t / m.form), m.form / t**2
    radius = np.sqrt(1 - t**2 / size - float(mean @ mean))  # |e_i|
    vectors, mu = [], []
    for _ in range(max(1, knobs.m // 2)):  # in pairs with e and -e, whose mean is zero
        e = rng.normal(size=knobs.N)
        for known in (m.z, rest):
            e -= known * float(known @ e) / float(known @ known)
        e *= radius / np.linalg.norm(e)
        vectors += [t / size * m.z + mean + e, t / size * m.z + mean - e]
        mu += [rng.uniform(0.5, 1.5)] * 2
    extra = rng.normal(size=knobs.N)  # of weight zero, with v'alpha = t / 2, or t if degenerate
    extra -= m.z * float(m.z @ extra) / size
    low = t if knobs.degenerate else t / 2
    vectors.append(low / size * m.z + extra * np.sqrt(1 - low**2 / size) / np.linalg.norm(extra))
    weights = np.array([*mu, 0.0]) * (c / sum(mu))
    lengths = rng.uniform(0.5, 2.0, weights.size)
    V = np.array(vectors).T * lengths
    weights /= lengths**2
    if knobs.duplicates:
        V = np.column_stack([V, -V[:, : knobs.duplicates]])
        half = weights[: knobs.duplicates] / 2
        weights = np.concatenate([half, weights[knobs.duplicates :], half])
    return planted(rank_one(V, m.y, C=1.0, trace=c), 2 * m.risk, m.alpha, mu=weights)


def of_free_signs(rng: np.random.Generator, knobs: Knobs) -> Planted:
    """Return a semidefinite problem with a known optimum, whose kernels after the first have weights < 0.

    K has a null vector u, and Z = zeta uu' is the multiplier of K >> 0. The weights are optimal if
    <zz' + Z, K_i> = (z'Kz / c) r_i for every kernel. If degenerate, zeta = 0, and strict complementarity
    fails. Otherwise zeta = |z|^2, so that zz' and Z have one size.
    """
    m = machine(rng, ko.hard_margin() if knobs.infeasible else ko.hinge(1.0), knobs)
    K, u = singular_kernel(rng, knobs, m.z, m.g)
    c = float(np.trace(K))
    zeta = 0.0 if knobs.degenerate else float(m.z @ m.z)
    W = np.outer(m.z, m.z) + zeta * np.outer(u, u) - m.form / c * np.eye(knobs.N)
    base = np.concatenate([[1.0], -rng.uniform(0.1, 0.4, knobs.m - 1)])  # any negative numbers would do
    stack = split(rng, knobs, K, W, base, np.zeros(knobs.m))[knobs.owners]
    mu = knobs.shared(base)
    if knobs.infeasible:
        return planted(sdp(contradicting(stack), m.y, trace=c), np.inf, None)
    return planted(sdp(stack, m.y, C=1.0, trace=c), 2 * m.risk, m.alpha, mu=mu)


def positive_split(
    rng: np.random.Generator, knobs: Knobs, root: Array, W: Array, targets: Array
) -> tuple[Array, Array]:
    """Return matrices K_m >> 0 with <W, K_m> = targets_m, and weights with sum_m mu_m K_m = root root'.

    K_m is root B_m root, for a symmetric root, with B_1 = I - sum_{m > 1} mu_m B_m and mu_m = 0.8 / (M
    lambda_max(B_m)) for M kernels, so that B_1 >> 0.2 I. Kernels that are not active have weight zero.
    """
    B = split(rng, knobs, np.eye(len(root)), root @ W @ root, np.eye(knobs.m)[0], targets)
    weights = np.where(knobs.active, 0.8 / (knobs.m * np.linalg.eigvalsh(B)[:, -1]), 0.0)
    weights[0] = 1.0
    B[0] -= np.tensordot(weights[1:], B[1:], 1)
    stack = root @ B @ root
    return (stack + stack.transpose(0, 2, 1)) / 2, weights


def of_alignment(rng: np.random.Generator, knobs: Knobs) -> Planted:
    """Return an alignment problem with a known optimum.

    The alignment y'Ky is maximised over K = sum_i mu_i K_i with mu >= 0 and |K|_F <= 1. Let v = y'Ky. A
    kernel K with |K|_F = 1 is optimal if <yy' - vK, K_i> <= 0 for all i, with equality wherever mu_i > 0.
    """
    y = np.where(np.arange(knobs.n) % 2, -1.0, 1.0)
    padded = np.pad(y, (0, knobs.unlabelled))
    image = padded + 0.3 * rng.normal(size=knobs.N)  # near y, so that the optimal alignment is not near zero
    K = np.outer(image, image) / knobs.n
    Q, _ = np.linalg.qr(rng.normal(size=K.shape))
    K += (Q * np.geomspace(1.0, 1 / knobs.condition, knobs.N)) @ Q.T
    K = (K + K.T) / 2
    K /= np.linalg.norm(K)
    value = float(padded @ K @ padded)
    W = np.outer(padded, padded) - value * K
    # <yy' - vK, K_m> is zero for the active kernels. For the others any negative number would do.
    targets = np.where(knobs.active | knobs.degenerate, 0.0, -0.5 * value)
    curvature, basis = np.linalg.eigh(K)
    root = (basis * np.sqrt(curvature)) @ basis.T
    stack, base = positive_split(rng, knobs, root, W, targets)
    stack = stack[knobs.owners]
    mu = knobs.shared(base)
    # The variables of the problem are the weights of the kernels times powers of two.
    return planted(alignment(stack, y), value, None, mu=mu / powers_of_two(transduction_data(stack, y)))


def of_gaussian_process(rng: np.random.Generator, knobs: Knobs) -> Planted:
    """Return a maximum-determinant problem with a known optimum.

    K is optimal if K^-1 = sum_i mu_i R_i with mu >= 0 and <yy' - K, R_i> >= 0 for all i, with equality
    wherever mu_i > 0. For y with y'K^-1 y = N the sum of the equalities holds.
    """
    Q, _ = np.linalg.qr(rng.normal(size=(knobs.N, knobs.N)))
    spectrum = rng.uniform(0.5, 2.0) * np.geomspace(1.0, 1 / knobs.condition, knobs.N)
    K, root = (Q * spectrum) @ Q.T, (Q / np.sqrt(spectrum)) @ Q.T
    y = rng.normal(size=knobs.N)
    y *= np.sqrt(knobs.N) / np.linalg.norm(root @ y)
    W = np.outer(y, y) - K
    targets = np.where(knobs.active | knobs.degenerate, 0.0, 0.5 * knobs.N)
    stack, _ = positive_split(rng, knobs, root, W, targets)
    value = float(np.log(spectrum).sum()) + knobs.N
    return planted(gaussian_process(stack[knobs.owners], y), value, None, K=(K + K.T) / 2)


def of_completion(rng: np.random.Generator, knobs: Knobs) -> Planted:
    """Return a completion with a known optimum: a positive definite K with K^-1 = S at the unknown pairs.

    If degenerate, S is zero at the known ones. The larger m, the fewer pairs are known.
    """
    Q, _ = np.linalg.qr(rng.normal(size=(knobs.N, knobs.N)))
    spectrum = np.geomspace(1.0, 1 / knobs.condition, knobs.N)
    K, S = (Q * spectrum) @ Q.T, (Q / spectrum) @ Q.T
    known = rng.uniform(size=K.shape) < 1 / (knobs.m + 1)
    known = known | known.T | np.eye(knobs.N, dtype=bool)
    noise = rng.normal(size=K.shape)
    S = np.where(known, 0.0 if knobs.degenerate else noise + noise.T, (S + S.T) / 2)
    value = float((S * K).sum()) - float(np.log(spectrum).sum())
    K = (K + K.T) / 2
    return planted(completion(K, known, S), value, None, K=K)


CATALOGUE = [
    of_criterion(hard_margin),
    of_criterion(soft_margin, 1.0),
    of_criterion(soft_margin_squared, np.inf, 1.0),
    entry(learned_tau, "labels", of_learned_tau, example_of(learned_tau)),
    of_criterion(margin, 1.0, 0.5, C=1.0, tau=0.5),
    entry(sdp, "labels", of_free_signs, example_of(sdp, C=1.0), can_be_infeasible=True),
    of_criterion(qcqp, 1.0, C=1.0),
    of_criterion(block_norm, 1.0, C=1.0),
    entry(
        rank_one,
        "labels",
        of_rank_one,
        lambda rng: rank_one(rng.normal(size=(16, 5)), labelled_kernels(rng)[1], C=1.0),
    ),
    entry(alignment, "labels", of_alignment, example_of(alignment)),
    entry(gaussian_process, "targets", of_gaussian_process, precisions_of_graphs),
    entry(completion, "none", of_completion, partly_known),
]

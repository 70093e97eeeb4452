"""Problems of Lanckriet et al. with a known optimum.

With omega = 2 x risk, weights mu >= 0 of trace c are optimal where alpha'K_i alpha / r_i takes its largest
value, alpha'K alpha / c, at every kernel with a weight. The value is 2 l(alpha) - alpha'K alpha.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import kernelopt as ko
from formulations.lanckriet.alignment import alignment, powers_of_two
from formulations.lanckriet.rank_one import rank_one
from formulations.lanckriet.sdp import sdp
from formulations.lanckriet.transduction_data import criterion, transduction_data
from formulations.planting import (
    Knobs,
    contradicting,
    directions,
    kernels,
    machine,
    planted,
    singular_kernel,
    split,
)
from kernelopt.extend import Array

Plant = Callable[..., ko.Planted]


def shares(rng: np.random.Generator, knobs: Knobs) -> tuple[Array, Array]:
    """Return positive shares of the m kernels, of sum one, and those of all with their duplicates."""
    base = np.where(knobs.active, rng.uniform(0.5, 1.5, knobs.m), 0.0)
    base /= base.sum()
    first = np.concatenate([rng.uniform(0.2, 0.8, knobs.duplicates), np.ones(knobs.m - knobs.duplicates)])
    return base, np.concatenate([first * base, (1 - first[: knobs.duplicates]) * base[: knobs.duplicates]])


def traced(
    rng: np.random.Generator, knobs: Knobs, z: Array, g: Array, c: float | None = None
) -> tuple[Array, Array, float]:
    """Return kernels, optimal weights and the trace c, for non-negative weights."""
    form = float(z @ g)
    base, full = shares(rng, knobs)
    level = 1.0 if knobs.degenerate else 0.5  # form of the kernel without a weight, over that of the others
    forms = form * np.where(knobs.active, 1.0, level)
    state = rng.bit_generator.state
    parts, _ = directions(rng, z, g, base, forms)
    rng.bit_generator.state = state  # the same draws again below, at a trace that is large enough
    # Every kernel needs a trace of |g_i|^2 / s_i at least: what is left is that of its other part.
    c = 1.2 * float(((parts**2).sum(axis=1) / forms).max()) + 1.0 if c is None else c
    sizes = rng.uniform(0.5, 2.0, knobs.m)
    rng.bit_generator.state = state
    stack = kernels(rng, knobs, z, g, base, forms, trace=c) * sizes[:, None, None]
    return stack[knobs.owners], full / sizes[knobs.owners], c


def of_criterion(build: Callable[..., ko.Formulation], C: float, tau: float, /, **options: Any) -> Plant:
    """Return the function that plants optima of a builder at C and tau, for non-negative weights."""

    def plant(rng: np.random.Generator, **chosen: Any) -> ko.Planted:
        """Return a problem with a known optimum; see `formulations.planting.Knobs`."""
        knobs = Knobs(**chosen)
        hard = np.isinf(C) and tau == 0
        if not hard:
            knobs.always_feasible(build.__name__)
        m = machine(rng, criterion(C, tau), knobs)
        stack, mu, c = traced(rng, knobs, m.z, m.g)
        if knobs.infeasible:
            return planted(build(contradicting(stack), m.y, trace=c, **options), np.inf, None)
        return planted(build(stack, m.y, trace=c, **options), 2 * m.risk, m.alpha, mu=mu)

    return plant


def of_learned_tau(build: Callable[..., ko.Formulation]) -> Plant:
    """Return the function that plants optima with a learned ridge: a hard margin with the identity."""

    def plant(rng: np.random.Generator, **chosen: Any) -> ko.Planted:
        """Return a problem with a known optimum; see `formulations.planting.Knobs`."""
        knobs = Knobs(**chosen)
        knobs.always_feasible(build.__name__)
        m = machine(rng, ko.hard_margin(), knobs)
        slope = m.form / float(m.z @ m.z)  # alpha'I alpha / N = alpha'K alpha / c for the whole kernel
        tau = 0.2 * slope  # a fifth of the whole kernel's trace
        c = knobs.N * slope
        stack, mu, _ = traced(rng, knobs, m.z, m.g - tau * m.z, c - knobs.N * tau)
        return planted(build(stack, m.y, trace=c), 2 * m.risk, m.alpha, mu=mu, tau=tau)

    return plant


def of_rank_one(rng: np.random.Generator, **chosen: Any) -> ko.Planted:
    """Return a problem with kernels of rank one and a known optimum, at C = 1.

    With |v_i| = 1 the weights are optimal where v_i'alpha is one number t for all kernels with a weight,
    and t^2 = alpha'K alpha / c. Such v_i are t alpha / |alpha|^2 + h_i with h_i orthogonal to alpha, of one
    length, and with a mean that makes the sum of mu_i t v_i equal to g.
    """
    knobs = Knobs(**chosen)
    knobs.always_feasible("rank_one")
    m = machine(rng, ko.hinge(1.0), knobs)
    size = float(m.z @ m.z)
    rest = m.g - m.form / size * m.z
    t = np.sqrt(0.5 / (1 / size + float(rest @ rest) / m.form**2))
    mean, c = rest * (t / m.form), m.form / t**2
    away = np.sqrt(1 - t**2 / size - float(mean @ mean))
    vectors, mu = [], []
    for _ in range(max(1, knobs.m // 2)):  # in pairs about the mean
        e = rng.normal(size=knobs.N)
        for known in (m.z, rest):
            e -= known * float(known @ e) / max(float(known @ known), ko.rounding.SMALLEST_DIVISOR)
        e *= away / np.linalg.norm(e)
        vectors += [t / size * m.z + mean + e, t / size * m.z + mean - e]
        mu += [rng.uniform(0.5, 1.5)] * 2
    extra = rng.normal(size=knobs.N)  # without a weight: a smaller product with alpha
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


def of_free_signs(rng: np.random.Generator, **chosen: Any) -> ko.Planted:
    """Return a semidefinite problem with a known optimum, whose kernels after the first have weights < 0.

    K has a null vector u, and Z = zeta uu' is the multiplier of K >> 0: the weights are optimal where
    <zz' + Z, K_i> = (z'Kz / c) r_i for every kernel.
    """
    knobs = Knobs(**chosen)
    m = machine(rng, ko.hard_margin() if knobs.infeasible else ko.hinge(1.0), knobs)
    K, u = singular_kernel(rng, knobs, m.z, m.g)
    c = float(np.trace(K))
    zeta = 0.0 if knobs.degenerate else float(m.z @ m.z)
    W = np.outer(m.z, m.z) + zeta * np.outer(u, u) - m.form / c * np.eye(knobs.N)
    base = np.concatenate([[1.0], -rng.uniform(0.1, 0.4, knobs.m - 1)])
    stack = split(rng, knobs, K, W, base, np.zeros(knobs.m))[knobs.owners]
    mu = base / np.bincount(knobs.owners)
    if knobs.infeasible:
        return planted(sdp(contradicting(stack), m.y, trace=c), np.inf, None)
    return planted(sdp(stack, m.y, C=1.0, trace=c), 2 * m.risk, m.alpha, mu=mu[knobs.owners])


def of_alignment(rng: np.random.Generator, **chosen: Any) -> ko.Planted:
    """Return an alignment problem with a known optimum.

    K with |K|_F = 1 is best where <yy' - vK, K_i> = 0 at every kernel with a weight and is at most 0 at the
    others, v = y'Ky being the value.
    """
    knobs = Knobs(**chosen)
    knobs.always_feasible("alignment")
    y = np.where(np.arange(knobs.n) % 2, -1.0, 1.0)
    padded = np.pad(y, (0, knobs.unlabelled))
    image = padded + 0.3 * rng.normal(size=knobs.N)
    K = np.outer(image, image) / knobs.n
    Q, _ = np.linalg.qr(rng.normal(size=K.shape))
    K += (Q * np.geomspace(1.0, 1 / knobs.condition, knobs.N)) @ Q.T
    K = (K + K.T) / 2
    K /= np.linalg.norm(K)
    value = float(padded @ K @ padded)
    W = np.outer(padded, padded) - value * K
    targets = np.where(knobs.active | knobs.degenerate, 0.0, -0.5 * value)
    # K_m = K^1/2 B_m K^1/2, and the first one is what is left of K: it stays positive definite.
    curvature, basis = np.linalg.eigh(K)
    root = (basis * np.sqrt(curvature)) @ basis.T
    B = split(rng, knobs, np.eye(knobs.N), root @ W @ root, np.eye(knobs.m)[0], targets)
    base = np.where(knobs.active, 0.8 / (knobs.m * np.linalg.eigvalsh(B)[:, -1]), 0.0)
    base[0] = 1.0
    B[0] -= np.tensordot(base[1:], B[1:], 1)
    stack = root @ B @ root
    stack = ((stack + stack.transpose(0, 2, 1)) / 2)[knobs.owners]
    mu = (base / np.bincount(knobs.owners))[knobs.owners]
    # The variable of the problem counts kernels times powers of two.
    return planted(alignment(stack, y), value, None, mu=mu / powers_of_two(transduction_data(stack, y)))

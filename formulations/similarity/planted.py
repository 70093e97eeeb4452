"""Problems with kernels near similarities and a known optimum.

K is optimal at alpha where rho sum_i U_i = 1/2 zz' + sigma I + Z with U_i a subgradient of the fidelity at
K - S_i, Z >= 0 and ZK = 0; sigma is the multiplier of the trace. K and the right side are chosen, and the
similarities follow.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import kernelopt as ko
from formulations.planting import Knobs, Machine, machine, orthogonal_part, planted
from formulations.similarity.indefinite_svm import indefinite_svm
from formulations.similarity.kernel_per_similarity import kernel_per_similarity
from formulations.similarity.restricted_spectral import restricted_spectral
from formulations.similarity.similarity_data import Fidelity
from formulations.similarity.single_kernel import single_kernel
from kernelopt.extend import Array


def singular_kernel(rng: np.random.Generator, knobs: Knobs, z: Array, g: Array) -> tuple[Array, Array]:
    """Return K >= 0 with Kz = g, and a unit vector of its null space."""
    frame, _ = np.linalg.qr(np.column_stack([z, g]))
    u = rng.normal(size=z.size)
    u -= frame @ (frame.T @ u)
    u /= np.linalg.norm(u)
    K = np.outer(g, g) / float(z @ g) + orthogonal_part(rng, knobs, [z, u])
    return K, u


def slopes(knobs: Knobs, z: Array, u: Array, sigma: float, gamma: float = 1.0) -> Array:
    """Return zz' / (2 gamma) + sigma I + Z with Z = uu', zero where strict complementarity is to fail."""
    zeta = 0.0 if knobs.degenerate else 1.0
    return np.asarray(np.outer(z, z) / (2 * gamma) + sigma * np.eye(z.size) + zeta * np.outer(u, u))


def similarities(
    rng: np.random.Generator, K: Array, W: Array, m: int, fidelity: Fidelity
) -> tuple[Array, float, float]:
    """Return S_1, ..., S_m and rho with rho sum_i U_i = W, and the sum of the fidelities at K."""
    if fidelity == "squared_frobenius":  # U_i = 2 (K - S_i)
        rho = 0.5
        spread = rng.normal(scale=0.1, size=(m, *K.shape))
        spread = spread + spread.transpose(0, 2, 1)
        spread -= spread.mean(axis=0)
        S = K - W / (2 * m * rho) + spread
        return S, rho, float(((K - S) ** 2).sum())
    lengths = rng.uniform(0.5, 2.0, m)
    if fidelity == "frobenius":  # all U_i are W / |W|
        size = float(np.linalg.norm(W))
        return K - lengths[:, None, None] * W / size, size / m, float(lengths.sum())
    # l1: at every entry one similarity differs from K and has the sign of W as its subgradient, and the next
    # one, equal to K there, has the rest, which is in [-1, 1]. A single one differs where |W| is largest.
    rho = float(np.abs(W).max())
    if m == 1:
        differs = (np.abs(W) >= rho)[None]
    else:
        owner = rng.integers(0, m, K.shape)
        owner = np.triu(owner) + np.triu(owner, 1).T
        differs = owner == np.arange(m)[:, None, None]
    apart = rng.uniform(0.2, 1.0, K.shape)
    apart = (apart + apart.T) / 2 * np.sign(W)
    S = np.where(differs, K - apart, K)
    return S, rho, float(np.abs(K - S).sum())


def doubled(S: Array, knobs: Knobs) -> Array:
    """Return the similarities, the first `duplicates` of them twice."""
    return S[knobs.owners]


def of_single(rng: np.random.Generator, *, fidelity: Fidelity = "l1", **asked: Any) -> ko.Planted:
    """Return a problem with one kernel from all similarities and a known optimum.

    k copies of all similarities at rho / k are one copy at rho: with duplicates all occur twice.
    """
    knobs = Knobs(**asked)
    knobs.always_feasible("single_kernel")
    copies = 2 if knobs.duplicates else 1
    m = machine(rng, ko.hinge(1.0), knobs)
    K, u = singular_kernel(rng, knobs, m.z, m.g)
    W = slopes(knobs, m.z, u, float(rng.uniform(-0.2, 0.2)))
    S, rho, distance = similarities(rng, K, W, knobs.m, fidelity)
    stack = np.tile(S, (copies, 1, 1))
    formulation = single_kernel(stack, m.y, rho=rho / copies, trace=float(np.trace(K)), fidelity=fidelity)
    return planted(formulation, m.risk + rho * distance, m.alpha, K=K)


def of_indefinite_svm(rng: np.random.Generator, **asked: Any) -> ko.Planted:
    """Return an indefinite support vector machine with a known optimum: no trace, sigma = 0."""
    knobs = Knobs(**asked)
    knobs.always_feasible("indefinite_svm")
    copies = 2 if knobs.duplicates else 1
    m = machine(rng, ko.hinge(1.0), knobs)
    K, u = singular_kernel(rng, knobs, m.z, m.g)
    S, rho, distance = similarities(rng, K, slopes(knobs, m.z, u, 0.0), knobs.m, "squared_frobenius")
    formulation = indefinite_svm(np.tile(S, (copies, 1, 1)), m.y, rho=rho / copies)
    return planted(formulation, m.risk + rho * distance, m.alpha, K=K)


def parts(rng: np.random.Generator, knobs: Knobs, m: Machine) -> tuple[Array, list[Array]]:
    """Return gamma and g_i with z'g_i = gamma_i^2 z'g and sum_i g_i / gamma_i = g."""
    gamma = rng.uniform(0.5, 1.5, knobs.m)
    gamma /= gamma.sum()
    spread = 0.1 * rng.normal(size=(knobs.m, m.g.size)) * np.linalg.norm(m.g) / np.sqrt(m.g.size)
    spread -= np.outer(spread @ m.z, m.z) / (m.z @ m.z)
    spread -= spread.mean(axis=0)
    return gamma, list(gamma[:, None] ** 2 * m.g + gamma[:, None] * spread)


def of_several(rng: np.random.Generator, *, fidelity: Fidelity = "frobenius", **asked: Any) -> ko.Planted:
    """Return a problem with one kernel per similarity and a known optimum.

    The risk is l(alpha) - 1/2 (sum_i q_i)^2 with q_i^2 = z'K_i z, and gamma_i = q_i / sum_j q_j is chosen.
    All kernels have one trace, and for the Frobenius norm all W_i have one length, rho. For "l1" one rho
    would have to fit the entries of every W_i: it is not planted. With duplicates the first kernels have
    equal shares and equal similarities.
    """
    knobs = Knobs(**asked)
    knobs.always_feasible("kernel_per_similarity")
    m = machine(rng, ko.hinge(1.0), knobs)
    if fidelity == "l1":
        raise ko.ParameterError("fidelity must be 'frobenius' or 'squared_frobenius', got 'l1'.")
    gamma, images = parts(rng, knobs, m)
    count = knobs.owners.size
    counts = np.bincount(knobs.owners)
    gamma, images = gamma / counts, [g / k**2 for g, k in zip(images, counts, strict=True)]
    pairs = [singular_kernel(rng, knobs, m.z, g) for g in images]
    trace = max(float(np.trace(K)) for K, _ in pairs)
    filled = []
    for K, u in pairs:  # what is missing of the trace, on the complement of z and u
        frame, _ = np.linalg.qr(np.column_stack([m.z, u]))
        rest = np.eye(m.z.size) - frame @ frame.T
        filled.append(K + rest * (trace - float(np.trace(K))) / (m.z.size - 2))
    W = [slopes(knobs, m.z, u, 0.1, g) for (_, u), g in zip(pairs, gamma, strict=True)]
    if fidelity == "squared_frobenius":
        rho, moves = 0.5, W
    else:
        rho = 1.1 * max(float(np.linalg.norm(w)) for w in W)
        moves = [widened(w, rho) * float(rng.uniform(0.5, 2.0)) for w in W]
    S = np.array([K - move for K, move in zip(filled, moves, strict=True)])
    distances = [move**2 if fidelity == "squared_frobenius" else move for move in map(np.linalg.norm, moves)]
    formulation = kernel_per_similarity(doubled(S, knobs), m.y, rho=rho, trace=trace, fidelity=fidelity)
    value = m.risk + rho * float(np.array(distances)[knobs.owners].sum())
    names = ["K0"] if count == 1 else [f"K{i}" for i in range(count)]
    point = dict(zip(names, np.array(filled)[knobs.owners], strict=True))
    return planted(formulation, value, m.alpha, **point)


def widened(W: Array, length: float) -> Array:
    """Return W + t I of the given Frobenius norm, which is at least that of W, with t >= 0."""
    n, trace = len(W), float(np.trace(W))
    missing = length**2 - float((W**2).sum())
    t = (np.sqrt(trace**2 + n * missing) - trace) / n
    return np.asarray(W + t * np.eye(n))


def of_spectral(rng: np.random.Generator, **asked: Any) -> ko.Planted:
    """Return a restricted spectral problem with a known optimum, for the squared norm and the squared hinge.

    mu_ij is optimal where 2 rho (mu_ij - lambda_ij) = (v_ij'z)^2 / (2 gamma_i) + sigma_i + zeta_ij, with
    zeta_ij = 0 where mu_ij > 0. The eigenvectors are those of a kernel, and lambda_ij are kept apart.
    """
    knobs = Knobs(**asked)
    knobs.always_feasible("restricted_spectral")
    loss = ko.squared_hinge(1.0)
    m = machine(rng, loss, knobs)
    gamma, images = parts(rng, knobs, m)
    counts = np.bincount(knobs.owners)
    gamma, images = gamma / counts, [g / k**2 for g, k in zip(images, counts, strict=True)]
    rho, N = 5.0, m.z.size
    fixed = [(*singular_kernel(rng, knobs, m.z, g), g) for g in images]
    trace = max(float(np.trace(K)) for K, _, _ in fixed)
    S, spectra, distances = [], [], []
    for (K, u, _), share in zip(fixed, gamma, strict=True):
        frame, _ = np.linalg.qr(np.column_stack([m.z, u]))
        rest = np.eye(N) - frame @ frame.T
        mu, V = np.linalg.eigh(K + rest * (trace - float(np.trace(K))) / (N - 2))
        mu = np.where(mu > 1e-9 * mu[-1], mu, 0.0)
        zeta = np.where(mu > 0, 0.0, 0.0 if knobs.degenerate else 1.0 + np.arange(N))
        move = ((V.T @ m.z) ** 2 / (2 * share) + 0.1 + zeta) / (2 * rho)
        S.append((V * (mu - move)) @ V.T)
        order = np.argsort(mu - move)  # as `numpy.linalg.eigh` will find them
        spectra.append(mu[order])
        distances.append(float((move**2).sum()))
    stack = np.array([(s + s.T) / 2 for s in S])[knobs.owners]
    formulation = restricted_spectral(
        stack, m.y, rho=rho, trace=trace, fidelity="squared_frobenius", loss=loss
    )
    value = m.risk + rho * float(np.array(distances)[knobs.owners].sum())
    point = {f"mu{i}": spectra[k] for i, k in enumerate(knobs.owners)}
    return planted(formulation, value, m.alpha, **point)

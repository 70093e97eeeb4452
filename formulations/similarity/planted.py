"""Problems with kernels near similarities and a known optimum.

K is optimal at alpha where rho sum_i U_i = 1/2 zz' + sigma I + Z with U_i a subgradient of the fidelity at
K - S_i, Z >= 0 and ZK = 0; sigma is the multiplier of the trace. K and the right side are chosen, and the
similarities follow.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

import kernelopt as ko
from formulations.planting import Knobs, Machine, entry, machine, planted, singular_kernel, two_classes
from formulations.similarity.default_trace import default_trace
from formulations.similarity.indefinite_svm import indefinite_svm
from formulations.similarity.kernel_per_similarity import kernel_per_similarity
from formulations.similarity.restricted_spectral import restricted_spectral
from formulations.similarity.similarity_data import Fidelity
from formulations.similarity.single_kernel import single_kernel
from kernelopt.extend import Array, Planted, as_fidelity


def slopes(knobs: Knobs, z: Array, u: Array, sigma: float, share: float = 1.0) -> Array:
    """Return zz' / (2 share) + sigma I + Z with Z = uu', zero where strict complementarity is to fail."""
    Z = np.outer(u, u) * (not knobs.degenerate)
    return np.asarray(np.outer(z, z) / (2 * share) + sigma * np.eye(z.size) + Z)


def similarities(
    rng: np.random.Generator, K: Array, W: Array, m: int, fidelity: ko.Fidelity
) -> tuple[Array, float]:
    """Return S_1, ..., S_m and rho for which rho times a sum of subgradients at the K - S_i is W."""
    if isinstance(fidelity, ko.fidelities.Radial):
        return along(K, W, rng.uniform(0.5, 2.0, m), fidelity)
    if isinstance(fidelity, ko.fidelities.l1):
        return entry_by_entry(rng, K, W, m)
    raise ko.errors.ParameterError(
        f"fidelity must be a function of the Frobenius norm, or the l1 norm, got {fidelity!r}. No optimum is "
        "known in closed form for others."
    )


def along(K: Array, W: Array, lengths: Array, fidelity: ko.fidelities.Radial) -> tuple[Array, float]:
    r"""Return similarities K - d_i W / \|W\| at the given distances d_i, and rho.

    A subgradient of h(\|D\|) is h'(\|D\|) D / \|D\|, so that all of them are multiples of W. With the
    s(d) = d / h'(d) of the fidelity, rho times the sum of the h'(d_i) is \|W\|.
    """
    size = float(np.linalg.norm(W))
    rho = size / float((lengths / fidelity.scale(lengths)).sum())
    return K - lengths[:, None, None] * W / size, rho


def entry_by_entry(rng: np.random.Generator, K: Array, W: Array, m: int) -> tuple[Array, float]:
    r"""Return similarities for the l1 norm, and rho, the largest of the entries \|W_jk\|.

    At every entry one similarity differs from K, in the direction in which its subgradient is the sign of
    W_jk. The others are equal to K there, and one of them has what is missing of W_jk / rho for its
    subgradient, a number in [-1, 1]. A single similarity differs where \|W_jk\| is largest.
    """
    rho = float(np.abs(W).max())
    if m == 1:
        differs = (np.abs(W) >= rho)[None]
    else:
        owner = rng.integers(0, m, K.shape)
        owner = np.triu(owner) + np.triu(owner, 1).T
        differs = owner == np.arange(m)[:, None, None]
    apart = rng.uniform(0.2, 1.0, K.shape)
    apart = (apart + apart.T) / 2 * np.sign(W)
    return np.where(differs, K - apart, K), rho


def cost(K: Array, S: Array, fidelity: ko.Fidelity) -> float:
    """Return the sum of the fidelities at K."""
    return sum(fidelity.value(K - one) for one in S)


def of_one(
    rng: np.random.Generator,
    knobs: Knobs,
    *,
    build: Callable[..., ko.Formulation] = single_kernel,
    fidelity: Fidelity = "l1",
) -> Planted:
    """Return a problem with one kernel and a known optimum; `indefinite_svm` has no trace.

    k copies of all similarities at rho / k are one copy at rho: with duplicates all occur twice.
    """
    m, L = machine(rng, ko.hinge(1.0), knobs), as_fidelity(fidelity, "fidelity")
    copies, sigma = 2 if knobs.duplicates else 1, float(rng.uniform(-0.2, 0.2))
    K, u = singular_kernel(rng, knobs, m.z, m.g)
    options = {"trace": float(np.trace(K)), "fidelity": L}
    if build is indefinite_svm:
        sigma, options = 0.0, {}
    S, rho = similarities(rng, K, slopes(knobs, m.z, u, sigma), knobs.m, L)
    formulation = build(np.tile(S, (copies, 1, 1)), m.y, rho=rho / copies, **options)
    return planted(formulation, m.risk + rho * cost(K, S, L), m.alpha, K=K)


def parts(
    rng: np.random.Generator, knobs: Knobs, m: Machine
) -> tuple[Array, list[Array], list[Array], float]:
    """Return gamma_i, kernels of one trace whose machine is the given one, their null vectors, the trace.

    Each counts as often as it has duplicates.

    The images g_i = K_i z have z'g_i = gamma_i^2 z'g and sum_i g_i / gamma_i = g, so that gamma_i is optimal:
    gamma_i is proportional to the root of z'K_i z. Duplicates divide it equally.
    """
    share = rng.uniform(0.5, 1.5, knobs.m)
    share /= share.sum()
    spread = 0.1 * rng.normal(size=(knobs.m, m.g.size)) * np.linalg.norm(m.g) / np.sqrt(m.g.size)
    spread -= np.outer(spread @ m.z, m.z) / (m.z @ m.z)
    spread -= spread.mean(axis=0)
    counts = np.bincount(knobs.owners)
    images = (share[:, None] ** 2 * m.g + share[:, None] * spread) / counts[:, None] ** 2
    pairs = [singular_kernel(rng, knobs, m.z, g) for g in images]
    trace = max(float(np.trace(K)) for K, _ in pairs)
    kernels = []
    for K, u in pairs:  # what is missing of the trace is spread over the complement of z and u
        frame, _ = np.linalg.qr(np.column_stack([m.z, u]))
        rest = np.eye(m.z.size) - frame @ frame.T
        kernels.append(K + rest * (trace - float(np.trace(K))) / (m.z.size - 2))
    return share / counts, kernels, [u for _, u in pairs], trace


def of_several(rng: np.random.Generator, knobs: Knobs, *, fidelity: Fidelity = "frobenius") -> Planted:
    """Return a problem with one kernel per similarity and a known optimum.

    The risk is l(alpha) - 1/2 (sum_i q_i)^2 with q_i^2 = z'K_i z, and gamma_i = q_i / sum_j q_j is chosen.
    One rho fits all similarities where all W_i have one length and all K_i - S_i another. For the l1 norm
    one rho would have to fit the entries of every W_i: it is not planted. With duplicates the first kernels
    have equal shares and equal similarities.
    """
    L = as_fidelity(fidelity, "fidelity")
    if not isinstance(L, ko.fidelities.Radial):
        raise ko.errors.ParameterError(
            f"fidelity must be a function of the Frobenius norm, got {L!r}. Pass 'frobenius' or "
            "'squared_frobenius'."
        )
    m = machine(rng, ko.hinge(1.0), knobs)
    shares, kernels, null, trace = parts(rng, knobs, m)
    W = [slopes(knobs, m.z, u, 0.1, g) for u, g in zip(null, shares, strict=True)]
    length = max(float(np.linalg.norm(w)) for w in W)
    distance, S, rho = rng.uniform(0.5, 2.0, 1), [], 0.0
    for K, w in zip(kernels, W, strict=True):
        (found,), rho = along(K, widened(w, length), distance, L)
        S.append(found)
    stack = np.array(S)[knobs.owners]
    formulation = kernel_per_similarity(stack, m.y, rho=rho, trace=trace, fidelity=L)
    distances = sum(cost(kernels[k], stack[i : i + 1], L) for i, k in enumerate(knobs.owners))
    point = {f"K{i}": kernels[k] for i, k in enumerate(knobs.owners)}
    return planted(formulation, m.risk + rho * distances, m.alpha, **point)


def widened(W: Array, length: float) -> Array:
    """Return W + t I of the given Frobenius norm, which is at least the norm of W, with t >= 0."""
    n, trace = len(W), float(np.trace(W))
    missing = length**2 - float((W**2).sum())
    t = (np.sqrt(trace**2 + n * missing) - trace) / n
    return np.asarray(W + t * np.eye(n))


def of_spectral(rng: np.random.Generator, knobs: Knobs) -> Planted:
    """Return a restricted spectral problem with a known optimum, for the squared norm and the squared hinge.

    mu_ij is optimal where 2 rho (mu_ij - lambda_ij) = (v_ij'z)^2 / (2 gamma_i) + sigma_i + zeta_ij, with
    zeta_ij = 0 where mu_ij > 0. The eigenvectors are a kernel's, and lambda_ij are kept apart.
    """
    loss = ko.squared_hinge(1.0)
    m, rho = machine(rng, loss, knobs), 5.0
    shares, kernels, _, trace = parts(rng, knobs, m)
    S, spectra, distances = [], [], []
    for K, share in zip(kernels, shares, strict=True):
        mu, V = np.linalg.eigh(K)
        mu = np.where(mu > 1e-9 * mu[-1], mu, 0.0)  # the others are zero up to rounding
        zeta = np.where(mu > 0, 0.0, 0.0 if knobs.degenerate else 1.0 + np.arange(mu.size))
        move = ((V.T @ m.z) ** 2 / (2 * share) + 0.1 + zeta) / (2 * rho)  # sigma_i = 0.1
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


def _data(rng: np.random.Generator) -> tuple[Array, Array]:
    """Return two indefinite similarities of ten points, eight of them labelled, and the labels."""
    X, y = two_classes(rng, 10, 8)
    noise = rng.normal(size=(2, 10, 10))
    clean = np.array([X @ X.T, np.exp(-((X[:, None] - X[None]) ** 2).sum(2))])
    return clean + 0.2 * (noise + noise.transpose(0, 2, 1)), y


def _single(rng: np.random.Generator) -> ko.Formulation:
    S, y = _data(rng)
    return single_kernel(S, y, rho=0.05, trace=default_trace(S))


def _several(rng: np.random.Generator) -> ko.Formulation:
    S, y = _data(rng)
    return kernel_per_similarity(S, y, rho=0.5, trace=default_trace(S), fidelity="frobenius")


def _spectral(rng: np.random.Generator) -> ko.Formulation:
    S, y = _data(rng)
    return restricted_spectral(
        S, y, rho=0.2, trace=default_trace(S), fidelity="squared_frobenius", loss=ko.squared_hinge(1.0)
    )


CATALOGUE = [
    entry(single_kernel, "similarities", of_one, _single),
    entry(kernel_per_similarity, "similarities", of_several, _several),
    entry(restricted_spectral, "similarities", of_spectral, _spectral),
    entry(
        indefinite_svm,
        "similarities",
        partial(of_one, build=indefinite_svm, fidelity="squared_frobenius"),
        lambda rng: indefinite_svm(*_data(rng), rho=0.2),
    ),
]

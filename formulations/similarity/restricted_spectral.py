"""Kernels in the eigenvectors of the similarities: the spectra are learned, with second-order cones."""

from __future__ import annotations

from functools import partial

import cvxpy as cp
import numpy as np
from numpy.typing import ArrayLike

import kernelopt as ko
from formulations.similarity.fidelity_dual import FidelityDual
from formulations.similarity.kernel_per_similarity import machine_kernel, machine_scales
from formulations.similarity.similarity_data import PAPER, Fidelity, SimilarityData, similarity_data


def restricted_spectral(
    similarities: ko.Grams | ArrayLike,
    y: ArrayLike | None,
    *,
    C: float = 1.0,
    rho: float,
    trace: float | None,
    fidelity: Fidelity = "l1",
    loss: ko.Loss | None = None,
) -> ko.Formulation:
    r"""One kernel per similarity, with its eigenvectors and a learned spectrum ("REKL").

    .. math::

        \min_{\mu_i \ge 0,\ 1'\mu_i = \tau}\ \Omega(K_1, \dots, K_m) + \rho \sum_i L(\mu_i - \lambda_i),
        \qquad K_i = V_i \operatorname{diag}(\mu_i) V_i',\quad S_i = V_i \operatorname{diag}(\lambda_i) V_i'

    with the Omega of `kernel_per_similarity` and L the l1 norm, the l2 norm or its square. Statement: its
    value is that of `dual_restricted_spectral`, and for the Frobenius norm and its square never below that
    of `kernel_per_similarity`. (For "l1" there is no order: there L sums entries, here eigenvalues.)

    Parameters
    ----------
    similarities, y, C, rho, trace, fidelity, loss
        As in `single_kernel`; a function as fidelity takes the vector mu_i - lambda_i.

    Returns
    -------
    Formulation
        claim "equal"; the weights, of shape (m N,), are those of the machine: mu_ij / gamma_i for the
        eigenvector v_ij, and mu for m = 1. gamma is in the shares: gamma_i is proportional to
        :math:`\sum_j w_{ij} (v_{ij}'\alpha)^2`, w being the weights.

    References
    ----------
    .. [1] Kundu et al., NIPS 2010, equations (7) and (10).

    Notes
    -----
    Second-order cones only: a second at N = 200, m = 2, and a fraction of that by "first-order-dual". With
    "l1" and a trace the certified gap of "exact" may stay at a few 1e-5 from N = 60 on. Where S_i has
    repeated eigenvalues its eigenvectors, and with them the problem, are not unique: those of
    `numpy.linalg.eigh` are taken. `spectral_extension` gives the kernel at new points.

    Examples
    --------
    S = diag(1, 3, -1) keeps its eigenvectors; with a large rho the spectrum is the projected one:

    >>> import numpy as np
    >>> from formulations import similarity
    >>> S = np.diag([1.0, 3, -1])
    >>> learning = similarity.restricted_spectral(
    ...     S, [1, -1, 1], rho=1e3, trace=3, fidelity="squared_frobenius"
    ... )
    >>> learning.solve().kernel.diagonal().round(2) + 0.0
    array([0.5, 2.5, 0. ])
    """
    data = similarity_data(similarities, y, C, rho, trace, fidelity, loss)
    spectra = [np.linalg.eigh(S) for S in data.S]
    mus = [cp.Variable(data.N, nonneg=True, name=f"mu{i}") for i in range(data.m)]
    kernels = [ko.combine(mu, ko.Grams.rank_one(V)) for mu, (_, V) in zip(mus, spectra, strict=True)]
    risk = data.risk(kernels)
    pairs = [(mu, lam) for mu, (lam, _) in zip(mus, spectra, strict=True)]
    problem = data.learn(risk, [cp.sum(mu) for mu in mus], pairs)
    scales = machine_scales(risk, data.m)
    return ko.Formulation(
        name="similarity.restricted_spectral",
        problem=problem,
        kernel=machine_kernel(risk, kernels),
        weights=cp.hstack([scales[i] * mu for i, mu in enumerate(mus)]) if data.m > 1 else mus[0],
        dual=partial(dual, data),
        claim="equal",
        reference=f"{PAPER}, equations (7) and (10)",
    )


def dual(data: SimilarityData) -> cp.Problem:
    r"""The dual over alpha, gamma, one vector u_i per similarity, and the least slopes sigma_i.

    .. math::

        \max\ \ell(\alpha) + \sum_i \Big(\tau \sigma_i - \rho \big(u_i'\lambda_i + L^*(u_i)\big)\Big)
        \quad\text{s.t.}\quad
        \frac{(v_{ij}'z)^2}{2 \gamma_i} \le \rho u_{ij} - \sigma_i,\quad \gamma \ge 0,\ \sum_i \gamma_i \le 1

    and the rest as in `dual_single_kernel`. Parameters as in `restricted_spectral`.

    References
    ----------
    .. [1] Kundu et al., NIPS 2010: the dual of equation (7) with (10), which the paper does not print.
    """
    spectra = [np.linalg.eigh(S) for S in data.S]
    side = FidelityDual(data, [lam for lam, _ in spectra])
    for i, gamma in enumerate(side.shares(data.m)):
        forms = spectra[i][1].T @ side.z
        slopes = (data.rho * side.U[i] if side.U else np.zeros(data.N)) - side.floor(i)
        side.constraints += [cp.quad_over_lin(forms[j], 2 * gamma) <= slopes[j] for j in range(data.N)]
    return side.problem()

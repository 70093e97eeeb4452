"""One kernel per similarity, with the eigenvectors of the similarity and a learned spectrum."""

from __future__ import annotations

from functools import partial

import cvxpy as cp
import numpy as np
from numpy.typing import ArrayLike

import kernelopt as ko
from formulations.machines import machine_weights
from formulations.similarity.fidelity_dual import fidelity_dual
from formulations.similarity.kernel_per_similarity import machine_kernel
from formulations.similarity.similarity_data import PAPER, Fidelity, SimilarityData, similarity_data
from formulations.similarity.single_kernel import single_kernel
from kernelopt.extend import parameters_of


@parameters_of(single_kernel)
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

    with the Omega of `kernel_per_similarity` and L the l1 norm, the l2 norm or its square.

    Dual: over alpha, the gamma_i, one vector u_i and one number sigma_i per similarity,

    .. math::

        \max\ \ell(\alpha) + \sum_i \Big(\tau \sigma_i - \rho \big(u_i'\lambda_i + L^*(u_i)\big)\Big)
        \quad\text{s.t.}\quad
        \frac{(v_{ij}'z)^2}{2 \gamma_i} \le \rho u_{ij} - \sigma_i,\quad \gamma_i \ge 0, \sum_i \gamma_i \le 1

    with v_ij the columns of V_i, and the other constraints as in `single_kernel`.

    Statement: the two have one value. For the Frobenius norm and its square it is at least the value of
    `kernel_per_similarity`. For "l1" there is no such order, since L is a sum over entries there and over
    eigenvalues here.

    Parameters
    ----------
    similarities, y, C, rho, trace, loss
        As in `single_kernel`.
    fidelity : "l1", "frobenius", "squared_frobenius", Fidelity, or a function, default "l1"
        L; a function maps the vector mu_i - lambda_i to a convex cvxpy expression, and has no dual by hand.

    Returns
    -------
    Formulation
        claim "equal"; the weights w, of shape (m N,), are the machine's weights:
        :math:`w_{ij} = \mu_{ij} / \gamma_i` for the eigenvector v_ij, which is mu_j for m = 1. They give
        gamma_i, which is proportional to :math:`\sum_j w_{ij} (v_{ij}'\alpha)^2`.

    References
    ----------
    .. [1] Kundu et al., NIPS 2010, equations (7) and (10).

    Notes
    -----
    The cones are second-order cones: "exact" takes a second at N = 200, m = 2, and "first-order-dual" a
    fraction of it. With "l1" and a trace the certified gap of "exact" may stay at a few 1e-5 from N = 60 on.
    Where S_i has repeated eigenvalues, its eigenvectors are not unique, and neither is the problem: the
    eigenvectors come from `numpy.linalg.eigh`. `spectral_extension` gives the kernel at new points.

    Examples
    --------
    K has the eigenvectors of S = diag(1, 3, -1), the unit vectors. For large rho its spectrum is the
    projection of (1, 3, -1) on the set of non-negative vectors of sum 3:

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
    weights: cp.Expression = mus[0]
    if data.m > 1:
        scales = machine_weights(risk)
        weights = cp.hstack([scales[i] * mu for i, mu in enumerate(mus)])
    return ko.Formulation(
        name="similarity.restricted_spectral",
        problem=problem,
        kernel=machine_kernel(risk, kernels),
        weights=weights,
        dual=partial(dual, data),
        claim="equal",
        reference=f"{PAPER}, equations (7) and (10)",
    )


def dual(data: SimilarityData) -> cp.Problem:
    """Return the dual of `restricted_spectral`, which the paper does not print."""
    spectra = [np.linalg.eigh(S) for S in data.S]

    def linear(k: int, slope: cp.Expression, z: cp.Expression, share: cp.Expression) -> list[cp.Constraint]:
        """Return (v_j'z)^2 / (2 share) <= slope_j for the eigenvectors v_j of the k-th similarity."""
        forms = spectra[k][1].T @ z
        return [cp.quad_over_lin(forms[j], 2 * share) <= slope[j] for j in range(data.N)]

    return fidelity_dual(data, [lam for lam, _ in spectra], linear)

"""The kernel of `single_kernel` under the squared Frobenius norm, in closed form."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

import kernelopt as ko
from formulations.similarity.similarity_data import LARGEST_SIMILARITY, as_similarities
from kernelopt.extend import Array, as_float_array, on_simplex, positive


def optimal_kernel(
    similarities: ko.Grams | ArrayLike, alpha: ArrayLike, *, rho: float, trace: float | None = None
) -> Array:
    r"""The kernel that `single_kernel` chooses at alpha under the squared Frobenius norm.

    .. math::

        K(\alpha) = \Pi\Big(\bar S + \frac{1}{4 m \rho} zz'\Big), \qquad
        \bar S = \frac1m \sum_i S_i

    Here :math:`\Pi` is the projection on the positive semidefinite matrices, and with a trace on those of
    trace tau. z is alpha with zeros at the further points. An alpha that was learned on n points is thus
    applied to N > n points, given all their similarities: f = K[:, :n] alpha + b.

    Parameters
    ----------
    similarities : array of shape (m, N, N) or (N, N), or Grams
        Symmetric to 1e-8 relative, of any signature.
    alpha : array of shape (n,), n <= N
        The signed dual variable of the problem, such as `Solution.certificate.alphas[0]`. Where K is
        singular, several alphas give one machine, and `Solution.alpha` may be another of them.
    rho : float > 0
        Price of the distance from the similarities.
    trace : float > 0 or None, default None
        tau, over all N points, or None for no constraint.

    Returns
    -------
    array of shape (N, N)
        Positive semidefinite.

    References
    ----------
    .. [1] Kundu et al., NIPS 2010, equation (3) for m = 1 without a trace.

    Examples
    --------
    >>> import numpy as np
    >>> from formulations import similarity
    >>> similarity.optimal_kernel(np.diag([2.0, -1]), [1, -1], rho=0.25, trace=1).round(4)
    array([[ 0.916 , -0.2774],
           [-0.2774,  0.084 ]])
    """
    S, a = as_similarities(similarities), as_float_array(alpha, "alpha")
    if np.abs(a).max(initial=0.0) > LARGEST_SIMILARITY:
        raise ko.errors.ParameterError(
            f"alpha must be at most {LARGEST_SIMILARITY:g} in size, since the products of its entries are "
            f"similarities, got {np.abs(a).max():g}. Divide it by a unit, and multiply rho by its square."
        )
    if a.ndim != 1 or not 0 < a.size <= S.shape[1]:
        raise ko.errors.ShapeError(
            f"alpha must be finite of shape (n,) with n <= {S.shape[1]} points, got shape {a.shape}. "
            "The labelled points come first."
        )
    z = np.pad(a, (0, S.shape[1] - a.size))
    rho = positive(rho, "rho")
    lam, V = np.linalg.eigh(S.mean(axis=0) + np.outer(z, z) / (4 * len(S) * rho))
    mu, _ = on_simplex(lam, None if trace is None else positive(trace, "trace"))
    return np.asarray((V * mu) @ V.T)

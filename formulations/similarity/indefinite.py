"""The support vector machine on an indefinite similarity, and its kernel in closed form."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike

import kernelopt as ko
from formulations.similarity.setting import Array, as_similarities
from formulations.similarity.single import single_kernel


def indefinite_svm(
    similarities: ko.Grams | ArrayLike,
    y: ArrayLike | None,
    *,
    C: float = 1.0,
    rho: float,
    loss: ko.Loss | None = None,
) -> ko.Formulation:
    r"""The support vector machine that takes an indefinite similarity for a noisy kernel.

    .. math::

        \min_{K \succeq 0}\ \omega(K) + \rho \sum_i \|K - S_i\|_F^2

    Statement: its value is that of `dual_single_kernel`, and K is
    :math:`\big(\bar S + \tfrac{1}{4 m \rho} zz'\big)_+`, the `optimal_kernel` at alpha. It is
    `single_kernel` with trace=None and the squared Frobenius norm.

    Parameters
    ----------
    similarities, y, C, loss
        As in `single_kernel`.
    rho : float > 0
        At infinity K is `denoise` of the mean similarity.

    Returns
    -------
    Formulation
        claim "equal"; no weights.

    References
    ----------
    .. [1] Luss and d'Aspremont, Mathematical Programming Computation 1 (2009), as cited in [2]_.
    .. [2] Kundu et al., NIPS 2010, equations (2) and (3), m = 1.

    Examples
    --------
    >>> import numpy as np
    >>> from formulations import similarity
    >>> y = np.array([1.0, -1])
    >>> solution = similarity.indefinite_svm(np.diag([1.0, -1]), y, rho=0.5).solve()
    >>> learned = similarity.optimal_kernel(np.diag([1.0, -1]), solution.alpha, rho=0.5)
    >>> bool(np.allclose(solution.kernel, learned, atol=1e-3))
    True
    """
    learning = single_kernel(
        similarities,
        y,
        C=C,
        rho=ko.positive(rho, "rho"),
        trace=None,
        fidelity="squared_frobenius",
        loss=loss,
    )
    return replace(
        learning,
        name="similarity.indefinite_svm",
        reference="Luss and d'Aspremont (2009); Kundu et al. (2010), equations (2) and (3)",
    )


def optimal_kernel(
    similarities: ko.Grams | ArrayLike, alpha: ArrayLike, *, rho: float, trace: float | None = None
) -> Array:
    r"""The kernel that `single_kernel` chooses at alpha under the squared Frobenius norm.

    .. math::

        K(\alpha) = \Pi\Big(\bar S + \frac{1}{4 m \rho} zz'\Big), \qquad
        \Pi = (\cdot)_+ \ \text{or the projection on}\ \{K \succeq 0,\ \operatorname{tr} K = \tau\}

    with the mean similarity, and z = alpha with zeros at further points. So it also transfers alpha, learned
    on n points, to N > n points: their similarities go in, and f = K[:, :n] alpha + b.

    Parameters
    ----------
    similarities : array of shape (m, N, N) or (N, N), or Grams
    alpha : array of shape (n,), n <= N
        The signed dual variable, such as `Solution.certificate.alphas[0]`: that of the lower bound. At a
        singular kernel a machine has several alphas, of which `Solution.alpha` is one.
    rho : float > 0
    trace : float > 0 or None, default None

    Returns
    -------
    array of shape (N, N)

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
    S, a = as_similarities(similarities), ko.as_float_array(alpha, "alpha")
    if a.ndim != 1 or not 0 < a.size <= S.shape[1]:
        raise ko.ShapeError(
            f"alpha must be finite of shape (n,) with n <= {S.shape[1]} points, got shape {a.shape}. "
            "The labelled points come first."
        )
    z = np.pad(a, (0, S.shape[1] - a.size))
    rho = ko.positive(rho, "rho")
    lam, V = np.linalg.eigh(S.mean(axis=0) + np.outer(z, z) / (4 * len(S) * rho))
    mu = np.maximum(lam, 0.0) if trace is None else on_simplex(lam, ko.positive(trace, "trace"))
    return np.asarray((V * mu) @ V.T)


def on_simplex(values: Array, total: float) -> Array:
    """Return the nearest point of {x >= 0, 1'x = total}."""
    falling = np.sort(values)[::-1]
    shifts = (np.cumsum(falling) - total) / np.arange(1, values.size + 1)
    shift = shifts[np.flatnonzero(falling > shifts)[-1]]
    return np.asarray(np.maximum(values - shift, 0.0))

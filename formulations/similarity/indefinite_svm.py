"""The support vector machine on an indefinite similarity."""

from __future__ import annotations

from dataclasses import replace

from numpy.typing import ArrayLike

import kernelopt as ko
from formulations.similarity.single_kernel import single_kernel
from kernelopt.extend import parameters_of, positive


@parameters_of(single_kernel)
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

        \min_{K \succeq 0}\ \omega(K) + \rho \sum_{i=1}^m \|K - S_i\|_F^2, \qquad
        \omega(K) = \min_{f, b}\ \sum_j V(f_j + b, y_j) + \tfrac12 f'K^+f

    Dual: the dual of `single_kernel` with :math:`L^*(U) = \tfrac14 \|U\|_F^2` and sigma = 0.

    Statement: the two have one value, and :math:`K = \big(\bar S + \tfrac{1}{4 m \rho} zz'\big)_+`, the
    `optimal_kernel` at alpha. It is `single_kernel` with trace=None and the squared Frobenius norm.

    Parameters
    ----------
    similarities, y, C, loss
        As in `single_kernel`.
    rho : float > 0
        Price of the distance. As rho grows, K tends to `denoise` of the mean similarity.

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
        rho=positive(rho, "rho"),
        trace=None,
        fidelity="squared_frobenius",
        loss=loss,
    )
    return replace(
        learning,
        name="similarity.indefinite_svm",
        reference="Luss and d'Aspremont (2009); Kundu et al. (2010), equations (2) and (3)",
    )

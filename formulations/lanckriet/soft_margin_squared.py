"""The 2-norm soft margin, whose loss is the sum of the squared slacks."""

from __future__ import annotations

from dataclasses import replace

from numpy.typing import ArrayLike

import kernelopt as ko
from formulations.lanckriet.margin import margin
from formulations.lanckriet.transduction_data import Trace, Weights
from kernelopt.extend import parameters_of, positive


@parameters_of(margin)
def soft_margin_squared(
    grams: ko.Grams | ArrayLike,
    y: ArrayLike,
    C: float = 1.0,
    *,
    weights: Weights = "nonnegative",
    trace: Trace = "sum",
) -> ko.Formulation:
    r"""The kernel of best 2-norm soft margin.

    .. math::

        \min_\mu\ \min_{w, b}\ \|w\|^2 + C \sum_{j=1}^n \big(1 - y_j f(x_j)\big)_+^2,
        \qquad f = \langle w, \phi_\mu \rangle + b

    where phi_mu is the feature map of :math:`K(\mu) = \sum_i \mu_i K_i`, over the weights with
    :math:`\sum_i \mu_i r_i = c`, :math:`r_i = \operatorname{tr} K_i`, and mu >= 0 or, for free signs,
    K(mu) >> 0 on all N points.

    Method: for non-negative weights the programme of `qcqp`,

    .. math::

        \max_{\alpha, t}\ 2 e'\alpha - \tfrac1C \alpha'\alpha - t \quad\text{s.t.}\quad
        \alpha \ge 0,\ y'\alpha = 0,\ \tfrac{c}{r_i} \alpha' G_i \alpha \le t, \qquad
        (G_i)_{jk} = y_j y_k (K_i)_{jk},

    and for free signs the problem of `sdp`, both with C infinite and tau = 1/C.

    Statement: the two displays have one value, and
    :math:`f = \sum_j \alpha_j y_j K(\mu)(x_j, \cdot) + b`: predictions use K(mu), not K(mu) + I/C. A point
    misses the margin by :math:`\alpha_j / C`.

    Parameters
    ----------
    C : float > 0, default 1.0
        Price of the squares, per sample, not divided by n.
    grams, y, weights, trace
        As in `margin`.

    Returns
    -------
    Formulation
        claim "equal"; `.dual()` is the dual of `qcqp`, and of `sdp` for free signs.

    Raises
    ------
    InputError
        For kernels, labels and numbers that are not as above.

    References
    ----------
    .. [1] Lanckriet et al., JMLR 5 (2004), Definition 5; Theorem 22 for free signs, Theorem 17 at
       tau = 1/C for non-negative weights.

    Examples
    --------
    K_1 = 2 I and K_2 = 2 yy' have trace 4. At K_2 and alpha = (a, a), omega = max 4 a - 8 a^2 - 2 a^2 / C.
    For C = 1 it is 0.4 at a = 0.2: 0.32 from the squared norm and 2 x 0.2^2 from the loss.

    >>> import numpy as np
    >>> from formulations import lanckriet
    >>> K = np.array([[[2.0, 0], [0, 2]], [[2, -2], [-2, 2]]])
    >>> solution = lanckriet.soft_margin_squared(K, [1, -1], C=1.0, trace=4).solve()
    >>> round(solution.value, 5), solution.weights.round(4) + 0.0, solution.alpha.round(4)
    (0.4, array([0., 1.]), array([ 0.2, -0.2]))
    """
    return replace(
        margin(grams, y, tau=1 / positive(C, "C"), weights=weights, trace=trace),
        name="lanckriet.soft_margin_squared",
        reference=f"Lanckriet et al. (2004), Theorem {22 if weights == 'free' else 17}",
    )

"""The 1-norm soft margin, whose loss is the sum of the slacks."""

from __future__ import annotations

from dataclasses import replace

from numpy.typing import ArrayLike

import kernelopt as ko
from formulations.lanckriet.margin import margin
from formulations.lanckriet.transduction_data import Trace, Weights
from kernelopt.extend import parameters_of, positive


@parameters_of(margin)
def soft_margin(
    grams: ko.Grams | ArrayLike,
    y: ArrayLike,
    C: float = 1.0,
    *,
    weights: Weights = "nonnegative",
    trace: Trace = "sum",
) -> ko.Formulation:
    r"""The kernel of best 1-norm soft margin.

    .. math::

        \min_\mu\ \min_{w, b}\ \|w\|^2 + 2 C \sum_{j=1}^n \big(1 - y_j f(x_j)\big)_+,
        \qquad f = \langle w, \phi_\mu \rangle + b

    where phi_mu is the feature map of :math:`K(\mu) = \sum_i \mu_i K_i`, over the weights with
    :math:`\sum_i \mu_i r_i = c`, :math:`r_i = \operatorname{tr} K_i`, and mu >= 0 or, for free signs,
    K(mu) >> 0 on all N points. The paper prints C in the place of 2 C, which does not match its own dual
    box 0 <= alpha <= C; the box is kept.

    Method: for non-negative weights the programme of `qcqp`,

    .. math::

        \max_{\alpha, t}\ 2 e'\alpha - t \quad\text{s.t.}\quad 0 \le \alpha \le C,\ y'\alpha = 0,\
        \tfrac{c}{r_i} \alpha' G_i \alpha \le t, \qquad (G_i)_{jk} = y_j y_k (K_i)_{jk},

    and for free signs the problem of `sdp`, both with tau = 0.

    Statement: the two displays have one value, twice the value of the usual support vector machine with the
    same C at K(mu), and :math:`f = \sum_j \alpha_j y_j K(\mu)(x_j, \cdot) + b`.

    Parameters
    ----------
    C : float > 0, default 1.0
        Largest dual variable, per sample, not divided by n.
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
    .. [1] Lanckriet et al., JMLR 5 (2004), Definition 4; Theorem 21 for free signs, Theorem 17 at tau = 0
       for non-negative weights.

    Examples
    --------
    K_1 = 2 I and K_2 = 2 yy' have trace 4. At C = 0.1 both points miss the margin: alpha = (C, C), and
    omega = 4 C - 8 C^2 at K_2, against 4 C - 4 C^2 at K_1.

    >>> import numpy as np
    >>> from formulations import lanckriet
    >>> K = np.array([[[2.0, 0], [0, 2]], [[2, -2], [-2, 2]]])
    >>> solution = lanckriet.soft_margin(K, [1, -1], C=0.1, trace=4).solve()
    >>> round(solution.value, 5), solution.weights.round(4) + 0.0, solution.alpha.round(4)
    (0.32, array([0., 1.]), array([ 0.1, -0.1]))
    """
    return replace(
        margin(grams, y, C=positive(C, "C"), weights=weights, trace=trace),
        name="lanckriet.soft_margin",
        reference=f"Lanckriet et al. (2004), Theorem {21 if weights == 'free' else 17}",
    )

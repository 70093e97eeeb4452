"""The hard margin, which every labelled point must keep."""

from __future__ import annotations

from dataclasses import replace

from numpy.typing import ArrayLike

import kernelopt as ko
from formulations.lanckriet.margin import margin
from formulations.lanckriet.transduction_data import Trace, Weights
from kernelopt.extend import parameters_of


@parameters_of(margin)
def hard_margin(
    grams: ko.Grams | ArrayLike, y: ArrayLike, *, weights: Weights = "nonnegative", trace: Trace = "sum"
) -> ko.Formulation:
    r"""The kernel of largest margin between the two classes.

    .. math::

        \min_\mu\ \min_{w, b}\ \|w\|^2 \quad\text{s.t.}\quad
        y_j f(x_j) \ge 1\ (j = 1, \dots, n), \qquad f = \langle w, \phi_\mu \rangle + b

    where phi_mu is the feature map of :math:`K(\mu) = \sum_i \mu_i K_i`, over the weights with
    :math:`\sum_i \mu_i r_i = c`, :math:`r_i = \operatorname{tr} K_i`, and mu >= 0 or, for free signs,
    K(mu) >> 0 on all N points.

    Method: for non-negative weights the programme of `qcqp`,

    .. math::

        \max_{\alpha, t}\ 2 e'\alpha - t \quad\text{s.t.}\quad \alpha \ge 0,\ y'\alpha = 0,\
        \tfrac{c}{r_i} \alpha' G_i \alpha \le t, \qquad (G_i)_{jk} = y_j y_k (K_i)_{jk},

    and for free signs the problem of `sdp`, both with C infinite and tau = 0.

    Statement: the two displays have one value, :math:`\omega = 1 / d^2` with d the geometric
    margin (`Solution.margin`), and :math:`f = \sum_j \alpha_j y_j K(\mu)(x_j, \cdot) + b`.

    Parameters
    ----------
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
    InfeasibleError
        On solving, with a proof, if no kernel of the set separates the classes.

    References
    ----------
    .. [1] Lanckriet et al., JMLR 5 (2004), Definition 3; Theorem 19 for free signs, Theorem 20 for
       non-negative weights.

    Examples
    --------
    For K = I the two points are orthogonal unit vectors: w = (1, -1), and the margin is 1 / sqrt(2).

    >>> import numpy as np
    >>> from formulations import lanckriet
    >>> solution = lanckriet.hard_margin([np.eye(2)], [1, -1]).solve()
    >>> round(solution.value, 5), round(solution.margin, 5)
    (2.0, 0.70711)
    """
    return replace(
        margin(grams, y, weights=weights, trace=trace),
        name="lanckriet.hard_margin",
        reference=f"Lanckriet et al. (2004), Theorem {19 if weights == 'free' else 20}",
    )

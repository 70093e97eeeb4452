"""The 2-norm soft margin with the price of its slacks learned together with the kernel."""

from __future__ import annotations

from dataclasses import replace

from numpy.typing import ArrayLike

import kernelopt as ko
from formulations.lanckriet.margin import margin
from formulations.lanckriet.transduction_data import Trace, Weights
from kernelopt.extend import parameters_of


@parameters_of(margin)
def learned_tau(
    grams: ko.Grams | ArrayLike, y: ArrayLike, *, weights: Weights = "nonnegative", trace: Trace = "sum"
) -> ko.Formulation:
    r"""The kernel, and the tau = 1/C, of best 2-norm soft margin.

    .. math::

        \min_{\mu,\ \tau \ge 0}\ \min_{w, b}\ \|w\|^2
        + \frac1\tau \sum_{j=1}^n \big(1 - y_j f(x_j)\big)_+^2,
        \qquad f = \langle w, \phi_\mu \rangle + b

    where phi_mu is the feature map of :math:`K(\mu) = \sum_i \mu_i K_i`, over the weights with
    :math:`\sum_i \mu_i r_i + N \tau = c`, :math:`r_i = \operatorname{tr} K_i`, and mu >= 0 or, for free
    signs, :math:`K(\mu) \succeq 0` on all N points. At tau = 0 no point may miss the margin.

    Method: tau is the weight of one more kernel, the identity, which a hard margin learns. For
    non-negative weights that is the programme of `qcqp`,

    .. math::

        \max_{\alpha, t}\ 2 e'\alpha - t \quad\text{s.t.}\quad \alpha \ge 0,\ y'\alpha = 0,\
        \tfrac{c}{r_i} \alpha' G_i \alpha \le t,\ \tfrac{c}{N} \alpha'\alpha \le t, \qquad
        (G_i)_{jk} = y_j y_k (K_i)_{jk},

    and for free signs the problem of `sdp`, both with C infinite.

    Statement: the two displays have one value, tau is c / N times the multiplier of the last constraint,
    and :math:`f = \sum_j \alpha_j y_j K(\mu)(x_j, \cdot) + b`: predictions use K(mu), not K(mu) + tau I.

    Parameters
    ----------
    grams, y, weights
        As in `margin`.
    trace : "sum" or float > 0, default "sum"
        c, the trace of K(mu) + tau I on all N points; "sum" is the sum of the r_i, plus N.

    Returns
    -------
    Formulation
        claim "equal"; `.dual()` is the dual of `qcqp`, and of `sdp` for free signs. `Solution.tau` is the
        learned tau.

    Raises
    ------
    InputError
        For kernels, labels and numbers that are not as above.

    References
    ----------
    .. [1] Lanckriet et al., JMLR 5 (2004), section 4.5.

    Examples
    --------
    Two points that K separates and two equal ones of both labels, alpha = (a, a, b, b). With r = 8 and
    c = 12 the programme is max 4 (a + b) - t with 18 a^2 <= t and 6 (a^2 + b^2) <= t. Both are active, so
    b = sqrt(2) a, and its value is (2/9) (1 + sqrt(2))^2.

    >>> import numpy as np
    >>> from formulations import lanckriet
    >>> K = np.array([[3.0, -3, 0, 0], [-3, 3, 0, 0], [0, 0, 1, 1], [0, 0, 1, 1]])
    >>> solution = lanckriet.learned_tau([K], [1, -1, 1, -1]).solve()
    >>> round(solution.value, 5), solution.weights.round(3), round(solution.tau, 3)
    (1.29521, array([0.182]), 2.636)
    """
    return replace(
        margin(grams, y, tau="learned", weights=weights, trace=trace),
        name="lanckriet.learned_tau",
        reference="Lanckriet et al. (2004), section 4.5",
    )

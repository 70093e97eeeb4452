"""The generalised performance measure. The margins are its special cases."""

from __future__ import annotations

from dataclasses import replace
from typing import get_args

import numpy as np
from numpy.typing import ArrayLike

import kernelopt as ko
from formulations.lanckriet.qcqp import qcqp
from formulations.lanckriet.sdp import sdp
from formulations.lanckriet.transduction_data import Ridge, Trace, Weights
from kernelopt.extend import one_of, parameters_of


@parameters_of(sdp)
def margin(
    grams: ko.Grams | ArrayLike,
    y: ArrayLike,
    *,
    C: float = np.inf,
    tau: Ridge = 0.0,
    weights: Weights = "nonnegative",
    trace: Trace = "sum",
) -> ko.Formulation:
    r"""The kernel at which the generalised performance measure is smallest.

    .. math::

        \min_\mu\ \omega_{C,\tau}(K(\mu)), \qquad
        \omega_{C,\tau}(K) = \max_{0 \le \alpha \le C,\ y'\alpha = 0}\
        2 e'\alpha - \alpha'(G(K) + \tau I)\alpha

    over :math:`K(\mu) = \sum_i \mu_i K_i` with :math:`\sum_i \mu_i r_i = c` and mu >= 0 or, for free signs,
    K(mu) >> 0 on all N points. Here :math:`G(K)_{jk} = y_j y_k K_{jk}` on the labelled points, and
    :math:`r_i = \operatorname{tr} K_i` on all. A learned tau is a variable of the minimisation, and
    :math:`\sum_i \mu_i r_i + N \tau = c`.

    Method: the programme of `qcqp` for non-negative weights, and the programme of `sdp` for free signs.

    Statement: the programme has the value of the display, and so has its dual.

    Parameters
    ----------
    grams, y, C, tau, trace
        As in `sdp`.
    weights : "nonnegative" or "free", default "nonnegative"
        The signs that the weights may have.

    Returns
    -------
    Formulation
        claim "equal"; `.dual()` is the dual of `qcqp`, and of `sdp` for free signs.

    Raises
    ------
    InputError
        For kernels, labels and numbers that are not as above.
    InfeasibleError
        On solving, with a proof, for a hard margin (C infinite and tau = 0) that no kernel of the set
        can meet.

    References
    ----------
    .. [1] Lanckriet et al., JMLR 5 (2004), Proposition 15 and Theorems 16 and 17.

    Examples
    --------
    The largest dual variable C = 0.1 is attained: omega = 4 a - 8 a^2 - 2 a^2 at alpha = (a, a), a = 0.1.

    >>> import numpy as np
    >>> from formulations import lanckriet
    >>> K = np.array([[[2.0, 0], [0, 2]], [[2, -2], [-2, 2]]])
    >>> solution = lanckriet.margin(K, [1, -1], C=0.1, tau=1.0, trace=4).solve()
    >>> round(solution.value, 5), solution.weights.round(4) + 0.0, solution.alpha.round(4)
    (0.3, array([0., 1.]), array([ 0.1, -0.1]))
    """
    if one_of(weights, "weights", get_args(Weights)) == "free":
        formulation = sdp(grams, y, C=C, tau=tau, weights=weights, trace=trace)
    else:
        formulation = qcqp(grams, y, C=C, tau=tau, trace=trace)
    return replace(formulation, name="lanckriet.margin")

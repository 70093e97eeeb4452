"""The criteria of the paper: hard margin, soft margins, and the learned ridge."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

import kernelopt as ko
from formulations.lanckriet.alignment import alignment
from formulations.lanckriet.block_norm import block_norm
from formulations.lanckriet.planted import (
    of_alignment,
    of_criterion,
    of_free_signs,
    of_learned_tau,
    of_rank_one,
)
from formulations.lanckriet.quadratic import qcqp, rank_one
from formulations.lanckriet.semidefinite import sdp
from formulations.lanckriet.setting import Ridge, Trace, Weights


def margin(
    grams: ko.Grams | ArrayLike,
    y: ArrayLike,
    *,
    C: float = np.inf,
    tau: Ridge = 0.0,
    weights: Weights = "nonnegative",
    trace: Trace = "sum",
) -> ko.Formulation:
    r"""The generalised performance measure, minimised over the kernel.

    .. math::

        \omega_{C,\tau}(K) = \max_{0 \le \alpha \le C,\ y'\alpha = 0}\
        2 e'\alpha - \alpha'(G(K) + \tau I)\alpha

    over :math:`K = \sum_i \mu_i K_i` with :math:`\operatorname{tr} K = c`: as `qcqp` for non-negative
    weights, as `sdp` for free signs.

    Parameters
    ----------
    grams : Grams or array of shape (m, N, N)
    y : array of shape (n,), n <= N
        Labels in {-1, +1} of the first n points. The others are unlabelled: with non-negative weights
        they enter through the traces, with free signs also through K >> 0.
    C : float in (0, inf], default inf
        Bound of the dual variables; twice the slack's price in the primal.
    tau : float >= 0 or "learned", default 0
    weights : "nonnegative" or "free", default "nonnegative"
    trace : "sum" or float > 0, default "sum"
        Trace c of the learned kernel over all N points; with the sum of the traces the weights do not
        depend on the number of unlabelled points for normalised kernels.

    Returns
    -------
    Formulation
        claim "equal".

    Raises
    ------
    InputError
        For kernels, labels and numbers that are not as above.
    InfeasibleError
        On solving, with a proof, for a hard margin that no kernel of the set can meet.

    References
    ----------
    .. [1] Lanckriet et al., JMLR 5 (2004), Proposition 15 and Theorems 16 to 22.
    """
    if ko.one_of(weights, "weights", ("nonnegative", "free")) == "free":
        return sdp(grams, y, C=C, tau=tau, weights=weights, trace=trace)
    return qcqp(grams, y, C=C, tau=tau, trace=trace)


def hard_margin(
    grams: ko.Grams | ArrayLike, y: ArrayLike, *, weights: Weights = "nonnegative", trace: Trace = "sum"
) -> ko.Formulation:
    r"""The hard margin: omega = min :math:`\|w\|^2` subject to :math:`y_i f(x_i) \ge 1`.

    `Solution.margin` is the geometric margin omega^(-1/2). Parameters as in `margin`.

    References
    ----------
    .. [1] Lanckriet et al., JMLR 5 (2004), Definition 3, Theorems 17 and 19.

    Examples
    --------
    >>> import numpy as np
    >>> from formulations import lanckriet
    >>> solution = lanckriet.hard_margin([np.eye(2)], [1, -1]).solve()
    >>> round(solution.value, 5), round(solution.margin, 5)
    (2.0, 0.70711)
    """
    return margin(grams, y, weights=weights, trace=trace)


def soft_margin(
    grams: ko.Grams | ArrayLike,
    y: ArrayLike,
    C: float = 1.0,
    *,
    weights: Weights = "nonnegative",
    trace: Trace = "sum",
) -> ko.Formulation:
    r"""The 1-norm soft margin: min :math:`\|w\|^2 + 2 C \sum_i \xi_i`.

    The paper prints C in the place of 2 C, which does not match its own dual box 0 <= alpha <= C; the
    box is kept. Parameters as in `margin`.

    References
    ----------
    .. [1] Lanckriet et al., JMLR 5 (2004), Definition 4, Theorems 20 and 21.
    """
    return margin(grams, y, C=ko.positive(C, "C"), weights=weights, trace=trace)


def soft_margin_squared(
    grams: ko.Grams | ArrayLike,
    y: ArrayLike,
    C: float = 1.0,
    *,
    weights: Weights = "nonnegative",
    trace: Trace = "sum",
) -> ko.Formulation:
    r"""The 2-norm soft margin: min :math:`\|w\|^2 + C \sum_i \xi_i^2`, that is tau = 1/C.

    Predicts with K, not with K + I/C. Parameters as in `margin`.

    References
    ----------
    .. [1] Lanckriet et al., JMLR 5 (2004), Definition 5, Theorem 22.
    """
    return margin(grams, y, tau=1 / ko.positive(C, "C"), weights=weights, trace=trace)


def learned_tau(
    grams: ko.Grams | ArrayLike, y: ArrayLike, *, weights: Weights = "nonnegative", trace: Trace = "sum"
) -> ko.Formulation:
    r"""The 2-norm soft margin with its tau = 1/C learned as the weight of an identity kernel.

    The budget is :math:`\sum_i \mu_i r_i + N \tau = c`. `Solution.tau` is the ridge; predictions use K
    alone. With one kernel this tunes C. Parameters as in `margin`; "sum" adds N.

    References
    ----------
    .. [1] Lanckriet et al., JMLR 5 (2004), section 4.5.
    """
    return margin(grams, y, tau="learned", weights=weights, trace=trace)


def _data(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Return three kernels on sixteen points, twelve of them labelled, and the labels."""
    X = rng.normal(size=(16, 2))
    kernels = [ko.gaussian(0.5), ko.gaussian(2.0), ko.linear()]
    y = np.where(X[:12, 0] + 0.3 * rng.normal(size=12) > np.median(X[:12, 0]), 1.0, -1.0)
    return np.asarray(ko.Grams.from_kernels(kernels, X)), y


CATALOGUE = [
    ko.Entry(
        "lanckriet.hard_margin",
        hard_margin,
        "labels",
        lambda rng: hard_margin(*_data(rng)),
        of_criterion(hard_margin, np.inf, 0.0),
    ),
    ko.Entry(
        "lanckriet.soft_margin",
        soft_margin,
        "labels",
        lambda rng: soft_margin(*_data(rng)),
        of_criterion(soft_margin, 1.0, 0.0),
    ),
    ko.Entry(
        "lanckriet.soft_margin_squared",
        soft_margin_squared,
        "labels",
        lambda rng: soft_margin_squared(*_data(rng)),
        of_criterion(soft_margin_squared, np.inf, 1.0),
    ),
    ko.Entry(
        "lanckriet.learned_tau",
        learned_tau,
        "labels",
        lambda rng: learned_tau(*_data(rng)),
        of_learned_tau(learned_tau),
    ),
    ko.Entry(
        "lanckriet.margin",
        margin,
        "labels",
        lambda rng: margin(*_data(rng), C=1.0, tau=0.5),
        of_criterion(margin, 1.0, 0.5, C=1.0, tau=0.5),
    ),
    ko.Entry("lanckriet.sdp", sdp, "labels", lambda rng: sdp(*_data(rng), C=1.0), of_free_signs),
    ko.Entry(
        "lanckriet.qcqp",
        qcqp,
        "labels",
        lambda rng: qcqp(*_data(rng), C=1.0),
        of_criterion(qcqp, 1.0, 0.0, C=1.0),
    ),
    ko.Entry(
        "lanckriet.block_norm",
        block_norm,
        "labels",
        lambda rng: block_norm(*_data(rng), C=1.0),
        of_criterion(block_norm, 1.0, 0.0, C=1.0),
    ),
    ko.Entry(
        "lanckriet.rank_one",
        rank_one,
        "labels",
        lambda rng: rank_one(rng.normal(size=(16, 5)), _data(rng)[1], C=1.0),
        of_rank_one,
    ),
    ko.Entry("lanckriet.alignment", alignment, "labels", lambda rng: alignment(*_data(rng)), of_alignment),
]

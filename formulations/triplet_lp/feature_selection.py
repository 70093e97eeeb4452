"""The linear programme over groups of kernels: features from relative comparisons."""

from __future__ import annotations

from typing import Any

from numpy.typing import ArrayLike

import kernelopt as ko
from formulations.triplet_lp.programme import build
from formulations.triplet_lp.setting import Cone, setting


def feature_selection(
    grams: ko.Grams | ArrayLike,
    triplets: ArrayLike,
    groups: ArrayLike,
    *,
    gamma1: Any,
    gamma2: float,
    cone: Cone = "dominant",
    points: ArrayLike | None = None,
    margin: float = 1.0,
) -> ko.Formulation:
    r"""The kernel that respects relative comparisons, from the kernels of few features.

    As `kernel_design`, with :math:`\gamma_1 \sum_f \max_{p \in I_f} |\alpha_p|` in the place of
    :math:`\gamma_1 \|\alpha\|_1`: a group I_f of kernels, those that see one feature, comes in or stays
    out as a whole. `selected` lists the groups that came in.

    Parameters
    ----------
    grams, triplets, gamma1, gamma2, cone, points, margin
        As in `kernel_design`; the kernels for instance ``ko.per_feature([ko.gaussian(1.0)], d)``.
    groups : array of shape (m,)
        The group of each kernel: the `.groups` of `per_feature`.

    Returns
    -------
    Formulation
        claim "equal".

    References
    ----------
    .. [1] Fung, Rosales, Rao, IJCAI 2007, section 4.

    Notes
    -----
    Under dominance groups also come in to lower the sums off the diagonal, with weights of both signs. A
    large identity of its own group, ``n * ko.identity()``, makes dominance cheap, and leaves the choice to
    the comparisons.
    """
    data = setting(grams, triplets, groups, gamma2, cone, points, margin)
    return build(data, gamma1, "feature_selection")

"""The dual of the linear programme, by hand."""

from __future__ import annotations

from typing import Any

import cvxpy as cp
import numpy as np
import scipy.sparse as sp

from formulations.triplet_lp.comparison_data import ComparisonData


def dual(data: ComparisonData, gamma1: Any) -> cp.Problem:
    r"""The dual over the multipliers u of the triplets, v of dominance and w of the pairs.

    .. math::

        \max\ \rho \sum_t u_t \quad\text{s.t.}\quad 0 \le u \le 1,\ v \ge 0,\ |w_{ij}| \le v_i + v_j,\
        \sum_{p \in I_f} |z_p| \le \gamma_1

    with :math:`z_p = \sum_t u_t d_{tp} + \sum_i v_i K_p(i, i) + \sum_{i<j} w_{ij} K_p(i, j) - \gamma_2 q_p`;
    for cone="nonnegative" without v and w and with the positive part of z, for cone="psd" with
    <Z, K_p> for a Z >> 0 in the place of the sums over v and w.

    References
    ----------
    .. [1] Fung, Rosales, Rao, IJCAI 2007, derived from their programmes.
    """
    u = cp.Variable(data.T, nonneg=True, name="u")
    constraints = [(u <= 1).set_label("u <= 1"), *priced(data, u, gamma1)]
    return cp.Problem(cp.Maximize(data.margin * cp.sum(u)), constraints)


def priced(data: ComparisonData, u: Any, price: Any) -> list[cp.Constraint]:
    """Return sum_{p in I_f} |z_p| <= price, or of the positive parts for non-negative weights.

    The sizes are variables of their own and no `cp.abs`: cvxpy looks for bounds of those, and 0 times
    infinity makes numpy warn.
    """
    z, domain = slopes(data, u)
    size = cp.Variable(data.m, nonneg=True, name="size")
    below = [] if data.cone == "nonnegative" else [(-z <= size).set_label("-z <= size")]
    members = sp.csr_array((np.ones(data.m), (data.groups, np.arange(data.m))), shape=(data.F, data.m))
    groups = (members @ size <= price).set_label("groups")
    return [*domain, (z <= size).set_label("z <= size"), *below, groups]


def slopes(data: ComparisonData, u: Any) -> tuple[cp.Expression, list[cp.Constraint]]:
    """Return z for the multipliers u of the triplets, with the multipliers of the cone and their domain."""
    z = data.D.T @ u - data.gamma2 * data.q
    if data.cone == "nonnegative":
        return z, []
    if data.cone == "psd":
        Z = cp.Variable((data.points.size,) * 2, PSD=True, name="Z")
        return z + data.cone_entries.T @ cp.vec(Z, order="F"), []
    v = cp.Variable(data.points.size, nonneg=True, name="v")
    z = z + data.diagonal.T @ v
    w = cp.Variable(data.first.size, name="w")
    sums = data.incidence.T @ v
    domain = [(w <= sums).set_label("w <= v_i + v_j"), (-w <= sums).set_label("-w <= v_i + v_j")]
    return z + data.off.T @ w, domain

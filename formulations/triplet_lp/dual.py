"""The dual of the programme of `kernel_design` and `feature_selection`, by hand."""

from __future__ import annotations

from typing import Any

import cvxpy as cp
import numpy as np
import scipy.sparse as sp

from formulations.triplet_lp.comparison_data import ComparisonData


def dual(data: ComparisonData, gamma1: Any) -> cp.Problem:
    """Return the dual of `kernel_design` and of `feature_selection`, in the notation of their docstrings."""
    u = cp.Variable(data.T, nonneg=True, name="u")
    constraints = [(u <= 1).set_label("u <= 1"), *priced(data, u, gamma1)]
    return cp.Problem(cp.Maximize(data.margin * cp.sum(u)), constraints)


def priced(data: ComparisonData, u: Any, price: Any) -> list[cp.Constraint]:
    """Return the constraints sum_{p in I_f} |z_p| <= price; positive parts for non-negative weights.

    The |z_p| are variables with two inequalities each. For `cp.abs` cvxpy would propagate bounds, in which
    0 times infinity makes numpy warn.
    """
    z, domain = z_of(data, u)
    size = cp.Variable(data.m, nonneg=True, name="size")
    below = [] if data.cone == "nonnegative" else [(-z <= size).set_label("-z <= size")]
    members = sp.csr_array((np.ones(data.m), (data.groups, np.arange(data.m))), shape=(data.F, data.m))
    groups = (members @ size <= price).set_label("groups")
    return [*domain, (z <= size).set_label("z <= size"), *below, groups]


def z_of(data: ComparisonData, u: Any) -> tuple[cp.Expression, list[cp.Constraint]]:
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

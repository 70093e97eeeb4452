"""The linear programme of checked data, which `kernel_design` and `feature_selection` share, and its dual."""

from __future__ import annotations

from functools import partial
from typing import Any

import cvxpy as cp

import kernelopt as ko
from formulations.triplet_lp.comparison_data import ComparisonData
from formulations.triplet_lp.method import TripletProgramme
from kernelopt.extend import positive

PAPER = "Fung, Rosales, Rao (2007)"


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
    groups = (data.members @ size <= price).set_label("groups")
    return [*domain, (z <= size).set_label("z <= size"), *below, groups]


def z_of(data: ComparisonData, u: Any) -> tuple[cp.Expression, list[cp.Constraint]]:
    """Return z for the multipliers u of the triplets, with the multipliers of the cone and their domain."""
    z = data.D.T @ u - data.gamma2 * data.q
    if data.cone == "nonnegative":
        return z, []
    n = data.points.size
    if data.cone == "psd":
        Z = cp.Variable((n, n), PSD=True, name="Z")
        return z + data.cone_entries.T @ cp.vec(Z, order="F"), []
    v, w = cp.Variable(n, nonneg=True, name="v"), cp.Variable(len(data.off), name="w")
    reach = data.incidence.T @ v
    domain = [(w <= reach).set_label("w <= v_i + v_j"), (-w <= reach).set_label("-w <= v_i + v_j")]
    return z + data.diagonal.T @ v + data.off.T @ w, domain


def triplet_formulation(data: ComparisonData, gamma1: Any, name: str) -> ko.Formulation:
    """Return the formulation of checked data, with one group per kernel for `kernel_design`."""
    price = as_price(gamma1)
    alpha = cp.Variable(data.m, name="alpha", nonneg=data.cone == "nonnegative")
    eps, s = cp.Variable(data.T, nonneg=True, name="eps"), cp.Variable(data.F, nonneg=True, name="s")
    member = data.members.T
    K = ko.combine(alpha, data.grams)
    constraints = [
        (ko.triplet_gains(K, data.triplets) + eps >= data.margin).set_label("comparisons"),
        (alpha <= member @ s).set_label("group above"),
        (-alpha <= member @ s).set_label("group below"),
    ]
    if data.cone == "dominant":
        constraints += ko.diagonally_dominant(K, data.points)
    elif data.cone == "psd":
        on_points: cp.Expression = ko.combine(alpha, data.grams.block(data.points))
        constraints.append((on_points >> 0).set_label("K >> 0"))
    objective = cp.sum(eps) + price * cp.sum(s) + data.gamma2 * (data.q @ alpha)
    problem = TripletProgramme(cp.Minimize(objective), constraints, data, price)
    return ko.Formulation(
        name=f"triplet_lp.{name}",
        problem=problem,
        kernel=K,
        weights=alpha,
        dual=partial(dual, data, price),
        claim="equal",
        reference=f"{PAPER}, section {3 if name == 'kernel_design' else 4}",
    )


def as_price(gamma1: Any) -> Any:
    """Return gamma1, checked: a non-negative number or scalar parameter."""
    if not isinstance(gamma1, cp.Parameter):
        return positive(gamma1, "gamma1", allow_zero=True)
    if gamma1.shape != () or not gamma1.is_nonneg():
        raise ko.errors.ParameterError(
            f"gamma1 must be a non-negative scalar, got the parameter {gamma1.name()} of shape "
            f"{gamma1.shape} and sign {gamma1.sign}. Make it with cp.Parameter(nonneg=True)."
        )
    return gamma1

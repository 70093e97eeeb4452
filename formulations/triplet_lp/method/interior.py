"""Weights in the interior of the cone of a triplet programme."""

from __future__ import annotations

import warnings
from contextlib import suppress

import cvxpy as cp
import numpy as np

import kernelopt as ko
from formulations.numbers import numbers
from formulations.triplet_lp.comparison_data import ComparisonData
from kernelopt.extend import Array


def interior_weights(data: ComparisonData) -> Array:
    """Return weights in the interior: one kernel alone, else those of largest depth with |alpha| <= 1.

    Where the cone has no interior the depth of what is returned is not positive.
    """
    alone = deepest_kernel(data)
    if data.depth(alone).min() > 0:
        return alone
    alpha, depth = cp.Variable(data.m), cp.Variable()
    constraints = [alpha <= 1, alpha >= -1, depth <= 1]
    K = ko.combine(alpha, data.grams.block(data.points)) - depth * np.eye(data.points.size)
    constraints += ko.diagonally_dominant(K) if data.cone == "dominant" else [K >> 0]
    with warnings.catch_warnings(), suppress(ko.KerneloptError):  # the caller computes the depth
        warnings.simplefilter("ignore")
        ko.solve(cp.Problem(cp.Maximize(depth), constraints))
    return numbers(alpha.value, data.m)


def deepest_kernel(data: ComparisonData) -> Array:
    """Return the weights of the kernel that alone has the largest depth, which may be negative."""
    return np.asarray(np.eye(data.m)[int(data.depths.argmax())])


def moved_inside(data: ComparisonData, alpha: Array, e: Array) -> Array:
    """Return alpha + t e in the cone, with the smallest t >= 0 that is known to be enough.

    Depths are concave and homogeneous, so that depth(alpha + t e) >= depth(alpha) + t depth(e). The depths of
    e must be positive.
    """
    return alpha + max(0.0, float(np.max(-data.depth(alpha) / data.depth(e)))) * e

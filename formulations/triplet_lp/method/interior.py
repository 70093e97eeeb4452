"""Weights deep inside the cone of a triplet programme."""

from __future__ import annotations

import warnings
from contextlib import suppress
from typing import Any

import cvxpy as cp
import numpy as np

import kernelopt as ko
from formulations.triplet_lp.method.multipliers import WILD
from formulations.triplet_lp.setting import Array, Setting


def numbers(values: Any, size: int) -> Array:
    """Return what a solver left in the weights, zero where it is of no use."""
    if values is None:
        return np.zeros(size)
    flat = np.asarray(values, dtype=float)
    return np.where(np.abs(flat) < WILD, flat, 0.0)


def deep(data: Setting) -> Array:
    """Return weights inside the cone: those of one kernel, else the deepest up to one in size."""
    depths = data.depths()
    best = int(depths.argmax())
    if depths[best] > 0:
        return np.asarray(np.eye(data.m)[best])
    alpha, depth = cp.Variable(data.m), cp.Variable()
    constraints = [alpha <= 1, alpha >= -1, depth <= 1]
    K = ko.combine(alpha, data.grams.block(data.points)) - depth * np.eye(data.points.size)
    constraints += ko.diagonally_dominant(K) if data.cone == "dominant" else [K >> 0]
    with warnings.catch_warnings(), suppress(ko.KerneloptError):  # what it finds is looked at
        warnings.simplefilter("ignore")
        ko.solve(cp.Problem(cp.Maximize(depth), constraints))
    return numbers(alpha.value, data.m)

"""Kernels, losses and exponents for the tests of Kloft et al. (2011)."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from formulations import lp_norm
from kernelopt.extend import as_grams
from tests.problems import CASES, labels, stack

N = 12
GRAMS = stack(N)  # of rank N, 2 and 1
Y = labels(N)
TIGHT = 5e-7  # the gap that the certificate must reach where values are compared to 1e-6
EXPONENTS = (1.0, 1.01, 4 / 3, 2.0, 3.0, 10.0, np.inf)
KINDS = {case.name: case for case in CASES}
SMOOTH = ("squared_hinge", "huberized_hinge", "logistic", "squared")  # f is unique
APART = np.array([[2.0, 0.8, 0.5], [0.8, 1.5, 0.6], [0.5, 0.6, 1.2]])  # E with positive entries
TOGETHER = np.array([[2.0, -0.5, -0.3], [-0.5, 1.5, -0.4], [-0.3, -0.4, 1.2]])  # an M-matrix
kinds = pytest.mark.parametrize("kind", KINDS)


def y_of(kind, n=N):
    return None if kind == "one_class" else KINDS[kind].y(n)


def loss_of(kind, C=1.0):
    return KINDS[kind].loss(C)


def optimum(formulation, tol=1e-5):
    """The solution of the explicit conic problem, certified."""
    solution = formulation.solve("exact", tol=tol)
    assert solution.status == "optimal" and solution.gap <= tol
    return solution


@cache
def learned(kind, p):
    """The constrained form on the common data, certified tightly."""
    return optimum(lp_norm.primal(GRAMS, y_of(kind), p=p, loss=loss_of(kind)), TIGHT)


@cache
def blocked(kind, p):
    """The same problem in its block-norm form."""
    machine = lp_norm.block_norm(GRAMS, y_of(kind), r=block_exponent(p), loss=loss_of(kind))
    return optimum(machine)


def alternating(kinds, values):
    """The losses, each with one of the values in turn."""
    return [(kind, values[k % len(values)]) for k, kind in enumerate(kinds)]


def near(value, other, tolerance=1e-6):
    return abs(value - other) <= tolerance * max(1.0, abs(other))


def block_exponent(p):
    return 2.0 if np.isinf(p) else 2 * p / (p + 1)


def forms(alpha, grams=GRAMS):
    return np.maximum(as_grams(grams).forms(alpha), 0.0)


def factors(grams=GRAMS):
    return [as_grams(grams).factor(m) for m in range(len(grams))]

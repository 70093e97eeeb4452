"""Conic problems of known value."""

from __future__ import annotations

from typing import Any

import cvxpy as cp
import numpy as np
import pytest
from cvxpy.reductions.solvers.conic_solvers.clarabel_conif import CLARABEL

import kernelopt as ko
from tests.problems import labels, stack

N = 8


KS = stack(N)


LOW = KS[1:]  # of rank 2 and 1: the learned kernel does not determine alpha


Y = labels(N)


class Liar(CLARABEL):
    """Clarabel, whose answer is falsified on its way back."""

    lie = ""

    def name(self):
        return "LIAR " + self.lie

    def invert(self, solution, inverse_data):
        honest = super().invert(solution, inverse_data)
        return self.falsify(honest, solution, inverse_data)

    def falsify(self, answer, solution, inverse_data):
        raise NotImplementedError


class Mishap(Exception):
    """What a solver raises that knows nothing of cvxpy, such as mosek.Error."""


class Crashing(Liar):
    lie = "crash"

    def __init__(self, error):
        super().__init__()
        self.error = error

    def solve_via_data(self, *_: Any, **__: Any):
        raise self.error


def simplex():
    mu = cp.Variable(3, nonneg=True)
    K = ko.combine(mu, KS)
    return cp.Problem(cp.Minimize(ko.risk(K, Y, ko.hinge())), [ko.trace(K) == N])


def bounded_risk():
    mu = cp.Variable(3, nonneg=True)
    K = ko.combine(mu, KS)
    return cp.Problem(cp.Minimize(ko.trace(K)), [ko.risk(K, Y, ko.hinge()) <= 2.5])


def free_sign():
    mu = cp.Variable(2)
    K = ko.combine(mu, LOW)
    return cp.Problem(cp.Minimize(ko.risk(K, Y, ko.hinge())), [K >> 0, ko.trace(K) == N])


def psd_variable():
    K = cp.Variable((4, 4), PSD=True)
    return cp.Problem(cp.Minimize(ko.risk(K, Y[:4], ko.hinge()) + cp.sum_squares(K - np.outer(Y[:4], Y[:4]))))


def linear_programme():
    x = cp.Variable(3, nonneg=True)
    return cp.Problem(cp.Maximize(x @ np.array([1.0, 2.0, 0.5])), [cp.sum(x) <= 1, x[1] <= 0.6])


def quadratic_programme():
    x = cp.Variable(3)
    return cp.Problem(cp.Minimize(cp.sum_squares(x - np.array([1.0, -1.0, 0.3]))), [cp.sum(x) == 1, x >= 0])


PROBLEMS = [simplex, bounded_risk, free_sign, psd_variable, linear_programme, quadratic_programme]


problems = pytest.mark.parametrize("make", PROBLEMS, ids=lambda make: make.__name__)

"""Least-squares combinations of regularised functions with a known optimum."""

from __future__ import annotations

import numpy as np

import kernelopt as ko
from formulations.linear_functional.functional_strategy import functional_strategy
from formulations.linear_functional.strategy import Strategy
from formulations.planting import Knobs, entry, orthogonal_part, planted
from kernelopt.extend import Planted


def of_strategy(rng: np.random.Generator, knobs: Knobs, *, regularization: float = 0.05) -> Planted:
    r"""Return a problem with a known optimum: free weights without a ridge, residual r, value \|r\|^2 / n.

    With v = p + r and columns x_j orthogonal to r whose combination is p, c is optimal. A column x_j comes
    from a kernel with K_j b_j = x_j and b_j = (v - x_j) / (n alpha); one exists where x_j'(v - x_j) > 0. The
    last weight is negative.
    """
    n, m = knobs.n, knobs.m
    Q, _ = np.linalg.qr(rng.normal(size=(n, 2)))
    p, r = 2.0 * Q[:, 0], rng.uniform(0.5, 1.0) * Q[:, 1]
    v = p + r
    c = rng.uniform(0.5, 1.0, m) / m
    c[-1] *= -1.0 if m > 1 else 1.0
    share = rng.uniform(0.3, 0.7, m)  # x_j = share_j p + h_j
    share[0] = 0.5
    c[0] = (1 - float(c[1:] @ share[1:])) / share[0]  # above 1: the other terms add up to less than 0.5
    off = 0.1 * rng.normal(size=(m, n)) / np.sqrt(n)
    off -= (off @ Q) @ Q.T
    off[0] = -(c[1:] @ off[1:]) / c[0]
    stack = []
    for x in np.outer(share, p) + off:
        b = (v - x) / (n * regularization)
        wide, z = np.pad(x, (0, knobs.unlabelled)), np.pad(b, (0, knobs.unlabelled))
        wide[n:] = 0.3 * rng.normal(size=knobs.unlabelled)
        stack.append(np.outer(wide, wide) / float(x @ b) + orthogonal_part(rng, knobs, [z]))
    formulation = functional_strategy(np.array(stack)[knobs.owners], v, regularization=regularization)
    return planted(formulation, float(r @ r) / n, None, c=knobs.shared(c))


def example(rng: np.random.Generator) -> Strategy:
    """Four kernels on fourteen points, twelve of them with targets."""
    X = rng.normal(size=(14, 2))
    kernels = [ko.gaussian(0.5), ko.gaussian(2.0), ko.linear(), ko.polynomial(2)]
    v = np.sin(2 * X[:12, 0]) + X[:12, 1] + 0.2 * rng.normal(size=12)
    grams = ko.Grams.from_kernels(kernels, X)
    return functional_strategy(grams, v, regularization=0.05, ridge=0.01)


CATALOGUE = [entry(functional_strategy, "targets", of_strategy, example)]

"""The catalogue of this module, with small examples."""

from __future__ import annotations

import numpy as np

import kernelopt as ko
from formulations.linear_functional.functional_strategy import functional_strategy
from formulations.linear_functional.planted import of_strategy
from formulations.linear_functional.strategy import Strategy
from kernelopt.extend import Entry


def example(rng: np.random.Generator) -> Strategy:
    """Four kernels on fourteen points, twelve of them with targets."""
    X = rng.normal(size=(14, 2))
    kernels = [ko.gaussian(0.5), ko.gaussian(2.0), ko.linear(), ko.polynomial(2)]
    v = np.sin(2 * X[:12, 0]) + X[:12, 1] + 0.2 * rng.normal(size=12)
    grams = ko.Grams.from_kernels(kernels, X)
    return functional_strategy(grams, v, regularization=0.05, ridge=0.01)


CATALOGUE = [
    Entry("linear_functional.functional_strategy", functional_strategy, "targets", example, of_strategy)
]

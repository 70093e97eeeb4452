"""Small data for the examples of the catalogues."""

from __future__ import annotations

import numpy as np

import kernelopt as ko
from kernelopt.extend import Array


def two_classes(rng: np.random.Generator, N: int, n: int) -> tuple[Array, Array]:
    """Return N points in the plane, and labels of the first n by the first coordinate and some noise."""
    X = rng.normal(size=(N, 2))
    return X, np.where(X[:n, 0] + 0.3 * rng.normal(size=n) > np.median(X[:n, 0]), 1.0, -1.0)


def labelled_kernels(rng: np.random.Generator) -> tuple[Array, Array]:
    """Return three kernels on sixteen points, twelve of them labelled, and the labels."""
    X, y = two_classes(rng, 16, 12)
    return np.asarray(ko.Grams.from_kernels([ko.gaussian(0.5), ko.gaussian(2.0), ko.linear()], X)), y

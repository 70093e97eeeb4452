"""Small seeded examples: the catalogue of these formulations."""

from __future__ import annotations

import numpy as np

import kernelopt as ko
from formulations.triplet_lp.feature_selection import feature_selection
from formulations.triplet_lp.kernel_design import kernel_design
from formulations.triplet_lp.planted import of_design, of_selection
from kernelopt.extend import Entry


def labelled_triplets(rng: np.random.Generator, d: int) -> tuple[np.ndarray, np.ndarray]:
    """Return points in two classes that differ in the first coordinate, and triplets of their labels."""
    y = np.repeat([0, 1], 6)
    X = rng.normal(size=(12, d))
    X[:, 0] += 3 * y
    return X, ko.sample_triplets(y, 30, random_state=rng)


def design_example(rng: np.random.Generator) -> ko.Formulation:
    """Narrow and wide Gaussians, and the identity."""
    X, triplets = labelled_triplets(rng, 2)
    kernels = [ko.gaussian(0.3), ko.gaussian(1.0), ko.gaussian(3.0), ko.identity()]
    return kernel_design(ko.Grams.from_kernels(kernels, X), triplets, gamma1=0.05, gamma2=0.02)


def selection_example(rng: np.random.Generator) -> ko.Formulation:
    """Two widths on each of four features, one of which tells the classes apart, and the identity."""
    X, triplets = labelled_triplets(rng, 4)
    weak = ko.per_feature([ko.gaussian(0.5), ko.gaussian(2.0)], 4)
    grams = ko.Grams.from_kernels([*weak, ko.identity()], X)
    return feature_selection(grams, triplets, [*weak.groups, 4], gamma1=0.1, gamma2=0.02)


CATALOGUE = [
    Entry("triplet_lp.kernel_design", kernel_design, "triplets", design_example, of_design),
    Entry("triplet_lp.feature_selection", feature_selection, "triplets", selection_example, of_selection),
]

"""The catalogue of this module: every builder with a small example."""

from __future__ import annotations

import numpy as np

import kernelopt as ko
from formulations.examples import two_classes
from formulations.similarity.default_trace import default_trace
from formulations.similarity.indefinite_svm import indefinite_svm
from formulations.similarity.kernel_per_similarity import kernel_per_similarity
from formulations.similarity.planted import of_indefinite_svm, of_several, of_single, of_spectral
from formulations.similarity.restricted_spectral import restricted_spectral
from formulations.similarity.single_kernel import single_kernel
from kernelopt.extend import Array, Entry


def _data(rng: np.random.Generator) -> tuple[Array, Array]:
    """Return two indefinite similarities of ten points, eight of them labelled, and the labels."""
    X, y = two_classes(rng, 10, 8)
    noise = rng.normal(size=(2, 10, 10))
    clean = np.array([X @ X.T, np.exp(-((X[:, None] - X[None]) ** 2).sum(2))])
    return clean + 0.2 * (noise + noise.transpose(0, 2, 1)), y


def _single(rng: np.random.Generator) -> ko.Formulation:
    S, y = _data(rng)
    return single_kernel(S, y, rho=0.05, trace=default_trace(S))


def _several(rng: np.random.Generator) -> ko.Formulation:
    S, y = _data(rng)
    return kernel_per_similarity(S, y, rho=0.5, trace=default_trace(S), fidelity="frobenius")


def _spectral(rng: np.random.Generator) -> ko.Formulation:
    S, y = _data(rng)
    return restricted_spectral(
        S, y, rho=0.2, trace=default_trace(S), fidelity="squared_frobenius", loss=ko.squared_hinge(1.0)
    )


CATALOGUE = [
    Entry("similarity.single_kernel", single_kernel, "similarities", _single, of_single),
    Entry("similarity.kernel_per_similarity", kernel_per_similarity, "similarities", _several, of_several),
    Entry("similarity.restricted_spectral", restricted_spectral, "similarities", _spectral, of_spectral),
    Entry(
        "similarity.indefinite_svm",
        indefinite_svm,
        "similarities",
        lambda rng: indefinite_svm(*_data(rng), rho=0.2),
        of_indefinite_svm,
    ),
]

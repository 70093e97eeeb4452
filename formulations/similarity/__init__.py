r"""Kernels learned from similarity matrices, of any signature, by convex fidelities.

A similarity S is symmetric and need not be positive semidefinite; the learned kernel is, and is near S.
Values are the paper's: `kernelopt.risk` plus rho times the fidelities, nothing to convert.

References
----------
.. [1] Kundu, Tankasali, Bhattacharyya, Ben-Tal, "Efficient algorithms for learning kernels from multiple
   similarity matrices with general convex loss functions", NIPS 2010: (4) for one kernel, (6) for one
   kernel per similarity, (7) for kernels in the eigenvectors of the similarities. Of its two definitions
   of Omega, (5) and (10), the convex one, (10), is used.
.. [2] Luss, d'Aspremont, "Support vector machine classification with indefinite kernels", Mathematical
   Programming Computation 1 (2009).
"""

from formulations.similarity.default_trace import default_trace
from formulations.similarity.gammas import gammas
from formulations.similarity.indefinite_svm import indefinite_svm
from formulations.similarity.kernel_per_similarity import kernel_per_similarity
from formulations.similarity.optimal_kernel import optimal_kernel
from formulations.similarity.planted import CATALOGUE
from formulations.similarity.restricted_spectral import restricted_spectral
from formulations.similarity.single_kernel import single_kernel
from formulations.similarity.spectral_extension import spectral_extension
from formulations.similarity.transforms import denoise, flip, shift

__all__ = [
    "CATALOGUE",
    "default_trace",
    "denoise",
    "flip",
    "gammas",
    "indefinite_svm",
    "kernel_per_similarity",
    "optimal_kernel",
    "restricted_spectral",
    "shift",
    "single_kernel",
    "spectral_extension",
]

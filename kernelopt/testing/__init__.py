"""Checks for tests of your own problems, losses, kernels and methods.

Each raises AssertionError with every statement that fails. `suite` and `conformance` are the problems and the
runs of `kernelopt certify`.
"""

from kernelopt.testing.certified import assert_certified
from kernelopt.testing.fidelities import check_fidelity
from kernelopt.testing.formulations import check_formulation
from kernelopt.testing.kernels import check_kernel
from kernelopt.testing.losses import check_loss
from kernelopt.testing.methods import check_method

__all__ = [
    "assert_certified",
    "check_fidelity",
    "check_formulation",
    "check_kernel",
    "check_loss",
    "check_method",
]

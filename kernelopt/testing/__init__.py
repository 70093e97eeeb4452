"""Checks for tests of your own problems, losses, kernels and methods, and the conformance suite of solvers.

`assert_certified`, `check_fidelity`, `check_formulation`, `check_kernel`, `check_loss` and `check_method`
raise AssertionError with every statement that fails. `cases` and `conformance` are the problems
and the runs of `kernelopt certify`.
"""

from kernelopt.testing.certified import assert_certified
from kernelopt.testing.conformance import ConformanceRow, conformance, conic_solvers
from kernelopt.testing.fidelities import check_fidelity
from kernelopt.testing.formulations import check_formulation
from kernelopt.testing.kernels import check_kernel
from kernelopt.testing.losses import check_loss
from kernelopt.testing.methods import check_method
from kernelopt.testing.suite import Case, cases
from kernelopt.testing.verdicts import Verdict

__all__ = [
    "Case",
    "ConformanceRow",
    "Verdict",
    "assert_certified",
    "cases",
    "check_fidelity",
    "check_formulation",
    "check_kernel",
    "check_loss",
    "check_method",
    "conformance",
    "conic_solvers",
]

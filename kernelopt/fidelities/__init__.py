"""The fidelities. `kernelopt.fidelities.base.Fidelity` defines what a fidelity provides."""

from kernelopt.fidelities.base import Fidelity, Proximal, Radial
from kernelopt.fidelities.norms import FIDELITIES, as_fidelity, frobenius, l1, squared_frobenius

__all__ = [
    "FIDELITIES",
    "Fidelity",
    "Proximal",
    "Radial",
    "as_fidelity",
    "frobenius",
    "l1",
    "squared_frobenius",
]

"""Bounds on the optimum of a problem, recomputed from its data without relying on a solver."""

from kernelopt.certificates.certificate import Certificate
from kernelopt.certificates.certify import certify

__all__ = ["Certificate", "certify"]

"""Bounds on the optimum of a problem, recomputed from its data without relying on a solver."""

from kernelopt.certificates.certify import Certificate, certify

__all__ = ["Certificate", "certify"]

"""Bounds on the optimum of a problem, recomputed from its data and trusting no solver."""

from kernelopt.certificates.certify import Certificate, certify

__all__ = ["Certificate", "certify"]

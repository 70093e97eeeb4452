"""Kernels near given matrices: spectra under a rank-one change, and the dual ascent made of them."""

from kernelopt.spectra.ascent import Ascent
from kernelopt.spectra.simplex import on_simplex

__all__ = ["Ascent", "on_simplex"]

"""Kernels near given matrices: spectra under a rank-one change, and the dual ascent made of them."""

from kernelopt.methods.similarity.spectra.ascent import Ascent

__all__ = ["Ascent"]

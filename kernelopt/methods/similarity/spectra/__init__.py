"""Dual ascent for a learner and kernels near given matrices, by rank-one changes of known spectra."""

from kernelopt.methods.similarity.spectra.ascent import Ascent

__all__ = ["Ascent"]

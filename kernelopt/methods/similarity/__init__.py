"""Kernels near similarity matrices, learned by accelerated gradient ascent on the dual."""

from kernelopt.methods.similarity.method import FirstOrderDual

__all__ = ["FirstOrderDual"]

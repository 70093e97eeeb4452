"""Kernels near similarities by first-order steps on the dual, every inner kernel by a rank-one update."""

from kernelopt.methods.similarity.method import FirstOrderDual

__all__ = ["FirstOrderDual"]

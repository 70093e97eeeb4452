"""Kernels near similarities by first-order steps on the dual, every inner kernel by a rank-one update."""

from kernelopt.solvers.first_order.method import FirstOrderDual

__all__ = ["FirstOrderDual"]

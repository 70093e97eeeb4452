"""Kernels near similarities by first-order steps on the dual, every inner kernel by a rank-one update."""

from kernelopt.solvers.first_order.method import FIRST_ORDER_DUAL

__all__ = ["FIRST_ORDER_DUAL"]

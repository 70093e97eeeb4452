"""Duality: the dual of any convex problem, in the notation of textbooks."""

from kernelopt.duality.dual import Check, Dual
from kernelopt.duality.dualize import dualize

__all__ = ["Check", "Dual", "dualize"]

"""Duality: the dual of any convex problem, in the notation of textbooks, and its derivation."""

from kernelopt.duality.conditions import Check
from kernelopt.duality.derive import Derivation, derive
from kernelopt.duality.dual import Dual
from kernelopt.duality.dualize import dualize
from kernelopt.duality.kkt import KKT, kkt_table
from kernelopt.duality.naming import Shown
from kernelopt.duality.show import show

__all__ = ["KKT", "Check", "Derivation", "Dual", "Shown", "derive", "dualize", "kkt_table", "show"]

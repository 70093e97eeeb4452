"""Solving: the methods, the solution, and what `explain` says."""

from kernelopt.solvers.solution import Learned, Solution
from kernelopt.solvers.solve import explain, solve

__all__ = ["Learned", "Solution", "explain", "solve"]

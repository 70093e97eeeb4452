"""Saved solutions: what a file keeps of a `Solution`, and `SavedSolution`, which is read from it."""

from kernelopt.methods.saved.model import SavedSolution, Solved, saved

__all__ = ["SavedSolution", "Solved", "saved"]

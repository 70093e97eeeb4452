"""Saved solutions: what a file keeps of a `Solution`, and `SavedSolution`, which is read from it."""

from kernelopt.methods.saved.model import SavedSolution, saved

__all__ = ["SavedSolution", "saved"]

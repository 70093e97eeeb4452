"""Saved solutions: what a file keeps of a `Solution`, and `SavedSolution`, which is read from it."""

from kernelopt.methods.saved.model import SavedSolution, contents, from_contents, starting
from kernelopt.methods.saved.proof import points_checksum, values_checksum

__all__ = ["SavedSolution", "contents", "from_contents", "points_checksum", "starting", "values_checksum"]

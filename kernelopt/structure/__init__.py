"""What a cvxpy problem says, read once: its risks, variables, sets and sizes."""

from kernelopt.structure.expansion import Expansion, expand
from kernelopt.structure.structure import Structure

__all__ = ["Expansion", "Structure", "expand"]

"""The structure of a cvxpy problem: its risks, variables, feasible set and scaling."""

from kernelopt.structure.expansion import Expansion, expand
from kernelopt.structure.structure import Structure

__all__ = ["Expansion", "Structure", "expand"]

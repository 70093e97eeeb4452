"""The table of conjugates: one function for each convex atom."""

from kernelopt.duality.conjugates import entropies, learning, norms, powers
from kernelopt.duality.conjugates.table import CONJUGATES, NUMBERS, SUPPORTS, Conjugate, New, conjugate

__all__ = [
    "CONJUGATES",
    "NUMBERS",
    "SUPPORTS",
    "Conjugate",
    "New",
    "conjugate",
    "entropies",
    "learning",
    "norms",
    "powers",
]

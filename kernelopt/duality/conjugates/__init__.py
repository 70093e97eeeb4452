"""The table of conjugates: one function for each convex atom."""

from kernelopt.duality.conjugates import functions, learning
from kernelopt.duality.conjugates.table import CONJUGATES, NUMBERS, SUPPORTS, Conjugate, New, conjugate

__all__ = [
    "CONJUGATES",
    "NUMBERS",
    "SUPPORTS",
    "Conjugate",
    "New",
    "conjugate",
    "functions",
    "learning",
]

"""Stacks of Gram matrices: given as an array, evaluated from kernels, of rank one, normalised.

`Grams` is the class that users see: it makes the stacks, documents their operations and checks the arguments.
The matrices are held by a `Storage`, one class for each form, which does the arithmetic.
"""

from kernelopt.grams.grams import Grams, as_grams
from kernelopt.grams.joining import join
from kernelopt.grams.repair import Repair, Repaired, check_leading_blocks, repair
from kernelopt.grams.storage import Storage
from kernelopt.grams.stored import ArrayStorage, IdentityStorage, RankOneStorage
from kernelopt.grams.triangular import triangle

__all__ = [
    "ArrayStorage",
    "Grams",
    "IdentityStorage",
    "RankOneStorage",
    "Repair",
    "Repaired",
    "Storage",
    "as_grams",
    "check_leading_blocks",
    "join",
    "repair",
    "triangle",
]

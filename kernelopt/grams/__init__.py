"""Stacks of Gram matrices: given as an array, evaluated from kernels, of rank one, normalised."""

from kernelopt.grams.base import Grams, as_grams
from kernelopt.grams.centered import CenteredGrams
from kernelopt.grams.evaluated import KernelGrams
from kernelopt.grams.joined import ChosenGrams, JoinedGrams, join
from kernelopt.grams.normalized import ScaledGrams, SphericalGrams
from kernelopt.grams.stored import ArrayGrams, IdentityGrams, RankOneGrams
from kernelopt.grams.triangular import triangle

__all__ = [
    "ArrayGrams",
    "CenteredGrams",
    "ChosenGrams",
    "Grams",
    "IdentityGrams",
    "JoinedGrams",
    "KernelGrams",
    "RankOneGrams",
    "ScaledGrams",
    "SphericalGrams",
    "as_grams",
    "join",
    "triangle",
]

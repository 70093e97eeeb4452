"""The losses. `kernelopt.losses.base.Loss` defines what a loss provides."""

from kernelopt.losses.base import Loss, Primal
from kernelopt.losses.classification import (
    hard_margin,
    hinge,
    huberized_hinge,
    logistic,
    squared_hinge,
)
from kernelopt.losses.regression import epsilon_insensitive, one_class, squared

__all__ = [
    "Loss",
    "Primal",
    "epsilon_insensitive",
    "hard_margin",
    "hinge",
    "huberized_hinge",
    "logistic",
    "one_class",
    "squared",
    "squared_hinge",
]

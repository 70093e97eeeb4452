"""Estimators for scikit-learn, whose kernels are learned and whose solutions are certified.

They are thin skins: samples are read and kernels are evaluated here, and the problem is written in the
language of `kernelopt` and solved by `kernelopt.solve`.
"""

from kernelopt.estimators.base import KernelEstimator
from kernelopt.estimators.classifier import MKLClassifier
from kernelopt.estimators.dictionary import C_GRID, P_GRID
from kernelopt.estimators.one_class import OneClassMKL
from kernelopt.estimators.precomputed import KernelStack
from kernelopt.estimators.regressor import MKLRegressor

__all__ = [
    "C_GRID",
    "P_GRID",
    "KernelEstimator",
    "KernelStack",
    "MKLClassifier",
    "MKLRegressor",
    "OneClassMKL",
]

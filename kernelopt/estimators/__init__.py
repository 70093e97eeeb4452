"""Estimators for scikit-learn, whose kernels are learned and whose solutions are certified.

Samples are read and kernels are evaluated here. The problem is written in the language of `kernelopt`, and
`kernelopt.solve` solves it.
"""

from kernelopt.estimators.base import KernelEstimator
from kernelopt.estimators.classifier import MKLClassifier
from kernelopt.estimators.comparing import Comparison, compare
from kernelopt.estimators.cross_validated import MKLClassifierCV, MKLRegressorCV
from kernelopt.estimators.dictionary import C_GRID, P_GRID
from kernelopt.estimators.formulation import FormulationClassifier
from kernelopt.estimators.leaving_out import leave_one_out
from kernelopt.estimators.linear_functional import (
    LinearFunctionalMKLClassifier,
    LinearFunctionalMKLRegressor,
)
from kernelopt.estimators.mkl import MKLRegressor
from kernelopt.estimators.one_class import OneClassMKL
from kernelopt.estimators.precomputed import KernelStack
from kernelopt.estimators.resampling import Stability, stability
from kernelopt.estimators.similarity import SimilarityClassifier
from kernelopt.estimators.transductive import TransductiveKernelClassifier
from kernelopt.estimators.transformers import KernelAlignment, TripletKernel

__all__ = [
    "C_GRID",
    "P_GRID",
    "Comparison",
    "FormulationClassifier",
    "KernelAlignment",
    "KernelEstimator",
    "KernelStack",
    "LinearFunctionalMKLClassifier",
    "LinearFunctionalMKLRegressor",
    "MKLClassifier",
    "MKLClassifierCV",
    "MKLRegressor",
    "MKLRegressorCV",
    "OneClassMKL",
    "SimilarityClassifier",
    "Stability",
    "TransductiveKernelClassifier",
    "TripletKernel",
    "compare",
    "leave_one_out",
    "stability",
]

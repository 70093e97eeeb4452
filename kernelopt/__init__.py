"""Kernel learning in the language of cvxpy: convex words for kernels, certified solves."""

from importlib import import_module

from kernelopt import fidelities
from kernelopt.catalog import Entry, Formulation, Planted, catalogue
from kernelopt.certificates import Certificate, certify
from kernelopt.certificates.bounded import BoundedProblem
from kernelopt.certificates.gap import FLOOR_SHARE
from kernelopt.certificates.statements.statement import Statement
from kernelopt.comparisons import Comparisons, as_triplets, comparisons, sample_triplets, triplet_score
from kernelopt.duality import KKT, Derivation, Dual, Shown, derive, dualize, kkt_table, show
from kernelopt.errors import (
    ConditionWarning,
    ConvergenceWarning,
    DualizationError,
    FileError,
    InfeasibleError,
    InputError,
    KerneloptError,
    LabelError,
    MethodError,
    NotFiniteError,
    NotPSDError,
    NotSymmetricError,
    PackageWarning,
    ParameterError,
    ShapeError,
    SolverError,
    UnboundedError,
)
from kernelopt.fidelities import Fidelity, as_fidelity
from kernelopt.grams import Grams, as_grams
from kernelopt.graphs import diffusion
from kernelopt.kernels import (
    Kernel,
    empirical_map,
    gaussian,
    identity,
    laplacian,
    linear,
    normalized,
    on_columns,
    per_feature,
    polynomial,
)
from kernelopt.language import (
    Combination,
    Risk,
    alignment,
    combine,
    diagonally_dominant,
    entries,
    fidelity,
    frobenius,
    lp_ball,
    p_norm,
    risk,
    trace,
    triplet_gains,
    triplet_hinge,
)
from kernelopt.losses import (
    Loss,
    epsilon_insensitive,
    hard_margin,
    hinge,
    huberized_hinge,
    logistic,
    one_class,
    squared,
    squared_hinge,
)
from kernelopt.methods import (
    DEFAULT_TOL,
    Cost,
    Learned,
    Method,
    Outcome,
    Programme,
    Solution,
    explain,
    register_method,
    solve,
)
from kernelopt.numerics import rounding
from kernelopt.numerics.norms import conjugate_exponent, lp_length
from kernelopt.solution_path import Path, path
from kernelopt.structure import Expansion, Structure, expand
from kernelopt.validation import (
    as_classes,
    as_float_array,
    as_generator,
    as_indices,
    as_list,
    as_symmetric,
    as_vector,
    boolean,
    exponent,
    one_of,
    positive,
    shown,
    whole,
)

__version__ = "0.1.0"

_LAZY = ("extend", "plotting", "testing")  # modules that few need or that take long to import


def __getattr__(name: str) -> object:
    if name in _LAZY:
        return import_module(f"kernelopt.{name}")
    raise AttributeError(f"module 'kernelopt' has no attribute {name!r}")


__all__ = [
    "DEFAULT_TOL",
    "FLOOR_SHARE",
    "KKT",
    "BoundedProblem",
    "Certificate",
    "Combination",
    "Comparisons",
    "ConditionWarning",
    "ConvergenceWarning",
    "Cost",
    "Derivation",
    "Dual",
    "DualizationError",
    "Entry",
    "Expansion",
    "Fidelity",
    "FileError",
    "Formulation",
    "Grams",
    "InfeasibleError",
    "InputError",
    "Kernel",
    "KerneloptError",
    "LabelError",
    "Learned",
    "Loss",
    "Method",
    "MethodError",
    "NotFiniteError",
    "NotPSDError",
    "NotSymmetricError",
    "Outcome",
    "PackageWarning",
    "ParameterError",
    "Path",
    "Planted",
    "Programme",
    "Risk",
    "ShapeError",
    "Shown",
    "Solution",
    "SolverError",
    "Statement",
    "Structure",
    "UnboundedError",
    "alignment",
    "as_classes",
    "as_fidelity",
    "as_float_array",
    "as_generator",
    "as_grams",
    "as_indices",
    "as_list",
    "as_symmetric",
    "as_triplets",
    "as_vector",
    "boolean",
    "catalogue",
    "certify",
    "combine",
    "comparisons",
    "conjugate_exponent",
    "derive",
    "diagonally_dominant",
    "diffusion",
    "dualize",
    "empirical_map",
    "entries",
    "epsilon_insensitive",
    "expand",
    "explain",
    "exponent",
    "fidelities",
    "fidelity",
    "frobenius",
    "gaussian",
    "hard_margin",
    "hinge",
    "huberized_hinge",
    "identity",
    "kkt_table",
    "laplacian",
    "linear",
    "logistic",
    "lp_ball",
    "lp_length",
    "normalized",
    "on_columns",
    "one_class",
    "one_of",
    "p_norm",
    "path",
    "per_feature",
    "polynomial",
    "positive",
    "register_method",
    "risk",
    "rounding",
    "sample_triplets",
    "show",
    "shown",
    "solve",
    "squared",
    "squared_hinge",
    "trace",
    "triplet_gains",
    "triplet_hinge",
    "triplet_score",
    "whole",
]

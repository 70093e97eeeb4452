"""Kernel learning in the language of cvxpy: convex words for kernels, certified solves."""

from importlib import import_module

from kernelopt.catalog import Formulation, catalogue
from kernelopt.certificates import Certificate, certify
from kernelopt.comparisons import as_triplets, comparisons, sample_triplets, triplet_score
from kernelopt.duality import Dual, derive, dualize, kkt_table, show
from kernelopt.entry_points import formulations_are_own
from kernelopt.errors import (
    ConvergenceWarning,
    InfeasibleError,
    InputError,
    KerneloptError,
    SolverError,
    TimeLimitError,
    UnboundedError,
)
from kernelopt.fidelities import Fidelity
from kernelopt.grams import Grams, Repair, repair
from kernelopt.graphs import diffusion
from kernelopt.health import kernel_report
from kernelopt.kernels import (
    Kernel,
    empirical_map,
    gaussian,
    identity,
    laplacian,
    linear,
    normalized,
    on_columns,
    parse_kernel,
    per_feature,
    polynomial,
    spectrum,
    weighted_degree,
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
from kernelopt.loading import load
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
from kernelopt.methods import Solution, explain, price, screen, solve
from kernelopt.problem_files import read_mps, read_sdpa, write_sdpa
from kernelopt.solution_path import Path, path
from kernelopt.structure import Structure, expand

__version__ = "0.1.0"

formulations_are_own()  # or a warning says what to do

_LAZY = (
    "cluster",
    "estimators",
    "extend",
    "plotting",
    "testing",
)  # modules that few need or that take long to import


def __getattr__(name: str) -> object:
    if name in _LAZY:
        return import_module(f"kernelopt.{name}")
    raise AttributeError(f"module 'kernelopt' has no attribute {name!r}")


__all__ = [
    "Certificate",
    "Combination",
    "ConvergenceWarning",
    "Dual",
    "Fidelity",
    "Formulation",
    "Grams",
    "InfeasibleError",
    "InputError",
    "Kernel",
    "KerneloptError",
    "Loss",
    "Path",
    "Repair",
    "Risk",
    "Solution",
    "SolverError",
    "Structure",
    "TimeLimitError",
    "UnboundedError",
    "alignment",
    "as_triplets",
    "catalogue",
    "certify",
    "combine",
    "comparisons",
    "derive",
    "diagonally_dominant",
    "diffusion",
    "dualize",
    "empirical_map",
    "entries",
    "epsilon_insensitive",
    "expand",
    "explain",
    "fidelity",
    "frobenius",
    "gaussian",
    "hard_margin",
    "hinge",
    "huberized_hinge",
    "identity",
    "kernel_report",
    "kkt_table",
    "laplacian",
    "linear",
    "load",
    "logistic",
    "lp_ball",
    "normalized",
    "on_columns",
    "one_class",
    "p_norm",
    "parse_kernel",
    "path",
    "per_feature",
    "polynomial",
    "price",
    "read_mps",
    "read_sdpa",
    "repair",
    "risk",
    "sample_triplets",
    "screen",
    "show",
    "solve",
    "spectrum",
    "squared",
    "squared_hinge",
    "trace",
    "triplet_gains",
    "triplet_hinge",
    "triplet_score",
    "weighted_degree",
    "write_sdpa",
]

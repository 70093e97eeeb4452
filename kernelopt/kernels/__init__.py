"""Base kernels on points of R^d and on strings, their sums and products, derived ones, and their text."""

from kernelopt.kernels.base import Kernel, as_points
from kernelopt.kernels.derived import empirical_map, normalized, on_columns, per_feature
from kernelopt.kernels.elementary import gaussian, identity, laplacian, linear, polynomial
from kernelopt.kernels.profile import Profile
from kernelopt.kernels.strings import as_strings, spectrum, weighted_degree
from kernelopt.kernels.text import kernel_text, parse_kernel

__all__ = [
    "Kernel",
    "Profile",
    "as_points",
    "as_strings",
    "empirical_map",
    "gaussian",
    "identity",
    "kernel_text",
    "laplacian",
    "linear",
    "normalized",
    "on_columns",
    "parse_kernel",
    "per_feature",
    "polynomial",
    "spectrum",
    "weighted_degree",
]

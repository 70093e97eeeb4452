"""Kernels and features from relative comparisons, by linear programming.

Values are the optima of the programmes, with the sum of the hinges over triplets.

References
----------
.. [1] Fung, Rosales, Rao, "Feature Selection and Kernel Design via Linear Programming", IJCAI 2007.
"""

from formulations.triplet_lp.feature_selection import feature_selection, selected
from formulations.triplet_lp.gamma1_max import gamma1_max
from formulations.triplet_lp.kernel_design import kernel_design
from formulations.triplet_lp.planted import CATALOGUE
from formulations.triplet_lp.regularization_path import Path, regularization_path

__all__ = [
    "CATALOGUE",
    "Path",
    "feature_selection",
    "gamma1_max",
    "kernel_design",
    "regularization_path",
    "selected",
]

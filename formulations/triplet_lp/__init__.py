"""Kernels and features from relative comparisons, by linear programming.

Values are those of the programmes, with the sum of the hinges over triplets.

References
----------
.. [1] Fung, Rosales, Rao, "Feature Selection and Kernel Design via Linear Programming", IJCAI 2007.
"""

from formulations.triplet_lp.design import feature_selection, kernel_design, selected
from formulations.triplet_lp.dual import dual
from formulations.triplet_lp.examples import CATALOGUE
from formulations.triplet_lp.path import Path, gamma1_max, regularization_path

__all__ = [
    "CATALOGUE",
    "Path",
    "dual",
    "feature_selection",
    "gamma1_max",
    "kernel_design",
    "regularization_path",
    "selected",
]

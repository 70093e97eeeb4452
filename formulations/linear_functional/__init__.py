r"""The linear functional strategy: a function per kernel, combined by least squares (MKL-LFS).

Values are the paper's, with the loss averaged ("mean", its equation (1)) or summed ("sum"); there
is no 1/2 anywhere. Its sample size m is n here, and its number of kernels p is M.

References
----------
.. [1] Pereverzyev, Tkachenko, "Regularization by the Linear Functional Strategy with Multiple Kernels",
   Frontiers in Applied Mathematics and Statistics 3 (2017), equations (1) to (15) and Theorem 1.
"""

from formulations.linear_functional.functional_strategy import functional_strategy
from formulations.linear_functional.method.candidates import Candidates
from formulations.linear_functional.method.filters import cut_off, iterated_tikhonov, landweber, tikhonov
from formulations.linear_functional.planted import CATALOGUE
from formulations.linear_functional.strategy import DirectSolution, Strategy

__all__ = [
    "CATALOGUE",
    "Candidates",
    "DirectSolution",
    "Strategy",
    "cut_off",
    "functional_strategy",
    "iterated_tikhonov",
    "landweber",
    "tikhonov",
]

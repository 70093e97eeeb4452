r"""l_p-norm multiple kernel learning: weights in a norm ball, and its relatives.

Values are the optima of the paper's problems, with the loss C V(t, y) summed over samples
and one half of the squared norms: `kernelopt.risk` as it is, nothing to convert.

References
----------
.. [1] Kloft, Brefeld, Sonnenburg, Zien, "l_p-Norm Multiple Kernel Learning", JMLR 12 (2011), 953-997.
   Equations and statements are numbered as in the authors' manuscript, "Non-Sparse Regularization for
   Multiple Kernel Learning": (4) and Theorem 1 for the penalised form, (P) and (D) for the constrained
   one, (28) to (33) and Proposition 7 for block norms.
"""

from formulations.lp_norm.block_norm import block_norm
from formulations.lp_norm.continuous_width import ContinuousWidth, continuous_width
from formulations.lp_norm.elastic_net import elastic_net
from formulations.lp_norm.non_isotropic import non_isotropic
from formulations.lp_norm.one_class import one_class
from formulations.lp_norm.planted import CATALOGUE
from formulations.lp_norm.primal import path, primal
from formulations.lp_norm.tikhonov import (
    Ivanov,
    Tikhonov,
    ivanov_from_tikhonov,
    tikhonov,
    tikhonov_from_ivanov,
)

__all__ = [
    "CATALOGUE",
    "ContinuousWidth",
    "Ivanov",
    "Tikhonov",
    "block_norm",
    "continuous_width",
    "elastic_net",
    "ivanov_from_tikhonov",
    "non_isotropic",
    "one_class",
    "path",
    "primal",
    "tikhonov",
    "tikhonov_from_ivanov",
]

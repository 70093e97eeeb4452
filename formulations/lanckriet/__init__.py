"""Learning the kernel matrix by semidefinite and quadratic programming.

Values follow the paper: omega, twice the risk of `kernelopt.risk`.

References
----------
.. [1] Lanckriet, Cristianini, Bartlett, El Ghaoui, Jordan, "Learning the Kernel Matrix with
   Semidefinite Programming", JMLR 5 (2004). Statements are numbered as they run through the paper,
   from Definition 3 (hard margin) to Theorem 24 (error bound).
"""

from formulations.lanckriet.alignment import alignment
from formulations.lanckriet.block_norm import block_norm
from formulations.lanckriet.bound import TransductionBound, transduction_bound
from formulations.lanckriet.criteria import (
    CATALOGUE,
    hard_margin,
    learned_tau,
    margin,
    soft_margin,
    soft_margin_squared,
)
from formulations.lanckriet.quadratic import qcqp, rank_one
from formulations.lanckriet.semidefinite import sdp

__all__ = [
    "CATALOGUE",
    "TransductionBound",
    "alignment",
    "block_norm",
    "hard_margin",
    "learned_tau",
    "margin",
    "qcqp",
    "rank_one",
    "sdp",
    "soft_margin",
    "soft_margin_squared",
    "transduction_bound",
]

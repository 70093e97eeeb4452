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
from formulations.lanckriet.completion import completion
from formulations.lanckriet.gaussian_process import gaussian_process
from formulations.lanckriet.hard_margin import hard_margin
from formulations.lanckriet.learned_tau import learned_tau
from formulations.lanckriet.margin import margin
from formulations.lanckriet.planted import CATALOGUE
from formulations.lanckriet.qcqp import qcqp
from formulations.lanckriet.rank_one import rank_one
from formulations.lanckriet.sdp import sdp
from formulations.lanckriet.soft_margin import soft_margin
from formulations.lanckriet.soft_margin_squared import soft_margin_squared
from formulations.lanckriet.transduction_bound import TransductionBound, transduction_bound

__all__ = [
    "CATALOGUE",
    "TransductionBound",
    "alignment",
    "block_norm",
    "completion",
    "gaussian_process",
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

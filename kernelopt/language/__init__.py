"""The words of the language: cvxpy expressions of a kernel, one idea a file."""

from kernelopt.language.combination import Combination, combine
from kernelopt.language.measures import alignment, entries, frobenius, trace
from kernelopt.language.risk import Risk, risk
from kernelopt.language.sets import lp_ball, p_norm

__all__ = [
    "Combination",
    "Risk",
    "alignment",
    "combine",
    "entries",
    "frobenius",
    "lp_ball",
    "p_norm",
    "risk",
    "trace",
]

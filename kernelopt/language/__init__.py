"""The functions of the modelling language: cvxpy expressions of a kernel, one idea a file."""

from kernelopt.language.combination import Combination, combine
from kernelopt.language.fidelity import Distance, fidelity
from kernelopt.language.measures import alignment, entries, frobenius, trace
from kernelopt.language.risk import Risk, risk
from kernelopt.language.sets import lp_ball, p_norm
from kernelopt.language.triplets import TripletGains, diagonally_dominant, triplet_gains, triplet_hinge

__all__ = [
    "Combination",
    "Distance",
    "Risk",
    "TripletGains",
    "alignment",
    "combine",
    "diagonally_dominant",
    "entries",
    "fidelity",
    "frobenius",
    "lp_ball",
    "p_norm",
    "risk",
    "trace",
    "triplet_gains",
    "triplet_hinge",
]

"""The data and the state of the dual ascent, as the tuples of arrays that compiled functions take."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kernelopt.methods.similarity.spectra.projection import Eigenpairs
from kernelopt.validation import Array

LIPSCHITZ, MULTIPLIER, INTERCEPT = 0, 1, 2  # entries of State.warm
STEPS, PROJECTIONS, STOP = 0, 1, 2  # entries of State.counts
# The first guess of -dlog q_i / dlog gamma_i with q_i = z'K_i z. The guess is the middle of two cases: the
# elasticity is 0 if q_i does not depend on gamma_i, and 1 if q_i is proportional to 1 / gamma_i.
FIRST_ELASTICITY = 0.5


class ProblemData(NamedTuple):
    """The data of the problem.

    The dual value of the loss is l(a) = linear'a - a'diag(curvature)a / 2 for lower <= a <= upper. If there
    is an intercept, sum a = 0. The i-th kernel K_i is near B_i = bases_i diag(spectra_i) bases_i'.
    """

    linear: Array
    curvature: Array
    lower: Array
    upper: Array
    bias: bool  # whether there is an intercept
    bases: Array
    spectra: Array
    totals: Array  # the fixed trace of each K_i, nan if it is free
    diagonal: bool


class State(NamedTuple):
    """The last point, which is the start of the next call, and what was computed there."""

    alpha: Array
    predictor: Array  # f = sum_i K_i z / gamma_i on the labelled points
    gamma: Array
    elasticities: Array  # -dlog q_i / dlog gamma_i
    forms: Array  # q_i = z'K_i z
    distances: Array  # |K_i - B_i|_F^2
    squares: Array  # |K_i|_F^2
    shifts: Array  # theta_i
    pairs: Eigenpairs  # of all K_i
    warm: Array  # warm starts: Lipschitz estimate (0: none yet), multiplier of sum alpha = 0, intercept b
    counts: NDArray[np.intp]  # steps, projections, and a flag by which another thread ends the ascent

    @classmethod
    def at(cls, alpha: Array, m: int, order: int) -> State:
        """Return the state at a first alpha, with equal gamma, for m kernels of the given order."""
        return cls(
            alpha=alpha,
            predictor=np.zeros(alpha.size),
            gamma=np.full(m, 1 / m),
            elasticities=np.full(m, FIRST_ELASTICITY),
            forms=np.zeros(m),
            distances=np.zeros(m),
            squares=np.zeros(m),
            shifts=np.zeros(m),
            pairs=Eigenpairs.empty(m, order),
            warm=np.zeros(3),
            counts=np.zeros(3, dtype=np.intp),
        )

"""The tuned numbers of the methods and bounds of the triplet programmes."""

from __future__ import annotations

from dataclasses import dataclass

from kernelopt.extend import DEFAULT_TOL


@dataclass(frozen=True)
class Settings:
    """The tuned numbers: shares unless they have another unit."""

    # of the bounds
    # a multiplier farther than this from its bounds is free; tried in turn
    free_margins: tuple[float, ...] = (1e-7, 1e-5, 1e-3)
    close: float = 1e-6  # sums within this of gamma1 count as equal to it: what conic solvers leave
    # a bound within this share of rho sum(u), its value where z is small, needs no balancing
    tight: float = 1e-8
    small_loss: float = 0.1  # nor does one that differs from rho sum(u) by less than this share of the gap
    # relative to the terms of a sum: what thousands of roundings of doubles can add up to
    round_off: float = 1e-12
    balancing: float = 1.5e-7  # seconds for each entry of the kernels, measured
    eigenpairs: float = 2e-10  # seconds over n^3 of an eigendecomposition, measured
    seconds: float = 1e-5  # a few operations of fractions
    # relative to the terms: exceeds the rounding error of a sum of some hundred terms
    cone_round_off: float = 1e-13
    # a tenth of the default tolerance: for a larger gap the general bound is computed too, and zero weights
    # are optimal if their objective is this near to the lower bound
    loose: float = DEFAULT_TOL / 10
    # Shares of the largest weight. A smaller weight counts as an error of the solver, and is set to zero. The
    # shares are the tolerances of solvers from tight to loose, and are tried in this order.
    nearly_zero: tuple[float, ...] = (1e-9, 1e-6, 1e-4)
    # Weights are not used if the terms alpha_p K_p(i, i) exceed this multiple of the margin: the rounding
    # error of their sum, `cone_round_off` times them, would be above 1e-6 of the margin.
    largest_terms: float = 1e7

    # of column generation
    # relative to the terms of K_ii: ten times what the tolerance of HiGHS below leaves
    violated: float = 1e-9
    accuracy: float = 1e-10  # tolerances of HiGHS: the smallest that it takes, and its default
    usual_accuracy: float = 1e-7
    smallest_entry: float = 1e-12  # of the matrix of HiGHS, the smallest that it takes; its default is 1e-9
    rounds: int = 500  # an end to the loop; what is still violated then is made up for in the certificate

    # of the interior-point method
    ridge: float = 1e-14  # relative to the diagonal of the normal matrix: below its rounding errors
    # of columns: only those on and left of the diagonal block are computed, 5/8 of the products
    strips: int = 4
    fraction: float = 0.9  # of the longest step
    # Gondzio's corrections of centrality: measured on programmes of 500 to 20 000 triplets, they save a third
    # of the iterations.
    corrections: int = 3  # at most
    short: float = 0.9  # a longer step is not corrected
    gain: float = 0.02  # a correction is kept where it makes the sum of the two steps longer by this
    reach: float = 0.3  # a correction aims at steps that are longer by this
    small: float = 0.1  # products outside these multiples of their target are moved to them
    large: float = 10.0
    null: float = 1e-12  # singular values below this share of the largest belong to a common null space
    # seconds over n^3, measured: singular values and orthogonal factors, which cannot be interrupted
    setup: float = 1e-9
    usual_iterations: int = 25  # iterations
    most_iterations: int = 100
    stuck: float = 1e-6  # shorter steps mean that rounding decides
    # of the tolerance: at such a gap the residuals are rounding errors, and grow from then on
    enough: float = 0.01
    passes: float = 1e-6  # seconds for each row, measured: the factors, and the directions of an iteration


SETTINGS = Settings()

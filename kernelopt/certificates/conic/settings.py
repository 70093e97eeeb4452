"""The settings of bounds by multipliers, which were found by measurements. No user needs to change them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Settings:
    """Gaps and errors are relative, and the comments say to what."""

    # Which bound is enough, and what is tried for a better one.
    # Of SCS after Clarabel failed: a bound should not take as long as a solve
    accurate_iterations: int = 10_000
    sufficient_gap: float = 1e-6  # of the primal value: a bound this close ends the search
    # Of the largest sum of absolute values: the error of a solver's dual constraint
    slope_error: float = 1e-5
    negligible_gap: float = 1e-9  # of the primal value: a bound this close is not worth another correction
    poor_gap: float = 1e-3  # of the objective's terms: with a larger gap, dependent columns are looked for
    # Of the objective's terms: by how much the optimum may exceed a solver's value
    objective_margin: float = 1e-3
    cancellation: float = 1e-3  # of the objective's terms: a smaller primal value is one of terms that cancel
    dependent: float = 1e-13  # relative to the largest singular value of columns of length one: rounding
    max_columns: int = 500  # limits the cost of the dense singular value decomposition
    # Of a bound to the entries of x: wide, and far from the 1e13 at which rounding counts
    max_ratio: float = 2.0**16
    # Changes of a multiplier, and rays.
    refinements: int = 4  # steps of iterative refinement: each reduces what the ridge and rounding leave
    ridge: float = 1e-14  # added to the normal equations of columns of length one: rounding of their entries
    repairs: int = 9  # the step into the cone grows at least tenfold each time: from 1e-12 to 1e-4
    # Relative to sums of absolute values: beyond a solver's error a multiplier is no ray
    ray_error: float = 1e-4
    least_squares: tuple[float, ...] = (0.0, 1e-14, 1e-14)  # of `lsqr`: damping, and tolerances near rounding
    # Of the largest slack: the parameter of the central path where a multiplier is completed
    central: float = 1e-8
    first_step: float = 1e-12  # into the cone, relative to the multiplier
    dense_share: float = 0.1  # of the entries of a matrix: with more of them dense factors are faster
    negligible_loss: float = 1e-9  # a loss, relative to the bound, with which no further attempt is made
    sign_margin: float = 8.0  # error bounds by which a slope of a column with one bound keeps its sign
    # Of the largest entry: smaller entries of a ray are set to zero, then none
    negligible: tuple[float, ...] = (1e-6, 0.0)
    rounding_bits: tuple[int, ...] = (6, 20, 30)  # after the binary point, to which a ray is rounded
    # Corrections that are shown to exist.
    # Of the pivoted QR factorisation that chooses the rows: a second or less
    max_multiplications: float = 1e9
    contraction: float = 0.5  # the largest |I - RM| that is accepted: the bound is then at most doubled
    far: float = 16.0  # times the changes by distances to the boundary: no larger change was ever shown
    ample_ratio: float = 2.0**20  # distances to the boundary beyond this multiple of a change count as equal
    # Interval propagation.
    sweeps: int = 30  # at most: bounds may converge without ever being final
    stalled_sweeps: int = 2  # sweeps without a new finite bound that end the propagation
    max_head_entries: int = 8  # a longer first row of a second-order cone is not added to the other rows


SETTINGS = Settings()

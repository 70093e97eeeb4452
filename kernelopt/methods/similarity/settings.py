"""The settings of the first-order dual methods, which were found by measurements."""

from __future__ import annotations

from typing import NamedTuple


class Settings(NamedTuple):
    """Seconds, numbers of steps, and shares of gaps and lengths.

    It is a named tuple, whose fields numba takes as constants.
    """

    # The predicted seconds.
    # Relative: what a bound of an iteration may differ from that of the certificate
    bound_rounding: float = 1e-11
    # Measured seconds: of the start; for one kernel in one iteration, whatever its size; of an
    # eigendecomposition with passes over the matrix, per N^3; and of the passes over a basis, where spectra
    # are learned, per N^2.
    start_seconds: float = 5e-3
    fixed_seconds: float = 2e-4
    decomposition_seconds: float = 3e-9
    passes_seconds: float = 2e-8
    # Measured seconds for each entry of a matrix, of the enclosure of its fidelities
    enclosure_seconds: float = 1.5e-7
    # Reweighted squares.
    # Of the first inner problem: its weights are a guess, and not worth an exact solution
    first_steps: int = 3
    reweighted_steps: int = 200  # of each later inner problem, at most
    # The gap of the inner problem, of the allowed gap and of the present gap. For squares it is that of the
    # problem: the rest is left for the rounding bounds of the certificate.
    squared_accuracies: tuple[float, float] = (0.9, 0.1)
    reweighted_accuracies: tuple[float, float] = (0.3, 0.3)
    # Relative to |S|: a smaller |K - S| has the scale of this one, so that W stays finite
    min_distance: float = 1e-6
    # Relative to |S|: the first distance where the projection of the mean is S itself
    first_distance: float = 1e-2
    # The alternating directions.
    admm_steps: int = 100  # accelerated steps of the inner problem in one iteration, at most
    report_every: int = 5  # iterations: the bounds cost about as much as a step
    first_reports: int = 2  # iterations that are reported at the start
    gap_share: float = 0.5  # of the present gap, to which the inner problem is solved
    admm_accuracy: float = 0.1  # of the allowed gap, to which it is solved at least
    roundings: int = 2  # times n eps tr X: the rounding of a product V diag(w) V' and that of the proof
    # The inner problem.
    # Steps times entries of the kernels, that take some hundredths of a second: no thread
    short_work: float = 1e7
    passes_per_eigenvalue: float = 250.0  # of an innermost loop, in one step: measured by Python
    join_seconds: float = 0.5  # that a stopped ascent has to finish its step, so that its point can be used
    start_fraction: float = 0.05  # of the maximiser of l on its box: kernels keep alpha smaller, often by far
    # Of |B|^2: a smaller |K - B|^2, as a difference of sums, has lost about six digits
    cancellation: float = 1e-6
    # The steps in alpha.
    gamma_accuracy: float = 0.2  # of the tolerance: the error that a gamma which is not optimal may cause
    intercept_accuracy: float = 0.01  # of the tolerance: the error of the primal value that b may cause
    relative_accuracy: float = 1e-9  # of l(alpha): the same for loose tolerances
    rounds: int = 60  # of the search for gamma at one alpha, and of the rescalings of the first point
    grow: float = 2.0  # of the Lipschitz estimate, after a rejected step
    shrink: float = 0.8  # of the Lipschitz estimate, after an accepted step
    gap_rounding: float = 1e-14  # of l(alpha): about the rounding of its sum, so that no smaller gap counts
    rescaling: float = 0.1  # the first point is rescaled where the best factor is below this
    least_lipschitz: float = 1e-200  # the estimate must stay positive, as it is a divisor
    # The search for gamma.
    least_gamma: float = 1e-10  # before normalisation: 1 / gamma stays finite
    norm_floor: float = 1e-3  # of the largest norm: a smaller norm is raised to it, as q_i = 0 is no power
    most_elasticity: float = 1e15  # where q_i falls to zero at once
    relative_gap: float = 1e-3  # of sum_i q_i / (2 gamma_i): the accuracy of gamma for loose tolerances
    bisections: int = 60  # of the logarithm of the level: more than the 53 bits of a double
    same_point: float = 1e-12  # of log gamma: two points that are closer give no reliable elasticity


SETTINGS = Settings()

"""The tolerances and numbers of vectors of the PSD combinations of given trace."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Settings:
    """Shares below which numbers are rounding errors, and sizes of the search for a matrix inside."""

    # of the largest eigenvalue of a Gram matrix: those below are computed in another pass
    strong: float = 1e-8
    # Frobenius norm of a combination, relative to the sum of the norms of its terms: rounding
    dependent: float = 1e-13
    passes: int = 4  # each resolves norms that are smaller by the factor 1e-4: four reach rounding
    # |K 1| / sqrt(N) of centred kernels, of the norm of K; centring leaves 5e-14 of a wide Gaussian
    vanishing: float = 1e-12
    # relative difference of the constraint's coefficients from the traces: rounding
    same_trace: float = 1e-11
    range: float = 1e-14  # of the largest eigenvalue of sum_i K_i^2: smaller ones are outside the joint range
    rounds: int = 40  # of eigenvectors; a few are usual
    new_vectors: int = 6  # eigenvectors that are added in a round
    # of the largest least eigenvalue: a combination with this share of it is well inside
    accepted: float = 0.3
    precision: float = 1e-3  # of the trace over the order: gap of the small programmes
    none: float = 1e-9  # of the mean eigenvalue: a largest least eigenvalue below this counts as zero
    rank: float = 1e-11  # of the largest diagonal entry: pivots below it count as zero
    shift: float = 1e-13  # of the largest entry: eigenvalues above minus this count as non-negative
    in_range: float = 1e-7  # relative residual of an image up to which it is in the range of another matrix
    probes: int = 2  # random vectors whose images test that a range is inside another
    rounded: float = 5e-14  # half of what the eigenvalues of a feasible point may miss by rounding


SETTINGS = Settings()

"""The settings of the method "spectral-master", which were found by measurements."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Settings:
    """Numbers of vectors and cuts, and shares of gaps."""

    first_vectors: int = 2  # random vectors for each weight, which span the first space
    master_gap: float = 0.02  # of the gap of the bounds: the precision of the master problem
    proof_seconds: float = 4e-11  # seconds of the bound from below over n^3: measured
    machine_gap: float = 0.02  # of the tolerance: the precision of the machines
    most_cuts: int = 60  # of them the highest at the best weights are kept
    # Of the way from the centre to the best weights: the start of the interior point
    start_share: float = 0.7
    free: float = 1e-7  # relative distance from its bounds at which an entry of alpha counts as free
    newton_steps: int = 15  # at most, of a machine; three to six are usual
    ridge: float = 1e-10  # of the mean diagonal: added to singular matrices of the second derivative


SETTINGS = Settings()

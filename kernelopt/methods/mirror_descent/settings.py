"""The settings of the method "mirror-descent", which were found by measurements."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Settings:
    """Numbers of iterations, seconds, and shares of gaps and lengths."""

    report_every: int = 5  # iterations between two reports of the bounds
    bound_rounding: float = 1e-11  # relative: what a reported bound may differ from that of the certificate
    rate_factor: float = 4.0  # the adaptive rate over the rate of the best bound
    # The machines.
    machine_accuracy: float = 0.01  # the gap of a machine over the gap of the problem: it adds 1 % to the gap
    loosest: float = 1e-2  # the largest relative gap to which a machine is trained
    rounds: int = 2  # alternations between alpha and gamma at a point; they continue at the next point
    smallest_gamma: float = 1e-12  # relative to the largest gamma: K / gamma must stay finite
    # The subgradients of `Radial` fidelities.
    reweightings: int = 3  # every one gives a valid bound, and the first gain most
    min_distance: float = 1e-9  # relative to the target: a smaller distance has the finite weight of this one
    # Roundings of a number of a linearization, which cvxpy computes
    linearization: float = 2.0**-46
    # The predicted seconds.
    step_seconds: float = 1.5e-3  # of an iteration without its machines and eigendecompositions
    weight_iterations: int = 200  # to a gap of 1e-5, for risks over weights alone
    smooth_iterations: int = 100  # to a gap of 1e-5, for smooth losses with squared distances


SETTINGS = Settings()

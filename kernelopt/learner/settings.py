"""The settings of the machines at fixed kernels. No user needs to change them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Settings:
    """Numbers of steps and of points, and tolerances relative to the scale of the problem."""

    small: int = 150  # points up to which an interior point is no slower than the import of numba
    # SMO
    steps_per_point: int = 100  # at most, for one yielded point
    entries_per_call: float = 1e8  # of K that the loop reads between two calls of `check`: about 0.1 s
    rounds: int = 60  # yielded points at most
    # The first and the last tolerance of the optimality conditions, and its reduction from point to point
    first_tolerance: float = 1e-2
    last_tolerance: float = 1e-12
    reduction: int = 5
    # Newton's method
    newton_steps: int = 30  # at most: a few are usual, since the method converges quadratically
    shortest_step: float = 1e-8  # of a line search, relative to the Newton step
    smallest_hessian: float = 1e-12  # relative to the largest entry: flatter samples are held by this one
    # The interior point
    interior_tolerance: float = 1e-11  # of Clarabel: tighter than its 1e-8, to identify the active set
    # Distances, relative to the largest entry, at which an entry counts as at its bound
    at_bound: tuple[float, ...] = (1e-3, 1e-5, 1e-7, 1e-9)
    singular: float = 1e-13  # relative singular values of a linear system below this count as zero
    # Block norms
    polishing_steps: int = 10  # alternations at most between alpha and the scales, for norms above 2
    close: float = 1e-7  # gap above which the primal is solved too
    scs_tolerance: float = 1e-9  # near the accuracy of the interior-point solver that it replaces


SETTINGS = Settings()

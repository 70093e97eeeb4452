"""The settings of the Newton method, which were found by measurements. No user needs to change them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Settings:
    """Shares of gaps, numbers of points and of steps; gaps are relative to the value."""

    # Gaps that are aimed at, on the working set and by the training at fixed weights: see `Search.target`.
    first_gap: float = 2e-2  # of a working set
    grown_gap: float = 5e-3  # of a set that has grown: violators of a looser model are others
    gap_share: float = 2e-3  # of the gap on all points
    last_share: float = 0.4  # of the tolerance
    training_share: float = 0.1  # of the gap that is aimed at
    loose_share: float = 3e-3  # of the best gap: training need not be more exact than this, but see `halved`
    halved: float = (
        0.5  # of the gap: a step that leaves more, and does not raise the value, lacks exact training
    )
    # Factor of the gap aimed at where the last one was met and all points did not meet theirs, and of the gap
    # of training after a step that may have gone astray.
    tighter: float = 0.2
    # Ends: checks in turn that reduce the gap to no less than a share of it, in all and in single precision,
    # and steps in turn whose training in single precision misses its share and does not halve its gap.
    stalled_rounds: int = 5
    little: float = 0.9
    single_rounds: int = 2
    single_steps: int = 3
    steps: int = 40  # Newton steps on one working set at most
    # Of a weight that remains after a step in double precision: near w = 0 the risk may rise as 1 / w, of
    # which the quadratic model knows nothing.
    least_share: float = 0.1
    # The second derivatives at so many free samples, whose factorisation takes most of a step, serve the
    # first step of the next solve too: measured, the gap after that step is the same within a tenth.
    many_free: int = 1500
    # The working set, in points.
    grown: int = 3000  # from which the first set grows before all points are checked
    first_part: int = 12  # the first set has n / 12 points
    fewest: int = 300  # and at least so many
    small: int = 500  # so many are one working set: measured, it takes fewer steps than one that grows
    everything: float = 0.85  # share of the points from which the working set is all of them
    smallest_class: int = 20  # of each label at least, if there are as many
    growth: int = 4  # points added at once: this multiple of the working set
    smallest_growth: int = 200  # and at least so many
    # Distances from the interval of predictions at which alpha = 0 is optimal, in units of the mean distance
    # of predictions from the targets. Points outside by `added` are added.
    added: float = 1e-4
    dropped: float = 0.3  # inside, with alpha = 0
    # A growing set keeps a point with alpha = 0 at most this far inside, in units of the mean target.
    kept: float = 0.05
    # Training: violations of the optimality conditions relative to their scale, the factor between two of
    # them, `step_counts` at most for each, and steps of Newton's method for a dual without bounds.
    first_violation: float = 3e-2
    last_violation: float = 1e-13
    reduction: float = 5.0
    rounds: int = 10
    newton_steps: int = 30


SETTINGS = Settings()

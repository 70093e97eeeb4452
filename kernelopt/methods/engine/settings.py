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
    share_of_training: float = 0.5  # of the gap that a training needs, at which its next tolerance aims
    loose_share: float = 3e-3  # of the best gap: training need not be more exact than this, but see `halved`
    # Of the gap: a step that leaves more, and does not raise the value, lacks exact training
    halved: float = 0.5
    # Factor of the gap aimed at where the last one was met and all points did not meet theirs, and of the
    # gap of training after a step that may have gone astray.
    tighter: float = 0.2
    # Ends: checks in turn that reduce the gap to no less than a share of it, in all and in single
    # precision, and steps in turn whose training in single precision misses its share and does not halve
    # its gap.
    stalled_rounds: int = 5
    little: float = 0.9
    single_rounds: int = 2
    single_steps: int = 3
    steps: int = 40  # Newton steps on one working set at most
    # Points from which the last second derivatives serve the first step of the next solve too: measured, the
    # gap after that step is the same within a tenth, and their factorisation takes most of a step.
    many_points: int = 3000
    # Of a weight that remains after a step in double precision: near w = 0 the risk may rise as 1 / w, of
    # which the quadratic model knows nothing.
    least_share: float = 0.1
    # Added to a kernel in the unit of the block, in single and in double precision: above the error of its
    # numbers, and for points that coincide
    ridges: tuple[float, float] = (1e-6, 1e-12)
    # The working set, in points.
    grown: int = 3000  # from which the first set grows before all points are checked
    first_part: int = 12  # the first set has n / 12 points
    fewest: int = 300  # and at least so many
    most_first: int = 4000  # and at most so many: measured, n / 12 of 200,000 took 1.4 times as long
    small: int = 500  # so many are one working set: measured, it takes fewer steps than one that grows
    # Parts of a growing set after which its size at the end is predicted; it is refused where the prediction
    # is beyond the memory by this factor.
    forecast_parts: int = 2
    forecast_margin: float = 2.0
    everything: float = 0.85  # share of the points from which the working set is all of them
    smallest_class: int = 20  # of each label at least, if there are as many
    growth: int = 4  # points added at once: this multiple of the working set
    smallest_growth: int = 200  # and at least so many
    # Distances from the interval of predictions at which alpha = 0 is optimal, in units of the mean
    # distance of predictions from the targets. Points outside by `added` are added.
    added: float = 1e-4
    dropped: float = 0.3  # inside, with alpha = 0
    # A growing set keeps a point with alpha = 0 at most this far inside, in units of the mean target.
    kept: float = 0.05
    # Of the way back to a better point, which a step has passed: the shortest and the longest.
    shortest_back: float = 0.1
    longest_back: float = 0.7
    # The interior point for the quadratic model.
    model_steps: int = 300  # Newton steps at most; twenty are usual, and hundreds for p = 1000
    centred: float = 0.1  # the complementarity that a step aims at, as a share of the present one
    # Share of the slack that curvature may take; length of the shortest step
    curved: float = 0.5
    shortest: float = 1e-6
    # Complementarity and residuals, relative to the gradient: near the accuracy of float64
    done: float = 1e-12
    inside: float = 0.9  # the length of the first iterate, which must be interior
    even: float = 1e-2  # share of equal weights in it
    zero: float = 1e-6  # a weight below this share of the largest is zero if its multiplier exceeds it
    # Entries from which a sparse minimiser is sought among some, and those added at a time
    many_entries: int = 150
    added_entries: int = 50
    # The provider.
    exact_gap: float = 1e-4  # below this gap predictions in float32 are not exact enough
    # A basis is looked for from this many kernels on. It is used where its rank is at most this share of
    # them: a combination then reads a quarter of the numbers, which pays for the projection of the new
    # rows.
    fewest_kernels: int = 24
    rank_share: float = 0.25
    sampled_entries: int = 3000  # entries from which the rank is found
    # Singular values below this share of the largest are zero: the accuracy of float32
    basis_accuracy: float = 1e-7
    block_entries: int = 1 << 17  # of all kernels that are read at a time: 1 MB, for a fast cache
    block_share: int = 8  # they take at most one part in so many of the memory
    # Of the inner products that are summed at a time: the error of a sum grows with its length
    features: int = 256
    pairs: int = 1 << 20  # of the distances of a prediction that are computed at a time: 4 MB
    looked_up: int = 1 << 18  # and of the entries that are read from a table for it: 2 MB
    sampled_points: int = 400  # points whose distances tell which cells the sums over distances need
    most_octaves: int = 48  # of a table
    # Free samples from which their block is read from the distances: the combined kernel would be a third
    # large matrix
    many_free: int = 1500
    # Decrease, relative to the diagonal, below the first knot, where functions are constant
    first_drop: float = 1e-8
    # The predicted seconds.
    # Measured: support vectors of n points are about n to this power, and the seconds of a call from points
    # for each pair of a point and one of them
    usual_growth: float = 0.77
    pair_seconds: float = 6e-8
    # Measured: Newton steps of a call, and the seconds of each beside those that follow
    usual_steps: int = 8
    step_seconds: float = 3.5e-3
    entry_seconds: float = 4e-9  # seconds for each of the m n^2 entries, in all steps and checks together
    # Seconds for each of the n^2 entries of a combined kernel, in all trainings together
    training_seconds: float = 5e-8
    screening_share: float = 0.3  # of the predicted seconds, for the proofs that kernels have weight zero
    operation_seconds: float = 1e-10  # seconds of an operation of these proofs
    # Seconds times n^3 of all factorisations, where every point has its share in alpha
    factorisation_seconds: float = 1.3e-10


SETTINGS = Settings()

"""The joint dual of a learner and of kernels near given matrices, from one decomposition of each matrix."""

from __future__ import annotations

import threading
from collections.abc import Callable

import numpy as np

from kernelopt.errors import SolverError, Stopped
from kernelopt.losses.curve import Curve
from kernelopt.methods.checkpoint import State as Resumed
from kernelopt.methods.similarity.accelerated_ascent import (
    ProblemData,
    State,
    maximize,
    passes_of_a_step,
    prepare_start,
)
from kernelopt.methods.similarity.settings import SETTINGS
from kernelopt.numerics.compiling import affordable, compiled
from kernelopt.numerics.decompositions import eigenpairs
from kernelopt.running import check, running_call
from kernelopt.structure.nearness import Nearness
from kernelopt.threads import interruptible
from kernelopt.validation import Array


class Ascent:
    """Dual ascent for a learner and kernels K_i near given matrices B_i, which are learned together.

        max over alpha, gamma  l(alpha) + sum_i min over K_i [ -z'K_i z / (2 gamma_i) + W_i |K_i - B_i|_F^2 ]

    with alpha in the dual domain of the loss, gamma in the simplex, and K_i positive semidefinite with a
    given or a free trace; z is alpha, with zeros for the points without a label. This is the dual of

        min over b, f_i, K_i   loss(sum_i f_i + b) + 1/2 max_i |f_i|^2 + sum_i W_i |K_i - B_i|_F^2

    where |f_i| is the norm of the reproducing kernel Hilbert space of K_i. The minimising K_i is the
    projection of B_i + z z' / (4 W_i gamma_i). This is a rank-one change of a matrix whose decomposition is
    known, so that its eigenpairs are found from the secular equation without another decomposition: O(N^2)
    operations for each positive eigenvalue of K_i. Where K_i = V diag(mu_i) V', only mu_i is learned.

    Parameters
    ----------
    problem : Nearness
        Its loss has a dual that is quadratic on a box: hinge, squared hinge, squared.
    resumed : dict of arrays
        With `alpha` and `gamma` at which to start; empty for a first point.

    Attributes
    ----------
    state : State
        The last point, and what was computed there. `solve` writes over its arrays.
    """

    def __init__(self, problem: Nearness, resumed: Resumed) -> None:
        learner, m, N = problem.risk.learner, len(problem.blocks), problem.n_points
        curve, bias = learner.loss.curve(learner.y), learner.has_intercept
        self.problem = problem
        self.data = ProblemData(
            linear=np.array(curve.linear),
            curvature=np.array(curve.curvature),
            lower=np.array(curve.lower),
            upper=np.array(curve.upper),
            bias=bias,
            bases=np.zeros((m, N, N)),
            spectra=np.zeros((m, N)),
            totals=np.array([np.nan if block.total is None else block.total for block in problem.blocks]),
            diagonal=problem.blocks[0].V is not None,
        )
        self.bases = list(self.data.bases)  # as they were given: kernels of earlier points still need them
        alpha = learner.loss.project(starting_alpha(curve), learner.y, bias)
        alpha, gamma = resumed.get("alpha", alpha), resumed.get("gamma", np.full(m, 1 / m))
        self.state = State.at(np.array(alpha), np.array(gamma), N)

    def set_matrix(self, i: int, B: Array) -> None:
        """Set B_i, which is decomposed, or its spectrum in the basis V of its block.

        K_i still belongs to the old B_i until `solve` is called.
        """
        check()
        V = self.problem.blocks[i].V
        spectrum, basis = eigenpairs(B) if V is None else (B, V)
        self.data.bases[i], self.data.spectra[i], self.bases[i] = basis, spectrum, basis

    def solve(self, weights: Array, tol: float, steps: int) -> tuple[float, float]:
        """Ascend from the last point until the inner gap is `tol`, or for `steps` steps.

        The weights W are positive. Returns the dual objective d(alpha, gamma), a lower bound of the optimum,
        and the inner gap g; the primal objective at the present kernels, d + g, is an upper bound. At the
        deadline of the running call the ascent ends early with the values of its last step.
        """
        value, gap = self._maximize(weights, float(tol), steps)
        if not np.isfinite(value):
            raise SolverError(
                f"the ascent must end at a finite value, got {value} at weights {weights}. "
                "Scale the matrices to entries near 1."
            )
        return float(value) + self._recompute_distances(weights), float(gap)

    def _maximize(self, weights: Array, tol: float, steps: int) -> tuple[float, float]:
        """Return the value and the gap of `maximize`, in a thread of its own where it may take long."""
        counts = self.state.counts
        counts[2] = 0

        def ascend() -> tuple[float, float]:
            if self.state.warm[0] == 0:
                prepare_start(self.data, weights, tol, self.state)
            passes, left = passes_of_a_step(self.data), steps
            while True:
                now, before = affordable(maximize, left, passes), counts[0]
                found: tuple[float, float] = compiled(maximize, passes * now)(
                    self.data, weights, tol, now, self.state
                )
                left -= now
                if left == 0 or found[1] <= tol or counts[0] - before < now or counts[2] > 0:
                    return found

        check()
        if running_call() is None or steps * self.data.bases.size < SETTINGS.short_work:
            return ascend()
        ended, results = threading.Event(), list[tuple[float, float]]()

        def work() -> None:
            try:
                results.append(ascend())
            finally:
                ended.set()

        def end() -> None:
            counts[2] = 1
            ended.wait(SETTINGS.join_seconds)

        try:
            interruptible(work, end)
        except Stopped:
            if not results:
                raise
        return results[0]

    def values(self) -> list[Callable[[], Array]]:
        """Return functions that compute the variables at the present point, also after later calls."""
        return [self._value(i) for i in range(len(self.bases))]

    def _value(self, i: int) -> Callable[[], Array]:
        if self.data.diagonal:
            spectrum = self.state.pairs.weights[i].copy()
            return lambda: spectrum
        half, basis = self._half(i), self.bases[i]

        def kernel() -> Array:
            root = half @ basis.T
            return np.asarray(root.T @ root)

        return kernel

    def _half(self, i: int) -> Array:
        """Return H with K_i = Q H'H Q' in the basis Q of B_i, shape (rank, N)."""
        vectors, squares, weights = (part[i] for part in self.state.pairs)
        rank = np.count_nonzero(weights)
        return np.asarray(np.sqrt(weights / squares)[:rank, None] * vectors[:rank])

    def risk_above(self, gap: float) -> float:
        """Return loss(f + b) + 1/2 max_i |f_i|^2, an upper bound of the risk at the present kernels.

        It is the inner gap plus l(alpha) - 1/2 sum_i z'K_i z / gamma_i, by the definition of the gap.
        """
        learner, state = self.problem.risk.learner, self.state
        half_forms = float((state.forms / state.gamma).sum()) / 2
        return gap + learner.loss.dual_value(state.alpha, learner.y) - half_forms

    def _recompute_distances(self, weights: Array) -> float:
        """Recompute the |K_i - B_i|^2 that cancellation made inaccurate; return the change of d."""
        added, distances = 0.0, self.state.distances
        for i, spectrum in enumerate([] if self.data.diagonal else self.data.spectra):
            if distances[i] < SETTINGS.cancellation * float(spectrum @ spectrum):
                half = self._half(i)
                exact = float(((half.T @ half - np.diag(spectrum)) ** 2).sum())
                added += float(weights[i]) * (exact - float(distances[i]))
                distances[i] = exact
        return added


def starting_alpha(curve: Curve) -> Array:
    """Return a share of the maximiser of l on its box; not 0, where d does not depend on gamma."""
    bound = np.where(curve.linear > 0, curve.upper, -curve.lower)
    with np.errstate(divide="ignore", invalid="ignore"):
        best = np.where(curve.curvature > 0, np.abs(curve.linear) / curve.curvature, np.inf)
    return np.asarray(SETTINGS.start_fraction * np.sign(curve.linear) * np.minimum(bound, best))

"""The joint dual of a learner and of kernels near given matrices, from one decomposition of each matrix."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from kernelopt.errors import InputError, ParameterError, ShapeError, SolverError, Stopped
from kernelopt.losses import Loss
from kernelopt.losses.curve import Curve
from kernelopt.methods.similarity.settings import SETTINGS
from kernelopt.running import check, running_call
from kernelopt.threads import interruptible
from kernelopt.validation import Array, positive

if TYPE_CHECKING:
    from kernelopt.methods.similarity.spectra.projection import Eigenpairs


class Ascent:
    """Dual ascent for a learner and kernels K_i near given matrices B_i, which are learned together.

        max over alpha, gamma  l(alpha) + sum_i min over K_i [ -z'K_i z / (2 gamma_i) + W_i |K_i - B_i|_F^2 ]

    with alpha in the dual domain of the loss, gamma in the simplex, and K_i positive semidefinite with a
    given or a free trace; z is alpha, with zeros for the points without a label. This is the dual of

        min over b, f_i, K_i   loss(sum_i f_i + b) + 1/2 max_i |f_i|^2 + sum_i W_i |K_i - B_i|_F^2

    where |f_i| is the norm of the reproducing kernel Hilbert space of K_i. The minimising K_i is the
    projection of B_i + z z' / (4 W_i gamma_i). This is a rank-one change of a matrix whose decomposition is
    known, so that its eigenpairs are found from the secular equation without another decomposition: O(N^2)
    operations for each positive eigenvalue of K_i.

    Parameters
    ----------
    loss : Loss
        One whose dual is quadratic on a box: hinge, squared hinge, squared.
    y : array of shape (n,)
        Labels or targets of the first n points.
    bias : bool
        Whether there is an intercept, that is sum alpha = 0.
    n_points : int
        N >= n, the order of the kernels.
    totals : sequence of m floats > 0 or None
        The trace of each K_i, None where it is free.
    diagonal : bool
        Whether K_i = basis_i diag(mu_i) basis_i', so that only the spectrum is learned.

    Attributes
    ----------
    alpha : array of shape (n,)
        The signed dual variable. This and the following are of the last point; `solve` writes over them.
    gamma : array of shape (m,)
    forms, distances, squares, shifts, ranks : arrays of shape (m,)
        z'K_i z, |K_i - B_i|_F^2, |K_i|_F^2, the theta_i by which the projection shifts the spectrum (zero
        where the trace is free), and rank K_i.
    predictor : array of shape (n,)
        sum_i (K_i z) / gamma_i at the first n points.

    Examples
    --------
    >>> import numpy as np
    >>> import kernelopt as ko
    >>> from kernelopt.methods.similarity.spectra import Ascent
    >>> y = np.array([1.0, 1.0, -1.0, -1.0])
    >>> ascent = Ascent(ko.hinge(C=1.0), y, bias=True, n_points=4, totals=[4.0], diagonal=False)
    >>> ascent.set_spectrum(0, np.eye(4), np.ones(4))  # B = I
    >>> value, gap = ascent.solve(np.array([0.5]), tol=1e-6, steps=100)
    >>> print(round(value, 4), gap <= 1e-6, ascent.alpha.round(4))
    1.4899 True [ 0.6282  0.6282 -0.6282 -0.6282]
    """

    def __init__(
        self,
        loss: Loss,
        y: Array,
        bias: bool,
        n_points: int,
        totals: Sequence[float | None],
        diagonal: bool,
    ) -> None:
        # Not at the top: numba is slow to import.
        from kernelopt.methods.similarity.spectra.state import ProblemData, State

        curve = quadratic_curve(loss, y)
        m, n, N = len(totals), y.size, n_points
        if n > N:
            raise ShapeError(
                f"n_points must be at least the number of labels ({n}), got {N}. "
                "The labelled points are the first ones."
            )
        traces = [np.nan if t is None else positive(t, f"totals[{i}]") for i, t in enumerate(totals)]
        self._data = ProblemData(
            linear=np.array(curve.linear),
            curvature=np.array(curve.curvature),
            lower=np.array(curve.lower),
            upper=np.array(curve.upper),
            bias=bool(bias),
            bases=np.zeros((m, N, N)),
            spectra=np.zeros((m, N)),
            totals=np.array(traces),
            diagonal=bool(diagonal),
        )
        self._bases = list(self._data.bases)  # as they were given: kernels of earlier points still need them
        self._state = State.at(np.array(loss.project(starting_alpha(curve), y, bias)), m, N)
        state = self._state
        self.alpha, self.gamma, self.predictor = state.alpha, state.gamma, state.predictor
        self.forms, self.distances = state.forms, state.distances
        self.squares, self.shifts = state.squares, state.shifts
        self.ranks = state.pairs.counts[:, 0]

    def set_spectrum(self, i: int, basis: Array, spectrum: Array) -> None:
        """Set B_i = basis diag(spectrum) basis', ascending unless the problem is diagonal.

        The basis is orthogonal, as `numpy.linalg.eigh` returns it. K_i still belongs to the old B_i until
        `solve` is called.
        """
        N = self._data.spectra.shape[1]
        if basis.shape != (N, N) or spectrum.shape != (N,):
            raise ShapeError(
                f"B_{i} must have a basis of shape {(N, N)} and a spectrum of shape {(N,)}, got "
                f"{basis.shape} and {spectrum.shape}. Decompose it with numpy.linalg.eigh."
            )
        if not np.isfinite(spectrum).all() or not (self._data.diagonal or (np.diff(spectrum) >= 0).all()):
            raise InputError(
                f"the spectrum of B_{i} must be finite and ascending, got {spectrum}. "
                "numpy.linalg.eigh returns it so for a finite B."
            )
        self._data.bases[i] = basis
        self._bases[i] = basis
        self._data.spectra[i] = spectrum

    def solve(self, weights: Array, tol: float, steps: int) -> tuple[float, float]:
        """Ascend from the last point with the weights W until the inner gap is `tol`, or for `steps` steps.

        Returns the dual objective d(alpha, gamma), a lower bound of the optimum, and the inner gap g; the
        primal objective at the present kernels, d + g, is an upper bound. At the deadline of the
        running call the ascent ends early with the values of its last step.
        """
        weights = np.ascontiguousarray(weights, dtype=float)
        if weights.shape != self.gamma.shape or not (weights > 0).all() or not np.isfinite(weights).all():
            raise ParameterError(
                f"the weights must be {self.gamma.size} positive finite numbers, one per kernel, got "
                f"{weights}. Leave out a kernel that is tied to nothing."
            )
        value, gap = self._maximize(weights, float(tol), max(int(steps), 1))
        if not np.isfinite(value):
            raise SolverError(
                f"the ascent must end at a finite value, got {value} at weights {weights}. "
                "Look for NaN in the bases, or scale the matrices to entries near 1."
            )
        return float(value) + self._recompute_distances(weights), float(gap)

    def _maximize(self, weights: Array, tol: float, steps: int) -> tuple[float, float]:
        """Return the value and the gap of `maximize`, in a thread of its own where it may take long."""
        from kernelopt.methods.similarity.spectra.accelerated_ascent import maximize, prepare_start
        from kernelopt.methods.similarity.spectra.state import LIPSCHITZ, STOP

        counts, entries = self._state.counts, self._data.bases.size
        counts[STOP] = 0

        def ascend() -> tuple[float, float]:
            if self._state.warm[LIPSCHITZ] == 0:
                prepare_start(self._data, weights, tol, self._state)
            found: tuple[float, float] = maximize(self._data, weights, tol, steps, self._state)
            return found

        check()
        if running_call() is None or steps * entries < SETTINGS.short_work:
            return ascend()
        ended, results = threading.Event(), list[tuple[float, float]]()

        def work() -> None:
            try:
                results.append(ascend())
            finally:
                ended.set()

        def end() -> None:
            counts[STOP] = 1
            ended.wait(SETTINGS.join_seconds)

        try:
            interruptible(work, end)
        except Stopped:
            if not results:
                raise
        return results[0]

    def kernel(self, i: int) -> Array:
        """Return K_i, shape (N, N), positive semidefinite and of the given trace to rounding."""
        return self.kept_kernel(i)()

    def kept_kernel(self, i: int) -> Callable[[], Array]:
        """Return a function that computes K_i of the present point, also after later calls."""
        from kernelopt.methods.similarity.spectra.projection import eigenvectors

        basis, pairs = self._bases[i], self._pairs(i)
        weights = pairs.weights if self._data.diagonal else pairs.weights[: self.ranks[i]]
        roots = np.sqrt(weights)
        vectors = None if self._data.diagonal else eigenvectors(pairs)

        def kernel() -> Array:
            half = roots[:, None] * (basis.T if vectors is None else vectors @ basis.T)
            return np.asarray(half.T @ half)

        return kernel

    def spectrum(self, i: int) -> Array:
        """Return the N eigenvalues of K_i, in the order of its basis if diagonal and descending otherwise."""
        return np.array(self._state.pairs.weights[i])

    @property
    def steps(self) -> int:
        """The number of steps of all calls."""
        return int(self._state.counts[0])

    @property
    def evaluations(self) -> int:
        """The number of projections of one matrix, in all calls."""
        return int(self._state.counts[1])

    def _pairs(self, i: int) -> Eigenpairs:
        return type(self._state.pairs)(*(part[i] for part in self._state.pairs))

    def _recompute_distances(self, weights: Array) -> float:
        """Recompute the |K_i - B_i|^2 that cancellation made inaccurate; return the change of d."""
        from kernelopt.methods.similarity.spectra.projection import eigenvectors

        added = 0.0
        if not self._data.diagonal:
            for i, spectrum in enumerate(self._data.spectra):
                if self.distances[i] < SETTINGS.cancellation * float(spectrum @ spectrum):
                    pairs = self._pairs(i)
                    half = np.sqrt(pairs.weights[: self.ranks[i], None]) * eigenvectors(pairs)
                    exact = float(((half.T @ half - np.diag(spectrum)) ** 2).sum())
                    added += float(weights[i]) * (exact - float(self.distances[i]))
                    self.distances[i] = exact
        return added


def quadratic_curve(loss: Loss, y: Array) -> Curve:
    """Return the dual of the loss, which must be quadratic on a box, and bounded above there."""
    curve = loss.curve(y)
    reachable = np.isfinite(curve.lower) & np.isfinite(curve.upper)
    if not loss.quadratic or curve.l1.any() or not (reachable | (curve.curvature > 0)).all():
        raise InputError(
            f"the loss must have a finite value and a dual that is quadratic on a box, got {loss!r}. "
            "Take the hinge, squared hinge or squared loss."
        )
    return curve


def starting_alpha(curve: Curve) -> Array:
    """Return a share of the maximiser of l on its box; not 0, where d does not depend on gamma."""
    bound = np.where(curve.linear > 0, curve.upper, -curve.lower)
    with np.errstate(divide="ignore", invalid="ignore"):
        best = np.where(curve.curvature > 0, np.abs(curve.linear) / curve.curvature, np.inf)
    return np.asarray(SETTINGS.start_fraction * np.sign(curve.linear) * np.minimum(bound, best))

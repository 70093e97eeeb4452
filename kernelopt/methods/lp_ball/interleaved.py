"""SMO for l_p-norm multiple kernel learning with interleaved weights (Kloft et al., 2011, Algorithm 2)."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kernelopt.certificates.separability import check_separable
from kernelopt.grams import ArrayStorage, Grams
from kernelopt.grams.caching import read_only
from kernelopt.learner.smo import combined_block, coordinate_steps, smo_pairs
from kernelopt.losses.curve import Curve
from kernelopt.methods.checkpoint import kept
from kernelopt.methods.control import Control
from kernelopt.methods.method import Cost, Method, Outcome
from kernelopt.methods.on_ball import ball_cost, ball_outcome, warm_start
from kernelopt.numerics.compiling import compiled
from kernelopt.numerics.rows import add_rows
from kernelopt.structure.ball import BallProblem, read_ball
from kernelopt.structure.structure import Structure
from kernelopt.validation import Array, whole

REPORT_EVERY = 10  # chunks between two reports of the bounds
STEPS_PER_ENTRY = 20  # largest number of SMO steps for each entry of a chunk
VIOLATION_SHARE = 0.1  # a chunk ends when its violation has fallen to this share
FIRST_CHUNKS = 3  # chunks before the first update of the weights
STATIONARY = 1e-13  # violation and change of the weights at which rounding allows no more progress
CACHE_BYTES = 5e8  # default size of the cache of kernel rows
REMEDY = "Try method='cutting-plane' or 'exact'."
Index = NDArray[np.intp]


class RowCache:
    """Rows of all kernels: views of a stored array, else a least-recently-used cache of limited size.

    Parameters
    ----------
    grams : Grams
    size : float
        The size of the cache in bytes.
    fewest : int
        The number of rows of each kernel that the cache must hold at least.
    """

    def __init__(self, grams: Grams, size: float, fewest: int) -> None:
        self.grams = grams
        m, n = len(grams), grams.n_points
        self.held = isinstance(grams.storage, ArrayStorage)
        if isinstance(grams.storage, ArrayStorage):
            self.rows = read_only(np.ascontiguousarray(grams.storage.array))
            return
        slots = min(n, max(fewest, int(size // (8 * m * n))))
        self.store = np.empty((m, slots, n))
        self.rows = read_only(self.store)
        self.slot: OrderedDict[int, int] = OrderedDict()  # of each point, in the order of last use

    def fetch(self, points: Index) -> Index:
        """Return the positions in `rows` of the rows of these points; rows not yet held are evaluated."""
        if self.held:
            return points
        for point in points.tolist():
            if point in self.slot:
                self.slot.move_to_end(point)
        missing = [point for point in points.tolist() if point not in self.slot]
        if missing:
            for point in missing:
                free = len(self.slot) < self.store.shape[1]
                self.slot[point] = len(self.slot) if free else self.slot.popitem(last=False)[1]
            positions = [self.slot[point] for point in missing]
            self.store[:, positions] = self.grams.rows(np.array(missing))
        return np.array([self.slot[point] for point in points.tolist()])


def directional_derivatives(curve: Curve, a: Array, g: Array) -> tuple[Array, Array]:
    """Return the derivatives of the negated dual along +e_i, and minus those along -e_i.

    They are infinite where a bound forbids the step. At a_i = 0 they differ by 2 l1_i.
    """
    up = np.where(a < curve.upper, g + np.where(a >= 0, curve.l1, -curve.l1), np.inf)
    down = np.where(a > curve.lower, g + np.where(a > 0, curve.l1, -curve.l1), -np.inf)
    return up, down


def working_set(curve: Curve, a: Array, g: Array, size: int, bias: bool) -> tuple[Index, float]:
    """Return the entries with the largest violations of the optimality conditions, and the largest violation.

    With an intercept, sum a = 0, and a pair (i, j) violates the conditions by down_j - up_i.
    """
    up, down = directional_derivatives(curve, a, g)
    if bias:
        half = min(max(1, size // 2), a.size)
        lowest, highest = np.argpartition(up, half - 1)[:half], np.argpartition(-down, half - 1)[:half]
        return np.union1d(lowest, highest), float(down.max() - up.min())
    excess = np.maximum(-up, down)
    take = min(max(1, size), a.size)
    return np.argpartition(-excess, take - 1)[:take], float(excess.max())


class InterleavedRun:
    """The state of Algorithm 2: alpha, the images K_m alpha, the scaled weights w, and the cached rows."""

    def __init__(self, read: BallProblem, size: int, memory: float, w: Array, alpha: Array | None) -> None:
        self.read, self.size = read, size
        self.curve = read.loss.curve(read.y)
        self.cache = RowCache(read.grams, memory, 2 * size)
        initial = np.zeros(read.y.size) if alpha is None else alpha
        self.alpha = np.ascontiguousarray(read.loss.project(initial, read.y, read.bias))
        started = alpha is not None and alpha.any()  # from alpha = 0 the images are known to be zero
        shape = len(read.grams), read.y.size
        self.images = np.array(read.grams.apply(self.alpha)) if started else np.zeros(shape)
        self.w = w
        self.smo = compiled(smo_pairs if read.bias else coordinate_steps)
        self.combined_block, self.add_rows = compiled(combined_block), compiled(add_rows)

    @property
    def weights(self) -> Array:
        """The weights theta = reach * w, in the units of the problem."""
        return self.read.reach * self.w

    def step(self) -> float:
        """Maximise the dual over a working set for fixed weights; return the violation before the step."""
        curve = self.curve
        g = self.weights @ self.images + curve.curvature * self.alpha - curve.linear
        Q, violation = working_set(curve, self.alpha, g, self.size, self.read.bias)
        slots = self.cache.fetch(Q)
        block = self.combined_block(self.cache.rows, slots, Q, self.weights)
        a = self.alpha[Q]
        parts = (part[Q] for part in curve[1:])
        self.smo(block, *parts, a, g[Q], VIOLATION_SHARE * violation, STEPS_PER_ENTRY * Q.size)
        steps = a - self.alpha[Q]
        moved = np.flatnonzero(steps)
        self.add_rows(self.cache.rows, slots[moved], steps[moved], self.images)
        self.alpha[Q] = a
        return violation

    def forms(self) -> Array:
        """Return s_m = alpha' reach_m K_m alpha."""
        s: Array = self.read.reach * (self.images @ self.alpha)
        return s

    def bounds(self) -> tuple[float, float]:
        """Return the lower and the upper bound of the optimum at the current alpha and weights."""
        s, f = self.forms(), self.weights @ self.images
        return self.read.lower(self.alpha, s), self.read.upper(f, self.w, s)

    def report(self, control: Control) -> bool:
        """Report the bounds; return whether to stop."""
        alpha = self.alpha.copy()
        state = kept(w=self.w, alpha=alpha)
        return control.report(*self.bounds(), point=self.weights, proof=alpha, machines=[alpha], state=state)

    def update_weights(self) -> float:
        """Update the weights by (17) of [1]_; return the largest change."""
        before, self.w = self.w, self.read.analytic_weights(self.w, self.forms())
        return float(np.abs(self.w - before).max())


@dataclass(frozen=True)
class Interleaved(Method):
    """Maximises the dual over one working set of alpha at a time, and updates the weights by (17) after each.

    This is decomposition (SMO) [2]_ interleaved with the weight update of [1]_. Only the rows of the working
    sets are evaluated, and at most `memory` bytes of them are cached, so that kernels given as functions are
    never evaluated as whole matrices. The images K_m alpha take another m n numbers.

    Parameters
    ----------
    chunk : int > 0, default 20
        Number of entries of alpha in a working set.
    max_chunks : int > 0, default 1,000,000

    References
    ----------
    .. [1] Kloft et al., lp-norm multiple kernel learning, JMLR 12 (2011), Algorithm 2.
    .. [2] Fan, Chen, Lin, Working set selection using second order information, JMLR 6 (2005).
    """

    name = "interleaved"
    chunk: int = 20
    max_chunks: int = 1_000_000

    def __post_init__(self) -> None:
        whole(self.chunk, "chunk")
        whole(self.max_chunks, "max_chunks")

    def match(self, structure: Structure) -> BallProblem | str:
        """Return the problem over an l_p ball; its loss must have a piecewise quadratic dual."""
        read = read_ball(structure)
        if isinstance(read, str) or read.loss.quadratic:
            return read
        return f"its loss must have a piecewise quadratic dual, {read.loss!r} has none"

    def cost(self, match: BallProblem) -> Cost:
        # Measured: for p > 1 about nine passes over the entries, and some chunks at the start. For p = 1 the
        # weights of the unused kernels vanish slowly, one after the other. A chunk takes 0.25 ms, and reads
        # its rows twice: for its block of the kernel, and for the update of the images.
        m, n = match.reach.size, match.y.size
        chunks = 25 + 9 * n / self.chunk if match.p > 1 else 50 * m
        return ball_cost(match, chunks, 2.5e-4, rows=2 * min(self.chunk, n))

    def run(self, match: BallProblem, control: Control) -> Outcome | None:
        check_separable(match.learner)
        memory = CACHE_BYTES if control.memory is None else control.memory
        with control:
            descent = InterleavedRun(match, self.chunk, memory, *warm_start(match, control))
            for count in range(self.max_chunks):
                violation = descent.step()
                if (count % REPORT_EVERY == 0 or control.out_of_time) and descent.report(control):
                    break
                change = descent.update_weights() if count >= FIRST_CHUNKS else np.inf
                if max(violation, change) <= STATIONARY:
                    descent.report(control)
                    break
            else:
                control.stopped = f"{self.max_chunks} chunks were made"
        return ball_outcome(match, control, REMEDY)

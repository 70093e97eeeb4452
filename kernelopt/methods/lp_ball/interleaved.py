"""SMO for l_p-norm multiple kernel learning with interleaved weights (Kloft et al., 2011, Algorithm 2)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from kernelopt.grams import ArrayStorage, Grams
from kernelopt.grams.caching import CACHE_BYTES, read_only
from kernelopt.grams.stored import add_rows
from kernelopt.learner.smo import combined_block, coordinate_steps, passes_of_a_step, smo_pairs
from kernelopt.losses.curve import Curve
from kernelopt.methods.control import Control
from kernelopt.methods.method import Cost
from kernelopt.methods.on_ball import BallMethod, analytic_weights, ball_cost, report_on_ball
from kernelopt.numerics.compiling import compiled
from kernelopt.structure.ball import BallProblem
from kernelopt.structure.structure import Structure
from kernelopt.validation import Array, Index, whole

REPORT_EVERY = 10  # chunks between two reports of the bounds
STEPS_PER_ENTRY = 20  # SMO steps at most for each entry of a chunk
VIOLATION_SHARE = 0.1  # a chunk ends when its violation has fallen to this share
FIRST_CHUNKS = 3  # chunks before the first update of the weights
STATIONARY = 1e-13  # violation and change of the weights at which rounding allows no more progress


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
        self.slots: dict[int, int] | None = None  # of each point, in the order of last use
        if isinstance(grams.storage, ArrayStorage):
            self.rows = read_only(np.ascontiguousarray(grams.storage.array))
        else:
            self.slots, capacity = {}, min(n, max(fewest, int(size // (8 * m * n))))
            self.store = np.empty((m, capacity, n))
            self.rows = read_only(self.store)

    def fetch(self, points: Index) -> Index:
        """Return the positions in `rows` of the rows of these points; rows not yet held are evaluated."""
        slots, chosen = self.slots, points.tolist()
        if slots is None:
            return points
        for point in chosen:
            if point in slots:
                slots[point] = slots.pop(point)
        missing = [point for point in chosen if point not in slots]
        for point in missing:
            full = len(slots) == self.store.shape[1]
            slots[point] = slots.pop(next(iter(slots))) if full else len(slots)
        if missing:
            self.store[:, [slots[point] for point in missing]] = self.grams.rows(np.array(missing))
        return np.array([slots[point] for point in chosen])


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


@dataclass(frozen=True)
class Interleaved(BallMethod):
    """Maximises the dual over one working set of alpha at a time, and updates the weights by (17) after each.

    This is decomposition (SMO) [2]_ interleaved with the weight update of [1]_. Only the rows of the working
    sets are evaluated, and at most `memory` bytes of them are cached, so that kernels given as functions are
    never evaluated as whole matrices. The images K_m alpha take another m n numbers.

    Parameters
    ----------
    chunk : int > 0, default 20
        Number of entries of alpha in a working set.
    max_chunks : int > 0, default 1,000,000
        Number of working sets.

    References
    ----------
    .. [1] Kloft et al., lp-norm multiple kernel learning, JMLR 12 (2011), Algorithm 2.
    .. [2] Fan, Chen, Lin, Working set selection using second order information, JMLR 6 (2005).
    """

    name = "interleaved"
    advice = "Try method='cutting-plane' or 'exact'."
    chunk: int = 20
    max_chunks: int = 1_000_000

    def __post_init__(self) -> None:
        whole(self.chunk, "chunk")
        whole(self.max_chunks, "max_chunks")

    def match(self, structure: Structure) -> BallProblem | str:
        """Return the problem over an l_p ball; its loss must have a piecewise quadratic dual."""
        read = super().match(structure)
        if isinstance(read, str) or read.loss.quadratic:
            return read
        return f"its loss must have a piecewise quadratic dual, {read.loss!r} has none"

    def cost(self, match: BallProblem) -> Cost:
        # Measured: for p > 1 about nine passes over the entries, and some chunks at the start. For p = 1 the
        # weights of the unused kernels vanish slowly, one after the other. A chunk takes 0.25 ms, and reads
        # its rows twice: for its block of the kernel, and for the update of the images. Without bounds of the
        # dual variables, as of the squared loss, the condition number counts: measured, a thirtieth of the
        # trace of a kernel over the curvature, at C from 1 to 1000 and n from 200 to 800.
        m, n = match.reach.size, match.y.size
        chunks = 25 + 9 * n / self.chunk if match.p > 1 else 50 * m
        curve = match.loss.curve(match.y)
        if np.isinf(curve.lower).all() and np.isinf(curve.upper).all() and curve.curvature.all():
            chunks += float((match.reach * match.grams.traces).mean() / curve.curvature.mean()) / 30
        return ball_cost(match, chunks, 2.5e-4, rows=2 * min(self.chunk, n))

    def minimise(self, read: BallProblem, control: Control, w: Array, alpha: Array | None) -> None:
        curve, bias, reach = read.loss.curve(read.y), read.bias, read.reach
        memory = CACHE_BYTES / 2 if control.memory is None else control.memory
        cache = RowCache(read.grams, memory, 2 * self.chunk)
        started = alpha is not None and alpha.any()  # from alpha = 0 the images are known to be zero
        a = np.zeros(read.n) if alpha is None else alpha
        a = np.ascontiguousarray(read.loss.project(a, read.y, bias))
        images = np.array(read.grams.apply(a)) if started else np.zeros((len(reach), read.n))
        pairs, parts = smo_pairs if bias else coordinate_steps, np.array(curve[1:])
        for count in control.counted(self.max_chunks, "chunks"):
            g = (reach * w) @ images + curve.curvature * a - curve.linear
            Q, violation = working_set(curve, a, g, self.chunk, bias)
            slots, new = cache.fetch(Q), a[Q]
            K = compiled(combined_block, len(reach) * Q.size**2)(cache.rows, slots, Q, reach * w)
            tolerance, most = VIOLATION_SHARE * violation, STEPS_PER_ENTRY * Q.size
            compiled(pairs, most * passes_of_a_step(Q.size))(K, *parts[:, Q], new, g[Q], tolerance, most)
            moved = np.flatnonzero(new != a[Q])
            add = compiled(add_rows, 100 + images.size * moved.size / 50)
            add(cache.rows, slots[moved], (new - a[Q])[moved], images)
            a[Q] = new
            s = reach * (images @ a)
            updated = count >= FIRST_CHUNKS
            later = analytic_weights(w, s, read.p) if updated else w
            at_rest = updated and max(violation, np.abs(later - w).max()) <= STATIONARY
            if at_rest or count % REPORT_EVERY == 0:  # few chunks: the clock is read with them
                upper = read.upper((reach * w) @ images, w, s)
                if report_on_ball(read, control, w, a.copy(), s, upper) or at_rest:
                    return
            w = later

"""The search: Newton steps on the weights over a working set, and checks of all points."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from kernelopt.certificates.gap import relative_gap
from kernelopt.losses.base import Curve
from kernelopt.methods.checkpoint import kept
from kernelopt.methods.control import STALLED, Control
from kernelopt.methods.engine.growth import Model, grow
from kernelopt.methods.engine.master import minimum_on_ball
from kernelopt.methods.engine.provider import Provider, Single
from kernelopt.methods.engine.restricted import RestrictedLoss, is_sparse
from kernelopt.methods.engine.training import Samples, Trained, inverse_hessian
from kernelopt.methods.engine.weights import second_derivatives, way_back
from kernelopt.methods.engine.working_set import first_points, next_points
from kernelopt.methods.on_ball import warm_start
from kernelopt.numerics.norms import lp_length
from kernelopt.structure.ball import BallProblem
from kernelopt.validation import Array, Index

INSIDE = 1e-9  # distance from its bounds, relative to their distance, at which an alpha is free
FIRST_GAP, GAP_SHARE, LAST_SHARE = 2e-2, 2e-3, 0.4  # gap on the working set: see `Search.target`
TRAINING_SHARE = 0.1  # of the gap that is aimed at, for the training at fixed weights
LOOSE_SHARE = 3e-3  # of the best gap: training need not be more exact than this, but see `HALVED`
HALVED = 0.5  # a step that leaves more of the gap than this may have gone astray by inexact training
TIGHTER = 0.2  # factor of the gap aimed at where the last one was met and all points did not meet theirs
STALLED_ROUNDS, LITTLE = 5, 0.9  # checks in turn that reduce the gap to no less than this share of it
STEPS = 40  # Newton steps on one working set at most
GROWN = 3000  # points from which the first working set grows before all points are checked


@dataclass
class Step:
    """A trained machine with the forms of all kernels, on the working set.

    Attributes
    ----------
    w : array of shape (m,)
    trained : Trained
    images : array of shape (m, k)
        K_m alpha on the working set.
    s : array of shape (m,)
        alpha'K_m alpha.
    slope : array of shape (m,)
        The derivatives c - s / 2 of risk + c'w.
    value, lower : float
        Bounds of the minimum of risk + c'w, with the risk of the working set.
    least : float
        A lower bound of risk + c'w at the weights w.
    """

    w: Array
    trained: Trained
    images: Array
    s: Array
    slope: Array
    value: float
    lower: float
    least: float

    @property
    def gap(self) -> float:
        """The distance of the bounds, relative to the value."""
        return (self.value - self.lower) / max(abs(self.value), abs(self.lower), np.finfo(float).tiny)


class Search:
    """The state of the method: the weights w, alpha on all points, the working set and the gap aimed at.

    The next gap to aim at depends on `gap`, which is without the bound of the error of predictions.
    """

    def __init__(
        self,
        read: BallProblem,
        provider: Provider,
        control: Control,
        seed: int,
    ) -> None:
        self.read, self.provider, self.control = read, provider, control
        self.loss, self.y, self.bias = read.loss, read.y, read.bias
        self.curve: Curve = read.loss.curve(read.y)
        self.sparse = is_sparse(read.loss, self.curve)
        self.w, alpha = warm_start(read, control)
        initial = np.zeros(self.y.size) if alpha is None else alpha
        self.alpha = self.loss.project(initial, self.y, self.bias)
        self.solves = 0
        self._predicted = np.inf  # the best upper bound if predictions were exact
        n, labels = self.y.size, self.y if read.loss.kind == "labels" else None
        self.seed = seed
        if control.resumed:
            first, self.aim = control.resumed["points"].astype(np.intp), float(control.resumed["aim"])
        else:
            first = first_points(n, labels, seed) if self.sparse else np.arange(n)
            self.aim = np.inf
        self.points: Index = np.union1d(first, np.flatnonzero(self.alpha))
        self._active: Index = np.empty(0, dtype=np.intp)  # the working set of the provider
        self._combined_at: Array | None = None  # the weights of the kernel that was combined last on it

    def target(self, gap: float, before: float) -> float:
        """Return the gap to aim at on the working set, given the gap on all points and the last aim."""
        least = LAST_SHARE * self.control.tol
        if self.points.size == self.y.size or before <= least:
            return min(least, TIGHTER * before) if np.isfinite(before) else least
        return max(least, min(FIRST_GAP, GAP_SHARE * gap))

    def run(self) -> None:
        """Alternate between the working set and checks of all points, until the control says stop."""
        control = self.control
        if self.sparse and GROWN <= self.y.size and not (control.resumed or self.alpha.any()):
            self.points = grow(self.curve, self.points, self.seed, self._loose_model, self._predictions)
        self._activate(self.points)
        rounds = 0
        if not np.isfinite(self.aim):
            self.aim = self.target(np.inf, np.inf)
        while True:
            control.check()
            step = self._solve(self.aim)
            before = self.gap
            if self._check(step):
                return
            rounds = 0 if self.gap < LITTLE * before else rounds + 1
            if rounds >= STALLED_ROUNDS:
                control.stopped = STALLED
                return
            points = next_points(self.curve, self._t, self.alpha, self.points) if self.sparse else self.points
            same = points.size == self.points.size
            self.aim = self.target(self.gap, self.aim if same else np.inf)
            self._activate(points)

    @property
    def gap(self) -> float:
        """The gap of the best bounds, with predictions taken as exact.

        It is that of the control where they are. The bound of their errors does not fall as the steps go on,
        so that the gap of the control says nothing of the steps while that bound is the larger part of it.
        """
        return relative_gap(self.control.lower, self._predicted, self.control.floor)

    def _loose_model(self, points: Index) -> Model:
        """Solve the problem on a working set loosely, and return its model."""
        self._activate(points)
        step = self._solve(FIRST_GAP)
        self.w, self.alpha = step.w, np.zeros(self.y.size)
        self.alpha[points] = step.trained.alpha
        self.intercept = step.trained.intercept
        return Model(step.trained.alpha, step.trained.f + self.intercept)

    def _predictions(self, points: Index) -> Array:
        """Return the predictions of the last loose model."""
        support = np.flatnonzero(self.alpha)
        return self.provider.predict(self.w, support, self.alpha[support], points) + self.intercept

    def _activate(self, points: Index) -> None:
        """Let the working set be `points`, with the images of the present alpha."""
        if not np.array_equal(points, self._active):
            self.provider.activate(points)
            self._active, self._combined_at = points, None
        self.points = points
        everything = points.size == self.y.size and not self.sparse
        loss = self.loss if everything else RestrictedLoss(self.curve, points)
        self.samples = Samples(loss, self.y[points], self.bias)
        support = np.flatnonzero(self.alpha)
        self.a0 = self.alpha[points]
        if not support.size:
            self.images0 = np.zeros((self.provider.m, points.size))
        elif self.provider.refined:
            self.images0 = self.provider.exact_images(support, self.alpha[support], points)
        else:
            self.images0 = self.provider.images(self.a0, np.arange(points.size))

    def _solve(self, aim: float) -> Step:
        """Solve the problem on the working set to the gap `aim` by Newton steps; return the best step."""
        loose = LOOSE_SHARE
        if self._combined_at is not None:  # the working set is the last one, and alpha was trained on it
            best = step = self._evaluated(self.w, self.a0, self.images0)
        else:
            best = step = self._step(self.w, self.a0, self.images0, max(TRAINING_SHARE * aim, loose))
        if self.points.size == self.y.size and self.control.best is None:
            self._check(step)  # a point to return, where the call is ended during the next steps
        for _ in range(STEPS):
            if best.gap <= aim:
                break
            if step is not best and step.least > best.value:  # the value has risen
                along = step.w - best.w
                w = best.w + way_back(float(best.slope @ along), float(step.slope @ along)) * along
            else:
                w = self._next_weights(step)
            # Training is exact relative to the risk, and the gap is relative to risk + c'w.
            scale = min(1.0, abs(best.value) / (abs(best.trained.value) or 1.0))
            share = scale * max(TRAINING_SHARE * aim, loose * best.gap)
            step = self._step(w, step.trained.alpha, step.images, share)
            if step.gap > HALVED * best.gap:
                loose *= TIGHTER
            if step.gap < best.gap or step.value < best.value:
                best = step
        return best

    def _step(self, w: Array, a: Array, images: Array, share: float) -> Step:
        """Train at the weights w, starting at a with its images."""
        block = self._combined(w)
        trained = self.samples.train(block, self.block_unit, a, w @ images, share, self.control.check)
        self.solves += 1
        change = trained.alpha - self.a0
        images = self.images0 + self.provider.images(change, np.arange(change.size))
        return self._evaluated(w, trained.alpha, images)

    def _evaluated(self, w: Array, a: Array, images: Array) -> Step:
        """Return the bounds and derivatives at the weights w and a dual variable with its images."""
        trained = self.samples.machine(a, w @ images)
        s = np.maximum(images @ a, 0.0)
        bound = self.samples.loss.dual_value(a, self.samples.y) - self.read.most(s)
        c = self.read.linear
        price = float(c @ w)
        return Step(w, trained, images, s, c - s / 2, trained.value + price, bound, trained.lower + price)

    def _combined(self, w: Array) -> Single:
        """Return the kernel of the weights w on the working set in units of `block_unit`."""
        if self._combined_at is None or not np.array_equal(w, self._combined_at):
            self._block, self.block_unit = self.provider.combined(w), self.provider.unit(w)
            self._combined_at = w
        return self._block

    def _next_weights(self, step: Step) -> Array:
        """Return the weights after a Newton step."""
        curve = self.samples.loss.curve(self.samples.y)
        a, p = step.trained.alpha, self.read.p
        if np.isinf(p) and not self.read.priced:
            return self.read.start
        width = np.where(np.isfinite(curve.upper - curve.lower), curve.upper - curve.lower, 1.0)
        margin = INSIDE * width
        free = np.flatnonzero(
            (a > curve.lower + margin) & (a < curve.upper - margin) & ((curve.l1 == 0) | (a != 0))
        )
        t = step.trained.f + step.trained.intercept
        diagonal = inverse_hessian(self.samples.loss, self.samples.y, t)[free]
        block = self._combined(step.w)
        H = second_derivatives(block, self.block_unit, free, step.images[:, free], diagonal, self.bias)
        if not H.any():
            return self.read.best_weights(step.w, step.s)  # alpha is locally constant: the risk is affine
        w = minimum_on_ball(step.slope, H, step.w, p)
        if self.read.priced:
            return w
        length = lp_length(w, p)
        return w / length if length > 0 else step.w  # the risk decreases in every weight

    def _check(self, step: Step) -> bool:
        """Bound the optimum at the weights and alpha of a step, on all points; return whether to stop."""
        read, provider, n = self.read, self.provider, self.y.size
        alpha = np.zeros(n)
        # Of all points, the projection would move each entry by a rounding error.
        alpha[self.points] = self.samples.loss.project(step.trained.alpha, self.samples.y, self.bias)
        support = np.flatnonzero(alpha)
        c = alpha[support]
        s = np.maximum(provider.exact_images(support, c, support) @ c, 0.0)
        lower = read.lower(alpha, s)
        f = provider.predict(step.w, support, c, np.arange(n))
        error = provider.prediction_error(step.w) * float(np.abs(c).sum())
        upper = read.upper(f, step.w, s, error)
        predicted = read.upper(f, step.w, s)
        if error > 0 and not self._meets(lower, upper) and self._meets(lower, predicted):
            f = provider.exact_predictions(step.w, support, c, np.arange(n))
            upper = predicted = read.upper(f, step.w, s)
        self._predicted = min(predicted, self._predicted)
        self.w, self.alpha = step.w, alpha
        self._t = f + (self.loss.intercept(f, self.y) if self.bias else 0.0)
        return self.control.report(
            lower,
            upper,
            point=read.reach * step.w,
            proof=alpha,
            machines=[alpha],
            state=kept(w=step.w, alpha=alpha, points=self.points.astype(float), aim=np.array(self.aim)),
            provider=provider.name,
            passes=provider.passes,
            solves=self.solves,
        )

    def _meets(self, lower: float, upper: float) -> bool:
        """Whether these bounds, with those reported before, meet the tolerance."""
        control = self.control
        best = max(lower, control.lower), min(upper, control.upper)
        return relative_gap(*best, control.floor) <= control.tol

"""The search: Newton steps on the weights over a working set, and checks of all points."""

from __future__ import annotations

import numpy as np

from kernelopt.certificates.gap import relative_gap
from kernelopt.losses.curve import Curve
from kernelopt.methods.checkpoint import kept
from kernelopt.methods.control import STALLED, Control
from kernelopt.methods.engine.choice import double_provider
from kernelopt.methods.engine.growth import Model, grow
from kernelopt.methods.engine.master import minimum_on_ball
from kernelopt.methods.engine.provider import Block, Provider, gathered
from kernelopt.methods.engine.restricted import RestrictedLoss, is_sparse
from kernelopt.methods.engine.step import Step, free_samples, projected, weighted
from kernelopt.methods.engine.training import Samples, inverse_hessian
from kernelopt.methods.engine.weights import RIDGE, second_derivatives, way_back
from kernelopt.methods.engine.working_set import first_points, next_points
from kernelopt.methods.on_ball import EQUAL, warm_start
from kernelopt.numerics.norms import lp_length
from kernelopt.structure.ball import BallProblem
from kernelopt.validation import Array, Index

FIRST_GAP, GAP_SHARE, LAST_SHARE = 2e-2, 2e-3, 0.4  # gap on the working set: see `Search.target`
GROWN_GAP = 5e-3  # the first one for a set that has grown: violators of a looser model are others
TRAINING_SHARE = 0.1  # of the gap that is aimed at, for the training at fixed weights
LOOSE_SHARE = 3e-3  # of the best gap: training need not be more exact than this, but see `HALVED`
HALVED = 0.5  # a step that leaves more of the gap, and does not raise the value, lacks exact training
# Factor of the gap aimed at where the last one was met and all points did not meet theirs, and of the gap of
# training after a step that may have gone astray.
TIGHTER = 0.2
STALLED_ROUNDS, LITTLE = 5, 0.9  # checks in turn that reduce the gap to no less than this share of it
# In single precision: such checks, and steps in turn whose training misses its share and does not halve its
# gap, after which the search goes on in double precision.
SINGLE_ROUNDS, SINGLE_STEPS = 2, 3
# Of a weight that remains after a step in double precision: near w = 0 the risk may rise as 1 / w, of which
# the quadratic model knows nothing.
LEAST_SHARE = 0.1
STEPS = 40  # Newton steps on one working set at most
# The second derivatives at so many free samples, whose factorisation takes most of a step, serve the first
# step of the next solve too: measured, the gap after that step is the same within a tenth.
MANY_FREE = 1500
GROWN = 3000  # points from which the first working set grows before all points are checked


class Search:
    """The state of the method: the weights w, alpha on all points, the working set and the gap aimed at.

    The dual variables `alpha` have shape (r, n), one row for each risk. All risks have one working set, since
    they have one kernel: its matrices there, and their combinations, are computed once.

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
        self.n, learners = read.n, read.learners
        self.data = [Samples(each.loss, each.y, each.bias is not None) for each in learners]
        self.curves: list[Curve] = [each.loss.curve(each.y) for each in learners]
        self.sparse = all(map(is_sparse, [each.loss for each in learners], self.curves))
        self.w, alpha = warm_start(read, control)
        initial = np.zeros((len(learners), self.n)) if alpha is None else np.atleast_2d(alpha)
        self.alpha = projected(self.data, initial)
        self.solves = 0
        self.limited = self.double = False  # whether single precision limits the training, or is left
        self._first_gap = FIRST_GAP
        self._predicted = np.inf  # the best upper bound if predictions were exact
        labels = [each.y for each in learners if each.loss.kind == "labels"]
        self.seed = seed
        if control.resumed:
            first, self.aim = control.resumed["points"], control.resumed["aim"]
        else:
            first = first_points(self.n, labels, seed) if self.sparse else np.arange(self.n)
            self.aim = np.inf
        self.points: Index = np.union1d(first, np.flatnonzero(self.alpha.any(axis=0)))
        self._active: Index = np.empty(0, dtype=np.intp)  # the working set of the provider
        self._hessian: Array | None = None  # the last one, if it took long
        self._block: Block | None = None  # the kernel that was combined last on it, and its weights
        self._combined_at: Array | None = None

    def target(self, gap: float, before: float) -> float:
        """Return the gap to aim at on the working set, given the gap on all points and the last aim."""
        least = LAST_SHARE * self.control.tol
        if self.points.size == self.n or before <= least:
            return min(least, TIGHTER * before) if np.isfinite(before) else least
        return max(least, min(self._first_gap, GAP_SHARE * gap))

    def run(self) -> None:
        """Alternate between the working set and checks of all points, until the control says stop."""
        control = self.control
        if self.sparse and GROWN <= self.n and not (control.resumed or self.alpha.any()):
            self.points = grow(self.curves, self.points, self.seed, self._loose_model, self._predictions)
            self._first_gap = GROWN_GAP
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
            if not self.double and (self.limited or rounds >= SINGLE_ROUNDS):
                self._take_doubles()
                rounds = 0
            if rounds >= STALLED_ROUNDS:
                control.stopped = STALLED
                return
            points = (
                next_points(self.curves, self._t, self.alpha, self.points) if self.sparse else self.points
            )
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
        self.w, self.alpha = step.w, np.zeros_like(self.alpha)
        self.alpha[:, points] = step.alpha
        self.intercepts = [each.intercept for each in step.trained]
        return Model(step.alpha, step.t)

    def _predictions(self, points: Index) -> Array:
        """Return the predictions of the last loose model, in a row for each risk."""
        rows = []
        for alpha, intercept in zip(self.alpha, self.intercepts, strict=True):
            support = np.flatnonzero(alpha)
            rows.append(self.provider.predict(self.w, support, alpha[support], points) + intercept)
        return np.array(rows)

    def _activate(self, points: Index) -> None:
        """Let the working set be `points`, with the images of the present alpha."""
        if not np.array_equal(points, self._active):
            self._block, self._combined_at = None, None  # its memory is free for what the provider needs
            self.control.show(f"{self.control.method}: {points.size} of {self.n} points")
            self.provider.activate(points)
            self._active = points
        self.points = points
        everything = points.size == self.n and not self.sparse
        self.samples = [
            Samples(each.loss if everything else RestrictedLoss(curve, points), each.y[points], each.bias)
            for each, curve in zip(self.data, self.curves, strict=True)
        ]
        self.a0 = self.alpha[:, points]
        self.images0 = np.array([self._images(alpha, points) for alpha in self.alpha])

    def _images(self, alpha: Array, points: Index) -> Array:
        """Return the images of one alpha on the working set."""
        support = np.flatnonzero(alpha)
        if not support.size:
            return np.zeros((self.provider.m, points.size))
        if self.provider.refined:
            return self.provider.exact_images(support, alpha[support], points)
        return self.provider.images(alpha[points], np.arange(points.size))

    def _solve(self, aim: float) -> Step:
        """Solve the problem on the working set to the gap `aim` by Newton steps; return the best one.

        A step that raises the value is shortened towards the step of the lowest value.
        """
        if self._combined_at is not None:  # the working set is the last one, and alpha was trained on it
            step = self._evaluated(self.w, self.a0, self.images0)
        else:
            step = self._step(self.w, self.a0, self.images0, max(TRAINING_SHARE * aim, LOOSE_SHARE))
        best = lowest = step
        exactness, loosely, known = 1.0, 0, self._hessian
        if self.points.size == self.n and self.control.best is None:
            self._check(step)  # a point to return, where the call is ended during the next steps
        for _ in range(STEPS):
            if best.gap <= aim:
                break
            if step is not lowest and step.least > lowest.value:  # the value has risen
                along = step.w - lowest.w
                w = lowest.w + way_back(float(lowest.slope @ along), float(step.slope @ along)) * along
            else:
                w = self._next_weights(step, known)
                known = None
            # Training is exact relative to the risk, and the gap is relative to risk + c'w.
            scale = min(1.0, abs(lowest.value) / (abs(lowest.risk) or 1.0))
            share = scale * exactness * max(TRAINING_SHARE * aim, LOOSE_SHARE * best.gap)
            loose = max(aim, LOOSE_SHARE * best.gap, HALVED * step.gap_of_training)
            step = self._step(w, step.alpha, step.images, share)
            if step.gap > HALVED * best.gap and step.least <= lowest.value:
                exactness *= TIGHTER
            if step.value < lowest.value:
                lowest = step
            if step.gap < best.gap:
                best = step
            loosely = loosely + 1 if step.gap_of_training > loose else 0
            if loosely >= SINGLE_STEPS and not self.double:
                self.limited = True
                break
        return best

    def _take_doubles(self) -> None:
        """Go on in double precision, near the best weights, all positive: the last may have gone astray."""
        passes, self.double = self.provider.passes, True
        self.w = (1 - EQUAL) * self.control.best / self.read.reach + EQUAL * self.read.start
        self.provider = double_provider(self.read, self.control.memory)
        self.provider.passes = passes
        self._active, self._hessian = np.empty(0, dtype=np.intp), None

    def _step(self, w: Array, a: Array, images: Array, share: float) -> Step:
        """Train the machines at the weights w, starting at the rows of a with their images."""
        block, everything = self._combined(w), np.arange(self.points.size)
        alphas, found = np.empty_like(a), np.empty_like(images)
        for k, samples in enumerate(self.samples):
            start = w @ images[k]
            alphas[k] = samples.train(block, self.block_unit, a[k], start, share).alpha
            found[k] = self.images0[k] + self.provider.images(alphas[k] - self.a0[k], everything)
        self.solves += len(alphas)
        return self._evaluated(w, alphas, found)

    def _evaluated(self, w: Array, a: Array, images: Array) -> Step:
        """Return the bounds and derivatives at the weights w and dual variables with their images."""
        read, shares = self.read, self.read.shares
        rows = list(zip(self.samples, a, images, strict=True))
        trained = [samples.machine(alpha, w @ found) for samples, alpha, found in rows]
        s = np.array([np.maximum(found @ alpha, 0.0) for _, alpha, found in rows])
        duals = [samples.loss.dual_value(alpha, samples.y) for samples, alpha, _ in rows]
        risk, least = (weighted(shares, [getattr(t, of) for t in trained]) for of in ("value", "lower"))
        c, bound = read.linear, weighted(shares, duals) - read.most(s)
        price, slope = float(c @ w), c - read.total(s) / 2
        return Step(w, trained, images, s, slope, risk, risk + price, bound, least + price)

    def _combined(self, w: Array) -> Block:
        """Return the kernel of the weights w on the working set in units of `block_unit`."""
        if self._block is None or self._combined_at is None or not np.array_equal(w, self._combined_at):
            self._block, self.block_unit = self.provider.combined(w), self.provider.unit(w)
            self._combined_at = w
        return self._block

    def _next_weights(self, step: Step, hessian: Array | None) -> Array:
        """Return the weights after a Newton step, with the given second derivatives or those at the step."""
        p = self.read.p
        if np.isinf(p) and not self.read.priced:
            return self.read.start
        H = self._second_derivatives(step) if hessian is None else hessian
        if not H.any():
            return self.read.best_weights(step.w, step.s)  # alpha is locally constant: the risk is affine
        w = minimum_on_ball(step.slope, H, step.w, p)
        if self.double:
            w = np.maximum(w, LEAST_SHARE * step.w)
        length = lp_length(w, p)
        if self.read.priced:
            return w / max(1.0, length)
        return w / length if length > 0 else step.w  # the risk decreases in every weight

    def _second_derivatives(self, step: Step) -> Array:
        """Return the second derivatives of the risk at a step."""
        H, most, unit = np.zeros((step.w.size, step.w.size)), 0, self.provider.unit(step.w)
        ridge = unit * RIDGE["float64" if self.double else "float32"]
        for share, samples, machine, images in zip(
            self.read.shares, self.samples, step.trained, step.images, strict=True
        ):
            t = machine.f + machine.intercept
            free = free_samples(samples.loss, samples.y, machine.alpha)
            diagonal, most = inverse_hessian(samples.loss, samples.y, t)[free], max(most, free.size)
            M = self._entries(step.w, free)
            H += share * second_derivatives(M, unit, images[:, free], diagonal + ridge, samples.bias)
        self._hessian = H if most >= MANY_FREE else None
        return H

    def _entries(self, w: Array, chosen: Index) -> Array:
        """Return the kernel of the weights w at some positions of the working set, in float64, in its unit.

        Where the provider evaluates many of them by themselves, the combined kernel is forgotten: both at
        once would be the largest part of all memory.
        """
        if self.provider.direct and chosen.size >= MANY_FREE:
            self._block, self._combined_at = None, None
            return self.provider.entries(w, chosen)
        return gathered(self._combined(w), chosen)

    def _check(self, step: Step) -> bool:
        """Bound the optimum at the weights and alpha of a step, on all points; return whether to stop."""
        gap = f", gap {self.gap:.0e}" if np.isfinite(self.gap) else ""
        self.control.show(f"{self.control.method}: checking all points{gap}")
        read, provider, everything = self.read, self.provider, np.arange(self.n)
        alpha = np.zeros_like(self.alpha)
        # Of all points, the projection would move each entry by a rounding error.
        alpha[:, self.points] = projected(self.samples, step.alpha)
        f, s = np.empty_like(alpha), np.empty_like(step.s)
        supports = [np.flatnonzero(row) for row in alpha]
        for k, support in enumerate(supports):  # of one alpha after the other, whose images are kept
            c = alpha[k, support]
            s[k] = np.maximum(provider.exact_images(support, c, support) @ c, 0.0)
            f[k] = provider.predict(step.w, support, c, everything)
        lower = read.lower(alpha, s)
        error = provider.prediction_error(step.w) * np.abs(alpha).sum(axis=1)
        upper = read.upper(f, step.w, s, error)
        predicted = read.upper(f, step.w, s)
        if error.any() and not self._meets(lower, upper) and self._meets(lower, predicted):
            for k, support in enumerate(supports):
                f[k] = provider.exact_predictions(step.w, support, alpha[k, support], everything)
            upper = predicted = read.upper(f, step.w, s)
        self._predicted = min(predicted, self._predicted)
        self.w, self.alpha = step.w, alpha
        self._t = np.array(
            [
                t + (each.loss.intercept(t, each.y) if each.bias else 0.0)
                for each, t in zip(self.data, f, strict=True)
            ]
        )
        return self.control.report(
            lower,
            upper,
            point=read.reach * step.w,
            proof=alpha,
            machines=list(alpha),
            state=kept(w=step.w, alpha=alpha, points=self.points, aim=self.aim),
            provider=provider.name,
            passes=provider.passes,
            solves=self.solves,
        )

    def _meets(self, lower: float, upper: float) -> bool:
        """Whether these bounds, with those reported before, meet the tolerance."""
        control = self.control
        best = max(lower, control.lower), min(upper, control.upper)
        return relative_gap(*best, control.floor) <= control.tol

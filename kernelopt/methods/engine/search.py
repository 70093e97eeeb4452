"""The search: Newton steps on the weights over a working set, and checks of all points."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from kernelopt.certificates.gap import relative_gap
from kernelopt.errors import InsufficientMemoryError
from kernelopt.language.learner import Learner
from kernelopt.learner.newton import inverse_hessian
from kernelopt.methods.checkpoint import kept
from kernelopt.methods.control import STALLED, Control
from kernelopt.methods.engine.choice import double_provider
from kernelopt.methods.engine.master import minimum_on_ball
from kernelopt.methods.engine.provider import Provider
from kernelopt.methods.engine.settings import SETTINGS
from kernelopt.methods.engine.step import Step, projected, second_derivatives, train, way_back
from kernelopt.methods.engine.working_set import (
    RestrictedLoss,
    excess,
    first_points,
    is_sparse,
    next_points,
)
from kernelopt.methods.on_ball import EQUAL, best_weights, warm_start
from kernelopt.numerics.norms import lp_length
from kernelopt.running import machine_bytes
from kernelopt.structure.ball import BallProblem
from kernelopt.validation import Array, Index


@dataclass(frozen=True)
class State:
    """The weights and the dual variables, and the working set of the provider with their images there.

    Attributes
    ----------
    provider : Provider
    w : array of shape (m,)
    alpha : array of shape (r, n)
        One row for each risk. All risks have one working set, since they have one kernel.
    points : array of k int
    images : array of shape (r, m, k)
        K_m alpha on the working set.
    same : bool
        Whether alpha was trained on this working set.
    hessian : array of shape (m, m), or None
        The second derivatives at the last step.
    upper : float
        The best upper bound if predictions were exact. The bound of the control contains their error, which
        does not fall as the steps go on.
    """

    provider: Provider
    w: Array
    alpha: Array
    points: Index
    images: Array = field(default_factory=lambda: np.zeros(0))
    same: bool = False
    hessian: Array | None = None
    upper: float = np.inf


class Search:
    """The risks of one kernel over an l_p ball, and the call that minimises them."""

    def __init__(self, read: BallProblem, control: Control, seed: int) -> None:
        self.read, self.control, self.seed = read, control, seed
        self.curves = [each.loss.curve(each.y) for each in read.learners]
        pairs = zip(read.learners, self.curves, strict=True)
        self.sparse = all(is_sparse(each.loss, curve) for each, curve in pairs)
        self.data, self._samples = read.learners, (np.zeros(0, dtype=np.intp), list[Learner]())
        if self.sparse:  # with curves that are not computed at every check
            self.data = tuple(self.samples(np.arange(read.n)))
            self.read = replace(read, learners=self.data)

    def run(self, provider: Provider) -> None:
        """Alternate between the working set and checks of all points, until the control says stop."""
        control, n = self.control, self.read.n
        state, aim, first_gap, rounds = *self.start(provider), SETTINGS.first_gap, 0
        if self.sparse and n >= SETTINGS.grown and not (control.resumed or state.alpha.any()):
            state, first_gap = self.grown(state), SETTINGS.grown_gap
        state = self.activated(state, state.points)
        aim = aim if np.isfinite(aim) else self.target(state, np.inf, np.inf, first_gap)
        while True:
            control.check()
            step, limited, hessian = self.solved(state, aim)
            before = self.gap(state)
            state, t, stop = self.checked(state, step, aim)
            if stop:
                return
            rounds = 0 if self.gap(state) < SETTINGS.little * before else rounds + 1
            state = replace(state, hessian=hessian)
            if self.single(state) and (limited or rounds >= SETTINGS.single_rounds):
                state, rounds = self.doubled(state), 0
            if rounds >= SETTINGS.stalled_rounds:
                control.stopped = STALLED
                return
            points = next_points(self.curves, t, state.alpha, state.points) if self.sparse else state.points
            before = aim if points.size == state.points.size else np.inf
            aim = self.target(state, self.gap(state), before, first_gap)
            state = self.activated(state, points)

    def start(self, provider: Provider) -> tuple[State, float]:
        """Return the state of a checkpoint or a first one, and the gap to aim at, infinite without one."""
        control, n = self.control, self.read.n
        w, alpha = warm_start(self.read, control)
        initial = np.zeros((len(self.data), n)) if alpha is None else np.atleast_2d(alpha)
        alpha, aim = projected(self.data, initial), np.inf
        labels = [each.y for each in self.read.learners if each.loss.kind == "labels"]
        if control.resumed:
            first, aim = control.resumed["points"], control.resumed["aim"]
        else:
            first = first_points(n, labels, self.seed) if self.sparse else np.arange(n)
        return State(provider, w, alpha, np.union1d(first, np.flatnonzero(alpha.any(axis=0)))), aim

    def target(self, state: State, gap: float, before: float, first: float) -> float:
        """Return the gap to aim at on the working set, given the gap on all points and the last aim."""
        least = SETTINGS.last_share * self.control.tol
        if state.points.size == self.read.n or before <= least:
            return min(least, SETTINGS.tighter * before) if np.isfinite(before) else least
        return max(least, min(first, SETTINGS.gap_share * gap))

    def gap(self, state: State) -> float:
        """Return the gap of the best bounds, with predictions taken as exact."""
        return relative_gap(self.control.lower, state.upper, self.control.floor)

    def single(self, state: State) -> bool:
        """Whether the kernels are rounded to single precision."""
        return state.provider.name != "float64"

    def grown(self, state: State) -> State:
        """Return a state whose working set has met all points, a part of them at a time.

        A check of all points against the first, bad model costs as much as one against the last, and finds
        violators that a better model would not. So points are looked at in parts, each as large as all before
        it together, and every part is compared with a model of the points before it. Points with alpha != 0
        or near the interval in which alpha = 0 is optimal remain. The points of a part that are outside of
        the interval are added, for one of the risks.
        """
        points = state.points
        others = np.random.default_rng(self.seed).permutation(np.setdiff1d(np.arange(self.read.n), points))
        first, seen = points.size, 0
        sizes = [(first, first)]
        while seen < others.size:
            state = self.activated(state, points)
            step = self.solved(state, SETTINGS.first_gap)[0]
            state = replace(state, w=step.w, alpha=self.extended(state, step.alpha))
            part = others[seen : 2 * seen + first]
            seen += part.size
            near, outside = np.zeros(points.size, dtype=bool), np.zeros(part.size, dtype=bool)
            for curve, machine, a, t in zip(self.curves, step.trained, state.alpha, step.t, strict=True):
                size = float(np.mean(np.abs(curve.linear[points]))) or 1.0
                near |= (machine.alpha != 0) | (excess(curve.at(points), t) > -SETTINGS.kept * size)
                predicted = state.provider.predict(step.w, *sparse(a), part) + machine.intercept
                outside |= excess(curve.at(part), predicted) > 0
            points = np.concatenate([points[near], np.sort(part[outside])])
            sizes.append((first + seen, points.size))
            if len(sizes) > SETTINGS.forecast_parts:
                self.check_memory(state.provider, forecast(sizes, self.read.n), SETTINGS.forecast_margin)
        return replace(state, points=points, images=np.zeros(0))  # the provider has another working set

    def extended(self, state: State, alpha: Array) -> Array:
        """Return the dual variables on all points of those on the working set."""
        found = np.zeros((len(alpha), self.read.n))
        found[:, state.points] = alpha
        return found

    def activated(self, state: State, points: Index) -> State:
        """Return the state with the working set `points`, and the images of its alpha there."""
        provider, n = state.provider, self.read.n
        same = bool(state.images.size) and np.array_equal(points, state.points)
        if not same:
            self.check_memory(provider, points.size)
            self.control.show(f"{self.control.method}: {points.size} of {n} points")
            provider.activate(points)
        images = np.zeros((len(self.data), provider.m, points.size))
        for found, a in zip(images, state.alpha, strict=True):
            if provider.refined:
                found[:] = provider.exact_images(*sparse(a), points)
            elif a.any():
                found[:] = provider.images(a[points], np.arange(points.size))
        return replace(state, points=points, images=images, same=same)

    def check_memory(self, provider: Provider, size: int, margin: float = 1.0) -> None:
        """Raise an error where a working set of so many points does not fit, by a factor `margin`."""
        limit = machine_bytes() if self.control.memory is None else self.control.memory
        needed = provider.memory(size)
        if needed > margin * limit:
            n = self.read.n
            raise InsufficientMemoryError(
                f"a working set of {size:,} of {n:,} points must fit into memory, where it takes about "
                f"{needed / 1e9:.2g} GB, got {limit / 1e9:.2g} GB. What would fit: about "
                f"{int(n * (limit / needed) ** 0.5):,} points, or a smaller p or C or wider kernels, with "
                f"fewer support vectors. Else pass memory='{needed / 1e9:.2g}GB', where there is so much."
            )

    def samples(self, points: Index) -> list[Learner]:
        """Return the losses on the working set."""
        known, samples = self._samples
        if not samples or not np.array_equal(points, known):
            samples = [replace(each, y=each.y[points]) for each in self.data]
            if self.sparse or points.size < self.read.n:
                pairs = zip(samples, self.curves, strict=True)
                samples = [replace(each, loss=RestrictedLoss(curve, points)) for each, curve in pairs]
            self._samples = points, samples
        return samples

    def solved(self, state: State, aim: float) -> tuple[Step, bool, Array | None]:
        """Solve the problem on the working set to the gap `aim` by Newton steps; return the best one.

        A step that raises the value is shortened towards the step of the lowest value. The other results are
        whether single precision limits the training, and the last second derivatives.
        """
        samples, a = self.samples(state.points), state.alpha[:, state.points]
        H, known = state.hessian, state.points.size >= SETTINGS.many_points
        # After a solve the weights may be optimal already: then this training is to reach the gap aimed at.
        least = SETTINGS.loose_share if H is None else min(SETTINGS.loose_share, SETTINGS.halved * aim)
        share = max(SETTINGS.training_share * aim, least)
        first = Step.of(self.read, samples, state.w, a, state.images)
        step = first if state.same else self.trained(state, samples, first, state.w, share)
        best = lowest = step
        exactness, loosely = 1.0, 0
        if state.points.size == self.read.n and self.control.best is None:
            self.checked(state, step, aim)  # a point to return, where the call is ended during the next steps
        for _ in range(SETTINGS.steps):
            if best.gap <= aim:
                break
            if step is not lowest and step.least > lowest.value:  # the value has risen
                along = step.w - lowest.w
                w = lowest.w + way_back(float(lowest.slope @ along), float(step.slope @ along)) * along
            else:
                if H is None or not known:
                    H = self.hessian(state, samples, step)
                w, known = self.next_weights(state, step, H), False
            # Training is exact relative to the risk, and the gap is relative to risk + c'w.
            scale = min(1.0, abs(lowest.value) / (abs(lowest.risk) or 1.0))
            loose = SETTINGS.loose_share * best.gap
            share = scale * exactness * max(SETTINGS.training_share * aim, loose)
            missed = max(aim, loose, SETTINGS.halved * step.gap_of_training)
            step = self.trained(state, samples, step, w, share)
            if step.gap > SETTINGS.halved * best.gap and step.least <= lowest.value:
                exactness *= SETTINGS.tighter
            if step.value < lowest.value:
                lowest = step
            if step.gap < best.gap:
                best = step
            loosely = loosely + 1 if step.gap_of_training > missed else 0
            if loosely >= SETTINGS.single_steps and self.single(state):
                return best, True, H
        return best, False, H

    def trained(self, state: State, samples: list[Learner], start: Step, w: Array, share: float) -> Step:
        """Return the step at the weights w, with machines that are trained from the alpha of another step."""
        provider, everything = state.provider, np.arange(state.points.size)
        block, unit = provider.kernel(w), provider.unit(w)
        alphas, images = np.empty((len(samples), everything.size)), np.empty_like(start.images)
        for k, (each, a) in enumerate(zip(samples, start.alpha, strict=True)):
            alphas[k] = train(each, block, unit, a, w @ start.images[k], share).alpha
            change = alphas[k] - state.alpha[k, state.points]
            images[k] = state.images[k] + provider.images(change, everything)
        provider.solves += len(samples)
        return Step.of(self.read, samples, w, alphas, images)

    def hessian(self, state: State, samples: list[Learner], step: Step) -> Array:
        """Return the second derivatives of the risk at a step."""
        provider, unit = state.provider, state.provider.unit(step.w)
        H, ridge = np.zeros((step.w.size, step.w.size)), unit * SETTINGS.ridges[not self.single(state)]
        if np.isinf(self.read.p) and not self.read.priced:
            return H
        for share, each, machine, images in zip(
            self.read.shares, samples, step.trained, step.images, strict=True
        ):
            free = np.flatnonzero(each.loss.curve(each.y).free(machine.alpha))
            diagonal = inverse_hessian(each.loss, each.y, machine.f + machine.intercept)[free] + ridge
            # The entries are rounded to float32 already. A factor in float32, half as large, is tried first.
            single = free.size >= SETTINGS.many_free and self.single(state)
            for numbers in (np.float32, np.float64) if single else (np.float64,):
                found = second_derivatives(
                    provider.entries(step.w, free, numbers),  # nobody else keeps them
                    unit,
                    images[:, free],
                    diagonal,
                    each.has_intercept,
                )
                if found is not None:
                    H += share * found
                    break
        return H

    def next_weights(self, state: State, step: Step, H: Array) -> Array:
        """Return the weights after a Newton step with the second derivatives H."""
        read = self.read
        if np.isinf(read.p) and not read.priced:
            return read.start
        if not H.any():
            return best_weights(read, step.w, step.s)  # alpha is locally constant: the risk is affine
        w = minimum_on_ball(step.slope, H, step.w, read.p)
        if not self.single(state):
            w = np.maximum(w, SETTINGS.least_share * step.w)
        length = lp_length(w, read.p)
        if read.priced:
            return w / max(1.0, length)
        return w / length if length > 0 else step.w  # the risk decreases in every weight

    def doubled(self, state: State) -> State:
        """Go on in double precision, near the best weights, all positive: the last may have gone astray."""
        provider = double_provider(self.read, self.control.memory)
        provider.passes, provider.solves = state.provider.passes, state.provider.solves
        w = (1 - EQUAL) * self.control.best / self.read.reach + EQUAL * self.read.start
        return replace(state, provider=provider, w=w, images=np.zeros(0), hessian=None)

    def checked(self, state: State, step: Step, aim: float) -> tuple[State, Array, bool]:
        """Bound the optimum at the weights and alpha of a step, on all points.

        Returns the state with this step, the predictions on all points, and whether to stop.
        """
        gap = f", gap {self.gap(state):.0e}" if np.isfinite(self.gap(state)) else ""
        self.control.show(f"{self.control.method}: checking all points{gap}")
        read, provider, everything = self.read, state.provider, np.arange(self.read.n)
        # Of all points, the projection would move each entry by a rounding error.
        alpha = self.extended(state, projected(self.samples(state.points), step.alpha))
        f, s, supports = np.empty_like(alpha), np.empty_like(step.s), [sparse(a) for a in alpha]
        provider.grams.storage.keep_images(alpha)
        for k, (support, c) in enumerate(supports):  # of one alpha after the other, which is kept
            s[k] = np.maximum(provider.exact_forms(support, c), 0.0)
            f[k] = provider.predict(step.w, support, c, everything)
        lower, found = read.lower(alpha, s), read.primals(f, step.w, s)
        error = provider.prediction_error(step.w) * np.abs(alpha).sum(axis=1)
        upper, exact = (read.upper(f, step.w, s, each, found) for each in (error, 0.0))
        if error.any() and not self.meets(lower, upper) and self.meets(lower, exact):
            f = np.array([provider.exact_predictions(step.w, *each, everything) for each in supports])
            found = read.primals(f, step.w, s)
            upper = exact = read.upper(f, step.w, s, found=found)
        t = np.array([each.scale * row + each.intercept for each, row in zip(found, f, strict=True)])
        stop = self.control.report(
            lower,
            upper,
            point=read.reach * step.w,
            proof=alpha,
            machines=list(alpha),
            state=kept(w=step.w, alpha=alpha, points=state.points, aim=aim),
            provider=provider.name,
            passes=provider.passes,
            solves=provider.solves,
        )
        state = replace(state, w=step.w, alpha=alpha, upper=min(exact, state.upper))
        return state, t, stop

    def meets(self, lower: float, upper: float) -> bool:
        """Whether these bounds, with those reported before, meet the tolerance."""
        control = self.control
        best = max(lower, control.lower), min(upper, control.upper)
        return relative_gap(*best, control.floor) <= control.tol


def forecast(sizes: list[tuple[int, int]], n: int) -> int:
    """Return the size of a growing working set at n points, by the line through its last two logarithms.

    `sizes` has the points that were met and the size of the set after them.
    """
    (before, small), (met, large) = sizes[-2:]
    slope = np.log(large / small) / np.log(met / before) if met > before else 0.0
    return int(large * (n / met) ** min(1.0, max(0.0, slope)))


def sparse(alpha: Array) -> tuple[Index, Array]:
    """Return the support of a dual variable, and its entries there."""
    support = np.flatnonzero(alpha)
    return support, alpha[support]

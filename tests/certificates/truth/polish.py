"""Newton's method in 320 bits on the optimality conditions of a draw, from a point that a solver left.

The conditions of the saddle point in the dual variables, the intercepts, the weights and the multipliers of
their set are solved on the entries that are not at a bound; entries that leave their bounds, or are pulled
away from them, change sides after every step. What comes out proves nothing by itself: `Truth.learn` makes it
feasible and evaluates it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from mpmath import mp, mpf

from tests.certificates.truth.exact_algebra import INFINITE, ONE, ZERO, each, exact, solved
from tests.certificates.truth.truth import Truth

PROXIMAL = mpf(10) ** -40  # of a block's size: where the conditions do not determine the point
STEPS = 8
CLOSE = (1e-6, 1e-3)
LARGEST = 20  # dual variables: beyond, the points of the solvers must do


def polished(truth: Truth, mu: Any, alphas: Any, intercepts: Any) -> None:
    """Teach `truth` the points of Newton's method, from several guesses of the entries at bounds."""
    alone = truth.form in ("fixed", "spectrahedron", "constrained")
    if not (truth.form in SETS or alone) or truth.numbers.get("norm", 2) > 2:
        return
    if truth.n * len(truth.losses) > LARGEST:
        return
    for close in CLOSE:
        try:
            newton = Newton(truth, mu, alphas, intercepts, close)
            for _ in range(STEPS):
                if not newton.step():
                    break
        except ZeroDivisionError:  # singular conditions: the next guess
            continue
        newton.teach()
        if truth.width < 1e-9:
            return


class Newton:
    """The current point and its active entries."""

    def __init__(self, truth: Truth, mu: Any, alphas: Any, intercepts: Any, close: float) -> None:
        self.truth, self.losses = truth, truth.losses
        self.free_weights = truth.form in SETS and not np.isinf(
            truth.numbers["p"] if truth.form in BALLS else 1
        )
        self.mu = truth.feasible(mu)
        if truth.form == "spectrahedron":
            self.K = truth.radius * np.eye(truth.n, dtype=int)
        elif not self.free_weights:
            if truth.form in BALLS:  # p = inf: every weight is at the radius
                self.mu = np.array([truth.radius] * truth.m)
            self.K = truth.kernel(self.mu)
        self.alphas = [loss.inside(a) for loss, a in zip(self.losses, alphas, strict=True)]
        self.intercepts = [mpf(float(b)) for b in intercepts]
        self.moving = []  # entries of each alpha that are strictly inside
        self.used = [w > close * max(self.mu) for w in self.mu] if self.free_weights else []
        self.rows = SETS[truth.form](truth, self.mu, close) if self.free_weights else []
        self.nu = np.array([ZERO] * len(self.rows))
        for loss, a in zip(self.losses, self.alphas, strict=True):
            size = max([abs(v) for v in a] + [mpf(10) ** -300])
            room = [min(v - low, high - v) for v, low, high in zip(a, loss.lower, loss.upper, strict=True)]
            near = [
                mpf(close) * min(size, high - low) for low, high in zip(loss.lower, loss.upper, strict=True)
            ]
            kinked = loss.name == "epsilon_insensitive"
            self.moving.append(
                np.array(
                    [
                        r > e and not (kinked and abs(v) < close * size)
                        for r, e, v in zip(room, near, a, strict=True)
                    ]
                )
            )
        if len(self.rows):
            self._first_multipliers()

    def _forms(self) -> np.ndarray:
        """The slopes -sum share a'K_m a / 2 and what the price adds."""
        truth = self.truth
        slopes = sum(
            -s * np.array([a @ K @ a for K in truth.stack]) / 2
            for s, a in zip(truth.shares, self.alphas, strict=True)
        )
        price = mpf(truth.numbers.get("price", 0))
        if truth.form in ("square price", "elastic"):
            slopes = slopes + price * self.mu
        if truth.form == "linear price":
            slopes = slopes + price
        return slopes

    def _first_multipliers(self) -> None:
        """Least squares for the multipliers, one row after the other."""
        left = self._forms()
        G = np.array([row.gradient(self.mu) for row in self.rows])
        used = np.array(self.used)
        normal = G[:, used] @ G[:, used].T
        for i in range(len(normal)):
            normal[i, i] *= 1 + mpf(10) ** -20
        self.nu = solved(normal, -G[:, used] @ left[used])

    def step(self) -> bool:
        """One step of Newton's method; whether the point still moves."""
        truth = self.truth
        K = truth.kernel(self.mu) if self.free_weights else self.K
        sizes = [int(moving.sum()) for moving in self.moving]
        starts = np.cumsum([0, *(s + loss.bias for s, loss in zip(sizes, self.losses, strict=True))])
        used = np.flatnonzero(self.used) if self.free_weights else np.array([], dtype=int)
        first, last = int(starts[-1]), int(starts[-1]) + len(used)
        J = np.full((last + len(self.rows), last + len(self.rows)), ZERO, dtype=object)
        right = np.full(last + len(self.rows), ZERO, dtype=object)
        for k, loss in enumerate(self.losses):
            a, moving, at = self.alphas[k], np.flatnonzero(self.moving[k]), int(starts[k])
            inner = slice(at, at + len(moving))
            residual = loss.slope(a) - K @ a - self.intercepts[k]
            right[inner] = -residual[moving]
            block = -K[np.ix_(moving, moving)]
            diagonal = loss.bend(a)[moving]
            shift = PROXIMAL * max([abs(v) for v in np.diag(K)])
            for i in range(len(moving)):
                block[i, i] -= diagonal[i] + shift
            J[inner, inner] = block
            if loss.bias:
                J[inner, at + len(moving)] = -ONE
                J[at + len(moving), inner] = ONE
                right[at + len(moving)] = -sum(a)
                if not len(moving):
                    J[at + len(moving), at + len(moving)] = ONE
                    right[at + len(moving)] = ZERO
            for j, m in enumerate(used):
                slope = (truth.stack[m] @ a)[moving]
                J[inner, first + j] = -slope
                J[first + j, inner] = -truth.shares[k] * slope
        if self.free_weights:
            slopes = self._forms()
            for i, row in enumerate(self.rows):
                g, h = row.gradient(self.mu), row.bend(self.mu)
                slopes = slopes + self.nu[i] * g
                J[first:last, last + i] = g[used]
                J[last + i, first:last] = g[used]
                for j, m in enumerate(used):
                    J[first + j, first + j] += self.nu[i] * h[m]
                right[last + i] = -row.value(self.mu)
            price = mpf(truth.numbers.get("price", 0)) if truth.form in ("square price", "elastic") else ZERO
            for j, m in enumerate(used):
                scale = abs(self._forms()[m]) / (self.mu[m] or ONE)
                J[first + j, first + j] += price + PROXIMAL * scale
                right[first + j] = -slopes[m]
            for i in range(len(self.rows)):
                J[last + i, last + i] -= PROXIMAL * (1 / (abs(self.nu[i]) + mpf(10) ** -300))
        d = solved(J, right)
        return self._moved(d, starts, used, first, last)

    def _moved(self, d: np.ndarray, starts: np.ndarray, used: np.ndarray, first: int, last: int) -> bool:
        """Take a step; entries that leave their domain stop at its bound, and bounds that pull let go."""
        changed = False
        largest = ZERO
        for k, loss in enumerate(self.losses):
            moving, at = np.flatnonzero(self.moving[k]), int(starts[k])
            a = self.alphas[k].copy()
            size = max([abs(v) for v in a] + [mpf(10) ** -300])
            a[moving] += d[at : at + len(moving)]
            if loss.bias:
                self.intercepts[k] += d[at + len(moving)]
            for i in moving:
                low, high = loss.lower[i], loss.upper[i]
                if loss.name == "logistic":  # never at a bound
                    a[i] = min(max(a[i], (low + self.alphas[k][i]) / 2), (high + self.alphas[k][i]) / 2)
                elif loss.name == "epsilon_insensitive" and a[i] * self.alphas[k][i] < 0:
                    a[i], self.moving[k][i], changed = ZERO, False, True
                elif not low <= a[i] <= high:
                    a[i] = low if a[i] < low else high
                    self.moving[k][i], changed = False, True
            largest = max([largest, *(abs(v) / size for v in a - self.alphas[k])])
            self.alphas[k] = a
        if self.free_weights:
            mu = self.mu.copy()
            mu[used] += d[first:last]
            size = max(abs(v) for v in self.mu) or ONE
            for m in used:
                if mu[m] < 0:
                    mu[m], changed = ZERO, True
                    self.used[m] = False
            largest = max([largest, *(abs(v) / size for v in mu - self.mu)])
            self.mu = mu
            self.nu = self.nu + d[last:]
        if largest < mpf(10) ** -8:
            changed = self._let_go() or changed
        return (largest > mpf(10) ** -25 or changed) and largest < mpf(10) ** 30

    def _let_go(self) -> bool:
        """Free the entries at a bound that the gradient adjoints inside."""
        K = self.truth.kernel(self.mu) if self.free_weights else self.K
        changed = False
        for k, loss in enumerate(self.losses):
            a = self.alphas[k]
            pull = -(K @ a) - self.intercepts[k]
            l1 = loss.extra if loss.name == "epsilon_insensitive" else ZERO
            for i in np.flatnonzero(~self.moving[k]):
                p = pull[i] + (loss.y[i] if l1 else loss.slope(a)[i])
                if l1 and a[i] == 0:
                    inside = abs(p) > l1 * (1 + mpf(10) ** -30)
                    if inside:
                        self.alphas[k][i] = mp.sign(p) * mpf(10) ** -40 * loss.C[i]
                else:
                    p = p - l1 * mp.sign(a[i])
                    tiny = mpf(10) ** -30 * (abs(pull[i]) + abs(loss.y[i]))
                    inside = (a[i] == loss.lower[i] and p > tiny) or (a[i] == loss.upper[i] and p < -tiny)
                if inside:
                    self.moving[k][i], changed = True, True
        if self.free_weights:
            slopes = self._forms()
            sizes = abs(slopes)
            for i, row in enumerate(self.rows):
                slopes = slopes + self.nu[i] * row.gradient(self.mu)
            for m in range(self.truth.m):
                if not self.used[m] and slopes[m] < -(mpf(10) ** -30) * sizes[m]:
                    self.used[m], changed = True, True
        return changed

    def teach(self) -> None:
        """Hand the point to the truth."""
        if any(abs(v) == INFINITE for a in self.alphas for v in a):
            return
        truth = self.truth
        mu = self.mu
        if truth.form == "spectrahedron":
            truth.dual = max(truth.dual, truth.bound(self.alphas))
            a = self.alphas[0]
            K = np.outer(a, a) * (truth.radius / (a @ a)) if a @ a else None
            if K is not None:  # the PSD variable of the optimum has rank one
                f = K @ a
                b = self.intercepts[0]
                value = min(self.losses[0].machine(f, a @ f / 2, c) for c in (b, None))
                truth.primal = min(truth.primal, value)
            return
        truth.learn(mu, self.alphas, self.intercepts)
        truth.learn(mu, self.alphas, None)


# ------------------------------------------------------------- the rows of the sets


class Row:
    """One constraint c(mu) == 0 that is active."""

    def __init__(self, coefficients: np.ndarray, p: float = 1.0) -> None:
        self.coefficients, self.p = coefficients, mpf(p)

    def value(self, mu: np.ndarray) -> mpf:
        return sum(self._terms(mu, self.p)) - 1

    def gradient(self, mu: np.ndarray) -> np.ndarray:
        if self.p == 1:
            return self.coefficients
        return self.p * self.coefficients * self._terms(mu, self.p - 1)

    def bend(self, mu: np.ndarray) -> np.ndarray:
        if self.p == 1:
            return self.coefficients * 0
        return self.p * (self.p - 1) * self.coefficients**2 * self._terms(mu, self.p - 2)

    def _terms(self, mu: np.ndarray, power: mpf) -> np.ndarray:
        return each(lambda c, w: (c * w) ** power if c * w > 0 else ZERO, self.coefficients, mu)


def ball(truth: Truth, mu: np.ndarray, close: float) -> list[Row]:
    if truth.form == "elastic" and truth.used(mu) < 1 - close:
        return []
    return [Row(np.array([1 / truth.radius] * truth.m), truth.numbers["p"])]


def trace(truth: Truth, mu: np.ndarray, close: float) -> list[Row]:
    return [Row(truth.traces / mpf(truth.numbers["total"]))]


def caps(truth: Truth, mu: np.ndarray, close: float) -> list[Row]:
    A, b = exact(truth.numbers["A"]), exact(truth.numbers["b"])
    return [Row(row / c) for row, c in zip(A, b, strict=True) if row @ mu > (1 - close) * c]


BALLS = ("ball", "two risks", "ridge", "blocks")
SETS = {
    **dict.fromkeys((*BALLS, "elastic"), ball),
    "trace": trace,
    "at most a trace": trace,
    "caps": caps,
    "linear price": lambda truth, mu, close: [],
    "square price": lambda truth, mu, close: [],
}

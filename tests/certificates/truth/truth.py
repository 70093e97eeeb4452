"""The truth about a draw, in 320-bit arithmetic: values of exactly feasible points and of exact dual points.

Nothing here is the library's: losses, conjugates, projections and the minima over the sets of weights are
written once more, on numbers of 320 bits. Every value is a proof. A lower bound above the value of a feasible
point is false, and so is an upper bound below the value of a dual point, whoever proposed these points.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from mpmath import mp, mpf

from tests.certificates.truth.draws import Draw
from tests.certificates.truth.exact_algebra import (
    INFINITE,
    NEGLIGIBLE,
    ONE,
    ZERO,
    corners,
    definite,
    double,
    dual_norm,
    each,
    exact,
    first_multiplier,
    least_eigenvalue,
    p_norm,
    spanned,
)
from tests.certificates.truth.exact_losses import Loss

MATRICES = ("spectrahedron", "near")
PRICED = ("linear price", "square price", "elastic")


class Truth:
    """A draw in 320 bits; `primal` and `dual` are the best values that points have proved."""

    def __init__(self, draw: Draw) -> None:
        self.draw, self.form, self.numbers = draw, draw.form, draw.numbers
        self.losses = [Loss(part) for part in draw.parts]
        self.shares = [mpf(part.share) for part in draw.parts]
        self.stack = exact(draw.stack)
        self.m, self.n = draw.stack.shape[:2]
        self.traces = np.array([sum(K[i, i] for i in range(self.n)) for K in self.stack])
        self.ridge = mpf(self.numbers.get("tau", 0))
        self.radius = mpf(self.numbers["radius"])
        self.primal, self.dual = INFINITE, -INFINITE

    def kernel(self, mu: np.ndarray) -> np.ndarray:
        """K(mu), or the PSD part of the matrix mu, exactly PSD."""
        if self.form not in MATRICES:
            K = sum(w * K for w, K in zip(mu, self.stack, strict=True))
            return K + self.ridge * np.eye(self.n, dtype=int) if self.ridge else K
        values, vectors = np.linalg.eigh((mu + mu.T) / 2)
        root = exact(vectors * np.sqrt(np.maximum(values, 0)))
        K = root @ root.T
        return K * (self.radius / np.trace(K)) if self.form == "spectrahedron" and np.trace(K) else K

    def feasible(self, mu: Any, stretch: bool = True) -> np.ndarray | None:
        """Exactly feasible weights near `mu`; stretched to the boundary where every risk falls towards it."""
        if self.form in MATRICES:
            return np.asarray(mu, dtype=float)
        if self.form == "fixed" or (self.form == "blocks" and self.numbers["norm"] >= 2):
            return np.array([ONE] * self.m)
        mu = exact(mu)
        if self.form == "free signs":
            return self._definite(mu)
        mu = each(lambda v: max(v, ZERO), mu)
        used = self.used(mu)
        if self.form == "trace":
            return mu / used if used else None
        if used is None or used == 0:
            return mu
        return mu / used * (1 - NEGLIGIBLE) if used > 1 or (stretch and self.form not in PRICED) else mu

    def used(self, mu: np.ndarray) -> mpf | None:
        """The share of the set's bound that `mu` takes; None where the weights have no set."""
        match self.form:
            case "ball" | "two risks" | "ridge" | "elastic" | "blocks":
                return p_norm(mu, self.numbers["p"]) / self.radius
            case "trace" | "at most a trace" | "free signs":
                return self.traces @ mu / mpf(self.numbers["total"])
            case "caps":
                return max(exact(self.numbers["A"]) @ mu / exact(self.numbers["b"]))
        return None

    def _definite(self, mu: np.ndarray) -> np.ndarray | None:
        """Weights of the given trace whose kernel is PSD: mixed with the first kernel, an identity."""
        used = self.used(mu)
        if used <= 0:
            return None
        middle = np.array([ZERO] * self.m)
        middle[0] = mpf(self.numbers["total"]) / self.traces[0]
        for exponent in (None, *range(-60, 1)):
            share = ZERO if exponent is None else mpf(10) ** exponent
            mixed = (1 - share) * mu / used + share * middle
            if definite(self.kernel(mixed)):
                return mixed
        return None

    def price(self, mu: np.ndarray) -> mpf:
        """What the objective charges beside the risks."""
        price = mpf(self.numbers.get("price", 0))
        if self.form in ("square price", "elastic"):
            return price * sum(mu * mu) / 2
        if self.form in ("linear price", "constrained"):
            return price * sum(mu)
        if self.form == "near":
            return mpf(self.numbers["rho"]) * sum(((self.kernel(mu) - exact(self.numbers["S"])) ** 2).ravel())
        return ZERO

    def value(self, mu: Any, alphas: Any, intercepts: Any = None) -> mpf:
        """The objective at a feasible point near mu, with the machines f = K alpha + b."""
        mu = self.feasible(mu)
        return INFINITE if mu is None else self._value_at(mu, alphas, intercepts)

    def returned_value(self, mu: Any, alphas: Any, intercepts: Any) -> mpf:
        """The objective at weights that were returned, with the machines that were returned.

        Weights of free signs stay as they are if a feasible point is near. `value` would mix them with the
        identity until K is positive definite, by a power of ten: a change of 1e-12 in f costs C times that.
        """
        near = self.feasible(mu, stretch=False)
        if near is None:
            return INFINITE
        return self._value_at(exact(mu) if self.form == "free signs" else near, alphas, intercepts)

    def _value_at(self, mu: np.ndarray, alphas: Any, intercepts: Any) -> mpf:
        K, total, half = self.kernel(mu), self.price(mu), ZERO
        for k, loss in enumerate(self.losses):
            a = exact(alphas[k])
            f = K @ a
            half = a @ f / 2
            b = None if intercepts is None else intercepts[k]
            if self.form != "constrained":
                total += self.shares[k] * loss.machine(f, half, b)
            elif loss.name == "hard_margin":
                total *= loss.machine(f, half, b) / mpf(self.numbers["limit"])  # the risk at s mu is risk / s
            else:
                left = mpf(self.numbers["limit"]) - loss.value(f + (loss.intercept(f) if b is None else b))
                total = total * (half / left) if left > 0 else INFINITE
        return total

    def blocks_value(self, coefficients: np.ndarray) -> mpf:
        """The objective at f = sum of K_m coefficients_m under the block norm."""
        loss = self.losses[0]
        parts = [K @ exact(c) for K, c in zip(self.stack, coefficients, strict=True)]
        lengths = [mp.sqrt(exact(c) @ f) for c, f in zip(coefficients, parts, strict=True)]
        return loss.machine(sum(parts), p_norm(lengths, self.numbers["norm"]) ** 2 / 2)

    def bound(self, alphas: Any) -> mpf:
        """A lower bound of the optimum from dual variables near `alphas`."""
        alphas = [loss.inside(a) for loss, a in zip(self.losses, alphas, strict=True)]
        gain = sum(
            s * loss.dual_value(a) for s, loss, a in zip(self.shares, self.losses, alphas, strict=True)
        )
        forms = sum(
            s * np.array([a @ K @ a for K in self.stack]) for s, a in zip(self.shares, alphas, strict=True)
        )
        gain -= self.ridge * sum(s * (a @ a) for s, a in zip(self.shares, alphas, strict=True)) / 2
        price = mpf(self.numbers.get("price", 0))
        match self.form:
            case "ball" | "two risks" | "ridge":
                return gain - self.radius * dual_norm(forms, self.numbers["p"]) / 2
            case "trace" | "at most a trace":
                return gain - mpf(self.numbers["total"]) * max(forms / self.traces) / 2
            case "caps":
                return gain - max(corner @ forms for corner in corners(self.numbers)) / 2
            case "square price":
                return gain - sum(forms * forms) / (8 * price)
            case "elastic":
                slope = p_norm(forms, 2.0) / 2
                size = min(self.radius, slope / price)
                return gain - slope * size + price * size * size / 2
            case "linear price":
                scale = mp.sqrt(min([ONE, *(2 * price / f for f in forms if f > 0)]))
                return self.losses[0].dual_value(scale * alphas[0])
            case "constrained":
                share = min(2 * price / f for f in forms if f > 0) if any(f > 0 for f in forms) else ZERO
                return max(share * (gain - mpf(self.numbers["limit"])), ZERO)
            case "blocks":
                return gain - dual_norm([mp.sqrt(f) for f in forms], self.numbers["norm"]) ** 2 / 2
            case "spectrahedron":
                return gain - self.radius * (alphas[0] @ alphas[0]) / 2
            case "near":
                return gain + self._near(alphas[0])
            case "free signs":
                return gain + self._signed(alphas[0])
        return gain - forms[0] / 2

    def _near(self, a: np.ndarray) -> mpf:
        """min over K of rho |K - S|^2 - <aa'/2 + Z, K>, with a Z that is PSD."""
        rho, S = mpf(self.numbers["rho"]), exact(self.numbers["S"])
        values, vectors = np.linalg.eigh(
            self.numbers["S"] + np.outer(double(a), double(a)) / (4 * float(rho))
        )
        root = exact(vectors * np.sqrt(2 * float(rho) * np.maximum(-values, 0)))
        G = np.outer(a, a) / 2 + root @ root.T
        return -sum((G * G).ravel()) / (4 * rho) - sum((G * S).ravel())

    def _signed(self, a: np.ndarray) -> mpf:
        """min of -a'K(mu)a/2 over K(mu) PSD of the given trace: with Z PSD and nu one multiplier,

        -a'K_m a/2 == <Z, K_m> + nu tr K_m for every m proves total * nu. The slacks of a first Z are moved
        into the span of the kernels; then a multiple of the identity makes Z PSD, which nu pays for.
        """
        units = np.array([K / mp.sqrt(sum((K * K).ravel())) for K in self.stack])
        wanted = -np.array([a @ K @ a for K in units]) / 2
        Z = exact(first_multiplier(double(units), double(a)))
        flat = units.reshape(self.m, -1)
        nu = (wanted[0] - flat[0] @ Z.ravel()) / np.trace(units[0])
        missing = wanted - flat @ Z.ravel() - nu * np.array([np.trace(K) for K in units])
        Z = Z + sum(d * K for d, K in zip(spanned(flat @ flat.T, missing), units, strict=True))
        nu = (wanted[0] - flat[0] @ Z.ravel()) / np.trace(units[0])
        short = max(ZERO, -least_eigenvalue(Z))
        return mpf(self.numbers["total"]) * (nu - short)

    def learn(self, mu: Any = None, alphas: Any = None, intercepts: Any = None) -> None:
        """Take a point, and dual variables, into the best bounds."""
        if alphas is None or not all(np.isfinite(double(a)).all() for a in alphas):
            return
        self.dual = max(self.dual, self.bound(alphas))
        if mu is None and self.form in ("fixed", "blocks"):
            mu = np.ones(self.m)
        if self.form == "blocks":  # f_m = mu_m K_m alpha, with mu in the ball that the block norm is dual to
            self.primal = min(self.primal, self.blocks_value(np.outer(self.feasible(mu), exact(alphas[0]))))
        elif mu is not None:
            self.primal = min(self.primal, self.value(mu, alphas, intercepts))

    @property
    def width(self) -> float:
        """The distance of the two values, relative to their size."""
        size = max(abs(self.primal), abs(self.dual))
        return float((self.primal - self.dual) / size) if size and size < INFINITE else float(size)

"""Every loss once more, in 320 bits: its value, its dual and the dual's domain."""

from __future__ import annotations

import numpy as np
from mpmath import mp, mpf

from tests.certificates.truth.draws import Part
from tests.certificates.truth.exact_algebra import INFINITE, ONE, ZERO, each, exact


class Loss:
    """A loss in 320 bits: its value, and its dual l(a) with l's slope and bend on [lower, upper]."""

    def __init__(self, part: Part) -> None:
        self.name, self.bias = part.loss, part.bias
        self.y, self.C, self.extra = exact(part.y), exact(part.C), mpf(part.extra)
        n = part.y.size
        reach = {"squared": None, "epsilon_insensitive": None}.get(self.name, self.y)
        top = self.C if self.name not in ("squared_hinge", "hard_margin", "squared") else [INFINITE] * n
        two_sided = reach is None
        self.lower = np.array([-c if two_sided or y < 0 else ZERO for c, y in zip(top, self.y, strict=True)])
        self.upper = np.array([c if two_sided or y > 0 else ZERO for c, y in zip(top, self.y, strict=True)])

    def value(self, t: np.ndarray) -> mpf:
        return sum(each(self._value, t, self.y, self.C))

    def _value(self, t: mpf, y: mpf, C: mpf) -> mpf:
        short = max(1 - y * t, ZERO)
        match self.name:
            case "squared_hinge":
                return C * short * short / 2
            case "huberized_hinge":
                tau = self.extra
                return short * short / (2 * tau) if short <= tau * C else C * short - tau * C * C / 2
            case "hard_margin":
                return ZERO if short == 0 else INFINITE
            case "logistic":
                u = -y * t
                return C * (max(u, ZERO) + mp.log1p(mp.exp(-abs(u))))
            case "squared":
                return C * (t - y) ** 2 / 2
            case "epsilon_insensitive":
                return C * max(abs(t - y) - self.extra, ZERO)
        return C * short  # the hinge, and the one-class loss with y = 1

    def response(self, t: np.ndarray) -> np.ndarray:
        """Minus the derivative of the loss."""
        return each(self._response, t, self.y, self.C)

    def _response(self, t: mpf, y: mpf, C: mpf) -> mpf:
        short = max(1 - y * t, ZERO)
        match self.name:
            case "squared_hinge":
                return y * C * short
            case "huberized_hinge":
                return y * min(short / self.extra, C)
            case "logistic":
                return y * C / (1 + mp.exp(y * t))
            case "squared":
                return C * (y - t)
            case "epsilon_insensitive":
                return C * mp.sign(y - t) if abs(y - t) > self.extra else ZERO
        return y * C if short > 0 else ZERO

    def dual_value(self, a: np.ndarray) -> mpf:
        """l(a), for a in the domain."""
        return sum(each(self._conjugate, a, self.y, self.C))

    def _conjugate(self, a: mpf, y: mpf, C: mpf) -> mpf:
        match self.name:
            case "squared_hinge" | "squared":
                return y * a - a * a / (2 * C)
            case "huberized_hinge":
                return y * a - self.extra * a * a / 2
            case "epsilon_insensitive":
                return y * a - self.extra * abs(a)
            case "logistic":
                v = y * a / C
                return -C * sum(u * mp.log(u) for u in (v, 1 - v) if u > 0)
        return y * a

    def slope(self, a: np.ndarray) -> np.ndarray:
        match self.name:
            case "squared_hinge" | "squared":
                return self.y - a / self.C
            case "huberized_hinge":
                return self.y - self.extra * a
            case "epsilon_insensitive":
                return self.y - self.extra * each(mp.sign, a)
            case "logistic":
                v = self.y * a / self.C
                return each(lambda y, u: -y * mp.log(u / (1 - u)) if 0 < u < 1 else ZERO, self.y, v)
        return self.y + ZERO

    def bend(self, a: np.ndarray) -> np.ndarray:
        """Minus the second derivative of l."""
        match self.name:
            case "squared_hinge" | "squared":
                return 1 / self.C
            case "huberized_hinge":
                return self.C * 0 + self.extra
            case "logistic":
                v = self.y * a / self.C
                return each(lambda C, u: 1 / (C * u * (1 - u)) if 0 < u < 1 else ZERO, self.C, v)
        return self.C * 0

    def inside(self, a: np.ndarray) -> np.ndarray:
        """A point of the domain near a: clipped, and with an intercept balanced in the room that is left."""
        a = each(lambda v, low, high: min(max(v, low), high), exact(a), self.lower, self.upper)
        excess = sum(a)
        if not self.bias or excess == 0:
            return a
        room = a - self.lower if excess > 0 else self.upper - a
        endless = [r == INFINITE for r in room]
        share = np.array([ONE * e for e in endless]) if any(endless) else room
        return a - excess * share / sum(share)

    def intercept(self, f: np.ndarray) -> mpf:
        """A minimiser of the loss of f + b over b, by bisection."""
        if not self.bias:
            return ZERO
        if self.name == "hard_margin":
            signed = list(zip(f, self.y, strict=True))
            return -(min(v for v, y in signed if y > 0) + max(v for v, y in signed if y < 0)) / 2
        if self.name == "squared":
            return sum(self.C * (self.y - f)) / sum(self.C)
        reach = max(abs(v) for v in f) + max(abs(v) for v in self.y) + self.extra + 1
        while sum(self.response(f - reach)) < 0 or sum(self.response(f + reach)) > 0:
            reach *= 8
        low, high = -reach, reach
        for _ in range(90):
            b = (low + high) / 2
            low, high = (b, high) if sum(self.response(f + b)) > 0 else (low, b)
        return min((low, high), key=lambda b: self.value(f + b))

    def machine(self, f: np.ndarray, half_square: mpf, b: mpf | None = None) -> mpf:
        """The value of the machine f + b; for a hard margin, stretched until it meets it."""
        b = self.intercept(f) if b is None else b
        if self.name != "hard_margin":
            return half_square + self.value(f + b)
        reached = min(self.y * (f + b))
        return half_square / reached**2 if reached > 0 else INFINITE

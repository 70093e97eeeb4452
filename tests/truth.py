"""The truth about a draw, in 320-bit arithmetic: values of exactly feasible points and of exact dual points.

Nothing here is the library's: losses, conjugates, projections and the minima over the sets of weights are
written once more, on numbers of 320 bits. Every value is a proof. A lower bound above the value of a feasible
point is false, and so is an upper bound below the value of a dual point, whoever proposed these points.
"""

from __future__ import annotations

import itertools
from fractions import Fraction
from typing import Any

import numpy as np
from mpmath import mp, mpf

from tests.draws import Draw, Part

mp.prec = 320
ZERO, ONE = mpf(0), mpf(1)
INFINITE = mpf("inf")
NEGLIGIBLE = mpf(2) ** -250  # of the terms: what rounding to 320 bits leaves
MATRICES = ("spectrahedron", "near")
PRICED = ("linear price", "square price", "elastic")


def exact(values: Any) -> np.ndarray:
    """An array of doubles as one of 320-bit numbers."""
    array = np.asarray(values)
    if array.dtype == object:
        return array
    return np.array([mpf(float(v)) for v in array.ravel()], dtype=object).reshape(array.shape)


def double(values: np.ndarray) -> np.ndarray:
    return np.array([float(v) for v in np.ravel(values)]).reshape(np.shape(values))


def each(function: Any, *arrays: np.ndarray) -> np.ndarray:
    return np.array([function(*entries) for entries in zip(*arrays, strict=True)], dtype=object)


def p_norm(values: Any, p: float) -> mpf:
    """|values|_p; the exponent is the stored double."""
    values = [abs(v) for v in values]
    largest = max(values)
    if largest == 0 or p == np.inf:
        return largest
    return largest * sum((v / largest) ** mpf(p) for v in values) ** (1 / mpf(p))


def dual_norm(values: Any, p: float) -> mpf:
    """The norm dual to |.|_p."""
    if p == 1:
        return p_norm(values, np.inf)
    return p_norm(values, 1.0) if p == np.inf else p_norm(values, mpf(p) / (mpf(p) - 1))


# ------------------------------------------------------------- losses


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

    def conjugate(self, a: np.ndarray) -> mpf:
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


# ------------------------------------------------------------- values of points


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

    def feasible(self, mu: Any) -> np.ndarray | None:
        """Exactly feasible weights near `mu`, on the boundary where every risk falls towards it."""
        if self.form in MATRICES:
            return np.asarray(mu, dtype=float)
        if self.form == "fixed" or (self.form == "blocks" and self.numbers["norm"] >= 2):
            return np.array([ONE] * self.m)
        mu = exact(mu)
        if self.form == "free signs":
            return self._definite(mu)
        mu = each(lambda v: max(v, ZERO), mu)
        used = self.used(mu)
        if self.form in ("trace", "at most a trace"):
            return mu / used if used else None
        if used is None or used == 0:
            return mu
        return mu / used * (1 - NEGLIGIBLE) if used > 1 or self.form not in PRICED else mu

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
        if mu is None:
            return INFINITE
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
        gain = sum(s * loss.conjugate(a) for s, loss, a in zip(self.shares, self.losses, alphas, strict=True))
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
                return self.losses[0].conjugate(scale * alphas[0])
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


# ------------------------------------------------------------- matrices and corners


def definite(K: np.ndarray) -> bool:
    """Whether a Cholesky factorisation in 320 bits goes through, zero pivots with zero rows included."""
    K = K.copy()
    size = max(abs(v) for v in K.ravel())
    for i in range(len(K)):
        if K[i, i] < -NEGLIGIBLE * size:
            return False
        if K[i, i] <= NEGLIGIBLE * size:
            if max((abs(v) for v in K[i, i + 1 :]), default=ZERO) > mpf(2) ** -120 * size:
                return False
            continue
        K[i + 1 :, i + 1 :] -= np.outer(K[i + 1 :, i], K[i + 1 :, i]) / K[i, i]
    return True


def least_eigenvalue(Z: np.ndarray) -> mpf:
    """A number below the least eigenvalue, near it: a double, lowered until Z minus it is definite."""
    scale = max(abs(v) for v in Z.ravel()) + mpf(10) ** -300
    guess = mpf(float(np.linalg.eigvalsh(double(Z / scale))[0]))
    step = mpf(10) ** -18
    while not definite(Z / scale - (guess - step) * np.eye(len(Z), dtype=int)):
        step *= 10
    return (guess - step) * scale


def spanned(S: np.ndarray, right: np.ndarray) -> np.ndarray:
    """A solution of the consistent system S x = right with a PSD S, columns that depend on others unused."""
    m = len(right)
    M, x, rows = np.column_stack([S, right]), np.array([ZERO] * m), []
    for i in range(m):
        if abs(M[i, i]) > mpf(2) ** -150 * abs(S[i, i]):
            rows.append(i)
            for r in range(m):
                if r != i:
                    M[r] = M[r] - M[i] * (M[r, i] / M[i, i])
    for i in rows:
        x[i] = M[i, m] / M[i, i]
    return x


def first_multiplier(units: np.ndarray, a: np.ndarray) -> np.ndarray:
    """A multiplier Z of the PSD constraint from a solver: only its quality depends on that solver."""
    import cvxpy as cp

    n = a.size
    Z, nu = cp.Variable((n, n), PSD=True), cp.Variable()
    size = max(float(a @ a), 1e-300)
    rules = [cp.sum(cp.multiply(K, Z)) + nu * np.trace(K) == -a @ K @ a / (2 * size) for K in units]
    try:
        cp.Problem(cp.Maximize(nu), rules).solve(solver=cp.CLARABEL)
    except cp.SolverError:
        return np.zeros((n, n))
    if Z.value is None or not np.isfinite(Z.value).all():
        return np.zeros((n, n))
    return size * (Z.value + Z.value.T) / 2


def corners(numbers: dict[str, Any]) -> list[np.ndarray]:
    """The corners of {mu >= 0, A mu <= b}, exact."""
    A = [[Fraction(v) for v in row] for row in numbers["A"].tolist()]
    b = [Fraction(v) for v in numbers["b"].tolist()]
    rows, m = len(A), len(A[0])
    found = [[Fraction(0)] * m]
    for size in range(1, min(rows, m) + 1):
        for R in itertools.combinations(range(rows), size):
            for S in itertools.combinations(range(m), size):
                x = eliminated([[A[i][j] for j in S] for i in R], [b[i] for i in R])
                if x is None or min(x) < 0:
                    continue
                mu = [Fraction(0)] * m
                for j, v in zip(S, x, strict=True):
                    mu[j] = v
                if all(sum(a * v for a, v in zip(A[i], mu, strict=True)) <= b[i] for i in range(rows)):
                    found.append(mu)
    return [np.array([mpf(v.numerator) / v.denominator for v in mu]) for mu in found]


def eliminated(A: list[list[Fraction]], b: list[Fraction]) -> list[Fraction] | None:
    """The solution of a square system, None where it is singular."""
    n = len(b)
    M = [[*row, right] for row, right in zip(A, b, strict=True)]
    for i in range(n):
        pivot = next((r for r in range(i, n) if M[r][i] != 0), None)
        if pivot is None:
            return None
        M[i], M[pivot] = M[pivot], M[i]
        for r in range(n):
            if r != i:
                factor = M[r][i] / M[i][i]
                M[r] = [u - factor * v for u, v in zip(M[r], M[i], strict=True)]
    return [M[i][n] / M[i][i] for i in range(n)]


def solved(A: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The solution of a square system, with rows scaled and exchanged.

    Raises
    ------
    ZeroDivisionError
        If it is singular.
    """
    n = len(b)
    M = np.column_stack([A, b])
    for i in range(n):
        M[i] = M[i] / max(abs(v) for v in M[i, :n])
    for i in range(n):
        pivot = max(range(i, n), key=lambda r: abs(M[r, i]))
        M[[i, pivot]] = M[[pivot, i]]
        M[i + 1 :, i:] -= np.outer(M[i + 1 :, i] / M[i, i], M[i, i:])
    x = np.array([ZERO] * n)
    for i in reversed(range(n)):
        x[i] = (M[i, n] - M[i, i + 1 : n] @ x[i + 1 :]) / M[i, i] if i + 1 < n else M[i, n] / M[i, i]
    return x

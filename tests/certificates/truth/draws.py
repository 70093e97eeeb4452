"""Hard random learning problems, by seed: every loss and every form of a kernel, in any units.

The kernels are L L' with L on a grid of integers times a power of two, so that they are positive semidefinite
and exact as stored doubles. Their mean diagonal is from 1e-8 to 1e10, C from 1e-6 to 1e6.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import cvxpy as cp
import numpy as np

import kernelopt as ko

LOSSES = (
    "hinge",
    "squared_hinge",
    "huberized_hinge",
    "hard_margin",
    "logistic",
    "squared",
    "epsilon_insensitive",
    "one_class",
)
FORMS = (
    "ball",
    "trace",
    "at most a trace",
    "caps",
    "linear price",
    "square price",
    "elastic",
    "two risks",
    "ridge",
    "constrained",
    "fixed",
    "blocks",
    "free signs",
    "spectrahedron",
    "near",
)
EXPONENTS = (1.0, 4 / 3, 1.5, 2.0, 3.0, np.inf)
GRID = 2**20


@dataclass(frozen=True)
class Part:
    """One risk: share * risk(K, y, loss), with the loss given by name and numbers."""

    loss: str
    y: np.ndarray
    C: np.ndarray  # one per sample
    extra: float  # tau, or the half width of the tube
    bias: bool
    share: float = 1.0

    def risk(self, K: Any, norm: float = 2) -> Any:
        """The risk in the words of kernelopt."""
        C = float(self.C[0]) if np.ptp(self.C) == 0 else self.C
        loss = {
            "huberized_hinge": lambda: ko.huberized_hinge(C, self.extra),
            "hard_margin": ko.hard_margin,
            "epsilon_insensitive": lambda: ko.epsilon_insensitive(C, self.extra),
        }.get(self.loss, lambda: getattr(ko, self.loss)(C))()
        return ko.risk(K, None if self.loss == "one_class" else self.y, loss, bias=self.bias, norm=norm)


@dataclass(frozen=True, eq=False)
class Draw:
    """A problem with its data as stored doubles. Maximised, it is the negative of what `form` names."""

    seed: int
    form: str
    stack: np.ndarray  # (m, n, n)
    parts: tuple[Part, ...]
    numbers: dict[str, Any]  # of the set and of the price, by form
    problem: cp.Problem
    variable: cp.Variable | None
    maximize: bool = False
    kinds: tuple[str, ...] = field(default=())  # of the kernels

    def __str__(self) -> str:
        C = ", ".join(f"{p.loss} C={p.C.mean():.0e}" for p in self.parts)
        sizes = ", ".join(f"{np.trace(K) / len(K):.0e}" for K in self.stack)
        return f"seed {self.seed}: {self.form}, {C}, n={self.stack.shape[1]}, kernels {self.kinds} ({sizes})"


def on_grid(L: np.ndarray) -> np.ndarray:
    """L L' with L rounded to twenty bits: every product and sum is exact."""
    whole = np.round(L / np.abs(L).max() * GRID)
    return whole @ whole.T


def kernel(rng: np.random.Generator, points: np.ndarray, kind: str, before: list[np.ndarray]) -> np.ndarray:
    """One exact kernel of mean diagonal 1e-8 to 1e10."""
    n = len(points)
    if kind == "duplicate":
        return before[rng.integers(len(before))].copy()
    if kind == "cancelling":
        x = 1e5 + rng.integers(-9, 10, size=(n, rng.integers(1, 3)))
        return x @ x.T
    if kind == "identity":
        K = np.eye(n)
    elif kind == "gaussian":
        squares = ((points[:, None] - points[None]) ** 2).sum(2)
        values, vectors = np.linalg.eigh(np.exp(-squares / rng.choice([0.3, 2.0, 20.0])))
        K = on_grid(vectors * np.sqrt(np.maximum(values, 0)))
    else:
        K = on_grid(points if kind == "linear" else points[:, :1])
    wanted = rng.uniform(-8, 10) if rng.random() < 0.6 else rng.uniform(-1, 1)
    return K * 2.0 ** np.round(np.log2(10**wanted / (np.trace(K) / n)))


def part(rng: np.random.Generator, points: np.ndarray, name: str | None = None) -> Part:
    """One risk with its targets."""
    n = len(points)
    name = str(rng.choice(LOSSES)) if name is None else name
    noisy = points[:, 0] + 0.5 * rng.normal(size=n)
    y, size = np.sign(noisy), 1.0
    y[:2] = 1.0, -1.0
    if name in ("squared", "epsilon_insensitive"):
        size = float(rng.choice([1e-2, 1.0, 100.0]))
        y = np.round(size * noisy, 6)
    if name == "one_class":
        y = np.ones(n)
    C = np.full(n, 10 ** rng.uniform(-6, 6) if rng.random() < 0.6 else 1.0)
    if rng.random() < 0.2:
        C = C * rng.uniform(0.5, 2, n)
    extra = size * 10 ** rng.uniform(-3, 0) if name == "epsilon_insensitive" else 10 ** rng.uniform(-2, 2)
    bias = name != "one_class" and bool(rng.random() < 0.8)
    return Part(name, y, C, float(extra), bias)


def draw(seed: int, largest: int = 25) -> Draw:
    """The problem of a seed, with 5 to `largest` points."""
    rng = np.random.default_rng(seed)
    form = str(rng.choice(FORMS))
    semidefinite = form in ("free signs", "spectrahedron", "near")
    n = int(rng.integers(5, min(largest, 12 if semidefinite else largest) + 1))
    m = 1 if form in ("fixed", "spectrahedron", "near") else int(rng.integers(1, 7))
    points = rng.normal(size=(n, 3))
    first = part(rng, points)
    kinds, stack = [], []
    for i in range(m):
        choices = ["gaussian", "gaussian", "linear", "rank one", "identity", "cancelling"]
        kind = str(rng.choice(choices + (["duplicate"] if i else [])))
        if i == 0 and (first.loss == "hard_margin" or form in ("free signs", "constrained")):
            kind = "identity"  # separates any labels, fits any targets, and is strictly inside
        kinds.append(kind)
        stack.append(kernel(rng, points, kind, stack))
    parts = (first,)
    if form == "two risks":
        other = part(rng, points, name=str(rng.choice([name for name in LOSSES if name != "hard_margin"])))
        parts = (first, Part(other.loss, other.y, other.C, other.extra, other.bias, 0.5))
    maximize = bool(rng.random() < 0.15)
    numbers = {"p": float(rng.choice(EXPONENTS)), "radius": 10 ** rng.uniform(-3, 3)}
    if rng.random() < 0.1:
        numbers["radius"] = 10 ** rng.uniform(-16, -6)
    build = {"fixed": fixed, "blocks": blocks, "spectrahedron": matrix, "near": matrix}.get(form, weighted)
    objective, constraints, variable = build(rng, form, np.array(stack), parts, numbers)
    problem = cp.Problem(cp.Maximize(-objective) if maximize else cp.Minimize(objective), constraints)
    return Draw(seed, form, np.array(stack), parts, numbers, problem, variable, maximize, tuple(kinds))


def fixed(
    rng: np.random.Generator, form: str, stack: np.ndarray, parts: tuple[Part, ...], numbers: dict[str, Any]
) -> tuple[Any, list[Any], None]:
    """One constant kernel: the machine alone."""
    return parts[0].risk(stack[0]), [], None


def blocks(
    rng: np.random.Generator, form: str, stack: np.ndarray, parts: tuple[Part, ...], numbers: dict[str, Any]
) -> tuple[Any, list[Any], None]:
    """Constant kernels under a block norm."""
    norm = numbers["norm"] = float(rng.choice([1.0, 4 / 3, 2.0, 3.0, np.inf]))
    numbers["radius"], numbers["p"] = 1.0, norm / (2 - norm) if norm < 2 else np.inf
    return parts[0].risk(list(stack), norm=numbers["norm"]), [], None


def matrix(
    rng: np.random.Generator, form: str, stack: np.ndarray, parts: tuple[Part, ...], numbers: dict[str, Any]
) -> tuple[Any, list[Any], cp.Variable]:
    """A PSD variable: of fixed trace, or near a similarity."""
    n = len(stack[0])
    K = cp.Variable((n, n), PSD=True, name="K")
    objective = parts[0].risk(K)
    if form == "near":
        numbers["rho"] = 10 ** rng.uniform(-2, 2)
        S = rng.integers(-9, 10, size=(n, n)).astype(float)
        numbers["S"] = S + S.T
        return objective + numbers["rho"] * cp.sum_squares(K - numbers["S"]), [], K
    return objective, [cp.trace(K) == numbers["radius"]], K


def weighted(
    rng: np.random.Generator, form: str, stack: np.ndarray, parts: tuple[Part, ...], numbers: dict[str, Any]
) -> tuple[Any, list[Any], cp.Variable]:
    """Weights of a stack, in a set or at a price."""
    m, n = stack.shape[:2]
    mu = cp.Variable(m, name="mu") if form == "free signs" else cp.Variable(m, nonneg=True, name="mu")
    K = ko.combine(mu, stack)
    numbers["traces"] = traces = np.trace(stack, axis1=1, axis2=2)
    radius, total = numbers["radius"], numbers["radius"] * float(np.exp(np.log(traces).mean()))
    if form == "ridge":
        numbers["tau"] = float(10 ** rng.uniform(-3, 1))
    kernel = K + numbers["tau"] * np.eye(n) if form == "ridge" else K
    objective = cp.sum([p.share * p.risk(kernel) for p in parts])
    if form in ("ball", "two risks", "ridge"):
        return objective, ko.lp_ball(mu, numbers["p"], radius), mu
    if form in ("trace", "at most a trace", "free signs"):
        numbers["total"] = total
        if form == "at most a trace":
            return objective, [ko.trace(K) <= total], mu
        return objective, [ko.trace(K) == total, *([K >> 0] if form == "free signs" else [])], mu
    if form == "caps":
        rows = int(rng.integers(1, 4))
        A = rng.integers(0, 4, size=(rows, m)).astype(float)
        A[0] += A.sum(axis=0) == 0
        numbers["A"], numbers["b"] = A, radius * rng.integers(1, 5, size=rows)
        kept = A.any(axis=1)
        numbers["A"], numbers["b"] = A[kept], numbers["b"][kept]
        rule = zip(numbers["A"], numbers["b"], strict=True)
        return objective, [row @ mu <= float(b) for row, b in rule], mu
    price = numbers["price"] = 10 ** rng.uniform(-3, 3)
    if form == "linear price":
        return objective + price * cp.sum(mu), [], mu
    if form == "square price":
        return objective + price * cp.sum_squares(mu) / 2, [], mu
    if form == "elastic":
        numbers["p"] = 2.0
        return objective + price * cp.sum_squares(mu) / 2, ko.lp_ball(mu, 2, radius), mu
    at_zero = sum(p.risk(np.zeros((n, n))).value for p in parts)
    share = rng.uniform(0.05, 0.95)
    numbers["limit"] = float(share * at_zero if np.isfinite(at_zero) else 10 ** rng.uniform(-3, 3))
    return price * cp.sum(mu), [objective <= numbers["limit"]], mu

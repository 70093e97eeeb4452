"""Compound random problems, by seed, and their values in 320 bits at exactly feasible points.

The objectives are sums of risks, squares, exponentials and maxima of risks, and of squares, maxima, norms,
exponentials and logarithms of the weights. Risks share kernels, and some are bounded by constraints. Some
coefficients are parameters. Kernels, weights and objectives have scales from 1e-250 to 1e250, norms exponents
up to 5,000.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import cvxpy as cp
import numpy as np
from cvxpy.atoms.affine.unary_operators import NegExpression
from mpmath import mp, mpf

import kernelopt as ko
from kernelopt.language.risk import Risk
from tests.certificates.truth.draws import Part, on_grid
from tests.certificates.truth.exact_algebra import INFINITE, ZERO, exact, p_norm
from tests.certificates.truth.exact_losses import Loss

EXPONENTS = (1.0, 1.5, 2.0, 3.0, 4.0, 20.0, 50.0, 100.0, 500.0, 1000.0, 5000.0, np.inf)
LOSSES = (
    "hinge",
    "squared_hinge",
    "huberized_hinge",
    "logistic",
    "squared",
    "epsilon_insensitive",
    "one_class",
)
SETS = ("ball", "ball", "sum", "total", "box", "squares", "exponentials", "cap and floor")
CHANGE = (
    mpf(10) ** -14
)  # relative, of the weights: what makes a point feasible that is feasible up to rounding
STEPS = (ZERO, *(mpf(s) for s in (1e-16, 1e-15, 3e-15, 6e-15, 9.9e-15)))


@dataclass(frozen=True, eq=False)
class Compound:
    """A problem in the weights mu, the exact kernels of its risks, and a feasible point."""

    seed: int
    problem: cp.Problem
    mu: cp.Variable
    centre: np.ndarray
    risks: list[tuple[Any, Part, np.ndarray]]  # node, data and stack
    text: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        return f"seed {self.seed}: {', '.join(self.text)}"


class Drawing:
    """A compound problem while it is drawn."""

    def __init__(self, seed: int) -> None:
        self.rng = rng = np.random.default_rng([25, seed])
        self.seed, self.m, self.n = seed, int(rng.integers(1, 4)), int(rng.integers(1, 7))
        exponents = rng.uniform(-250, 250, 3) if rng.random() < 0.4 else rng.uniform(-6, 6, 3)
        used = rng.permutation(3) < rng.integers(1, 4)
        kernel, radius, self.factor = (
            10.0**e if use else 1.0 for e, use in zip(exponents, used, strict=True)
        )
        unit = np.log10(radius)  # C is about 1 / (kernel * radius), and at most 1e150
        kernel = 10.0 ** np.clip(np.log10(kernel), max(-250, -145 - unit), min(250, 250 - unit))
        self.radius, self.size = float(radius), kernel
        self.mu = cp.Variable(self.m, nonneg=True, name="mu")
        self.risks: list[tuple[Any, Part, np.ndarray]] = []
        self.text = [
            f"n={self.n}, m={self.m}, kernels {kernel:.0e}, radius {radius:.0e}, factor {self.factor:.0e}"
        ]
        self.stack = self.kernels()

    def kernels(self) -> np.ndarray:
        """Exact kernels of about the drawn size."""
        found = [on_grid(self.rng.normal(size=(self.n, int(self.rng.integers(1, 4))))) for _ in range(self.m)]
        scales = [self.size * 10 ** self.rng.uniform(-1, 1) / max(np.trace(K) / self.n, 1.0) for K in found]
        return np.array([K * 2.0 ** np.round(np.log2(c)) for K, c in zip(found, scales, strict=True)])

    def risk(self) -> Any:
        """A risk in units of its value at f = 0, with the kernels of the others or kernels of its own."""
        n = self.n
        name = str(self.rng.choice(LOSSES if n > 1 else LOSSES[-3:]))
        y = np.sign(self.rng.normal(size=n))
        y[:2] = (1.0, -1.0)[:n]
        if name in ("squared", "epsilon_insensitive"):
            y = np.round(self.rng.normal(size=n), 6) + 0.5
        y = np.ones(n) if name == "one_class" else y
        C = np.full(n, 10 ** self.rng.uniform(-2, 2) / self.size / self.radius)
        bias = name != "one_class" and n > 1 and bool(self.rng.random() < 0.7)
        extra = float(self.size * self.radius * 10 ** self.rng.uniform(-1, 1))
        part = Part(name, y, C, 0.1 if name == "epsilon_insensitive" else extra, bias)
        stack = self.stack if self.rng.random() < 0.6 else self.kernels()
        node = part.risk(ko.combine(self.mu, stack))
        self.risks.append((node, part, stack))
        unit = 2.0 ** np.round(np.log2(max(self.value_of(node, np.zeros(self.m)), 1e-290)))
        self.text.append(f"{name} C={C[0]:.0e}")
        return node / unit

    def value_of(self, node: Any, mu: np.ndarray) -> float:
        """The value of a risk at some weights."""
        self.mu.value = mu
        try:
            return float(node.value)
        except ko.SolverError:
            return np.inf
        finally:
            self.mu.value = None

    def number(self, value: float) -> Any:
        """A number, or a parameter with that value."""
        return cp.Parameter(nonneg=True, value=value) if self.rng.random() < 0.3 else value

    def of_risks(self) -> Any:
        """A convex function of one or two risks that increases in them."""
        kind = str(self.rng.choice(["risk", "risk", "square", "exp", "maximum", "two"]))
        self.text.append(f"of risks: {kind}")
        first = self.risk()
        match kind:
            case "square":
                return cp.square(first)
            case "exp":
                return cp.exp(first)
            case "maximum":
                return cp.maximum(first, self.number(0.5) * self.risk())
            case "two":
                return first + self.number(2.0) * self.risk()
        return first

    def of_weights(self) -> Any:
        """A convex function of the weights, in units of their radius; some are nearly cancelled."""
        kind = str(self.rng.choice(["price", "squares", "norm", "squared norm", "max", "exp", "log"]))
        self.text.append(f"of weights: {kind}")
        share = 10.0 ** self.rng.uniform(-10, 0)
        w, A = self.mu / self.radius, self.rng.integers(0, 4, size=(2, self.m)).astype(float)
        p = float(self.rng.choice(EXPONENTS))
        match kind:
            case "squares":
                return cp.sum_squares(A @ w - self.rng.integers(0, 3, size=2))
            case "norm":
                return ko.p_norm(w, p)
            case "squared norm":
                return cp.square(ko.p_norm(w, p))
            case "max":
                return cp.max(A @ w)
            case "exp":
                sign = -1.0 if self.rng.random() < 0.7 else 1.0
                return cp.sum(cp.exp(sign * share * w) - 1)
            case "log":
                return -cp.sum(cp.log(share * w + 1))
        return self.number(1.0) * cp.sum(w)

    def constraints(self) -> tuple[list[Any], np.ndarray]:
        """A bounded set of weights, and a point inside of it."""
        kind, R, mu = str(self.rng.choice(SETS)), self.radius, self.mu
        kind = "box" if kind == "squares" and not 1e-150 < R < 1e150 else kind
        self.text.append(kind)
        centre = np.full(self.m, 0.25 * R / self.m)
        match kind:
            case "ball":
                p = float(self.rng.choice(EXPONENTS))
                self.text[-1] += f" p={p}"
                return ko.lp_ball(mu, p, R), centre
            case "sum":
                return [cp.sum(mu) <= self.number(R)], centre
            case "total":
                return [cp.sum(mu) == R], 4 * centre
            case "squares":
                return [cp.sum_squares(mu) <= R * R], centre
            case "exponentials":
                return [cp.sum(cp.exp(mu / R) - 1) <= 1.0], centre
            case "cap and floor":
                return [mu <= R, cp.sum(cp.log(mu / R + 1)) >= 0.1], np.full(self.m, 0.5 * R)
        return [mu <= R], centre

    def problem(self) -> Compound:
        """The problem."""
        constraints, centre = self.constraints()
        objective = self.of_risks()
        for _ in range(int(self.rng.integers(0, 3))):
            objective = objective + self.number(float(10.0 ** self.rng.uniform(-3, 1))) * self.of_weights()
        if self.rng.random() < 0.25:
            bounded = self.risk() if self.rng.random() < 0.5 else self.risks[0][0]
            limit = self.value_of(bounded, centre) * (1 + 10.0 ** self.rng.uniform(-6, 0))
            if np.isfinite(limit):
                constraints = [*constraints, bounded <= limit]
                self.text.append("a bounded risk")
        objective = self.factor * objective
        maximize = bool(self.rng.random() < 0.15)
        goal = cp.Maximize(-objective) if maximize else cp.Minimize(objective)
        return Compound(self.seed, cp.Problem(goal, constraints), self.mu, centre, self.risks, self.text)


def compound(seed: int) -> Compound:
    """The problem of a seed."""
    return Drawing(seed).problem()


def strangers(drawn: Compound) -> list[dict[str, Any]]:
    """Three points of strangers: near the set, of any size with any machine, and in the set."""
    rng, mu = np.random.default_rng([52, drawn.seed]), drawn.mu
    alphas = [10 ** rng.uniform(-3, 3) * p.C * rng.normal(size=p.y.size) for _, p, _ in drawn.risks]
    near = 8 * drawn.centre * rng.random(drawn.centre.size)
    far = {mu: drawn.centre * 10 ** rng.uniform(-8, 8) * rng.random(drawn.centre.size)}
    return [
        {"candidate": {mu: near}},
        {"candidate": far, "alpha": alphas, "retrain": bool(rng.random() < 0.5)},
        {"candidate": {mu: drawn.centre}},
    ]


class Exact:
    """The values of a compound problem in 320 bits."""

    def __init__(self, drawn: Compound) -> None:
        self.drawn, self.sign = drawn, -1 if isinstance(drawn.problem.objective, cp.Maximize) else 1
        self.losses = [Loss(part) for _, part, _ in drawn.risks]
        self.stacks = [exact(stack) for _, _, stack in drawn.risks]
        self.positions = {id(node): k for k, (node, _, _) in enumerate(drawn.risks)}
        self.best = INFINITE  # the least value at a feasible point

    def objective(self, mu: np.ndarray, machines: Any) -> mpf:
        """The objective, as a minimum, of machines at weights; infinite where these are not feasible."""
        values = [self.machine(k, mu, *machine) for k, machine in enumerate(machines)]
        if any(v < 0 for v in mu) or not all(
            self.holds(c, mu, values) for c in self.drawn.problem.constraints
        ):
            return INFINITE
        found = self.sign * self.evaluated(self.drawn.problem.objective.args[0], mu, values)[()]
        self.best = min(self.best, found)
        return found

    def machine(self, k: int, mu: np.ndarray, alpha: Any, intercept: float) -> mpf:
        """The value of a machine, an upper bound of the k-th risk."""
        a = exact(alpha)
        f = sum(w * K for w, K in zip(mu, self.stacks[k], strict=True)) @ a
        return self.losses[k].machine(f, a @ f / 2, mpf(intercept))

    def holds(self, constraint: Any, mu: np.ndarray, risks: list[mpf]) -> bool:
        left, right = (self.evaluated(arg, mu, risks) for arg in constraint.args)
        slack = np.asarray(right - left, dtype=object)
        if isinstance(constraint, cp.constraints.Equality):
            return all(abs(v) < mpf(2) ** -280 * sum(mu) for v in np.ravel(slack))
        return all(v >= 0 for v in np.ravel(slack))

    def near(self, mu: np.ndarray) -> list[np.ndarray]:
        """Weights that differ by a relative 1e-14 at most; those of a given total meet it."""
        mu, centre = exact(mu), exact(self.drawn.centre)
        for c in self.drawn.problem.constraints:
            if isinstance(c, cp.constraints.Equality) and sum(mu):
                mu = mu * (sum(centre) / sum(mu))
                return [mu * (exact(float(c.args[1].value))[()] / sum(mu))]
        inward = [
            np.array([min(max(t, v * (1 - s)), v * (1 + s)) for v, t in zip(mu, centre, strict=True)])
            for s in STEPS
        ]
        return [*inward, *(mu * (1 - s) for s in STEPS[1:])]

    def evaluated(self, e: Any, mu: np.ndarray, risks: list[mpf]) -> np.ndarray:
        """The value of an expression, an array of 320-bit numbers."""
        if e is self.drawn.mu:
            return mu
        if isinstance(e, Risk):
            return np.array(risks[self.positions[id(e)]], dtype=object)
        if isinstance(e, cp.Constant | cp.Parameter):
            return exact(e.value.toarray() if hasattr(e.value, "toarray") else e.value)
        args = [self.evaluated(arg, mu, risks) for arg in e.args]
        found = VALUES[next(kind for kind in VALUES if isinstance(e, kind))](e, args)
        return np.reshape(np.asarray(found, dtype=object), e.shape)


def entrywise(function: Callable[[mpf], mpf]) -> Callable[[Any, Any], np.ndarray]:
    return lambda e, args: np.array([function(v) for v in np.ravel(args[0])], dtype=object)


def largest(e: Any, args: list[np.ndarray]) -> np.ndarray:
    columns = np.broadcast_arrays(*args)
    return np.array([max(values) for values in zip(*map(np.ravel, columns), strict=True)], dtype=object)


VALUES: dict[Any, Callable[[Any, Any], Any]] = {
    cp.atoms.affine.add_expr.AddExpression: lambda e, args: sum(args[1:], args[0]),
    NegExpression: lambda e, args: -args[0],
    cp.multiply: lambda e, args: args[0] * args[1],
    cp.atoms.affine.binary_operators.MulExpression: lambda e, args: (
        args[0] @ args[1] if args[0].ndim and args[1].ndim else args[0] * args[1]
    ),
    cp.atoms.affine.binary_operators.DivExpression: lambda e, args: args[0] / args[1],
    cp.atoms.affine.promote.Promote: lambda e, args: np.full(e.shape, args[0].ravel()[0], dtype=object),
    cp.Sum: lambda e, args: sum(np.ravel(args[0]), ZERO),
    cp.exp: entrywise(mp.exp),
    cp.log: entrywise(mp.log),
    type(cp.power(cp.Variable(nonneg=True), 2.5, approx=False)): lambda e, args: args[0] ** int(e.p.value),
    cp.quad_over_lin: lambda e, args: sum(v * v for v in np.ravel(args[0])) / args[1].ravel()[0],
    cp.Pnorm: lambda e, args: p_norm(np.ravel(args[0]), float(e.p)),
    cp.norm1: lambda e, args: p_norm(np.ravel(args[0]), 1.0),
    cp.norm_inf: lambda e, args: p_norm(np.ravel(args[0]), np.inf),
    cp.max: lambda e, args: max(np.ravel(args[0])),
    cp.maximum: largest,
}
"""The values of atoms, by class; subclasses come before their classes."""

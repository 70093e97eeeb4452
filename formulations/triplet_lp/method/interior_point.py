"""The interior-point method for the programmes of relative comparisons: Mehrotra's predictor and corrector.

The scaling of slacks and multipliers is Nesterov's and Todd's.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

import kernelopt as ko
from formulations.triplet_lp.comparison_data import ComparisonData
from formulations.triplet_lp.method.multipliers import cut, value
from formulations.triplet_lp.method.problem import TripletProgramme, matched
from formulations.triplet_lp.method.rows import Normal, Rows
from formulations.triplet_lp.method.settings import SETTINGS
from kernelopt.extend import FLOOR_SHARE, Array, Cost, Method, Outcome, check, register_method


class Orthant:
    """The inequalities of the rows: a slack y = G p - h and its multiplier z, with the scaling W = diag(w).

    Attributes
    ----------
    y, z, one : arrays
        The last is the unit of the products of the first two.
    v : array
        The scaled point W^-1 y = W'z.
    sums : array
        v_i + v_j, by which products are divided; i = j here.
    shortfall : array
        W^-1 (G p - h - y).
    """

    def __init__(self, rows: Rows, y: Array, z: Array) -> None:
        self.rows, self.y, self.z, self.one = rows, y, z, np.ones(y.size)

    def scale(self, p: Array) -> None:
        """Compute W, v, `sums` and `shortfall`."""
        self.w, self.v = np.sqrt(self.y / self.z), np.sqrt(self.y * self.z)
        self.sums = 2 * self.v
        self.shortfall = self.image(p) - (self.rows.h + self.y) / self.w

    def image(self, p: Array) -> Array:
        """Return W^-1 G p."""
        return np.asarray(self.rows.G @ p / self.w)

    def adjoint(self, t: Array) -> Array:
        """Return G'W^-T t."""
        return np.asarray(self.rows.transposed @ (t / self.w))

    def product(self, a: Array, b: Array) -> Array:
        """Return the symmetric product."""
        return a * b

    def longest(self, d: Array) -> float:
        """Return the longest step for which v + step d is in the cone."""
        falls = d < 0
        return float(np.min(-self.v[falls] / d[falls], initial=np.inf))

    def move(self, dy: Array, dz: Array) -> None:
        """Add scaled steps to y and z."""
        self.y, self.z = self.y + dy * self.w, self.z + dz / self.w

    def correction(self, mu: float, y: Array, z: Array) -> Array:
        """Return what a target changes by for products that are nearer to mu than y z."""
        moved = np.clip(y * z, SETTINGS.small * mu, SETTINGS.large * mu) - y * z
        return np.asarray(np.maximum(moved, -SETTINGS.large * mu) / self.v)


class Semidefinite:
    """K >> 0 on the sum of the ranges of the kernels, in the terms of `Orthant`, with W d = R d R'.

    K >> 0 has no interior where all kernels share a null vector, as they do for equal points. It then holds
    exactly if it holds on the sum of the ranges. The normal matrix has the entries
    <R^-1 K_p R^-T, R^-1 K_q R^-T>, so that an iteration needs 2 m n^3 and m^2 n^2 / 2 multiplications. A
    solver that keeps K as n (n + 1) / 2 variables factors a matrix of that order, which takes n^6 / 24.

    Attributes
    ----------
    V : array of shape (n, k)
        An orthonormal basis of the sum of the ranges.
    """

    def __init__(self, data: ComparisonData, price: float) -> None:
        n, m = data.points.size, data.m
        check(SETTINGS.setup * n**3)
        kernels = np.ascontiguousarray(data.cone_entries.T).reshape(m, n, n)
        _, values, vectors = np.linalg.svd(np.linalg.qr(kernels.reshape(m * n, n), mode="r"))
        self.V = vectors[values > SETTINGS.null * values.max(initial=0.0)].T
        self.kernels, self.one = self.V.T @ kernels @ self.V, np.eye(self.V.shape[1])
        self.y, self.z = data.margin * self.one, price * self.one

    def scale(self, p: Array) -> None:
        left, right = np.linalg.cholesky(self.y), np.linalg.cholesky(self.z)
        U, values, Vt = np.linalg.svd(right.T @ left)
        self.R, self.inverse = left @ Vt.T / np.sqrt(values), (U / np.sqrt(values)).T @ right.T
        self.v, self.sums, self.others = np.diag(values), values[:, None] + values, p.size - len(self.kernels)
        self.scaled = (self.inverse @ self.kernels @ self.inverse.T).reshape(len(self.kernels), -1)
        self.shortfall = self.image(p) - self.v

    def image(self, p: Array) -> Array:
        return np.asarray((p[self.others :] @ self.scaled).reshape(self.v.shape))

    def adjoint(self, t: Array) -> Array:
        return np.pad(self.scaled @ t.ravel(), (self.others, 0))

    def product(self, a: Array, b: Array) -> Array:
        return np.asarray((a @ b + b @ a) / 2)

    def longest(self, d: Array) -> float:
        root = 1 / np.sqrt(np.diag(self.v))
        low = float(np.linalg.eigvalsh(root[:, None] * d * root)[0])
        return -1 / low if low < 0 else np.inf

    def move(self, dy: Array, dz: Array) -> None:
        Y, Z = self.y + self.R @ dy @ self.R.T, self.z + self.inverse.T @ dz @ self.inverse
        self.y, self.z = (Y + Y.T) / 2, (Z + Z.T) / 2

    def correction(self, mu: float, y: Array, z: Array) -> Array:
        return 0 * y


def target(cone: Any, mu: float, dy: Array, dz: Array) -> Array:
    """Return the sum of the scaled steps that lead to the products mu, with a second-order term."""
    missing = mu * cone.one - cone.product(cone.v, cone.v) - cone.product(dy, dz)
    return np.asarray(2 * missing / cone.sums)


class Step(NamedTuple):
    """A step of the point and of the scaled slacks and multipliers, and the lengths of both."""

    p: Array
    dy: list[Array]
    dz: list[Array]
    primal: float
    dual: float


class Newton:
    """The iterate of an infeasible primal-dual method for the programme of checked data.

    The variables eps, s and r, and all slacks are eliminated. A Newton step solves a system in the m weights.

    References
    ----------
    .. [1] Mehrotra, On the implementation of a primal-dual interior point method, SIAM J. Optim. 2 (1992).
    .. [2] Gondzio, Multiple centrality corrections in a primal-dual method for linear programming, COAP 6
       (1996).
    .. [3] Todd, Toh, Tutuncu, On the Nesterov-Todd direction in semidefinite programming, SIAM J. Optim. 8
       (1998).
    """

    def __init__(self, data: ComparisonData, gamma1: float) -> None:
        self.data, self.rows, self.iterations = data, Rows.of(data, gamma1), 0
        margin, T, m, P = data.margin, data.T, data.m, data.pairs[0].size
        R = self.rows.h.size - 2 * (T + m)
        size = margin / (float(np.abs(data.diagonal).mean()) or 1.0)
        # The multipliers v are near gamma2 at the start, where z = 0 for u = 0 and w = 0.
        price = data.gamma2 + gamma1 / (float(np.abs(data.diagonal).sum(axis=0).max()) or 1.0)
        self.p = np.repeat([2 * margin, size, margin, 0.0], [T, data.F, P, len(self.rows.K)])
        y = np.repeat([margin, 2 * margin, size, margin], [T, T, 2 * m, R])
        z = np.repeat([0.3, 0.7, gamma1 / 2, price], [T, T, 2 * m, R])  # u is between 0 and 1
        self.cones: list[Any] = [Orthant(self.rows, y, z)]
        if data.cone == "psd" and data.cone_entries.any():
            self.cones.append(Semidefinite(data, price))

    @property
    def alpha(self) -> Array:
        """The weights."""
        return self.p[-self.data.m :]

    @property
    def multipliers(self) -> Array:
        """The multipliers y of the programme: u, and of the cone (v, w), vec Z, or none."""
        data, z, pairs = self.data, self.cones[0].z, self.data.pairs[0].size
        above, below, v = np.split(z[2 * (data.T + data.m) :], [pairs, 2 * pairs])
        cone = np.concatenate([v, below - above])
        if data.cone == "psd":
            cone = np.zeros(len(data.cone_entries))
            for matrix in self.cones[1:]:
                cone += (matrix.V @ matrix.z @ matrix.V.T).ravel()
        return np.concatenate([z[: data.T], cone])

    def state(self) -> dict[str, Array]:
        """Return the arrays from which the iteration can go on."""
        return {"p": self.p, **{f"{k}{c}": vars(cone)[k] for c, cone in enumerate(self.cones) for k in "yz"}}

    def restore(self, state: dict[str, Array]) -> None:
        """Go on from what `state` has returned; empty leaves the start."""
        self.p = state.get("p", self.p)
        for c, cone in enumerate(self.cones):
            cone.y, cone.z = state.get(f"y{c}", cone.y), state.get(f"z{c}", cone.z)

    def gap(self) -> float:
        """Return the sum of the products of slacks and multipliers."""
        return sum(float((cone.y * cone.z).sum()) for cone in self.cones)

    def iterate(self) -> float:
        """Take a step, and return the longer of its two lengths."""
        gap, count = self.gap(), sum(len(cone.one) for cone in self.cones)
        self.factor()
        step = self.step([target(cone, 0.0, 0 * cone.v, 0 * cone.v) for cone in self.cones])
        after = sum(float((y * z).sum()) for y, z in self.after(step, 0.0))
        mu = max(after / gap, 0.0) ** 3 * gap / count
        targets = [target(cone, mu, *d) for cone, *d in zip(self.cones, step.dy, step.dz, strict=True)]
        step = self.step(targets)
        for _ in range(SETTINGS.corrections):
            if min(step.primal, step.dual) > SETTINGS.short:
                break
            moved = zip(self.cones, targets, self.after(step, SETTINGS.reach), strict=True)
            targets = [t + cone.correction(mu, *products) for cone, t, products in moved]
            longer = self.step(targets)
            if longer.primal + longer.dual < step.primal + step.dual + SETTINGS.gain:
                break
            step = longer
        self.p = self.p + step.primal * step.p
        for cone, dy, dz in zip(self.cones, step.dy, step.dz, strict=True):
            cone.move(step.primal * dy, step.dual * dz)
        self.iterations += 1
        return max(step.primal, step.dual)

    def factor(self) -> None:
        """Compute the scaling and the factors at the point."""
        for cone in self.cones:
            cone.scale(self.p)
        self.normal = Normal(self.rows, self.cones[0].z / self.cones[0].y)
        self.normal.factor(sum(cone.scaled @ cone.scaled.T for cone in self.cones[1:]))

    def step(self, targets: list[Array]) -> Step:
        """Return the Newton step for which scaled slacks and multipliers change by `targets` together."""
        pairs = list(zip(self.cones, targets, strict=True))
        p = self.normal.solve(
            sum(cone.adjoint(cone.v + t - cone.shortfall) for cone, t in pairs) - self.rows.c
        )
        dy = [cone.image(p) + cone.shortfall for cone in self.cones]
        dz = [t - d for t, d in zip(targets, dy, strict=True)]
        primal, dual = (
            min(
                1.0,
                *(SETTINGS.fraction * cone.longest(d) for cone, d in zip(self.cones, changes, strict=True)),
            )
            for changes in (dy, dz)
        )
        return Step(p, dy, dz, primal, dual)

    def after(self, step: Step, reach: float) -> list[tuple[Array, Array]]:
        """Return the scaled slacks and multipliers after a step whose lengths are longer by `reach`."""
        primal, dual = min(1.0, step.primal + reach), min(1.0, step.dual + reach)
        changes = zip(self.cones, step.dy, step.dz, strict=True)
        return [(cone.v + primal * dy, cone.v + dual * dz) for cone, dy, dz in changes]


@dataclass(frozen=True)
class InteriorPointMethod(Method):
    """Newton steps on the kernel weights: every constraint, K >> 0 too, adds a matrix of order m.

    For `kernel_design` and `feature_selection` with gamma1 > 0, over any cone. Unlike a vertex of
    "column-generation", the point has small numbers where the weights of the optimum are zero.
    """

    name = "interior-point"

    def match(self, structure: ko.Structure) -> TripletProgramme | str:
        """Match the programmes of this package with a price of the weights."""
        found = matched(structure)
        priced = isinstance(found, str) or found.gamma1 > 0
        return found if priced else "it needs gamma1 > 0: without it the dual has no interior"

    def cost(self, match: TripletProgramme) -> Cost:
        data = match.data
        m, n = data.m, data.points.size
        pairs = n**2 / 2 if data.cone == "dominant" else min(2 * data.T, n**2 / 2)
        # Measured: 2 ms an iteration, 0.1 us for a triplet or pair, and 10 Gflop/s for the normal matrix.
        operations = 1.3 * m**2 * pairs + m**3
        if data.cone == "psd":
            operations += 4 * m * n**3 + m**2 * n**2
        return Cost(SETTINGS.usual_iterations * (2e-3 + 1e-7 * (data.T + pairs) + 1e-10 * operations))

    def run(self, match: TripletProgramme, control: Any) -> Outcome | None:
        data, gamma1 = match.data, match.gamma1
        iterate, at_zero = Newton(data, gamma1), data.margin * data.T
        iterate.restore(control.resumed)
        # For a larger gap the certificate of "psd" solves a conic programme, which takes longer than two more
        # iterations.
        tol = min(control.tol, SETTINGS.loose / 2) if data.cone == "psd" else control.tol
        with control:
            for _ in range(SETTINGS.most_iterations):
                alpha, y = iterate.alpha, iterate.multipliers
                inside = data.depth(alpha).min() >= 0
                upper = min(data.value(alpha, gamma1), at_zero) if inside else at_zero
                lower = value(data, gamma1, cut(data, y))
                control.report(lower, upper, point=alpha, proof=y, state=iterate.state)
                small = SETTINGS.enough * tol * max(upper, FLOOR_SHARE * at_zero)
                if control.stopped or control.gap <= tol or iterate.gap() <= small:
                    break
                check(SETTINGS.passes * iterate.rows.h.size)
                try:
                    with np.errstate(all="ignore"):  # numbers that are not finite are refused by the factors
                        if not iterate.iterate() > SETTINGS.stuck:
                            break
                except (np.linalg.LinAlgError, ValueError):  # a matrix is singular to the working precision
                    break
        if control.proof is None:
            return None
        # Where no weights were in the cone, the certificate moves the last ones into it.
        alpha = control.best if control.upper < at_zero else iterate.alpha
        return match.outcome(alpha, control.proof, self.name, iterate.iterations)


register_method(InteriorPointMethod())

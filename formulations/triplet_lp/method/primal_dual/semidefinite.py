"""K >> 0 as a constraint of an interior-point method, with the scaling of Nesterov and Todd."""

from __future__ import annotations

from typing import Any

import numpy as np

from formulations.triplet_lp.comparison_data import ComparisonData
from formulations.triplet_lp.method.primal_dual.constraints import first_price
from formulations.triplet_lp.method.primal_dual.entries import Vectors
from kernelopt.extend import Array, check

SETUP = (
    1e-9  # seconds over n^3, measured: singular values and orthogonal factors, which cannot be interrupted
)

NULL = 1e-12  # singular values below this share of the largest are those of a common null space


def common_range(kernels: Array) -> Array:
    """Return an orthonormal basis, in columns, of the sum of the ranges of the kernels.

    K >> 0 has no interior where all kernels share a null vector, as they do for equal points. It then holds
    exactly if it holds on the sum of the ranges.
    """
    m, n, _ = kernels.shape
    _, values, vectors = np.linalg.svd(np.linalg.qr(kernels.reshape(m * n, n), mode="r"))
    return np.asarray(vectors[values > NULL * values.max(initial=0.0)].T)


class Semidefinite:
    """K = Y >> 0 with the multiplier Z >> 0, both on the sum of the ranges of the kernels.

    The scaling of Nesterov and Todd is a matrix R with R^-1 Y R^-T = R' Z R = diag(l). In these coordinates
    the normal matrix has the entries <R^-1 K_p R^-T, R^-1 K_q R^-T>, so that an iteration needs 2 m n^3 and
    m^2 n^2 / 2 multiplications. A solver that keeps K as n (n + 1) / 2 variables factors a matrix of that
    order, which takes n^6 / 24.
    """

    point = ("Y", "Z")  # the names of what an iterate consists of
    fields = ("dy", "dz", "target")  # and a step

    def __init__(self, data: ComparisonData, gamma1: float) -> None:
        n = data.points.size
        check(SETUP * n**3)
        kernels = np.ascontiguousarray(data.cone_entries.T).reshape(data.m, n, n)
        self.V = common_range(kernels)
        self.kernels = self.V.T @ kernels @ self.V
        self.flat = self.kernels.reshape(data.m, -1)
        self.count = self.V.shape[1]
        one = np.eye(self.count)
        self.Y, self.Z = data.margin * one, first_price(data, gamma1) * one

    @property
    def multipliers(self) -> Array:
        """Z on all points, as a vector."""
        return np.asarray((self.V @ self.Z @ self.V.T).ravel())

    def of(self, alpha: Array) -> Array:
        """Return K on the sum of the ranges."""
        return np.asarray((alpha @ self.flat).reshape(self.Y.shape))

    def depth(self, entries: Vectors) -> float:
        """Return the smallest eigenvalue of K on the sum of the ranges."""
        return float(np.linalg.eigvalsh(self.of(entries.alpha))[0])

    def gap(self) -> float:
        """Return <Y, Z>."""
        return float((self.Y * self.Z).sum())

    def gap_after(self, primal: float, dual: float) -> float:
        """Return <Y, Z> after the step."""
        middle = np.diag(self.values)
        return float(((middle + primal * self.dy) * (middle + dual * self.dz)).sum())

    def residual(self, entries: Vectors) -> Array:
        """Return K - Y."""
        return self.of(entries.alpha) - self.Y

    def dual_residual(self, out: Vectors) -> float:
        """Add <Z, K_p> to the part of the weights."""
        out.alpha += self.flat @ self.Z.ravel()
        return 0.0

    def normal_matrix(self, entries: Vectors, H: Array) -> Any:
        """Compute the scaling, and add the normal matrix to H."""
        left, right = np.linalg.cholesky(self.Y), np.linalg.cholesky(self.Z)
        U, self.values, Vt = np.linalg.svd(right.T @ left)
        root = np.sqrt(self.values)
        self.R, self.inverse = left @ Vt.T / root, (U / root).T @ right.T
        self.sums = self.values[:, None] + self.values
        self.scaled = (self.inverse @ self.kernels @ self.inverse.T).reshape(len(self.flat), -1)
        self.shortfall = self.inverse @ self.residual(entries) @ self.inverse.T
        H += self.scaled @ self.scaled.T
        return None

    def centred(self, target: float, second_order: bool) -> Array:
        """Return the right-hand side of the scaled dY + dZ for Y Z equal to `target` times I."""
        products = np.diag(target - self.values**2)
        if second_order:
            product = self.dy @ self.dz
            products = products - (product + product.T) / 2
        return np.asarray(2 * products / self.sums)

    def corrected(self, target: float, primal: float, dual: float) -> Array:
        """Return the right-hand side of the last step: only inequalities are corrected."""
        return self.target

    def right_side(self, target: Array, out: Vectors) -> None:
        """Add the right-hand side of the reduced Newton equations to `out`."""
        self.target = target
        out.alpha += self.scaled @ (target - self.shortfall + np.diag(self.values)).ravel()

    def step(self, step: Vectors) -> None:
        """Compute the scaled steps of Y and Z from that of the weights."""
        self.dy = (step.alpha @ self.scaled).reshape(self.Y.shape) + self.shortfall
        self.dz = self.target - self.dy

    def lengths(self) -> tuple[float, float]:
        """Return the longest steps for which Y and Z are positive semidefinite."""
        root = 1 / np.sqrt(self.values)
        lowest = [float(np.linalg.eigvalsh(root[:, None] * d * root)[0]) for d in (self.dy, self.dz)]
        primal, dual = (-1 / low if low < 0 else np.inf for low in lowest)
        return primal, dual

    def move(self, primal: float, dual: float) -> None:
        """Take the step."""
        Y = self.Y + primal * (self.R @ self.dy @ self.R.T)
        Z = self.Z + dual * (self.inverse.T @ self.dz @ self.inverse)
        self.Y, self.Z = (Y + Y.T) / 2, (Z + Z.T) / 2

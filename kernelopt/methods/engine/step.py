"""`Step`: the trained machines at one weight vector of the search; sums and projections over risks."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from kernelopt.certificates.gap import relative_gap
from kernelopt.methods.engine.settings import SETTINGS
from kernelopt.methods.engine.training import Samples, Trained
from kernelopt.numerics.decompositions import bordered_solution
from kernelopt.structure.ball import BallProblem
from kernelopt.validation import Array


@dataclass
class Step:
    """The trained machines of the r risks with the forms of all kernels, on the working set of k points.

    Attributes
    ----------
    w : array of shape (m,)
    trained : list of r Trained
    images : array of shape (r, m, k)
        K_m alpha on the working set.
    s : array of shape (r, m)
        alpha'K_m alpha.
    slope : array of shape (m,)
        The derivatives c - s / 2 of risk + c'w, with the sum of the risks times their shares.
    risk : float
        The risk on the working set.
    value, lower : float
        Bounds of the minimum of risk + c'w, with the risk of the working set.
    least : float
        A lower bound of risk + c'w at the weights w.
    """

    w: Array
    trained: list[Trained]
    images: Array
    s: Array
    slope: Array
    risk: float
    value: float
    lower: float
    least: float

    @classmethod
    def of(cls, read: BallProblem, samples: list[Samples], w: Array, alpha: Array, images: Array) -> Step:
        """Return the bounds and derivatives at the weights w and dual variables with their images."""
        shares, rows = read.shares, list(zip(samples, alpha, images, strict=True))
        trained = [each.machine(a, w @ found) for each, a, found in rows]
        s = np.array([np.maximum(found @ a, 0.0) for _, a, found in rows])
        duals = [each.loss.dual_value(a, each.y) for each, a, _ in rows]
        risk, least = (weighted(shares, [getattr(t, of) for t in trained]) for of in ("value", "lower"))
        c, bound = read.linear, weighted(shares, duals) - read.most(s)
        price, slope = float(c @ w), c - read.total(s) / 2
        return cls(w, trained, images, s, slope, risk, risk + price, bound, least + price)

    @property
    def alpha(self) -> Array:
        """The dual variables of the machines, shape (r, k)."""
        return np.array([each.alpha for each in self.trained])

    @property
    def t(self) -> Array:
        """The predictions on the working set, with the intercepts, shape (r, k)."""
        return np.array([each.f + each.intercept for each in self.trained])

    @property
    def gap(self) -> float:
        """The distance of the bounds, relative to the value."""
        return relative_gap(self.lower, self.value)

    @property
    def gap_of_training(self) -> float:
        """The distance of the bounds at the weights w, relative to the value."""
        return relative_gap(self.least, self.value)


def projected(data: list[Samples], alpha: Array) -> Array:
    """Return the projection of each row of alpha on the domain of the dual of its risk."""
    pairs = zip(data, alpha, strict=True)
    return np.array([each.loss.project(row, each.y, each.bias) for each, row in pairs])


def weighted(shares: tuple[float, ...], values: list[float]) -> float:
    """Return the sum of the values times their shares."""
    return sum(share * value for share, value in zip(shares, values, strict=True))


def second_derivatives(M: Array, unit: float, images: Array, diagonal: Array, bias: bool) -> Array:
    """Return the Hessian of the value of the learning problem as a function of the weights, shape (m, m).

    With F the samples whose alpha is inside its bounds, it is G_F' P G_F. There the columns of G_F are the
    images (K_m alpha)_F, and P is the inverse of unit M + diag(diagonal), with a border of ones if there is
    an intercept. M is K_w[F, F] / unit, and is overwritten. The diagonal has one over the second derivative
    of the loss at each sample, and a ridge.
    """
    m, size = images.shape
    if size <= bias:
        return np.zeros((m, m))
    M[np.diag_indices(size)] += diagonal / unit
    solution = bordered_solution(M, images.T, bias)
    return np.zeros((m, m)) if solution is None else images @ solution[0] / unit


def way_back(before: float, after: float) -> float:
    """Return the share of a step that is kept where a convex function rises at its end.

    `before` and `after` are the derivatives along the step at its two ends. The secant through them has its
    zero there.
    """
    zero = before / (before - after) if after > 0 > before else SETTINGS.shortest_back
    return min(max(zero, SETTINGS.shortest_back), SETTINGS.longest_back)

"""The nu form of one-class learning as a problem with bounds of its own."""

from __future__ import annotations

import warnings
from functools import cached_property
from operator import itemgetter
from typing import Any

import cvxpy as cp
import numpy as np
from numpy.typing import NDArray

import kernelopt as ko
from formulations.lp_norm.multiple_kernel_data import MultipleKernelData, ball_exponent
from formulations.machines import Explicit
from formulations.numbers import numbers
from kernelopt.extend import FLOOR_SHARE, Array, Ball, BoundedProblem, norms

ROUND_OFF = 1e-15  # by which rounding may move a projection out of its set: some units in the last place
ROUNDS = 12  # of training, at most: the weights settle after a few
ENOUGH = 1e-7  # relative gap at which training ends: small beside the default tolerance 1e-5
TIES = 1e-9  # nu n counts as an integer if it differs from one by at most this
TINY = np.finfo(float).tiny  # keeps the quotient of two sizes finite where the divisor vanishes


class Outliers(BoundedProblem):
    r"""The programme over w and rho, with bounds in closed form.

    .. math::

        \min_{w, \varrho}\ \tfrac12 \|(\|w_1\|, \dots, \|w_M\|)\|_r^2 - \varrho
        + \tfrac1{\nu n} \sum_i (\varrho - z_i)_+, \qquad z = \sum_m L_m w_m

    The programme is scaled, so that its numbers are near one. Let u be a power of four near the diagonals of
    the kernels. The L_m are then factors of K_m / u, and the objective is multiplied by u. The multiplier of
    the fit is u alpha.

    The bounds hold for the programme with the factors as they are stored, for which L_m L_m' is K_m / u up to
    rounding.

    Attributes
    ----------
    data : MultipleKernelData
    r : float in [1, 2]
    largest_rho : float
        The upper bound of rho / u.
    share : float in (0, 1]
        nu.
    unit : float
        u.
    """

    def __init__(self, data: MultipleKernelData, r: float, largest_rho: float, share: float) -> None:
        self.data, self.r, self.share, self.unit = data, r, share, unit_of(data)
        self.largest_rho = largest_rho / self.unit
        explicit = data.machine(np.sqrt(self.unit))
        rho = cp.Variable(name="rho", bounds=[0, self.largest_rho])
        outside = cp.sum(cp.pos(rho - explicit.predictions)) / self.most
        regularizer = cp.square(ko.p_norm(explicit.lengths, r)) / 2
        # Term by term, since the size of an objective is read off its terms: u times their sum would be one.
        objective = self.unit * regularizer - self.unit * rho + self.unit * outside
        super().__init__(cp.Minimize(objective), [explicit.fit])
        self.explicit: Explicit = explicit

    @property
    def most(self) -> float:
        """The number of points that may be outside: nu n, as the programme has it."""
        return self.share * self.data.n

    @cached_property
    def L(self) -> Array:
        """The factors of all used kernels over sqrt(u), side by side."""
        used = [self.data.factors[m] for m in self.data.used]
        return np.asarray(np.hstack([np.zeros((self.data.n, 0)), *used]) / np.sqrt(self.unit))

    @cached_property
    def owners(self) -> NDArray[np.intp]:
        """For each column of L, the number of its kernel among the used ones."""
        ranks = [self.data.factors[m].shape[1] for m in self.data.used]
        return np.repeat(np.arange(len(ranks)), ranks)

    def parts(self, w: Any) -> list[Any]:
        """Return the part of a vector, or of a ball, that belongs to each used kernel."""
        return [w[self.owners == m] for m in range(self.data.used.size)]

    def bounds(self, values: dict[int, Any], multipliers: dict[str, Any]) -> ko.Certificate:
        """Return bounds from any weight vectors and any multiplier of the fit.

        * lower: :meth:`below`, at alpha moved into its set;
        * upper: :meth:`above`, at w times its best factor and with its best rho.

        Both are moved outward by their rounding errors. While they are not near each other, the machine is
        trained at the weights of Proposition 2 for w, and the bounds are computed at that machine. These are
        steps of Algorithm 1 of the paper, which do not increase the value.
        """
        variables = {v.name(): v for v in self.variables()}
        names = [f"w{m}" for m in self.data.used]
        (lower, _), (value, w, z, rho) = self.proved(values, multipliers.get("fit"))
        point = dict(zip(names, self.parts(w), strict=True)) | {"z": z, "rho": np.asarray(rho)}
        return ko.Certificate(
            float(lower * self.unit),
            float(value * self.unit),
            "closed",
            feasible=True,
            point={variable: point[name] for name, variable in variables.items()},
            floor=FLOOR_SHARE * self.size,
            source="one-class learning in the nu form has no risk",
        )

    def proved(
        self, values: dict[int, Any], fit: Any
    ) -> tuple[tuple[float, Array], tuple[float, Array, Array, float]]:
        """Return the best lower bound over u with its alpha, and the best of :meth:`above`, of `bounds`."""
        variables = {v.name(): v for v in self.variables()}
        blocks = [variables[f"w{m}"] for m in self.data.used]
        w = np.concatenate([np.zeros(0), *(numbers(values.get(v.id), v.size) for v in blocks)])
        w = w / max(float(np.abs(w).max(initial=0.0)), TINY)
        with np.errstate(all="ignore"):  # numbers that overflow give no bound
            alpha = self.in_set(fit)
            proof, best = (self.below(alpha), alpha), self.above(w)
            trained = best[1]
            for _ in range(ROUNDS):
                if not trained.any() or best[0] - proof[0] <= ENOUGH * abs(best[0]):
                    break
                alpha, trained = self.trained(trained)
                proof = max(proof, (self.below(alpha), alpha), key=itemgetter(0))
                best = min(best, self.above(trained), key=itemgetter(0))
        return proof, best

    @property
    def size(self) -> float:
        """An upper bound of |optimum|: the dual at alpha = 1/n, where alpha'K alpha <= mean K_ii."""
        diagonals = np.maximum(self.data.grams.diagonals.mean(axis=1), 0.0)
        return norms.lp_length(np.sqrt(diagonals), norms.conjugate_exponent(self.r)) ** 2 / 2

    def below(self, alpha: Array) -> float:
        r"""Return a lower bound over u from alpha >= 0 with alpha_i <= S / (nu n), S = 1'alpha.

        Notes
        -----
        With alpha / S as the multiplier of the fit, rho has the coefficient zero in the Lagrangian. The
        minimum of the Lagrangian over w is

        .. math:: -\tfrac12 \|(\|L_1'\alpha\|, \dots, \|L_M'\alpha\|)\|_{r^*}^2 / S^2, \qquad 1/r + 1/r^* = 1
        """
        largest = self.half_square(self.L.T @ Ball(alpha), norms.conjugate_exponent(self.r))
        return float((-(largest / Ball(alpha).sum().power(2))).below)

    def above(self, w: Array) -> tuple[float, Array, Array, float]:
        """Return an upper bound over u of the objective at the best multiple of w, and this w, z and rho."""
        z = self.L @ w
        rho = self.best_rho(z)
        gain = rho - float(np.maximum(rho - z, 0.0).sum()) / self.most
        square = 2 * float(self.half_square(Ball(w), self.r).above)
        nothing = 0.0, np.zeros(w.size), np.zeros(z.size), 0.0
        if not (gain > 0 and 0 < square < np.inf):
            return nothing
        w = gain / square * w
        exact = self.L @ Ball(w)
        rho = self.best_rho(exact.mid)
        outside = Ball(np.maximum((-exact + rho).above, 0.0)).sum() / self.most
        value = float((self.half_square(Ball(w), self.r) + outside - rho).above)
        return (value, w, exact.mid, rho) if value < 0 else nothing

    def best_rho(self, z: Array) -> float:
        """Return the rho between its bounds that is best for predictions."""
        return min(max(threshold(z, self.share), 0.0), self.largest_rho)

    def half_square(self, w: Ball, exponent: float) -> Ball:
        """Return half the square of the norm of the lengths of the parts of w."""
        lengths = np.array([part.length for part in self.parts(w)])
        return Ball(lengths).norm(exponent).power(2) / 2

    def in_set(self, fit: Any) -> Array:
        """Return weights near the multiplier of the fit that, over their sum, are in [0, 1 / (nu n)].

        That holds without rounding: where rounding leaves a weight above 1 / (nu n), a share of equal weights
        is added, which are in the set exactly.
        """
        equal = 1 / self.data.n
        alpha = np.clip(numbers(fit, self.data.n) / self.unit, 0.0, 1 / self.most)
        rest = 1 - float(alpha.sum())  # it goes to the weights by their distances from a bound
        distance = 1 / self.most - alpha if rest > 0 else alpha
        alpha = alpha + rest * distance / max(float(distance.sum()), TINY)
        for share in (0.0, min(ROUND_OFF / max(1 - self.share, ROUND_OFF), 1.0)):
            mixed = (1 - share) * alpha + share * equal
            if (Ball(mixed.max()) * self.most - Ball(mixed).sum()).above <= 0:
                return mixed
        return np.full(self.data.n, equal)

    def trained(self, w: Array) -> tuple[Array, Array]:
        """Return alpha and w of the fixed kernel sum_m theta_m K_m, theta from the lengths of w."""
        from sklearn.svm import OneClassSVM

        lengths = np.array([np.linalg.norm(part) for part in self.parts(w)])
        theta = norms.minimizing_weights(lengths, ball_exponent(self.r))[self.owners]
        alpha = np.ones(self.data.n)
        if self.most < alpha.size:  # otherwise equal weights are the only ones
            machine = OneClassSVM(kernel="precomputed", nu=self.share, tol=1e-8, max_iter=100_000)
            with warnings.catch_warnings():  # at the last step the bounds belong to its alpha
                warnings.simplefilter("ignore")
                machine.fit(self.L * theta @ self.L.T)
            alpha[:] = np.bincount(machine.support_, machine.dual_coef_[0], alpha.size)
        alpha = self.in_set(self.unit * alpha / alpha.sum())
        return alpha, theta * (self.L.T @ alpha)


def unit_of(data: MultipleKernelData) -> float:
    """Return the power of four below the largest mean diagonal entry, one where there is none."""
    largest = float(data.grams.diagonals.mean(axis=1).max(initial=0.0))
    return 4.0 ** np.floor(np.log2(largest) / 2) if 0 < largest < np.inf else 1.0


def threshold(f: Array, nu: float) -> float:
    """Return the middle of the interval of rho that minimise sum_i (rho - f_i)_+ / (nu n) - rho.

    It is the interval between the order statistics of f next to nu n.
    """
    ordered, rank = np.sort(f), nu * f.size
    low, high = int(np.ceil(rank - TIES)) - 1, int(np.floor(rank + TIES))
    return float(ordered[low] + ordered[min(high, f.size - 1)]) / 2

"""What a fidelity states: a convex distance of a kernel from a given matrix, with its conjugate."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar, Protocol, runtime_checkable

import cvxpy as cp
import numpy as np

from kernelopt.numerics.ball import Ball
from kernelopt.numerics.rounding import TERM_ROUNDINGS
from kernelopt.validation import Array

POWERS = range(-40, 41)  # of two: the multiples of the identity that `trace_bound` tries


class Fidelity(ABC):
    r"""A convex function L(D) >= 0 of the difference D = K - S of a kernel and a matrix, with L(0) = 0.

    D is a symmetric matrix, or the vector of the differences of two spectra. The lower bounds of all methods
    are made with the conjugate :math:`L^*(U) = \max_D \langle U, D \rangle - L(D)`: for U in its domain

    .. math:: L(K - S) \ge \langle U, K \rangle - \langle U, S \rangle - L^*(U),

    with equality where U is a subgradient of L at K - S. A new fidelity states `expression`, `subgradient`
    and `conjugate`, `project` where L* has infinite values, and `conjugate_expression` for duals by hand.
    One that also has the methods of `Radial` or of `Proximal` is solved by "first-order-dual". As a frozen
    dataclass it is equal to another of the same parameters; one with arrays for parameters is declared with
    `eq=False`.
    """

    quadratic: ClassVar[bool] = False
    """Whether L(D) is the square of the Frobenius norm of D times a constant; it is `Radial` then."""

    @abstractmethod
    def expression(self, D: cp.Expression) -> cp.Expression:
        """Return L(D) as a convex cvxpy expression with one entry.

        Parameters
        ----------
        D : cvxpy expression of shape (N, N) or (N,)
            An affine expression, symmetric where it is a matrix.
        """

    @abstractmethod
    def subgradient(self, D: Array) -> Array:
        """Return a subgradient of L at D, of the shape of D and symmetric where D is.

        Parameters
        ----------
        D : array of shape (N, N) or (N,)
            A symmetric matrix or a vector.
        """

    @abstractmethod
    def conjugate(self, U: Array) -> float:
        """Return L*(U), for U in the domain of L*.

        Parameters
        ----------
        U : array of shape (N, N) or (N,)
            In the domain.
        """

    def project(self, U: Array) -> Array:
        """Return a point of the domain of L* near U, U itself where it belongs there.

        A bound is true only if the point is in the domain after the roundings of this computation.

        Parameters
        ----------
        U : array of shape (N, N) or (N,)
            Any symmetric matrix, or vector.
        """
        return U

    def value(self, D: Array) -> float:
        """Return L(D).

        Parameters
        ----------
        D : array of shape (N, N) or (N,)
            A symmetric matrix or a vector.
        """
        U = self.subgradient(D)
        return float(np.vdot(U, D)) - self.conjugate(U)

    def bounded_conjugate(self, U: Array) -> Ball:
        """Return L*(U) with a bound of its rounding error, for U in the domain of L*.

        The conjugate is taken to be a sum of non-negative terms, one per entry of U and each in error by a
        few units in the last place. A fidelity with another conjugate states its own bound.

        Parameters
        ----------
        U : array of shape (N, N) or (N,)
            In the domain.
        """
        value = self.conjugate(U)
        return Ball.computed(value, value, U.size + TERM_ROUNDINGS)

    def conjugate_expression(self, U: cp.Expression) -> tuple[cp.Expression, list[cp.Constraint]] | None:
        """Return L*(U) as a convex cvxpy expression, and its domain; None where neither is stated.

        Parameters
        ----------
        U : cvxpy expression of shape (N, N) or (N,)
            An affine expression, symmetric where it is a matrix.
        """
        return None

    def trace_bound(self, value: float, identity: Array) -> float:
        r"""Return an upper bound of <I, D> over all D with L(D) <= value.

        By the inequality of Fenchel and Young :math:`\langle I, D \rangle \le (L(D) + L^*(tI)) / t` for every
        t > 0 with tI in the domain of L*; the bound is the smallest over powers of two.

        Parameters
        ----------
        value : float >= 0
            The largest value of L.
        identity : array of shape (N, N) or (N,)
            The identity matrix, or a vector of ones where D is one.
        """
        bounds = [np.inf]
        for power in POWERS:
            U = self.project(2.0**power * identity)
            t = float(U.flat[0])
            if t > 0 and np.array_equal(U, t * identity):
                bounds.append(float((value + self.bounded_conjugate(U).above) / t))
        return min(bounds)


@runtime_checkable
class Radial(Protocol):
    """What a fidelity states that is a function h of the Frobenius norm of D alone."""

    def scale(self, lengths: Array) -> Array:
        r"""Return :math:`s(d) = d / h'(d)`: positive, and not decreasing in d.

        With it :math:`L(X) \le L(D) + (\|X\|^2 - \|D\|^2) / 2s(\|D\|)` for all X and D.

        Parameters
        ----------
        lengths : array of shape (k,)
            The lengths d > 0.
        """


@runtime_checkable
class Proximal(Protocol):
    """What a fidelity states whose proximal operator around several matrices is known."""

    def proximal(self, V: Array, S: Array, step: float) -> tuple[Array, float]:
        r"""Return the X of least :math:`step \sum_k L(X - S_k) + \tfrac12 \|X - V\|^2`, and the sum there.

        Parameters
        ----------
        V : array
            Of the shape of X.
        S : array with one axis more, over k
            The matrices around which the distances are.
        step : float > 0
            The weight of the sum.
        """

    def shares(self, P: Array, X: Array, S: Array) -> list[Array]:
        """Return U_k in the subdifferential of L at X - S_k with sum P.

        Parameters
        ----------
        P : array of the shape of X
            Such a sum.
        X : array
            The point.
        S : array with one axis more, over k
            The matrices around which the distances are.
        """

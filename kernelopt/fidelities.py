"""Fidelities: convex distances of a kernel from a given matrix, with their conjugates."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cache
from typing import Any, ClassVar, Protocol, runtime_checkable

import cvxpy as cp
import numpy as np

from kernelopt.entry_points import subclasses
from kernelopt.errors import ParameterError
from kernelopt.numerics.rounding import UNIT, Bounded, gamma, norm_above
from kernelopt.validation import Array, shown

TERM_ROUNDINGS = 64  # more than one term of a conjugate takes: its logarithms and roots cost a few each
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
        """Return L(D) as a convex cvxpy expression with one entry."""

    @abstractmethod
    def subgradient(self, D: Array) -> Array:
        """Return a subgradient of L at D, of the shape of D and symmetric where D is."""

    @abstractmethod
    def conjugate(self, U: Array) -> float:
        """Return L*(U), for U in the domain of L*."""

    def project(self, U: Array) -> Array:
        """Return a point of the domain of L* near U, U itself where it belongs there.

        A bound is true only if the point is in the domain after the roundings of this computation.
        """
        return U

    def value(self, D: Array) -> float:
        """Return L(D)."""
        U = self.subgradient(D)
        return float(np.vdot(U, D)) - self.conjugate(U)

    def bounded_conjugate(self, U: Array) -> Bounded:
        """Return L*(U) with a bound of its rounding error, for U in the domain of L*.

        The conjugate is taken to be a sum of non-negative terms, one per entry of U and each in error by a
        few units in the last place. A fidelity with another conjugate states its own bound.
        """
        value = self.conjugate(U)
        return Bounded(value, gamma(U.size + TERM_ROUNDINGS) * value)

    def conjugate_expression(self, U: cp.Expression) -> tuple[cp.Expression, list[cp.Constraint]] | None:
        """Return L*(U) as a convex cvxpy expression, and its domain; None where neither is stated."""
        return None

    def trace_bound(self, value: float, identity: Array) -> float:
        r"""Return an upper bound of <I, D> over all D with L(D) <= value.

        `identity` is the identity matrix, or a vector of ones where D is one. By the inequality of Fenchel
        and Young :math:`\langle I, D \rangle \le (L(D) + L^*(tI)) / t` for every t > 0 with tI in the
        domain of L*; the bound is the least over powers of two.
        """
        bounds = [np.inf]
        for power in POWERS:
            U = self.project(2.0**power * identity)
            t = float(U.flat[0])
            if t > 0 and np.array_equal(U, t * identity):
                bounds.append((value + self.bounded_conjugate(U).above) / t)
        return min(bounds)


@runtime_checkable
class Radial(Protocol):
    """What a fidelity states that is a function h of the Frobenius norm of D alone."""

    def scale(self, lengths: Array) -> Array:
        r"""Return s(d) = d / h'(d) at lengths d > 0, shape (k,): positive, and not decreasing in d.

        With it :math:`L(X) \le L(D) + (\|X\|^2 - \|D\|^2) / 2s(\|D\|)` for all X and D.
        """


@runtime_checkable
class Proximal(Protocol):
    """What a fidelity states whose proximal operator around several matrices is known."""

    def proximal(self, V: Array, S: Array, step: float) -> tuple[Array, float]:
        r"""Return the minimiser of step * sum_k L(X - S_k) + |X - V|^2 / 2, and sum_k L(X - S_k) there.

        V has the shape of X, and S one more axis, over k.
        """

    def shares(self, P: Array, X: Array, S: Array) -> list[Array]:
        """Return U_k in the subdifferential of L at X - S_k with sum P, for a P that is such a sum."""


@dataclass(frozen=True)
class l1(Fidelity):
    r"""The sum of absolute values, :math:`L(D) = \sum_{ij} |D_{ij}|`.

    Its conjugate is 0 where all :math:`|U_{ij}| \le 1`, and infinite elsewhere.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelopt import fidelities
    >>> D = np.array([[1.0, -2.0], [-2.0, 0.0]])
    >>> fidelities.l1().value(D)
    5.0
    >>> fidelities.l1().subgradient(D)
    array([[ 1., -1.],
           [-1.,  0.]])
    """

    def expression(self, D: cp.Expression) -> cp.Expression:
        return cp.sum(cp.abs(D))

    def value(self, D: Array) -> float:
        return float(np.abs(D).sum())

    def subgradient(self, D: Array) -> Array:
        return np.sign(D)

    def conjugate(self, U: Array) -> float:
        return 0.0

    def project(self, U: Array) -> Array:
        return np.clip(U, -1.0, 1.0)

    def conjugate_expression(self, U: cp.Expression) -> tuple[cp.Expression, list[cp.Constraint]]:
        return cp.Constant(0.0), [cp.abs(U) <= 1]

    def trace_bound(self, value: float, identity: Array) -> float:
        return value

    def proximal(self, V: Array, S: Array, step: float) -> tuple[Array, float]:
        """Return the minimiser, in every entry a median, and the distance there: see `Proximal`."""
        from kernelopt.numerics.median import to_median  # imports a compiler

        X = np.empty(V.shape)  # not `empty_like`: the flat view of a transposed array is a copy
        total = to_median(V.ravel(), S.reshape(len(S), -1), step, X.ravel())
        return X, float(total)

    def shares(self, P: Array, X: Array, S: Array) -> list[Array]:
        """Return subgradients of sum P: where X = S_k, what is left of P is shared equally."""
        signs = np.sign(X - S)
        ties = signs == 0
        left = (P - signs.sum(axis=0)) / np.maximum(ties.sum(axis=0), 1)
        return list(np.where(ties, left, signs))


@dataclass(frozen=True)
class frobenius(Fidelity):
    r"""The Frobenius norm, :math:`L(D) = \|D\|_F`.

    Its conjugate is 0 where :math:`\|U\|_F \le 1`, and infinite elsewhere.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelopt import fidelities
    >>> fidelities.frobenius().value(np.array([[3.0, 0.0], [0.0, -4.0]]))
    5.0
    >>> fidelities.frobenius().subgradient(np.array([[3.0, 0.0], [0.0, -4.0]]))
    array([[ 0.6,  0. ],
           [ 0. , -0.8]])
    """

    def expression(self, D: cp.Expression) -> cp.Expression:
        return cp.pnorm(D, 2)

    def value(self, D: Array) -> float:
        return math.sqrt(float(np.vdot(D, D)))

    def subgradient(self, D: Array) -> Array:
        length = float(np.linalg.norm(D))
        return D / length if length > 0 else np.zeros_like(D)

    def conjugate(self, U: Array) -> float:
        return 0.0

    def project(self, U: Array) -> Array:
        length = norm_above(U)
        return U if length <= 1 else U * ((1 - 4 * UNIT) / length)  # of norm at most 1 after rounding

    def conjugate_expression(self, U: cp.Expression) -> tuple[cp.Expression, list[cp.Constraint]]:
        return cp.Constant(0.0), [cp.pnorm(U, 2) <= 1]

    def trace_bound(self, value: float, identity: Array) -> float:
        return math.sqrt(len(identity)) * value

    def scale(self, lengths: Array) -> Array:
        """Return the lengths themselves, as h'(d) = 1: see `Radial`."""
        return lengths


@dataclass(frozen=True)
class squared_frobenius(Fidelity):
    r"""The square of the Frobenius norm, :math:`L(D) = \|D\|_F^2`, with :math:`L^*(U) = \tfrac14 \|U\|_F^2`.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelopt import fidelities
    >>> L, D = fidelities.squared_frobenius(), np.array([[3.0, 0.0], [0.0, -4.0]])
    >>> L.value(D), L.conjugate(L.subgradient(D))
    (25.0, 25.0)
    """

    quadratic: ClassVar[bool] = True

    def expression(self, D: cp.Expression) -> cp.Expression:
        return cp.sum_squares(D)

    def value(self, D: Array) -> float:
        return float(np.vdot(D, D))

    def subgradient(self, D: Array) -> Array:
        return np.asarray(2 * D)

    def conjugate(self, U: Array) -> float:
        return float(np.vdot(U, U)) / 4

    def conjugate_expression(self, U: cp.Expression) -> tuple[cp.Expression, list[cp.Constraint]]:
        return cp.sum_squares(cp.vec(U, order="F")) / 4, []  # cvxpy 1.8.0 errs on symmetric U itself

    def trace_bound(self, value: float, identity: Array) -> float:
        return math.sqrt(len(identity) * value)

    def scale(self, lengths: Array) -> Array:
        """Return 1/2, as h'(d) = 2d: see `Radial`."""
        return np.full(lengths.shape, 0.5)


FIDELITIES: dict[str, type[Fidelity]] = {
    fidelity.__name__: fidelity for fidelity in (l1, frobenius, squared_frobenius)
}


@cache
def known() -> dict[str, type[Fidelity]]:
    """Return the classes by name: ours, and those that other packages name in their entry points."""
    found = subclasses("kernelopt.fidelities", Fidelity, FIDELITIES)
    return FIDELITIES | {point.name: fidelity for point, fidelity in found}


def as_fidelity(kind: Any, what: str = "kind") -> Fidelity:
    """Return a fidelity as it is, or that of a name.

    Parameters
    ----------
    kind : "l1", "frobenius", "squared_frobenius", or an object of a class of `Fidelity`
        Also the name of a fidelity of another package, whose parameters have defaults.
    what : str, default "kind"
        The name of the argument, for the message.

    Raises
    ------
    ParameterError
        If it is neither.

    Examples
    --------
    >>> from kernelopt.fidelities import as_fidelity
    >>> as_fidelity("l1")
    l1()
    """
    if isinstance(kind, Fidelity):
        return kind
    names = FIDELITIES if isinstance(kind, str) and kind in FIDELITIES else known()
    if isinstance(kind, str) and kind in names:
        try:
            return names[kind]()
        except TypeError as error:
            raise ParameterError(
                f"{what} must be an object of {kind}, got its name, and its parameters have no defaults "
                f"({error}). Pass {kind}(...) with its parameters."
            ) from error
    raise ParameterError(
        f"{what} must be {', '.join(map(repr, names))} or an object of a class of Fidelity, got "
        f"{shown(kind)}. Choose one of these names, or pass an object, such as kernelopt.fidelities.l1()."
    )

"""The fidelities of the papers (sum of absolute values, Frobenius norm, its square), and all by name."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache
from typing import Any, ClassVar

import cvxpy as cp
import numpy as np

from kernelopt.entry_points import subclasses
from kernelopt.errors import ParameterError
from kernelopt.fidelities.base import Fidelity
from kernelopt.numerics.rounding import norm_above
from kernelopt.validation import Array, shown

SPACING = np.finfo(float).eps  # of the doubles above one


@dataclass(frozen=True)
class l1(Fidelity):
    r"""The sum of absolute values.

    .. math:: L(D) = \sum_{ij} |D_{ij}|

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
        """Return the minimiser, in every entry a median, and the distance there: see `Proximal`.

        It is the median of S_1, ..., S_m and V + (2 j - m) step for j = 0, ..., m: of two ascending lists a
        and b the number m + 1 in order is the least of b_m and of max(a_i, b_(m-i)) for i = 1, ..., m.
        """
        m, targets = len(S), [*S]
        for last in range(m - 1, 0, -1):  # sorted, for all entries at once
            for k in range(last):
                pair = targets[k], targets[k + 1]
                targets[k], targets[k + 1] = np.minimum(*pair), np.maximum(*pair)
        X = V + m * step
        for i, target in enumerate(targets, start=1):
            np.minimum(X, np.maximum(target, V + (m - 2 * i) * step), out=X)
        return X, float(np.abs(X - S).sum())

    def shares(self, P: Array, X: Array, S: Array) -> list[Array]:
        """Return subgradients of sum P: where X = S_k, what is left of P is shared equally."""
        signs = np.sign(X - S)
        ties = signs == 0
        left = (P - signs.sum(axis=0)) / np.maximum(ties.sum(axis=0), 1)
        return list(np.where(ties, left, signs))


@dataclass(frozen=True)
class frobenius(Fidelity):
    r"""The Frobenius norm.

    .. math:: L(D) = \|D\|_F = \Big(\sum_{ij} D_{ij}^2\Big)^{1/2}

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
        return U if length <= 1 else U * ((1 - 2 * SPACING) / length)  # of norm at most 1 after rounding

    def conjugate_expression(self, U: cp.Expression) -> tuple[cp.Expression, list[cp.Constraint]]:
        return cp.Constant(0.0), [cp.pnorm(U, 2) <= 1]

    def trace_bound(self, value: float, identity: Array) -> float:
        return math.sqrt(len(identity)) * value

    def scale(self, lengths: Array) -> Array:
        """Return the lengths themselves, as h'(d) = 1: see `Radial`."""
        return lengths


@dataclass(frozen=True)
class squared_frobenius(Fidelity):
    r"""The square of the Frobenius norm.

    .. math:: L(D) = \|D\|_F^2, \qquad L^*(U) = \tfrac14 \|U\|_F^2

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
    """Return the classes by name: ours, and the classes that other packages name in their entry points."""
    found = subclasses("kernelopt.fidelities", Fidelity, FIDELITIES)
    return FIDELITIES | {point.name: fidelity for point, fidelity in found}


def as_fidelity(kind: Any, what: str = "kind") -> Fidelity:
    """Return a fidelity as it is, or the one of a name.

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
    if isinstance(kind, type) and issubclass(kind, Fidelity):
        raise ParameterError(
            f"{what} must be an object of a class of Fidelity, got the class {kind.__name__}. Create one "
            f"first: {kind.__name__}(...)."
        )
    raise ParameterError(
        f"{what} must be {', '.join(map(repr, names))} or an object of a class of Fidelity, got "
        f"{shown(kind)}. Choose one of these names, or pass an object, such as kernelopt.fidelities.l1()."
    )

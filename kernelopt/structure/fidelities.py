"""Terms of an objective that say how near a variable is to a target."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import cvxpy as cp
import numpy as np
from cvxpy.atoms.affine.sum import Sum
from cvxpy.atoms.elementwise.abs import abs as abs_atom
from cvxpy.atoms.norm1 import norm1
from cvxpy.atoms.pnorm import Pnorm
from cvxpy.atoms.quad_over_lin import quad_over_lin

from kernelopt.numerics.rounding import gamma
from kernelopt.structure.trees import number, replaced
from kernelopt.validation import Array

Kind = Literal["l1", "frobenius", "squared_frobenius"]
EXACT = 1e-12


@dataclass(frozen=True, eq=False)
class Fidelity:
    """price * L(X - target), with L the sum of absolute values, the l2 norm of all entries, or its square."""

    kind: Kind
    price: float
    variable: cp.Variable
    target: Array

    def value(self, X: Array) -> float:
        """Return the term at X."""
        return self.price * distance(self.kind, X - self.target)

    def subgradient(self, X: Array) -> Array:
        """Return U in the subdifferential of L at X - target, without the price."""
        D = X - self.target
        if self.kind == "l1":
            return np.sign(D)
        if self.kind == "squared_frobenius":
            return np.asarray(2 * D)
        length = float(np.linalg.norm(D))
        return D / length if length > 0 else np.zeros_like(D)

    def paid(self, U: Array) -> float:
        """Return price * (<U, target> + L*(U)), for U in the domain of L*."""
        conjugate = float(np.vdot(U, U)) / 4 if self.kind == "squared_frobenius" else 0.0
        return self.price * (float(np.vdot(U, self.target)) + conjugate)

    def paid_error(self, U: Array) -> float:
        """Return a bound of the rounding error of `paid`."""
        size = float(np.vdot(np.abs(U), np.abs(self.target))) + float(np.vdot(U, U)) / 4
        return gamma(U.size + 8) * self.price * size

    def project(self, U: Array) -> Array:
        """Return U brought into the domain of L*."""
        if self.kind == "l1":
            return np.clip(U, -1.0, 1.0)
        if self.kind == "frobenius":
            return np.asarray(U / max(1.0, float(np.linalg.norm(U))))
        return U


def distance(kind: Kind, D: Array) -> float:
    """Return L(D)."""
    if kind == "l1":
        return float(np.abs(D).sum())
    square = float(np.vdot(D, D))
    return square if kind == "squared_frobenius" else square**0.5


def read_fidelity(price: float, term: cp.Expression) -> Fidelity | None:
    """Read price * term as a `Fidelity` of one variable, None if it is something else."""
    kind: Kind
    if isinstance(term, Sum) and term.axis is None and isinstance(term.args[0], abs_atom):
        kind, inside = "l1", term.args[0].args[0]
    elif isinstance(term, norm1) and term.axis is None:
        kind, inside = "l1", term.args[0]
    elif isinstance(term, Pnorm) and term.axis is None and term.p == 2:
        kind, inside = "frobenius", term.args[0]
    elif isinstance(term, quad_over_lin) and term.args[1].is_constant() and price >= 0:
        kind, inside = "squared_frobenius", term.args[0]
        price = price / number(term.args[1])
    else:
        return None
    target = read_target(inside)
    return None if target is None or not price >= 0 else Fidelity(kind, price, *target)


def read_target(D: cp.Expression) -> tuple[cp.Variable, Array] | None:
    """Read D as X - target, up to sign and to the order of its entries, for one variable X.

    An affine map that agrees with the identity at a random point is the identity.
    """
    if len(D.variables()) != 1 or not D.is_affine() or D.size != D.variables()[0].size:
        return None
    X = D.variables()[0]
    probe = np.random.default_rng(0).normal(size=X.shape)
    probe = probe + probe.T if probe.ndim == 2 else probe
    here = cp.Variable(X.shape)
    copy = replaced(D, {id(X): here})
    at_zero, at_probe = (value_at(copy, here, point) for point in (np.zeros(X.shape), probe))
    moved = at_probe - at_zero
    sign = 1.0 if np.vdot(moved, probe) > 0 else -1.0
    target = -sign * at_zero
    symmetric = target.ndim == 1 or np.array_equal(target, target.T)
    close = float(np.abs(sign * moved - probe).max()) <= EXACT * (np.abs(probe).max() + np.abs(target).max())
    return (X, target) if symmetric and close else None


def value_at(D: cp.Expression, X: cp.Variable, point: Array) -> Array:
    """Return the value of an expression of X alone at a point, in the shape of X."""
    X.save_value(point)
    value = D.value
    dense = value.toarray() if hasattr(value, "toarray") else value
    return np.asarray(dense, dtype=float).reshape(X.shape)

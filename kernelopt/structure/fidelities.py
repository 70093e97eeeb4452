"""Terms of an objective that say how near a variable is to a target."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import cvxpy as cp
import numpy as np
from cvxpy.atoms.affine.add_expr import AddExpression
from cvxpy.atoms.affine.sum import Sum
from cvxpy.atoms.elementwise.abs import abs as abs_atom
from cvxpy.atoms.norm1 import norm1
from cvxpy.atoms.pnorm import Pnorm
from cvxpy.atoms.quad_over_lin import quad_over_lin

from kernelopt.fidelities import Fidelity, frobenius, l1, squared_frobenius
from kernelopt.language.fidelity import Distance
from kernelopt.numerics.ball import Ball, accumulated
from kernelopt.running import check
from kernelopt.structure.trees import number, replaced
from kernelopt.validation import Array

EXACT = 1e-12  # relative: the rounding of an affine map at a point


@dataclass(frozen=True, eq=False)
class FidelityTerm:
    """price * L(X - target) of one variable X: a summand of an objective."""

    fidelity: Fidelity
    price: float
    variable: cp.Variable
    target: Array

    def value(self, X: Array) -> float:
        """Return the term at X."""
        return self.price * self.fidelity.value(X - self.target)

    def subgradient(self, X: Array) -> Array:
        """Return U in the subdifferential of L at X - target, without the price."""
        return self.fidelity.subgradient(X - self.target)

    def conjugate_cost(self, U: Array) -> Ball:
        """Return price * (<U, target> + L*(U)), for U in the domain of L*.

        This is the conjugate of X -> L(X - target) at U, times the price.
        """
        size = np.vdot(np.abs(U), np.abs(self.target))
        products = accumulated(np.vdot(U, self.target), size, U.size)
        return (products + Ball(*self.fidelity.bounded_conjugate(U))) * self.price


def read_fidelity(price: float, term: cp.Expression) -> FidelityTerm | None:
    """Read price * term as a `FidelityTerm` of one variable, None if it is something else."""
    spelled = read_spelling(term)
    if spelled is None:
        return None
    fidelity, divisor, inside = spelled
    target = read_target(inside)
    return None if target is None or not price >= 0 else FidelityTerm(fidelity, price / divisor, *target)


def read_spelling(term: cp.Expression) -> tuple[Fidelity, float, cp.Expression] | None:
    """Read L(D) / c as (L, c, D), for an L written as `fidelity` or with the atoms of cvxpy."""
    if isinstance(term, Distance):
        return term.fidelity, 1.0, term.difference
    if isinstance(term, Sum) and term.axis is None and isinstance(term.args[0], abs_atom):
        return l1(), 1.0, term.args[0].args[0]
    if isinstance(term, norm1) and term.axis is None:
        return l1(), 1.0, term.args[0]
    if isinstance(term, Pnorm) and term.axis is None and term.p == 2:
        return frobenius(), 1.0, term.args[0]
    if isinstance(term, quad_over_lin) and term.args[1].is_constant():
        return squared_frobenius(), number(term.args[1]), term.args[0]
    return None


def read_target(D: cp.Expression) -> tuple[cp.Variable, Array] | None:
    """Read D as X - target, up to sign and to the order of its entries, for one variable X.

    X - target itself is read from its terms. Another affine map is the identity if it agrees with it at a
    random point.
    """
    check()
    if len(D.variables()) != 1 or not D.is_affine() or D.size != D.variables()[0].size:
        return None
    X = D.variables()[0]
    if isinstance(D, AddExpression) and D.args[0] is X and all(c.is_constant() for c in D.args[1:]):
        target = -np.broadcast_to(sum(dense(c.value) for c in D.args[1:]), X.shape)
        return (X, target) if target.ndim == 1 or np.array_equal(target, target.T) else None
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
    return dense(D.value).reshape(X.shape)


def dense(value: Any) -> Array:
    """Return a value of cvxpy as an array."""
    return np.asarray(value.toarray() if hasattr(value, "toarray") else value, dtype=float)

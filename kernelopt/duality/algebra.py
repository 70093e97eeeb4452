"""The terms of sums of cvxpy's expressions, with their coefficients."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import cvxpy as cp
import numpy as np

from kernelopt.duality.adjoints import uniform, value_of
from kernelopt.duality.lagrangian import total


def flattened(e: Any, sign: float = 1.0) -> list[cp.Expression]:
    """Return the terms of a sum, with the sign inside."""
    kind = type(e).__name__
    if kind == "AddExpression" and all(a.shape == e.shape for a in e.args):
        return [term for a in e.args for term in flattened(a, sign)]
    if kind == "NegExpression":
        return flattened(e.args[0], -sign)
    return [e if sign > 0 else -e]


def coefficient(part: Any) -> tuple[float, Any]:
    """Return (k, e) with part = k e for a number k."""
    kind = type(part).__name__
    if kind == "NegExpression" or (kind == "Sum" and part.args[0].ndim == 0):
        k, e = coefficient(part.args[0])
        return k if kind == "Sum" else -k, e
    for number, other in (
        zip(part.args, part.args[::-1], strict=True) if kind in ("multiply", "DivExpression") else ()
    ):
        value = value_of(number)
        if value is None or not value.any() or np.ptp(value) or other.shape != part.shape:
            continue
        k, e = coefficient(other)
        if kind == "multiply":
            return k * float(value.flat[0]), e
        if number is part.args[1]:
            return k / float(value.flat[0]), e
    return 1.0, part


def variable_in(part: Any) -> tuple[float, Any]:
    """Return (k, v) with part = k v for a number k and a variable v, or a scalar v in every entry."""
    k, e = coefficient(part)
    scalar = None if isinstance(e, cp.Variable) else uniform(e)
    c, v = (1.0, e) if scalar is None else coefficient(scalar)
    return k * c, v if isinstance(v, cp.Variable) else None


def uses(parts: Any, v: cp.Variable) -> bool:
    """Whether some expressions or constraints have a variable."""
    return any(w.id == v.id for part in parts for w in part.variables())


def sum_of(parts: Sequence[cp.Expression], x: cp.Variable) -> cp.Expression:
    """Return a sum of expressions of the shape of a variable."""
    return total(list(parts)) if parts else cp.Constant(np.zeros(x.shape))


def scaled(k: float, parts: Sequence[cp.Expression], x: cp.Variable) -> cp.Expression:
    """Return k times a sum, without a product by one or minus one, each term by itself."""
    terms = []
    for term in (t for part in parts for t in flattened(part)):
        c, inner = coefficient(term)
        terms.append(inner if k * c == 1 else -inner if k * c == -1 else (k * c) * inner)
    return sum_of(terms, x)


def is_known(e: cp.Expression) -> bool:
    """Whether an expression is constant and has no parameters."""
    return value_of(e) is not None

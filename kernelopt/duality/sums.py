"""The terms of sums of cvxpy's expressions, with their coefficients."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import cvxpy as cp
import numpy as np

from kernelopt.duality.adjoints import value_of
from kernelopt.duality.lagrangian import total

Terms = list[tuple[float, Any]]


def terms_of(e: Any, k: float = 1.0) -> Terms:
    """Return pairs (c, t) of numbers and expressions of the shape of e, with k e the sum of all c t."""
    kind = type(e).__name__
    if kind == "AddExpression" and all(a.shape == e.shape for a in e.args):
        return [term for a in e.args for term in terms_of(a, k)]
    if kind == "NegExpression" or (kind == "Sum" and e.args[0].ndim == 0):
        return terms_of(e.args[0], -k if kind == "NegExpression" else k)
    for number, other in (
        zip(e.args, e.args[::-1], strict=True) if kind in ("multiply", "DivExpression") else ()
    ):
        value = value_of(number) if number is e.args[1] or kind == "multiply" else None
        if value is not None and value.any() and not np.ptp(value) and other.shape == e.shape:
            return terms_of(other, k * float(value.flat[0]) ** (1 if kind == "multiply" else -1))
    return [(k, e)]


def sum_of(terms: Terms, shape: tuple[int, ...]) -> cp.Expression:
    """Return the sum of terms of a shape, without a product by one or minus one."""
    parts = [e if k == 1 else -e if k == -1 else k * e for k, e in terms]
    return total(parts) if parts else cp.Constant(np.zeros(shape))


def scaled(k: float, e: cp.Expression) -> cp.Expression:
    """Return k times a sum, each term by itself."""
    return sum_of(terms_of(e, k), e.shape)


def uses(parts: Iterable[Any], v: cp.Variable) -> bool:
    """Whether some expressions or constraints have a variable."""
    return any(w.id == v.id for part in parts for w in part.variables())

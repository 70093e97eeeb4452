"""The present values of expressions inside of their domains, and how far constraints are from true."""

from __future__ import annotations

from operator import add
from typing import Any

import cvxpy as cp
import numpy as np
from cvxpy.atoms.affine.add_expr import AddExpression
from cvxpy.atoms.affine.affine_atom import AffAtom
from cvxpy.atoms.affine.promote import Promote
from cvxpy.atoms.affine.sum import Sum
from cvxpy.atoms.affine.unary_operators import NegExpression
from cvxpy.atoms.atom import Atom
from cvxpy.constraints import PSD
from cvxpy.constraints.constraint import Constraint

from kernelopt.duality.solving import ACCURATE
from kernelopt.duality.symbols import dense
from kernelopt.language.risk import Risk
from kernelopt.structure.affine import affine, flat
from kernelopt.structure.enclosure import violation
from kernelopt.structure.structure import ENTRYWISE
from kernelopt.structure.trees import nodes, replaced, with_args
from kernelopt.structure.zero_weights import ROUNDING_SHARE, senses, sizes_of_terms

FAR = 1e-2  # of the largest entry, or of one: a point is no solution where a constraint is further away


def largest(value: Any) -> float:
    """Return the largest absolute entry, zero of no entries."""
    return float(np.max(np.abs(dense(value)), initial=0.0))


def violated(constraint: Constraint) -> float:
    """Return the largest violation of an entry, or a cone, of a constraint."""
    return largest(violation(constraint))


def magnitude(node: Any) -> float:
    """Return the largest entry of an expression; of a sum or a constraint the largest of its parts."""
    if isinstance(node, AddExpression | NegExpression | Sum | Promote | Constraint):
        return max((magnitude(arg) for arg in node.args), default=0.0)
    return 0.0 if node.value is None else largest(node.value)


def measured(e: cp.Expression) -> float:
    """Return the value of a scalar expression inside of its domain, nan where a variable has none."""
    return float(np.sum(dense(inside(e).value)))


@np.errstate(all="ignore")  # cvxpy evaluates atoms outside of their domains
def inside(root: Any) -> Any:
    """Return an expression, or a constraint, with atoms whose arguments are inside of their domains.

    Solvers place points in cones up to a tolerance, and an entropy at -1e-10 is infinite. So arguments that
    are outside of the domain of an atom by at most `ACCURATE` of the largest entry, or of one, are moved
    inside by as much; of a matrix, its eigenvalues are. A risk has its value.
    """
    memo: dict[int, Any] = {}
    for node in reversed(list(nodes(root))):  # arguments first
        if isinstance(node, Risk):
            memo[id(node)] = cp.Constant(node.value)
        elif isinstance(node, Atom) and not isinstance(node, AffAtom):
            here = replaced(node, memo)
            domain, size = here._domain(), max(1.0, *(largest(a.value) for a in here.args))
            off, matrix = max(map(violated, domain), default=0.0), any(isinstance(c, PSD) for c in domain)
            if 0 < off <= ACCURATE * size:
                by = [2 * off * (np.eye(*a.shape) if matrix and a.ndim == 2 else 1.0) for a in here.args]
                memo[id(node)] = with_args(here, list(map(add, here.args, by)))
    return replaced(root, memo)


def off_by(constraint: Any) -> float:
    """Return the violation of a constraint, or its distance where no point near by meets it and the signs.

    The violation of 1e-9 x <= 1e-9 at x = 2 is 1e-9, and the distance is 1. It counts where it is above
    `FAR` of the largest entry, or of one. Non-negative variables stay so. Coefficients that are rounding
    errors of a difference do not count.
    """
    found = violated(inside(constraint))
    read = affine(constraint.expr) if isinstance(constraint, ENTRYWISE) else None
    if read is None or not read.matrices:
        return found
    step = FAR * max(1.0, *(largest(v.value) for v in read.matrices))
    terms = sizes_of_terms(constraint.expr)
    for sense in senses(constraint):
        least, slope = sense * read.constant, np.finfo(float).tiny
        for v, matrix in read.matrices.items():
            exact = sense * matrix.multiply(abs(matrix) > ROUNDING_SHARE * terms.get(v.id, 0 * matrix))
            up, down, low = exact.maximum(0), exact.minimum(0), flat(v.value) - step
            room = np.maximum(low, 0.0) if v.is_nonneg() else low
            least = least + up @ room + down @ (low + 2 * step)
            slope = slope + up @ (room == low) - down @ np.ones(v.size)
        found = float(np.max((step + least / slope)[least > 0], initial=found))
    return found

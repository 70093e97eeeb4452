"""The squared norm |f|_K^2 of a function of the kernel K, in the cheapest cone that K allows."""

from __future__ import annotations

from itertools import pairwise
from typing import Literal, NamedTuple

import cvxpy as cp
import numpy as np
from cvxpy.atoms.affine.add_expr import AddExpression
from cvxpy.atoms.affine.index import index

from kernelopt.grams import Grams
from kernelopt.language.combination import combine
from kernelopt.language.span import Span
from kernelopt.language.terms import ExpressionStorage, Term, terms
from kernelopt.validation import PSD_TOLERANCE, smallest_relative_eigenvalue

Form = Literal["fixed", "second-order cone", "semidefinite"]


class Penalty(NamedTuple):
    """Function values f on the labelled points, and |f|_K^2 as an expression.

    `length` is |f|_K, for a constant K only. `weights` are the weights of kernels in a second-order cone: the
    square is convex if they are concave.
    """

    f: cp.Expression
    square: cp.Expression
    length: cp.Expression | None
    form: Form
    weights: tuple[cp.Expression, ...] = ()

    @property
    def convex(self) -> bool:
        """Whether the square is convex, read from the weights where it is a sum of squares over them."""
        if self.form == "second-order cone":
            return all(w.is_concave() for w in self.weights)
        return bool(self.square.is_convex())


def penalty(K: cp.Expression, n: int, label: str) -> Penalty:
    """Return variables for f in the space of K (its first n points) and the square of their norm.

    * K constant, K = LL': f = L u and |f|^2 = u'u.
    * K = sum_i w_i K_i with weights that are known to be non-negative, K_i = L_i L_i': f = sum_i L_i u_i and
      |f|^2 = sum_i |u_i|^2 / w_i, one second-order cone per kernel.
    * Any other K: |f|^2 = f'K^+ f, by a matrix inequality of order n + 1.
    """
    rows = slice(0, n)
    if K.is_constant() and not K.parameters():
        fixed = Grams(ExpressionStorage(K, rows))
        u = cp.Variable(n, name=f"u{label}")
        return Penalty(Span(u, fixed), cp.sum_squares(u), cp.norm2(u), "fixed")
    parts = weighted(K)
    if parts is None:
        f = cp.Variable(n, name=f"f{label}")
        return Penalty(f, cp.matrix_frac(f, K[:n, :n] if n < K.shape[0] else K), None, "semidefinite")
    spans, squares, present = [], [], []
    for position, (weights, grams) in enumerate(parts):
        block = grams.block(rows)
        if not any(block.rank_bounds):  # zero kernels have f = 0; cvxpy has no empty variables
            spans.append(cp.Constant(np.zeros(n)))
            continue
        cuts = np.cumsum((0, *block.rank_bounds)).tolist()
        u = cp.Variable(cuts[-1], name=f"u{label}" + (f"_{position}" if len(parts) > 1 else ""))
        spans.append(Span(u, block))
        present.append(weights)
        for i, (start, stop) in enumerate(pairwise(cuts)):
            if stop > start:
                squares.append(cp.quad_over_lin(entries_between(u, start, stop), entry(weights, i)))
    # `cp.sum` of a list adds one term after the other, and copies the terms so far each time.
    square = AddExpression(squares) if len(squares) > 1 else cp.sum([0.0, *squares])
    return Penalty(cp.sum(spans), square, None, "second-order cone", tuple(present))


def entries_between(x: cp.Expression, start: int, stop: int) -> cp.Expression:
    """Return x[start:stop] for a vector x and 0 <= start < stop <= x.size.

    It is the node that `x[start:stop]` makes, without cvxpy's checks of the index. These would take half of
    the time in which a problem of many kernels is built.
    """
    return index(x, (slice(start, stop, 1),), slice(start, stop))


def entry(x: cp.Expression, i: int) -> cp.Expression:
    """Return x[i] for a vector x and 0 <= i < x.size, as `entries_between` does."""
    return index(x, (slice(i, i + 1, 1),), i)


def weighted(K: cp.Expression) -> list[Term] | None:
    """Return the terms of K if all weights are known to be non-negative and have no parameter, else None.

    Constant terms are added up to one matrix, since a single constant weight may be zero.
    """
    parts = terms(K)
    if parts is None or not all(w.is_nonneg() and not w.parameters() for w, _ in parts):
        return None
    if any(is_indefinite_constant(grams) for _, grams in parts):
        return None
    constant = [combine(w, grams) for w, grams in parts if w.is_constant()]
    found = [part for part in parts if not part.weights.is_constant()]
    if constant:
        total = ExpressionStorage(sum(constant[1:], constant[0]))
        found.append(Term(cp.Constant(np.ones(1)), Grams(total)))
    return found


def is_indefinite_constant(grams: Grams) -> bool:
    """Whether a matrix in a sum, such as K0 in `K - 0.1 * K0`, has a negative eigenvalue."""
    given = grams.storage
    constant = isinstance(given, ExpressionStorage) and isinstance(given.expression, cp.Constant)
    return constant and smallest_relative_eigenvalue(given.gram(0)) < -PSD_TOLERANCE

"""Enclosures of cvxpy's atoms from enclosures of their arguments.

An atom without a rule of its own is assumed to be computed as accurately as if its arguments and its value
had relative errors of `EVALUATION`. It is evaluated at the ends of its arguments where it is monotone in each
of them. Elsewhere the error is twice the error of first order, for errors relative to the largest entry of
an argument. Without a gradient it is infinite, so that there is no bound; the midpoint is the value.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import cvxpy as cp
import numpy as np
import scipy.sparse as sp
from cvxpy.atoms.affine.add_expr import AddExpression
from cvxpy.atoms.affine.affine_atom import AffAtom
from cvxpy.atoms.affine.binary_operators import DivExpression, MulExpression
from cvxpy.atoms.affine.broadcast_to import broadcast_to
from cvxpy.atoms.affine.conv import conv, convolve
from cvxpy.atoms.affine.cumsum import cumsum
from cvxpy.atoms.affine.diag import diag_mat, diag_vec
from cvxpy.atoms.affine.hstack import Hstack
from cvxpy.atoms.affine.index import index, special_index
from cvxpy.atoms.affine.kron import kron
from cvxpy.atoms.affine.promote import Promote
from cvxpy.atoms.affine.reshape import reshape
from cvxpy.atoms.affine.sum import Sum
from cvxpy.atoms.affine.trace import Trace
from cvxpy.atoms.affine.transpose import transpose
from cvxpy.atoms.affine.unary_operators import NegExpression
from cvxpy.atoms.affine.upper_tri import upper_tri
from cvxpy.atoms.affine.vstack import Vstack
from cvxpy.atoms.affine.wraps import Wrap
from cvxpy.atoms.elementwise.log1p import log1p
from cvxpy.atoms.lambda_max import lambda_max
from cvxpy.atoms.lambda_sum_largest import lambda_sum_largest
from cvxpy.atoms.log_sum_exp import log_sum_exp
from cvxpy.atoms.max import max as max_atom
from cvxpy.atoms.min import min as min_atom
from cvxpy.atoms.norm1 import norm1
from cvxpy.atoms.norm_inf import norm_inf
from cvxpy.atoms.norm_nuc import normNuc
from cvxpy.atoms.pnorm import Pnorm
from cvxpy.atoms.quad_form import QuadForm
from cvxpy.atoms.quad_over_lin import quad_over_lin
from cvxpy.atoms.sigma_max import sigma_max

from kernelopt.language.combination import Combination
from kernelopt.numerics.ball import ETA, EXACTLY_SUMMED, LIBRARY, Ball, raised
from kernelopt.numerics.rounding import eigenvalue_error
from kernelopt.structure.affine import affine, flat
from kernelopt.structure.powers import order_of_norm
from kernelopt.structure.trees import POWER, exponent_of
from kernelopt.validation import Array

Rule = Callable[..., Ball]

EVALUATION = 2e-14  # relative, about 100 u: assumed of the arguments and the value of an atom without a rule
MOVES = (
    *(broadcast_to, diag_mat, diag_vec, Hstack, index, special_index, Promote, reshape, transpose),
    *(upper_tri, Vstack, Wrap),
)
"""Affine atoms that move entries and compute nothing."""
SUMS = (AddExpression, cumsum, *MOVES)
"""Sums of entries of their arguments, with the coefficients 0 and 1."""
PRODUCTS = (MulExpression, kron, conv, convolve)
"""Sums of products of an entry of either argument."""


def dense(ball: Ball) -> Ball:
    """Return a ball of arrays, shaped as the argument that it encloses, whose radius has its shape."""
    mid = ball.mid.toarray() if sp.issparse(ball.mid) else ball.mid
    return Ball(mid, np.broadcast_to(ball.rad, np.shape(mid)))


def numeric(atom: Any, values: list[Any]) -> Array:
    """Return the value of an atom at given arguments."""
    found = atom.numeric(values)
    return np.asarray(found.toarray() if sp.issparse(found) else found, dtype=float)


def of_sum(atom: Any, *balls: Ball) -> Ball:
    """Enclose a sum of entries: the sum of the radii, and gamma_k times the sum of the absolute values."""
    mid, rad = numeric(atom, [ball.mid for ball in balls]), numeric(atom, [ball.rad for ball in balls])
    if isinstance(atom, MOVES):
        return Ball.of(mid, rad)
    terms = numeric(atom, [1.0 * ((ball.mid != 0) | (ball.rad != 0)) for ball in balls])
    sizes = numeric(atom, [np.abs(ball.mid) for ball in balls])
    return Ball.computed(mid, sizes, np.maximum(terms - 1, 0), rad)


def of_product(atom: Any, left: Ball, right: Ball) -> Ball:
    """Enclose a sum of k products: |A| r_b + r_A (|b| + r_b), gamma_k |A||b|, and eta for each product.

    An image A b of few products is rounded once in each entry. A factor of a matrix product may be sparse.
    """
    terms: Any = numeric(atom, [1.0 * (left.size != 0), 1.0 * (right.size != 0)])
    size, rad = numeric(atom, [abs(left.mid), abs(right.mid)]), 4 * ETA * terms
    mid, A = numeric(atom, [left.mid, right.mid]), left.mid
    of_vector = type(atom) is MulExpression and np.ndim(right.mid) == 1 and A.ndim > 0
    if of_vector and not sp.issparse(A) and A.size <= EXACTLY_SUMMED:
        rounded = Ball(right.mid).dots(np.atleast_2d(A))
        size, mid, rad = 0 * size, rounded.mid, rounded.rad
    if not right.is_exact:
        rad = rad + numeric(atom, [abs(A), np.broadcast_to(right.rad, np.shape(right.mid))])
    if not left.is_exact:
        rad = rad + numeric(atom, [np.broadcast_to(left.rad, np.shape(A)), right.size])
    return Ball.computed(mid, size, terms, rad)


def of_combination(atom: Any, weights: Ball) -> Ball:
    """Enclose sum_m w_m K_m, whose terms are at most sqrt(d_i d_j) with the diagonals d of |w_m| K_m."""
    size, change = (np.sqrt(w @ atom.grams.magnitudes) for w in (weights.size, weights.rad))
    mid = numeric(atom, [weights.mid])
    return Ball.computed(mid, np.outer(size, size), weights.mid.size + 8, np.outer(change, change))


def of_affine(atom: Any, *balls: Ball) -> Ball:
    """Enclose any other affine atom, by its matrix."""
    places = [cp.Variable(arg.shape) for arg in atom.args]
    try:
        read = affine(atom.copy(places))
    except NotImplementedError:  # cvxpy replaces the atoms of complex numbers before it compiles a problem
        read = None
    if read is None:
        return Ball(np.zeros(atom.shape), np.full(atom.shape, np.inf))
    found = Ball(read.constant)
    for place, ball in zip(places, balls, strict=True):
        if place in read.matrices:
            found = found + read.matrices[place] @ Ball(flat(ball.mid), flat(ball.rad))
    return Ball(*(np.reshape(part, atom.shape, order="F") for part in (found.mid, found.rad)))


def of_power(atom: Any, x: Ball) -> Ball:
    """Enclose x^p: of |x| where p is a power of two, whose domain are all numbers."""
    p = exponent_of(atom)
    if p in (0.0, 1.0):
        return Ball(np.ones(np.shape(x.mid))) if p == 0 else x
    return (x.absolute() if p > 1 and np.log2(p) == int(np.log2(p)) else x).power(p)


def of_norm(atom: Any, x: Ball) -> Ball:
    """Enclose |x|_p of all entries, or along an axis."""
    p = order_of_norm(atom)
    if p < 1:
        return of_other(atom, x)
    return x.absolute().sum(atom.axis, atom.keepdims) if p == 1 else x.norm(p, atom.axis, atom.keepdims)


def of_squares(atom: Any, x: Ball, y: Ball) -> Ball:
    """Enclose |x|^2 / y as |x| (|x| / y)."""
    length = x.norm(2, getattr(atom, "axis", None), getattr(atom, "keepdims", False))
    return length * (length / y)


def of_form(atom: Any, x: Ball, P: Ball) -> Ball:
    """Enclose x'Px."""
    x = Ball(np.ravel(x.mid), np.ravel(x.rad))
    return ((P * x).sum(axis=1) * x).sum()


def lipschitz(constant: Callable[[Any], float]) -> Rule:
    """Return the rule of a function of eigenvalues or singular values, with its Lipschitz constant."""

    def enclosed(atom: Any, X: Ball) -> Ball:
        rounding = max(X.mid.shape) * eigenvalue_error(X.mid)
        rad = 0.0 if X.is_exact else Ball(X.rad).norm(2).above
        return Ball.of(numeric(atom, [X.mid]), raised(constant(atom) * (rad + rounding)))

    return enclosed


def of_log_sum_exp(atom: Any, x: Ball) -> Ball:
    """Enclose log sum exp(x) = s + log sum exp(x - s), with s the largest entry."""
    largest = np.max(x.mid, axis=atom.axis, keepdims=True)
    total = (x - Ball(largest)).monotone(np.exp).sum(atom.axis, atom.keepdims)
    return Ball(np.reshape(largest, np.shape(total.mid))) + total.monotone(np.log)


def of_relative_entropy(atom: Any, x: Ball, y: Ball) -> Ball:
    """Enclose x log(x / y), and x log(x / y) - x + y for the divergence of Kullback and Leibler."""
    if not x.below.min(initial=np.inf) > 0:
        found = -of_entropy(atom, x) - x * y.monotone(np.log)
    else:
        found = x * (x / y).monotone(np.log)
    return found if isinstance(atom, cp.rel_entr) else found - x + y


def of_entropy(atom: Any, x: Ball) -> Ball:
    """Enclose -x log x, which increases up to exp(-1) and decreases from there; zero at zero."""
    low, high = np.maximum(x.below, 0.0), np.maximum(x.above, 0.0)
    ends = []
    for end in (low, high):
        logarithm = np.log(np.where(end > 0, end, 1.0))
        value = np.where(end > 0, -end * logarithm, 0.0)
        ends.append(Ball(value, raised(2 * LIBRARY * np.abs(value) + ETA * (value != 0))))
    peak = (low <= np.exp(-1)) & (np.exp(-1) <= high)
    top = np.where(peak, np.exp(-1) * (1 + LIBRARY), -np.inf)
    above = np.maximum(np.maximum(ends[0].above, ends[1].above), top)
    return Ball.between(np.minimum(ends[0].below, ends[1].below), above)


def of_huber(atom: Any, x: Ball) -> Ball:
    """Enclose x^2 up to M, and 2 M |x| - M^2, which is at least M^2."""
    x, M = x.absolute(), float(atom.M.value)
    folded = Ball.between(np.maximum(x.below, 0.0), np.maximum(x.above, 0.0))
    return folded.monotone(lambda a: np.where(a <= M, a * a, M * (2 * a - M)))


def increasing(relative: float) -> Rule:
    """Return the rule of an increasing function of one number that is computed to a relative error."""
    return lambda atom, x: x.monotone(lambda a: numeric(atom, [a]), relative)


def of_selection(atom: Any, *balls: Ball) -> Ball:
    """Enclose a largest or a smallest entry: increasing in every argument, without rounding."""
    return Ball.between(*(numeric(atom, [getattr(b, side) for b in balls]) for side in ("below", "above")))


def of_other(atom: Any, *balls: Ball) -> Ball:
    """Enclose an atom without a rule, by the assumption that this module states."""
    senses = [bool(atom.is_incr(i)) - bool(atom.is_decr(i)) for i in range(len(balls))]
    try:
        return between_ends(atom, balls, senses) if all(senses) else by_gradient(atom, balls)
    except (NotImplementedError, AttributeError, ValueError, ArithmeticError, np.linalg.LinAlgError):
        return Ball(numeric(atom, [ball.mid for ball in balls]), np.full(atom.shape, np.inf))


def between_ends(atom: Any, balls: tuple[Ball, ...], senses: list[int]) -> Ball:
    """Enclose an atom that increases in the arguments of sense 1 and decreases in the others."""
    widened = [Ball(b.mid, raised(b.rad + of_argument(b) * np.abs(b.mid))) for b in balls]
    pairs = list(zip(senses, widened, strict=True))
    low = numeric(atom, [b.below if sense > 0 else b.above for sense, b in pairs])
    high = numeric(atom, [b.above if sense > 0 else b.below for sense, b in pairs])
    found = Ball.between(np.minimum(low, high), np.maximum(low, high))
    return Ball.of(found.mid, raised(found.rad + EVALUATION * np.maximum(np.abs(low), np.abs(high))))


def by_gradient(atom: Any, balls: tuple[Ball, ...]) -> Ball:
    """Enclose an atom by its gradient; its arguments have errors relative to their largest entries."""
    mid = numeric(atom, [ball.mid for ball in balls])
    slopes = atom._grad([ball.mid for ball in balls])
    if any(slope is None for slope in slopes):
        return Ball(mid, np.full(np.shape(mid), np.inf))
    rad = EVALUATION * np.abs(mid)
    for slope, ball in zip(slopes, balls, strict=True):
        matrix = abs(sp.csr_array(slope if sp.issparse(slope) else np.reshape(slope, (ball.mid.size, -1))))
        error = ball.rad + of_argument(ball) * np.max(np.abs(ball.mid), initial=0.0)
        rad = rad + 2 * np.reshape(matrix.T @ flat(error), np.shape(mid), order="F")
    return Ball.of(mid, raised(rad))


def of_argument(ball: Ball) -> float:
    """Return the relative error that is assumed of an argument of an atom without a rule."""
    return float(Ball.computed(1.0, 1.0, 2 * np.size(ball.mid), EVALUATION).rad)


RULES: tuple[tuple[Any, Rule], ...] = (
    (SUMS, of_sum),
    (PRODUCTS, of_product),
    (NegExpression, lambda atom, x: Ball(-x.mid, x.rad)),
    (DivExpression, lambda atom, x, y: x / y),
    (Sum, lambda atom, x: x.sum(atom.axis, atom.keepdims)),
    (Trace, lambda atom, x: x[np.diag_indices(len(x.mid))].sum()),
    (Combination, of_combination),
    (AffAtom, of_affine),
    (POWER, of_power),
    ((Pnorm, norm1, norm_inf), of_norm),
    (quad_over_lin, of_squares),
    (QuadForm, of_form),
    ((cp.exp, cp.log, log1p), increasing(LIBRARY)),
    (cp.logistic, increasing(4 * LIBRARY)),
    ((max_atom, min_atom, cp.maximum, cp.minimum), of_selection),
    (cp.abs, lambda atom, x: x.absolute()),
    (lambda_sum_largest, lipschitz(lambda e: e.k)),
    ((lambda_max, sigma_max), lipschitz(lambda e: 1.0)),
    (normNuc, lipschitz(lambda e: float(np.sqrt(min(e.args[0].shape))))),
    (log_sum_exp, of_log_sum_exp),
    (cp.entr, of_entropy),
    ((cp.rel_entr, cp.kl_div), of_relative_entropy),
    (cp.xexp, lambda atom, x: x * x.monotone(np.exp)),
    (cp.huber, of_huber),
)


def rule_of(expression: Any) -> Rule:
    """Return the rule of an atom."""
    return next((rule for kinds, rule in RULES if isinstance(expression, kinds)), of_other)

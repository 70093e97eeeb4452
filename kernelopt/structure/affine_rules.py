"""Enclosures of affine cvxpy atoms from enclosures of their arguments."""

from __future__ import annotations

from typing import Any

import cvxpy as cp
import numpy as np
import scipy.sparse as sp
from cvxpy.atoms.affine.add_expr import AddExpression
from cvxpy.atoms.affine.binary_operators import MulExpression
from cvxpy.atoms.affine.broadcast_to import broadcast_to
from cvxpy.atoms.affine.conv import conv, convolve
from cvxpy.atoms.affine.cumsum import cumsum
from cvxpy.atoms.affine.diag import diag_mat, diag_vec
from cvxpy.atoms.affine.hstack import Hstack
from cvxpy.atoms.affine.index import index, special_index
from cvxpy.atoms.affine.kron import kron
from cvxpy.atoms.affine.promote import Promote
from cvxpy.atoms.affine.reshape import reshape
from cvxpy.atoms.affine.transpose import transpose
from cvxpy.atoms.affine.upper_tri import upper_tri
from cvxpy.atoms.affine.vstack import Vstack
from cvxpy.atoms.affine.wraps import Wrap

from kernelopt.numerics.ball import ETA, EXACTLY_SUMMED, Ball
from kernelopt.numerics.rounding import dots
from kernelopt.structure.affine import affine, flat
from kernelopt.validation import Array

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
    """Return a ball of arrays, shaped as the argument that it encloses."""
    return Ball(ball.mid.toarray()) if sp.issparse(ball.mid) else ball


def numeric(atom: Any, values: list[Any]) -> Array:
    """Return the value of an atom at given arguments."""
    found = atom.numeric(values)
    return np.asarray(found.toarray() if sp.issparse(found) else found, dtype=float)


def of_sum(atom: Any, balls: list[Ball]) -> Ball:
    """Enclose a sum of entries: the sum of the radii, and gamma_k times the sum of the absolute values."""
    balls = [dense(ball) for ball in balls]
    rads = [np.broadcast_to(ball.rad, np.shape(ball.mid)) for ball in balls]
    mid, rad = numeric(atom, [ball.mid for ball in balls]), numeric(atom, rads)
    if isinstance(atom, MOVES):
        return Ball.of(mid, rad)
    terms = numeric(atom, [1.0 * np.not_equal(ball.size, 0) for ball in balls])
    sizes = numeric(atom, [np.abs(ball.mid) for ball in balls])
    return Ball.computed(mid, sizes, np.maximum(terms - 1, 0), rad)


def of_product(atom: Any, balls: list[Ball]) -> Ball:
    """Enclose a sum of k products: |A| r_b + r_A (|b| + r_b), gamma_k |A||b|, and eta for each product."""
    left, right = (ball if isinstance(atom, MulExpression) else dense(ball) for ball in balls)
    terms: Any = numeric(atom, [1.0 * (left.size != 0), 1.0 * (right.size != 0)])
    size, rad = numeric(atom, [abs(left.mid), abs(right.mid)]), 4 * ETA * terms
    mid = numeric(atom, [left.mid, right.mid])
    if is_small_image(atom, left.mid, right.mid):
        size, (mid, rad) = 0 * size, dots(np.atleast_2d(left.mid), right.mid)
    if not right.is_exact:
        rad = rad + numeric(atom, [abs(left.mid), np.broadcast_to(right.rad, np.shape(right.mid))])
    if not left.is_exact:
        rad = rad + numeric(atom, [np.broadcast_to(left.rad, np.shape(left.mid)), right.size])
    return Ball.computed(mid, size, terms, rad)


def is_small_image(atom: Any, left: Any, right: Any) -> bool:
    """Whether an atom is A b with so few products that each entry can be rounded once."""
    of_vectors = type(atom) is MulExpression and left.ndim > 0 and np.ndim(right) == 1
    return of_vectors and left.ndim <= 2 and left.size <= EXACTLY_SUMMED and not sp.issparse(left)


def of_trace(atom: Any, balls: list[Ball]) -> Ball:
    """Enclose the sum of the diagonal."""
    mid, rad = np.broadcast_arrays(dense(balls[0]).mid, balls[0].rad)
    return Ball(np.diag(mid), np.diag(rad)).sum()


def of_total(atom: Any, balls: list[Ball]) -> Ball:
    """Enclose the sum of all entries, or along an axis."""
    return dense(balls[0]).sum(atom.axis, atom.keepdims)


def of_combination(atom: Any, balls: list[Ball]) -> Ball:
    """Enclose sum_m w_m K_m, whose terms are at most sqrt(d_i d_j) with the diagonals d of |w_m| K_m."""
    weights, magnitudes = dense(balls[0]), atom.grams.magnitudes
    rads = np.broadcast_to(weights.rad, weights.mid.shape)
    size, change = (np.sqrt(w @ magnitudes) for w in (weights.size, rads))
    mid = numeric(atom, [weights.mid])
    return Ball.computed(mid, np.outer(size, size), weights.mid.size + 8, np.outer(change, change))


def of_affine(atom: Any, balls: list[Ball]) -> Ball:
    """Enclose any other affine atom, by its matrix."""
    places = [cp.Variable(arg.shape) for arg in atom.args]
    try:
        read = affine(atom.copy(places))
    except NotImplementedError:  # cvxpy replaces the atoms of complex numbers before it compiles a problem
        read = None
    if read is None:
        return Ball(np.zeros(atom.shape), np.full(atom.shape, np.inf))
    found = Ball(read.constant)
    for place, ball in zip(places, (dense(ball) for ball in balls), strict=True):
        if place in read.matrices:
            rad = np.broadcast_to(ball.rad, np.shape(ball.mid))
            found = found + read.matrices[place] @ Ball(flat(ball.mid), flat(rad))
    return Ball(*(np.reshape(part, atom.shape, order="F") for part in (found.mid, found.rad)))

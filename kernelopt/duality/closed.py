r"""Closed forms of maxima over multipliers of atoms, for the presolve.

The conjugate of a sum is the infimal convolution of the conjugates, and for some sums it is known.

* The norm lambda |x|_1 and a square, as in the elastic net: with the multiplier u of the norm

  .. math:: \max_{\|u\|_\infty \le \lambda} -\|g + u\|_2^2 = -\|(|g| - \lambda)_+\|_2^2,

  the soft threshold. For lambda |x|_2 it is -(|g|_2 - lambda)_+^2. For x >= 0 only the positive part of g
  counts. The first one holds for any norm of g + u in the place of the square.
* A reciprocal and a linear function, as in the elastic net over kernels: with v for c / x^2 one has

  .. math:: \max_{v \ge g} 2 \sqrt{c v} - d v = c / d - d (\sqrt{g} - \sqrt{c} / d)_+^2.

"""

from __future__ import annotations

from functools import partial
from typing import Any

import cvxpy as cp
import numpy as np

from kernelopt.duality.forms import Form, Multiplier, Term
from kernelopt.duality.matrices import ROUNDING, diagonal_of, multiple_of_identity
from kernelopt.duality.model import Ball, Model, Piece, Row, Shrinkage
from kernelopt.duality.products import constant_entry, labelled, times
from kernelopt.duality.squares import lengths


def shrink(model: Model) -> bool:
    """Maximise over the multiplier of a norm beside a square or another norm; say whether it was done."""
    for piece in model.pieces:
        ball = piece.ball
        if ball is None or (ball.p != 1 and piece.floor is None):
            continue
        places = occurrences(model, ball.u)
        if len(places) != 1 or not fits(model, ball, *places[0]):
            continue
        owner, form, term = places[0]
        rest = form.without(ball.u)
        threshold = ball._replace(factors=np.abs(np.asarray(diagonal_of(term.matrix))))
        model.pieces.remove(piece)
        if not ball.price.expression.is_nonneg():  # |u| <= lambda has said that it is
            model.pieces.append(Piece(domain=partial(nonnegative, ball.price, piece.label)))
        model.multipliers.remove(ball.u)
        if isinstance(owner, Row):
            owner.form, owner.ball = rest, threshold
            found = Shrinkage(threshold, partial(gradient_of, owner), owner.kind)
        else:
            found = Shrinkage(threshold, partial(rest.expression, owner.variable.shape), "free")
            owner.definition = partial(least_sizes, found)
        model.shrinkages.append(found)
        return True
    return False


def nonnegative(multiplier: Multiplier, label: str) -> list[Any]:
    """Return the constraint that a multiplier is non-negative."""
    return [labelled(multiplier.expression >= 0, label)]


def gradient_of(row: Row) -> cp.Expression:
    """Return the gradient by a variable with a curvature, its negative for one that is non-negative.

    The sign of that by a free variable is the one with fewer minus signs.
    """
    given_negative = all((one.matrix.data <= 0).all() for one in row.form.given)
    flip = row.kind == "nonneg" or (row.kind == "free" and row.form.negative and given_negative)
    return (row.form.times(-1.0) if flip else row.form).expression(row.variable.shape, row.symmetric)


def least_sizes(found: Shrinkage) -> cp.Expression:
    """Return the minimum that a `Shrinkage` is."""
    return shrunk(found.g(), found.ball, found.kind)


def occurrences(model: Model, multiplier: Multiplier) -> list[tuple[Any, Form, Term]]:
    """Return the owners and the forms in which a multiplier occurs: rows, definitions and the value.

    A row that was solved as an equation is the definition of a multiplier, and not counted twice.
    """
    forms: list[tuple[Any, Form]] = [(model, model.linear)]
    for row in model.rows.values():
        if row.solved is None or not isinstance(row.solved.definition, Form):
            forms.append((row, row.form))
    forms += [(m, m.definition) for m in model.multipliers if isinstance(m.definition, Form)]
    return [(owner, form, term) for owner, form in forms for term in form.of(multiplier)]


def fits(model: Model, ball: Ball, owner: Any, form: Form, term: Term) -> bool:
    """Whether the multiplier of a norm is, up to factors, added to a gradient that is squared, or to another.

    The other one is a multiplier that occurs in the norm of its atom alone.
    """
    factors = diagonal_of(term.matrix)
    if factors is None or not factors.all() or term.scale is not None or ball.u.parametric:
        return False
    if isinstance(owner, Multiplier):
        alone = owner.norm and not owner.parametric and not occurrences(model, owner)
        return ball.p == 1 and alone and not owner.variable.is_symmetric()
    if not isinstance(owner, Row) or owner.curvature is None or owner.ball is not None:
        return False
    if owner.symmetric and not (ball.u.variable.is_symmetric() and np.ptp(factors) == 0):
        return False
    uniform = np.ptp(owner.curvature) == 0 and np.ptp(np.abs(factors)) == 0
    return ball.p == 1 or (ball.p == 2 and bool(uniform))


def shrunk(g: cp.Expression, ball: Ball, kind: str) -> cp.Expression:
    """Return what is left of g at the best point of a ball.

    It is (|g| - lambda)_+ by entries for p = 1, and (|g|_2 - lambda)_+ for p = 2. For the `kind` "nonneg"
    only the positive part of g counts.
    """
    price = ball.price.expression
    if ball.p == 2:
        size = g if kind == "free" else cp.pos(g)
        size = cp.vec(size, order="F") if size.ndim == 2 else size
        return cp.pos(cp.norm2(size) - scaled_price(ball, price))
    return cp.pos((cp.abs(g) if kind == "free" else g) - scaled_price(ball, price, g.shape))


def scaled_price(ball: Ball, price: cp.Expression, shape: tuple[int, ...] = ()) -> cp.Expression:
    """Return the factors of a ball times its price."""
    if np.ptp(ball.factors) == 0:
        return times(float(ball.factors[0]), price)
    whole = price if price.shape == shape else cp.promote(price, shape)
    return cp.multiply(cp.Constant(ball.factors.reshape(shape, order="F"), name="b[norm]"), whole)


def close_reciprocal(model: Model) -> bool:
    """Maximise over the multiplier v of a reciprocal, 2 sqrt(c v) - d v for v >= g; say whether it was done.

    That is written for g = (k alpha'K_m alpha)_m, whose square roots are convex, and for equal entries of c
    and of d > 0.
    """
    for piece in model.pieces:
        if piece.reciprocal is None:
            continue
        v, price = piece.reciprocal
        places = {id(owner): (owner, term) for owner, _, term in occurrences(model, v)}
        rows = [(owner, term) for owner, term in places.values() if isinstance(owner, Row)]
        costs = [term for owner, term in places.values() if owner is model]
        if len(rows) != 1 or len(costs) != 1 or len(places) != 2:
            continue
        (row, term), (cost,) = rows[0], costs
        factor = multiple_of_identity(term.matrix)
        c, d = constant_entry(price.expression), constant_entry(cp.Constant(-cost.matrix.toarray()))
        if factor is None or c is None or d is None or min(factor, c, d) <= 0:
            continue
        other = row.kind != "nonneg" or row.solved is not None or row.curvature is not None
        if other or term.scale is not None or cost.scale is not None:
            continue
        if lengths(bound_of(v, row.form.without(v), factor)) is not None:
            finish_reciprocal(model, piece, v, row, (factor, c, d))
            return True
    return False


def bound_of(v: Multiplier, rest: Form, factor: float) -> cp.Expression:
    """Return g, where a gradient factor * v + rest is non-negative for v >= g."""
    return rest.times(-1 / factor).expression(v.variable.shape)


def finish_reciprocal(
    model: Model, piece: Piece, v: Multiplier, row: Row, numbers: tuple[float, float, float]
) -> None:
    """Put the maximum c / d - d (sqrt(g) - sqrt(c) / d)_+^2 in the place of 2 sqrt(c v) - d v, v >= g.

    `numbers` holds the factor of v in the row, c and d.
    """
    factor, c, d = numbers
    rest, at_rest = row.form.without(v), c / d**2

    def best() -> cp.Expression:
        return cp.maximum(bound_of(v, rest, factor), at_rest)

    def value() -> cp.Expression:
        root = lengths(bound_of(v, rest, factor))
        if root is None:  # the gradient is shifted, as in `recovery`
            return 2 * np.sqrt(c) * cp.sum(cp.sqrt(best())) - d * cp.sum(best()) - v.size * c / d
        k, size = root
        return -times(d * k, cp.sum_squares(cp.pos(size - np.sqrt(at_rest / k))))

    v.definition, row.solved = best, v
    model.pieces[model.pieces.index(piece)] = Piece(value, label=piece.label)
    model.linear = model.linear.without(v)
    constant = v.size * c / d
    total = sum(float(one.matrix.sum()) for one in model.linear.given if one.parameter is None) + constant
    model.linear.given = [one for one in model.linear.given if one.parameter is not None]
    if abs(total) > ROUNDING * constant:
        model.linear.add_given(np.array([total]))

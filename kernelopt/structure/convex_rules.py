"""Enclosures of convex and concave cvxpy atoms from enclosures of their arguments.

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
from cvxpy.atoms.elementwise.log1p import log1p
from cvxpy.atoms.lambda_max import lambda_max
from cvxpy.atoms.lambda_sum_largest import lambda_sum_largest
from cvxpy.atoms.norm1 import norm1
from cvxpy.atoms.norm_inf import norm_inf
from cvxpy.atoms.norm_nuc import normNuc
from cvxpy.atoms.sigma_max import sigma_max

from kernelopt.numerics.ball import ETA, LIBRARY, Ball, raised
from kernelopt.numerics.rounding import eigenvalue_error
from kernelopt.structure.affine import flat
from kernelopt.structure.affine_rules import dense, numeric
from kernelopt.structure.recognition import power_of

EVALUATION = 2e-14  # relative, about 100 u: assumed of the arguments and the value of an atom without a rule

LIPSCHITZ: dict[Any, Callable[[Any], float]] = {
    lambda_sum_largest: lambda e: e.k,
    lambda_max: lambda e: 1.0,
    sigma_max: lambda e: 1.0,
    normNuc: lambda e: float(np.sqrt(min(e.args[0].shape))),
}
"""Functions of singular values and eigenvalues, with their constants in the Frobenius norm."""
INCREASING = {cp.exp: LIBRARY, cp.log: LIBRARY, log1p: LIBRARY, cp.logistic: 4 * LIBRARY}
"""Increasing functions of one number, with their relative errors."""


def of_power(atom: Any, balls: list[Ball]) -> Ball:
    """Enclose x^p: of |x| where p is a power of two, whose domain are all numbers."""
    p, x = power_of(atom), dense(balls[0])
    if p in (0.0, 1.0):
        return Ball(np.ones(np.shape(x.mid))) if p == 0 else x
    return (x.absolute() if p > 1 and np.log2(p) == int(np.log2(p)) else x).power(p)


def of_norm(atom: Any, balls: list[Ball]) -> Ball:
    """Enclose |x|_p of all entries, or along an axis."""
    p, x = {norm1: 1.0, norm_inf: np.inf}.get(type(atom)) or float(atom.p), dense(balls[0])
    if p < 1:
        return of_other(atom, balls)
    return x.absolute().sum(atom.axis, atom.keepdims) if p == 1 else x.norm(p, atom.axis, atom.keepdims)


def of_squares(atom: Any, balls: list[Ball]) -> Ball:
    """Enclose |x|^2 / y as |x| (|x| / y)."""
    length = dense(balls[0]).norm(2, getattr(atom, "axis", None), getattr(atom, "keepdims", False))
    return length * (length / dense(balls[1]))


def of_form(atom: Any, balls: list[Ball]) -> Ball:
    """Enclose x'Px: gamma_2n |x|'|P||x|, and twice |r|'|P|(|x| + r)."""
    (x, P), n = (dense(ball) for ball in balls), balls[0].mid.size
    a, r, image = np.ravel(np.abs(x.mid)), np.ravel(np.broadcast_to(x.rad, np.shape(x.mid))), np.abs(P.mid)
    rad = 2 * (r @ (image @ (a + r))) + 8 * n * n * ETA * a.any()
    if not P.is_exact:
        rad = rad + (a + r) @ (P.rad @ (a + r))
    return Ball.computed(np.ravel(x.mid) @ (P.mid @ np.ravel(x.mid)), a @ (image @ a), 2 * n + 2, rad)


def of_eigenvalues(atom: Any, balls: list[Ball]) -> Ball:
    """Enclose a function of eigenvalues or singular values, by its Lipschitz constant."""
    X = dense(balls[0])
    constant = next(found(atom) for kind, found in LIPSCHITZ.items() if isinstance(atom, kind))
    rounding = max(X.mid.shape) * eigenvalue_error(X.mid)
    rad = 0.0 if X.is_exact else Ball(X.rad).norm(2).above
    return Ball.of(numeric(atom, [X.mid]), raised(constant * (rad + rounding)))


def of_log_sum_exp(atom: Any, balls: list[Ball]) -> Ball:
    """Enclose log sum exp(x) = s + log sum exp(x - s), with s the largest entry."""
    x = dense(balls[0])
    largest = np.max(x.mid, axis=atom.axis, keepdims=True)
    total = (x - Ball(largest)).monotone(np.exp).sum(atom.axis, atom.keepdims)
    s = Ball(np.reshape(largest, np.shape(total.mid)))
    return s + total.monotone(np.log)


def of_entropy(atom: Any, balls: list[Ball]) -> Ball:
    """Enclose -x log x."""
    return entropy(dense(balls[0]))


def of_relative_entropy(atom: Any, balls: list[Ball]) -> Ball:
    """Enclose x log(x / y), and x log(x / y) - x + y for the divergence of Kullback and Leibler."""
    x, y = (dense(ball) for ball in balls)
    if not x.below.min(initial=np.inf) > 0:
        found = -entropy(x) - x * y.monotone(np.log)
    else:
        found = x * (x / y).monotone(np.log)
    return found if isinstance(atom, cp.rel_entr) else found - x + y


def entropy(x: Ball) -> Ball:
    """Return -x log x, which increases up to exp(-1) and decreases from there; zero at zero."""
    low, high = np.maximum(x.below, 0.0), np.maximum(x.above, 0.0)
    ends = []
    for end in (low, high):
        logarithm = np.log(np.where(end > 0, end, 1.0))
        value = np.where(end > 0, -end * logarithm, 0.0)
        ends.append(Ball(value, raised(2 * LIBRARY * np.abs(value) + ETA * (value != 0))))
    peak = (low <= np.exp(-1)) & (np.exp(-1) <= high)
    above = np.maximum(
        np.maximum(ends[0].above, ends[1].above), np.where(peak, np.exp(-1) * (1 + LIBRARY), -np.inf)
    )
    return Ball.between(np.minimum(ends[0].below, ends[1].below), above)


def of_x_exp(atom: Any, balls: list[Ball]) -> Ball:
    """Enclose x exp(x)."""
    x = dense(balls[0])
    return x * x.monotone(np.exp)


def of_huber(atom: Any, balls: list[Ball]) -> Ball:
    """Enclose x^2 up to M, and 2 M |x| - M^2, which is at least M^2."""
    x, M = dense(balls[0]).absolute(), float(atom.M.value)
    folded = Ball.between(np.maximum(x.below, 0.0), np.maximum(x.above, 0.0))
    return folded.monotone(lambda a: np.where(a <= M, a * a, M * (2 * a - M)))


def of_increasing(atom: Any, balls: list[Ball]) -> Ball:
    """Enclose an increasing function of one number."""
    relative = next(error for kind, error in INCREASING.items() if isinstance(atom, kind))
    return dense(balls[0]).monotone(lambda x: numeric(atom, [x]), relative)


def of_selection(atom: Any, balls: list[Ball]) -> Ball:
    """Enclose a largest or a smallest entry."""
    balls = [dense(ball) for ball in balls]
    return Ball.between(*(numeric(atom, [getattr(b, side) for b in balls]) for side in ("below", "above")))


def of_other(atom: Any, balls: list[Ball]) -> Ball:
    """Enclose an atom without a rule, by the assumption that this module states."""
    balls = [dense(ball) for ball in balls]
    senses = [bool(atom.is_incr(i)) - bool(atom.is_decr(i)) for i in range(len(balls))]
    try:
        return between_ends(atom, balls, senses) if all(senses) else by_gradient(atom, balls)
    except (NotImplementedError, AttributeError, ValueError, ArithmeticError, np.linalg.LinAlgError):
        return Ball(numeric(atom, [ball.mid for ball in balls]), np.full(atom.shape, np.inf))


def between_ends(atom: Any, balls: list[Ball], senses: list[int]) -> Ball:
    """Enclose an atom that increases in the arguments of sense 1 and decreases in the others."""
    widened = [Ball(b.mid, raised(b.rad + of_atom(b) * np.abs(b.mid))) for b in balls]
    pairs = list(zip(senses, widened, strict=True))
    low = numeric(atom, [b.below if sense > 0 else b.above for sense, b in pairs])
    high = numeric(atom, [b.above if sense > 0 else b.below for sense, b in pairs])
    found = Ball.between(np.minimum(low, high), np.maximum(low, high))
    return Ball.of(found.mid, raised(found.rad + EVALUATION * np.maximum(np.abs(low), np.abs(high))))


def by_gradient(atom: Any, balls: list[Ball]) -> Ball:
    """Enclose an atom by its gradient; its arguments have errors relative to their largest entries."""
    mid = numeric(atom, [ball.mid for ball in balls])
    slopes = atom._grad([ball.mid for ball in balls])
    if any(slope is None for slope in slopes):
        return Ball(mid, np.full(np.shape(mid), np.inf))
    rad = EVALUATION * np.abs(mid)
    for slope, ball in zip(slopes, balls, strict=True):
        matrix = abs(sp.csr_array(slope if sp.issparse(slope) else np.reshape(slope, (ball.mid.size, -1))))
        error = np.broadcast_to(ball.rad, np.shape(ball.mid)) + of_atom(ball) * np.max(
            np.abs(ball.mid), initial=0.0
        )
        rad = rad + 2 * np.reshape(matrix.T @ flat(error), np.shape(mid), order="F")
    return Ball.of(mid, raised(rad))


def of_atom(ball: Ball) -> float:
    """Return the relative error that is assumed of an argument of an atom without a rule."""
    return float(Ball.computed(1.0, 1.0, 2 * np.size(ball.mid), EVALUATION).rad)

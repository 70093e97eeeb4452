"""Affine minorants of risks, and the relaxation in which they replace the risks."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import cvxpy as cp
import numpy as np

from kernelopt.certificates.boxes import Boxes
from kernelopt.certificates.conic.stated import substituted
from kernelopt.grams import Grams
from kernelopt.language.learner import Learner
from kernelopt.numerics.ball import Ball, form, stacked
from kernelopt.numerics.norms import conjugate_exponent, minimizing_weights
from kernelopt.numerics.rounding import exact_sum
from kernelopt.structure.affine import Affine, flat
from kernelopt.structure.evaluation import MOST_PRODUCTS, squared_norm
from kernelopt.structure.nearness import FidelityTerm
from kernelopt.structure.parts import Part, joined
from kernelopt.structure.relaxed_cones import RelaxedCones
from kernelopt.structure.structure import RiskTerm, Structure, WeightedStack, kept_in_structure
from kernelopt.validation import Array

KEPT = 2  # minorants of each risk: a certificate compares two alphas, and multipliers need one of them again
MIN_GAMMA = 1e-7  # relative to the largest gamma, since the minorant has 1 / gamma


@dataclass(frozen=True, eq=False)
class Minorant:
    """An affine function that is below a risk in exact arithmetic, whose numbers are known as balls.

    Attributes
    ----------
    constant : Ball of shape ()
    slopes : dict from variable to Ball
        The coefficients, flattened by columns.
    """

    constant: Ball
    slopes: dict[cp.Variable, Ball]

    def __add__(self, other: Minorant) -> Minorant:
        slopes = dict(self.slopes)
        for variable, slope in other.slopes.items():
            slopes[variable] = slopes[variable] + slope if variable in slopes else slope
        return Minorant(self.constant + other.constant, slopes)

    def __mul__(self, factor: Ball | float) -> Minorant:
        return Minorant(self.constant * factor, {v: slope * factor for v, slope in self.slopes.items()})

    @property
    def exact(self) -> Minorant:
        """The function of the midpoints."""
        return Minorant(Ball(self.constant.mid), {v: Ball(slope.mid) for v, slope in self.slopes.items()})

    @property
    def vanishes(self) -> bool:
        """Whether the function is zero."""
        return not any(ball.size.any() for ball in (self.constant, *self.slopes.values()))

    def falls(self, parts: Iterable[Part]) -> dict[cp.Variable, Ball]:
        """Return the negative slopes for the variables of some parts, zero where there are none."""
        variables = [v for part in parts for v in part.variables]
        return {v: -self.slopes[v] if v in self.slopes else Ball(np.zeros(v.size)) for v in variables}

    def over(self, variables: Sequence[cp.Variable]) -> Ball:
        """Return the slopes of some variables, one after the other."""
        return joined(variables, {v: Ball(np.zeros(v.size)) for v in variables} | self.slopes)

    @property
    def expression(self) -> cp.Expression | float:
        """The function of the midpoints as an expression, a number where it is constant."""
        expression: Any = float(self.constant.mid)
        for variable, slope in self.slopes.items():
            expression = expression + slope.mid @ cp.vec(variable, order="F")
        return expression


def constant(value: float, error: float = 0.0) -> Minorant:
    """Return a minorant without variables."""
    return Minorant(Ball(np.asarray(value), error), {})


def total(parts: Iterable[Minorant]) -> Minorant:
    """Return the sum of affine functions."""
    first, *others = [*parts] or [constant(0.0)]
    return sum(others, start=first)


def affine_image(read: Affine | None, c: Ball) -> Minorant:
    """Return c'x for an affine x; where x is not affine (`read` is None) the error is infinite."""
    if read is None:
        return constant(0.0, np.inf)
    at_zero = read.constant @ c if read.constant.any() else Ball(np.zeros(()))
    return Minorant(at_zero, {v: matrix.T @ c for v, matrix in read.matrices.items()})


def minorant(
    term: RiskTerm, alpha: Array, accurate: bool = False, gamma: Array | None = None, factor: float = 1.0
) -> Minorant:
    """Return factor times an affine function of the kernels that is below the risk everywhere.

    It is l(alpha) - 1/2 sum_m alpha'K_m alpha / gamma_m with alpha projected on the dual domain. gamma = 1
    for one kernel or norm 2; for another norm r, |gamma|_p = 1 with p = r / (r - 2), and without `gamma` it
    is optimal for alpha and the kernels at the current values of their variables. For constant kernels the
    function is a number. With `accurate` the quadratic forms are computed by dot products that are rounded
    once.
    """
    learner = term.learner
    alpha = learner.loss.project(alpha, learner.y, learner.has_intercept)
    gain, perturbation = dual_value_of(learner, alpha)
    forms = [quadratic_form(parts, alpha, perturbation, accurate) for parts in term.weighted]
    scales = [Ball(-factor / 2)] * len(forms)
    if len(forms) > 1 and learner.norm != 2:
        if all(form == "fixed" for form in term.forms):
            squares = stacked(scaled(form, Ball(1.0)).constant for form in forms)
            penalty = squared_norm(squares, conjugate_exponent(learner.norm)) * 0.5
            return Minorant((gain - penalty) * factor, {})
        if gamma is None:
            gamma = optimal_block_weights(learner.norm, [scaled(form, Ball(1.0)) for form in forms])
        scales = [scale / Ball(each) for scale, each in zip(scales, gamma, strict=True)]
    each = zip(forms, scales, strict=True)
    return Minorant(gain * factor, {}) + total(scaled(form, scale) for form, scale in each)


def scaled(form: Sequence[tuple[Affine | None, Ball]], scale: Ball) -> Minorant:
    """Return scale times the sum of c'x over some pairs (x, c)."""
    return total(affine_image(read, c * scale) for read, c in form)


def dual_value_of(learner: Learner, alpha: Array) -> tuple[Ball, float]:
    """Return l at an exactly feasible point near alpha, and a bound of its distance from alpha.

    With an intercept the domain has the constraint sum alpha = 0, which an alpha of doubles rarely meets
    exactly. The point differs from alpha by that sum in one coordinate, the one furthest from its bounds.
    """
    gain = learner.loss.bounded_dual_value(alpha, learner.y)
    excess = abs(exact_sum(alpha)) if learner.has_intercept else 0.0
    if excess == 0:
        return gain, 0.0
    _, _, _, lower, upper = learner.loss.curve(learner.y)
    distances = np.minimum(alpha - lower, upper - alpha)
    with np.errstate(divide="ignore", invalid="ignore"):
        slopes = np.abs(learner.loss.dual_gradient(alpha, learner.y))
    chosen = int(np.argmax(distances))
    slope = float(slopes[chosen] if distances[chosen] > 2 * excess else slopes.max())
    return gain + Ball(0.0, 2 * excess * slope), 2 * excess


def form_errors(d: Array, alpha: Array, moved: float = 0.0, rounded: bool = True) -> Array:
    """Return bounds of the errors of alpha'K_m alpha where one entry of alpha may be off by `moved`.

    With |K_m,ij|^2 <= d_mi d_mj and T = sum_i sqrt(d_mi) |alpha_i|, the move changes it by at most
    (2 T + s) s for s = max_i sqrt(d_mi) moved. If it is `rounded`, the errors of T^2 are added, which are at
    least as large. For an alpha of shape (n, k) they are the errors of the sum over its columns.
    """
    columns = alpha.reshape(len(alpha), -1)
    support = np.flatnonzero(columns.any(axis=1))
    T = np.abs(columns[support]).T @ Ball(d[:, support].T).power(0.5)
    step = Ball(d.max(axis=1)).power(0.5) * moved
    change = ((T * 2.0 + step) * step).sum(axis=0)
    return np.asarray((change + (T * T).sum(axis=0).rad).above if rounded else change.above)


def quadratic_form(
    parts: Sequence[WeightedStack], alpha: Array, perturbation: float, accurate: bool
) -> list[tuple[Affine | None, Ball]]:
    """Return pairs (x, c) with alpha'K alpha the sum of c'x, for the terms of K in `RiskTerm.weighted`."""
    found = []
    for weights, grams in parts:
        if grams is None:
            entry = 2 * perturbation * float(np.abs(alpha).max(initial=0.0)) + perturbation * perturbation
            products = Ball(alpha[:, None]) * Ball(alpha)
            found.append((weights, Ball(products.mid.ravel(), products.rad.ravel() + entry)))
            continue
        exactly = accurate and can_be_exact(weights, grams, alpha.size)
        errors = form_errors(grams.magnitudes, alpha, perturbation, not exactly)
        if exactly:
            exact = stacked(form(np.asarray(G), alpha) for G in grams)
            found.append((weights, exact + Ball(0.0, errors)))
        else:
            found.append((weights, Ball(grams.forms(alpha), errors)))
    return found


def can_be_exact(weights: Affine | None, grams: Grams | None, n: int) -> bool:
    """Whether the forms of a stack of kernels are computed by dot products that are rounded once."""
    fixed = weights is not None and not weights.matrices
    return grams is not None and (fixed or len(grams) * n**2 <= MOST_PRODUCTS)


def gains_accuracy(term: RiskTerm) -> bool:
    """Whether an accurate minorant of a risk is another one."""
    return any(can_be_exact(*part, term.learner.n) for parts in term.weighted for part in parts)


def near_minorant(term: FidelityTerm, U: Array) -> Minorant:
    """Return price * (<U, X - target> - L*(U)), which is below the term, for U projected on its domain."""
    U = term.fidelity.project(U)
    return Minorant(-term.conjugate_cost(U), {term.variable: Ball(U.ravel()) * term.price})


def optimal_block_weights(norm: float, forms: Sequence[Minorant]) -> Array:
    """Return about the gamma with |gamma|_p <= 1, p conjugate to norm / 2, that makes the minorant largest.

    It is optimal for the `forms` alpha'K_m alpha at the current values of their variables, or for equal forms
    where a variable has no value. Its norm is at most one in exact arithmetic, since |gamma|_p > 1 would
    make the minorant too large.
    """
    squares = [1.0] * len(forms)
    if all(v.value is not None for part in forms for v in part.slopes):
        values = ([slope.mid @ flat(v.value) for v, slope in part.slopes.items()] for part in forms)
        squares = [float(part.constant.mid) + sum(each) for part, each in zip(forms, values, strict=True)]
    lengths = np.sqrt(np.maximum(squares, 0.0))
    p = conjugate_exponent(norm / 2)
    weights = Ball(minimizing_weights(lengths, p, MIN_GAMMA))
    return (weights / Ball(weights.norm(p).above)).below


def minorants(structure: Structure, alphas: Sequence[Array], accurate: bool = False) -> list[Minorant]:
    """Return a minorant of every risk, at the current values of the structure's variables.

    It is zero for a risk that has weight zero in the objective and appears in no constraint.
    """
    kept, objective, found = last_minorants(structure), structure.objective, list[Minorant]()
    for k, (term, alpha) in enumerate(zip(structure.risks, alphas, strict=True)):
        key = (k, accurate and gains_accuracy(term), alpha.tobytes())
        if objective is not None and objective.factors[k] == 0 and not structure.constrained[k]:
            below = constant(0.0)
        elif key in kept:
            below = kept[key]
        else:
            below = minorant(term, alpha, accurate)
            if len(term.kernels) == 1 or term.learner.norm == 2:  # else gamma depends on the current values
                if len(kept) == KEPT * len(structure.risks):
                    del kept[next(iter(kept))]  # the oldest one
                kept[key] = below
        found.append(below)
    return found


@kept_in_structure
def last_minorants(structure: Structure) -> dict[tuple[int, bool, bytes], Minorant]:
    """Return the last minorants that depend on alpha alone, by risk, accuracy and the bytes of alpha."""
    return {}


def relaxation(
    structure: Structure, below: Sequence[Minorant], boxes: Boxes, cones: RelaxedCones | None = None
) -> cp.Problem:
    """Return the minimisation with every risk replaced by the positive part of its minorant.

    By the DCP rules the objective and the constraints are monotone in every risk, and risks are not negative:
    therefore this is a relaxation. The minorants are lowered by their errors over the boxes of the variables.
    With `cones` also the large matrix inequalities are relaxed.
    """
    pairs = zip(structure.risks, below, strict=True)
    return substituted(structure, {id(term.stand_in): positive_part(e, boxes) for term, e in pairs}, cones)


def positive_part(below: Minorant, boxes: Boxes) -> cp.Expression:
    """Return the positive part of a minorant lowered by its errors.

    In entries without bounds of a non-negative variable the slopes are lowered instead of the constant.
    """
    at_zero, expression = float(below.constant.below), cp.Constant(0.0)
    for variable, slope in below.slopes.items():
        box = boxes[variable.id]
        reach = np.maximum(np.abs(box.lower), np.abs(box.upper))
        bounded = np.isfinite(reach)
        at_zero -= float(slope.rad[bounded] @ reach[bounded])
        lowered = slope.mid - np.where(bounded | (not variable.is_nonneg()), 0.0, slope.rad)
        expression = expression + lowered @ cp.vec(variable, order="F")
    return cp.pos(expression + at_zero) if below.slopes else cp.Constant(max(at_zero, 0.0))

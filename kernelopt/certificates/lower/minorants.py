"""Affine minorants of risks, and the relaxation in which they replace the risks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

import cvxpy as cp
import numpy as np
import scipy.sparse as sp

from kernelopt.certificates.boxes import Boxes
from kernelopt.language.faces import facial_reduction
from kernelopt.language.learner import Learner
from kernelopt.language.terms import Term, terms
from kernelopt.numerics.norms import conjugate_exponent, lp_length, minimizing_weights
from kernelopt.numerics.rounding import (
    NORM_ROUNDINGS,
    UNDERFLOW,
    UNIT,
    Bounded,
    exact_sum,
    form,
    gamma,
    upwards,
)
from kernelopt.structure.affine import Affine, affine
from kernelopt.structure.primal_bound import MOST_PRODUCTS, accurate_image, image, kernel_sum
from kernelopt.structure.relaxed_cones import RelaxedCones
from kernelopt.structure.structure import RiskTerm, Structure, kept_in_structure
from kernelopt.structure.trees import copied_constraint, replaced
from kernelopt.structure.zero_weights import zero_equations
from kernelopt.validation import Array

KEPT = 2  # minorants of each risk: a certificate compares two alphas, and multipliers need one of them again
MIN_GAMMA = 1e-7  # relative to the largest gamma, since the minorant has 1 / gamma


class Minorant(NamedTuple):
    """An affine function that is below a risk in exact arithmetic, with bounds of its errors.

    Attributes
    ----------
    read : Affine
        The computed constant and coefficients.
    error : float
        A bound of the error of the constant.
    slopes : dict from variable to array
        Bounds of the errors of the coefficients, flattened by columns.
    """

    read: Affine
    error: float = 0.0
    slopes: Mapping[cp.Variable, Array] = MappingProxyType({})

    @property
    def expression(self) -> cp.Expression | float:
        """The computed function as an expression, a number where it is constant."""
        expression: Any = float(self.read.constant[0])
        for variable, row in self.read.matrices.items():
            expression = expression + row.toarray()[0] @ cp.vec(variable, order="F")
        return expression


def constant(value: float, error: float = 0.0) -> Minorant:
    """Return a minorant without variables."""
    return Minorant(Affine(np.array([value]), {}), error)


def minorant(term: RiskTerm, alpha: Array, accurate: bool = False) -> Minorant:
    """Return an affine function of the kernels that is below the risk everywhere.

    It is l(alpha) - 1/2 sum_m alpha'K_m alpha / gamma_m with alpha projected on the dual domain. gamma = 1
    for one kernel or norm 2; for another norm r, |gamma|_p = 1 with p = r / (r - 2), and gamma is optimal
    for alpha and the kernels at the current values of their variables. For constant kernels the function is a
    number. With `accurate` the quadratic forms are computed by dot products that are rounded once.
    """
    learner = term.learner
    alpha = learner.loss.project(alpha, learner.y, learner.bias is not None)
    l_alpha, perturbation = dual_value_of(learner, alpha)
    if all(form == "fixed" for form in term.forms):
        penalty = fixed_penalty(term, alpha, perturbation, accurate)
        return constant(l_alpha.value - penalty, l_alpha.error + UNIT * (abs(l_alpha.value) + penalty))
    parts = [quadratic_form(K, alpha, perturbation, accurate) for K in term.kernels]
    block_weights = np.ones(len(parts))
    if len(parts) > 1 and learner.norm != 2:
        block_weights = optimal_block_weights(learner.norm, parts)
    forms = sum_of_minorants(parts, 1 / (2 * block_weights))
    rows = {v: -row for v, row in forms.read.matrices.items()}
    rounding = UNIT * (abs(l_alpha.value) + float(np.abs(forms.read.constant[0])))
    error = (l_alpha.error + forms.error + rounding) * (1 + gamma(8))
    return Minorant(Affine(l_alpha.value - forms.read.constant, rows), error, forms.slopes)


def sum_of_minorants(parts: Sequence[Minorant], factors: Array) -> Minorant:
    """Return the sum of affine functions times positive factors, with bounds of the rounding errors."""
    k = gamma(len(parts) + 4)
    total, error, size = np.zeros(1), 0.0, 0.0
    rows, slopes = dict[cp.Variable, Any](), dict[cp.Variable, Array]()
    for part, factor in zip(parts, factors, strict=True):
        total = total + factor * part.read.constant
        size += factor * float(np.abs(part.read.constant[0]))
        error += factor * part.error
        for variable, row in part.read.matrices.items():
            error_part = part.slopes[variable] + k * abs(row).toarray()[0]
            error_part = error_part + UNDERFLOW / factor * (error_part > 0)
            rows[variable] = rows[variable] + factor * row if variable in rows else factor * row
            slopes[variable] = slopes.get(variable, 0.0) + factor * error_part
    return Minorant(Affine(total, rows), error + k * size, slopes)


def dual_value_of(learner: Learner, alpha: Array) -> tuple[Bounded, float]:
    """Return l at an exactly feasible point near alpha, and a bound of its distance from alpha.

    With an intercept the domain has the constraint sum alpha = 0, which an alpha of doubles rarely meets
    exactly. The point differs from alpha by that sum in one coordinate, the one furthest from its bounds.
    """
    found = learner.loss.bounded_dual_value(alpha, learner.y)
    excess = abs(exact_sum(alpha)) if learner.bias is not None else 0.0
    if excess == 0:
        return found, 0.0
    _, _, _, lower, upper = learner.loss.curve(learner.y)
    distances = np.minimum(alpha - lower, upper - alpha)
    with np.errstate(divide="ignore", invalid="ignore"):
        slopes = np.abs(learner.loss.dual_gradient(alpha, learner.y))
    chosen = int(np.argmax(distances))
    slope = float(slopes[chosen] if distances[chosen] > 2 * excess else slopes.max())
    return Bounded(found.value, found.error + 2 * excess * slope), 2 * excess


def fixed_penalty(term: RiskTerm, alpha: Array, perturbation: float, accurate: bool) -> float:
    """Return an upper bound of 1/2 |(sqrt(alpha'K_m alpha))_m|_s^2, 1/s + 1/norm = 1, at constant kernels."""
    kernels = [kernel_sum(K, alpha.size) for K in term.kernels]
    images = [(accurate_image if accurate else image)(K, alpha) for K in kernels]
    squares = np.array(
        [
            max(at_alpha.square.above, 0.0) + float(form_change(K.d, alpha, perturbation))
            for K, at_alpha in zip(kernels, images, strict=True)
        ]
    )
    norm = term.learner.norm
    if len(kernels) == 1 or norm == 2:
        return upwards(float(squares.sum()) / 2 * (1 + gamma(squares.size + 8)))
    length = lp_length(np.sqrt(squares), conjugate_exponent(norm))
    return upwards(length**2 / 2 * (1 + gamma(squares.size + NORM_ROUNDINGS)))


def form_errors(sizes: Array, alpha: Array) -> Array:
    """Return bounds of the rounding errors of alpha'K_m alpha, where |K_m,ij|^2 <= sizes_mi sizes_mj.

    Products may underflow, unless a form is exactly zero.
    """
    lengths = np.sqrt(sizes) @ np.abs(alpha)
    errors: Array = gamma(2 * alpha.size + 16) * lengths**2 + UNDERFLOW * alpha.size * (lengths > 0)
    return errors


def form_change(d: Array, alpha: Array, perturbation: float) -> Array:
    """Return bounds of the change of alpha'K_m alpha when one entry of alpha changes by `perturbation`.

    K_m is positive semidefinite with diag K_m <= d_m, a row of `d`, so that |K_m,ij| <= sqrt(d_mi d_mj).
    """
    if perturbation == 0:
        return np.zeros(d.shape[:-1])
    roots, largest = np.sqrt(d), d.max(axis=-1)
    change: Array = 2 * perturbation * np.sqrt(largest) * (roots @ np.abs(alpha))
    bounds: Array = change + perturbation * perturbation * largest
    return bounds


def quadratic_form(K: cp.Expression, alpha: Array, perturbation: float, accurate: bool) -> Minorant:
    """Return alpha'K alpha as an affine function of the variables of K, with bounds of its errors."""
    parts = terms(K)
    if parts is None:
        read = affine(cp.vec(K[: alpha.size, : alpha.size], order="F"))
        error = np.full(
            alpha.size**2,
            2 * perturbation * float(np.abs(alpha).max(initial=0.0)) + perturbation * perturbation,
        )
        products = np.outer(alpha, alpha).ravel()
        return linear_form(read, products, error + UNIT * np.abs(products))
    found = []
    for weights, grams in parts:
        sizes = grams.magnitudes[:, : alpha.size]
        if accurate and len(grams) * alpha.size**2 <= MOST_PRODUCTS:
            exact = [form(np.asarray(G)[: alpha.size, : alpha.size], alpha) for G in grams]
            forms, errors = np.array([f.value for f in exact]), np.array([f.error for f in exact])
        else:
            forms = grams.forms(alpha)
            errors = form_errors(sizes, alpha)
        errors = errors + form_change(sizes, alpha, perturbation)
        found.append(linear_form(affine(weights), forms, errors))
    return sum_of_minorants(found, np.ones(len(found)))


def linear_form(read: Affine | None, c: Array, errors: Array) -> Minorant:
    """Return c'x for an affine x, with the errors that the errors of c cause.

    Where x is not affine (`read` is None) the error is infinite.
    """
    if read is None:
        return constant(0.0, np.inf)
    widened = errors + gamma(c.size + 8) * np.abs(c) + UNDERFLOW * (errors + np.abs(c) > 0)
    rows = {v: sp.csr_array(np.atleast_2d(c @ matrix)) for v, matrix in read.matrices.items()}
    slopes = {v: np.asarray(abs(matrix).T @ widened) for v, matrix in read.matrices.items()}
    return Minorant(
        Affine(np.array([c @ read.constant]), rows), float(np.abs(read.constant) @ widened), slopes
    )


def optimal_block_weights(norm: float, forms: Sequence[Minorant]) -> Array:
    """Return about the gamma with |gamma|_p <= 1, p conjugate to norm / 2, that makes the minorant largest.

    It is optimal for the `forms` alpha'K_m alpha at the current values of their variables, or for equal forms
    where a variable has no value. It is scaled down by more than its rounding errors, since |gamma|_p > 1
    would make the minorant too large.
    """
    point = {v.id: v.value for part in forms for v in part.read.matrices}
    known = all(value is not None for value in point.values())
    squares = [float(part.read.at(point)[0]) if known else 1.0 for part in forms]
    lengths = np.sqrt(np.maximum(squares, 0.0))
    block_weights = minimizing_weights(lengths, conjugate_exponent(norm / 2), MIN_GAMMA)
    return block_weights * (1 - gamma(lengths.size + NORM_ROUNDINGS))


def minorants(structure: Structure, alphas: Sequence[Array], accurate: bool = False) -> list[Minorant]:
    """Return a minorant of every risk, at the current values of the structure's variables."""
    found = []
    for k, (term, alpha) in enumerate(zip(structure.risks, alphas, strict=True)):
        if is_absent(structure, k):
            found.append(constant(0.0))
            continue
        if len(term.kernels) > 1 and term.learner.norm != 2:  # gamma depends on the current values
            found.append(minorant(term, alpha, accurate))
        else:
            found.append(kept_minorant(structure, k, alpha, accurate))
    return found


def kept_minorant(structure: Structure, k: int, alpha: Array, accurate: bool) -> Minorant:
    """Return the minorant of risk k, which depends on alpha alone; the last ones are kept."""
    kept, key = minorants_by_alpha(structure), (k, accurate, alpha.tobytes())
    if key not in kept:
        if len(kept) == KEPT * len(structure.risks):
            del kept[next(iter(kept))]  # the oldest one
        kept[key] = minorant(structure.risks[k], alpha, accurate)
    return kept[key]


@kept_in_structure
def minorants_by_alpha(structure: Structure) -> dict[tuple[int, bool, bytes], Minorant]:
    """Return the last minorants of a structure by risk, accuracy and the bytes of alpha."""
    return {}


def is_absent(structure: Structure, k: int) -> bool:
    """Whether risk k has weight zero in the objective and appears in no constraint."""
    shares = structure.objective.coefficients
    return shares is not None and shares[k] == 0 and not structure.constrained[k]


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
    error, expression = below.error, below.expression
    for variable, slopes in below.slopes.items():
        box = boxes[variable.id]
        reach = np.maximum(np.abs(box.lower), np.abs(box.upper))
        bounded = np.isfinite(reach)
        error += float(slopes[bounded] @ reach[bounded])
        if variable.is_nonneg() and not bounded.all():
            expression = expression - np.where(bounded, 0.0, slopes) @ cp.vec(variable, order="F")
    if isinstance(expression, float):
        return cp.Constant(max(expression - error, 0.0))
    return cp.pos(expression - error)


def substituted(
    structure: Structure, substitutes: dict[int, Any], cones: RelaxedCones | None = None
) -> cp.Problem:
    """Return the minimisation with the stand-ins of the risks replaced and the risks' domains added.

    With `cones` the large matrix inequalities are relaxed.
    """
    objective = replaced(structure.lifted.objective.args[0], substitutes)
    constraints = [reduced(c, cones) for c in (*structure.lifted.constraints, *structure.domains)]
    constraints += zero_equations(structure)
    return cp.Problem(
        cp.Minimize(-objective if structure.maximize else objective),
        [copied_constraint(c, substitutes) for c in constraints],
    )


def reduced(constraint: cp.Constraint, cones: RelaxedCones | None = None) -> cp.Constraint:
    """Return a semidefinite constraint on its face (`facial_reduction`), with entries of size one.

    With `cones` it may be relaxed.
    """
    face = (facial_reduction(constraint) if cones is None else cones.face(constraint))[0]
    parts = terms(face.args[0]) if isinstance(face, cp.constraints.PSD) else None
    if parts is None:
        return face
    size = max(largest_coefficient(term) for term in parts)
    return face.args[0] / size >> 0 if size > 0 else face


def largest_coefficient(term: Term) -> float:
    """Return the largest entry of a term's matrices, each times the largest coefficient of its weight."""
    read = affine(term.weights)
    factors = np.ones(len(term.grams))
    if read is not None:
        rows = [np.ravel(abs(M).max(axis=1).toarray()) for M in read.matrices.values()]
        factors = np.max([np.abs(read.constant), *rows], axis=0)
    return max(float(f * np.abs(K).max()) for f, K in zip(factors, term.grams, strict=True))

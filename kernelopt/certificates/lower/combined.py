"""Lower bounds over weights of any sign whose combination is PSD and has a given trace."""

from __future__ import annotations

import numpy as np

from kernelopt.certificates.gap import Bound, floor, largest
from kernelopt.certificates.lower.closed import objective_parts
from kernelopt.certificates.lower.minorants import Minorant, form_errors
from kernelopt.numerics.ball import Ball
from kernelopt.structure.combined.coordinates import Coordinates, read_coordinates
from kernelopt.structure.combined.settings import SETTINGS
from kernelopt.structure.structure import Structure
from kernelopt.validation import Array
from kernelopt.witnesses.combined import factors

# Weights along dependent directions are assumed to be at most this, for kernels of Frobenius norm one. Larger
# ones move eigenvalues by 2^12 u = 5e-13, more than what counts as rounding of K(mu) >> 0.
LARGEST_DEPENDENT = 2.0**12
DIGITS = 53  # bits of a double
RISE = 1e-9  # of the bound: the accuracy of the search
ROUNDING = 1e-7  # of the value: a hundredth of the usual tolerance
ASSUMPTION = (
    "it holds for weights up to {:.0e} relative to the size of their kernels: some kernels are linearly "
    "dependent but for rounding, and larger weights would use rounding errors as kernels"
)


def combined_bound(structure: Structure, minorants: list[Minorant], attained: float = np.inf) -> Bound | None:
    """Return about the largest lower bound of the problem with every risk replaced by its minorant.

    The multipliers are those of `factors`, from the current values of the structure's variables, or from the
    centre where there are none. The largest bound counts, see `largest`.

    None where the problem is not over a `CombinedCone`.
    """
    objective, coordinates = affine_objective(structure, minorants), read_coordinates(structure)
    if objective is None or isinstance(coordinates, str):
        return None
    if coordinates.basis.copies.any() and structure.objective and structure.objective.linear.matrices:
        return None  # equal kernels may have prices that differ
    current = {v.id: v.value for v in structure.variables}
    known = all(value is not None and np.isfinite(value).all() for value in current.values())
    mu = coordinates.cone.weights(current) if known else coordinates.centre
    least, slope = floor(structure), objective.over(coordinates.cone.variables).mid
    found = (
        bound_of_factor(coordinates, objective, F, least)._replace(possible=possible)
        for F, possible in factors(coordinates, float(objective.constant.mid), slope, mu, least)
    )
    return largest(found, least, attained, RISE)


def affine_objective(structure: Structure, minorants: list[Minorant]) -> Minorant | None:
    """Return the objective with every risk replaced by its minorant, None where it is not affine."""
    read = structure.objective
    if read is None or read.terms or min(read.factors, default=0.0) < 0 or any(structure.constrained):
        return None
    linear, risks = objective_parts(read, minorants)
    return linear + risks


def bound_of_factor(coordinates: Coordinates, objective: Minorant, F: Array, least: float) -> Bound:
    """Return `proved_bound`, in twice the working precision where its rounding errors are large.

    There the multiplier is corrected too: it was computed from rounded numbers.
    """
    plain = proved_bound(coordinates, objective, F)
    if plain.rounding <= ROUNDING * max(abs(plain.value), least):
        return plain
    corrected = corrected_factor(coordinates, objective, F)
    factors = [F] if corrected is None else [F, corrected]
    return max(plain, *(proved_bound(coordinates, objective, G, accurate=True) for G in factors))


def proved_bound(coordinates: Coordinates, objective: Minorant, F: Array, accurate: bool = False) -> Bound:
    r"""Return a lower bound of an affine function h + g'mu over {K(mu) >> 0, r'mu = total}.

    With a `Centring` it is one over the larger set {H K(mu) H >> 0, r'mu = total}: there
    <Z, H K(mu) H> >= 0.

    With Z = F F', any number nu, and rho_i = g_i - <Z, K_i>,

    .. math:: g'\mu \ge \rho'\mu \ge \nu\, total - \max_{\|K(\mu)\|_F \le c} |(\rho - \nu r)'\mu|,

    since <Z, K(mu)> >= 0, and since a PSD matrix of trace c has a Frobenius norm of at most c. The maximum
    has a closed form in the orthonormal coordinates of `FrobeniusBasis`. All rounding errors are included.
    In dependent directions the weights are assumed to be below `LARGEST_DEPENDENT`. With `accurate` the
    numbers <Z, K_i> are computed in about twice the working precision.
    """
    cone, basis = coordinates.cone, coordinates.basis
    slope = objective.over(cone.variables)
    rho = slope - (accurate_adjoint if accurate else plain_adjoint)(coordinates, F)
    if coordinates.centring is not None:
        rho = rho + Ball(np.zeros(rho.mid.shape), coordinates.centring.errors(F))
    radius = coordinate_radius(coordinates)
    if slope.size[basis.zero].any() or not np.isfinite(radius):
        return Bound(-np.inf)
    nu = multiplier_of_trace(coordinates, rho.mid)
    residual = rho - Ball(cone.row) * nu
    along, dependent = basis.T.T @ residual, basis.dependent.T @ residual

    def price(sizes: Array, others: Array) -> Ball:
        length = Ball(sizes).norm(2) * radius + Ball(others).sum() * LARGEST_DEPENDENT
        return Ball(abs(cone.total)) / abs(cone.factor) * length

    value = objective.constant + Ball(cone.total) * nu - price(along.size, dependent.size)
    reason = ASSUMPTION.format(LARGEST_DEPENDENT) if basis.dependent.shape[1] else ""
    errors = [np.broadcast_to(ball.rad, ball.mid.shape) for ball in (along, dependent)]
    rounding = objective.constant.rad + price(*errors).mid
    return Bound(float(value.below), reason, rounding=float(rounding))


def corrected_factor(coordinates: Coordinates, objective: Minorant, F: Array) -> Array | None:
    """Return the factor of a multiplier near F F' that removes the residual in the directions of trace zero.

    Rounding of the kernels F'K_i F, in which a multiplier was computed, leaves a residual d = D'(g - <Z, K>).
    With S_j = sum_i D_ij F'K_i F the multiplier F (I + sum_j w_j S_j) F' has none for w = <S, S>^-1 d. None
    where it is not positive definite.
    """
    D, k = coordinates.D, F.shape[1]
    if not (k and D.shape[1]):
        return None
    residual = D.T @ (objective.over(coordinates.cone.variables).mid - accurate_adjoint(coordinates, F).mid)
    compressed = np.einsum("nj,ank->ajk", F, coordinates.images(F), optimize=True)
    S = (D.T @ compressed.reshape(len(D), -1)).reshape(-1, k, k)
    flat = (S + S.transpose(0, 2, 1)).reshape(len(S), -1) / 2
    sizes = np.linalg.norm(flat, axis=1)
    if not (sizes > 0).all():
        return None
    unit = flat / sizes[:, None]
    w = np.linalg.lstsq(unit @ unit.T, residual / sizes, rcond=None)[0]
    try:
        return np.asarray(F @ np.linalg.cholesky(np.eye(k) + (w @ unit).reshape(k, k)))
    except np.linalg.LinAlgError:
        return None


def multiplier_of_trace(coordinates: Coordinates, rho: Array) -> float:
    """Return the nu for which (rho - nu r)'mu is about smallest over the Frobenius ball."""
    T, row = coordinates.basis.T, coordinates.cone.row
    along = T.T @ row
    return float(along @ (T.T @ rho)) / float(along @ along)


def plain_adjoint(coordinates: Coordinates, F: Array) -> Ball:
    """Return the vector of <F F', K_i>."""
    if not F.shape[1]:
        return Ball(np.zeros(len(coordinates.stack)))
    adjoint = np.einsum("ank,nk->a", coordinates.images(F), F)
    return Ball(adjoint, form_errors(coordinates.cone.whole.magnitudes, F))


def accurate_adjoint(coordinates: Coordinates, F: Array) -> Ball:
    """Return the same with errors that are smaller by a factor of about 1e-6.

    The leading parts of K_i and F have so few bits that their product is exact in any order of summation
    [1]_. The other products are smaller than the first by these bits.

    References
    ----------
    .. [1] Ozaki, Ogita, Oishi, Rump, Error-free transformations of matrix multiplication by using fast
       routines of matrix multiplication and its applications, Numer. Algorithms 59 (2012).
    """
    m, N = coordinates.stack.shape[:2]
    if not F.shape[1]:
        return Ball(np.zeros(m))
    bits = (DIGITS - int(np.ceil(np.log2(N)))) // 2
    head = leading_bits(F, bits, 0)
    found = []
    for K in coordinates.stack:
        first = leading_bits(K, bits, 1)
        rest = first @ Ball(F - head) + (K - first) @ Ball(F)
        whole = Ball(np.ravel(first @ head)).dots(F.reshape(1, -1))[0]
        found.append(whole + F.ravel() @ Ball(rest.mid.ravel(), rest.rad.ravel()))
    return Ball(np.array([ball.mid for ball in found]), np.array([ball.rad for ball in found]))


def leading_bits(A: Array, bits: int, axis: int) -> Array:
    """Return A rounded to multiples of 2^-bits times a power of two above its largest entry along an axis."""
    largest = np.abs(A).max(axis=axis, keepdims=True)
    exponent = np.frexp(largest)[1]
    shift = np.ldexp(0.75, exponent + DIGITS - bits)
    return np.asarray((A + shift) - shift)


def coordinate_radius(coordinates: Coordinates) -> float:
    """Return an upper bound of |y| over the set, for mu = c (T y + dependent directions).

    It is near one. It allows for traces that the constraint states up to rounding. With a `Centring`
    |K| <= tr H K H + |K - H K H|, which exceeds tr K by three times sum_i |mu_i| sizes_i at most.
    """
    cone, basis = coordinates.cone, coordinates.basis
    wrong = Ball((Ball(cone.row) / cone.factor - Ball(cone.whole.diagonals).sum(axis=1)).size)
    if coordinates.centring is not None:
        wrong = wrong + Ball(coordinates.centring.sizes) * 3.0
    along = (np.abs(basis.T).T @ wrong).norm(2) / basis.shrink
    dependent = (np.abs(basis.dependent).T @ wrong).sum() + SETTINGS.dependent * basis.dependent.shape[1]
    if not along.above < 0.5:
        return np.inf
    return float(((dependent * LARGEST_DEPENDENT + 1.0) / (Ball(1.0) - along) / basis.shrink).above)

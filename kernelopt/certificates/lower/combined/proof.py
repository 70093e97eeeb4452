"""The lower bound that a multiplier Z proves over weights with a PSD combination of given trace."""

from __future__ import annotations

import numpy as np

from kernelopt.certificates.conic.multipliers import Bound
from kernelopt.certificates.lower.minorants import Minorant
from kernelopt.numerics.ball import Ball
from kernelopt.numerics.rounding import TINY, exact_sum, gamma, norm_above, two_products, upwards
from kernelopt.structure.combined.basis import DEPENDENT
from kernelopt.structure.combined.coordinates import Coordinates
from kernelopt.validation import Array

# Weights along dependent directions are assumed to be at most this, for kernels of Frobenius norm one. Larger
# ones move eigenvalues by 2^12 u = 5e-13, more than what counts as rounding of K(mu) >> 0.
LARGEST_DEPENDENT = 2.0**12
DIGITS = 53  # bits of a double
ASSUMPTION = (
    "it holds for weights up to {:.0e} relative to the size of their kernels: some kernels are linearly "
    "dependent but for rounding, and larger weights would use rounding errors as kernels"
)


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
    m, N = coordinates.stack.shape[:2]
    if not F.shape[1]:
        return Ball(np.zeros(m))
    adjoint = np.einsum("ank,nk->a", coordinates.images(F), F)
    sizes = np.sqrt(coordinates.cone.whole.magnitudes) @ np.abs(F)
    error = gamma(2 * N + F.shape[1] + 16) * np.einsum("ak,ak->a", sizes, sizes)
    return Ball(adjoint, error)


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
    tail, size = F - head, np.abs(F)
    adjoint, error = np.zeros(m), np.zeros(m)
    rate, small = gamma(N + 16), 2.0 ** (2 - bits)
    for i, K in enumerate(coordinates.stack):
        first = leading_bits(K, bits, 1)
        exact = first @ head
        rest = first @ tail + (K - first) @ F
        rows = np.abs(K).max(axis=1)[:, None]
        of_rest = rate * rows * (np.abs(tail).sum(axis=0) + small * size.sum(axis=0))
        products, remainders = two_products(F.ravel(), exact.ravel())
        others = float(np.vdot(F, rest))
        adjoint[i] = exact_sum([exact_sum(products), exact_sum(remainders), others])
        of_others = gamma(F.size + 16) * float(np.vdot(size, np.abs(rest))) + float(np.vdot(size, of_rest))
        of_others += gamma(4) * float(np.abs(remainders).sum()) + gamma(4) * abs(exact_sum(products))
        error[i] = 1.01 * (of_others + gamma(4) * abs(adjoint[i])) + TINY
    return Ball(adjoint, error)


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
    diagonals = np.abs(cone.whole.diagonals).sum(axis=1)
    wrong = (
        np.abs(cone.row / cone.factor - cone.whole.traces) + gamma(coordinates.stack.shape[1] + 8) * diagonals
    )
    if coordinates.centring is not None:
        wrong = wrong + 3 * coordinates.centring.sizes
    of_dependent = LARGEST_DEPENDENT * float((np.abs(basis.dependent).T @ wrong).sum())
    of_dependent += LARGEST_DEPENDENT * DEPENDENT * basis.dependent.shape[1]
    of_basis = norm_above(np.abs(basis.T).T @ wrong) / basis.shrink
    if not of_basis < 0.5:
        return np.inf
    return upwards((1 + of_dependent) / (1 - of_basis) / basis.shrink * (1 + gamma(16)))

r"""Gap-safe screening: kernels that are proved to have weight zero at every optimum, for p = 1.

The problem is the minimum over the simplex of J(w) = max_a l(a) - 1/2 a'K_w a, with K_w = sum_m w_m K_m and
the kernels times their reach. Its dual is the maximum of D(a) = l(a) - 1/2 max_m s_m(a), where s_m(a) =
a'K_m a. The optimal pairs (w*, a*) are the saddle points. Hence w*_m = 0 at every optimum if s_m(a*) <
max_k s_k(a*) at one dual optimum a*.

Let a machine be given: weights w of the simplex, a in the domain of l, t = K_w a + b, its value U = loss(t)
+ 1/2 a'K_w a, and a lower bound L of the optimum. Fenchel's inequality has the slack

    phi_i(c) = V_i(t_i) + c t_i - l_i(c) >= 0.

As 1'a* = 0 wherever there is an intercept, summing over the samples at c = a*_i gives

    L <= D(a*) <= l(a*) - 1/2 a*'K_w a* = U - 1/2 (a* - a)'K_w (a* - a) - sum_i phi_i(a*_i).

So d = a* - a meets 1/2 d'K_w d + sum_i phi_i(a*_i) <= G = U - L, for every loss, the hinge included. Let
r_i be the minimiser of phi_i, the response to t_i. Each phi_i(a*_i) is at least 1/2 lam_i d_i^2 - e_i in
three ways, the first two by (a*_i - r_i)^2 >= d_i^2 / 2 - (a_i - r_i)^2:

* where l_i + nu_i c^2 / 2 is concave, phi_i(a*_i) >= 1/2 nu_i (a*_i - r_i)^2, with lam_i = nu_i / 2 and e_i
  = 1/2 nu_i (a_i - r_i)^2;
* where phi_i has slopes of at least g_i > 0 on both sides of r_i, within the domain, phi_i(a*_i) >= g_i
  |a*_i - r_i|. As phi_i(a*_i) <= G, that is at least g_i^2 (a*_i - r_i)^2 / G, with lam_i = g_i^2 / G and
  e_i = g_i^2 (a_i - r_i)^2 / G;
* where |d_i| <= h_i, 0 >= 1/2 lam_i (d_i^2 - h_i^2) for every lam_i, with e_i = 1/2 lam_i h_i^2.

Most samples have large slopes g_i. Let R be a set of such samples, and F the others. As all phi_i are
non-negative, sum_R g_i |a*_i - r_i| <= G, and so sum_R g_i |d_i| <= H = G + sum_R g_i |a_i - r_i|. Where
|K_ij| <= z_i z_j, the seminorm of d_R under K is at most sum_R z_i |d_i| <= H max_R z_i / g_i. So only the
part d_F is left for the matrices of order |F|. With M = K_w[F, F] + diag(lam_F), the bounds e_i of the
samples in F, and the triangle inequality for the seminorm of K_w,

    d_F'M d_F <= r^2,    r = sqrt(2 (G + sum_F e_i)) + H max_R sqrt(K_w,ii) / g_i.

Where there is an intercept, |1'd_F| <= T = |1'a| + H max_R 1 / g_i, and rho 1 1' may be added to M, with
rho T^2 added to r^2; rho is the mean of the diagonal of K_w. If c M - K_m[F, F] is positive semidefinite,
then the seminorm of d_F under K_m is at most sqrt(c) r, and by the triangle inequality

    sqrt(s_m(a*)) <= sqrt(s_m(a)) + sqrt(c) r + H max_R sqrt(K_m,ii) / g_i,
    max_k sqrt(s_k(a*)) >= sqrt(w's(a*)) >= sqrt(w's(a)) - sqrt(2 G).

The kernel m is dropped if the first is below the second for some c with a proof that c M - K_m[F, F] >> 0.
Several kernels with c = c_m are dropped by one proof, that of M - sum_m K_m[F, F] / c_m >> 0. A proof is
a Cholesky factorisation: if the one of S - sigma I ends, the matrix S is positive semidefinite, where
sigma is gamma_{n+1} / (1 - gamma_{n+1}) tr S plus the error of the entries of S (Rump, BIT 46 (2006)). The
scaling of S to a unit diagonal is by powers of two, which is exact.

References
----------
.. [1] Ndiaye, Fercoq, Gramfort, Salmon, Gap safe screening rules for sparsity enforcing penalties, JMLR 18
   (2017): the ball around a dual point, for losses with a Lipschitz gradient.
"""

from __future__ import annotations

import numpy as np

from kernelopt.certificates import Certificate
from kernelopt.errors import InputError
from kernelopt.grams.caching import CACHE_BYTES, by_columns, pieces
from kernelopt.learner import Machine
from kernelopt.numerics.ball import Ball
from kernelopt.numerics.decompositions import semidefinite_beyond
from kernelopt.numerics.rounding import UNDERFLOW
from kernelopt.running import check
from kernelopt.structure.ball import BallProblem
from kernelopt.validation import Array, Index, Mask

BOX_SHARE = 0.25  # of the gap: what the bounds of d on the other samples may add to it
STEEP_SHARE = 0.125  # of the room of a kernel, and of sqrt(2 G): what the samples of R may cost
PARTS = 8  # of a group of kernels, whose entries are read together
ENTRY = 60.0  # operations that take as long as reading an entry: 6 ns
AT_ONCE = 1 << 17  # entries of all kernels that are held at a time: 1 MB, for a fast cache
ABOVE = 1 + 1e-9  # more than the roundings of a sum of a million squares
ROUNDINGS = 32  # more than those of a number of a loss, or of an entry or a term beside the sums


def zero_kernels(certificate: Certificate, read: BallProblem, most: float = np.inf) -> tuple[str, ...]:
    """Return the names of kernels whose weight is zero at every optimum, by the bounds of a certificate.

    Parameters
    ----------
    certificate : Certificate, of a feasible point
    read : BallProblem, with p = 1 and without prices
    most : float
        As for `screened`.
    """
    machine, theta = machine_of(certificate)
    proved = screened(read, theta / read.reach, machine, certificate.lower, most)
    return tuple(name for name, gone in zip(read.whole.names, proved, strict=True) if gone)


def machine_of(certificate: Certificate) -> tuple[Machine, Array]:
    """Return the machine that attains the upper bound of a certificate, and the weights of its kernel."""
    if not certificate.feasible:
        raise InputError("the solution must have a feasible point, got none. Solve the problem longer.")
    theta = np.concatenate([np.ravel(value) for value in certificate.point.values()])
    return certificate.machines[0], np.maximum(theta, 0.0)


def screened(read: BallProblem, w: Array, machine: Machine, lower: float, most: float = np.inf) -> Mask:
    """Return which kernels have weight zero at every optimum, shape (m,), as proved above.

    Parameters
    ----------
    read : BallProblem, with p = 1
    w : array of shape (m,), the scaled weights of the machine, w >= 0 and |w|_1 <= 1 up to rounding
    machine : Machine
        Of the kernel K_w; `value` is a proved upper bound of its value.
    lower : float
        A proved lower bound of the optimum of the problem.
    most : float
        Operations of all proofs together, at most. The easiest kernels are tried first.
    """
    proved = np.zeros(w.size, dtype=bool)
    bound = (Ball(lower) - rounded(read.offset)) / rounded(read.factor)
    distance = Distance(read, w, machine, float(bound.below))
    # Kernels with more room are easier to exclude, and the easy ones are tested together.
    easiest = np.argsort(-distance.room, kind="stable")
    groups = [easiest[: np.count_nonzero(distance.room > 0)]]
    while groups and groups[0].size:
        group = groups.pop(0)
        F = distance.flat(group)
        operations = ENTRY * w.size * F.size**2 + PARTS * F.size**3 / 6
        if operations > most or 8 * (2 + PARTS) * F.size**2 > CACHE_BYTES:
            groups.append(group[: group.size // 2])
            continue
        most -= operations
        for part, excluded in distance.tested(group, F):
            proved[part] = excluded
            if part.size > 1 and not excluded:
                groups.append(part)
    return proved


class Distance:
    """What is proved of d = a* - a; see the head of this module.

    Attributes
    ----------
    room : array of shape (m,)
        A kernel m is excluded if the seminorm of d under K_m is proved to be below this.
    """

    def __init__(self, read: BallProblem, w: Array, machine: Machine, lower: float) -> None:
        n = read.y.size
        self.read, self.w, self.alpha = read, w, machine.alpha
        self.room = np.zeros(w.size)
        gap = float((Ball(machine.value) - lower).above)
        if not np.isfinite(gap) or n == 0:
            return
        self.G = max(gap, UNDERFLOW)
        self.terms = 2 * n + w.size + ROUNDINGS  # of the sums of entries of kernels
        whole, reach, alpha = read.whole, read.reach, machine.alpha
        # |K_m,ij| <= sizes_mi sizes_mj
        self.sizes = sizes = by_columns(lambda d: root_above(reach[:, None] * d), whole.magnitudes[:, :n])
        support = np.flatnonzero(alpha)
        reached = (sizes[:, support] @ Ball(np.abs(alpha[support]))).above
        s = Ball.computed(reach * whole.forms(alpha), reached**2, self.terms)
        inside = (Ball(w) / max(1.0, float(Ball(w).sum().above))).below
        length = (inside @ s).power(0.5) - (Ball(self.G) * 2).power(0.5)
        self.room = (length - s.power(0.5)).below
        if not (self.room > 0).any():
            return
        t = whole.storage.image(reach * w, alpha)[:n] + machine.intercept
        size = (w * reached) @ sizes + np.abs(t) + abs(machine.intercept)
        f = Ball.computed(t, size, self.terms)
        self.lam, self.extra, slope, distance = curvatures(read, alpha, f, self.G)
        sloping = np.isfinite(slope)  # elsewhere alpha_i has one value, and d_i = 0
        H = slope[sloping] @ Ball(distance[sloping]) + self.G
        # What a sample of R costs, at a kernel whose entries on the diagonal are one.
        self.costs = (Ball(H.above) / Ball(slope)).above
        with np.errstate(invalid="ignore"):  # zero times an infinite cost
            squares = by_columns(lambda d: (w @ d**2 * ABOVE)[None], sizes)
            of_w = Ball(self.costs) * Ball(root_above(squares[0]))
        self.of_w = of_w.above

    def flat(self, group: Index) -> Index:
        """Return F for a group of kernels: the samples whose slopes are not large enough for all of them."""
        if not group.size:
            return group
        largest = by_columns(lambda z: (z[group] / self.room[group, None]).max(axis=0)[None], self.sizes)[0]
        of_group = np.multiply(self.costs, largest, out=np.zeros(largest.size), where=largest > 0)
        small = (of_group <= STEEP_SHARE) & (self.of_w <= STEEP_SHARE * np.sqrt(2 * self.G))
        return np.flatnonzero(~small)

    def tested(self, group: Index, F: Index) -> list[tuple[Index, bool]]:
        """Return a few parts of a group, with whether all their kernels are proved to have weight zero.

        For c_m of the kernels m it is enough that M - sum_m K_m[F, F] / c_m is positive semidefinite. The
        entries of the kernels are read once, for the sums over the parts.
        """
        if not F.size:
            return [(group, True)]
        R = np.setdiff1d(np.arange(self.alpha.size), F)
        largest = np.array([(self.costs[R] * self.sizes[k, R]).max(initial=0.0) for k in group])
        left = Ball((Ball(self.room[group]) - Ball(np.nextafter(largest, np.inf))).below)
        radius = ((Ball(self.extra[F]).sum() + self.G) * 2).power(0.5) + self.of_w[R].max(initial=0.0)
        squared_radius, rho = radius * radius, 0.0
        squares = self.sizes[:, F] ** 2
        if self.read.bias:
            total = Ball(self.alpha).sum().absolute() + self.costs[R].max(initial=0.0)
            rho = float((self.w @ squares).mean())
            squared_radius = squared_radius + total * total * rho
        if not np.isfinite(squared_radius.above):
            return []
        parts = np.array_split(group, min(PARTS, group.size))
        weights = np.zeros((1 + len(parts), self.w.size))
        weights[0] = self.w
        c = np.zeros(self.w.size)
        c[group] = (squared_radius / (left * left)).above
        for row, part in zip(weights[1:], parts, strict=True):
            row[part] = c[part]
        kernels, sizes, lam = self._combined(weights, F), weights @ squares + rho, self.lam[F]
        M, others, size, bounds = kernels[0] + rho, kernels[1:], sizes[0], sizes[1:]
        if dominated(M, lam, others.sum(axis=0), size + bounds.sum(axis=0), self.terms + len(parts)):
            return [(group, True)]  # mostly so near the optimum: one factorisation in the place of eight
        each = zip(parts, others, bounds, strict=True)
        return [(part, dominated(M, lam, K, size + bound, self.terms)) for part, K, bound in each]

    def _combined(self, weights: Array, F: Index) -> Array:
        """Return the combined kernels on the samples F, for each row of weights, shape (k, |F|, |F|).

        Only the lower triangles are computed, in blocks of rows. Entries above them may be zero.
        """
        used = np.flatnonzero(weights.any(axis=0))
        storage, scaled = self.read.whole.storage.subset(used), (weights * self.read.reach)[:, used]
        found = np.zeros((len(weights), F.size, F.size))
        for part in pieces(F.size, used.size * F.size, AT_ONCE):
            check()
            found[:, part, : part.stop] = np.tensordot(scaled, storage.between(F[part], F[: part.stop]), 1)
        return found


def curvatures(read: BallProblem, alpha: Array, t: Ball, gap: float) -> tuple[Array, Array, Array, Array]:
    """Return lam, e and the slopes with phi_i(a*_i) >= 1/2 lam_i d_i^2 - e_i, as derived above.

    Parameters
    ----------
    alpha : array of shape (n,)
    t : Ball of shape (n,)
    gap : float
        G; no phi_i exceeds it at a*.

    Returns
    -------
    lam, extra : arrays of shape (n,), lam_i >= 0 and e_i >= 0
    slope : array of shape (n,)
        Positive where phi_i has slopes of at least this on both sides of its minimiser r_i, else zero.
    distance : array of shape (n,)
        Upper bounds of |alpha_i - r_i| where there is a slope.
    """
    loss, y = read.loss, read.y
    linear, _, l1, lower, upper = loss.curve(y)
    width = np.maximum(upper - alpha, alpha - lower)
    nu, r = np.maximum(loss.concavity(y), 0.0), loss.response(t.mid, y)
    known = np.isfinite(r)  # by rounding the hard margin is violated, and then phi_i >= 0 is all that is used
    r = np.where(known, r, alpha)
    slope, lam = np.zeros(alpha.size), np.zeros(alpha.size)
    with np.errstate(all="ignore"):
        error_of_r = np.where(nu > 0, t.rad / nu, 0.0)  # a response has a derivative of at most 1 / nu
        distance = (rounded(alpha) - rounded(r) + Ball(np.zeros(r.size), error_of_r)).size
        if loss.quadratic:  # the slopes of phi_i on both sides of r_i
            rising, jump = t - rounded(linear) + rounded(nu) * Ball(r), rounded(l1)
            right = np.where(r >= upper, np.inf, (rising + jump * np.where(r >= 0, 1.0, -1.0)).below)
            left = np.where(r <= lower, np.inf, (jump * np.where(r <= 0, 1.0, -1.0) - rising).below)
            slope = np.where(known, np.maximum(np.minimum(left, right), 0.0), 0.0)
        corner = (nu == 0) & np.isfinite(slope) & (slope * width > gap)
    lam[corner] = (Ball(slope[corner]) * slope[corner] / gap).below
    lam = np.where(nu > 0, (rounded(nu) * 0.5).below, np.where(np.isfinite(lam), lam, 0.0))
    extra = (Ball(lam) * distance * distance).above
    others = (lam == 0) & np.isfinite(width) & (width > 0)
    if others.any():
        extra[others] = BOX_SHARE * gap / others.sum()
        wide = rounded(width[others])
        lam[others] = (Ball(extra[others]) * 2 / (wide * wide)).below
    return lam, extra, slope, distance


def root_above(squares: Array) -> Array:
    """Return more than the roots of products of two numbers, and zero for zero."""
    return np.where(squares > 0, np.nextafter(np.sqrt(np.nextafter(squares, np.inf)), np.inf), 0.0)


def rounded(x: Array | float) -> Ball:
    """Return numbers of a loss or a problem with the errors of a few operations."""
    return Ball.computed(x, np.abs(x), ROUNDINGS)


def dominated(K: Array, lam: Array, other: Array, bound: Array, terms: int) -> bool:
    """Whether K + diag(lam) - other is proved to be positive semidefinite.

    Parameters
    ----------
    K, other : arrays of shape (n, n)
        Symmetric; only their lower triangles are read. Their entries are computed sums of `terms` terms.
    lam : array of shape (n,)
    bound : array of shape (n,)
        Bounds of the diagonals of K + other, whose geometric means bound the sums of the absolute values.
    """
    S, diagonal = K - other, np.einsum("ii->i", K) - np.einsum("ii->i", other) + lam
    np.einsum("ii->i", S)[:] = diagonal
    bound = bound + lam
    if not (np.isfinite(S).all() and (diagonal > 0).all() and np.isfinite(bound).all()):
        return False
    unit = np.exp2(-np.round(np.log2(diagonal) / 2))
    S = unit[:, None] * S * unit
    # The errors of the entries are below `error`, as those of the next sums are: 4 - 2 - 1 > 0 is left.
    error = float(Ball.computed(0.0, unit**2 @ bound, terms + 2 * lam.size).above)
    S[np.diag_indices(lam.size)] -= 4 * error
    return bool(semidefinite_beyond(S, 2 * error))

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

from typing import NamedTuple

import numpy as np

from kernelopt.grams.caching import pieces
from kernelopt.learner import Machine
from kernelopt.numerics.rounding import UNDERFLOW, gamma, upwards
from kernelopt.running import check
from kernelopt.structure.ball import BallProblem
from kernelopt.validation import Array, Index, Mask

BOX_SHARE = 0.25  # of the gap: what the bounds of d on the other samples may add to it
STEEP_SHARE = 0.125  # of the room of a kernel, and of sqrt(2 G): what the samples of R may cost
PARTS = 8  # of a group of kernels, which are tested together and then in halves
ENTRY = 60.0  # operations that take as long as reading an entry: 6 ns
AT_ONCE = 1 << 17  # entries of all kernels that are held at a time: 1 MB, for a fast cache
ROUNDINGS = 32  # more than those of an entry or a term beside the sums


def screened(
    read: BallProblem,
    w: Array,
    machine: Machine,
    lower: float,
    most: float = np.inf,
) -> Mask:
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
    bound = (lower - read.offset - gamma(8) * (abs(lower) + abs(read.offset))) / read.factor
    distance = Distance(read, w, machine, bound)
    # Kernels with more room are easier to exclude, and the easy ones are tested together.
    easiest = np.argsort(-distance.room, kind="stable")
    groups = [easiest[: np.count_nonzero(distance.room > 0)]]
    while groups and groups[0].size:
        group = groups.pop(0)
        F = distance.flat(group)
        operations = ENTRY * w.size * F.size**2 + PARTS * F.size**3 / 6
        if operations > most:
            groups += [group[: group.size // 2]]
            continue
        most -= operations
        excluded, open_ones = distance.excluded(group, F)
        proved[excluded] = True
        groups += open_ones
    return proved


class Distance:
    """What is proved of d = a* - a; see the head of this module.

    Attributes
    ----------
    room : array of shape (m,)
        A kernel m is excluded if the seminorm of d under K_m is proved to be below this.
    """

    def __init__(self, read: BallProblem, w: Array, machine: Machine, lower: float) -> None:
        m, n = w.size, read.y.size
        self.read, self.w, self.alpha = read, w, machine.alpha
        self.room = np.zeros(m)
        gap = upwards(machine.value - lower)
        if not np.isfinite(gap) or n == 0:
            return
        self.G = G = max(gap, UNDERFLOW)
        self.relative = relative = gamma(2 * n + m + ROUNDINGS)
        whole, reach, alpha = read.whole, read.reach, machine.alpha
        # |K_m,ij| <= sizes_mi sizes_mj
        self.sizes = sizes = np.sqrt(reach[:, None] * whole.magnitudes[:, :n])
        reached = sizes @ np.abs(alpha)
        s, error = reach * whole.forms(alpha), relative * reached**2 + UNDERFLOW
        inside = w / max(1.0, upwards(float(w.sum()) * (1 + relative)))
        length = (1 - relative) * np.sqrt(max(float(inside @ (s - error)), 0.0))
        length -= (1 + relative) * np.sqrt(2 * G)
        self.room = length - (1 + relative) * np.sqrt(np.maximum(s + error, 0.0))
        if not (self.room > 0).any():
            return
        t = whole.storage.image(reach * w, alpha)[:n] + machine.intercept
        error_of_t = relative * (w @ (sizes * reached[:, None]) + np.abs(t) + abs(machine.intercept))
        self.near = near = curvatures(read, alpha, t, error_of_t, G)
        sloping = np.isfinite(near.slope)  # elsewhere alpha_i has one value, and d_i = 0
        H = (1 + relative) * (G + float(near.slope[sloping] @ near.distance[sloping]))
        # What a sample of R costs, at a kernel whose entries on the diagonal are one.
        self.costs = np.divide(H, near.slope, out=np.full(n, np.inf), where=near.slope > 0)
        self.of_w = self.costs * np.sqrt(w @ sizes**2)

    def flat(self, group: Index) -> Index:
        """Return F for a group of kernels: the samples whose slopes are not large enough for all of them."""
        if not group.size:
            return group
        largest = (self.sizes[group] / self.room[group, None]).max(axis=0)
        of_group = np.multiply(self.costs, largest, out=np.zeros(largest.size), where=largest > 0)
        small = (of_group <= STEEP_SHARE) & (self.of_w <= STEEP_SHARE * np.sqrt(2 * self.G))
        return np.flatnonzero(~small)

    def excluded(self, group: Index, F: Index) -> tuple[Index, list[Index]]:
        """Return kernels of a group that are proved to have weight zero, and the parts that remain to test.

        For c_m of the kernels m it is enough that M - sum_m K_m[F, F] / c_m is positive semidefinite. The
        entries of the kernels are read once, for the sums over a few parts of the group.
        """
        relative, sizes = self.relative, self.sizes
        if not F.size:
            return group, []
        steep = np.ones(self.alpha.size, dtype=bool)
        steep[F] = False
        costs = self.costs[steep]
        left = self.room[group] - (1 + relative) * (costs * sizes[group][:, steep]).max(axis=1, initial=0.0)
        radius = np.sqrt(2 * (self.G + float(self.near.extra[F].sum())))
        squared_radius = (1 + relative) * (radius + self.of_w[steep].max(initial=0.0)) ** 2
        squares, rho = sizes[:, F] ** 2, 0.0
        if self.read.bias:
            total = abs(float(self.alpha.sum())) + relative * float(np.abs(self.alpha).sum())
            total += float(costs.max(initial=0.0))
            rho = float((self.w @ squares).mean())
            squared_radius += (1 + relative) * rho * total**2
        if not np.isfinite(squared_radius):
            return group[:0], []
        parts = np.array_split(np.arange(group.size), min(PARTS, group.size))
        weights = np.zeros((1 + len(parts), self.w.size))
        weights[0] = self.w
        for row, part in zip(weights[1:], parts, strict=True):
            row[group[part]] = (1 + relative) * squared_radius / left[part] ** 2
        matrices, magnitudes = self._combined(weights, F), weights @ squares
        M, diagonal, lam = matrices[0] + rho, magnitudes[0] + rho, self.near.lam[F]
        proved, unproved, untested = [group[:0]], [], [(0, len(parts))]
        while untested:
            first, last = untested.pop()
            rows = slice(1 + first, 1 + last)
            check()
            other, sums = matrices[rows].sum(axis=0), magnitudes[rows].sum(axis=0)
            if dominated(M, lam, other, (diagonal, sums), relative):
                proved += [group[part] for part in parts[first:last]]
            elif last - first > 1:
                middle = (first + last) // 2
                untested += [(middle, last), (first, middle)]
            elif parts[first].size > 1:
                unproved.append(group[parts[first]])
        return np.concatenate(proved), unproved

    def _combined(self, weights: Array, F: Index) -> Array:
        """Return the combined kernels on the samples F, for each row of weights, shape (k, |F|, |F|).

        Only the lower triangles are computed, in blocks of rows. Entries above them may be zero.
        """
        found, scaled = np.zeros((len(weights), F.size, F.size)), weights * self.read.reach
        for part in pieces(F.size, self.w.size * F.size, AT_ONCE):
            K = self.read.whole.storage.between(F[part], F[: part.stop])
            found[:, part, : part.stop] = (scaled @ K.reshape(self.w.size, -1)).reshape(
                len(weights), -1, part.stop
            )
        return found


class Curvatures(NamedTuple):
    """Lower bounds 1/2 lam_i d_i^2 - e_i of the phi_i(a*_i), and their slopes; arrays of shape (n,).

    Attributes
    ----------
    lam, extra : arrays, lam_i >= 0 and e_i >= 0
    slope : array
        Positive where phi_i has slopes of at least this on both sides of its minimiser r_i, else zero.
    distance : array
        Upper bounds of |alpha_i - r_i| where there is a slope.
    """

    lam: Array
    extra: Array
    slope: Array
    distance: Array


def curvatures(read: BallProblem, alpha: Array, t: Array, error: Array, gap: float) -> Curvatures:
    """Return lam, e and the slopes with phi_i(a*_i) >= 1/2 lam_i d_i^2 - e_i, as derived above.

    Parameters
    ----------
    alpha, t : arrays of shape (n,)
    error : array of shape (n,)
        A bound of the error of t.
    gap : float
        G; no phi_i exceeds it at a*.
    """
    loss, y = read.loss, read.y
    linear, _, l1, lower, upper = loss.curve(y)
    width = np.maximum(upper - alpha, alpha - lower)
    nu, r = np.maximum(loss.concavity(y), 0.0), loss.response(t, y)
    known = np.isfinite(r)  # by rounding the hard margin is violated, and then phi_i >= 0 is all that is used
    r = np.where(known, r, alpha)
    distance = np.abs(alpha - r) + gamma(ROUNDINGS) * (np.abs(alpha) + np.abs(r))
    with np.errstate(all="ignore"):
        distance += np.where(nu > 0, error / nu, 0.0)  # a response has a derivative of at most 1 / nu
        slope = np.zeros(alpha.size)
        if loss.quadratic:  # the slopes of phi_i on both sides of r_i
            rounded = error + gamma(ROUNDINGS) * (np.abs(linear) + l1 + nu * np.abs(r) + np.abs(t))
            rising = t - linear + nu * r
            right = np.where(r >= upper, np.inf, rising + np.where(r >= 0, l1, -l1)) - rounded
            left = np.where(r <= lower, np.inf, -rising + np.where(r <= 0, l1, -l1)) - rounded
            slope = np.where(known, np.maximum(np.minimum(left, right), 0.0), 0.0)
        corner = np.where((nu == 0) & np.isfinite(slope) & (slope * width > gap), slope**2 / gap, 0.0)
    lam = np.where(nu > 0, nu / 2, np.where(np.isfinite(corner), corner, 0.0))
    extra = lam * distance**2
    others = (lam == 0) & np.isfinite(width) & (width > 0)
    if others.any():
        extra[others] = BOX_SHARE * gap / others.sum()
        lam[others] = 2 * extra[others] / width[others] ** 2
    up = 1 + gamma(alpha.size + ROUNDINGS)
    return Curvatures(lam * (1 - gamma(ROUNDINGS)), extra * up, slope, distance * up)


def dominated(K: Array, lam: Array, other: Array, sizes: tuple[Array, Array], relative: float) -> bool:
    """Whether K + diag(lam) - other is proved to be positive semidefinite.

    Parameters
    ----------
    K, other : arrays of shape (n, n)
        Symmetric; only their lower triangles are read.
    lam : array of shape (n,)
    sizes : two arrays of shape (n,)
        Bounds of the diagonals whose geometric means bound the entries of K and of the other matrix.
    relative : float
        A bound of the relative errors of the entries, with respect to these bounds.
    """
    n = lam.size
    S = K - other
    S[np.diag_indices(n)] += lam
    diagonal, bound = np.diag(S), sizes[0] + lam + sizes[1]
    if not (np.isfinite(S).all() and (diagonal > 0).all() and np.isfinite(bound).all()):
        return False
    unit = np.exp2(-np.round(np.log2(diagonal) / 2))
    S = unit[:, None] * S * unit
    factor = gamma(n + 2)
    shift = factor / (1 - factor) * float(np.trace(S)) + relative * float(unit**2 @ bound)
    S[np.diag_indices(n)] -= upwards(shift * (1 + gamma(n + ROUNDINGS)))
    try:
        np.linalg.cholesky(S)  # it reads the lower triangle
    except np.linalg.LinAlgError:
        return False
    return True

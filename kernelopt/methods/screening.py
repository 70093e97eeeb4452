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

With M = K_w + diag(lam) and R^2 = 2 (G + sum_i e_i) that is d'M d <= R^2. Where there is an intercept,
1'd = -1'a is zero up to rounding, and rho 1 1' may be added to M, with rho (1'a)^2 in R^2; rho is the mean
of the diagonal of K_w. If c M - K_m is positive semidefinite, then sqrt(d'K_m d) <= sqrt(c) R, and by the
triangle inequality for the two seminorms

    sqrt(s_m(a*)) <= sqrt(s_m(a)) + sqrt(c) R,
    max_k sqrt(s_k(a*)) >= sqrt(w's(a*)) >= sqrt(w's(a)) - sqrt(2 G).

The kernel m is dropped if the first is below the second for some c with a proof that c M - K_m >> 0. That
proof is a Cholesky factorisation: if the one of S - sigma I ends, the matrix S is positive semidefinite,
where sigma is gamma_{n+1} / (1 - gamma_{n+1}) tr S plus the error of the entries of S (Rump, BIT 46
(2006)). The scaling of S to a unit diagonal is by powers of two, which is exact.

References
----------
.. [1] Ndiaye, Fercoq, Gramfort, Salmon, Gap safe screening rules for sparsity enforcing penalties, JMLR 18
   (2017): the ball around a dual point, for losses with a Lipschitz gradient.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from kernelopt.certificates import Certificate
from kernelopt.errors import InputError, MethodError
from kernelopt.learner import Machine
from kernelopt.methods.solution import Solution
from kernelopt.numerics.rounding import UNDERFLOW, gamma, upwards
from kernelopt.structure import Structure
from kernelopt.structure.ball import BallProblem, read_ball
from kernelopt.validation import Array, Mask, shown

BOX_SHARE = 0.25  # of the gap: what the bounds of d on the other samples may add to it
ROUNDINGS = 32  # more than those of an entry or a term beside the sums


def screen(solution: Solution) -> tuple[str, ...]:
    """Return the names of kernels that are proved to have weight zero at every optimum.

    The proof is a gap-safe rule for weights on a simplex: an l_1 ball, or a trace. From the bounds of the
    solution it follows how far its dual variables are from optimal ones, and hence how large alpha'K_m alpha
    can be there. A kernel is named if that is below the largest. Rounding errors are included. A smaller gap
    names more kernels, but never one of two equal kernels that tie for the largest.

    The certificate of each kernel takes a Cholesky factorisation, n^3 / 3 operations.

    Parameters
    ----------
    solution : Solution
        Of a problem with one risk and p = 1.

    Returns
    -------
    tuple of str
        Names of `grams.names`, in their order. The problem without these kernels has the same optima.

    Raises
    ------
    InputError
        If the solution is of no such problem.

    Examples
    --------
    >>> import numpy as np, kernelopt as ko
    >>> from formulations import lp_norm
    >>> kernels = ko.Grams.from_array([np.eye(2), [[1.0, -1.0], [-1.0, 1.0]]], ["identity", "labels"])
    >>> ko.screen(lp_norm.primal(kernels, [1, -1], p=1).solve("exact"))
    ('identity',)
    """
    read = ball_of(solution, "screen")
    if read.p != 1:
        raise InputError(
            f"screen needs weights on a simplex, p = 1, got p = {read.p:g}: for p > 1 no weight of a kernel "
            "with alpha'K alpha > 0 is zero. Read solution.weights."
        )
    machine, theta = machine_of(solution, read)
    lower = (solution.lower - read.offset) / read.factor
    size = abs(solution.lower) + abs(read.offset)
    proved = screened(read, theta / read.reach, machine, lower - gamma(8) * size / read.factor)
    return tuple(name for name, gone in zip(read.whole.names, proved, strict=True) if gone)


def ball_of(solution: Any, caller: str) -> BallProblem:
    """Return the problem of a solution as a `BallProblem`, or raise where it is none."""
    if not isinstance(solution, Solution):
        raise InputError(
            f"solution must be a Solution in {caller}, got {shown(solution)} ({type(solution).__name__}). "
            "Pass what solve has returned."
        )
    if solution.problem is None:
        raise InputError(
            f"{caller} needs the problem of the solution, got a solution that was pickled. Solve it again."
        )
    read = read_ball(Structure(solution.problem))
    if isinstance(read, str):
        raise MethodError(
            f"{caller} needs one risk and weights in an l_p ball or of a given trace, got another problem: "
            f"{read}. Solve it with and without the kernel instead."
        )
    return read


def machine_of(solution: Solution, read: BallProblem) -> tuple[Machine, Array]:
    """Return the machine that attains the upper bound of a solution, and the weights of its kernel."""
    certificate: Certificate = solution.certificate
    values = [np.ravel(value) for value in certificate.point.values()]
    if not certificate.feasible or not isinstance(certificate.machines[0], Machine):
        raise InputError("the solution must have a feasible point, got none. Solve the problem longer.")
    theta = np.concatenate(values)
    return certificate.machines[0], np.maximum(theta, 0.0)


def screened(read: BallProblem, w: Array, machine: Machine, lower: float) -> Mask:
    """Return which kernels have weight zero at every optimum, shape (m,), as proved above.

    Parameters
    ----------
    read : BallProblem, with p = 1
    w : array of shape (m,), the scaled weights of the machine, w >= 0 and |w|_1 <= 1 up to rounding
    machine : Machine
        Of the kernel K_w; `value` is a proved upper bound of its value.
    lower : float
        A proved lower bound of the optimal risk.
    """
    m, n = w.size, read.y.size
    none = np.zeros(m, dtype=bool)
    G = upwards(machine.value - lower)
    if not np.isfinite(G) or n == 0:
        return none
    G, alpha = max(G, UNDERFLOW), machine.alpha
    relative = gamma(2 * n + m + ROUNDINGS)
    sizes = np.sqrt(read.reach[:, None] * read.grams.magnitudes)  # |K_m,ij| <= sizes_mi sizes_mj
    images = read.reach[:, None] * read.grams.apply(alpha)[:, :n]
    reached = sizes @ np.abs(alpha)
    s, error = images @ alpha, relative * reached**2 + UNDERFLOW
    t = w @ images + machine.intercept
    error_of_t = relative * (w @ (sizes * reached[:, None]) + np.abs(t) + abs(machine.intercept))
    inside = w / max(1.0, upwards(float(w.sum()) * (1 + relative)))
    length = (1 - relative) * np.sqrt(max(float(inside @ (s - error)), 0.0))
    length -= (1 + relative) * np.sqrt(2 * G)
    room = length - (1 + relative) * np.sqrt(np.maximum(s + error, 0.0))
    lam, extra = curvatures(read, alpha, t, error_of_t, G)
    squared_radius = 2 * (1 + relative) * (G + extra)
    if not (room > 0).any() or not np.isfinite(squared_radius):
        return none
    K, diagonal = np.array(read.grams.combine(read.reach * w)), w @ sizes**2
    if read.bias:
        rho, total = float(diagonal.mean()), abs(float(alpha.sum())) + relative * float(np.abs(alpha).sum())
        K, diagonal = K + rho, diagonal + rho
        squared_radius += (1 + relative) * rho * total**2
    for k in np.flatnonzero(room > 0):
        c = (1 - relative) * room[k] ** 2 / squared_radius if squared_radius > 0 else np.inf
        none[k] = dominated(
            K,
            lam,
            read.reach[k] * read.grams[int(k)],
            min(c, 1 / relative),
            (diagonal, sizes[k] ** 2),
            relative,
        )
    return none


def curvatures(read: BallProblem, alpha: Array, t: Array, error: Array, gap: float) -> tuple[Array, float]:
    """Return lam >= 0, shape (n,), and e with sum_i phi_i >= 1/2 sum_i lam_i d_i^2 - e; see above.

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
    distance = np.abs(alpha - r) + gamma(ROUNDINGS) * (np.abs(alpha) + np.abs(r))
    with np.errstate(all="ignore"):
        distance += np.where(nu > 0, error / nu, 0.0)  # a response has a derivative of at most 1 / nu
        slope = np.zeros(alpha.size)
        if loss.quadratic:  # the slopes of phi_i on both sides of r_i, where the curvature is zero
            rounded = error + gamma(ROUNDINGS) * (np.abs(linear) + l1 + np.abs(t))
            right = np.where(r >= upper, np.inf, t - linear + np.where(r >= 0, l1, -l1)) - rounded
            left = np.where(r <= lower, np.inf, linear - t + np.where(r <= 0, l1, -l1)) - rounded
            slope = np.maximum(np.minimum(left, right), 0.0)
        corner = np.where((nu == 0) & np.isfinite(slope) & (slope * width > gap), slope**2 / gap, 0.0)
    lam = np.where(nu > 0, nu / 2, np.where(np.isfinite(corner), corner, 0.0))
    extra = float((lam * distance**2).sum())
    others = (lam == 0) & np.isfinite(width) & (width > 0)
    if others.any():
        lam[others] = 2 * BOX_SHARE * gap / (others.sum() * width[others] ** 2)
        extra += BOX_SHARE * gap
    return lam * (1 - gamma(ROUNDINGS)), extra * (1 + gamma(alpha.size + ROUNDINGS))


def dominated(
    K: Array, lam: Array, other: Array, c: float, sizes: tuple[Array, Array], relative: float
) -> bool:
    """Whether c (K + diag(lam)) - other is proved to be positive semidefinite.

    Parameters
    ----------
    K, other : arrays of shape (n, n)
    lam : array of shape (n,)
    c : float > 0
    sizes : two arrays of shape (n,)
        Bounds of the diagonals whose geometric means bound the entries of K and of the other matrix.
    relative : float
        A bound of the relative errors of the entries, with respect to these bounds.
    """
    n = lam.size
    S = c * K - other[:n, :n]
    S[np.diag_indices(n)] += c * lam
    diagonal, bound = np.diag(S), c * (sizes[0] + lam) + sizes[1]
    if not (np.isfinite(S).all() and (diagonal > 0).all() and np.isfinite(bound).all()):
        return False
    unit = np.exp2(-np.round(np.log2(diagonal) / 2))
    S = unit[:, None] * S * unit
    factor = gamma(n + 2)
    shift = factor / (1 - factor) * float(np.trace(S)) + relative * float(unit**2 @ bound)
    S[np.diag_indices(n)] -= upwards(shift * (1 + gamma(n + ROUNDINGS)))
    try:
        np.linalg.cholesky((S + S.T) / 2)
    except np.linalg.LinAlgError:
        return False
    return True

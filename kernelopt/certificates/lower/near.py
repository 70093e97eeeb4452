"""Lower bounds of kernels near similarities: from a dual point, and the best one at a given alpha."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np

from kernelopt.certificates.gap import Bound, floor
from kernelopt.certificates.lower.closed import bound_over
from kernelopt.certificates.lower.minorants import constant, dual_value_of, minorant, near_minorant, total
from kernelopt.certificates.lower.splitting import SETTINGS, Split
from kernelopt.errors import Stopped
from kernelopt.fidelities import Fidelity, Proximal, Radial
from kernelopt.numerics.ball import Ball
from kernelopt.numerics.rounding import SMALLEST_DIVISOR
from kernelopt.running import check
from kernelopt.structure.nearness import Nearness, read_nearness
from kernelopt.structure.structure import Structure
from kernelopt.threads import one_blas_thread
from kernelopt.validation import Array


@dataclass(frozen=True, eq=False)
class Proof:
    """A dual point of a `Nearness`: alpha, gamma and the matrices U_ik.

    `U` is a function, so that the matrices are formed only for the points at which the bound is computed. It
    returns a list for every block i, with U_ik for the k-th fidelity of the block.
    """

    alpha: Array
    gamma: Array
    U: Callable[[], list[list[Array]]]


def lower_bound(read: Nearness, proof: Proof, upper: float) -> Bound:
    """Return the lower bound of a dual point, with the multipliers of the traces.

    First the dual point is made feasible: alpha and the U_ik are projected on their domains, and gamma is
    scaled to gamma >= 0 with sum at most one. Let z be alpha with zeros at the unlabelled points, and
    G_i = price sum_k U_ik - zz' / (2 gamma_i). By weak duality the optimum is at least

        offset + factor (l(alpha) + sum_i min <G_i, X_i> - price sum_ik (<U_ik, S_ik> + L*(U_ik))).

    The minimum is over the feasible X_i. If the trace of X_i is free, it is over the X_i at which
    price sum_k L(X_i - S_ik) <= (upper - offset) / factor. Here `upper` is a value that the objective
    attains, or that the relaxation `NearRelaxation` attains. At all other X_i the objective is above `upper`.
    Last, bounds of the rounding errors are subtracted.
    """
    gamma = Ball(np.maximum(proof.gamma, SETTINGS.least_gamma))
    below_one = (gamma / max(1.0, float(gamma.sum().above))).below  # in exact arithmetic
    fidelities = [zip(b.fidelities, U, strict=True) for b, U in zip(read.blocks, proof.U(), strict=True)]
    near = total(near_minorant(term, u) for pairs in fidelities for term, u in pairs)
    below = minorant(read.risk, proof.alpha, gamma=below_one, factor=read.factor)
    objective = below + near + constant(read.offset)
    price, known = read.price * read.factor, upper - read.offset
    return bound_over([block.bounded(price, known) for block in read.blocks], objective)


def exhausted(bound: Bound, floor: float, attained: float) -> bool:
    """Whether any other bound at this alpha is higher by a negligible amount only."""
    small = SETTINGS.rise * max(abs(bound.value), floor)
    if np.isfinite(attained):
        small = max(small, SETTINGS.gap_share * (attained - bound.value))
    return bool(np.isfinite(bound.value) and bound.possible - bound.value <= small)


class NearRelaxation:
    """The relaxation min over X of (l(alpha) - sum_i <P_i, X_i>)_+ + price sum_ik L(X_i - S_ik).

    Here P_i = zz' / (2 gamma_i), and (t)_+ = max(t, 0). The first term is at most the risk. Hence the minimum
    over X is a lower bound of the optimum, and no other lower bound at this alpha and gamma is larger. The
    search leaves out the positive part. The minimum is the same if the term in it is positive at the
    minimiser.
    """

    def __init__(self, read: Nearness, alpha: Array, X: list[Array]) -> None:
        learner = read.risk.learner
        self.read = read
        self.alpha = learner.loss.project(alpha, learner.y, learner.has_intercept)
        self.z = read.padded(self.alpha)
        adjoints = [block.adjoint(self.z) for block in read.blocks]
        forms = np.array([max(float(np.vdot(P, x)), 0.0) for P, x in zip(adjoints, X, strict=True)])
        shares = np.sqrt(forms / max(float(forms.max()), SMALLEST_DIVISOR)) + SETTINGS.least_share
        self.gamma = np.asarray(shares / shares.sum() if len(adjoints) > 1 else np.ones(1))
        self.P = [P / (2 * gamma) for P, gamma in zip(adjoints, self.gamma, strict=True)]
        self.gain = float(dual_value_of(learner, self.alpha)[0].mid)

    def value(self, X: list[Array]) -> float:
        """Return the objective of the relaxation."""
        read = self.read
        below = self.gain - sum(float(np.vdot(P, x)) for P, x in zip(self.P, X, strict=True))
        fidelities = sum(block.distance(x) for block, x in zip(read.blocks, X, strict=True))
        return read.offset + read.factor * max(below, 0.0) + fidelities

    def bound(self, X: list[Array], U: Callable[[], list[list[Array]]], kappa: float = 1.0) -> Bound:
        """Return the bound of the dual point (sqrt(kappa) alpha, gamma, U), where X is near the minimiser.

        Some U_ik = (X_i - S_ik) / s_ik may be outside of the domain of L*. The factor kappa <= 1 of
        `dual_factor` moves kappa U_ik into the domain. With sqrt(kappa) alpha the term zz' / (2 gamma_i) has
        the same factor, and so has G_i.
        """
        possible = self.value(X)
        proof = Proof(kappa**0.5 * self.alpha, self.gamma, U)
        found = lower_bound(self.read, proof, possible + SETTINGS.margin * abs(possible))
        return found._replace(possible=possible)


def near_bound(
    structure: Structure, alpha: Array, attained: float = np.inf, quick: bool = False
) -> Bound | None:
    """Return nearly the largest lower bound at an alpha, by an iteration.

    The iteration starts at the current values of the structure's variables. It ends where the bound is
    `exhausted` for the value `attained` of the objective, or with its first bound if `quick`.

    Returns
    -------
    Bound, or None
        None where the problem is not a `Nearness`, or where its fidelity is neither `Radial` nor `Proximal`.
    """
    read = read_nearness(structure)
    if isinstance(read, str):
        return None
    values = [(block, block.piece.variable.value) for block in read.blocks]
    X = [np.asarray(block.targets.mean(axis=0) if x is None else x) for block, x in values]
    if not (np.isfinite(alpha).all() and all(np.isfinite(x).all() for x in X)):
        return None
    relaxed, best = NearRelaxation(read, alpha, X), None
    bounds: Iterator[Bound] = iter(())
    if isinstance(read.fidelity, Radial):
        bounds = reweighted_bounds(relaxed, X, read.fidelity)
    elif isinstance(read.fidelity, Proximal):
        bounds = splitting_bounds(relaxed, X, read.fidelity)
    try:
        with one_blas_thread():
            for found in bounds:
                higher = max(best or found, found, key=lambda bound: bound.value)
                best = higher._replace(possible=min(found.possible, (best or found).possible))
                if quick or exhausted(best, floor(structure), attained):
                    break
                check()
    except Stopped:
        if best is None:
            raise
    except np.linalg.LinAlgError:  # numbers of extreme size
        pass
    return best


def projected(relaxed: NearRelaxation, s: list[Array]) -> list[Array]:
    """Return the minimisers of the relaxation in which |X_i - S_ik|^2 / (2 s_ik) replaces L(X_i - S_ik).

    X_i is the projection of B_i + P_i / (2 W_i) on its set, with the mean B_i of the S_ik, weighted by
    1 / s_ik, and W_i = price sum_k 1 / (2 s_ik).
    """
    found = []
    for block, P, scales in zip(relaxed.read.blocks, relaxed.P, s, strict=True):
        W = relaxed.read.price * float((1 / scales).sum()) / 2
        B = np.tensordot(1 / scales, block.targets, 1) / (1 / scales).sum()
        found.append(block.piece.project(B + P / (2 * W)))
    return found


def scaled_differences(read: Nearness, X: list[Array], s: list[Array], kappa: float) -> list[list[Array]]:
    """Return kappa (X_i - S_ik) / s_ik."""
    blocks = zip(read.blocks, X, s, strict=True)
    return [
        [kappa * (x - S) / each for S, each in zip(b.targets, sizes, strict=True)] for b, x, sizes in blocks
    ]


def reweighted_bounds(relaxed: NearRelaxation, X: list[Array], radial: Radial) -> Iterator[Bound]:
    """Yield bounds by iteratively reweighted least squares, for fidelities that are functions of |D|.

    Each step replaces L(D) by its majorant |D|^2 / (2 s) + constant that is equal to L at the current D.
    """
    read = relaxed.read
    sizes = [lengths(block.targets) for block in read.blocks]
    last: list[Array] = []
    for _ in range(SETTINGS.reweightings):
        current = [lengths(x - block.targets) for block, x in zip(read.blocks, X, strict=True)]
        smallest = [SETTINGS.least_difference * np.maximum(size, SMALLEST_DIVISOR) for size in sizes]
        s = [radial.scale(np.maximum(d, small)) for d, small in zip(current, smallest, strict=True)]
        if last and all(np.array_equal(old, new) for old, new in zip(last, s, strict=True)):
            return
        X, last = projected(relaxed, s), s
        d = [lengths(x - block.targets) for block, x in zip(read.blocks, X, strict=True)]
        kappa = dual_factor(read.fidelity, d, s)
        yield relaxed.bound(X, partial(scaled_differences, read, X, s, kappa), kappa)


def dual_factor(fidelity: Fidelity, d: list[Array], s: list[Array]) -> float:
    """Return the largest kappa <= 1 for which all kappa (X_i - S_ik) / s_ik are in the domain of L*.

    The fidelity is a function of |D|. Hence the domain of L* is a ball or the whole space, and kappa depends
    only on the lengths d_ik / s_ik of these matrices, where d_ik = |X_i - S_ik|.
    """
    ratios = np.concatenate([a / b for a, b in zip(d, s, strict=True)])
    inside = [float(fidelity.project(np.array([ratio]))[0]) / ratio for ratio in ratios if ratio > 0]
    return min(1.0, *inside) if inside else 1.0


def lengths(D: Array) -> Array:
    """Return the l2 norms of all entries of D[0], D[1], ..."""
    return np.asarray(np.linalg.norm(D.reshape(len(D), -1), axis=1))


def splitting_bounds(relaxed: NearRelaxation, X: list[Array], proximal: Proximal) -> Iterator[Bound]:
    """Yield bounds by the alternating direction method, for fidelities with a proximal operator."""
    read, split = relaxed.read, Split(relaxed.read, proximal)
    split.X = list(X)
    last: Bound | None = None
    for iteration in range(SETTINGS.splittings):
        pairs = zip(read.blocks, split.X, split.U, relaxed.P, strict=True)
        K = [block.piece.project(x - u + P / split.sigma) for block, x, u, P in pairs]
        residuals = split.step(K, iteration == 0)
        if (iteration + 1) % SETTINGS.check_every:
            split.balance(iteration, *residuals)
            continue
        found = relaxed.bound(K, split.subgradients())
        yield found
        if last is not None:
            risen, fallen = found.value - last.value, last.possible - found.possible
            if abs(risen + fallen) < SETTINGS.stall * (found.possible - found.value):
                split.rescale(SETTINGS.sigma_factor ** (1 if risen > fallen else -1))
        last = found

"""Lower bounds of kernels near similarities: from a dual point, and the best one at a given alpha."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np

from kernelopt.certificates.gap import floor
from kernelopt.certificates.lower.minorants import constant, dual_value_of, minorant, near_minorant, total
from kernelopt.certificates.lower.splitting import Split
from kernelopt.errors import Stopped
from kernelopt.fidelities import Fidelity, Proximal, Radial
from kernelopt.numerics.ball import Ball
from kernelopt.numerics.rounding import SMALLEST_DIVISOR
from kernelopt.running import check
from kernelopt.structure.nearness import Nearness, read_nearness
from kernelopt.structure.structure import Structure
from kernelopt.threads import one_blas_thread
from kernelopt.validation import Array

SMALLEST_GAMMA = 1e-12  # a smaller gamma_i is raised to it, since the bound has a factor 1 / gamma_i
SMALLEST_SHARE = 1e-9  # added to each gamma_i over the largest one: the relaxation has factors 1 / gamma_i
NEGLIGIBLE_RISE = 1e-8  # relative to the bound: the accuracy of the conic solve that this search replaces
NEGLIGIBLE_GAP_SHARE = 1e-2  # of upper - lower: a smaller rise of the bound lowers the gap by 1 % at most
VALUE_MARGIN = 1e-9  # relative: the computed value of the relaxation plus this is above the exact value
# The largest numbers of iterations. Each takes one eigendecomposition for each kernel. If the bound is not
# `exhausted` then, a conic solve looks for a larger one.
REWEIGHTINGS, SPLITTINGS = 40, 400
CHECK_EVERY = 10  # splitting steps between two bounds: a bound takes as long as some steps
STALLED_SHARE = 0.1  # of value - bound of the relaxation: a smaller change of it between checks is a stall
SIGMA_FACTOR = 4.0  # of sigma after a stall: five such changes multiply sigma by 1000
SMALLEST_DISTANCE = 1e-9  # relative to |S|: replaces a smaller d = |D| in d / h'(d), which is 0 / 0 at zero


@dataclass(frozen=True, eq=False)
class Proof:
    """A dual point of a `Nearness`: alpha, gamma and the matrices U_ik.

    `U` is a function, so that the matrices are formed only for the points at which the bound is computed. It
    returns a list for every block i, with U_ik for the k-th fidelity of the block.
    """

    alpha: Array
    gamma: Array
    U: Callable[[], list[list[Array]]]


def lower_bound(read: Nearness, proof: Proof, upper: float) -> tuple[float, dict[int, float]]:
    """Return the lower bound of a dual point, and the multipliers of the traces by position.

    First the dual point is made feasible: alpha and the U_ik are projected on their domains, and gamma is
    scaled to gamma >= 0 with sum at most one. Let z be alpha with zeros at the unlabelled points, and
    G_i = price sum_k U_ik - zz' / (2 gamma_i). By weak duality the optimum is at least

        offset + factor (l(alpha) + sum_i min <G_i, X_i> - price sum_ik (<U_ik, S_ik> + L*(U_ik))).

    The minimum is over the feasible X_i. If the trace of X_i is free, it is over the X_i at which
    price sum_k L(X_i - S_ik) <= (upper - offset) / factor. Here `upper` is a value that the objective
    attains, or that the relaxation `NearRelaxation` attains. At all other X_i the objective is above `upper`.
    Last, bounds of the rounding errors are subtracted.
    """
    gamma = Ball(np.maximum(proof.gamma, SMALLEST_GAMMA))
    below_one = (gamma / max(1.0, float(gamma.sum().above))).below  # in exact arithmetic
    fidelities = [zip(b.fidelities, U, strict=True) for b, U in zip(read.blocks, proof.U(), strict=True)]
    near = total(near_minorant(term, u) for pairs in fidelities for term, u in pairs)
    below = minorant(read.risk, proof.alpha, gamma=below_one, factor=read.factor)
    objective = below + near + constant(read.offset)
    pieces = [block.piece for block in read.blocks]
    slopes, price, known = objective.falls(pieces), read.price * read.factor, upper - read.offset
    supports = [block.support(slopes, price, known) for block in read.blocks]
    found = zip(pieces, supports, strict=True)
    multipliers = {at: u for piece, size in found for at, u in piece.multipliers(slopes, size).items()}
    return float((objective.constant - Ball(np.array(supports)).sum()).below), multipliers


class SearchedBound(NamedTuple):
    """A lower bound at a given alpha.

    Attributes
    ----------
    value : float
    multipliers : dict from position to float
        The multipliers of the constraints on traces.
    possible : float
        A value of the relaxation at this alpha: no lower bound at this alpha exceeds it.
    """

    value: float
    multipliers: dict[int, float]
    possible: float

    def exhausted(self, floor: float, attained: float) -> bool:
        """Whether any other bound at this alpha is higher by a negligible amount only."""
        small = NEGLIGIBLE_RISE * max(abs(self.value), floor)
        if np.isfinite(attained):
            small = max(small, NEGLIGIBLE_GAP_SHARE * (attained - self.value))
        return bool(np.isfinite(self.value) and self.possible - self.value <= small)


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
        self.alpha = learner.loss.project(alpha, learner.y, learner.bias is not None)
        self.z = read.padded(self.alpha)
        adjoints = [block.adjoint(self.z) for block in read.blocks]
        forms = np.array([max(float(np.vdot(P, x)), 0.0) for P, x in zip(adjoints, X, strict=True)])
        shares = np.sqrt(forms / max(float(forms.max()), SMALLEST_DIVISOR)) + SMALLEST_SHARE
        self.gamma = np.asarray(shares / shares.sum() if len(adjoints) > 1 else np.ones(1))
        self.P = [P / (2 * gamma) for P, gamma in zip(adjoints, self.gamma, strict=True)]
        self.gain = dual_value_of(learner, self.alpha)[0].value

    def value(self, X: list[Array]) -> float:
        """Return the objective of the relaxation."""
        read = self.read
        below = self.gain - sum(float(np.vdot(P, x)) for P, x in zip(self.P, X, strict=True))
        fidelities = sum(block.distance(x) for block, x in zip(read.blocks, X, strict=True))
        return read.offset + read.factor * max(below, 0.0) + fidelities

    def bound(self, X: list[Array], U: Callable[[], list[list[Array]]], kappa: float = 1.0) -> SearchedBound:
        """Return the bound of the dual point (sqrt(kappa) alpha, gamma, U), where X is near the minimiser.

        Some U_ik = (X_i - S_ik) / s_ik may be outside of the domain of L*. The factor kappa <= 1 of
        `dual_factor` moves kappa U_ik into the domain. With sqrt(kappa) alpha the term zz' / (2 gamma_i) has
        the same factor, and so has G_i.
        """
        possible = self.value(X)
        proof = Proof(kappa**0.5 * self.alpha, self.gamma, U)
        value, multipliers = lower_bound(self.read, proof, possible + VALUE_MARGIN * abs(possible))
        return SearchedBound(value, multipliers, possible)


def near_bound(
    structure: Structure,
    alpha: Array,
    attained: float = np.inf,
    quick: bool = False,
) -> SearchedBound | None:
    """Return nearly the largest lower bound at an alpha, by an iteration.

    A step of the iteration takes one eigendecomposition for each kernel.
    The iteration starts at the current values of the structure's variables. It ends where the bound is
    `exhausted` for the value `attained` of the objective, or with its first bound if `quick`.

    Returns
    -------
    SearchedBound, or None
        None where the problem is not a `Nearness`, or where its fidelity is neither `Radial` nor `Proximal`.
    """
    read = read_nearness(structure)
    if isinstance(read, str):
        return None
    values = [(block, block.piece.variable.value) for block in read.blocks]
    X = [np.asarray(block.targets.mean(axis=0) if x is None else x) for block, x in values]
    if not (np.isfinite(alpha).all() and all(np.isfinite(x).all() for x in X)):
        return None
    best: SearchedBound | None = None
    try:
        with one_blas_thread():
            for found in searched(NearRelaxation(read, alpha, X), X):
                best = better(best, found)
                if quick or best.exhausted(floor(structure), attained):
                    break
                check()
    except Stopped:
        if best is None:
            raise
    except np.linalg.LinAlgError:  # numbers of extreme size
        return best
    return best


def better(best: SearchedBound | None, found: SearchedBound) -> SearchedBound:
    """Return the higher of two bounds, with the lower of the two values of the relaxation."""
    if best is None:
        return found
    higher = found if found.value > best.value else best
    return higher._replace(possible=min(found.possible, best.possible))


def searched(relaxed: NearRelaxation, X: list[Array]) -> Iterator[SearchedBound]:
    """Yield bounds by the iteration for the fidelity, none where it is neither `Radial` nor `Proximal`."""
    fidelity = relaxed.read.fidelity
    if isinstance(fidelity, Radial):
        yield from reweighted_bounds(relaxed, X, fidelity)
    elif isinstance(fidelity, Proximal):
        yield from splitting_bounds(relaxed, X, fidelity)


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


def reweighted_bounds(relaxed: NearRelaxation, X: list[Array], radial: Radial) -> Iterator[SearchedBound]:
    """Yield bounds by iteratively reweighted least squares, for fidelities that are functions of |D|.

    Each step replaces L(D) by its majorant |D|^2 / (2 s) + constant that is equal to L at the current D.
    """
    read = relaxed.read
    sizes = [lengths(block.targets) for block in read.blocks]
    last: list[Array] = []
    for _ in range(REWEIGHTINGS):
        current = [lengths(x - block.targets) for block, x in zip(read.blocks, X, strict=True)]
        smallest = [SMALLEST_DISTANCE * np.maximum(size, SMALLEST_DIVISOR) for size in sizes]
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


def splitting_bounds(relaxed: NearRelaxation, X: list[Array], proximal: Proximal) -> Iterator[SearchedBound]:
    """Yield bounds by the alternating direction method, for fidelities with a proximal operator."""
    read, split = relaxed.read, Split(relaxed.read, proximal)
    split.X = list(X)
    last: SearchedBound | None = None
    for iteration in range(SPLITTINGS):
        pairs = zip(read.blocks, split.X, split.U, relaxed.P, strict=True)
        K = [block.piece.project(x - u + P / split.sigma) for block, x, u, P in pairs]
        residuals = split.step(K, iteration == 0)
        if iteration % CHECK_EVERY == CHECK_EVERY - 1:
            found = relaxed.bound(K, split.subgradients())
            yield found
            if last is not None and stalled(last, found):
                bound_moves_more = found.value - last.value > last.possible - found.possible
                split.rescale(SIGMA_FACTOR if bound_moves_more else 1 / SIGMA_FACTOR)
            last = found
        else:
            split.balance(iteration, *residuals)


def stalled(last: SearchedBound, found: SearchedBound) -> bool:
    """Whether the distance from the bound to the value of the relaxation has hardly changed."""
    before, now = last.possible - last.value, found.possible - found.value
    return abs(before - now) < STALLED_SHARE * now

"""Lower bounds of kernels near similarities: from a dual point, and the best one at a given alpha."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np

from kernelopt.certificates.gap import floor
from kernelopt.certificates.lower.minorants import dual_value_of
from kernelopt.certificates.lower.splitting import Split
from kernelopt.errors import Stopped
from kernelopt.fidelities import Fidelity, Proximal, Radial
from kernelopt.numerics.rounding import gamma as roundings
from kernelopt.numerics.rounding import upwards
from kernelopt.structure.nearness import Nearness, read_nearness
from kernelopt.structure.structure import Structure
from kernelopt.threads import Watch, one_blas_thread
from kernelopt.validation import Array

LEAST_SHARE = 1e-9  # of gamma
NOTHING, SHARE = 1e-8, 1e-2  # of the bound, and of the gap, that no other route is asked for
SLACK = 1e-9  # by which the value of the relaxation is raised where it bounds traces
SCALINGS, SPLITTINGS = 40, 400  # eigendecompositions for each kernel
CHECK = 10  # splittings between two looks at the bound
STALLED, FASTER = 0.1, 4.0  # a change that is too small, and the factor of sigma that follows
LEAST_SCALE = 1e-9  # relative to the similarity


@dataclass(frozen=True, eq=False)
class Proof:
    """A dual point: alpha, gamma, and U for every fidelity of every block, made when it is wanted."""

    alpha: Array
    gamma: Array
    U: Callable[[], list[list[Array]]]


def lower_bound(read: Nearness, proof: Proof, upper: float) -> tuple[float, list[float]]:
    """Return the bound of a dual point, and the sigma of every block; `upper` is any value attained.

    All roundings are paid for.
    """
    learner = read.risk.learner
    alpha = learner.loss.project(proof.alpha, learner.y, learner.bias is not None)
    gamma = np.maximum(proof.gamma, 1e-12)
    gamma = gamma / max(1.0, gamma.sum())
    z, known = read.padded(alpha), (upper - read.offset) / read.factor
    gain, _ = dual_value_of(learner, alpha)
    bound, lost, least = gain.value, gain.error, list[float]()
    for block, U, share in zip(read.blocks, proof.U(), gamma, strict=True):
        pairs = list(zip(block.fidelities, U, strict=True))
        G = -block.adjoint(z) / (2 * share)
        size = float(np.linalg.norm(G))
        for term, u in pairs:
            u = read.fidelity.project(u)
            G += read.price * u
            size += read.price * float(np.linalg.norm(u))
            bound -= term.paid(u) / read.factor
            lost += (term.paid_error(u) + roundings(4) * abs(term.paid(u))) / read.factor
        paid = block.least(G, read.price, known, roundings(16) * size)
        bound += paid
        lost += roundings(8) * (abs(bound) + abs(paid))
        least.append(read.factor * block.piece.linear_minimum(G))
    value = read.offset + read.factor * bound
    size = abs(read.offset) + abs(read.factor * bound)
    return -upwards(-value + read.factor * lost + roundings(8) * size), least


class Near(NamedTuple):
    """A lower bound at an alpha, the sigma of every block, and a value that no bound at this alpha passes."""

    value: float
    least: list[float]
    possible: float

    def exhausted(self, floor: float, attained: float) -> bool:
        """Whether no other bound at this alpha would make the gap to `attained` smaller by much."""
        small = NOTHING * max(abs(self.value), floor)
        if np.isfinite(attained):
            small = max(small, SHARE * (attained - self.value))
        return bool(np.isfinite(self.value) and self.possible - self.value <= small)


class Relaxed:
    """The minimum of (l(alpha) - sum_i <P_i, X_i>)_+ + price sum L(X_i - S_ik), P_i = zz' / (2 gamma_i).

    The first term is below the risk; the minimum over X is what alpha proves. Where it is above zero at
    the minimiser it is the minimum without the positive part.
    """

    def __init__(self, read: Nearness, alpha: Array, X: list[Array]) -> None:
        learner = read.risk.learner
        self.read = read
        self.alpha = learner.loss.project(alpha, learner.y, learner.bias is not None)
        self.z = read.padded(self.alpha)
        adjoints = [block.adjoint(self.z) for block in read.blocks]
        forms = np.array([max(float(np.vdot(P, x)), 0.0) for P, x in zip(adjoints, X, strict=True)])
        shares = np.sqrt(forms / max(float(forms.max()), 1e-300)) + LEAST_SHARE
        self.gamma = np.asarray(shares / shares.sum() if len(adjoints) > 1 else np.ones(1))
        self.P = [P / (2 * gamma) for P, gamma in zip(adjoints, self.gamma, strict=True)]
        self.gain = dual_value_of(learner, self.alpha)[0].value

    def value(self, X: list[Array]) -> float:
        """Return the objective of the relaxation."""
        read = self.read
        below = self.gain - sum(float(np.vdot(P, x)) for P, x in zip(self.P, X, strict=True))
        far = sum(block.distance(x) for block, x in zip(read.blocks, X, strict=True))
        return read.offset + read.factor * max(below, 0.0) + far

    def near(self, X: list[Array], U: Callable[[], list[list[Array]]], kappa: float = 1.0) -> Near:
        """Return the bound of kappa zz' and the dual matrices U, where X are near the minimiser."""
        possible = self.value(X)
        proof = Proof(kappa**0.5 * self.alpha, self.gamma, U)
        value, least = lower_bound(self.read, proof, possible + SLACK * abs(possible))
        return Near(value, least, possible)


def near_bound(
    structure: Structure,
    alpha: Array,
    watch: Watch | None = None,
    attained: float = np.inf,
    quick: bool = False,
) -> Near | None:
    """Return about the best bound at an alpha, None where the problem is not of kernels near similarities.

    Nor is there one for a fidelity that is neither `Radial` nor `Proximal`. The search
    begins at the current values of the structure's variables. It ends where the bound is exhausted beside
    the value `attained`, or with its first bound if `quick`.
    """
    read = read_nearness(structure)
    if isinstance(read, str):
        return None
    values = [(block, block.piece.variable.value) for block in read.blocks]
    X = [np.asarray(block.targets.mean(axis=0) if x is None else x) for block, x in values]
    if not (np.isfinite(alpha).all() and all(np.isfinite(x).all() for x in X)):
        return None
    best: Near | None = None
    try:
        with one_blas_thread():
            for found in searched(Relaxed(read, alpha, X), X):
                best = better(best, found)
                if quick or best.exhausted(floor(structure), attained):
                    break
                if watch is not None:
                    watch()
    except Stopped:
        if best is None:
            raise
    except np.linalg.LinAlgError:  # numbers of extreme size
        return best
    return best


def better(best: Near | None, found: Near) -> Near:
    """Return the higher of two bounds, with the lower of the values that no bound passes."""
    if best is None:
        return found
    higher = found if found.value > best.value else best
    return higher._replace(possible=min(found.possible, best.possible))


def searched(relaxed: Relaxed, X: list[Array]) -> Iterator[Near]:
    """Return bounds by the search that the fidelity has methods for, none where it has not."""
    fidelity = relaxed.read.fidelity
    if isinstance(fidelity, Radial):
        yield from by_scales(relaxed, X, fidelity)
    elif isinstance(fidelity, Proximal):
        yield from by_splitting(relaxed, X, fidelity)


def projected(relaxed: Relaxed, s: list[Array]) -> list[Array]:
    """Return the minimisers with |X_i - S_ik|^2 / (2 s_ik) in the place of L."""
    found = []
    for block, P, scales in zip(relaxed.read.blocks, relaxed.P, s, strict=True):
        W = relaxed.read.price * float((1 / scales).sum()) / 2
        B = np.tensordot(1 / scales, block.targets, 1) / (1 / scales).sum()
        found.append(block.piece.nearest(B + P / (2 * W)))
    return found


def scaled_differences(read: Nearness, X: list[Array], s: list[Array], kappa: float) -> list[list[Array]]:
    """Return kappa (X_i - S_ik) / s_ik."""
    blocks = zip(read.blocks, X, s, strict=True)
    return [
        [kappa * (x - S) / each for S, each in zip(b.targets, sizes, strict=True)] for b, x, sizes in blocks
    ]


def by_scales(relaxed: Relaxed, X: list[Array], radial: Radial) -> Iterator[Near]:
    """Functions of |D|: L is replaced by the |D|^2 / (2 s) that touches it at X, a fixed point on s.

    X is then a projection, of the weighted mean of the similarities plus P_i / (2 W_i).
    """
    read = relaxed.read
    sizes = [lengths(block.targets) for block in read.blocks]
    last: list[Array] = []
    for _ in range(SCALINGS):
        far = [lengths(x - block.targets) for block, x in zip(read.blocks, X, strict=True)]
        least = [LEAST_SCALE * np.maximum(size, 1e-300) for size in sizes]
        s = [radial.scale(np.maximum(d, small)) for d, small in zip(far, least, strict=True)]
        if last and all(np.array_equal(old, new) for old, new in zip(last, s, strict=True)):
            return
        X, last = projected(relaxed, s), s
        d = [lengths(x - block.targets) for block, x in zip(read.blocks, X, strict=True)]
        kappa = dual_factor(read.fidelity, d, s)
        yield relaxed.near(X, partial(scaled_differences, read, X, s, kappa), kappa)


def dual_factor(fidelity: Fidelity, d: list[Array], s: list[Array]) -> float:
    """Return the largest kappa <= 1 with all kappa (X_i - S_ik) / s_ik in the domain of L*.

    The fidelity is a function of |D|, so that only the lengths d_ik / s_ik count.
    """
    ratios = np.concatenate([a / b for a, b in zip(d, s, strict=True)])
    inside = [float(fidelity.project(np.array([ratio]))[0]) / ratio for ratio in ratios if ratio > 0]
    return min(1.0, *inside) if inside else 1.0


def lengths(D: Array) -> Array:
    """Return the l2 norms of all entries of D[0], D[1], ..."""
    return np.asarray(np.linalg.norm(D.reshape(len(D), -1), axis=1))


def by_splitting(relaxed: Relaxed, X: list[Array], proximal: Proximal) -> Iterator[Near]:
    """Fidelities with a proximal operator: the alternating direction method, from X."""
    read, split = relaxed.read, Split(relaxed.read, proximal)
    split.X = list(X)
    last: Near | None = None
    for iteration in range(SPLITTINGS):
        pairs = zip(read.blocks, split.X, split.U, relaxed.P, strict=True)
        K = [block.piece.nearest(x - u + P / split.sigma) for block, x, u, P in pairs]
        residuals = split.step(K, iteration == 0)
        if iteration % CHECK == CHECK - 1:
            found = relaxed.near(K, split.subgradients())
            yield found
            if last is not None and stalled(last, found):
                split.rescale(
                    FASTER if found.value - last.value > last.possible - found.possible else 1 / FASTER
                )
            last = found
        else:
            split.balance(iteration, *residuals)


def stalled(last: Near, found: Near) -> bool:
    """Whether the distance between the two values has hardly changed."""
    return abs(last.possible - last.value - found.possible + found.value) < STALLED * (
        found.possible - found.value
    )

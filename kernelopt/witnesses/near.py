"""Dual points of kernels near similarities: reweighted squares, and the alternating direction method."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np

from kernelopt.fidelities import Fidelity, Proximal, Radial
from kernelopt.numerics.rounding import SMALLEST_DIVISOR
from kernelopt.structure.nearness import Nearness
from kernelopt.validation import Array


@dataclass(frozen=True)
class Settings:
    """Settings of the searches and of `Split`: numbers of iterations, and relative sizes."""

    reweightings: int = 40  # at most
    splittings: int = 400
    check_every: int = 10  # splitting steps between two bounds: a bound takes as long as some steps
    least_share: float = 1e-9  # added to each gamma_i over the largest one: bounds have a factor 1 / gamma_i
    stall: float = 0.1  # of value - bound of the relaxation: a smaller change of it between checks is a stall
    sigma_factor: float = 4.0  # of sigma after a stall: five such changes multiply sigma by 1000
    least_difference: float = 1e-9  # of |S|: replaces a smaller d = |D| in d / h'(d), which is 0 / 0 at zero
    # Of the penalty sigma of `Split`; its changes are factors.
    relaxation: float = 1.8  # of the kernels: Boyd et al. (2011), section 3.4.3, advise 1.5 to 1.8
    balance_every: int = 10  # iterations at least between two changes of sigma
    slowdown: int = 200  # iterations after which that number has doubled: sigma must become constant
    largest_ratio: float = 3.0  # of the residuals, up to which sigma is kept
    largest_change: float = 2.0
    start: float = 0.8  # price / sigma over the mean distance |K - S| of the entries, by measurement
    least_distance: float = 0.02  # of the mean entry of S: that distance where K is nearly S


SETTINGS = Settings()


@dataclass(frozen=True, eq=False)
class NearWitness:
    """A dual point of a `Nearness`: alpha, gamma and the matrices U_ik.

    `U` is a function, so that the matrices are formed only for the points at which the bound is computed. It
    returns a list for every block i, with U_ik for the k-th fidelity of the block.
    """

    alpha: Array
    gamma: Array
    U: Callable[[], list[list[Array]]]


Found = tuple[NearWitness, float]  # a dual point, and a value that no bound of this alpha and gamma exceeds


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
        z = read.padded(self.alpha)
        adjoints = [block.adjoint(z) for block in read.blocks]
        forms = np.array([max(float(np.vdot(P, x)), 0.0) for P, x in zip(adjoints, X, strict=True)])
        shares = np.sqrt(forms / max(float(forms.max()), SMALLEST_DIVISOR)) + SETTINGS.least_share
        self.gamma = np.asarray(shares / shares.sum() if len(adjoints) > 1 else np.ones(1))
        self.P = [P / (2 * gamma) for P, gamma in zip(adjoints, self.gamma, strict=True)]
        self.gain = learner.loss.dual_value(self.alpha, learner.y)

    def value(self, X: list[Array]) -> float:
        """Return the objective of the relaxation."""
        read = self.read
        below = self.gain - sum(float(np.vdot(P, x)) for P, x in zip(self.P, X, strict=True))
        fidelities = sum(block.distance(x) for block, x in zip(read.blocks, X, strict=True))
        return read.offset + read.factor * max(below, 0.0) + fidelities

    def witness(self, X: list[Array], U: Callable[[], list[list[Array]]], kappa: float = 1.0) -> Found:
        """Return the dual point (sqrt(kappa) alpha, gamma, U), and the value of the relaxation at X.

        Some U_ik = (X_i - S_ik) / s_ik may be outside of the domain of L*. The factor kappa <= 1 of
        `dual_factor` moves kappa U_ik into the domain. With sqrt(kappa) alpha the term zz' / (2 gamma_i) has
        the same factor, and so has G_i.
        """
        return NearWitness(kappa**0.5 * self.alpha, self.gamma, U), self.value(X)


class Split:
    """The alternating direction method for K_i = X_i: fidelities of X_i, and scaled multipliers U_i.

    After every step sigma U_i / price is in the subdifferential of phi_i = sum_k L(X_i - S_ik), so that it is
    dual feasible without projection. The penalty parameter sigma follows the ratio of the residuals: [1]_,
    section 3.4.1.

    References
    ----------
    .. [1] Boyd et al., Distributed optimization and statistical learning via the alternating direction method
       of multipliers, Foundations and Trends in Machine Learning 3 (2011).
    """

    def __init__(self, read: Nearness, proximal: Proximal) -> None:
        self.read, self.proximal = read, proximal
        self.S = [block.targets for block in read.blocks]
        self.X = [S.mean(axis=0) for S in self.S]
        self.U = [np.zeros_like(X) for X in self.X]
        self.phi = [0.0] * len(self.X)
        # Then price / sigma is of the size of the entries of K - S.
        pairs = list(zip(read.blocks, self.S, strict=True))
        distance = np.mean([np.abs(block.nearest_to_mean - S).mean() for block, S in pairs])
        size = SETTINGS.least_distance * np.mean([np.abs(S).mean() for S in self.S])
        self.sigma = SETTINGS.start * read.price / max(float(distance), float(size), SMALLEST_DIVISOR)
        self.changed = 0

    def step(self, K: list[Array], first: bool) -> tuple[float, float]:
        """Update X and U at the kernels K; return the relative primal and dual residuals."""
        apart = moved = 0.0
        for i, (k, X, U, S) in enumerate(zip(K, self.X, self.U, self.S, strict=True)):
            V = (k if first else X + SETTINGS.relaxation * (k - X)) + U
            new, self.phi[i] = self.proximal.proximal(V, S, self.read.price / self.sigma)
            apart += float(((k - new) ** 2).sum())
            moved += float(((new - X) ** 2).sum())
            self.X[i], self.U[i] = new, V - new
        size = sum(float((k**2).sum()) for k in K)
        change = sum(float((U**2).sum()) for U in self.U)
        return (apart / max(size, SMALLEST_DIVISOR)) ** 0.5, (moved / max(change, SMALLEST_DIVISOR)) ** 0.5

    def balance(self, iteration: int, primal: float, dual: float) -> None:
        """Multiply sigma by about the root of the ratio of the residuals, unless that is near one."""
        if iteration - self.changed < SETTINGS.balance_every * (1 + iteration // SETTINGS.slowdown):
            return
        ratio, most = primal / max(dual, SMALLEST_DIVISOR), SETTINGS.largest_change
        if not 1 / SETTINGS.largest_ratio <= ratio <= SETTINGS.largest_ratio:
            self.rescale(float(np.clip(ratio**0.5, 1 / most, most)))
            self.changed = iteration

    def rescale(self, factor: float) -> None:
        """Multiply sigma by a factor; the multipliers sigma U_i stay the same."""
        self.sigma *= factor
        self.U = [U / factor for U in self.U]

    def subgradients(self) -> Callable[[], list[list[Array]]]:
        """Return a function that computes the U_ik of the last step for every fidelity of every block."""
        shares, scale = self.proximal.shares, self.sigma / self.read.price
        last = list(zip(self.U, self.X, self.S, strict=True))
        return lambda: [shares(scale * U, X, S) for U, X, S in last]

    def dual_value(self, alpha: Array, gamma: Array, upper: float) -> float:
        """Return the lower bound of alpha, gamma and the multipliers; `upper` bounds the optimum.

        Both are without the factor and the offset of the problem. sigma U_i / price is a subgradient of
        phi_i(X) = sum_k L(X - S_ik) at X_i. The bound is

            l(alpha) + sum_i (price phi_i(X_i) - sigma <U_i, X_i>) + sum_i min <G_i, X>

        with G_i = sigma U_i - A_i / (2 gamma_i), where A_i is the derivative of z'K_i z by the variable. The
        minimum is over the X of the given trace. Where the trace is free, it is over the X whose fidelities
        cost at most `upper`.
        """
        read, learner = self.read, self.read.risk.learner
        z, bound = read.padded(alpha), learner.loss.dual_value(alpha, learner.y)
        for block, share, phi, U, X in zip(read.blocks, gamma, self.phi, self.U, self.X, strict=True):
            G = self.sigma * U - block.adjoint(z) / (2 * share)
            bound += read.price * phi - self.sigma * float(np.vdot(U, X))
            bound += block.linear_minimum(G, read.price, upper)
        return bound


def dual_points(relaxed: NearRelaxation, X: list[Array]) -> Iterator[Found]:
    """Yield dual points whose bounds approach the largest one at the alpha of the relaxation, from kernels X.

    There are none where the fidelity is neither `Radial` nor `Proximal`.
    """
    fidelity = relaxed.read.fidelity
    if isinstance(fidelity, Radial):
        yield from reweighted(relaxed, X, fidelity)
    elif isinstance(fidelity, Proximal):
        yield from splitting(relaxed, X, fidelity)


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


def reweighted(relaxed: NearRelaxation, X: list[Array], radial: Radial) -> Iterator[Found]:
    """Yield dual points by iteratively reweighted least squares, for fidelities that are functions of |D|.

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
        yield relaxed.witness(X, partial(scaled_differences, read, X, s, kappa), kappa)


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


def splitting(relaxed: NearRelaxation, X: list[Array], proximal: Proximal) -> Iterator[Found]:
    """Yield dual points by the alternating direction method, for fidelities with a proximal operator."""
    read, split = relaxed.read, Split(relaxed.read, proximal)
    split.X = list(X)
    last: tuple[float, float] | None = None
    for iteration in range(SETTINGS.splittings):
        pairs = zip(read.blocks, split.X, split.U, relaxed.P, strict=True)
        K = [block.piece.project(x - u + P / split.sigma) for block, x, u, P in pairs]
        residuals = split.step(K, iteration == 0)
        if (iteration + 1) % SETTINGS.check_every:
            split.balance(iteration, *residuals)
            continue
        witness, value = relaxed.witness(K, split.subgradients())
        yield witness, value
        upper = (value - read.offset) / read.factor
        lower = split.dual_value(relaxed.alpha, relaxed.gamma, upper)
        if last is not None:
            risen, fallen = lower - last[0], last[1] - upper
            if abs(risen + fallen) < SETTINGS.stall * (upper - lower):
                split.rescale(SETTINGS.sigma_factor ** (1 if risen > fallen else -1))
        last = lower, upper

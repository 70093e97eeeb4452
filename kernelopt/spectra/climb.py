"""The ascent itself: accelerated proximal steps on alpha, with the best gamma at every point."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kernelopt.spectra.compiling import compiled
from kernelopt.spectra.offset import offset, respond, response
from kernelopt.spectra.projection import Pairs, project, project_diagonal
from kernelopt.spectra.shares import settled, share
from kernelopt.validation import Array

SHARE = 0.2  # of the tolerance: how well gamma is known
SLACK = 0.01  # of the tolerance: how well the intercept is
ROUNDS = 30  # for gamma, at one alpha
GROW, SHRINK = 2.0, 0.8  # of the Lipschitz estimate: after a step refused, and after one taken


class Given(NamedTuple):
    """The problem: the curve of the loss, B_i = bases_i diag(spectra_i) bases_i', the traces (nan: free)."""

    linear: Array
    curvature: Array
    lower: Array
    upper: Array
    bias: bool
    bases: Array
    spectra: Array
    totals: Array
    diagonal: bool


class State(NamedTuple):
    """The last point, where the next call starts, and what is known there."""

    alpha: Array
    predictor: Array
    gamma: Array
    powers: Array
    forms: Array
    distances: Array
    squares: Array
    shifts: Array
    pairs: Pairs
    memory: Array  # Lipschitz estimate (0: none yet), price of sum alpha = 0, intercept
    counts: NDArray[np.intp]  # steps, projections


@compiled
def climb(given: Given, weights: Array, tol: float, steps: int, state: State) -> tuple[float, float]:
    """Ascend until the inner gap is `tol` or `steps` steps are done; return the value and the gap.

    The method is FISTA (Beck, Teboulle, SIAM J. Imaging Sci. 2 (2009)), with a Lipschitz estimate that
    grows until a step holds and shrinks after it. The momentum starts again where it points downhill, as
    seen from the gradient (O'Donoghue, Candes, Found. Comput. Math. 15 (2015)): the values are too coarse
    for that near the end.
    """
    x = state.alpha.copy()
    place, point, f, rest, trial = x, x, x, 0.0, False
    momentum, taken = 1.0, 0
    while True:
        value = evaluate(place, given, weights, SHARE * tol, state)
        here = state.predictor.copy()
        if not trial:
            f, rest = here, value
            if state.memory[0] == 0:
                state.memory[0] = stretch(x, f)
        elif refused(state.memory[0], place - point, value - rest, f, here):
            state.memory[0] *= GROW
        else:
            taken += 1
            state.memory[0] *= SHRINK
            loss = dual_loss(place, given)
            gap = inner_gap(loss, given, SLACK * tol, state)
            if gap <= tol or taken == steps or still(x, point, place):
                state.counts[0] += taken
                for k in range(x.size):
                    state.alpha[k] = place[k]
                return loss + value, gap
            if np.dot(point - place, place - x) > 0:
                momentum = 1.0
            following = (1 + np.sqrt(1 + 4 * momentum * momentum)) / 2
            point = place + (momentum - 1) / following * (place - x)
            x, f, rest, trial = place, here, value, momentum == 1
            momentum = following
            if not trial:
                place = point
                continue
        place, trial = propose(point, f, given, state), True


@compiled
def still(x: Array, point: Array, place: Array) -> bool:
    """Whether nothing has moved: to rounding, there is nothing better."""
    same = True
    for k in range(x.size):
        same = same and place[k] == point[k] and place[k] == x[k]
    return same


@compiled
def evaluate(alpha: Array, given: Given, weights: Array, tol: float, state: State) -> float:
    """Return the best sum of -z'K_i z / (2 gamma_i) + weights_i |K_i - B_i|^2 over gamma, to `tol`.

    Minus its gradient is the predictor, sum_i K_i z / gamma_i at the points of alpha.
    """
    m, n, order = given.totals.size, alpha.size, given.spectra.shape[1]
    pulls, images, before = np.empty((m, order)), np.empty((m, order)), np.zeros((2, m))
    value = 0.0
    for i in range(m):
        np.dot(alpha, given.bases[i, :n], pulls[i])
    for rounds in range(ROUNDS):
        value = 0.0
        for i in range(m):
            value += term(i, pulls[i], images[i], weights[i], given, state)
        state.counts[1] += m
        if rounds == ROUNDS - 1 or settled(state.gamma, state.forms, tol):
            break
        share(state.gamma, state.forms, state.powers, before, rounds == 0)
    for k in range(n):
        state.predictor[k] = 0.0
    for i in range(m):
        image = np.dot(given.bases[i, :n], images[i])
        for k in range(n):
            state.predictor[k] += image[k] / state.gamma[i]
    return value


@compiled
def term(i: int, pull: Array, image: Array, weight: float, given: Given, state: State) -> float:
    """Return the i-th term of `evaluate` at this gamma; `pull` is Q'z, and `image` becomes Q'K z."""
    gamma, stack = state.gamma[i], state.pairs
    pairs = Pairs(
        stack.vectors[i],
        stack.squares[i],
        stack.weights[i],
        stack.order[i],
        stack.turns[i],
        stack.angles[i],
        stack.counts[i],
    )
    c = 1 / (4 * weight * gamma)
    if given.diagonal:
        values = project_diagonal(given.spectra[i], pull, c, given.totals[i], pairs, image)
    else:
        values = project(given.spectra[i], pull, c, given.totals[i], pairs, image)
    state.forms[i], state.distances[i] = values.form, values.distance
    state.squares[i], state.shifts[i] = values.square, values.shift
    return float(weight * values.distance - values.form / (2 * gamma))


@compiled
def dual_loss(alpha: Array, given: Given) -> float:
    """Return l(alpha)."""
    return float(np.dot(given.linear, alpha) - np.dot(given.curvature, alpha * alpha) / 2)


@compiled
def inner_gap(loss: float, given: Given, slack: float, state: State) -> float:
    """Return what the best alpha and gamma for these kernels have more, at most; l(alpha) is `loss`.

    min_b loss(f + b) + 1/2 max_i q_i / gamma_i^2 - (l(alpha) - 1/2 sum_i q_i / gamma_i), q_i = z'K_i z.
    """
    pull = given.linear - state.predictor
    if given.bias:
        state.memory[2], primal = offset(
            pull, given.curvature, given.lower, given.upper, state.memory[2], min(slack, 1e-9 * abs(loss))
        )
    else:
        primal = response(0.0, pull, given.curvature, given.lower, given.upper)[0]
    most, now = 0.0, 0.0
    for i in range(state.gamma.size):
        most = max(most, state.forms[i] / state.gamma[i] ** 2)
        now += state.forms[i] / state.gamma[i]
    return float(primal + most / 2 - (loss - now / 2))


@compiled
def stretch(x: Array, f: Array) -> float:
    """Return a first Lipschitz estimate, from the gradient -f at x."""
    square, form = np.dot(x, x), np.dot(f, x)
    return float(form / square) if square > 0 and form > 0 else 1.0


@compiled
def refused(lipschitz: float, moved: Array, gain: float, f: Array, here: Array) -> bool:
    """Whether a step gains less than its quadratic model, by the values and by the gradients at its ends.

    The gradients ask for more, but still tell where the values differ by rounding.
    """
    bound = lipschitz / 2 * np.dot(moved, moved)
    return bool(gain + np.dot(f, moved) + bound < 0 and np.dot(here - f, moved) > bound)


@compiled
def propose(point: Array, f: Array, given: Given, state: State) -> Array:
    """Return the maximiser of l(a) - f'a - lipschitz/2 |a - point|^2 on the dual domain."""
    new, lipschitz, nu = np.empty(point.size), state.memory[0], 0.0
    pull, stiffness = given.linear - f + lipschitz * point, given.curvature + lipschitz
    if given.bias:
        nu = offset(pull, stiffness, given.lower, given.upper, state.memory[1], -1.0)[0]
        state.memory[1] = nu
    respond(nu, pull, stiffness, given.lower, given.upper, given.bias, new)
    return new

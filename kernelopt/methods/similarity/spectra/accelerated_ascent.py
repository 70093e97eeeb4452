"""The ascent itself: accelerated proximal steps on alpha, with the best gamma at every point."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kernelopt.methods.similarity.spectra.offset import offset, respond, response
from kernelopt.methods.similarity.spectra.projection import Pairs, project, project_diagonal
from kernelopt.methods.similarity.spectra.shares import balanced, begin, share
from kernelopt.numerics.compiling import compiled, summed
from kernelopt.validation import Array

SHARE = 0.2  # of the tolerance: how well gamma is known
SLACK = 0.01  # of the tolerance: how well the intercept is
ROUNDS = 60  # for gamma, at one alpha
GROW, SHRINK = 2.0, 0.8  # of the Lipschitz estimate: after a step refused, and after one taken
ROUNDING = 1e-14  # of l(alpha): no gap is smaller
FAR = 0.1  # how far along its ray the best may be, relative to a first point
TINY = 1e-200


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
    falls: Array  # of the forms, as gamma grows
    forms: Array
    distances: Array
    squares: Array
    shifts: Array
    pairs: Pairs
    memory: Array  # Lipschitz estimate (0: none yet), price of sum alpha = 0, intercept
    counts: NDArray[np.intp]  # steps, projections, and whether another thread asks for the end


@compiled
def maximize(given: Given, weights: Array, tol: float, steps: int, state: State) -> tuple[float, float]:
    """Ascend until the inner gap is `tol`, or rounding, or `steps` steps are done; return value and gap.

    Another thread may end it after the next step, by `counts`.

    The method is FISTA (Beck, Teboulle, SIAM J. Imaging Sci. 2 (2009)), with a Lipschitz estimate that
    grows until a step holds and shrinks after it. The momentum starts again where it points downhill, as
    seen from the gradient (O'Donoghue, Candes, Found. Comput. Math. 15 (2015)): the values are too coarse
    for that near the end.
    """
    x = state.alpha.copy()
    if state.memory[0] == 0:
        x = scaled_start(x, given, weights, SHARE * tol, state)
    candidate, point, f, rest, trial = x, x, x, 0.0, False
    momentum, taken = 1.0, 0
    while True:
        value = evaluate(candidate, given, weights, SHARE * tol, state)
        here = state.predictor.copy()
        if not trial:
            f, rest = here, value
            if state.memory[0] == 0:
                state.memory[0] = stretch(x, f)
        elif refused(state.memory[0], point, candidate, value - rest, f, here):
            state.memory[0] *= GROW
        else:
            taken += 1
            state.memory[0] = max(SHRINK * state.memory[0], TINY)
            loss = dual_loss(candidate, given)
            gap = inner_gap(loss, given, SLACK * tol, state)
            if gap <= max(tol, ROUNDING * abs(loss)) or taken == steps or state.counts[2] > 0:
                state.counts[0] += taken
                for k in range(x.size):
                    state.alpha[k] = candidate[k]
                return loss + value, gap
            if overshoots(x, point, candidate):
                momentum = 1.0
            following = (1 + np.sqrt(1 + 4 * momentum * momentum)) / 2
            point = extrapolated(x, candidate, (momentum - 1) / following)
            x, f, rest, trial = candidate, here, value, momentum == 1
            momentum = following
            if not trial:
                candidate = point
                continue
        candidate, trial = propose(point, f, given, state), True


@compiled
def scaled_start(alpha: Array, given: Given, weights: Array, tol: float, state: State) -> Array:
    """Return a first point: one where C is large is brought to the scale of the best on its ray."""
    for _ in range(ROUNDS):
        evaluate(alpha, given, weights, tol, state)
        inner, form = 0.0, 0.0
        for k in range(alpha.size):
            inner += given.linear[k] * alpha[k]
            form += (state.predictor[k] + given.curvature[k] * alpha[k]) * alpha[k]
        if not 0 < inner < FAR * form:
            break
        alpha = alpha * (inner / form)
    return alpha


@summed
def overshoots(x: Array, point: Array, candidate: Array) -> bool:
    """Whether the way from x to the new candidate is against the step that was taken to it."""
    total = 0.0
    for k in range(x.size):
        total += (point[k] - candidate[k]) * (candidate[k] - x[k])
    return total > 0


@summed
def extrapolated(x: Array, candidate: Array, share: float) -> Array:
    """Return the point on the way from x to the new candidate that is further by a share of it."""
    point = np.empty(x.size)
    for k in range(x.size):
        point[k] = candidate[k] + share * (candidate[k] - x[k])
    return point


@compiled
def evaluate(alpha: Array, given: Given, weights: Array, tol: float, state: State) -> float:
    """Return the best sum of -z'K_i z / (2 gamma_i) + weights_i |K_i - B_i|^2 over gamma, to `tol`.

    Minus its gradient is the predictor, sum_i K_i z / gamma_i at the points of alpha.
    """
    m, n, order = given.totals.size, alpha.size, given.spectra.shape[1]
    rotated, images = np.empty((m, order)), np.empty((m, order))
    search, value = begin(m), 0.0
    for i in range(m):
        np.dot(alpha, given.bases[i, :n], rotated[i])
    for rounds in range(ROUNDS):
        value = 0.0
        for i in range(m):
            value += term(i, rotated[i], images[i], weights[i], given, state)
        state.counts[1] += m
        if rounds == ROUNDS - 1 or balanced(state.gamma, state.forms, tol):
            break
        share(state.gamma, state.forms, state.falls, search)
    for k in range(n):
        state.predictor[k] = 0.0
    for i in range(m):
        image = np.dot(given.bases[i, :n], images[i])
        for k in range(n):
            state.predictor[k] += image[k] / state.gamma[i]
    return value


@compiled
def term(i: int, rotated: Array, image: Array, weight: float, given: Given, state: State) -> float:
    """Return the i-th term of `evaluate` at this gamma; `rotated` is Q'z, and `image` becomes Q'K z."""
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
        values = project_diagonal(given.spectra[i], rotated, c, given.totals[i], pairs, image)
    else:
        values = project(given.spectra[i], rotated, c, given.totals[i], pairs, image)
    state.forms[i], state.distances[i] = values.form, values.distance
    state.squares[i], state.shifts[i] = values.square, values.shift
    return float(weight * values.distance - values.form / (2 * gamma))


@summed
def dual_loss(alpha: Array, given: Given) -> float:
    """Return l(alpha)."""
    total = 0.0
    for k in range(alpha.size):
        total += (given.linear[k] - given.curvature[k] * alpha[k] / 2) * alpha[k]
    return total


@compiled
def inner_gap(loss: float, given: Given, slack: float, state: State) -> float:
    """Return what the best alpha and gamma for these kernels have more, at most; l(alpha) is `loss`.

    min_b loss(f + b) + 1/2 max_i q_i / gamma_i^2 - (l(alpha) - 1/2 sum_i q_i / gamma_i), q_i = z'K_i z.
    """
    residual = given.linear - state.predictor
    if given.bias:
        state.memory[2], primal = offset(
            residual, given.curvature, given.lower, given.upper, state.memory[2], min(slack, 1e-9 * abs(loss))
        )
    else:
        primal = response(0.0, residual, given.curvature, given.lower, given.upper)[0]
    most, now = 0.0, 0.0
    for i in range(state.gamma.size):
        most = max(most, state.forms[i] / state.gamma[i] ** 2)
        now += state.forms[i] / state.gamma[i]
    return float(primal + most / 2 - (loss - now / 2))


@compiled
def stretch(x: Array, f: Array) -> float:
    """Return a first Lipschitz estimate, from the gradient -f at x."""
    square, form = 0.0, 0.0
    for k in range(x.size):
        square += x[k] * x[k]
        form += f[k] * x[k]
    return form / square if square > 0 and form > 0 else 1.0


@summed
def refused(lipschitz: float, point: Array, candidate: Array, gain: float, f: Array, here: Array) -> bool:
    """Whether a step gains less than its quadratic model, by the values and by the gradients at its ends.

    The gradients ask for more, but still tell where the values differ by rounding.
    """
    square, slope, bend = 0.0, 0.0, 0.0
    for k in range(point.size):
        moved = candidate[k] - point[k]
        square += moved * moved
        slope += f[k] * moved
        bend += (here[k] - f[k]) * moved
    bound = lipschitz / 2 * square
    return gain + slope + bound < 0 and bend > bound


@compiled
def propose(point: Array, f: Array, given: Given, state: State) -> Array:
    """Return the maximiser of l(a) - f'a - lipschitz/2 |a - point|^2 on the dual domain."""
    n, lipschitz, nu = point.size, state.memory[0], 0.0
    linear, curvature, new = np.empty(n), np.empty(n), np.empty(n)
    for k in range(n):
        linear[k] = given.linear[k] - f[k] + lipschitz * point[k]
        curvature[k] = given.curvature[k] + lipschitz
    if given.bias:
        nu = offset(linear, curvature, given.lower, given.upper, state.memory[1], -1.0)[0]
        state.memory[1] = nu
    respond(nu, linear, curvature, given.lower, given.upper, given.bias, new)
    return new

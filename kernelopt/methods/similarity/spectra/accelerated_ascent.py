"""Accelerated proximal gradient ascent in alpha, with gamma and the kernels optimal at every point.

The objective is l(alpha) + d(alpha), where l is separable and quadratic on a box and d(alpha) is the maximum
over gamma in the simplex of sum_i min over K_i [ -z'K_i z / (2 gamma_i) + W_i |K_i - B_i|_F^2 ]. d is
concave with the gradient -f, f = sum_i K_i z / gamma_i, by Danskin's theorem.
"""

from __future__ import annotations

import numpy as np

from kernelopt.methods.similarity.spectra.offset import box_maximiser, box_maximum, minimize_offset
from kernelopt.methods.similarity.spectra.projection import Eigenpairs, project, project_diagonal
from kernelopt.methods.similarity.spectra.simplex_weights import (
    empty_bracket,
    gamma_is_optimal,
    update_gamma,
)
from kernelopt.methods.similarity.spectra.state import (
    INTERCEPT,
    LIPSCHITZ,
    MULTIPLIER,
    PROJECTIONS,
    STEPS,
    STOP,
    ProblemData,
    State,
)
from kernelopt.numerics.compiling import compiled
from kernelopt.validation import Array

GAMMA_ACCURACY = 0.2  # of the tolerance: the error that a gamma which is not optimal may cause in d
INTERCEPT_ACCURACY = 0.01  # of the tolerance: the error of the primal value that b may cause
RELATIVE_ACCURACY = 1e-9  # of l(alpha): the same for loose tolerances
MAX_ROUNDS = 60  # of the search for gamma at one alpha, and of the rescalings of the first point
GROW, SHRINK = 2.0, 0.8  # of the Lipschitz estimate: after a rejected step, and after an accepted one
GAP_ROUNDING = 1e-14  # of l(alpha): about the rounding of its sum, so that no smaller gap is meaningful
RESCALING = 0.1  # the first point is rescaled where the best factor is below this
MIN_LIPSCHITZ = 1e-200  # the estimate must stay positive, as it is a divisor


def prepare_start(data: ProblemData, weights: Array, tol: float, state: State) -> None:
    """Rescale the first alpha, and estimate the first Lipschitz constant L.

    alpha becomes t alpha until t >= RESCALING. t = linear'alpha / alpha'(f + diag(curvature) alpha) maximises
    l(t alpha) - t^2 alpha'f / 2, the objective on the ray with fixed kernels and gamma. For large C the given
    alpha may be too long by powers of ten. L = f'alpha / |alpha|^2 is a Rayleigh quotient of
    sum_i K_i / gamma_i. It is made once, so that it is not compiled.
    """
    alpha, f = state.alpha, state.predictor
    for _ in range(MAX_ROUNDS):
        evaluate(alpha, data, weights, GAMMA_ACCURACY * tol, state)
        square, form = float(alpha @ alpha), float(f @ alpha)
        state.warm[LIPSCHITZ] = form / square if square > 0 and form > 0 else 1.0
        inner, curved = float(data.linear @ alpha), form + float(data.curvature @ alpha**2)
        if not 0 < inner < RESCALING * curved:
            break
        alpha *= inner / curved


@compiled
def maximize(data: ProblemData, weights: Array, tol: float, steps: int, state: State) -> tuple[float, float]:
    """Ascend until the gap of `inner_gap` is at most `tol` or rounding, or `steps` steps are done.

    Returns the objective and the gap. Another thread ends the ascent after the next step by the flag STOP.

    The method is FISTA (Beck, Teboulle, SIAM J. Imaging Sci. 2 (2009)) with an adaptive restart and an
    adaptive Lipschitz estimate L: a step is repeated with GROW L until it passes the test of `rejected`,
    and L shrinks after it. The restart is by the gradient scheme of O'Donoghue and Candes (Found. Comput.
    Math. 15 (2015)): near the optimum the differences of values are rounding.
    """
    x = state.alpha.copy()
    candidate, point, f, value_at_point, is_step = x, x, x, 0.0, False
    momentum, steps_done = 1.0, 0
    while True:  # is_step: candidate is a proximal step from `point`, else the next `point` itself
        value = evaluate(candidate, data, weights, GAMMA_ACCURACY * tol, state)
        predictor = state.predictor.copy()
        if not is_step:
            f, value_at_point = predictor, value
        elif rejected(state.warm[LIPSCHITZ], point, candidate, value - value_at_point, f, predictor):
            state.warm[LIPSCHITZ] *= GROW
        else:
            steps_done += 1
            state.warm[LIPSCHITZ] = max(SHRINK * state.warm[LIPSCHITZ], MIN_LIPSCHITZ)
            loss = dual_loss(candidate, data)
            gap = inner_gap(loss, data, INTERCEPT_ACCURACY * tol, state)
            if gap <= max(tol, GAP_ROUNDING * abs(loss)) or steps_done == steps or state.counts[STOP] > 0:
                state.counts[STEPS] += steps_done
                for k in range(x.size):
                    state.alpha[k] = candidate[k]
                return loss + value, gap
            if restarts(x, point, candidate):
                momentum = 1.0
            next_momentum = (1 + np.sqrt(1 + 4 * momentum * momentum)) / 2
            point = extrapolated(x, candidate, (momentum - 1) / next_momentum)
            x, f, value_at_point, is_step = candidate, predictor, value, momentum == 1
            momentum = next_momentum
            if not is_step:
                candidate = point
                continue
        candidate, is_step = proximal_step(point, f, data, state), True


@compiled(any_order=True)
def restarts(x: Array, point: Array, candidate: Array) -> bool:
    """Whether (point - candidate)'(candidate - x) > 0: the move from x is against the proximal gradient."""
    total = 0.0
    for k in range(x.size):
        total += (point[k] - candidate[k]) * (candidate[k] - x[k])
    return total > 0


@compiled(any_order=True)
def extrapolated(x: Array, candidate: Array, factor: float) -> Array:
    """Return candidate + factor (candidate - x)."""
    point = np.empty(x.size)
    for k in range(x.size):
        point[k] = candidate[k] + factor * (candidate[k] - x[k])
    return point


@compiled
def evaluate(alpha: Array, data: ProblemData, weights: Array, tol: float, state: State) -> float:
    """Return d(alpha) with gamma optimal to `tol`, and fill in the fields of `state` that belong to it.

    The predictor becomes f = sum_i K_i z / gamma_i at the labelled points: minus the gradient of d.
    """
    m, n, order = data.totals.size, alpha.size, data.spectra.shape[1]
    rotated, images = np.empty((m, order)), np.empty((m, order))
    bracket, value = empty_bracket(m), 0.0
    for i in range(m):
        np.dot(alpha, data.bases[i, :n], rotated[i])
    for iteration in range(MAX_ROUNDS):
        value = 0.0
        for i in range(m):
            value += term(i, rotated[i], images[i], weights[i], data, state)
        state.counts[PROJECTIONS] += m
        if iteration == MAX_ROUNDS - 1 or gamma_is_optimal(state.gamma, state.forms, tol):
            break
        update_gamma(state.gamma, state.forms, state.elasticities, bracket)
    for k in range(n):
        state.predictor[k] = 0.0
    for i in range(m):
        image = np.dot(data.bases[i, :n], images[i])
        for k in range(n):
            state.predictor[k] += image[k] / state.gamma[i]
    return value


@compiled
def term(i: int, rotated: Array, image: Array, weight: float, data: ProblemData, state: State) -> float:
    """Return the i-th term of d at this gamma, W_i |K_i - B_i|^2 - z'K_i z / (2 gamma_i).

    Its minimiser K_i is the projection of B_i + z z' / (4 W_i gamma_i). With Q = bases_i, `rotated` is Q'z
    and `image` becomes Q'K_i z.
    """
    gamma, stack = state.gamma[i], state.pairs
    pairs = Eigenpairs(
        stack.vectors[i],
        stack.squares[i],
        stack.weights[i],
        stack.order[i],
        stack.planes[i],
        stack.rotations[i],
        stack.counts[i],
    )
    c = 1 / (4 * weight * gamma)
    if data.diagonal:
        values = project_diagonal(data.spectra[i], rotated, c, data.totals[i], pairs, image)
    else:
        values = project(data.spectra[i], rotated, c, data.totals[i], pairs, image)
    state.forms[i], state.distances[i] = values.form, values.distance
    state.squares[i], state.shifts[i] = values.square, values.shift
    return float(weight * values.distance - values.form / (2 * gamma))


@compiled(any_order=True)
def dual_loss(alpha: Array, data: ProblemData) -> float:
    """Return l(alpha)."""
    total = 0.0
    for k in range(alpha.size):
        total += (data.linear[k] - data.curvature[k] * alpha[k] / 2) * alpha[k]
    return total


@compiled
def inner_gap(loss: float, data: ProblemData, slack: float, state: State) -> float:
    """Return the duality gap of alpha and gamma for the present kernels; `loss` is l(alpha).

    The gap is min_b loss(f + b) + 1/2 max_i q_i / gamma_i^2 - (l(alpha) - 1/2 sum_i q_i / gamma_i), with
    q_i = z'K_i z. The first term is the maximum of l(a) - f'a over the dual domain; with an intercept it is
    computed to `slack`.
    """
    residual = data.linear - state.predictor
    if data.bias:
        state.warm[INTERCEPT], primal = minimize_offset(
            residual,
            data.curvature,
            data.lower,
            data.upper,
            state.warm[INTERCEPT],
            min(slack, RELATIVE_ACCURACY * abs(loss)),
        )
    else:
        primal = box_maximum(0.0, residual, data.curvature, data.lower, data.upper)[0]
    most, now = 0.0, 0.0
    for i in range(state.gamma.size):
        most = max(most, state.forms[i] / state.gamma[i] ** 2)
        now += state.forms[i] / state.gamma[i]
    return float(primal + most / 2 - (loss - now / 2))


@compiled(any_order=True)
def rejected(
    lipschitz: float, point: Array, candidate: Array, increase: float, f: Array, f_candidate: Array
) -> bool:
    """Whether d is below its quadratic model at the candidate: the Lipschitz estimate L is too small.

    With s = candidate - point the model asks for d(candidate) - d(point) >= -f's - L/2 |s|^2. By concavity
    (f_candidate - f)'s <= L/2 |s|^2 implies this, and it is accurate where the two values differ by
    rounding. A step is rejected where both fail.
    """
    square, slope, curvature = 0.0, 0.0, 0.0
    for k in range(point.size):
        step = candidate[k] - point[k]
        square += step * step
        slope += f[k] * step
        curvature += (f_candidate[k] - f[k]) * step
    bound = lipschitz / 2 * square
    return increase + slope + bound < 0 and curvature > bound


@compiled
def proximal_step(point: Array, f: Array, data: ProblemData, state: State) -> Array:
    """Return the maximiser of l(a) - f'a - L/2 |a - point|^2 over the dual domain.

    With an intercept, sum a = 0 has the multiplier nu, which minimises the dual function of this problem.
    """
    n, lipschitz, nu = point.size, state.warm[LIPSCHITZ], 0.0
    linear, curvature, new = np.empty(n), np.empty(n), np.empty(n)
    for k in range(n):
        linear[k] = data.linear[k] - f[k] + lipschitz * point[k]
        curvature[k] = data.curvature[k] + lipschitz
    if data.bias:
        nu = minimize_offset(linear, curvature, data.lower, data.upper, state.warm[MULTIPLIER], -1.0)[0]
        state.warm[MULTIPLIER] = nu
    box_maximiser(nu, linear, curvature, data.lower, data.upper, data.bias, new)
    return new

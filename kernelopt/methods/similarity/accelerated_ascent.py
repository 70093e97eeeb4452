"""Accelerated proximal gradient ascent in alpha, with gamma and the kernels optimal at every point.

The objective is l(alpha) + d(alpha), where l is separable and quadratic on a box and d(alpha) is the maximum
over gamma in the simplex of sum_i min over K_i [ -z'K_i z / (2 gamma_i) + W_i |K_i - B_i|_F^2 ]. d is
concave with the gradient -f, f = sum_i K_i z / gamma_i, by Danskin's theorem.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kernelopt.methods.similarity.offset import box_maximiser, box_maximum, minimize_offset
from kernelopt.methods.similarity.projection import Eigenpairs, project, project_diagonal
from kernelopt.methods.similarity.settings import SETTINGS
from kernelopt.methods.similarity.simplex_weights import empty_bracket, gamma_is_optimal, update_gamma
from kernelopt.numerics.compiling import compiled
from kernelopt.validation import Array


class ProblemData(NamedTuple):
    """The data of the problem.

    The dual value of the loss is l(a) = linear'a - a'diag(curvature)a / 2 for lower <= a <= upper. If there
    is an intercept, sum a = 0. The i-th kernel K_i is near B_i = bases_i diag(spectra_i) bases_i'.
    """

    linear: Array
    curvature: Array
    lower: Array
    upper: Array
    bias: bool  # whether there is an intercept
    bases: Array
    spectra: Array
    totals: Array  # the fixed trace of each K_i, nan if it is free
    diagonal: bool


class State(NamedTuple):
    """The last point, which is the start of the next call, and what was computed there."""

    alpha: Array
    predictor: Array  # f = sum_i K_i z / gamma_i on the labelled points
    gamma: Array
    elasticities: Array  # -dlog q_i / dlog gamma_i
    forms: Array  # q_i = z'K_i z
    distances: Array  # |K_i - B_i|_F^2
    squares: Array  # |K_i|_F^2
    shifts: Array  # theta_i
    pairs: Eigenpairs  # of all K_i
    warm: Array  # warm starts: Lipschitz estimate (0: none yet), multiplier of sum alpha = 0, intercept b
    counts: NDArray[np.intp]  # steps, projections, and a flag by which another thread ends the ascent

    @classmethod
    def at(cls, alpha: Array, gamma: Array, order: int) -> State:
        """Return the state at a first point, for kernels of the given order.

        The first elasticity is the middle of two cases: it is 0 if q_i does not depend on gamma_i, and 1 if
        q_i is proportional to 1 / gamma_i.
        """
        m, n = gamma.size, alpha.size
        forms, distances, squares, shifts = np.zeros((4, m))
        pairs, elasticities = Eigenpairs.empty(m, order), np.full(m, 0.5)
        numbers = elasticities, forms, distances, squares, shifts
        return cls(alpha, np.zeros(n), gamma, *numbers, pairs, np.zeros(3), np.zeros(3, dtype=np.intp))


def passes_of_a_step(data: ProblemData) -> float:
    """Return about the passes of innermost loops in one step, or in one call of `evaluate`."""
    return SETTINGS.passes_per_eigenvalue * data.spectra.size


def prepare_start(data: ProblemData, weights: Array, tol: float, state: State) -> None:
    """Rescale the first alpha, and estimate the first Lipschitz constant L.

    alpha becomes t alpha until t is near one. t = linear'alpha / alpha'(f + diag(curvature) alpha) maximises
    l(t alpha) - t^2 alpha'f / 2, the objective on the ray with fixed kernels and gamma. For large C the given
    alpha may be too long by powers of ten. L = f'alpha / |alpha|^2 is a Rayleigh quotient of
    sum_i K_i / gamma_i. It is made once, so that it is not compiled.
    """
    alpha, f = state.alpha, state.predictor
    for _ in range(SETTINGS.rounds):
        at = compiled(evaluate, passes_of_a_step(data))
        at(alpha, data, weights, SETTINGS.gamma_accuracy * tol, state)
        square, form = float(alpha @ alpha), float(f @ alpha)
        state.warm[0] = form / square if square > 0 and form > 0 else 1.0
        inner, curved = float(data.linear @ alpha), form + float(data.curvature @ alpha**2)
        if not 0 < inner < SETTINGS.rescaling * curved:
            break
        alpha *= inner / curved


def maximize(data: ProblemData, weights: Array, tol: float, steps: int, state: State) -> tuple[float, float]:
    """Ascend until the gap of `inner_gap` is at most `tol` or rounding, or `steps` steps are done.

    Returns the objective and the gap. Another thread ends the ascent after the next step by a flag.

    The method is FISTA (Beck, Teboulle, SIAM J. Imaging Sci. 2 (2009)) with an adaptive restart and an
    adaptive Lipschitz estimate L: a step is repeated with a larger L until it passes the test of `rejected`,
    and L shrinks after it. The restart is by the gradient scheme of O'Donoghue and Candes (Found. Comput.
    Math. 15 (2015)): near the optimum the differences of values are rounding.
    """
    gamma_tol, momentum = SETTINGS.gamma_accuracy * tol, 1.0
    x = state.alpha.copy()
    value, f, point = evaluate(x, data, weights, gamma_tol, state), state.predictor.copy(), x
    for step in range(1, steps + 1):
        while True:
            candidate = proximal_step(point, f, data, state)
            new_value = evaluate(candidate, data, weights, gamma_tol, state)
            if not rejected(state.warm[0], point, candidate, new_value - value, f, state.predictor):
                break
            state.warm[0] *= SETTINGS.grow
        state.warm[0] = max(SETTINGS.shrink * state.warm[0], SETTINGS.least_lipschitz)
        loss = float(np.dot(data.linear - data.curvature * candidate / 2, candidate))
        gap = inner_gap(loss, data, SETTINGS.intercept_accuracy * tol, state)
        if gap <= max(tol, SETTINGS.gap_rounding * abs(loss)) or step == steps or state.counts[2] > 0:
            state.counts[0] += step
            state.alpha[:] = candidate
            return loss + new_value, gap
        if np.dot(point - candidate, candidate - x) > 0:  # the move from x is against the gradient
            momentum = 1.0
        next_momentum = (1 + np.sqrt(1 + 4 * momentum * momentum)) / 2
        value, f, point = new_value, state.predictor.copy(), candidate
        if momentum > 1:
            point = candidate + (momentum - 1) / next_momentum * (candidate - x)
            value = evaluate(point, data, weights, gamma_tol, state)
            f = state.predictor.copy()
        x, momentum = candidate, next_momentum
    return np.nan, np.inf  # no step was asked for


def evaluate(alpha: Array, data: ProblemData, weights: Array, tol: float, state: State) -> float:
    """Return d(alpha) with gamma optimal to `tol`, and fill in the fields of `state` that belong to it.

    The predictor becomes f = sum_i K_i z / gamma_i at the labelled points: minus the gradient of d.
    """
    m, n, order = data.totals.size, alpha.size, data.spectra.shape[1]
    rotated, images = np.empty((m, order)), np.empty((m, order))  # Q'z and Q'K_i z for Q = bases_i
    bracket, value = empty_bracket(m), 0.0
    for i in range(m):
        np.dot(alpha, data.bases[i, :n], rotated[i])
    for iteration in range(SETTINGS.rounds):
        value = 0.0
        for i in range(m):
            value += term(i, rotated[i], images[i], weights[i], data, state)
        state.counts[1] += m
        if iteration == SETTINGS.rounds - 1 or gamma_is_optimal(state.gamma, state.forms, tol):
            break
        update_gamma(state.gamma, state.forms, state.elasticities, bracket)
    state.predictor[:] = 0.0
    for i in range(m):
        state.predictor[:] += np.dot(data.bases[i, :n], images[i]) / state.gamma[i]
    return value


def term(i: int, rotated: Array, image: Array, weight: float, data: ProblemData, state: State) -> float:
    """Return the i-th term of d at this gamma, W_i |K_i - B_i|^2 - z'K_i z / (2 gamma_i).

    Its minimiser K_i is the projection of B_i + z z' / (4 W_i gamma_i). With Q = bases_i, `rotated` is Q'z
    and `image` becomes Q'K_i z.
    """
    stack, c, total = state.pairs, 1 / (4 * weight * state.gamma[i]), data.totals[i]
    pairs = Eigenpairs(stack.vectors[i], stack.squares[i], stack.weights[i])
    if data.diagonal:
        numbers = project_diagonal(data.spectra[i], rotated, c, total, pairs, image)
    else:
        numbers = project(data.spectra[i], rotated, c, total, pairs, image)
    state.forms[i], state.distances[i], state.squares[i], state.shifts[i] = numbers
    return float(weight * state.distances[i] - state.forms[i] / (2 * state.gamma[i]))


def inner_gap(loss: float, data: ProblemData, slack: float, state: State) -> float:
    """Return the duality gap of alpha and gamma for the present kernels; `loss` is l(alpha).

    The gap is min_b loss(f + b) + 1/2 max_i q_i / gamma_i^2 - (l(alpha) - 1/2 sum_i q_i / gamma_i), with
    q_i = z'K_i z. The first term is the maximum of l(a) - f'a over the dual domain; with an intercept it is
    computed to `slack`.
    """
    residual = data.linear - state.predictor
    box = data.curvature, data.lower, data.upper
    if data.bias:
        slack = min(slack, SETTINGS.relative_accuracy * abs(loss))
        state.warm[2], primal = minimize_offset(residual, *box, state.warm[2], slack)
    else:
        primal = box_maximum(0.0, residual, *box)[0]
    norms = state.forms / state.gamma
    return float(primal + (norms / state.gamma).max() / 2 - (loss - norms.sum() / 2))


def rejected(
    lipschitz: float, point: Array, candidate: Array, increase: float, f: Array, f_candidate: Array
) -> bool:
    """Whether d is below its quadratic model at the candidate: the Lipschitz estimate L is too small.

    With s = candidate - point the model asks for d(candidate) - d(point) >= -f's - L/2 |s|^2. By concavity
    (f_candidate - f)'s <= L/2 |s|^2 implies this, and it is accurate where the two values differ by
    rounding. A step is rejected where both fail.
    """
    step = candidate - point
    bound = lipschitz / 2 * np.dot(step, step)
    return bool(increase + np.dot(f, step) + bound < 0 and np.dot(f_candidate - f, step) > bound)


def proximal_step(point: Array, f: Array, data: ProblemData, state: State) -> Array:
    """Return the maximiser of l(a) - f'a - L/2 |a - point|^2 over the dual domain.

    With an intercept, sum a = 0 has the multiplier nu, which minimises the dual function of this problem.
    """
    lipschitz, nu, new = state.warm[0], 0.0, np.empty(point.size)
    linear, curvature = data.linear - f + lipschitz * point, data.curvature + lipschitz
    if data.bias:
        nu = minimize_offset(linear, curvature, data.lower, data.upper, state.warm[1], -1.0)[0]
        state.warm[1] = nu
    box_maximiser(nu, linear, curvature, data.lower, data.upper, data.bias, new)
    return new

"""Accelerated proximal gradient ascent in alpha, with gamma and the kernels optimal at every point.

The objective is l(alpha) + d(alpha), where l is separable and quadratic on a box and d(alpha) is the maximum
over gamma in the simplex of sum_i min over K_i [ -z'K_i z / (2 gamma_i) + W_i |K_i - B_i|_F^2 ]. d is
concave with the gradient -f, f = sum_i K_i z / gamma_i, by Danskin's theorem.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kernelopt.methods.similarity.spectra.offset import box_maximiser, box_maximum, minimize_offset
from kernelopt.methods.similarity.spectra.projection import Eigenpairs, project, project_diagonal
from kernelopt.methods.similarity.spectra.simplex_weights import (
    empty_bracket,
    gamma_is_optimal,
    update_gamma,
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
LIPSCHITZ, MULTIPLIER, INTERCEPT = 0, 1, 2  # entries of State.warm
STEPS, PROJECTIONS, STOP = 0, 1, 2  # entries of State.counts
# The first guess of -dlog q_i / dlog gamma_i with q_i = z'K_i z. The guess is the middle of two cases: the
# elasticity is 0 if q_i does not depend on gamma_i, and 1 if q_i is proportional to 1 / gamma_i.
FIRST_ELASTICITY = 0.5


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
    def at(cls, alpha: Array, m: int, order: int) -> State:
        """Return the state at a first alpha, with equal gamma, for m kernels of the given order."""
        return cls(
            alpha=alpha,
            predictor=np.zeros(alpha.size),
            gamma=np.full(m, 1 / m),
            elasticities=np.full(m, FIRST_ELASTICITY),
            forms=np.zeros(m),
            distances=np.zeros(m),
            squares=np.zeros(m),
            shifts=np.zeros(m),
            pairs=Eigenpairs.empty(m, order),
            warm=np.zeros(3),
            counts=np.zeros(3, dtype=np.intp),
        )


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
                state.alpha[:] = candidate
                return loss + value, gap
            if np.dot(point - candidate, candidate - x) > 0:  # the move from x is against the gradient
                momentum = 1.0
            next_momentum = (1 + np.sqrt(1 + 4 * momentum * momentum)) / 2
            point = candidate + (momentum - 1) / next_momentum * (candidate - x)
            x, f, value_at_point, is_step = candidate, predictor, value, momentum == 1
            momentum = next_momentum
            if not is_step:
                candidate = point
                continue
        candidate, is_step = proximal_step(point, f, data, state), True


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
    state.predictor[:] = 0.0
    for i in range(m):
        state.predictor[:] += np.dot(data.bases[i, :n], images[i]) / state.gamma[i]
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


@compiled
def dual_loss(alpha: Array, data: ProblemData) -> float:
    """Return l(alpha)."""
    return float(np.dot(data.linear - data.curvature * alpha / 2, alpha))


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
    norms = state.forms / state.gamma
    return float(primal + (norms / state.gamma).max() / 2 - (loss - norms.sum() / 2))


@compiled
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


@compiled
def proximal_step(point: Array, f: Array, data: ProblemData, state: State) -> Array:
    """Return the maximiser of l(a) - f'a - L/2 |a - point|^2 over the dual domain.

    With an intercept, sum a = 0 has the multiplier nu, which minimises the dual function of this problem.
    """
    lipschitz, nu, new = state.warm[LIPSCHITZ], 0.0, np.empty(point.size)
    linear, curvature = data.linear - f + lipschitz * point, data.curvature + lipschitz
    if data.bias:
        nu = minimize_offset(linear, curvature, data.lower, data.upper, state.warm[MULTIPLIER], -1.0)[0]
        state.warm[MULTIPLIER] = nu
    box_maximiser(nu, linear, curvature, data.lower, data.upper, data.bias, new)
    return new

"""Whether the optimum determines the weights of the kernels, by a proof in either direction.

Let theta be optimal weights, of the sum of the risks of K_theta = sum_m theta_m K_m over a convex set S of
weights, and let alpha_k be dual solutions, one for each risk k. Solutions of a saddle-point problem can be
exchanged: with any other optimal theta' the same alpha_k are dual solutions, theta' maximises theta's(alpha)
over S, s = sum_k alpha_k'K_m alpha_k with the factors of the risks, and the machine of risk k is
K_theta' alpha_k + b_k'. Its prediction at sample i is a supergradient of the dual function l_i at alpha_ki.
Where l_i is differentiable there, on a set F_k of samples, the prediction is the same for theta and theta'.

On an l_p ball the following is decided, where f = 0 for all k means that no weights help and none are unique.

* 1 < p < inf: unique. With the blocks w_km of the machines, eliminating theta leaves the losses plus
  1/2 |N|_r^2, r = 2p / (p + 1) in (1, 2), N_m^2 = sum_k |w_km|^2 with the factors of the risks. This norm of
  all blocks is strictly convex, so that the w_km are unique, and so is theta_m, in proportion to
  N_m^(2 / (p + 1)).
* p = inf: unique if and only if every s_m > 0. Where s_m > 0, theta_m is at its bound. Where s_m = 0, the
  K_m alpha_k vanish, and any theta_m is optimal.
* p = 1, and weights of given trace: d = theta' - theta has entries only where s_m, at equal traces, is the
  largest. Then sum_m d_m s_m = 0, and sum_m d_m K_m alpha_k is constant on F_k, zero without an intercept.
  If only d = 0 meets these equations, the weights are unique. They are not if some d != 0 with nonnegative
  entries where theta_m = 0 has sum_m d_m K_m alpha_k = 0 at all points, and the sum zero of the weights
  scaled to a sum of one: the values of theta and of theta + e d are then equal for small e > 0.

The bounds of a certificate, at the distance e, say where a form is positive at an optimum. At fixed theta the
objective is strongly convex in the blocks w_km. So the blocks theta_m K_m alpha_k of the computed machines
have a distance of at most sqrt(2 e) from optimal blocks, in the norm of the objective. If f = 0 is optimal,
all theta are: then theta's(alpha) <= 2 e. At p = inf, with the weights scaled to a bound of 1, weights of
one are optimal: if the blocks of K_m vanish at the optimum, then theta_m^2 s_m(alpha) <= 2 e.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from scipy.optimize import nnls

from kernelopt.certificates import Certificate
from kernelopt.language.learner import Learner
from kernelopt.methods.learned import Learned
from kernelopt.numerics.norms import length_of_positive
from kernelopt.structure.ball import BallProblem, read_risks_on_ball
from kernelopt.structure.structure import Structure
from kernelopt.validation import Array, Index, Mask

VANISHED = 1e-12  # a form alpha'K alpha below this share of its largest value for |alpha| counts as zero
INDEPENDENT = 1e-7  # singular values of normalised vectors below this count as zero
ACTIVE = 1e-7  # relative distance below which a weight counts as zero, or a kernel as one of the best


def weights_are_unique(
    structure: Structure, certificate: Certificate, learned: tuple[Learned, ...]
) -> bool | None:
    """Whether the optimum determines the weights; None where that is not known.

    The theorems of the module are applied to the point and the alpha of a certificate. For one risk on
    another set of weights the test of p = 1 is made with all kernels: it can only prove that the weights are
    unique.
    """
    if not learned or not np.isfinite(certificate.upper - certificate.lower):
        return None
    ball = read_risks_on_ball(structure)
    if isinstance(ball, BallProblem) and not ball.priced:
        return unique_on_ball(ball, certificate)
    (machine, *others), objective = learned, structure.objective
    if others or machine.weights is None or not machine.inductive or structure.constrained[0]:
        return None
    learner = structure.risks[0].learner
    one_kernel = len(learner.kernels) == 1 or learner.norm == 2
    if not one_kernel or objective is None or not objective.factor > 0:
        return None
    each = (part.predictions(learner.n)[: learner.n] for part in machine.parts)
    F = determined(learner, machine.alpha, lambda: np.sum(list(each), axis=0) + machine.intercept)
    rows = np.concatenate([part.grams.images(machine.alpha, F) for part in machine.parts])
    return are_independent(with_intercepts(rows, [learner], [F])) or None


def unique_on_ball(ball: BallProblem, certificate: Certificate) -> bool | None:
    """Whether the optimum determines the weights of an l_p ball or of a given trace."""
    theta = ball.weights({variable.id: value for variable, value in certificate.point.items()})
    machines, w = certificate.machines, theta / ball.reach
    total = ball.total(np.array([ball.reach * ball.whole.forms(each.alpha) for each in machines]))
    largest = np.array([ball.reach * largest_forms(ball, each.alpha) for each in machines])
    rounding = VANISHED * ball.total(largest)
    distance = (certificate.upper - certificate.lower) / ball.factor
    if np.isinf(ball.p):
        if (w**2 * total > 2 * distance + rounding).all():
            return True
        return False if (total <= rounding).any() else None
    helps = w @ total > 2 * distance + w @ rounding
    if ball.p > 1 or theta.size == 1:
        vanishes = ball.p > 1 and (total <= rounding).all()  # of a given trace one kernel has no other weight
        return True if helps else False if vanishes else None
    if (total <= rounding).all():
        return False
    if not w.any():
        return None
    for each in machines:  # of all kernels at once: what follows takes some of them
        ball.whole.images(each.alpha, np.flatnonzero(each.alpha))
    # An alpha with bounds at the relative distance e is within a multiple of sqrt(e) of an optimal one, and
    # only kernels as near to the largest form have weights above such a multiple.
    tolerance = max(ACTIVE, certificate.gap**0.5)
    near = total >= (1 - tolerance) * total.max()
    positive = np.flatnonzero(near | (w > ACTIVE * w.max()))
    if helps and are_independent(equations(ball, theta, machines, total, positive)):
        return True
    used = near & (w > tolerance * w.max())
    unused = ~used & (total >= (1 - ACTIVE) * total.max())
    # A combination that vanishes at all points does so where alpha is not zero. There the images are known.
    everything = np.arange(ball.n)
    for points in (np.flatnonzero(np.any([each.alpha for each in machines], axis=0)), everything):
        rows = [images(ball, theta, machines, which, points) for which in (used, unused)]
        if not directions_exist(*rows):
            return None
    return False


def largest_forms(ball: BallProblem, alpha: Array) -> Array:
    """Return the upper bounds (sum_i sqrt(K_m,ii) |alpha_i|)^2 of the forms of one alpha, shape (m,)."""
    support = np.flatnonzero(alpha)
    roots = np.sqrt(np.maximum(ball.whole.diagonals[:, support], 0.0))
    return np.asarray((roots @ np.abs(alpha[support])) ** 2)


def equations(
    ball: BallProblem, theta: Array, machines: tuple[Any, ...], total: Array, chosen: Index
) -> Array:
    """Return the coefficients of the equations for d, one row for each chosen kernel and each intercept."""
    some = ball.whole.subset(chosen)
    length = length_of_positive(np.abs(np.concatenate([machine.alpha for machine in machines])), 2.0)
    parts, sets = [], []
    for learner, machine in zip(ball.learners, machines, strict=True):
        alpha = machine.alpha
        F = determined(learner, alpha, partial(predictions, ball, theta, machine))
        parts.append(ball.reach[chosen, None] * some.images(alpha, F))
        sets.append(F)
    rows = with_intercepts(np.concatenate(parts, axis=1), ball.learners, sets)
    forms = np.zeros(len(rows))
    forms[: chosen.size] = total[chosen] / length
    return np.column_stack([rows, forms])


def predictions(ball: BallProblem, theta: Array, machine: Any) -> Array:
    """Return the predictions of a machine at the labelled points."""
    return np.asarray(ball.whole.storage.image(theta, machine.alpha)[: ball.n] + machine.intercept)


def images(ball: BallProblem, theta: Array, machines: tuple[Any, ...], which: Mask, points: Index) -> Array:
    """Return the vectors K_m alpha_k at labelled points, one row for each scaled kernel that is named.

    The last column has equal entries: a combination that vanishes has coefficients of the sum zero. They are
    as large as the entries of a mean of the vectors, which the predictions of the machines are.
    """
    chosen = np.flatnonzero(which)
    if not chosen.size:
        return np.zeros((0, points.size * len(machines) + 1))
    some = ball.whole.subset(chosen)
    rows = np.concatenate([some.images(machine.alpha, points) for machine in machines], axis=1)
    rows *= ball.reach[chosen, None]
    size = np.linalg.norm([ball.whole.storage.image(theta, each.alpha)[points] for each in machines])
    return np.column_stack([rows, np.full(len(rows), size / (theta / ball.reach).sum())])


def determined(learner: Learner, alpha: Array, predictions: Callable[[], Array]) -> Index:
    """Return the samples where the dual function is differentiable at alpha, with these predictions."""
    loss, y = learner.loss, learner.y
    if loss.quadratic:
        return np.flatnonzero(loss.curve(y).free(alpha))
    hessian = loss.hessian_diag(predictions(), y)
    return np.flatnonzero(np.zeros(y.size) if hessian is None else hessian > 0)


def with_intercepts(rows: Array, learners: Any, sets: list[Index]) -> Array:
    """Return rows on the samples of all sets, and a row of ones on each set whose risk has an intercept."""
    ends = np.cumsum([F.size for F in sets])
    blocks = np.arange(rows.shape[1]) < ends[:, None]
    blocks[1:] &= ~blocks[:-1]
    ones = [b for b, learner in zip(blocks, learners, strict=True) if learner.has_intercept and b.any()]
    return np.vstack([rows, *ones])


def directions_exist(used: Array, unused: Array) -> bool:
    """Whether a combination of the rows vanishes, with coefficients of any sign for `used`, not all zero.

    Those of `unused` are nonnegative.
    """
    used, unused = normalised(used), normalised(unused)
    if not are_independent(used):
        return True
    if not len(unused):
        return False
    Q, _ = np.linalg.qr(used.T)
    rest = unused - (unused @ Q) @ Q.T
    system = np.vstack([rest.T, np.ones(len(rest))])
    _, residual = nnls(system, np.r_[np.zeros(rest.shape[1]), 1.0])
    return bool(residual <= INDEPENDENT)


def normalised(rows: Array) -> Array:
    """Return the rows divided by their lengths; a row of zeros stays as it is."""
    largest = np.abs(rows).max(axis=1, keepdims=True, initial=0.0)
    rows = rows / np.where(largest > 0, largest, 1.0)  # the squares of their entries are doubles
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    return np.asarray(rows / np.where(lengths > 0, lengths, 1.0))


def are_independent(rows: Array) -> bool:
    """Whether the rows of a matrix are linearly independent, each scaled to length one."""
    return bool(np.linalg.matrix_rank(normalised(rows), tol=INDEPENDENT) == len(rows))

"""Whether any kernel of a set separates the classes: tested before solving for a hard margin."""

from __future__ import annotations

import warnings

import cvxpy as cp
import numpy as np

from kernelopt.certificates.impossible import unattainable
from kernelopt.certificates.statements.conflicts import inseparable
from kernelopt.conic.costs import DENSE_ENTRY
from kernelopt.conic.ladder import ladder, run_solver
from kernelopt.errors import ConditionWarning, InfeasibleError
from kernelopt.language.learner import Learner
from kernelopt.language.terms import terms
from kernelopt.losses import hard_margin
from kernelopt.numerics.ball import form
from kernelopt.numerics.decompositions import absolute_value, pivoted_cholesky
from kernelopt.numerics.rounding import SMALLEST_DIVISOR
from kernelopt.running import check
from kernelopt.threads import quietly
from kernelopt.validation import Array

# Squared distances of the convex hulls of the classes, relative to the mean diagonal of the kernel:
PROOF_THRESHOLD = 1e-10  # below it a proof that the hulls meet is searched for in exact arithmetic
ZERO_THRESHOLD = 4e-15  # below it the distance is zero up to the rounding of the kernels' entries
WARNING_THRESHOLD = 1e-5  # below it the distance is under 0.3 % of the points' norms: a warning


def check_separable(learner: Learner) -> None:
    """Raise `InfeasibleError` with a proof if no kernel of the set separates the labels of a hard margin.

    The range of every kernel of the set is in the range of the sum K of the base kernels, so that a kernel
    separates only if K does. Over y_i a_i >= 0, sum |a| = 2 and, with an intercept, sum a = 0, the minimum
    of a'Ka is the squared distance of the convex hulls of the two classes, and 4 / a'Ka is a lower bound of
    omega.

    Base kernels whose weights may be negative can be indefinite, and cancel in their sum. Their absolute
    values |K_m| = (K_m^2)^(1/2) take their places: a'Ka is at most sum_m |mu_m| a'|K_m|a.
    """
    if not isinstance(learner.loss, hard_margin):
        return
    total, Ks = np.zeros((learner.n, learner.n)), []
    signed = "semidefinite" in learner.forms
    for K in learner.kernels:
        parts = terms(K)
        if parts is None:
            return
        for _, grams in parts:
            for i in range(len(grams)):
                Ks.append(grams.gram(i)[: learner.n, : learner.n])
                total += unit_mean_diagonal(absolute_value(Ks[-1]) if signed else Ks[-1])
    alpha = nearest_hull_points(total, learner.y, learner.has_intercept)
    if alpha is None:
        return
    scale = float(np.trace(total)) / learner.n
    distance = max(0.0, form(total, alpha).mid)
    conflict_found = None
    if distance <= PROOF_THRESHOLD * max(scale, SMALLEST_DIVISOR):
        conflict_found = inseparable(Ks, learner.y, learner.has_intercept, alpha, nonneg=not signed)
    if conflict_found is not None or distance <= ZERO_THRESHOLD * max(scale, SMALLEST_DIVISOR):
        # The conditions that the alpha of the proof satisfies.
        balance = ", sum(alpha) = 0" if learner.has_intercept else ""
        conditions = f"y * alpha >= 0, sum(|alpha|) = 2{balance} and K_i @ alpha = 0 for every kernel"
        kind = "their absolute values" if signed else "the kernels"
        samples = "" if conflict_found is None else f"{conflict_found[0]}, "
        raise InfeasibleError(
            f"a hard margin needs a kernel that separates the classes, got none in the set: {samples}the "
            "convex hulls of the two classes meet "
            f"(squared distance {distance:.1e} for the sum of {kind}, "
            f"each scaled to a mean diagonal of one). proof['alpha'] shows it: {conditions}. "
            "Use soft_margin, soft_margin_squared or learned_tau (in words: hinge, squared_hinge, "
            "+ tau * I), or add a narrower kernel.",
            {
                "alpha": alpha,
                "squared_distance": distance,
                "scale": scale,
                "certificate": unattainable(False, "closed", alpha, "the hulls meet only up to rounding")
                if conflict_found is None
                else conflict_found[1],
            },
        )
    if distance <= WARNING_THRESHOLD * scale:
        warnings.warn(
            ConditionWarning(
                f"the classes are separated by a squared distance of only {distance:.1e} (mean diagonal "
                f"{scale:g}): the hard margin means little here. Prefer a soft margin."
            ),
            stacklevel=4,
        )


def unit_mean_diagonal(K: Array) -> Array:
    """Return K scaled to a mean diagonal of one; a zero matrix is returned unchanged."""
    mean = float(np.trace(K)) / len(K)
    return K / mean if mean > 0 else K


def nearest_hull_points(K: Array, y: Array, bias: bool) -> Array | None:
    """Return the signed convex weights of the nearest points of the two classes' hulls in feature space."""
    check(DENSE_ENTRY * K.size)
    L = pivoted_cholesky(K, "the sum of the kernels")
    with quietly():
        a = cp.Variable(y.size, nonneg=True)
        constraints = [cp.sum(a) == 2, *([y @ a == 0] if bias else [])]
        # The distance, not its square: solvers find a zero to 1e-9, whose root would be 3e-5.
        problem = cp.Problem(cp.Minimize(cp.norm2(L.T @ cp.multiply(y, a))), constraints)
    for attempt in ladder(linear=False, order=0):
        run_solver(problem, attempt)
        if a.value is not None and np.isfinite(a.value).all():
            weights = np.maximum(np.asarray(a.value), 0.0)
            for sign in (1.0, -1.0) if bias else ():
                weights[y == sign] /= max(float(weights[y == sign].sum()), SMALLEST_DIVISOR)
            return np.asarray(y * (weights if bias else 2 * weights / weights.sum()))
    return None

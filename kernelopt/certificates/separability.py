"""Whether a hard margin can be met at all: tested before solving, since solver statuses cannot be trusted."""

from __future__ import annotations

import warnings

import cvxpy as cp
import numpy as np

from kernelopt.certificates.statements.conflicts import inseparable
from kernelopt.conic.ladder import ladder, run_solver
from kernelopt.errors import ConditionWarning, InfeasibleError
from kernelopt.language.learner import Learner
from kernelopt.language.terms import terms
from kernelopt.losses import hard_margin
from kernelopt.numerics.factors import pivoted_cholesky
from kernelopt.numerics.rounding import form
from kernelopt.threads import Watch, quietly
from kernelopt.validation import Array

INSEPARABLE = 1e-10  # a squared distance of the hulls, below which it is asked whether they meet exactly
ROUNDED = 4e-15  # and below which the entries of the kernels do not tell it from zero
MEANINGLESS = 1e-5


def check_separable(learner: Learner, watch: Watch | None = None) -> None:
    """Raise `InfeasibleError` with proof if no kernel of the set separates the labels of a hard margin.

    All kernels of the set map into the range of the sum of the base kernels, so that sum decides. With
    a >= 0 (y-signed), sum |a| = 2 and, with an intercept, sum a = 0, the smallest a'Ka is the squared
    distance of the classes' convex hulls, and 4 / a'Ka a lower bound of omega.
    """
    if not isinstance(learner.loss, hard_margin):
        return
    total, stacked = np.zeros((learner.n, learner.n)), []
    for K in learner.kernels:
        parts = terms(K)
        if parts is None:
            return
        for _, grams in parts:
            for i in range(len(grams)):
                stacked.append(grams.gram(i)[: learner.n, : learner.n])
                total += normalized(stacked[-1])
    alpha = nearest_hull_points(total, learner.y, learner.bias is not None, watch)
    if alpha is None:
        return
    scale = float(np.trace(total)) / learner.n
    distance = max(0.0, form(total, alpha).value)
    found = None
    if distance <= INSEPARABLE * max(scale, 1e-300):
        found = inseparable(stacked, learner.y, learner.bias is not None, alpha)
    if found is not None or distance <= ROUNDED * max(scale, 1e-300):
        told = "" if found is None else f"{found.text}, "
        raise InfeasibleError(
            f"a hard margin needs a kernel that separates the classes, got none in the set: {told}the convex "
            f"hulls of the two classes meet (squared distance {distance:.1e} for the sum of the kernels, "
            f"each scaled to a mean diagonal of one). proof['alpha'] shows it: {proof_text(learner.bias)}. "
            "Use soft_margin, soft_margin_squared or learned_tau (in words: hinge, squared_hinge, "
            "+ tau * I), or add a narrower kernel.",
            {"alpha": alpha, "squared_distance": distance, "scale": scale}
            | ({} if found is None else {"certificate": found.statement}),
        )
    if distance <= MEANINGLESS * scale:
        warnings.warn(
            ConditionWarning(
                f"the classes are separated by a squared distance of only {distance:.1e} (mean diagonal "
                f"{scale:g}): the hard margin means little here. Prefer a soft margin."
            ),
            stacklevel=4,
        )


def proof_text(bias: object) -> str:
    """Return how to check the proof by hand."""
    balance = ", sum(alpha) = 0" if bias is not None else ""
    return f"y * alpha >= 0, sum(|alpha|) = 2{balance} and K_i @ alpha = 0 for every kernel"


def normalized(K: Array) -> Array:
    """Return K scaled to a mean diagonal of one; the zero matrix stays."""
    mean = float(np.trace(K)) / len(K)
    return K / mean if mean > 0 else K


def nearest_hull_points(K: Array, y: Array, bias: bool, watch: Watch | None) -> Array | None:
    """Return the signed convex weights of the nearest points of the two classes' hulls in feature space."""
    L = pivoted_cholesky(K, "the sum of the kernels")
    with quietly(watch):
        a = cp.Variable(y.size, nonneg=True)
        constraints = [cp.sum(a) == 2, *([y @ a == 0] if bias else [])]
        # The distance and not its square: at zero that is told apart to round-off, not to its root.
        problem = cp.Problem(cp.Minimize(cp.norm2(L.T @ cp.multiply(y, a))), constraints)
    for attempt in ladder(linear=False, order=0):
        run_solver(problem, attempt, watch=watch)
        if a.value is not None and np.isfinite(a.value).all():
            weights = np.maximum(np.asarray(a.value), 0.0)
            for sign in (1.0, -1.0) if bias else ():
                weights[y == sign] /= max(float(weights[y == sign].sum()), 1e-300)
            return np.asarray(y * (weights if bias else 2 * weights / weights.sum()))
    return None

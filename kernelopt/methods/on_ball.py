"""What all methods on an l_p ball share: start, updates of the weights, reports, outcome and predicted cost.

References
----------
.. [1] Kloft et al., lp-norm multiple kernel learning, JMLR 12 (2011).
"""

from __future__ import annotations

from abc import abstractmethod
from typing import ClassVar

import numpy as np

from kernelopt.certificates.separability import check_separable
from kernelopt.methods.checkpoint import kept
from kernelopt.methods.control import Control
from kernelopt.methods.method import Cost, Method, Outcome
from kernelopt.numerics.norms import length_of_positive, minimizing_weights
from kernelopt.structure.ball import BallProblem, read_ball
from kernelopt.structure.structure import Structure
from kernelopt.validation import Array

FIXED = 5e-3  # seconds of a call that are spent on reading the problem and describing the solution
PASS = 1e-9  # seconds to read an entry of a kernel: eight bytes at about 8 GB/s
TIE = 1e-12  # relative difference below which two forms alpha'K_m alpha are equal up to rounding
EQUAL = 1e-3  # share of equal weights in a warm start, since the updates keep a zero weight at zero


class BallMethod(Method):
    """A method for one risk over an l_p ball of weights, which alternates between w and alpha in some way."""

    advice: ClassVar[str]

    def match(self, structure: Structure) -> BallProblem | str:
        """Return the problem over an l_p ball, or why it is none."""
        return read_ball(structure)

    def remedy(self, match: BallProblem) -> str:
        """Return what to try where the gap stays above the tolerance."""
        return self.advice

    def run(self, match: BallProblem, control: Control) -> Outcome | None:
        check_separable(match.learner)
        with control:
            self.minimise(match, control, *warm_start(match, control))
        return ball_outcome(match, control, self.remedy(match))

    @abstractmethod
    def minimise(self, read: BallProblem, control: Control, w: Array, alpha: Array | None) -> None:
        """Report weights and dual variables to the control from a start, until it says stop."""


def report_on_ball(
    read: BallProblem, control: Control, w: Array, alpha: Array, s: Array, upper: float, **state: float
) -> bool:
    """Report w, alpha with the forms s, and the upper bound; return whether to stop."""
    return control.report(
        read.lower(alpha, s),
        upper,
        point=read.reach * w,
        proof=alpha,
        machines=[alpha],
        state=kept(w=w, alpha=alpha, **state),
    )


def warm_start(read: BallProblem, control: Control) -> tuple[Array, Array | None]:
    """Return scaled weights with |w|_p = 1 and alpha: those of a checkpoint, or of an earlier solution.

    Of several risks alpha has one row for each.

    Without either the weights are equal, and alpha is None. Where there are no prices the weights of an
    earlier solution are brought to length one: the risk decreases in every weight.
    """
    if control.resumed:
        return control.resumed["w"], control.resumed["alpha"]
    earlier = control.start
    if earlier is None:
        return read.start, None
    weights = np.maximum(read.weights(earlier.point) / read.reach, 0.0)
    mixed = (1 - EQUAL) * weights + EQUAL * read.start
    alphas = None if earlier.alphas is None else np.array(earlier.alphas, dtype=float)
    alpha = alphas[0] if alphas is not None and len(alphas) == 1 else alphas
    length = length_of_positive(mixed, read.p)
    return mixed / (max(1.0, length) if read.priced else length), alpha


def analytic_weights(w: Array, s: Array, p: float) -> Array:
    """Return the weights that minimise the objective at block norms w_m sqrt(s_m): [1]_, (17)."""
    lengths = w * np.sqrt(np.maximum(s, 0.0))
    return minimizing_weights(lengths, p) if lengths.any() else w


def best_weights(read: BallProblem, w: Array, s: Array) -> Array:
    """Return the weights that maximise (s / 2 - c)'w over the unit ball, for fixed alpha: [1]_, (21).

    Without prices they are w where all weights are as good.
    """
    gains = np.maximum(read.total(s) / 2 - read.linear, 0.0)
    if not gains.max() > 0:
        return np.zeros_like(w) if read.priced else w
    if read.p == 1:
        top = (gains >= gains.max() * (1 - TIE)).astype(float)
        return np.asarray(top / top.sum())
    if np.isinf(read.p):
        return (gains > 0).astype(float) if read.priced else w
    powers = (gains / gains.max()) ** (read.q - 1)
    best: Array = powers / length_of_positive(powers, read.p)
    return best


def ball_outcome(read: BallProblem, control: Control, remedy: str) -> Outcome | None:
    """Return the best weights and alpha that were reported; None if there was no report."""
    if control.best is None:
        return None
    return Outcome(
        read.point(control.best),
        list(np.atleast_2d(control.proof)),
        [(alpha, None) for alpha in control.machines],
        solver=control.method,
        iterations=control.iterations,
        remedy=remedy,
        details=control.details,
    )


def ball_cost(read: BallProblem, steps: float, step: float, rows: int | None = None) -> Cost:
    """Return the cost of `steps` iterations of `step` seconds, each reading `rows` rows of all kernels.

    Without `rows`, an iteration reads all rows.
    """
    m, n = read.reach.size, read.y.size
    return Cost(FIXED + steps * (step + PASS * m * n * (n if rows is None else rows)), 8.0 * m * n**2)

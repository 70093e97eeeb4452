"""l_p-norm multiple kernel learning, the problem of `MKLClassifier`, `MKLRegressor` and `OneClassMKL`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import cvxpy as cp
import numpy as np

from kernelopt.estimators.base import KernelEstimator, centred, centring_shift
from kernelopt.estimators.kernels import forget_matrices
from kernelopt.grams import Grams
from kernelopt.language import combine, lp_ball, risk
from kernelopt.losses import Loss
from kernelopt.methods import Solution, solve
from kernelopt.validation import Array, Index

Task = tuple[Array | None, Loss]
"""The labels or targets of a machine, shape (n,), and its loss with one C for each sample."""


class MKLEstimator(KernelEstimator):
    """Base class of the estimators with weights in an l_p ball.

    The parameters beside those of `KernelEstimator` are p, method, tol, time_limit and verbose.
    """

    p: float
    method: Any
    tol: float
    time_limit: float | None
    verbose: bool

    def learn(self, grams: Grams, tasks: Sequence[Task], rows: Index, *, shared: bool) -> None:
        """Learn one machine for each task, with common weights or with weights for each, and keep them.

        Parameters
        ----------
        grams : Grams of m kernels on n points
        tasks : sequence of k tasks
        rows : array of shape (n,)
            The samples among those of `fit`.
        shared : bool
            Whether there is one problem, the least sum of the k risks, or one problem for each.
        """
        intercept = all(loss.default_bias for _, loss in tasks)
        used = centred(grams) if intercept else grams
        groups = [list(tasks)] if shared else [[task] for task in tasks]
        solutions = [self.solve(used, group) for group in groups]
        machines = [machine for solution in solutions for machine in solution.learned]
        weights = [np.asarray(machine.weights) for machine in machines]
        shifts = [
            centring_shift(grams, used, w, machine.alpha)
            for w, machine in zip(weights, machines, strict=True)
        ]
        self.keep_solutions(solutions)
        self.keep_machines(
            np.stack([machine.alpha for machine in machines]),
            np.array([machine.intercept for machine in machines]) + shifts,
            weights[0] if shared else np.stack(weights),
            rows,
        )
        forget_matrices(grams)

    def solve(self, grams: Grams, tasks: Sequence[Task]) -> Solution:
        """Return the certified solution of the least sum of risks over the weights."""
        theta = cp.Variable(len(grams), nonneg=True, name="theta")
        K = combine(theta, grams)
        total = sum(risk(K, y, loss) for y, loss in tasks)
        return solve(
            cp.Problem(cp.Minimize(total), lp_ball(theta, self.p)),
            self.method,
            tol=self.tol,
            time_limit=self.time_limit,
            verbose=self.verbose,
        )

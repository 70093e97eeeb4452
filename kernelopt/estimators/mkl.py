"""l_p-norm multiple kernel learning, the problem of `MKLClassifier`, `MKLRegressor` and `OneClassMKL`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from copy import copy
from typing import Any, Self

import cvxpy as cp
import numpy as np

from kernelopt.estimators.base import KernelEstimator, centred, centring_shift
from kernelopt.estimators.fitting import limit_of_solve, running_fit
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
        self._learn(grams, used_for(grams, tasks), tasks, rows, shared)
        forget_matrices(grams)

    def learn_path(
        self, grams: Grams, path: Iterable[Sequence[Task]], rows: Index, *, shared: bool
    ) -> Iterator[Self]:
        """Yield a fitted copy for each element of a path of tasks, started from the solutions before it.

        The other arguments are those of `learn`. Kernels are evaluated once.
        """
        used, before = None, None
        for tasks in path:
            used = used_for(grams, tasks) if used is None else used
            fitted = copy(self)
            before = fitted._learn(grams, used, tasks, rows, shared, before)
            yield fitted
        forget_matrices(grams)

    def _learn(
        self,
        grams: Grams,
        used: Grams,
        tasks: Sequence[Task],
        rows: Index,
        shared: bool,
        starts: Sequence[Solution] | None = None,
    ) -> list[Solution]:
        """Learn the machines of the tasks, keep them, and return the solutions."""
        groups = [list(tasks)] if shared else [[task] for task in tasks]
        begin = [None] * len(groups) if starts is None else starts
        fit = running_fit()
        if fit is not None:
            fit.expected = max(fit.expected, len(groups))
        solutions = [self.solve(used, *each) for each in zip(groups, begin, strict=True)]
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
        return solutions

    def solve(self, grams: Grams, tasks: Sequence[Task], start: Solution | None = None) -> Solution:
        """Return the certified solution of the least sum of risks over the weights."""
        theta = cp.Variable(len(grams), nonneg=True, name="theta")
        K = combine(theta, grams)
        total = sum(risk(K, y, loss) for y, loss in tasks)
        return solve(
            cp.Problem(cp.Minimize(total), lp_ball(theta, self.p)),
            self.method,
            tol=self.tol,
            time_limit=limit_of_solve(self.time_limit),
            verbose=self.verbose,
            start=start,
        )


def used_for(grams: Grams, tasks: Sequence[Task]) -> Grams:
    """Return the kernels that the tasks are solved with: the centred ones where machines have intercepts."""
    return centred(grams) if all(loss.default_bias for _, loss in tasks) else grams

"""l_p-norm multiple kernel learning, the problem of `MKLClassifier`, `MKLRegressor` and `OneClassMKL`."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from copy import copy
from typing import Any, Self

import cvxpy as cp
import numpy as np

from kernelopt.certificates import Certificate
from kernelopt.estimators.base import KernelEstimator, centred, centring_shift
from kernelopt.estimators.fitting import limit_of_solve, running_fit
from kernelopt.estimators.kernels import forget_matrices
from kernelopt.grams import Grams
from kernelopt.language import combine, lp_ball, risk
from kernelopt.losses import Loss
from kernelopt.methods import Solution, solve
from kernelopt.structure.structure import Structure
from kernelopt.validation import Array

VALUE = 1e-6
"""Share of the upper bound by which the value of the machine that predicts may exceed it by rounding."""

Task = tuple[Array | None, Loss]
"""The labels or targets of a machine, shape (n,), and its loss with one C for each sample."""

Prepared = tuple[Grams, Callable[[float], list[Task]], bool]
"""The kernels on the samples of the problem, the tasks at a given C, and whether they share the weights."""


class MKLEstimator(KernelEstimator):
    """Base class of the estimators with weights in an l_p ball.

    `KernelEstimator` has further parameters. Its own are p, method, tol, time_limit and verbose.
    """

    p: float
    method: Any
    tol: float
    time_limit: float | None
    verbose: bool

    @abstractmethod
    def prepare(self, X: Any, y: Any, sample_weight: Any = None) -> Prepared:
        """Read the arguments of `fit`, and return what states its problem."""

    def stated(self, X: Any, y: Any = None, **data: Any) -> list[cp.Problem]:
        grams, tasks, shared = self.prepare(X, y, **data)
        each = tasks(getattr(self, "C_", getattr(self, "C", 1.0)))
        used = used_for(grams, each)
        return [self.problem(used, group) for group in groups(each, shared)]

    def check_machines(self, X: Any, problems: Sequence[cp.Problem], found: Sequence[Certificate]) -> None:
        f, alpha, intercepts = self.predicting(X)
        support = np.isin(self._rows, self.support_)
        machines = zip(f.T, alpha, intercepts, strict=True)
        for problem, certificate in zip(problems, found, strict=True):
            value = 0.0
            for term, (values, a, b) in zip(Structure(problem).risks, machines, strict=False):
                value += term.learner.loss.value(values + b, term.learner.y) + a @ values[support] / 2
            if not value <= certificate.upper + VALUE * max(abs(certificate.upper), certificate.floor):
                raise self.changed("the machine that predicts")

    def predicting(self, X: Any) -> tuple[Array, Array, Array]:
        """Return f, alpha and the intercepts of the machines that predict, in the scale of the problem.

        Their shapes are (n, k), (k, n_support) and (k,), and f has no intercept in it.
        """
        return self.machine_values(X)[self._rows] - self.intercept_, self.dual_coef_, self.intercept_

    def learn(self, grams: Grams, tasks: Sequence[Task], *, shared: bool) -> None:
        """Learn one machine for each task, with common weights or with weights for each, and keep them.

        Parameters
        ----------
        grams : Grams of m kernels on n points
        tasks : sequence of k tasks
        shared : bool
            Whether there is one problem, the least sum of the k risks, or one problem for each.
        """
        self._learn(grams, used_for(grams, tasks), tasks, shared)
        forget_matrices(grams)

    def learn_path(self, grams: Grams, path: Iterable[Sequence[Task]], *, shared: bool) -> Iterator[Self]:
        """Yield a fitted copy for each element of a path of tasks, started from the solutions before it.

        The other arguments are as for `learn`. Kernels are evaluated once.
        """
        used, before = None, None
        for tasks in path:
            used = used_for(grams, tasks) if used is None else used
            fitted = copy(self)
            before = fitted._learn(grams, used, tasks, shared, before)
            yield fitted
        forget_matrices(grams)

    def _learn(
        self,
        grams: Grams,
        used: Grams,
        tasks: Sequence[Task],
        shared: bool,
        starts: Sequence[Solution] | None = None,
    ) -> list[Solution]:
        """Learn the machines of the tasks, keep them, and return the solutions."""
        problems = [self.problem(used, group) for group in groups(tasks, shared)]
        begin = [None] * len(problems) if starts is None else starts
        fit = running_fit()
        if fit is not None:
            fit.expected = max(fit.expected, len(problems))
        solutions = [self.solve(*each) for each in zip(problems, begin, strict=True)]
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
        )
        return solutions

    def problem(self, grams: Grams, tasks: Sequence[Task]) -> cp.Problem:
        """Return the least sum of the risks of tasks over common weights."""
        theta = cp.Variable(len(grams), nonneg=True, name="theta")
        K = combine(theta, grams)
        total = sum(risk(K, y, loss) for y, loss in tasks)
        return cp.Problem(cp.Minimize(total), lp_ball(theta, self.p))

    def solve(self, problem: cp.Problem, start: Solution | None = None) -> Solution:
        """Return the certified solution of a problem."""
        return solve(
            problem,
            self.method,
            tol=self.tol,
            time_limit=limit_of_solve(self.time_limit),
            verbose=self.verbose,
            start=start,
        )


def groups(tasks: Sequence[Task], shared: bool) -> list[list[Task]]:
    """Return the tasks of each problem: all where the weights are shared, one where each has its own."""
    return [list(tasks)] if shared else [[task] for task in tasks]


def used_for(grams: Grams, tasks: Sequence[Task]) -> Grams:
    """Return the kernels that the tasks are solved with: the centred ones where machines have intercepts."""
    return centred(grams) if all(loss.default_bias for _, loss in tasks) else grams

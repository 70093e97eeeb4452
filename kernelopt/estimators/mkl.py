"""l_p-norm multiple kernel learning: the problem of `MKLClassifier`, `MKLRegressor` and `OneClassMKL`."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from copy import copy
from dataclasses import dataclass
from typing import Annotated, Any, Self, TypeVar

import cvxpy as cp
import numpy as np
from sklearn.base import RegressorMixin
from sklearn.utils.validation import check_consistent_length

from kernelopt.certificates import Certificate
from kernelopt.docstrings import parameters_of
from kernelopt.estimators.base import KernelEstimator, centred, centring_shift
from kernelopt.estimators.columns import means_and_deviations
from kernelopt.estimators.default_c import leave_one_out_C
from kernelopt.estimators.features import KernelFeaturesMixin
from kernelopt.estimators.fitting import one_call, running_fit
from kernelopt.estimators.kernels import forget_matrices
from kernelopt.estimators.labels import ScoredMixin, read_targets
from kernelopt.estimators.samples import distinct, positive_weights
from kernelopt.grams import Grams
from kernelopt.language import combine, lp_ball, risk
from kernelopt.language.adapter import written_problem
from kernelopt.losses import Loss, epsilon_insensitive, squared
from kernelopt.methods import Solution
from kernelopt.structure.structure import Structure
from kernelopt.validation import Array, exponent, one_of, positive

VALUE = 1e-6
"""Share of the upper bound by which the value of the machine that predicts may exceed it by rounding."""

T = TypeVar("T")
Task = tuple[Array | None, Loss]
"""The labels or targets of a machine, shape (n,), and its loss with one C for each sample."""

Prepared = tuple[Grams, Callable[[float], list[Task]], bool]
"""The kernels on the samples of the problem, the tasks at a given C, and whether they share the weights."""


@parameters_of(KernelEstimator)
@dataclass(eq=False, repr=False, kw_only=True)
class MKLEstimator(KernelFeaturesMixin, KernelEstimator):
    r"""Base class of the estimators with weights in an l_p ball.

    Parameters
    ----------
    kernels, normalize, method, time_limit
        As for `KernelEstimator`.
    p : float in [1, inf], default 4/3
        Weights are sparser for smaller p; for inf all are one. `kernelopt.estimators.P_GRID` are customary.
    tol : float > 0, default 1e-3
        Certified gap to reach, relative to the value.
    verbose : bool, default False
        Whether the progress of the solver is printed.
    random_state : int, Generator or None, default 0
        The seed of the points that determine the median distance, where there are more than 1000, and of
        the samples that determine C, where there are more than 500.
    """

    p: float = 4 / 3
    tol: float = 1e-3
    verbose: bool = False

    _fitted_forms = KernelEstimator._fitted_forms | {"C_": float}

    @abstractmethod
    def _prepare(self, X: Any, y: Any, sample_weight: Any = None) -> Prepared:
        """Read the arguments of `fit`, and return what states its problem."""

    def _stated(self, X: Any, y: Any = None, **data: Any) -> list[cp.Problem]:
        grams, tasks, shared = self._prepare(X, y, **data)
        each = tasks(self.C_)
        used = used_for(grams, each)
        return [self._problem(used, group) for group in groups(each, shared)]

    def _check_machines(self, X: Any, problems: Sequence[cp.Problem], found: Sequence[Certificate]) -> None:
        f, alpha, intercepts = self._predicting(X)
        support = np.isin(self._rows, self.support_)
        machines = zip(f.T, alpha, intercepts, strict=True)
        for problem, certificate in zip(problems, found, strict=True):
            value = 0.0
            for term, (values, a, b) in zip(Structure(problem).risks, machines, strict=False):
                value += term.learner.loss.value(values + b, term.learner.y) + a @ values[support] / 2
            if not value <= certificate.upper + VALUE * max(abs(certificate.upper), certificate.floor):
                raise self._changed("the machine that predicts")

    def _predicting(self, X: Any) -> tuple[Array, Array, Array]:
        """Return f, alpha and the intercepts of the machines that predict, in the scale of the problem.

        Their shapes are (n, k), (k, n_support) and (k,), and f has no intercept in it.
        """
        return self._machine_values(X)[self._rows] - self.intercept_, self.dual_coef_, self.intercept_

    def _keep_C(self, C: Any, grams: Grams, tasks: Sequence[Task], weights: Array, loss: str) -> None:
        """Set `C_` to C, which is a number or "loo", for tasks at C = 1; see `own_C`."""
        if C == "loo":
            targets = [y for y, _ in tasks if y is not None]
            self.C_ = leave_one_out_C(grams, targets, weights, self.p, loss, self.random_state)
        elif C is not None:
            self.C_ = C

    def _learn(self, grams: Grams, tasks: Sequence[Task], *, shared: bool) -> None:
        """Learn one machine for each task, with common weights or with weights for each, and keep them.

        Parameters
        ----------
        grams : Grams of m kernels on n points
        tasks : sequence of k tasks
        shared : bool
            Whether there is one problem, the least sum of the k risks, or one problem for each.
        """
        self._learn_tasks(grams, used_for(grams, tasks), tasks, shared)
        forget_matrices(grams)

    def _learn_path(self, grams: Grams, path: Iterable[Sequence[Task]], *, shared: bool) -> Iterator[Self]:
        """Yield a fitted copy for each element of a path of tasks, started from the solutions before it.

        The other arguments are as for `learn`. Kernels are evaluated once.
        """
        used, before = None, None
        for tasks in path:
            used = used_for(grams, tasks) if used is None else used
            fitted = copy(self)
            before = fitted._learn_tasks(grams, used, tasks, shared, before)
            yield fitted
        forget_matrices(grams)

    def _learn_tasks(
        self,
        grams: Grams,
        used: Grams,
        tasks: Sequence[Task],
        shared: bool,
        starts: Sequence[Solution] | None = None,
    ) -> list[Solution]:
        """Learn the machines of the tasks, keep them, and return the solutions."""
        problems = [self._problem(used, group) for group in groups(tasks, shared)]
        begin = [None] * len(problems) if starts is None else starts
        fit = running_fit()
        if fit is not None:
            fit.expected = max(fit.expected, len(problems))
        solutions = [
            self._solve(problem, verbose=self.verbose, start=start)
            for problem, start in zip(problems, begin, strict=True)
        ]
        machines = [machine for solution in solutions for machine in solution.learned]
        weights = [np.asarray(machine.weights) for machine in machines]
        shifts = [
            centring_shift(grams, used, w, machine.alpha)
            for w, machine in zip(weights, machines, strict=True)
        ]
        self._keep_solutions(solutions)
        self._keep_machines(
            np.stack([machine.alpha for machine in machines]),
            np.array([machine.intercept for machine in machines]) + shifts,
            weights[0] if shared else np.stack(weights),
        )
        return solutions

    def _problem(self, grams: Grams, tasks: Sequence[Task]) -> cp.Problem:
        """Return the least sum of the risks of tasks over common weights."""
        theta = cp.Variable(len(grams), nonneg=True, name="theta")
        K = combine(theta, grams)
        total = sum(risk(K, y, loss) for y, loss in tasks)
        return written_problem(cp.Minimize(total), lp_ball(theta, self.p))


def groups(tasks: Sequence[T], shared: bool) -> list[list[T]]:
    """Return the tasks of each problem: all where the weights are shared, one where each has its own."""
    return [list(tasks)] if shared else [[task] for task in tasks]


def used_for(grams: Grams, tasks: Sequence[Task]) -> Grams:
    """Return the kernels that the tasks are solved with: the centred ones where machines have intercepts."""
    return centred(grams) if all(loss.default_bias for _, loss in tasks) else grams


def own_C(estimator: Any) -> Any:
    """Return the parameter C after a check: a number or "loo". A search has none, and None is returned."""
    if "C" not in estimator.get_params(deep=False):
        return None
    if isinstance(estimator.C, str):
        return one_of(estimator.C, "C", ("loo",), "Choose it, or pass a positive number.")
    return positive(estimator.C, "C")


TARGET_LOSSES = ("epsilon_insensitive", "squared")


@parameters_of(MKLEstimator)
@dataclass(eq=False, repr=False, kw_only=True)
class MKLRegressor(ScoredMixin, RegressorMixin, MKLEstimator):
    r"""Regression whose kernel is a learned combination of kernels (l_p-norm MKL).

    It solves, for targets y in units of their standard deviation,

    .. math::

        \min_{\theta \ge 0,\ \|\theta\|_p \le 1}\ \min_{f, b}\ \sum_i C_i V(f(x_i) + b, y_i)
        + \tfrac12 \|f\|^2_{K(\theta)}, \qquad K(\theta) = \sum_m \theta_m k_m / c_m

    with constants c_m from the normalisation. The result has a certificate of its distance to the optimum.

    Parameters
    ----------
    kernels, p, normalize, method, tol, time_limit, verbose, random_state
        As for `MKLEstimator`.
    C : float > 0 or "loo", default "loo"
        Weight of the loss of each sample, or its choice by leave-one-out values, as for `MKLClassifier`.
    loss : "squared" or "epsilon_insensitive", default "squared"
        :math:`\frac12 (f - y)^2`, of kernel ridge regression with ridge 1/C, or
        :math:`(|f - y| - \varepsilon)_+`, of support vector regression, which outliers change less and which
        needs fewer samples for predictions.
    epsilon : float >= 0, default 0.1
        Half width of the tube in which a deviation costs nothing.
    target_scale : "standard" or "none", default "standard"
        Whether the targets are divided by their standard deviation, after their mean is subtracted.
        Predictions are in the units of y either way. With "none", C and epsilon are in the units of y, as for
        scikit-learn's `SVR`.
    multioutput : "shared" or "per-target", default "shared"
        For several targets: the k functions have the same weights, which minimise the sum of their risks, or
        each has its own. Kernels are evaluated once either way.

    Attributes
    ----------
    C_ : float
        The C of the problem.
    weights_ : array of shape (m,), or (k, m) for "per-target" and k > 1 targets
        The weights theta of the normalised kernels.
    dual_coef_ : array of shape (k, n_support)
        The signed dual variables, in units of y.
    intercept_ : array of shape (k,)
    target_mean_, target_unit_ : float, or array of shape (k,)
        What was subtracted from the targets, and what they were divided by.
    kernel_names_, kernels_, support_, certificate_, dual_gap_, n_iter_, history_, weights_unique_
    solution_, n_features_in_, feature_names_in_
        As for `MKLClassifier`. The certificate and the solution are for the targets that were scaled.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelopt.estimators import MKLRegressor
    >>> X = np.linspace(0, 3, 40)[:, None]
    >>> model = MKLRegressor().fit(X, 100 * np.sin(X.ravel()))
    >>> model.C_, round(model.score(X, 100 * np.sin(X.ravel())), 3)
    (1000.0, 1.0)
    >>> MKLRegressor().fit(X, np.hstack([np.sin(X), X**2])).predict(X).shape
    (40, 2)
    """

    _fitted_forms = MKLEstimator._fitted_forms | {
        "target_mean_": float | Annotated[Array, "k"],
        "target_unit_": float | Annotated[Array, "k"],
    }

    C: float | str = "loo"
    loss: str = "squared"
    epsilon: float = 0.1
    target_scale: str = "standard"
    multioutput: str = "shared"

    @one_call
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> MKLRegressor:
        """Learn the weights and the function.

        Parameters
        ----------
        X : array or data frame of shape (n, d), sequence of n strings, KernelStack, or array (m, n, n)
            The training samples.
        y : array of shape (n,), or (n, k) of k targets
            Their targets.
        sample_weight : array of shape (n,), optional
            Factors of C, not negative. Samples of weight zero are left out.

        Returns
        -------
        MKLRegressor
            The estimator itself.

        Raises
        ------
        InputError
            If an argument is wrong; its subclass says what.
        """
        grams, tasks, shared = self._prepare(X, y, sample_weight)
        self._learn(grams, tasks(self.C_), shared=shared)
        return self

    def _prepare(self, X: Any, y: Any, sample_weight: Any = None) -> Prepared:
        exponent(self.p)
        C = own_C(self)
        epsilon = positive(self.epsilon, "epsilon", allow_zero=True)
        one_of(self.loss, "loss", TARGET_LOSSES)
        one_of(self.target_scale, "target_scale", ("standard", "none"))
        one_of(self.multioutput, "multioutput", ("shared", "per-target"))
        samples = self._read_training(X)
        y = read_targets(y, self, several=True)
        check_consistent_length(samples, y)
        rows, weights = distinct(samples, y, positive_weights(sample_weight, len(samples)))
        targets = y[rows].reshape(len(rows), -1).T
        scales = [scale_of(t, weights) if self.target_scale == "standard" else (0.0, 1.0) for t in targets]
        kept: Any = scales[0] if y.ndim == 1 else np.array(scales).T
        self.target_mean_, self.target_unit_ = kept

        def tasks(C: float) -> list[Task]:
            each = positive(C, "C") * weights
            loss: Loss = squared(each) if self.loss == "squared" else epsilon_insensitive(each, epsilon)
            return [((t - mean) / unit, loss) for t, (mean, unit) in zip(targets, scales, strict=True)]

        self._keep_labels([*targets, weights])
        grams = self._fit_kernels(samples, rows, weights)
        self._keep_C(C, grams, tasks(1.0), weights, self.loss)
        return grams, tasks, len(targets) == 1 or self.multioutput == "shared"

    def _keep_machines(self, alpha: Array, intercept: Array, weights: Array) -> None:
        unit = self.target_unit_
        alpha = np.reshape(unit, (-1, 1)) * alpha
        super()._keep_machines(alpha, unit * intercept + self.target_mean_, weights)

    def _predicting(self, X: Any) -> tuple[Array, Array, Array]:
        f, alpha, intercepts = super()._predicting(X)
        unit = self.target_unit_
        return f / unit, alpha / np.reshape(unit, (-1, 1)), (intercepts - self.target_mean_) / unit

    def predict(self, X: Any) -> Array:
        """Return the values of the function at samples, shape (n_new,), or (n_new, k) of k targets.

        Parameters
        ----------
        X : array or data frame of shape (n_new, d), sequence of strings, KernelStack, or array (m, n_new, n)
            The n_new samples.
        """
        values = self._machine_values(X)
        return values if np.ndim(self.target_mean_) else values[:, 0]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags


def scale_of(y: Array, weights: Array) -> tuple[float, float]:
    """Return the weighted mean and standard deviation of targets; equal targets y_i have y_1 and one.

    The computed mean of equal numbers may differ from them by a rounding.
    """
    (mean,), (deviation,) = means_and_deviations(y[:, None], weights)
    return (float(mean), float(deviation)) if deviation else (float(y[0]), 1.0)

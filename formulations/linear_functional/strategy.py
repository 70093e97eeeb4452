"""The formulation that `functional_strategy` returns, its dual, and its solutions by a factorisation."""

from __future__ import annotations

import time
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Literal, get_args

import cvxpy as cp
import numpy as np
from numpy.typing import ArrayLike
from threadpoolctl import threadpool_limits

import kernelopt as ko
from formulations.linear_functional.method.candidates import Candidates
from formulations.linear_functional.method.certificate import stage_certificate
from formulations.linear_functional.method.combination import RCOND, Combination
from formulations.linear_functional.method.least_squares import SecondStage
from formulations.linear_functional.regularization_data import Weights
from kernelopt.extend import DEFAULT_TOL, Array, Ball, as_float_array, one_of, parameters_of, positive


@parameters_of(ko.Solution)
@dataclass(frozen=True, repr=False)
class DirectSolution(ko.Solution):
    """A solution by a factorisation: all of `Solution`, and the rank and the condition of the columns.

    Parameters
    ----------
    all
        As for `kernelopt.Solution`.
    rank : int
        The numerical rank of the matrix that is factorised: the columns X of the candidates. By "qr" with a
        ridge lambda > 0, rows for the ridge are appended to X.
    condition : float
        The largest over the smallest of the singular values that were kept. By "qr" the absolute values of
        the diagonal entries of R take the place of the singular values.
    rcond : float
        Singular values up to this times the largest were dropped.
    """

    rank: int = 0
    condition: float = np.nan
    rcond: float = np.nan


@parameters_of(ko.Formulation)
@dataclass(frozen=True, eq=False, repr=False)
class Strategy(ko.Formulation):
    r"""The formulation of `functional_strategy`, with its first stage.

    Parameters
    ----------
    all
        As for `kernelopt.Formulation`.
    candidates : Candidates
        The columns X, the coefficients b and the alpha of every kernel.
    stage : Combination
        The second stage in numbers.
    offset : float
        The intercept is :math:`\mathrm{offset} - \mathrm{means}'c`.
    means : array of shape (M,)
        Of the columns, where they are centred.
    """

    candidates: Candidates = field(kw_only=True)
    stage: Combination = field(kw_only=True)
    offset: float = field(kw_only=True)
    means: Array = field(kw_only=True)

    def machine(self) -> tuple[Array, float]:
        intercept = self.offset - float(self.means @ np.ravel(self.weights.value))  # type: ignore[union-attr]
        return self.candidates.coefficients, intercept

    def solve_directly(self, by: Literal["svd", "qr"] = "svd", rcond: float = RCOND) -> DirectSolution:
        """Solve the second stage for free weights by SVD or pivoted QR, and certify it.

        Parameters
        ----------
        by : "svd" or "qr", default "svd"
            "svd" gives the weights of minimum norm; "qr" leaves out columns that depend on others
            (Remark 1 of the paper).
        rcond : float in (0, 1), default 1e-10
            Singular values (diagonal entries of R) up to this times the largest are dropped.

        Returns
        -------
        DirectSolution
            Its bounds are bounds of the problem in which nothing is dropped.

        Raises
        ------
        MethodError
            If the weights are constrained.
        """
        one_of(by, "by", ("svd", "qr"))
        rcond = positive(rcond, "rcond", below=1)
        if self.stage.weights != "free":
            raise ko.errors.MethodError(
                f'the direct route takes weights="free", got {self.stage.weights!r}. Use solve(), which '
                "takes a conic solver."
            )
        clock = time.perf_counter()
        with threadpool_limits(1, user_api="blas"):  # as in kernelopt.solve
            c, rank, condition = self.stage.directly(by, rcond)
        seconds = time.perf_counter() - clock
        return replace(self._solution(c, by, seconds), rank=rank, condition=condition, rcond=rcond)

    def at(self, weights: ArrayLike) -> DirectSolution:
        """The function at given weights c, with the bounds that they prove.

        Parameters
        ----------
        weights : array of shape (M,)
            Projected on the set of the formulation where they are outside. Equal weights 1 / M give the
            average of the candidates, a baseline.
        """
        c = as_float_array(weights, "weights")
        if c.shape != (self.stage.X.shape[1],):
            raise ko.errors.ShapeError(
                f"weights must be {self.stage.X.shape[1]} finite numbers, one per kernel, got shape "
                f"{c.shape}. Pass np.full(M, 1 / M) for the average."
            )
        return self._solution(self.stage.feasible(c), "given weights")

    def with_weights(self, weights: Weights = "free", *, ridge: float = 0.0) -> Strategy:
        """Return the strategy with the same candidates and another second stage.

        Parameters
        ----------
        weights : "free", "nonnegative" or "simplex", default "free"
            The set of c.
        ridge : float >= 0, default 0.0
            lambda.
        """
        return strategy_with(self.candidates, weights, second_stage(weights, ridge))

    def _solution(self, c: Array, by: str, seconds: float = 0.0) -> DirectSolution:
        clock = time.perf_counter()
        bounds = stage_certificate(self.stage, c)
        (variable,) = self.problem.variables()
        variable.save_value(c)
        return DirectSolution(
            status="optimal" if bounds.gap <= DEFAULT_TOL else "inaccurate",
            method=by,
            solver="direct",
            value=bounds.upper,
            certificate=replace(bounds, point={variable: c}),
            weights=c,
            learned=(self._learned(),),
            solve_time=seconds,
            certify_time=time.perf_counter() - clock,
        )


def second_stage(weights: Any, ridge: Any) -> float:
    """Check the arguments of the second stage, and return lambda."""
    one_of(weights, "weights", get_args(Weights))
    return positive(ridge, "ridge", allow_zero=True)


def strategy_with(first: Candidates, weights: Weights, ridge: float) -> Strategy:
    """Return the strategy with these candidates, for a checked second stage."""
    data, X = first.data, first.columns
    v = data.v[data.evaluated]
    # The constant column has no ridge, so that its best coefficient makes the residuals sum to zero: it is
    # eliminated by centring the other columns and the targets.
    means, mean = (X.mean(axis=0), float(v.mean())) if data.intercept == "column" else (0 * X[0], 0.0)
    errors = first.errors
    if data.intercept == "column" and errors.any():
        lost = Ball(X) - Ball(X).sum(axis=0) / len(X) - (X - means)  # the rounding of the centred columns
        errors = (lost.norm(2, axis=0) + errors).above
    stage = Combination(X - means, v - mean, ridge, weights, errors, first.keys)
    c = cp.Variable(data.M, name="c", nonneg=weights != "free")
    objective = cp.sum_squares(stage.v - stage.X @ c) / stage.n
    if ridge > 0:
        objective += ridge * cp.sum_squares(c)
    constraints = [(cp.sum(c) == 1).set_label("simplex")] if weights == "simplex" else []
    return Strategy(
        name="linear_functional.functional_strategy",
        problem=SecondStage(cp.Minimize(objective), constraints, stage, c),
        kernel=ko.combine(c, data.grams),
        weights=c,
        dual=partial(dual, stage),
        claim="equal",
        reference="Pereverzyev, Tkachenko (2017), (1), (10)",
        candidates=first,
        stage=stage,
        offset=data.offset + mean,
        means=means,
    )


def dual(stage: Combination) -> cp.Problem:
    """Return the dual over residuals r, one case per row of the table of `functional_strategy`."""
    n, ridge = stage.n, stage.ridge
    r = cp.Variable(n, name="r")
    mu = cp.Variable(name="mu") if stage.weights == "simplex" else cp.Constant(0.0)
    gain = 2 / n * (stage.v @ r) - cp.sum_squares(r) / n - mu
    slope, free = 2 / n * (stage.X.T @ r) - mu, stage.weights == "free"
    if ridge == 0:
        return cp.Problem(cp.Maximize(gain), [slope == 0 if free else slope <= 0])
    return cp.Problem(cp.Maximize(gain - cp.sum_squares(slope if free else cp.pos(slope)) / (4 * ridge)))

"""Multiple kernel learning by the linear functional strategy: one function per kernel, then least squares."""

from __future__ import annotations

import time
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Literal

import cvxpy as cp
import numpy as np
from numpy.typing import ArrayLike
from threadpoolctl import threadpool_limits

import kernelopt as ko
from formulations.linear_functional.candidates import Candidates, candidates
from formulations.linear_functional.combination import RCOND, Combination, Direct, certificate
from formulations.linear_functional.dual import dual
from formulations.linear_functional.filters import Array, Filter, tikhonov
from formulations.linear_functional.method import SecondStage
from formulations.linear_functional.rounding import gamma
from formulations.linear_functional.setting import Columns, Convention, Intercept, Weights, one_of, setting


@dataclass(frozen=True, repr=False)
class DirectSolution(ko.Solution):
    """A solution without a conic solver: all of `Solution`, and how well the columns told themselves apart.

    Attributes
    ----------
    rank : int
        The numerical rank of the columns X; by QR with a ridge, of X with its additional rows.
    condition : float
        The largest over the smallest singular value (by QR: diagonal entry of R) that was kept.
    rcond : float
        Those up to rcond times the largest were not.
    """

    rank: int = 0
    condition: float = np.nan
    rcond: float = np.nan


@dataclass(frozen=True, eq=False, repr=False)
class Strategy(ko.Formulation):
    """The formulation of `functional_strategy`, with its first stage.

    Attributes
    ----------
    candidates : Candidates
        The columns X, the coefficients b and the alpha of every kernel.
    stage : Combination
        The second stage in numbers.
    offset, means : float and array of shape (M,)
        The intercept is offset - means'c.
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
            Its gap shows what the drop costs: bounds are those of the problem without it.

        Raises
        ------
        MethodError
            If the weights are constrained.
        """
        one_of(by, ("svd", "qr"), "by")
        if not 0 < ko.positive(rcond, "rcond") < 1:
            raise ko.ParameterError(f"rcond must be below 1, got {rcond:g}. Nothing would be kept.")
        if self.stage.weights != "free":
            raise ko.MethodError(
                f'the direct route takes weights="free", got {self.stage.weights!r}. Use solve(), which '
                "takes a conic solver."
            )
        clock = time.perf_counter()
        with threadpool_limits(1, user_api="blas"):  # as in kernelopt.solve
            found = self.stage.directly(by, rcond)
        return self._solution(found, by, rcond, time.perf_counter() - clock)

    def at(self, weights: ArrayLike) -> DirectSolution:
        """The machine at given weights c, with the bounds that they prove: a baseline.

        Parameters
        ----------
        weights : array of shape (M,)
            Moved into the set of the formulation where they are outside. Equal weights 1 / M are the
            plain average of the candidates.
        """
        c = ko.as_float_array(weights, "weights")
        if c.shape != (self.stage.X.shape[1],):
            raise ko.ShapeError(
                f"weights must be {self.stage.X.shape[1]} finite numbers, one per kernel, got shape "
                f"{c.shape}. Pass np.full(M, 1 / M) for the average."
            )
        return self._solution(Direct(self.stage.feasible(c), 0, np.nan), "given weights", np.nan, 0.0)

    def with_weights(self, weights: Weights = "free", *, ridge: float = 0.0) -> Strategy:
        """The strategy with the same candidates and another second stage; nothing is computed again."""
        return build(self.candidates, weights, ridge)

    def _solution(self, found: Direct, by: str, rcond: float, seconds: float) -> DirectSolution:
        clock = time.perf_counter()
        bounds = certificate(self.stage, found.c)
        (variable,) = self.problem.variables()
        variable.save_value(found.c)
        return DirectSolution(
            status="optimal" if bounds.gap <= 1e-5 else "inaccurate",
            method=by,
            solver="direct",
            value=bounds.upper,
            certificate=replace(bounds, point={variable: found.c}),
            weights=found.c,
            learned=(self._learned(),),
            solve_time=seconds,
            certify_time=time.perf_counter() - clock,
            rank=found.rank,
            condition=found.condition,
            rcond=rcond,
        )


def functional_strategy(
    grams: ko.Grams | ArrayLike,
    targets: ArrayLike,
    *,
    regularization: Any,
    convention: Convention = "mean",
    ridge: float = 0.0,
    weights: Weights = "free",
    columns: Columns = "training",
    filter: Filter = tikhonov,
    intercept: Intercept = "none",
    grid: ArrayLike | None = None,
    held_out: ArrayLike | None = None,
    n_jobs: int | None = None,
) -> Strategy:
    r"""The least-squares combination of one regularised function per kernel: MKL-LFS.

    .. math::

        x_j = \arg\min_{x \in \mathcal H_j}\ \tfrac1n \sum_i (v_i - x(u_i))^2 + \alpha_j \|x\|^2
        \quad\Longleftrightarrow\quad (K_j + n \alpha_j I)\, b_j = v,

        \min_{c \in \mathcal C}\ \tfrac1n \|v - X c\|^2 + \lambda \|c\|^2, \qquad X_{ij} = x_j(u_i), \qquad
        x = \sum_j c_j x_j

    Method: an eigendecomposition per kernel for the first line; least squares for the second.

    Statement: with :math:`\tilde G = \tfrac1n X'X` invertible, free weights and lambda = 0 the solution
    is :math:`c = \tilde G^{-1} \tilde g`, :math:`\tilde g = \tfrac1n X'v`. The value of the second line is
    that of `dual`. It is *not* a joint problem over kernels: x is not the Tikhonov minimiser of
    :math:`\sum_j c_j K_j`, and c may be negative.

    Parameters
    ----------
    grams : Grams or array of shape (M, N, N)
        Positive semidefinite.
    targets : array of shape (n,), n <= N
        v, real numbers of the first n points; for two classes -1 and +1, predicted by sign.
    regularization : float > 0, array of shape (M,), "gcv" or "leave-one-out"
        The paper's alpha. The words choose it for each kernel on `grid`.
    convention : "mean" or "sum", default "mean"
        Whether the level is n alpha, as in (1), or alpha, with the loss summed. The paper's alpha =
        1 / (2 C) is (1) for a *sum*; 1 / (2 C n) is the matching alpha of a mean.
    ridge : float >= 0, default 0.0
        lambda.
    weights : "free", "nonnegative" or "simplex", default "free"
        The set of c. Free weights that are not unique are those of minimum norm.
    columns : "training", "leave-one-out" or "split", default "training"
        What X holds: values on the points that trained x_j, as in the paper; those of x_j trained without
        the point (with the same level), in closed form; or values on held-out points.
    filter : function of (eigenvalues, level) -> g, default tikhonov
        Or `cut_off`, `landweber`, `iterated_tikhonov(2)`: b_j = U diag(g) U'v.
    intercept : "none", "mean" or "column", default "none"
        "mean" takes the mean off v and adds it to the predictions; "column" appends a constant to X,
        without ridge or sign.
    grid : array of positive numbers, optional
        What "gcv" and "leave-one-out" try; by default 37 values from 10 to 1e-8 times the mean of the
        diagonal (for "sum", n times that).
    held_out : array of indices, optional
        The points of the second stage for "split"; by default every third one.
    n_jobs : int, optional
        For joblib, which by default takes what `joblib.parallel_config` says, else one job.

    Returns
    -------
    Strategy
        A `Formulation` with claim "equal". `solve()` takes the direct route where weights are free, with
        rcond = 1e-10 or less where that leaves a gap, and else (or with `solver=`) a conic solver;
        `solve_directly` reports the numerical rank; `with_weights` gives another second stage on the
        same candidates, `at` their average.

    Raises
    ------
    InputError
        For kernels, targets and numbers that are not as above.

    References
    ----------
    .. [1] Pereverzyev, Tkachenko, "Regularization by the Linear Functional Strategy with Multiple
       Kernels", Front. Appl. Math. Stat. 3 (2017): (1) for x_j, (4) and (10) for their combination,
       Theorem 1; the other filters and choices of alpha are raised in section 4.

    Notes
    -----
    Least squares, so a quadratic cone. The condition of :math:`\tilde G` is the square of that of X: it is
    never formed. Where M >= n the free weights interpolate the targets, and as x_j and c see the same
    points the free value says nothing of new ones: compare with `at(np.full(M, 1 / M))`, take a ridge, or
    other columns. Bounds hold for the exact columns of the kernels as they are stored: what was computed is
    known to a bound of its rounding, about :math:`n \varepsilon \|K_j\| \|b_j\|`, for `tikhonov` and columns
    "training" or "split"; other columns are data as they were computed. A column within that bound of zero
    has weight zero. Kernels are evaluated a few at a time and let go: O(n^2) memory per job and O(n M) for
    X and b. Every job has one thread of BLAS.

    Examples
    --------
    One kernel K = I and v = (1, -1), alpha = 1: b = v / 3 = X and c = X'v / |X|^2 = 3.

    >>> import numpy as np
    >>> from formulations import linear_functional
    >>> strategy = linear_functional.functional_strategy([np.eye(2)], [1, -1], regularization=1.0)
    >>> strategy.candidates.columns.ravel().round(4), strategy.solve().weights.round(4)
    (array([ 0.3333, -0.3333]), array([3.]))
    """
    data = setting(
        grams,
        targets,
        regularization,
        grid=grid,
        convention=convention,
        filter=filter,
        columns=columns,
        intercept=intercept,
        held_out=held_out,
    )
    second_stage(weights, ridge)
    return build(candidates(data, as_jobs(n_jobs)), weights, ridge)


def as_jobs(n_jobs: Any) -> int | None:
    """Return a number of jobs as joblib takes it: from one on, or from -1 down for all cores but some."""
    if n_jobs is None:
        return None
    backwards = isinstance(n_jobs, int) and not isinstance(n_jobs, bool) and n_jobs < 0
    return n_jobs if backwards else ko.whole(n_jobs, "n_jobs", wanted="None or an integer that is not zero")


def second_stage(weights: Any, ridge: Any) -> float:
    """Check the arguments of the second stage, and return lambda."""
    one_of(weights, ("free", "nonnegative", "simplex"), "weights")
    return ko.positive(ridge, "ridge", allow_zero=True)


def build(first: Candidates, weights: Weights, ridge: float) -> Strategy:
    """Return the strategy with these candidates."""
    price = second_stage(weights, ridge)
    data, X = first.data, first.columns
    v = data.v[data.judged]
    # A constant column without a price is eliminated: its coefficient makes the residuals sum to zero.
    means, mean = (X.mean(axis=0), float(v.mean())) if data.intercept == "column" else (0 * X[0], 0.0)
    errors = first.errors
    if data.intercept == "column" and errors.any():
        errors = errors + gamma(2 * len(X) + 20) * (np.linalg.norm(X, axis=0) + errors)
    stage = Combination(X - means, v - mean, price, weights, errors, first.keys)
    c = cp.Variable(data.M, name="c", nonneg=weights != "free")
    objective = cp.sum_squares(stage.v - stage.X @ c) / stage.n
    if price > 0:
        objective += price * cp.sum_squares(c)
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

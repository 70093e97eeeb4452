"""Multiple kernel learning by the linear functional strategy: one function per kernel, then least squares."""

from __future__ import annotations

from typing import Any

from numpy.typing import ArrayLike

import kernelopt as ko
from formulations.linear_functional.method.candidates import candidates
from formulations.linear_functional.method.filters import Filter, tikhonov
from formulations.linear_functional.regularization_data import (
    Columns,
    Convention,
    Intercept,
    Weights,
    regularization_data,
)
from formulations.linear_functional.strategy import Strategy, second_stage, strategy_with
from kernelopt.extend import whole


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

    Dual of the second line, over residuals r, with :math:`D(r) = \tfrac2n r'v - \tfrac1n \|r\|^2` and
    :math:`s = X'r`:

    ==================  ==========================================  =====================================
    weights             lambda = 0                                  lambda > 0
    ==================  ==========================================  =====================================
    free                :math:`\max D(r)` s.t. :math:`s = 0`        :math:`D - \|s\|^2/(\lambda n^2)`
    nonnegative         :math:`\max D(r)` s.t. :math:`s \le 0`      :math:`D - \|s_+\|^2/(\lambda n^2)`
    simplex             :math:`D - \tfrac2n \max_j s_j`             :math:`D - \|(s - n\mu/2)_+\|^2
                                                                    /(\lambda n^2) - \mu`
    ==================  ==========================================  =====================================

    mu is the multiplier of :math:`1'c = 1`, of any sign. At the optimum :math:`r = v - X c`.

    Statement: the second line and its dual have one value. Let :math:`\tilde G = \tfrac1n X'X` be invertible,
    the weights free and lambda = 0. Then :math:`c = \tilde G^{-1} \tilde g` with
    :math:`\tilde g = \tfrac1n X'v`. The two lines are *not* a joint problem over kernels: x is not the
    Tikhonov minimiser of :math:`\sum_j c_j K_j`, and c may be negative.

    Parameters
    ----------
    grams : Grams or array of shape (M, N, N)
        Positive semidefinite.
    targets : array of shape (n,), n <= N
        v, real numbers of the first n points; for two classes -1 and +1, predicted by sign.
    regularization : float > 0, array of shape (M,), "gcv" or "leave-one-out"
        The paper's alpha. "gcv" and "leave-one-out" choose it for each kernel on `grid`.
    convention : "mean" or "sum", default "mean"
        Whether the level is n alpha, as in (1), or alpha, with the loss summed. The paper's alpha =
        1 / (2 C) is (1) for a *sum*; 1 / (2 C n) is the matching alpha of a mean.
    ridge : float >= 0, default 0.0
        lambda.
    weights : "free", "nonnegative" or "simplex", default "free"
        The set of c. Free weights that are not unique have minimum norm.
    columns : "training", "leave-one-out" or "split", default "training"
        What X holds: values on the points that trained x_j, as in the paper; values of x_j trained without
        the point (with the same level), in closed form; or values on held-out points.
    filter : function of (eigenvalues, level) -> g, default tikhonov
        Or `cut_off`, `landweber`, `iterated_tikhonov(2)`: :math:`b_j = U \operatorname{diag}(g) U'v`.
    intercept : "none", "mean" or "column", default "none"
        "mean" subtracts the mean from v and adds it to the predictions; "column" appends a constant column
        to X, whose weight is free and without ridge.
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
        A `Formulation` with claim "equal". Where weights are free, `solve()` is an SVD with rcond = 1e-10,
        and a smaller one where that leaves a gap; elsewhere, and with `solver=`, it is a conic solver.
        `solve_directly` reports the numerical rank too. `with_weights` gives another second stage on the
        same candidates, and `at` the function at given weights.

    Raises
    ------
    InputError
        For kernels, targets and numbers that are not as above.

    References
    ----------
    .. [1] Pereverzyev, Tkachenko, "Regularization by the Linear Functional Strategy with Multiple
       Kernels", Front. Appl. Math. Stat. 3 (2017): (1) for x_j, (4) and (10) for their combination,
       Theorem 1. Section 4 mentions other filters and choices of alpha. The duals are ours.

    Notes
    -----
    Least squares, so a quadratic cone. :math:`\tilde G` is never formed, since its condition is the square of
    that of X. Where M >= n, free weights interpolate the targets in general. The x_j and c are learned from
    the same points, so the value does not estimate the error on new ones: compare with
    `at(np.full(M, 1 / M))`, take a ridge, or other columns.

    For `tikhonov` and columns "training" or "split", the bounds hold for the exact columns of the kernels as
    they are stored: the rounding of the computed ones is bounded, by about
    :math:`n \varepsilon \|K_j\| \|b_j\|`. A column that is within this bound of zero has weight zero. All
    other columns count as exact as they were computed.

    Kernels are evaluated a few at a time and freed: the memory is O(n^2) per job, and O(n M) for X and b.
    Every job has one thread of BLAS.

    Examples
    --------
    One kernel K = I and v = (1, -1), alpha = 1: b = v / 3 = X and c = X'v / X'X = 3.

    >>> import numpy as np
    >>> from formulations import linear_functional
    >>> strategy = linear_functional.functional_strategy([np.eye(2)], [1, -1], regularization=1.0)
    >>> strategy.candidates.columns.ravel().round(4), strategy.solve().weights.round(4)
    (array([ 0.3333, -0.3333]), array([3.]))
    """
    data = regularization_data(
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
    ridge = second_stage(weights, ridge)  # before the candidates, which take time
    return strategy_with(candidates(data, as_jobs(n_jobs)), weights, ridge)


def as_jobs(n_jobs: Any) -> int | None:
    """Return a number of jobs as joblib takes it: from one on, or from -1 down for all cores but some."""
    if n_jobs is None:
        return None
    backwards = isinstance(n_jobs, int) and not isinstance(n_jobs, bool) and n_jobs < 0
    return n_jobs if backwards else whole(n_jobs, "n_jobs", wanted="None or an integer that is not zero")

"""The C of `MKLClassifier` and `MKLRegressor` by the leave-one-out values of kernel ridge regression."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from scipy.special import expit

from kernelopt.estimators.dictionary import C_GRID
from kernelopt.grams import Grams
from kernelopt.validation import Array, as_generator

LOO_POINTS = 500
"""Samples whose values are computed: the eigenvectors of a kernel on n samples cost n^3."""

LOO_VALUES = np.geomspace(C_GRID[0], C_GRID[-1], 2 * len(C_GRID) - 1)
"""The values of C that are compared: half powers of ten over the range of `C_GRID`."""

SLOPES: dict[str, Callable[[float], float]] = {
    "squared": float,
    "squared_hinge": float,
    "hinge": lambda error: 1.0,
    "epsilon_insensitive": lambda error: 1.0,
    "logistic": lambda error: float(expit(error - 1)),
}
"""The absolute derivative of each loss where the prediction is too small by an error."""


def leave_one_out_C(
    grams: Grams,
    targets: Sequence[Array],
    weights: Array,
    p: float,
    loss: str,
    random_state: Any = 0,
) -> float:
    r"""Return the C of a loss by the leave-one-out values of kernel ridge regression at equal weights.

    The kernel is :math:`K = m^{-1/p} \sum_m K_m`, of equal weights of norm one. For weights w of the samples
    let :math:`S = \mathrm{diag}(\sqrt{w})` and :math:`S K_c S = U \mathrm{diag}(s) U'`, with the kernel
    :math:`K_c` of features that are centred by w. Ridge regression with an intercept b and the loss
    :math:`C w_i (f(x_i) + b - y_i)^2 / 2` has the residuals r, and without a sample its residual is [1]_

    .. math::

        r_{-i} = r_i \Big/ \Big(\sum_k \frac{U_{ik}^2}{1 + C s_k} - \frac{w_i}{\sum_j w_j}\Big), \qquad
        S r = U \frac{U' S (y - \bar y)}{1 + C s}.

    A target costs :math:`r_{-i}^2`. A label costs that where :math:`y_i r_{-i} > 0`, and nothing where the
    value is on the right side beyond the margin. C is the smallest one whose mean cost exceeds the smallest
    mean by at most one standard error of the difference of the costs. For another loss V it is multiplied by
    :math:`e / |V'|` at the root e of the mean of :math:`r_{-i}^2`, so that the slopes of the losses agree.

    Parameters
    ----------
    grams : Grams of m kernels on n points
    targets : sequence of k arrays of shape (n,)
        Targets, or labels -1 and +1.
    weights : array of shape (n,)
        Positive.
    p : float in [1, inf]
    loss : str
        A key of `SLOPES`.
    random_state : int, Generator or None, default 0
        The seed of the samples, where there are more than 500.

    References
    ----------
    .. [1] Cawley, Leave-one-out cross-validation based model selection criteria for weighted LS-SVMs, IJCNN
       (2006).
    """
    y = np.stack(targets, axis=1)
    unit = float(np.abs(y).max()) or 1.0  # the squares of large targets overflow
    y = y / unit
    equal = np.full(len(grams), len(grams) ** (-1 / p))
    if len(y) > LOO_POINTS:
        chosen = np.sort(as_generator(random_state).choice(len(y), LOO_POINTS, replace=False))
        K, y, weights = grams.storage.combine_block(equal, chosen), y[chosen], weights[chosen]
    else:
        K = grams.combine(equal)
    shares = weights / weights.sum()
    residuals = left_out(K, y, shares, LOO_VALUES * weights.mean())
    costs = residuals if loss in ("squared", "epsilon_insensitive") else np.maximum(y * residuals, 0)
    each = (costs**2).mean(axis=2)
    excess = each - each[(each @ shares).argmin()]
    error = np.sqrt((excess - (excess @ shares)[:, None]) ** 2 @ shares / len(y))
    best = int(np.argmax(excess @ shares <= error))
    e = unit * float(np.sqrt((residuals[best] ** 2).mean(axis=1) @ shares))
    return float(LOO_VALUES[best]) * (e / SLOPES[loss](e) if e else 1.0)


def left_out(K: Array, y: Array, shares: Array, Cs: Array) -> Array:
    """Return the residuals at samples that are left out, shape (len(Cs), n, k), for C_i = C n shares_i.

    Parameters
    ----------
    K : array of shape (n, n)
    y : array of shape (n, k)
    shares : array of shape (n,)
        Positive, of sum one.
    Cs : array of positive numbers
    """
    n = len(y)
    K = K - shares @ K
    K = K - (K @ shares)[:, None]
    scale = np.sqrt(n * shares)
    s, U = np.linalg.eigh(scale[:, None] * K * scale)
    shrunk = 1 / (1 + np.outer(Cs, np.maximum(s, 0)))
    parts = U.T @ (scale[:, None] * (y - shares @ y))
    found = np.tensordot(shrunk[:, :, None] * parts, U, ([1], [1])).swapaxes(1, 2) / scale[:, None]
    left = shrunk @ (U**2).T - shares
    # Of one sample alone nothing is left, and its residual is zero, too.
    known = left[:, :, None] > 0
    return np.asarray(np.divide(found, left[:, :, None], out=np.zeros_like(found), where=known))

"""The maximum-determinant problem of a Gaussian process whose precision is a combination of matrices."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import cvxpy as cp
import numpy as np
from numpy.typing import ArrayLike

import kernelopt as ko
from formulations.lanckriet.transduction_data import Point
from kernelopt.extend import Array, Programme, as_grams, as_vector


@dataclass(frozen=True, eq=False)
class PrecisionData:
    """Checked data of a Gaussian process.

    Attributes
    ----------
    precisions : Grams, the m matrices R_i
    forms : array of shape (m,), the numbers y'R_i y > 0
    K : variable of shape (n, n), the kernel
    """

    precisions: ko.Grams
    forms: Array
    K: cp.Variable


def gaussian_process(precisions: ko.Grams | ArrayLike, y: ArrayLike) -> ko.Formulation:
    r"""The kernel of largest marginal likelihood whose inverse is a combination of given matrices.

    .. math:: \max_{K \succ 0}\ \log\det K + n \quad\text{s.t.}\quad \langle R_i, K \rangle \le y'R_i y

    Dual and programme, over the precision :math:`R = K^{-1} = \sum_i \mu_i R_i`:

    .. math:: \min_{\mu \ge 0}\ y'R y - \log\det R

    Statement: the two have one value. It is :math:`-2 \log p(y) - n \log 2\pi` for the density p of the
    normal distribution with mean zero and covariance K, and the weights mu are the multipliers of the
    constraints. At the optimum :math:`y'Ry = n`.

    Parameters
    ----------
    precisions : Grams or array of shape (m, n, n)
        Positive semidefinite with y'R_i y > 0, such as Laplacians of graphs and the identity. Their sum must
        be positive definite.
    y : array of shape (n,)
        The values of the process, without noise: noise is a part of the covariance.

    Returns
    -------
    Formulation
        claim "equal". Its variable is K; it learns a kernel without a machine.

    Raises
    ------
    InputError
        If a matrix is not positive semidefinite, if :math:`y'R_i y = 0` for some i, so that the optimum is
        infinite, or if the sum of the matrices is singular.

    References
    ----------
    .. [1] Lanckriet et al., JMLR 5 (2004), outlook: the relative entropy of Gaussian processes as a convex
       function of :math:`K^{-1}`. The paper prints :math:`y'Ky` for :math:`y'K^{-1}y`.

    Notes
    -----
    One semidefinite cone of order 2 n: about a second at n = 20, a minute at 40.

    Examples
    --------
    For :math:`R_1 = I` the optimum is :math:`K = (\|y\|^2 / n) I`, here 2 I, with the value 2 log 2 + 2.

    >>> import numpy as np
    >>> from formulations import lanckriet
    >>> solution = lanckriet.gaussian_process([np.eye(2)], [2.0, 0]).solve()
    >>> round(solution.value, 4), solution.kernel.round(3) + 0.0
    (3.3863, array([[2., 0.],
           [0., 2.]]))
    """
    data = precision_data(precisions, y)
    n = data.precisions.n_points
    traces = cp.hstack([cp.sum(cp.multiply(R, data.K)) for R in data.precisions])
    return ko.Formulation(
        name="lanckriet.gaussian_process",
        problem=cp.Problem(
            cp.Maximize(cp.log_det(data.K) + n), [(traces <= data.forms).set_label("evidence")]
        ),
        kernel=data.K,
        weights=None,
        dual=partial(dual, data),
        claim="equal",
        reference="Lanckriet et al. (2004), outlook",
        programmes={"precision": partial(programme, data)},
    )


def precision_data(precisions: ko.Grams | ArrayLike, y: ArrayLike) -> PrecisionData:
    """Return the data of a Gaussian process, with a new variable, after checking them."""
    stack = as_grams(precisions, "precisions")
    values = as_vector(y, "y", stack.n_points)
    for i in range(len(stack)):
        stack.factor(i)  # raises unless it is positive semidefinite
    forms = np.asarray(stack.forms(values))
    if not (forms > 0).all():
        i = int(forms.argmin())
        raise ko.InputError(
            f"y'R y must be positive for each of the precisions, got {forms[i]:g} for number {i}: its weight "
            "could grow without bound. Leave it out, or add a multiple of the identity to it."
        )
    spectrum = np.linalg.eigvalsh(stack.combine(np.ones(len(stack))))
    if not spectrum[0] > len(spectrum) * np.finfo(float).eps * spectrum[-1]:
        raise ko.InputError(
            f"the sum of the precisions must be positive definite, got the eigenvalues {spectrum[0]:g} to "
            f"{spectrum[-1]:g}. Add the identity to the stack."
        )
    order = stack.n_points
    return PrecisionData(stack, forms, cp.Variable((order, order), PSD=True, name="K"))


def dual(data: PrecisionData) -> cp.Problem:
    """Return the dual, the problem of the paper: the weights of the precision."""
    mu = cp.Variable(len(data.precisions), nonneg=True, name="mu")
    R = ko.combine(mu, data.precisions)
    return cp.Problem(cp.Minimize(data.forms @ mu - cp.log_det(R)))


def programme(data: PrecisionData) -> Programme:
    """Return the problem over the weights, read as the kernel R^-1."""
    over_weights = dual(data)
    (mu,) = over_weights.variables()

    def recover() -> tuple[Point, list[Array]]:
        K = np.linalg.inv(data.precisions.combine(np.asarray(mu.value)))
        return {data.K: (K + K.T) / 2}, []

    return Programme(over_weights, recover)

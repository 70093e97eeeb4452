"""Kernel alignment: the kernel nearest in angle to the labels' outer product."""

from __future__ import annotations

from functools import partial
from typing import Literal

import cvxpy as cp
import numpy as np
from numpy.typing import ArrayLike

import kernelopt as ko
from formulations.lanckriet.sdp import sdp
from formulations.lanckriet.transduction_data import TransductionData, Weights, transduction_data
from kernelopt.extend import Array, one_of, parameters_of


def machine(
    y: Array, prediction: Literal["parzen", "svm"], formulation: ko.Formulation
) -> tuple[Array, float]:
    """Return the machine that predicts by the kernel of `alignment`."""
    if prediction == "parzen":
        return y / np.where(y > 0, (y > 0).sum(), (y < 0).sum()), 0.0
    K = np.asarray(formulation.kernel.value)
    scale = len(K) / np.trace(K)
    found = ko.risk(scale * K, y, ko.hinge(1.0)).oracle()
    return scale * found.alpha, float(found.intercept)


@parameters_of(sdp)
def alignment(
    grams: ko.Grams | ArrayLike,
    y: ArrayLike,
    *,
    weights: Weights = "nonnegative",
    norm: Literal["full", "train"] = "full",
    prediction: Literal["parzen", "svm"] = "parzen",
) -> ko.Formulation:
    r"""The kernel of the set that is best aligned with the labels.

    .. math:: \max_\mu\ \langle K(\mu)_{tr}, yy' \rangle \quad\text{s.t.}\quad \|K(\mu)\|_F \le 1

    and mu >= 0 or, for free signs, :math:`K(\mu) \succeq 0` on all N points. As a function of the weights it
    is :math:`\max q'\mu` subject to :math:`\mu'S\mu \le 1`, with :math:`q_i = y'K_{i,tr}y` and
    :math:`S_{ij} = \langle K_i, K_j\rangle`.

    Dual: :math:`\min \|U\|_F` over symmetric matrices U with :math:`\langle U, K_i\rangle \ge q_i` for all i.
    For free signs the constraints are :math:`\langle U - Z, K_i\rangle = q_i`, for a matrix
    :math:`Z \succeq 0` that is minimised over too.

    Statement: the two have one value. It is n times the largest alignment
    :math:`\langle K_{tr}, yy'\rangle / (n \|K\|_F)`, which does not depend on the scale of K. The weights are
    scaled to :math:`\mu'S\mu = 1`.

    Parameters
    ----------
    grams, y
        As in `sdp`.
    weights : "nonnegative" or "free", default "nonnegative"
        The signs that the weights may have.
    norm : "full" or "train", default "full"
        Whether the Frobenius norm is the norm of K on all N points, as in the paper, or on the labelled ones.
    prediction : "parzen" or "svm", default "parzen"
        `Solution.decision_function`: the Parzen rule :math:`f(x) = \sum_i y_i k(x_i, x) / n_{y_i}`, or
        an SVM with C = 1 at K(mu) scaled to a mean diagonal of one.

    Returns
    -------
    Formulation
        claim "equal".

    Raises
    ------
    InputError
        If no kernel is positively aligned with the labels: then any weights are optimal.

    References
    ----------
    .. [1] Lanckriet et al., JMLR 5 (2004), section 4.6, Theorem 23.

    Notes
    -----
    The variable of the problem holds the weights times powers of two near the Frobenius norms of their
    kernels, since solvers fail on matrix inequalities whose kernels differ in size by many powers of ten.
    `weights` belong to the kernels as they were given; multiplying by powers of two is exact.

    Examples
    --------
    >>> import numpy as np
    >>> from formulations import lanckriet
    >>> y = np.array([1.0, 1, -1])
    >>> solution = lanckriet.alignment([np.outer(y, y), np.eye(3)], y).solve()
    >>> round(solution.value / 3, 5)
    1.0
    """
    one_of(norm, "norm", ("full", "train"))
    one_of(prediction, "prediction", ("parzen", "svm"))
    data = transduction_data(grams, y, weights=weights)
    if not data.signed:
        data.check_psd()  # non-negative weights need positive semidefinite kernels
    units = powers_of_two(data)
    weights_of_all = (np.eye(len(data.grams))[:, data.used] * units) @ data.mu
    K: cp.Expression = ko.combine(weights_of_all, data.grams)
    measured = K[: data.n, : data.n] if norm == "train" else K
    q = data.grams.forms(data.y)[data.used]
    if not q.max() > 0:
        raise ko.InputError(
            f"some kernel must have y'K_i y > 0, got at most {q.max():g}: none is aligned with the "
            "labels. Add a kernel, or centre them."
        )
    constraints = [(ko.frobenius(measured) <= 1).set_label("length")]
    if data.signed:
        constraints.append((K >> 0).set_label("K >> 0"))
    problem = cp.Problem(cp.Maximize(ko.alignment(K, data.y)), constraints)
    return ko.Formulation(
        name="lanckriet.alignment",
        problem=problem,
        kernel=K,
        weights=weights_of_all,
        dual=partial(dual, data, norm, units),
        claim="equal",
        reference="Lanckriet et al. (2004), Theorem 23",
        predictor=partial(machine, data.y, prediction),
    )


def powers_of_two(data: TransductionData) -> Array:
    """Return powers of two that bring the Frobenius norms of the used kernels into [1/2, 1)."""
    norms = []
    for i in data.used:
        K = data.grams.gram(int(i))
        largest = float(np.abs(K).max())  # in its units no square overflows
        norms.append(largest * np.linalg.norm(K / largest))
    return np.ldexp(1.0, -np.frexp(norms)[1])


def dual(data: TransductionData, norm: str, units: Array) -> cp.Problem:
    """Return the dual of `alignment`, each of its rows multiplied by the unit of its kernel."""
    size = data.n if norm == "train" else data.N
    q = units * data.grams.forms(data.y)[data.used]
    stack = data.grams.block(slice(0, size))
    U = cp.Variable((size, size), symmetric=True, name="U")
    forms = inner_products(data, stack, units, U)
    if not data.signed:
        return cp.Problem(cp.Minimize(cp.norm(U, "fro")), [forms >= q])
    Z = cp.Variable((data.N, data.N), PSD=True, name="Z")
    slack = inner_products(data, data.grams, units, Z)
    return cp.Problem(cp.Minimize(cp.norm(U, "fro")), [forms == q + slack])


def inner_products(data: TransductionData, stack: ko.Grams, units: Array, U: cp.Variable) -> cp.Expression:
    """Return <U, K_i> times its unit for every used kernel."""
    pairs = zip(units, data.used, strict=True)
    return cp.hstack([cp.sum(cp.multiply(unit * stack.gram(int(i)), U)) for unit, i in pairs])

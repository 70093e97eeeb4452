"""One kernel from all similarities."""

from __future__ import annotations

from functools import partial

import cvxpy as cp
from numpy.typing import ArrayLike

import kernelopt as ko
from formulations.similarity.fidelity_dual import fidelity_dual, semidefinite
from formulations.similarity.similarity_data import PAPER, Fidelity, SimilarityData, similarity_data


def single_kernel(
    similarities: ko.Grams | ArrayLike,
    y: ArrayLike | None,
    *,
    C: float = 1.0,
    rho: float,
    trace: float | None,
    fidelity: Fidelity = "l1",
    loss: ko.Loss | None = None,
) -> ko.Formulation:
    r"""One kernel, near all similarities and good for the learning problem ("ESKL").

    .. math::

        \min_{K \succeq 0,\ \operatorname{tr} K = \tau}\ \omega(K) + \rho \sum_{i=1}^m L(K - S_i), \qquad
        \omega(K) = \min_{f, b}\ \sum_j V(f_j + b, y_j) + \tfrac12 f'K^+f

    with the fidelity L(X) = :math:`\sum_{jk} |X_{jk}|`, :math:`\|X\|_F` or :math:`\|X\|_F^2`.

    Dual: over alpha in the domain of :math:`\ell`, one symmetric matrix U_i per similarity, and sigma,

    .. math::

        \max\ \ell(\alpha) - \rho \sum_i \big(\langle U_i, S_i \rangle + L^*(U_i)\big) + \tau \sigma
        \quad\text{s.t.}\quad
        \begin{bmatrix} \rho \sum_i U_i - \sigma I & z \\ z' & 2 \end{bmatrix} \succeq 0

    and :math:`1'\alpha = 0` where there is an intercept. z is alpha with zeros at the unlabelled points.
    sigma is 0 where the trace is free. The conjugate L* is 0 where all :math:`|U_{jk}| \le 1`, 0 where
    :math:`\|U\|_F \le 1`, or :math:`\tfrac14 \|U\|_F^2`.

    Statement: the two have one value, and the machine is f = K alpha + b. With the squared Frobenius norm
    K is `optimal_kernel` at alpha, and it depends on the similarities through their mean alone.

    Parameters
    ----------
    similarities : array of shape (m, N, N) or (N, N), or Grams
        Symmetric to 1e-8 relative, of any signature.
    y : array of shape (n,), n <= N
        Labels in {-1, +1} (or what the loss takes) of the first n points. The others are unlabelled: they
        enter through the fidelity and the trace, and the solution predicts them (transduction). The kernel
        is not defined at points other than the N.
    C : float > 0, default 1.0
        Of the hinge loss, per sample, not divided by n.
    rho : float >= 0
        Price of the fidelity. At 0 the similarities have no influence, and K has rank one.
    trace : float > 0 or None
        tau, over all N points, or None for no constraint, which needs rho > 0.
    fidelity : "l1", "frobenius", "squared_frobenius", Fidelity, or a function, default "l1"
        L; a function maps the expression K - S_i to a convex cvxpy expression, and has no dual by hand.
    loss : Loss, optional
        Another loss V in the place of hinge(C).

    Returns
    -------
    Formulation
        claim "equal"; no weights.

    Raises
    ------
    InputError
        For similarities, labels and numbers that are not as above.

    References
    ----------
    .. [1] Kundu et al., NIPS 2010, equation (4); (2) for m = 1.

    Notes
    -----
    The conic problem of "exact" has a matrix inequality of order n + 1 and a PSD variable of order N. With
    its certificate it takes, for m = 2 on one core, 1 to 2 s at N = 30 and half a minute at N = 60; with "l1"
    7 s and two minutes. From 11 points on "auto" takes the method "first-order-dual" for the hinges and the
    squared loss: N = 400 takes a fraction of a second, and one or two seconds with "l1". With "l1" its gap
    decreases slowly where the trace is None or much larger than the similarities' trace. For other losses
    and fidelities there is "mirror-descent". Scale similarities to entries of size one, since solvers lose
    digits on large ones.

    The value does not decrease in rho, nor with a further similarity. k copies of S at rho are one at k rho.

    Examples
    --------
    S = yy' is a kernel already, and is kept:

    >>> import numpy as np
    >>> from formulations import similarity
    >>> y = np.array([1.0, 1, -1])
    >>> solution = similarity.single_kernel(np.outer(y, y), y, rho=10, trace=3, fidelity="frobenius").solve()
    >>> round(solution.value, 4), solution.kernel[0].round(3)
    (0.5, array([ 1.,  1., -1.]))
    """
    data = similarity_data(similarities, y, C, rho, trace, fidelity, loss)
    K = cp.Variable((data.N, data.N), PSD=True, name="K")
    problem = data.learn(data.risk([K]), [cp.trace(K)], [(K, S) for S in data.S])
    return ko.Formulation(
        name="similarity.single_kernel",
        problem=problem,
        kernel=K,
        weights=None,
        dual=partial(dual, data),
        claim="equal",
        reference=f"{PAPER}, equation (4)",
    )


def dual(data: SimilarityData) -> cp.Problem:
    """Return the dual of `single_kernel`, which the paper does not print."""
    return fidelity_dual(data, list(data.S), semidefinite, one_kernel=True)

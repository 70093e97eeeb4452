"""The duals of the formulations of the paper, which differ in what a kernel is."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import cvxpy as cp
import numpy as np

import kernelopt as ko
from formulations.similarity.similarity_data import SimilarityData
from kernelopt.extend import Array

# Of the position of a kernel K, a slope G, the vector z and a number gamma: the constraints for
# <G, X> - z'K z / (2 gamma) >= 0 at every value X of the kernel's variable.
Cone = Callable[[int, cp.Expression, cp.Expression, cp.Expression], list[cp.Constraint]]


def fidelity_dual(
    data: SimilarityData, targets: Sequence[Array], cone: Cone, one_kernel: bool = False
) -> cp.Problem:
    r"""Return the maximisation over alpha, one U_i per similarity, and gamma_k and sigma_k of every kernel.

    .. math::

        \max\ \ell(\alpha) - \rho \sum_i \big(\langle U_i, S_i \rangle + L^*(U_i)\big) + \tau \sum_k \sigma_k

    with alpha and the U_i in the domains of l and L*, :math:`\gamma \ge 0`, :math:`\sum_k \gamma_k \le 1`,
    and the `cone` for the slopes :math:`\rho U_k - \sigma_k I`. With `one_kernel` it has the sum of all
    U_i. There is no U_i where rho = 0, no sigma_k without a trace, and gamma = 1 for one kernel. `targets`
    are the S_i.
    """
    fidelity, n, N = data.fidelity, data.n, data.N
    if not isinstance(fidelity, ko.Fidelity):
        raise ko.InputError(
            "the dual by hand needs the conjugate of the fidelity, got a function. Use one of "
            f"{', '.join(map(repr, ko.fidelities.FIDELITIES))} or a class of Fidelity, or read the bound "
            "of `solve`."
        )
    alpha = cp.Variable(n, name="alpha")
    z = cp.hstack([alpha, np.zeros(N - n)]) if n < N else alpha
    value, constraints = data.loss.dual_expression(alpha, data.y)
    if data.loss.default_bias:
        constraints = [*constraints, (cp.sum(alpha) == 0).set_label("bias")]
    slopes: list[cp.Expression] = [cp.Constant(np.zeros(target.shape)) for target in targets]
    for i, target in enumerate(targets if data.rho > 0 else ()):
        U = cp.Variable(target.shape, symmetric=target.ndim == 2, name=f"U{i}")
        stated = fidelity.conjugate_expression(U)
        if stated is None:
            raise ko.InputError(
                "the dual by hand needs the conjugate as an expression, got none from "
                f"{fidelity!r}. State `conjugate_expression` in its class, or read the bound of `solve`."
            )
        conjugate, domain = stated
        value = value - data.rho * (cp.sum(cp.multiply(U, target)) + conjugate)
        constraints = [*constraints, *domain]
        slopes[i] = data.rho * U
    if one_kernel:
        slopes = [cp.sum(slopes)]
    shares = cp.Constant(np.ones(1))
    if len(slopes) > 1:
        shares = cp.Variable(len(slopes), nonneg=True, name="gamma")
        constraints.append((cp.sum(shares) <= 1).set_label("shares"))
    identity = np.ones(N) if targets[0].ndim == 1 else np.eye(N)
    for k, slope in enumerate(slopes):
        if data.trace is not None:
            sigma = cp.Variable(name=f"sigma{k}")
            value, slope = value + data.trace * sigma, slope - sigma * identity
        constraints = [*constraints, *cone(k, slope, z, shares[k])]
    return cp.Problem(cp.Maximize(value), constraints)


def semidefinite(_: int, slope: cp.Expression, z: cp.Expression, share: cp.Expression) -> list[cp.Constraint]:
    """Return slope - zz' / (2 share) >> 0 as a matrix inequality of order N + 1."""
    column = cp.reshape(z, (z.size, 1), order="F")
    corner = cp.reshape(2 * share, (1, 1), order="F")
    lmi = cp.bmat([[slope, column], [column.T, corner]]) >> 0
    return [lmi.set_label("least eigenvalue")]

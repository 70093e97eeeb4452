"""The semidefinite programme, for weights of free sign and for non-negative ones."""

from __future__ import annotations

from functools import partial

import cvxpy as cp
import numpy as np
from numpy.typing import ArrayLike

import kernelopt as ko
from formulations.lanckriet.transduction_data import (
    Point,
    Ridge,
    Trace,
    TransductionData,
    Weights,
    transduction_data,
)
from kernelopt.extend import Array, Programme


def sdp(
    grams: ko.Grams | ArrayLike,
    y: ArrayLike,
    *,
    C: float = np.inf,
    tau: Ridge = 0.0,
    weights: Weights = "free",
    trace: Trace = "sum",
) -> ko.Formulation:
    r"""The semidefinite programme of the general learning problem.

    Problem: :math:`\min_\mu \omega_{C,\tau}(K(\mu))`, :math:`K(\mu) = \sum_i \mu_i K_i \succeq 0` on all
    N points, :math:`\sum_i \mu_i r_i = c`. Programme:

    .. math::

        \min_{\mu, t, \lambda, \nu \ge 0, \delta \ge 0}\ t \quad\text{s.t.}\quad
        \begin{bmatrix} G(K_{tr}) + \tau I & e + \nu - \delta + \lambda y \\
        \cdot & t - 2 C \delta'e \end{bmatrix} \succeq 0

    without delta where C is infinite.

    Dual: over alpha, eta and a symmetric matrix U of order N, with a the vector :math:`y \circ \alpha` and
    zeros at the unlabelled points,

    .. math::

        \max\ 2 e'\alpha - \tau \alpha'\alpha - c \eta \quad\text{s.t.}\quad
        0 \le \alpha \le C,\ y'\alpha = 0,\ \langle U, K_i \rangle = \eta r_i,\
        \begin{bmatrix} U & a \\ a' & 1 \end{bmatrix} \succeq 0

    with <= in the place of = for non-negative weights. For a learned tau it has the constraint
    :math:`\alpha'\alpha \le N \eta`, and tau = 0 in the objective.

    Statement: the three have one value. With [[Z, z], [z', zeta]] the multiplier of the matrix inequality of
    the programme, the alpha of the dual is -z / zeta. With free signs the value is at most `qcqp`'s.

    Parameters
    ----------
    grams : Grams or array of shape (m, N, N)
        Positive semidefinite for non-negative weights; for free signs of any signature, as long as some
        combination is positive semidefinite. Zero kernels get weight 0.
    y : array of shape (n,), n <= N
        Labels in {-1, +1} of the first n points, both present. The others are unlabelled: with
        non-negative weights they enter through the traces, with free signs also through K >> 0.
    C : float in (0, inf], default inf
        Largest dual variable. The slacks of the 1-norm soft margin have the price 2 C.
    tau : float >= 0 or "learned", default 0
        Ridge of the criterion. A learned tau counts N tau towards the trace.
    weights : "free" or "nonnegative", default "free"
        The signs that the weights may have.
    trace : "sum" or float > 0, default "sum"
        c, the trace of K(mu) on all N points; "sum" is the sum of the r_i, plus N where tau is learned. For
        "sum" the weights of normalised kernels do not depend on the number of unlabelled points.

    Returns
    -------
    Formulation
        claim "equal".

    Raises
    ------
    InputError
        For kernels, labels and numbers that are not as above.
    InfeasibleError
        On solving, with a proof, for a hard margin that no kernel of the set can meet.

    References
    ----------
    .. [1] Lanckriet et al., JMLR 5 (2004), Theorem 16, with the special cases 19, 21 and 22.

    Notes
    -----
    Matrix inequalities of order n + 1 and N: a few seconds at N = 60, minutes at 100.

    Examples
    --------
    K = mu_1 I + mu_2 ee' has the eigenvalues mu_1, on which the hard margin depends alone, and
    mu_1 + 2 mu_2. With mu_1 + mu_2 = 1 the first is at most 2, at a negative mu_2:

    >>> import numpy as np
    >>> from formulations import lanckriet
    >>> solution = lanckriet.sdp([np.eye(2), np.ones((2, 2))], [1, -1], trace=2).solve()
    >>> round(solution.value, 4), solution.weights.round(3)
    (1.0, array([ 2., -1.]))
    """
    data = transduction_data(grams, y, C, tau, trace, weights)
    if not data.signed:
        data.check_psd()  # non-negative weights need positive semidefinite kernels
    return data.formulation("sdp", "Theorem 16", partial(dual, data), {"sdp": partial(programme, data)})


def programme(data: TransductionData) -> Programme:
    """Return the semidefinite programme, on weights of its own, read as a point of `data`."""
    own = data.fresh()
    t = cp.Variable(name="t")
    G, vector, number = own.lagrangian()
    column = cp.reshape(vector, (own.n, 1), order="F")
    corner = cp.reshape(t - number, (1, 1), order="F")
    lmi = (cp.bmat([[G, column], [column.T, corner]]) >> 0).set_label("margin")
    constraints = [lmi, *own.kernel_set()]

    def recover() -> tuple[Point, list[Array]]:
        Z = np.asarray(lmi.dual_value)
        point = data.point(own.mu.value, None if own.ridge is None else own.ridge.value)
        return point, [own.y * (-Z[:-1, -1] / Z[-1, -1])]

    return Programme(cp.Problem(cp.Minimize(t), constraints), recover)


def dual(data: TransductionData) -> cp.Problem:
    """Return the dual of `sdp`; its matrix inequality has one variable of order N + 1."""
    alpha = cp.Variable(data.n, nonneg=True, name="alpha")
    eta = cp.Variable(name="eta")
    lifted = cp.Variable((data.N + 1, data.N + 1), PSD=True, name="U")
    padded = np.eye(data.N, data.n) @ cp.multiply(data.y, alpha)
    constraints = [*data.dual_domain(alpha), lifted[:-1, -1] == padded, lifted[-1, -1] == 1]
    U = lifted[:-1, :-1]
    forms = cp.hstack([cp.sum(cp.multiply(data.grams.gram(int(i)), U)) for i in data.used])
    constraints.append(forms == eta * data.r if data.signed else forms <= eta * data.r)
    if data.ridge is not None:
        constraints.append(cp.sum_squares(alpha) <= eta * data.N)
    objective = data.minus_ridge(2 * cp.sum(alpha) - data.c * eta, alpha)
    return cp.Problem(cp.Maximize(objective), constraints)

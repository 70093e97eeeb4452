"""The block-norm form: the primal over functions, one vector per kernel, without weights."""

from __future__ import annotations

from functools import partial

import cvxpy as cp
import numpy as np
from numpy.typing import ArrayLike

import kernelopt as ko
from formulations.lanckriet.qcqp import programme as qcqp_programme
from formulations.lanckriet.sdp import sdp
from formulations.lanckriet.transduction_data import Point, Ridge, Trace, TransductionData, transduction_data
from formulations.machines import written_out
from kernelopt.extend import Array, Programme, parameters_of


@parameters_of(sdp)
def block_norm(
    grams: ko.Grams | ArrayLike,
    y: ArrayLike,
    *,
    C: float = np.inf,
    tau: Ridge = 0.0,
    trace: Trace = "sum",
) -> ko.Formulation:
    r"""The learning problem as a primal over functions, with the weights eliminated.

    Problem: :math:`\min_\mu \omega_{C,\tau}(\sum_i \mu_i K_i)` over :math:`\mu \ge 0`,
    :math:`\sum_i \mu_i r_i = c`, as in `margin`. Programme:

    .. math::

        \min_{w_i, b}\ \tfrac1c \Big(\sum_i \sqrt{r_i} \|w_i\|\Big)^2
        + \sum_j h_{C,\tau}\big(1 - y_j f(x_j)\big), \qquad f = \sum_i F_i w_i + b

    with K_i = F_i F_i' and :math:`h_{C,\tau}(s) = \max_{0 \le a \le C} 2 a s - \tau a^2`. For a learned
    tau the loss is the hard margin, f + xi takes the place of f, and :math:`\sqrt N \|\xi\|` is added
    to the sum over i.

    Dual: the programme of `qcqp`.

    Statement: the three have one value, and
    :math:`\mu_i = c \|w_i\| / (\sqrt{r_i} \sum_l \sqrt{r_l} \|w_l\|)`.

    Parameters
    ----------
    grams, y, C, tau, trace
        As in `sdp`.

    Returns
    -------
    Formulation
        claim "equal"; `.dual()` is the programme of `qcqp`.

    Raises
    ------
    InputError
        For kernels, labels and numbers that are not as above.
    InfeasibleError
        On solving, with a proof, for a hard margin that no kernel of the set can meet.

    References
    ----------
    .. [1] Lanckriet et al., JMLR 5 (2004), the primal of Theorems 17 and 20.

    Notes
    -----
    One second-order cone per kernel of size rank + 1.

    Examples
    --------
    K_1 = 2 I and K_2 = 2 yy' both have trace 4; the second separates better: w_2 has the length 1 / sqrt(2).

    >>> import numpy as np
    >>> from formulations import lanckriet
    >>> K = np.array([[[2.0, 0], [0, 2]], [[2, -2], [-2, 2]]])
    >>> solution = lanckriet.block_norm(K, [1, -1], trace=4).solve()
    >>> round(solution.value, 5), solution.weights.round(4) + 0.0
    (0.5, array([0., 1.]))
    """
    data = transduction_data(grams, y, C, tau, trace)
    data.check_psd()
    return data.formulation(
        "block_norm", "Theorems 17 and 20", partial(dual, data), {"block norm": partial(programme, data)}
    )


def dual(data: TransductionData) -> cp.Problem:
    """Return the quadratically constrained programme, the dual of the block-norm form."""
    return qcqp_programme(data).problem


def programme(data: TransductionData) -> Programme:
    """Return the primal over functions of checked data."""
    found = {f"w{i}": (F, np.sqrt(r)) for i, F, r in zip(data.used, data.factors(), data.r, strict=True)}
    if data.ridge is not None:
        found["xi"] = np.eye(data.n), np.sqrt(data.N)  # of the identity, the kernel whose weight is tau
    used = np.flatnonzero([F.size for F, _ in found.values()])  # a kernel may be zero on the labelled points
    factors = {name: F for name, (F, _) in found.items() if F.size}
    roots = np.array([root for _, root in found.values()])
    machine = written_out(factors, data.y, data.criterion, bias=True)
    objective = cp.square(roots[used] @ machine.lengths) / data.c + 2 * machine.loss
    problem = cp.Problem(cp.Minimize(objective), machine.constraints)

    def recover() -> tuple[Point, list[Array]]:
        sizes = np.zeros(roots.size)
        sizes[used] = machine.lengths.value
        mu = data.c * sizes / (roots * (roots @ sizes))
        count = data.used.size
        point = data.point(mu[:count], None if data.ridge is None else mu[count])
        return point, [np.asarray(machine.fit.dual_value) / 2]

    return Programme(problem, recover)

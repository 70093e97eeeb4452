"""The weights with which a machine over several kernels combines them."""

from __future__ import annotations

from functools import partial

import cvxpy as cp
import numpy as np

import kernelopt as ko
from kernelopt.extend import Array


def machine_weights(risk: ko.Risk) -> cp.Expression:
    r"""Return w, shape (m,), with :math:`f = \sum_m w_m K_m \alpha + b` for the machine of a risk.

    It is a parameter whose value is computed from the machine at the current kernels. It has no value where
    a kernel has none.
    """
    return cp.CallbackParam(partial(weights_of, risk), (len(risk.learner.kernels),), nonneg=True)


def weights_of(risk: ko.Risk) -> Array | None:
    r"""Return :math:`w_m = \|w_m \alpha\| / \|\alpha\|`: the machine has the coefficients :math:`w_m \alpha`.

    Where alpha is zero, every w gives the machine, and w = 1 is returned.
    """
    kernels = risk.learner.kernels
    if any(variable.value is None for K in kernels for variable in K.variables()):
        return None
    machine = risk.oracle()
    length = float(np.linalg.norm(machine.alpha))
    if length == 0:
        return np.ones(len(kernels))
    coefficients = np.atleast_2d(getattr(machine, "coefficients", machine.alpha))
    return np.asarray(np.linalg.norm(coefficients, axis=1) / length)

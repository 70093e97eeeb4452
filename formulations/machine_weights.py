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
    return cp.CallbackParam(partial(scales, risk), (len(risk.learner.kernels),), nonneg=True)


def scales(risk: ko.Risk) -> Array | None:
    """Return the `scales` of the machine at the current kernels, ones where alpha is zero."""
    kernels = risk.learner.kernels
    if any(variable.value is None for K in kernels for variable in K.variables()):
        return None
    return np.asarray(risk.oracle().scales)

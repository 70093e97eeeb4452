"""Machines over several kernels: losses, machines written out, and the weights that combine the kernels."""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import cvxpy as cp
import numpy as np

import kernelopt as ko
from kernelopt.extend import Array, shown


def as_loss(loss: Any, hint: str = "Create one first.") -> ko.Loss:
    """Return a loss as it is, or raise an error whose last sentence is `hint`."""
    if not isinstance(loss, ko.Loss):
        raise ko.errors.ParameterError(
            f"loss must be a loss such as kernelopt.hinge(1.0), got {shown(loss)}. {hint}"
        )
    return loss


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


class Explicit(NamedTuple):
    """The machine f = sum_m L_m w_m + b as the variables of a programme."""

    lengths: cp.Expression  # |w_m|, one 0 if there is no kernel
    predictions: cp.Variable
    loss: cp.Expression  # of the predictions
    fit: cp.Constraint  # predictions == f, whose multiplier is alpha
    constraints: list[cp.Constraint]


def written_out(factors: dict[str, Array], y: Array, loss: ko.Loss, bias: bool) -> Explicit:
    """Return the machine with one weight vector for every factor L_m, by the name of the vector."""
    blocks = [(L, cp.Variable(L.shape[1], name=name)) for name, L in factors.items()]
    lengths = cp.hstack([cp.norm2(w) for _, w in blocks] or [0.0])
    b = cp.Variable(name="b") if bias else cp.Constant(0.0)
    z = cp.Variable(y.size, name="z")
    fit = (z == sum((L @ w for L, w in blocks), b)).set_label("fit")
    if isinstance(loss, ko.hard_margin):  # as a constraint: its expression cannot be copied
        margin = (cp.multiply(y, z) >= 1).set_label("margin")
        return Explicit(lengths, z, cp.Constant(0.0), fit, [fit, margin])
    return Explicit(lengths, z, loss.expression(z, y), fit, [fit])

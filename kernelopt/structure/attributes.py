"""The attributes of variables and parameters: copies, stated bounds, and what they state beside a cone."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import cvxpy as cp
import numpy as np

from kernelopt.losses import Loss
from kernelopt.numerics.decompositions import SECONDS
from kernelopt.running import check
from kernelopt.validation import Array


def stated(leaf: cp.Variable | cp.Parameter) -> dict[str, Any]:
    """Return the attributes that a variable or a parameter states."""
    attributes = leaf.attributes.items()
    return {name: value for name, value in attributes if value is not None and value is not False}


def copied_variable(variable: cp.Variable, **changes: Any) -> cp.Variable:
    """Return a variable with the id, the name and the attributes of another, but without a value."""
    return cp.Variable(variable.shape, name=variable.name(), var_id=variable.id, **stated(variable) | changes)


def copied_parameter(parameter: cp.Parameter) -> cp.Parameter:
    """Return a parameter with the id, the name, the attributes and the value of another."""
    name, value = parameter.name(), parameter.value
    return cp.Parameter(parameter.shape, name=name, value=value, id=parameter.id, **stated(parameter))


def copied_loss(loss: Loss, copies: dict[int, Any]) -> Loss:
    """Return a loss with its parameters replaced by their copies."""
    found = {name: copies[id(value)] for name, value in vars(loss).items() if id(value) in copies}
    return replace(loss, **found) if found else loss  # type: ignore[type-var]


def stated_bounds(variable: cp.Variable) -> tuple[Array, Array] | None:
    """Return the lower and the upper bound of `bounds=`, in the variable's shape; None without it.

    cvxpy takes numbers, arrays and parameters. A parameter without a value bounds nothing yet.
    """
    bounds = variable.attributes.get("bounds")
    if bounds is None:
        return None
    lower, upper = (side.value if isinstance(side, cp.Expression) else side for side in bounds)
    return (
        np.array(np.broadcast_to(-np.inf if lower is None else lower, variable.shape), dtype=float),
        np.array(np.broadcast_to(np.inf if upper is None else upper, variable.shape), dtype=float),
    )


def projected(variable: cp.Variable, value: Array) -> Array:
    """Return the projection of a value on the attributes, by a decomposition where they make it PSD.

    Raises
    ------
    Stopped
        If the running call has less time left than the decomposition is predicted to take.
    """
    if variable.attributes["PSD"]:
        if not value.any():  # zero is PSD: cvxpy would decompose it to find out
            return value
        check(SECONDS.pairs * float(len(value)) ** 3)
    return np.asarray(variable.project(value), dtype=float)


def beside_cone(variable: cp.Variable) -> str:
    """Return the names of the attributes of a variable, without the attribute that states its cone.

    The cone is the cone of PSD matrices, or the cone of vectors with entries >= 0. A rule for such a cone
    does not see the other attributes: `cp.Variable((n, n), PSD=True, nonneg=True)` is a member of two cones.
    """
    cone = ("PSD", "symmetric") if variable.attributes["PSD"] else ("nonneg", "pos", "symmetric")
    return ", ".join(name for name in stated(variable) if name not in cone)

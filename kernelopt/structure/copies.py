"""Copies of the leaves of a problem: variables, parameters, and losses with parameters."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import cvxpy as cp

from kernelopt.losses import Loss


def copied_variable(variable: cp.Variable) -> cp.Variable:
    """Return a variable with the id, the name and the attributes of another, but without a value."""
    attributes = {k: v for k, v in variable.attributes.items() if v is not None and v is not False}
    return cp.Variable(variable.shape, name=variable.name(), var_id=variable.id, **attributes)


def copied_parameter(parameter: cp.Parameter) -> cp.Parameter:
    """Return a parameter with the id, the name, the attributes and the value of another."""
    attributes = {k: v for k, v in parameter.attributes.items() if v is not None and v is not False}
    name, value = parameter.name(), parameter.value
    return cp.Parameter(parameter.shape, name=name, value=value, id=parameter.id, **attributes)


def copied_loss(loss: Loss, copies: dict[int, Any]) -> Loss:
    """Return a loss with its parameters replaced by their copies."""
    found = {name: copies[id(value)] for name, value in vars(loss).items() if id(value) in copies}
    return replace(loss, **found) if found else loss  # type: ignore[type-var]

"""The check of an argument that is a loss."""

from __future__ import annotations

from typing import Any

import kernelopt as ko
from kernelopt.extend import shown


def as_loss(loss: Any, hint: str = "Create one first.") -> ko.Loss:
    """Return a loss as it is, or raise an error whose last sentence is `hint`."""
    if not isinstance(loss, ko.Loss):
        raise ko.errors.ParameterError(
            f"loss must be a loss such as kernelopt.hinge(1.0), got {shown(loss)}. {hint}"
        )
    return loss

"""The attributes of a variable: the bounds that it states, and whether it is more than a member of a cone."""

from __future__ import annotations

import cvxpy as cp
import numpy as np

from kernelopt.numerics.decompositions import PAIRS
from kernelopt.running import check
from kernelopt.validation import Array


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
        check(PAIRS * float(len(value)) ** 3)
    return np.asarray(variable.project(value), dtype=float)


def beside_cone(variable: cp.Variable) -> str:
    """Return the names of the attributes beside the one that puts a variable into a cone, empty without any.

    The cone is that of PSD matrices, or that of vectors with entries >= 0. A rule for such a cone does not
    see the others: `cp.Variable((n, n), PSD=True, nonneg=True)` is a member of two.
    """
    cone = ("PSD", "symmetric") if variable.attributes["PSD"] else ("nonneg", "pos", "symmetric")
    stated = variable.attributes.items()
    return ", ".join(k for k, v in stated if k not in cone and v is not None and v is not False)

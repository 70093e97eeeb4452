"""Validation of cvxpy expressions; numbers become constants."""

from __future__ import annotations

from typing import Any

import cvxpy as cp

from kernelopt.errors import ParameterError, ShapeError
from kernelopt.validation.arrays import as_float_array


def as_expression(value: Any, what: str, ndim: int | tuple[int, ...]) -> cp.Expression:
    """Return a real cvxpy expression, or an array of finite numbers as a constant.

    Parameters
    ----------
    value : cvxpy expression or array
    what : str
        The name of the argument, for the message.
    ndim : int or tuple of int
        The allowed numbers of dimensions.

    Raises
    ------
    ShapeError, ParameterError, NotFiniteError
        If it is neither.
    """
    if not isinstance(value, cp.Expression):
        array = as_float_array(value, what, ndim)
        if not array.size:
            raise ShapeError(f"{what} must not be empty, got shape {array.shape}. Pass at least one number.")
        return cp.Constant(array)
    allowed = (ndim,) if isinstance(ndim, int) else ndim
    if value.ndim not in allowed:
        wanted = " or ".join(map(str, allowed))
        raise ShapeError(
            f"{what} must have {wanted} dimension(s), got an expression of shape {value.shape}. "
            "Reshape it with cp.reshape."
        )
    if value.is_complex():
        raise ParameterError(f"{what} must be real, got a complex expression. Take cp.real of it.")
    return value

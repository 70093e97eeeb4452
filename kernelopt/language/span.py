"""The node that maps coordinates u to function values L u. Kernels are factored when it is compiled."""

from __future__ import annotations

from typing import Any

import cvxpy as cp
import cvxpy.lin_ops.lin_utils as lu
import numpy as np
import scipy.sparse as sp
from cvxpy.atoms.affine.affine_atom import AffAtom

from kernelopt.errors import ParameterError
from kernelopt.grams import Grams
from kernelopt.validation import Array


class Span(AffAtom):  # type: ignore[misc]
    """The expression sum_i L_i u_i with K_i = L_i L_i' and u = (u_1, ..., u_m).

    The vector u_i has as many entries as the rank bound of K_i. Entries beyond the rank multiply zero
    columns.
    """

    def __init__(self, u: cp.Expression, grams: Grams) -> None:
        self.grams = grams
        super().__init__(u)

    def get_data(self) -> list[Any]:
        return [self.grams]

    def shape_from_args(self) -> tuple[int]:
        return (self.grams.n_points,)

    def sign_from_args(self) -> tuple[bool, bool]:
        return False, False

    def name(self) -> str:
        return f"span({self.args[0].name()}, {len(self.grams)} kernels)"

    def numeric(self, values: list[Array]) -> Array:
        image: Array = stacked_factors(self.grams) @ np.ravel(values[0])
        return image

    def graph_implementation(
        self, arg_objs: list[Any], shape: tuple[int, ...], data: Any = None
    ) -> tuple[Any, list[Any]]:
        factors = stacked_factors(data[0])
        return lu.mul_expr(lu.create_const(factors, factors.shape, sparse=True), arg_objs[0], shape), []


def stacked_factors(grams: Grams) -> sp.csc_array:
    """Return (L_1, ..., L_m), each padded with zero columns to the rank bound of its kernel."""
    blocks = []
    for i, width in enumerate(grams.rank_bounds):
        L = sp.csc_array(grams.factor(i))
        blocks.append(L if L.shape[1] == width else padded(L, width))
    return sp.hstack(blocks, format="csc")


def padded(L: sp.csc_array, width: int) -> sp.csc_array:
    """Return L with zero columns appended, up to `width` columns in all."""
    rest = width - L.shape[1]
    if rest < 0:
        raise ParameterError(
            f"the rank bound of a kernel must hold, got {width} for a matrix of rank {L.shape[1]}. "
            "Correct the rank(X) method of the kernel."
        )
    return sp.csc_array(sp.hstack([L, sp.csc_array((L.shape[0], rest))]))

"""The dual cones: the multipliers of a constraint, and the cone in which they are."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import cvxpy as cp
import numpy as np
from cvxpy.constraints import SOC, Equality, ExpCone, Inequality, PowCone3D, PowConeND
from cvxpy.constraints.constraint import Constraint

SIGNED = ("Inequality", "NonNeg", "NonPos")
DUALS: dict[str, tuple[str, Callable[..., Constraint]]] = {  # the letters of the multipliers, and their cone
    "SOC": ("ty", lambda c, t, y: SOC(t, y, axis=c.axis)),
    "ExpCone": ("uvw", lambda c, u, v, w: ExpCone(-v, -u, np.e * w)),  # of {v exp(u / v) <= w}
    "PowCone3D": ("uvw", lambda c, u, v, w: PowCone3D(u / c.alpha, v / (1 - c.alpha), w, c.alpha)),
    "PowConeND": ("Wz", lambda c, W, z: PowConeND(W / c.alpha, z, c.alpha, axis=c.axis)),
}


def slacks(c: Any) -> list[cp.Expression]:
    """Return what the multipliers of a constraint multiply, up to the sign."""
    return [c.expr] if isinstance(c, Equality | Inequality) else list(c.args)


def multipliers(c: Any, name: str, new: Any) -> tuple[list[cp.Variable], list[Constraint]] | None:
    """Return the multipliers of a constraint, and their cone beside their attributes; None where unknown."""
    kind, (e, *_) = type(c).__name__, slacks(c)
    if kind in DUALS:
        letters, dual = DUALS[kind]
        inside = "" if name == "v" else f"[{name.removeprefix('y[').removesuffix(']')}]"
        y = [new(a.shape, letter + inside) for a, letter in zip(c.args, letters, strict=True)]
        return y, [dual(c, *y)]
    if kind not in (*SIGNED, "Equality", "Zero", "PSD"):
        return None
    matrix, psd = e.ndim == 2 and e.size > 1, kind == "PSD"
    symmetric = matrix and not psd and e.is_symmetric()
    y = new(e.shape, name, nonneg=kind in SIGNED, symmetric=symmetric, PSD=psd and e.ndim == 2)
    return [y], [y >> 0] if psd and e.ndim > 2 else []

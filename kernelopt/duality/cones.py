"""The dual cones: the shapes of the multipliers of a constraint, and the cone in which they are."""

from __future__ import annotations

from typing import Any

import cvxpy as cp
import numpy as np
from cvxpy.constraints import SOC, Equality, ExpCone, Inequality, PowCone3D, PowConeND
from cvxpy.constraints.constraint import Constraint

Option = tuple[tuple[int, ...], str, dict[str, Any]]  # shape, letter, attributes of a multiplier
LETTERS = {"SOC": "ty", "ExpCone": "uvw", "PowCone3D": "uvw", "PowConeND": "Wz"}
SIGNED = ("Inequality", "NonNeg", "NonPos")


def letters(c: Any) -> list[Option] | None:
    """Return the shape, the letter and the attributes of each multiplier; None for an unknown cone."""
    kind = type(c).__name__
    if kind in LETTERS:
        pairs = zip(LETTERS[kind], c.args, strict=True)
        return [(tuple(arg.shape), letter, {"nonneg": letter == "t"}) for letter, arg in pairs]
    if kind not in (*SIGNED, "Equality", "Zero", "PSD"):
        return None
    e, psd = c.expr if isinstance(c, Inequality | Equality) else c.args[0], kind == "PSD"
    symmetric = not psd and e.ndim == 2 and e.size > 1 and e.is_symmetric()
    given = {"nonneg": kind in SIGNED, "symmetric": symmetric, "PSD": psd and e.ndim == 2}
    return [(tuple(e.shape), "y", given)]


def dual_cone(c: Any, y: list[cp.Variable]) -> list[Constraint]:
    """Return the constraints, beside the attributes of the multipliers, that these are in the dual cone."""
    kind = type(c).__name__
    if kind == "PSD":
        return [y[0] >> 0] if y[0].ndim > 2 else []
    if kind == "SOC":
        return [SOC(y[0], y[1], axis=c.axis)]
    if kind == "ExpCone":  # that of {v exp(u / v) <= w}: -u exp(v / u) <= e w
        return [ExpCone(-y[1], -y[0], np.e * y[2])]
    if kind == "PowCone3D":  # that of {u^a v^(1 - a) >= |w|}: the same for u / a and v / (1 - a)
        u, v, w = (cp.vec(part, order="F") for part in y)
        a = np.broadcast_to(np.ravel(c.alpha.value, order="F"), y[0].size)
        return [PowCone3D(cp.multiply(1 / a, u), cp.multiply(1 / (1 - a), v), w, a)]
    if kind == "PowConeND":  # that of {prod_i W_i^(a_i) >= |z|}: the same for W_i / a_i
        a = np.asarray(c.alpha.value)
        return [PowConeND(cp.multiply(1 / a, y[0]), y[1], a, axis=c.axis)]
    return []

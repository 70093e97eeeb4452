"""The gradient's equation of each variable; the variable is the multiplier of the equation."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import cvxpy as cp
import numpy as np
from cvxpy.constraints import PSD
from cvxpy.constraints.constraint import Constraint

from kernelopt.duality.adjoints import dense, value_of
from kernelopt.duality.lagrangian import total
from kernelopt.duality.written import fresh
from kernelopt.structure.structure import Structure
from kernelopt.structure.trees import replaced
from kernelopt.validation import Array, Mask

UNNAMED = re.compile(r"(var|param)\d+")  # the names that cvxpy gives
SIDES = {"nonneg": "lower", "pos": "lower", "nonpos": "upper", "neg": "upper"}
CONES: dict[str, Callable[[cp.Expression], Constraint]] = {
    "nonneg": lambda G: G >= 0,
    "nonpos": lambda G: G <= 0,
    "PSD": PSD,
    "NSD": lambda G: PSD(-G),
    "free": lambda G: G == 0,
}


@dataclass(eq=False)
class Equation:
    """The condition that the Lagrangian has a minimum over a variable: its gradient is in a cone.

    The gradient is zero for a free variable, non-negative for one with nonneg=True, positive semidefinite for
    one with PSD=True, and so on.

    Attributes
    ----------
    variable : cp.Variable
    kind : str
        "free", "nonneg", "nonpos", "PSD" or "NSD".
    gradient : cvxpy expression
        Of the shape of the variable, symmetric for a symmetric one.
    constraint : cvxpy constraint
    parts : list of cvxpy expressions
        What the gradient is the sum of, before its symmetric part is taken.
    """

    variable: cp.Variable
    kind: str
    gradient: cp.Expression
    constraint: Constraint
    parts: list[cp.Expression]

    @property
    def special(self) -> bool:
        """Whether some entries of the gradient count alone: of a diagonal or sparse variable, of a stack."""
        return is_partial(self.variable) or self.variable.ndim > 2

    def point(self) -> Array:
        """Return the value of the variable by the multiplier that the last solve has left, or zero."""
        v, multiplier = self.variable, self.constraint.dual_value
        x = np.zeros(v.size)
        if multiplier is not None:
            sign = 1.0 if self.kind in ("nonneg", "PSD") else -1.0
            x[entries_of(v)] = sign * np.ravel(multiplier, order="F")
        x = np.reshape(x, v.shape, order="F")
        return (x + np.swapaxes(x, -1, -2)) / 2 if v.ndim >= 2 and v.is_symmetric() else x


def is_partial(v: cp.Variable) -> bool:
    """Whether a variable is diagonal or sparse."""
    return bool(v.attributes["diag"] or v.attributes["sparsity"])


def entries_of(v: cp.Variable) -> Any:
    """Return the positions by columns of the entries that a variable has."""
    if v.attributes["sparsity"]:
        return np.ravel_multi_index(v.sparse_idx, v.shape, order="F")
    return slice(None, None, v.shape[0] + 1 if v.attributes["diag"] else 1)


def equation_of(v: cp.Variable, name: str, parts: list[cp.Expression]) -> Equation:
    """Return the gradient's equation of a variable with a name in print."""
    parts, kind = collected(parts), kind_of(v)
    G = symmetrised(v, total(parts) if parts else cp.Constant(np.zeros(v.shape)))
    part = cp.diag(G) if v.attributes["diag"] else G
    if v.attributes["sparsity"]:
        part = cp.vec(G, order="F")[entries_of(v)]
    return Equation(v, kind, G, CONES[kind](part).set_label(f"d/d {name}"), parts)


def collected(parts: list[cp.Expression]) -> list[cp.Expression]:
    """Return the parts of a gradient, with the sum of its constant parts as one part."""
    values = [value_of(part) for part in parts]
    constant = [value for value in values if value is not None]
    if len(constant) < 2:
        return parts
    rest = [part for part, value in zip(parts, values, strict=True) if value is None]
    return [*rest, *[cp.Constant(sum(constant))] * bool(np.any(sum(constant)))]


def stated_bounds(v: cp.Variable) -> list[tuple[str, Any]]:
    """Return the sides and the values of the bounds of a variable. A sign is a bound too."""
    signs = [(side, 0.0) for word, side in SIDES.items() if v.attributes[word]]
    return [*signs, *zip(("lower", "upper"), v.attributes.get("bounds") or (), strict=False)]


def kind_of(v: cp.Variable) -> str:
    """Return the cone of a variable, from its attributes and from bounds that are zero on one side.

    Of a semidefinite variable with a sign, the sign is a constraint.
    """
    matrix = [word for word in ("PSD", "NSD") if v.attributes[word]]
    sides = [side for side, b in stated_bounds(v) if not (isinstance(b, cp.Expression) or np.any(dense(b)))]
    return [*matrix, *("nonneg" if side == "lower" else "nonpos" for side in sides), "free"][0]


def implied_constraints(
    variables: Sequence[cp.Variable], names: dict[int, str], zero: dict[int, Mask]
) -> Iterator[tuple[str, Constraint]]:
    """Yield the bounds of variables, the signs of semidefinite ones, and x = 0 where signs force it.

    `zero` has the entries that signs force to zero. Their equations follow from the other constraints.
    Without them the multiplier of a'x <= 0 may have to be as large as 1 / a_j, and no solver finds it.
    """
    for v in variables:
        name, entries = names.get(v.id, v.name()), cp.vec(v, order="F")
        for side, b in stated_bounds(v):
            x = v
            if not isinstance(b, cp.Expression):
                b = np.ravel(np.broadcast_to(dense(b), v.shape), order="F")
                finite = np.flatnonzero(np.isfinite(b))
                if not finite.size or (SIDES.get(kind_of(v)) == side and not b.any()):
                    continue
                x = v if finite.size == v.size else entries[finite]
                b = b[finite].reshape(x.shape, order="F")
            yield f"{name} {side}", x >= b if side == "lower" else x <= b
        if v.id in zero and not zero[v.id].all():
            yield f"{name} zero", entries[np.flatnonzero(zero[v.id])] == 0


def renamed(structure: Structure) -> dict[int, str]:
    """Return x, x2, ... for the variables to which the user has given no name, by their ids.

    The second of two variables of one name gets a number too.
    """
    leaves = (*structure.variables, *structure.problem.parameters())
    taken, seen, found = {leaf.name() for leaf in leaves}, set[str](), dict[int, str]()
    for leaf in leaves:
        name = leaf.name()
        letter = "p" if isinstance(leaf, cp.Parameter) else "X" if leaf.ndim == 2 else "x"
        unnamed = UNNAMED.fullmatch(name)
        if unnamed or name in seen:
            found[leaf.id] = fresh(letter if unnamed else name, taken)
        seen.add(name)
    return found


def symmetrised(v: cp.Variable, G: cp.Expression) -> cp.Expression:
    """Return the symmetric part of a gradient by a symmetric variable, the gradient by any other."""
    symmetric = v.ndim >= 2 and v.size > 1 and v.is_symmetric() and not is_partial(v)
    if not symmetric or is_symmetric(G):
        return G
    return (G + (G.T if G.ndim == 2 else cp.swapaxes(G, -1, -2))) / 2


def is_symmetric(G: cp.Expression) -> bool:
    """Whether an affine expression of the multipliers is symmetric, by its value at a random point."""
    if G.is_symmetric() or G.parameters() or G.ndim != 2:
        return bool(G.is_symmetric())
    rng, point = np.random.default_rng(0), dict[int, Any]()
    for v in G.variables():
        a = rng.normal(size=v.shape)
        point[id(v)] = cp.Constant(a + a.T if v.ndim == 2 and v.is_symmetric() else a)
    value = dense(replaced(G, point).value)
    return bool(np.abs(value - value.T).max() <= 1e-13 * np.abs(value).max())

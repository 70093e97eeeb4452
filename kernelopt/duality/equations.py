"""The gradient's equation of each variable, of which the variable is the multiplier."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import cvxpy as cp
import numpy as np
import scipy.sparse as sp
from cvxpy.constraints.constraint import Constraint

from kernelopt.duality.adjoints import is_number
from kernelopt.duality.sweep import Sweep, total
from kernelopt.structure.structure import Structure
from kernelopt.structure.zero_weights import zero_equations
from kernelopt.validation import Array, Mask

UNNAMED = re.compile(r"(var|param)\d+")  # the names that cvxpy gives
SIGNED = {"nonneg": ("nonneg", "pos"), "nonpos": ("nonpos", "neg"), "PSD": ("PSD",), "NSD": ("NSD",)}


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
    point : function
        What makes the value of the variable of the multiplier of the constraint.
    parts : list of cvxpy expressions
        What the gradient is the sum of, before its symmetric part is taken.
    special : bool
        Whether only some entries of the gradient count: of a diagonal or a sparse variable, or of a stack.
    """

    variable: cp.Variable
    kind: str
    gradient: cp.Expression
    constraint: Constraint
    point: Callable[[Any], Array]
    parts: list[cp.Expression] = field(default_factory=list)
    special: bool = False


def equation_of(v: cp.Variable, name: str, parts: list[cp.Expression]) -> Equation:
    """Return the gradient's equation of a variable with a name in print."""
    parts = collected(parts)
    G = total(parts) if parts else cp.Constant(np.zeros(v.shape))
    kind, a = kind_of(v), v.attributes
    label = f"d/d {name}"
    if a["diag"]:
        diagonal = (cp.diag(G) == 0).set_label(label)
        return Equation(v, "free", G, diagonal, lambda d: np.diag(-np.atleast_1d(d)), parts, True)
    if a["sparsity"]:
        rows, columns = v.sparse_idx
        part = cp.hstack([G[i, j] for i, j in zip(rows, columns, strict=True)])

        def scattered(d: Any) -> Array:
            return np.asarray(sp.coo_array((-np.ravel(d), (rows, columns)), v.shape).toarray())

        return Equation(v, "free", G, (part == 0).set_label(label), scattered, parts, True)
    symmetric = v.ndim >= 2 and v.size > 1 and v.is_symmetric()
    if symmetric and not is_symmetric(G):
        G = (G + cp.transpose(G, (*range(v.ndim - 2), v.ndim - 1, v.ndim - 2) if v.ndim > 2 else None)) / 2
    stated = {
        "nonneg": lambda: G >= 0,
        "nonpos": lambda: G <= 0,
        "PSD": lambda: G >> 0,
        "NSD": lambda: -G >> 0,
    }
    constraint = stated.get(kind, lambda: G == 0)()
    sign = 1.0 if kind in ("nonneg", "PSD") else -1.0

    def point(d: Any) -> Array:
        d = np.reshape(np.asarray(d, dtype=float), v.shape, order="F")
        return np.asarray(sign * ((d + np.swapaxes(d, -1, -2)) / 2 if symmetric else d))

    return Equation(v, kind, G, constraint.set_label(label), point, parts, v.ndim > 2)


def collected(parts: list[cp.Expression]) -> list[cp.Expression]:
    """Return the parts of a gradient, of which the constant ones are one."""
    constant = [part for part in parts if is_number(part)]
    if len(constant) < 2:
        return parts
    one = cp.Constant(sum(dense(part.value) for part in constant))
    return [*(part for part in parts if not is_number(part)), *([one] if np.any(one.value) else [])]


def kind_of(v: cp.Variable) -> str:
    """Return the cone of a variable, from its attributes and from bounds that are zero on one side."""
    found = [kind for kind, names in SIGNED.items() if any(v.attributes[name] for name in names)]
    if found:  # of a semidefinite one with a sign, the sign is a constraint
        return found[-1]
    sides = [side for side in (0, 1) if bounded_by_zero(v, side)]
    return ("nonneg", "nonpos")[sides[0]] if sides else "free"


def bounded_by_zero(v: cp.Variable, side: int) -> bool:
    """Whether the bounds of a variable are zero everywhere on one side, lower (0) or upper (1)."""
    bounds = v.attributes.get("bounds")
    if bounds is None or isinstance(bounds[side], cp.Expression):
        return False
    return not np.any(dense(bounds[side]))


def dense(value: Any) -> Array:
    """Return a bound as a dense array."""
    return np.asarray(value.toarray() if sp.issparse(value) else value, dtype=float)


def implied_constraints(
    variables: Sequence[cp.Variable], names: dict[int, str], zero: dict[int, Mask]
) -> list[tuple[str, Constraint]]:
    """Return the bounds of variables, the signs of semidefinite ones, and x = 0 where signs force it.

    `zero` has the entries that signs force to zero. Their equations follow from the other constraints.
    Without them the multiplier of a'x <= 0 may have to be as large as 1 / a_j, and no solver finds it.
    """
    found: list[tuple[str, Constraint]] = []
    for v in variables:
        name = names.get(v.id, v.name())
        if kind_of(v) in ("PSD", "NSD"):
            for word, sign in (("nonneg", 1.0), ("nonpos", -1.0)):
                if any(v.attributes[name] for name in SIGNED[word]):
                    found.append((f"{name} sign", sign * v >= 0))
        for side, value in enumerate(v.attributes.get("bounds") or ()):
            constraint = bound(v, side, value)
            if constraint is not None:
                found.append((f"{name} {('lower', 'upper')[side]}", constraint))
        if v.id in zero and not zero[v.id].all():
            found.append((f"{name} zero", cp.vec(v, order="F")[np.flatnonzero(zero[v.id])] == 0))
    return found


def zero_entries(structure: Structure, parametric: bool) -> dict[int, Mask]:
    """Return the entries of variables that signs force to zero, by the id of the variable."""
    found: dict[int, Mask] = {}
    for equation in zero_equations(structure, whatever_parameters=parametric):
        (v,) = equation.variables()
        found[v.id] = selected(equation, v)
    return found


def superfluous_constraints(structure: Structure, zero: dict[int, Mask]) -> list[int]:
    """Return the positions of the constraints that say no more than x = 0 where signs force it."""
    found = []
    for i, read in enumerate(structure.affines if zero else ()):
        if read is None or read.constant.any() or structure.problem.constraints[i].parameters():
            continue
        used = [(v, np.asarray(abs(A).sum(axis=0)).ravel() > 0) for v, A in read.matrices.items()]
        if all(v.id in zero and not (mask & ~zero[v.id]).any() for v, mask in used):
            found.append(i)
    return found


def renamed(structure: Structure) -> dict[int, str]:
    """Return x1, x2, ... for the variables to which the user has given no name, by their ids.

    The second of two variables of one name gets a number too.
    """
    found: dict[int, str] = {}
    taken = {leaf.name() for leaf in (*structure.variables, *structure.problem.parameters())}
    seen = set[str]()
    for leaf in (*structure.variables, *structure.problem.parameters()):
        name = leaf.name()
        if UNNAMED.fullmatch(name):
            letter = "p" if isinstance(leaf, cp.Parameter) else "X" if leaf.ndim == 2 else "x"
        elif name in seen:
            letter = name
        else:
            seen.add(name)
            continue
        count = next(k for k in range(1, len(taken) + 2) if f"{letter}{k}" not in taken)
        taken.add(f"{letter}{count}")
        found[leaf.id] = f"{letter}{count}"
    return found


def selected(equation: Constraint, v: cp.Variable) -> Mask:
    """Return the mask of the entries of a variable that an equation x_j = 0 has."""
    v.save_value(np.zeros(v.shape))
    gradient = equation.expr.grad[v]
    v.save_value(None)
    return np.asarray(abs(gradient).sum(axis=1)).ravel() > 0


def bound(v: cp.Variable, side: int, value: Any) -> Constraint | None:
    """Return the finite bounds on one side of a variable, None where they are those of its sign."""
    if isinstance(value, cp.Expression):
        return v >= value if side == 0 else v <= value
    full = np.broadcast_to(dense(value), v.shape).ravel(order="F")
    finite = np.flatnonzero(np.isfinite(full))
    sign = ("nonneg", "nonpos")[side] == kind_of(v)
    if not finite.size or (sign and not full.any()):
        return None
    flat = v if finite.size == v.size else cp.vec(v, order="F")[finite]
    limit = full[finite].reshape(flat.shape, order="F")
    return flat >= limit if side == 0 else flat <= limit


def is_symmetric(G: cp.Expression) -> bool:
    """Whether an affine expression of the multipliers is symmetric, by its value at a random point."""
    if G.is_symmetric() or G.parameters() or G.ndim != 2:
        return bool(G.is_symmetric())
    rng, old = np.random.default_rng(0), [(v, v.value) for v in G.variables()]
    for v, _ in old:
        a = rng.normal(size=v.shape)
        v.save_value(a + a.T if v.ndim == 2 and v.is_symmetric() else a)
    value = dense(G.value)
    for v, x in old:
        v.save_value(x)
    return bool(np.abs(value - value.T).max() <= 1e-13 * max(np.abs(value).max(), np.finfo(float).tiny))


class Swept:
    """The dual of a problem as the sweep states it, before any rule of the board.

    Attributes
    ----------
    lagrangian : Lagrangian
    equations : list of Equation
    value : list of cvxpy expressions
        The terms of the dual function of the minimisation.
    problem : cp.Problem
        Its maximum over all multipliers; the variables are the multipliers of the gradient's equations.
    unused : list of cp.Variable
        The variables that no term has, or that are zero.
    zero : dict from variable id to mask
        The entries that signs force to zero.
    """

    def __init__(self, problem: cp.Problem, structure: Structure, zero: dict[int, Mask]) -> None:
        variables = structure.user_variables
        self.zero = zero
        names = renamed(structure)
        implied = implied_constraints(variables, names, self.zero)
        swept = Sweep(problem, names, implied, superfluous_constraints(structure, self.zero))
        self.new, self.lagrangian = swept.new, swept.found
        found = self.lagrangian
        self.unused = [v for v in variables if v not in found.gradient]
        given = {v: names.get(v.id, v.name()) for v in variables}
        ordered = {v: found.gradient[v] for v in (*given, *found.gradient) if v in found.gradient}
        self.equations = [equation_of(v, given.get(v, ""), parts) for v, parts in ordered.items()]
        costs = [t.cost for t in found.terms if isinstance(t.cost, cp.Expression)]
        self.value = [*(-c for c in costs), *found.value]
        constraints = [c for t in found.terms for c in t.domain] + found.cones
        constraints += [e.constraint for e in self.equations]
        value = total(self.value) if self.value else cp.Constant(0.0)
        self.problem = cp.Problem(cp.Maximize(value), constraints)

    def point(self) -> dict[int, Array]:
        """Return the values of the variables by id, at the multipliers that the last solve has left."""
        found = {v.id: np.ones(v.shape) if v.attributes["pos"] else np.zeros(v.shape) for v in self.unused}
        for equation in self.equations:
            value = equation.constraint.dual_value
            found[equation.variable.id] = (
                np.zeros(equation.variable.shape) if value is None else equation.point(value)
            )
        for id_, mask in self.zero.items():
            found[id_] = np.where(mask.reshape(found[id_].shape, order="F"), 0.0, found[id_])
        return found

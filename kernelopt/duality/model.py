"""The Lagrangian of a convex problem: its gradient by every variable, and its dual function."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

import cvxpy as cp
import numpy as np
import scipy.sparse as sp
from cvxpy.constraints.constraint import Constraint

from kernelopt.duality.forms import Form, Multiplier
from kernelopt.structure.affine import Affine, affine
from kernelopt.validation import Array

Kind = Literal["free", "nonneg", "nonpos", "psd", "nsd"]


class Ball(NamedTuple):
    """The set of a multiplier u of a norm: |u|_q <= price, with 1/p + 1/q = 1; by entries for p = 1.

    Attributes
    ----------
    u, price : Multiplier
    p : float
    factors : array of shape (size,)
        The sizes of what u is multiplied by, one unless it has been eliminated.
    """

    u: Multiplier
    price: Multiplier
    p: float
    factors: Array


class Shrinkage(NamedTuple):
    """The minimum over u in a ball of |g + u|, by entries or in the 2-norm; of (g + u)_+ for x >= 0.

    Attributes
    ----------
    ball : Ball
    g : function without arguments
    kind : str
        That of the row of the gradient g.
    """

    ball: Ball
    g: Callable[[], cp.Expression]
    kind: str


@dataclass(eq=False)
class Row:
    """The gradient of the Lagrangian by one variable, with what it must satisfy at a dual feasible point.

    The gradient is zero for a free variable, non-negative for one with nonneg=True, positive semidefinite for
    one with PSD=True, and so on.

    Attributes
    ----------
    variable : cp.Variable
    form : Form
    kind : str
    user : bool
        Whether the variable is one of the user's, and not one of an atom.
    curvature : array of shape (size,) or None
        The diagonal of the quadratic part, for a variable that is eliminated by it.
    ball : Ball or None
        A multiplier of a norm that has been eliminated from a row with a curvature: what counts of the
        gradient is its distance from the ball.
    solved : Multiplier or None
        The multiplier for which the row was solved. The row is then no constraint of the dual.
    """

    variable: cp.Variable
    form: Form
    kind: Kind
    user: bool
    curvature: Array | None = None
    ball: Ball | None = None
    solved: Multiplier | None = None

    @property
    def symmetric(self) -> bool:
        """Whether the gradient is a symmetric matrix."""
        return bool(self.variable.ndim == 2 and self.variable.is_symmetric() and self.variable.size > 1)

    @property
    def name(self) -> str:
        """The name of the variable."""
        return str(self.variable.name())


@dataclass(eq=False)
class Piece:
    """A concave term of the dual function, or a domain: written anew from the multipliers at every use.

    Attributes
    ----------
    value : function without arguments or None
        The concave expression.
    domain : function without arguments or None
        The constraints.
    floor : (Multiplier, function) or None
        The one constraint that a multiplier is at least a convex expression, entry by entry.
    ball : Ball or None
        What the floor, or the domain, says of a norm.
    reciprocal : (Multiplier, Multiplier) or None
        (v, lambda) where the value is 2 sum sqrt(lambda v), of the reciprocal lambda / x.
    """

    value: Callable[[], cp.Expression] | None = None
    domain: Callable[[], list[Constraint]] | None = None
    floor: tuple[Multiplier, Callable[[], cp.Expression]] | None = None
    label: str = ""
    ball: Ball | None = None
    reciprocal: tuple[Multiplier, Multiplier] | None = None


@dataclass(eq=False)
class Model:
    """The Lagrangian: linear in the variables and the multipliers, and concave in the multipliers alone.

    Attributes
    ----------
    rows : dict from variable id to Row
    linear : Form
        The part of the dual function that is linear in the multipliers.
    pieces : list of Piece
    multipliers : list of Multiplier
    of_constraints : dict from the position of a constraint to a function that returns its multipliers' values
    complements : list of (words, function)
        The equalities that hold at an optimum between the multipliers of a risk or a fidelity and the
        variables, each as a function that returns a product that is then zero.
    shifts : dict from variable id to Multiplier
        A shift of the gradient by each variable of the user, zero except in `recovery`.
    shrinkages : list of Shrinkage
        The multipliers of norms that have been eliminated beside a square or another norm.
    names : set of str
        The names of all multipliers, and those of the problem that no multiplier may have.
    dpp : bool
        Whether the problem is DPP, and the dual is to be.
    """

    rows: dict[int, Row] = field(default_factory=dict)
    linear: Form = field(default_factory=lambda: Form(1))
    pieces: list[Piece] = field(default_factory=list)
    multipliers: list[Multiplier] = field(default_factory=list)
    of_constraints: dict[int, Callable[[], list[Array]]] = field(default_factory=dict)
    complements: list[tuple[str, Callable[[], float]]] = field(default_factory=list)
    shifts: dict[int, Multiplier] = field(default_factory=dict)
    shrinkages: list[Shrinkage] = field(default_factory=list)
    names: set[str] = field(default_factory=set)
    dpp: bool = True

    def multiplier(
        self, name: str, shape: tuple[int, ...], of: str, *, auxiliary: bool = False, solvable: bool = False,
        norm: bool = False, **attributes: Any,
    ) -> Multiplier:  # fmt: skip
        """Return a new multiplier; a name that is taken gets a number."""
        unique, count = name, 1
        while unique in self.names:
            count += 1
            unique = f"{name[:-1]} {count}]" if name.endswith("]") else f"{name}{count}"
        self.names.add(unique)
        variable = cp.Variable(shape, name=unique, **attributes)
        found = Multiplier(variable, of, auxiliary, solvable, norm)
        self.multipliers.append(found)
        return found

    def add_product(
        self, expression: cp.Expression, multiplier: Multiplier, factor: float = 1.0,
        scale: cp.Expression | None = None, name: str = "A", constant: bool = True,
    ) -> None:  # fmt: skip
        """Add factor * scale * <multiplier, expression> for an affine expression of the variables.

        Matrices are named by `name` and the variable. The constant part is left out where `constant` is
        False.
        """
        read = read_affine(expression)
        for variable, matrix in read.matrices.items():
            label = f"{name[:-1]}, {variable.name()}]" if name.endswith("]") else f"{name}[{variable.name()}]"
            self.row_of(variable).form.add(factor * matrix.T, multiplier, scale, label)
        if constant:
            place = name.partition("[")
            self.linear.add(factor * read.constant[None, :], multiplier, scale, "b" + place[1] + place[2])

    def row_of(self, variable: cp.Variable, user: bool = False) -> Row:
        """Return the row of a variable, which is made where there is none."""
        if variable.id not in self.rows:
            self.rows[variable.id] = Row(variable, Form(variable.size), kind_of(variable), user)
        return self.rows[variable.id]

    def add_shifts(self) -> None:
        """Add a shift to the gradient by every variable of the user."""
        for id_, row in self.rows.items():
            if row.user:
                variable = cp.Variable(row.variable.shape, symmetric=row.symmetric)
                self.shifts[id_] = Multiplier(
                    variable, f"the gradient by {row.name}", shift=True, silent=True
                )
                row.form.add(sp.eye_array(row.variable.size), self.shifts[id_])

    def active(self) -> list[Row]:
        """Return the rows that are constraints of the dual."""
        return [row for row in self.rows.values() if row.solved is None and row.curvature is None]


def kind_of(variable: cp.Variable) -> Kind:
    """Return what the gradient by a variable must satisfy, from the attributes of the variable."""
    attributes = variable.attributes
    if attributes["PSD"]:
        return "psd"
    if attributes["NSD"]:
        return "nsd"
    if attributes["nonneg"] or attributes["pos"] or bounded_by_zero(variable, 0):
        return "nonneg"
    if attributes["nonpos"] or attributes["neg"] or bounded_by_zero(variable, 1):
        return "nonpos"
    return "free"


def bounded_by_zero(variable: cp.Variable, side: int) -> bool:
    """Whether the bounds of a variable are zero everywhere on one side, lower (0) or upper (1)."""
    bounds = variable.attributes.get("bounds")
    if bounds is None or isinstance(bounds[side], cp.Expression):
        return False
    value = bounds[side]
    return not np.any(value.toarray() if sp.issparse(value) else value)


def read_affine(expression: cp.Expression) -> Affine:
    """Return the coefficients of an affine expression whose parameters have values."""
    read = affine(expression)
    if read is None:
        raise AssertionError("affine expressions with values are read without fail")
    return read

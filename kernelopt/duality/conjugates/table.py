"""The table of conjugates: for each convex atom one function that states u g(a) as a maximum over y."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import cvxpy as cp
from cvxpy.constraints.constraint import Constraint

from kernelopt.duality.adjoints import in_shape, uniform
from kernelopt.duality.written import fresh


class Conjugate(NamedTuple):
    r"""A convex atom g with a weight u >= 0 as a maximum over dual variables y.

    .. math:: u\, g(a_1, a_2, \dots) = \max_y\ \sum_k \langle y_k, a_k \rangle - \mathrm{cost}(y, u)

    Parameters
    ----------
    pairs : list of (y_k, a_k)
        y_k is an affine expression of the new variables, and a_k of what g is a function of.
    cost : cvxpy expression, or 0
        Convex in (y, u); at u = 0 it is the support function of dom g. It has the shape of g, or it is the
        sum of these entries.
    domain : sequence of cvxpy constraints
        What holds for (y, u) beside u >= 0.
    """

    pairs: list[tuple[cp.Expression, cp.Expression]]
    cost: Any = 0
    domain: Sequence[Constraint] = ()


class New:
    """Makes the dual variables of an atom, under names that are not taken.

    Attributes
    ----------
    taken : set of str
    meaning : dict from name to str
        What each variable belongs to.
    of : str
        What the variables that are made now belong to.
    entrywise : bool
        Whether the cost must have one entry for each entry of the atom.
    first : str
        The number of the first risk, empty for the only one.
    psd : list of cvxpy expressions
        The matrices that a constraint of the problem states to be positive semidefinite.
    """

    def __init__(self, taken: set[str]) -> None:
        self.taken, self.meaning = set(taken), dict[str, str]()
        self.of, self.first, self.entrywise = "", "", False
        self.psd: list[cp.Expression] = []

    def __call__(self, shape: tuple[int, ...], wanted: str = "u", **attributes: Any) -> cp.Variable:
        matrix = len(shape) == 2 and min(shape) > 1 and len(wanted) == 1
        name = fresh(wanted.upper() if matrix else wanted, self.taken)
        self.meaning[name] = self.of
        return cp.Variable(shape, name=name, **attributes)

    def like(self, g: Any, a: cp.Expression, u: cp.Expression, wanted: str = "u") -> cp.Variable:
        """Return a variable for the argument a of an atom g that is the same at the transpose of a matrix.

        Where the argument is symmetric and all entries have one weight, the symmetric part of y is as good as
        y: it has the same product with the argument and, by convexity, no larger cost. A function of the
        rows or the columns has no such symmetry. The weight of a convex argument is not negative.
        """
        square = a.ndim == 2 and a.size > 1 and a.is_symmetric() and getattr(g, "axis", None) is None
        if square and uniform(u) is not None:
            return self(a.shape, wanted, symmetric=True)
        return self(a.shape, wanted, nonneg=a.is_convex() and not a.is_affine())


Entry = Callable[[Any, cp.Expression, New], Conjugate | None]
CONJUGATES: dict[str, Entry] = {}
SUPPORTS: set[str] = set()
"""The atoms whose cost is zero, so that u may be any expression, of parameters too."""
NUMBERS: set[str] = set()
"""The atoms whose weight u may be any positive number."""


def conjugate(*atoms: str | type, support: bool = False, numbers: bool = False) -> Callable[[Entry], Entry]:
    """Register a function (g, u, new) -> Conjugate as the entry of atoms, by their classes or the names.

    Parameters
    ----------
    *atoms : str or class
        The classes of cvxpy's atoms, or the names of the classes.
    support : bool, default False
        Whether the cost is always zero, so that u may be any expression. Elsewhere u is one or an expression
        of multipliers: numbers and parameters multiply the conjugate for u = 1.
    numbers : bool, default False
        Whether u may be any positive number too, the same for all entries.

    Notes
    -----
    A concave atom g enters as the convex -g. The variables are made by ``new(shape, name, **attributes)``.
    `None` for a Conjugate says that the entry does not know this case.

    Examples
    --------
    >>> from kernelopt.duality.conjugates import CONJUGATES
    >>> "log_sum_exp" in CONJUGATES
    True
    """

    def keep(entry: Entry) -> Entry:
        for atom in atoms:
            name = atom if isinstance(atom, str) else atom.__name__
            CONJUGATES[name] = entry
            SUPPORTS.update([name] * support)
            NUMBERS.update([name] * numbers)
        return entry

    return keep


def slices(g: Any, function: Callable[..., cp.Expression], y: cp.Expression, u: cp.Expression) -> Any:
    """Return a function of y, or of its slices along the axis of an atom, in the shape of its weight."""
    return in_shape(function(y, axis=g.axis) if hasattr(g, "axis") else function(y), u.shape)


def residual(g: Any, a: cp.Expression, u: cp.Expression, new: New) -> tuple[cp.Variable, cp.Expression]:
    """Return (r, y) for a function that is the same at a and -a: y = r, or y = -r where a is e - b.

    For a constant b the residual of a textbook is b - e.
    """
    r = new.like(g, a, u, "r")
    first, last = (a.args[0], a.args[-1]) if type(a).__name__ == "AddExpression" else (a, a)
    minus = type(last).__name__ == "NegExpression" or (last.is_nonpos() and not last.is_nonneg())
    return r, -r if minus and last.is_constant() and not first.is_constant() else r


def whole(g: Any) -> cp.Expression:
    """Return the argument of a function of all entries: the matrix, where the argument lists its entries."""
    a, scalar = g.args[0], g.ndim == 0 and getattr(g, "axis", None) is None
    while scalar and a.ndim == 1 and type(a).__name__ in ("reshape", "Vec"):
        a = a.args[0]
    return a

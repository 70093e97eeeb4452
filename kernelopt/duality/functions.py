"""Convex functions that are support functions, g(x) = max <u, x> over u in a set U.

A problem with g in it has the constraint tau >= g(D) for an affine D. Its multipliers are a price lambda >= 0
and a vector u in lambda U, and they contribute <u, D> - lambda tau to the Lagrangian. So |x|_p in the primal
becomes |u|_q <= lambda in the dual, where the cones of cvxpy would give auxiliary variables.

The squares |x|^2 / y and x'Y^+x are of that kind too, in x and y together: their sets are
{(u, v) : |u|^2 / 4 <= -v} and {(u, V) : uu' / 4 <= -V in the order of matrices}. The reciprocal 1 / x is
the square 1^2 / x, where u is maximised by hand: lambda / x = max over v >= 0 of 2 sqrt(lambda v) - v x.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any, NamedTuple

import cvxpy as cp
import numpy as np
from cvxpy.atoms.affine.affine_atom import AffAtom
from cvxpy.atoms.affine.reshape import reshape
from cvxpy.atoms.elementwise.abs import abs as abs_atom
from cvxpy.atoms.elementwise.maximum import maximum
from cvxpy.atoms.matrix_frac import MatrixFrac
from cvxpy.atoms.max import max as max_atom
from cvxpy.atoms.norm1 import norm1
from cvxpy.atoms.norm_inf import norm_inf
from cvxpy.atoms.pnorm import Pnorm
from cvxpy.atoms.quad_over_lin import quad_over_lin
from cvxpy.constraints.constraint import Constraint
from cvxpy.transforms.indicator import indicator

from kernelopt.duality.products import positive_factor, signed
from kernelopt.language.sets import p_norm
from kernelopt.numerics.norms import conjugate_exponent
from kernelopt.structure.trees import nodes, number, replaced

LARGEST_NUMERATOR = 8  # of a simple fraction a/b: |x|_(a/b) takes at most four second-order cones an entry
SAME = 1e-12  # relative: an exponent p / (p - 1) in doubles is this near to its fraction
KINDS = (Pnorm, norm1, norm_inf, abs_atom, max_atom, maximum, quad_over_lin, MatrixFrac)


class Support(NamedTuple):
    """The constraint tau >= g(D) that takes the place of a function g in a problem.

    Attributes
    ----------
    stand_in : cp.Variable
        tau, of the shape of g.
    args : tuple of cvxpy expressions
        The affine arguments of g: one, or several for a maximum.
    kind : str
        The name of the atom.
    p : float
        The exponent of a norm.
    """

    stand_in: cp.Variable
    args: tuple[cp.Expression, ...]
    kind: str
    p: float = np.nan

    @property
    def name(self) -> str:
        """The kind with the names of the variables in the arguments."""
        return name_of(self.kind, *self.args)


def name_of(kind: str, *args: cp.Expression) -> str:
    """Return a kind with the names of at most three variables, which cvxpy's own names are not counted as."""
    names = dict.fromkeys(v.name() for arg in args for v in arg.variables())
    return " ".join([kind, *(n for n in names if not n.startswith("var"))][:4])


def read_support(node: Any, args: list[cp.Expression]) -> Support | None:
    """Return a node as a `Support`, whose arguments have been replaced by affine ones; None for others."""
    reciprocal = is_reciprocal(node)
    known = reciprocal or isinstance(node, KINDS)
    if not known or node.is_constant() or not all(arg.is_affine() for arg in args):
        return None
    if any(arg.parameters() for arg in args):  # the cones of cvxpy keep them
        return None
    if reciprocal:
        kind, p = "reciprocal", np.nan
    elif isinstance(node, maximum):
        constants = [arg for arg in args if arg.is_constant()]
        if len(constants) > 1 or len(constants) == len(args):
            return None
        kind, p = "maximum", np.nan
    elif isinstance(node, abs_atom):
        kind, p = "abs", np.nan
    elif isinstance(node, MatrixFrac):
        kind, p = "matrix_frac", np.nan
    elif getattr(node, "axis", None) is not None:
        return None
    elif isinstance(node, quad_over_lin):
        kind, p = "square", np.nan
    elif isinstance(node, max_atom):
        kind, p = "max", np.nan
    else:
        p = 1.0 if isinstance(node, norm1) else np.inf if isinstance(node, norm_inf) else float(node.p)
        kind = "norm"
        if not p >= 1:
            return None
        args = [whole(args[0])]
    stand_in = cp.Variable(node.shape, nonneg=node.is_nonneg())
    return Support(stand_in, tuple(args), kind, p)


def is_reciprocal(node: Any) -> bool:
    """Whether a node is 1 / x, entry by entry."""
    name = type(node).__name__.removesuffix("Approx").lower()
    return name == "power" and number(node.p) == -1


def signless(node: Any, args: list[cp.Expression]) -> cp.Expression | None:
    """Return x for |x|, sum(x) for |x|_1, of an x that is known to be non-negative; None for others."""
    if not isinstance(node, abs_atom | norm1) or not args[0].is_nonneg():
        return None
    if isinstance(node, abs_atom):
        return args[0]
    return cp.sum(args[0]) if getattr(node, "axis", None) is None else None


def unsigned(expression: cp.Expression) -> cp.Expression:
    """Return an expression in which |x| and |x|_1 of non-negative x are x and sum(x)."""
    simpler = {
        id(node): signless(node, node.args) for node in nodes(expression) if getattr(node, "args", None)
    }
    return replaced(expression, {key: value for key, value in simpler.items() if value is not None})


def whole(arg: cp.Expression) -> cp.Expression:
    """Return the matrix of an argument that lists its entries, of which a norm is the same."""
    while isinstance(arg, reshape):
        arg = arg.args[0]
    return arg


def without_supports(node: Any, found: list[Support], memo: dict[int, Any], linear: bool) -> Any:
    """Return a tree in which support functions are replaced by their stand-ins, innermost first.

    By the rules of disciplined convex programming every convex function in a minimisation stands where the
    problem is monotone in it, so that tau >= g(D) may take its place. Squares with a constant denominator
    that enter the objective linearly (`linear`) are left as they are: they stay quadratic in the dual.
    """
    if id(node) in memo:
        return memo[id(node)]
    args = getattr(node, "args", [])
    if isinstance(node, list) or not args or isinstance(node, indicator):
        memo[id(node)] = node
        return node
    inner = linear and isinstance(node, AffAtom)
    copies = [without_supports(arg, found, memo, inner) for arg in args]
    simpler = signless(node, copies)
    if simpler is not None:
        memo[id(node)] = simpler
        return simpler
    square = isinstance(node, quad_over_lin) and copies[1].is_constant() and linear
    support = None if square else read_support(node, copies)
    if support is not None:
        found.append(support)
        memo[id(node)] = support.stand_in
        return support.stand_in
    changed = any(copy is not arg for copy, arg in zip(copies, args, strict=True))
    memo[id(node)] = node.copy(copies) if changed else node
    return memo[id(node)]


def norm_ball(u: cp.Expression, p: float, price: cp.Expression) -> Constraint:
    """Return u in lambda U for the norm |.|_p: |u|_q <= lambda, with single entries for p = 1."""
    return cp.abs(signed(u)[1]) <= price if p == 1 else dual_norm(u, p) <= price


def dual_norm(u: cp.Expression, p: float) -> cp.Expression:
    """Return |u|_q, 1/p + 1/q = 1, with a positive factor of u in front of the norm."""
    factor, u = positive_factor(signed(u)[1])
    norm = conic_norm(u if u.ndim == 1 else cp.vec(u, order="F"), conjugate_exponent(p))
    return norm if factor == 1 else factor * norm


def conic_norm(x: cp.Expression, p: float) -> cp.Expression:
    """Return |x|_p by second-order cones where p is a simple fraction, else by power cones.

    Interior-point methods are less accurate on power cones: the dual of l_p learning ends in an error there.
    cvxpy's `pnorm` with approx=True is exact for a fraction.
    """
    if p in (1, 2) or np.isinf(p):
        return p_norm(x, p)
    near = 1 / Fraction(1 / p).limit_denominator(LARGEST_NUMERATOR)
    return cp.pnorm(x, p, approx=True) if abs(float(near) - p) <= SAME * p else p_norm(x, p)

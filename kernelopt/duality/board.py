"""The six rules of the board: how the swept dual becomes what a lecturer writes, each with its proof.

A rule takes what is stated and returns an equivalent statement, or None where it does not apply. The rules
are `minus_rest`, `log_sum_exp`, `positive_part`, `floor` and `absorbed`; the sixth, the sum over i, is one of
writing alone (`rendering.gathered`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Any, NamedTuple

import cvxpy as cp
import numpy as np
from cvxpy.atoms.affine.binary_operators import MulExpression
from cvxpy.constraints import PSD, Equality, Inequality
from cvxpy.constraints.constraint import Constraint

from kernelopt.duality.adjoints import uniform, value_of
from kernelopt.duality.equations import CONES, Equation, symmetrised
from kernelopt.duality.lagrangian import scaled, sum_of, terms_of, uses
from kernelopt.duality.squares import PositivePart, positive_part_of
from kernelopt.duality.sweep import Swept
from kernelopt.duality.written import fresh
from kernelopt.language.adapter import written_problem
from kernelopt.language.risk import Risk
from kernelopt.structure.structure import implies
from kernelopt.structure.trees import copied_constraint, replaced

INSIDE = ("entr", "log", "log_det", "tr_inv", "Risk")  # the domain lies in the cone of a signed argument
POSITIVE = ("log", "log1p", "log_det", "exp")  # the cost is finite only where y is positive


@dataclass(frozen=True, eq=False)
class Stated:
    """A dual as it stands on the board.

    Attributes
    ----------
    swept : Swept
    value : cvxpy expression
        What is maximised.
    rows : dict from Equation to cvxpy expression
        The gradients by the variables.
    constraints : tuple of cvxpy constraints
        The domains of the terms and the cones of the multipliers.
    gone : dict from variable id to (variable, expression or None)
        The variables that are no longer there, with what they are equal to, None where that is no expression.
    hidden : dict from variable id to PositivePart
        The matrices P over which a `PositivePart` is a minimum. They are not written.
    """

    swept: Swept
    value: cp.Expression
    rows: dict[Equation, cp.Expression]
    constraints: tuple[Constraint, ...]
    gone: dict[int, tuple[cp.Variable, Any]] = field(default_factory=dict)
    hidden: dict[int, PositivePart] = field(default_factory=dict)

    def problem(self) -> cp.Problem:
        """Return the maximum as a problem."""
        rows = [constraint_of(row, G) for row, G in self.rows.items()]
        return written_problem(cp.Maximize(self.value), [*self.constraints, *rows])

    def is_dpp(self) -> bool:
        """Whether it is convex by cvxpy's rules, and no product of parameters has come about."""
        return bool(self.problem().is_dpp())

    def without(self, gone: Equation | Constraint) -> Stated:
        """Return the dual without a gradient's equation, or another constraint."""
        constraints = tuple(c for c in self.constraints if c is not gone)
        return replace(
            self, rows={row: G for row, G in self.rows.items() if row is not gone}, constraints=constraints
        )

    def with_variable(self, v: cp.Variable, e: cp.Expression, label: str = "") -> Stated:
        """Return the dual with an expression in the place of a variable.

        Constraints in which that changes something get the label, where there is one.
        """
        memo: dict[int, Any] = {id(v): e}
        constraints = tuple(
            copied_constraint(c, memo).set_label(label or c.label or "") if uses([c], v) else c
            for c in self.constraints
        )
        rows = {row: replaced(G, memo) for row, G in self.rows.items()}
        gone = {key: (w, replaced(d, memo)) for key, (w, d) in self.gone.items()} | {v.id: (v, e)}
        return replace(self, value=replaced(self.value, memo), rows=rows, constraints=constraints, gone=gone)

    def with_value(self, new: cp.Expression, *gone: cp.Variable) -> Stated:
        """Return the dual with a new term in the place of the terms of variables that are gone."""
        kept = [(k, e) for k, e in terms_of(self.value) if not any(uses([e], v) for v in gone)]
        value = sum_of([(1.0, new), *kept], ())
        return replace(self, value=value, gone=self.gone | {v.id: (v, None) for v in gone})


class Solvable(NamedTuple):
    """A gradient k y + rest, in which the term of an atom with <y, argument> brings y, and no other has y."""

    row: Equation
    y: cp.Variable
    k: float
    rest: cp.Expression
    atom: Any
    weight: Any  # None where it is not a number
    argument: cp.Expression


def constraint_of(row: Equation, G: cp.Expression) -> Constraint:
    """Return the constraint that a gradient is in its cone."""
    if row.special:
        return row.constraint
    return CONES[row.kind](symmetrised(row.variable, G)).set_label(row.constraint.label)


def stated(swept: Swept) -> Stated:
    """Return the swept dual as it stands before the first rule."""
    rows = {row: sum_of([(1.0, part) for part in row.parts], row.variable.shape) for row in swept.equations}
    constraints = [c for t in swept.terms for c in t.domain] + swept.cones
    return Stated(swept, swept.problem.objective.args[0], rows, tuple(constraints))


def solvable(state: Stated) -> Iterator[Solvable]:
    """Yield the gradient's equations that determine the variable y of a term."""
    owners = {id(terms_of(y)[0][1]): (t, a) for t in state.swept.terms for y, a in t.pairs}
    for row, G in state.rows.items():
        terms = terms_of(G) if not row.special else []
        for k, y in terms:
            rest = [(c, e) for c, e in terms if e is not y]
            others = [*(e for _, e in rest), *state.without(row).rows.values()]
            alone = isinstance(y, cp.Variable) and len(rest) == len(terms) - 1 and not uses(others, y)
            if alone and id(y) in owners and y.shape == row.variable.shape:
                term, a = owners[id(y)]
                yield Solvable(row, y, k, sum_of(rest, y.shape), term.atom, value_of(term.weight), a)


def minus_rest(state: Stated) -> Stated | None:
    """Y := -rest, where the gradient by x is y + rest.

    For a free x the equation y + rest = 0 determines y, and y occurs in no other equation. For a symmetric x
    it determines the symmetric part, and y is symmetric by itself. For x in a cone the gradient need only be
    in the dual cone. But where the term of y has the argument x, and a domain that lies in the cone, x in the
    cone is said twice, and the problem without the second statement has the same optimum and the equation
    y + rest = 0. The signs of y become constraints.
    """
    for row, y, k, rest, atom, weight, a in solvable(state):
        label, kind = row.constraint.label, type(atom).__name__
        inside = kind in INSIDE and a is row.variable and weight is not None
        whole = symmetrised(row.variable, rest)
        if not (row.kind == "free" or inside) or not (whole is rest or y.is_symmetric()):
            continue
        e = scaled(-1 / k, whole)
        found = state.without(row).with_variable(y, e, label)
        if not found.is_dpp():
            continue
        signs = y.attributes["nonneg"] or y.attributes["PSD"]
        if signs and (kind not in POSITIVE or weight is None):
            sign = (e >= 0 if y.attributes["nonneg"] else PSD(e)).set_label(label)
            found = replace(found, constraints=(*found.constraints, sign))
        return found
    return None


def log_sum_exp(state: Stated) -> Stated | None:
    """An entropy over 1'p = 1 becomes log sum exp.

    With the multiplier nu of 1'p = s > 0 the dual has -sum_i exp(e_i - nu - 1) - s nu, where e is minus the
    rest of the gradient. Its derivative by nu vanishes where exp(-nu - 1) sum_i exp(e_i) = s, and the value
    there is -s log sum_i exp(e_i) + s log s.
    """
    for row, y, _, rest, atom, weight, a in solvable(state):
        entropy = type(atom).__name__ == "entr" and a is row.variable and row.kind in ("free", "nonneg")
        if not entropy or weight is None or np.any(weight != 1):
            continue
        for k, part in terms_of(rest):
            scalar, new = uniform(part), state.without(row)
            (c, nu), *more = terms_of(part if scalar is None else scalar, k)
            if more or not isinstance(nu, cp.Variable) or nu.size != 1 or nu.attributes["nonneg"]:
                continue
            others = [(-k, e) for k, e in terms_of(rest) if e is not part]
            sums = [(k, e) for k, e in terms_of(state.value) if uses([e], nu)]
            elsewhere = [*(e for _, e in others), *state.constraints, *new.rows.values()]
            if uses(elsewhere, nu) or len(sums) != 1 or sums[0][1] is not nu or sums[0][0] / c >= 0:
                continue
            s = -sums[0][0] / c
            smooth = [(-s, cp.log_sum_exp(sum_of(others, y.shape))), (s, cp.Constant(np.log(s)))]
            return new.with_value(sum_of(smooth, ()), y, nu)
    return None


def positive_part(state: Stated) -> Stated | None:
    """A square over a cone becomes a positive part.

    The minimum of c |x + M|^2 + <rest, x> over x in the cone of non-negative vectors or PSD matrices is taken
    at the projection of G / (2 c) on it, with G = -2 c M - rest, and is c |M|^2 - |G_+|^2 / (4 c): the cone
    is its own dual, so that G = G_+ - (-G)_+ with orthogonal parts.
    """
    for row, y, _, rest, atom, weight, a in solvable(state):
        x, terms = row.variable, terms_of(a)
        M = sum_of([(k, e) for k, e in terms if e is not x], x.shape)
        square = type(atom).__name__ == "quad_over_lin" and getattr(atom, "axis", None) is None
        below = value_of(atom.args[1]) if square and row.kind in ("PSD", "nonneg") else None
        shift = value_of(M) if [k for k, e in terms if e is x] == [1.0] else None
        if below is None or weight is None or shift is None:
            continue
        c = float(weight.flat[0]) / float(below.flat[0])
        G = symmetrised(x, scaled(-1.0, rest + 2 * c * M if shift.any() else rest))
        part = cp.sum_squares(cp.pos(G))
        if row.kind == "PSD":
            part, above = positive_part_of(G, fresh("P", state.swept.new.taken))
            constraints = (*state.constraints, above.set_label("positive part"))
            state = replace(state, constraints=constraints, hidden={**state.hidden, part.P.id: part})
        value = sum_of([(-1 / (4 * c), part), (c, cp.sum_squares(cp.Constant(shift)))], ())
        return state.without(row).with_value(value, y)
    return None


def floor(state: Stated) -> Stated | None:
    """A variable v with the floor v >= e becomes e, where e is convex, not affine, and free of v.

    If all else stays convex by the rules of cvxpy with e in the place of v, it is monotone in v: these rules
    accept a convex e inside of a function only where the function does not decrease, and in a maximum does
    not increase. So no larger v is better, and v = e.
    """
    rows = [(row, constraint_of(row, G), row.constraint.label) for row, G in state.rows.items()]
    for gone, c, label in [*((c, c, "") for c in state.constraints), *rows]:
        terms = terms_of(c.expr, -1.0) if isinstance(c, Inequality) else []
        for k, v in terms:
            e = sum_of([(-j / k, t) for j, t in terms if t is not v], c.shape)
            lower = isinstance(v, cp.Variable) and k > 0 and e.is_convex() and not e.is_affine()
            if (
                not lower
                or e.shape != v.shape
                or uses([e], v)
                or (v.attributes["nonneg"] and not e.is_nonneg())
            ):
                continue
            found = state.without(gone)
            cones = [q for q in found.problem().constraints if not isinstance(q, Inequality | Equality | PSD)]
            if uses(cones, v):  # their arguments must be affine
                continue
            found = found.with_variable(v, e, label)
            if found.is_dpp():
                return found
    return None


def absorbed(state: Stated) -> Stated | None:
    """The multiplier Z of K >> 0 is absorbed into S.

    A risk of weight c has the term -c/2 <S, K> with S >> alpha alpha', and K >> 0 has -<Z, K> with Z >> 0.
    Both are -c/2 <S + 2 Z / c, K>, and S + 2 Z / c may be any matrix above alpha alpha'. So Z := 0 loses
    nothing, and an optimal Z may be read as c/2 (S - alpha alpha').
    """
    for multiplier, term in product(state.swept.multipliers, state.swept.terms):
        Z, weight = multiplier.variables[0], value_of(term.weight)
        cone = multiplier.user and isinstance(multiplier.constraint, PSD) and Z.id not in state.gone
        if not cone or weight is None or not isinstance(term.atom, Risk):
            continue
        K = multiplier.constraint.args[0]
        if any(implies(K, kernel) and implies(kernel, K) for kernel in term.atom.learner.kernels):
            block = next(c for c in term.domain if isinstance(c, PSD)).args[0]  # [[S, alpha], [alpha', 1]]
            S, alpha = block.args[0].args
            whole = float(weight) / 2 * (S - MulExpression(alpha, alpha.T))
            done = state.with_variable(Z, cp.Constant(np.zeros(Z.shape)))
            return replace(done, gone={**done.gone, Z.id: (Z, whole)})
    return None


RULES = (absorbed, floor, log_sum_exp, minus_rest, positive_part)


def on_the_board(swept: Swept) -> Iterator[tuple[Any, Stated]]:
    """Yield (None, what is stated first), and each rule that applies with what is stated after it."""
    found: tuple[Any, Stated] | None = (None, stated(swept))
    while found is not None:
        yield found
        now = found[1]
        found = next(((rule, new) for rule in RULES if (new := rule(now)) is not None), None)

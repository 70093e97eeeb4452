"""The six rules of the board: how the swept dual becomes what a lecturer writes, each with its proof.

A rule takes what is stated and returns an equivalent statement, or None where it does not apply. The rules
are `minus_rest`, `log_sum_exp`, `positive_part`, `floor` and `absorbed`; the sixth, the sum over i, is one of
writing alone (`rendering.gathered`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import cvxpy as cp
import numpy as np
from cvxpy.constraints import PSD, Equality, Inequality
from cvxpy.constraints.constraint import Constraint

from kernelopt.duality.adjoints import value_of
from kernelopt.duality.algebra import (
    coefficient,
    flattened,
    is_known,
    scaled,
    sum_of,
    uses,
    variable_in,
)
from kernelopt.duality.equations import CONES, Equation, Swept, symmetrised
from kernelopt.duality.lagrangian import Term, total
from kernelopt.duality.squares import Excess, PositivePart, positive_part_of
from kernelopt.language.risk import Risk
from kernelopt.structure.structure import implies
from kernelopt.structure.trees import replaced

INSIDE = ("entr", "log", "log_det", "tr_inv", "Risk")  # the domain lies in the cone of a signed argument
POSITIVE = ("log", "log1p", "log_det", "exp")  # the cost is finite only where y is positive


@dataclass(frozen=True, eq=False)
class Row:
    """The gradient's equation of a variable: the sum of the parts is in the cone of its kind."""

    equation: Equation
    parts: tuple[cp.Expression, ...]

    def stated(self) -> Constraint:
        """Return the constraint."""
        if self.equation.special:
            return self.equation.constraint
        v = self.equation.variable
        found = CONES[self.equation.kind](symmetrised(v, sum_of(self.parts, v)))
        return found.set_label(self.equation.constraint.label)


@dataclass(frozen=True, eq=False)
class Stated:
    """A dual as it stands on the board.

    Attributes
    ----------
    swept : Swept
    value : tuple of cvxpy expressions
        The terms of the maximum.
    rows : tuple of Row
    constraints : tuple of cvxpy constraints
        The domains of the terms and the cones of the multipliers.
    gone : dict from variable id to (variable, expression or None)
        The variables that are no longer there, with what they are equal to, None where that is no expression.
    hidden : dict from variable id to PositivePart
        The matrices P of which a `PositivePart` is the minimum. They are not written.
    """

    swept: Swept
    value: tuple[cp.Expression, ...]
    rows: tuple[Row, ...]
    constraints: tuple[Constraint, ...]
    gone: dict[int, tuple[cp.Variable, Any]] = field(default_factory=dict)
    hidden: dict[int, PositivePart] = field(default_factory=dict)

    def problem(self) -> cp.Problem:
        """Return the maximum as a problem."""
        value = total(list(self.value)) if self.value else cp.Constant(0.0)
        return cp.Problem(cp.Maximize(value), [*self.constraints, *(row.stated() for row in self.rows)])

    def keeps_dpp(self) -> bool:
        """Whether no product of parameters has come about, so that new values need no new dual."""
        problem = self.problem()
        return not problem.parameters() or bool(problem.is_dpp())

    def without(self, gone: Row | Constraint) -> Stated:
        """Return the dual without a gradient's equation, or another constraint."""
        rows, constraints = (tuple(c for c in cs if c is not gone) for cs in (self.rows, self.constraints))
        return replace(self, rows=rows, constraints=constraints)

    def with_variable(self, v: cp.Variable, e: cp.Expression, label: str | None = None) -> Stated:
        """Return the dual with an expression in the place of a variable.

        Constraints in which that changes something get the label, where there is one.
        """
        memo: dict[int, Any] = {id(v): e}

        def changed(c: Any) -> Any:
            args = [replaced(arg, memo) for arg in c.args]
            if all(new is old for new, old in zip(args, c.args, strict=True)):
                return c
            return c.copy(args).set_label(label or c.label or "") if label or c.label else c.copy(args)

        value = tuple(replaced(part, memo) for part in self.value)
        rows = tuple(replace(row, parts=tuple(replaced(p, memo) for p in row.parts)) for row in self.rows)
        gone = {k: (w, d if d is None else replaced(d, memo)) for k, (w, d) in self.gone.items()}
        constraints = tuple(map(changed, self.constraints))
        return replace(self, value=value, rows=rows, constraints=constraints, gone=gone | {v.id: (v, e)})

    def with_value(self, new: Sequence[cp.Expression], *gone: cp.Variable) -> Stated:
        """Return the dual with new terms in the place of the terms of variables that are gone."""
        kept = [part for part in self.value if not any(uses([part], v) for v in gone)]
        return replace(self, value=(*new, *kept), gone=self.gone | {v.id: (v, None) for v in gone})


class Solvable(NamedTuple):
    """A gradient's equation k y + rest, in which the term with <y, argument> brings y, and no other has y."""

    row: Row
    y: cp.Variable
    k: float
    rest: list[cp.Expression]
    term: Term
    argument: cp.Expression


def stated(swept: Swept) -> Stated:
    """Return the swept dual as it stands before the first rule."""
    found = swept.lagrangian
    rows = tuple(Row(e, tuple(term for part in e.parts for term in flattened(part))) for e in swept.equations)
    constraints = [c for t in found.terms for c in t.domain] + found.cones
    return Stated(swept, tuple(swept.value), rows, tuple(constraints))


def solvable(state: Stated) -> Iterator[Solvable]:
    """Yield the gradient's equations that determine the variable y of a term."""
    owners = [(coefficient(y)[1], t, a) for t in state.swept.lagrangian.terms for y, a in t.pairs]
    for row in state.rows:
        for j, part in enumerate(row.parts if not row.equation.special else ()):
            k, y = coefficient(part)
            found = next(((t, a) for v, t, a in owners if v is y and isinstance(y, cp.Variable)), None)
            rest = [p for n, p in enumerate(row.parts) if n != j]
            others = [p for r in state.rows if r is not row for p in r.parts]
            if found and y.shape == row.equation.variable.shape and not uses([*rest, *others], y):
                yield Solvable(row, y, k, rest, *found)


def minus_rest(state: Stated) -> Stated | None:
    """Y := -rest, where the gradient by x is y + rest.

    For a free x the equation y + rest = 0 determines y, and y occurs in no other equation. For a symmetric x
    it determines the symmetric part, and y is symmetric by itself. For x in a cone the gradient need only be
    in the dual cone. But where the term of y has the argument x, and a domain that lies in the cone, x in the
    cone is said twice, and the problem without the second statement has the same optimum and the equation
    y + rest = 0. The signs of y become constraints.
    """
    for row, y, k, rest, term, a in solvable(state):
        x, label, kind = row.equation.variable, row.equation.constraint.label, type(term.atom).__name__
        weighed = value_of(term.weight) is not None
        if row.equation.kind != "free" and not (kind in INSIDE and a is x and weighed):
            continue
        plain = sum_of(rest, x)
        whole = symmetrised(x, plain)
        e = scaled(-1 / k, [whole], x)
        found = state.without(row).with_variable(y, e, label)
        if (whole is not plain and not y.is_symmetric()) or not found.keeps_dpp():
            continue
        signs = y.attributes["nonneg"] or y.attributes["PSD"]
        if signs and not (kind in POSITIVE and weighed):
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
    for row, y, k, rest, term, a in solvable(state):
        weight = value_of(term.weight)
        entropy = type(term.atom).__name__ == "entr" and a is row.equation.variable and abs(k) == 1
        if (
            not entropy
            or weight is None
            or np.any(weight != 1)
            or row.equation.kind not in ("free", "nonneg")
        ):
            continue
        for part in rest:
            c, nu = variable_in(part)
            if nu is None or nu.attributes["nonneg"] or nu.size != 1:
                continue
            others = [p for p in rest if p is not part]
            elsewhere = [
                *others,
                *state.constraints,
                *(p for r in state.rows if r is not row for p in r.parts),
            ]
            sums = [variable_in(part) for part in state.value if uses([part], nu)]
            if uses(elsewhere, nu) or len(sums) != 1 or sums[0][1] is not nu or sums[0][0] / c >= 0:
                continue
            s = -sums[0][0] / c
            smooth = cp.log_sum_exp(scaled(-1.0, others, y))
            new = [-smooth] if s == 1 else [-s * smooth, cp.Constant(s * np.log(s))]
            return state.without(row).with_value(new, y, nu)
    return None


def positive_part(state: Stated) -> Stated | None:
    """A square over a cone becomes a positive part.

    The minimum of c |x - M|^2 + <rest, x> over x in the cone of non-negative vectors or PSD matrices is taken
    at the projection of G / (2 c) on it, with G = 2 c M - rest, and is c |M|^2 - |G_+|^2 / (4 c): the cone is
    its own dual, so that G = G_+ - (-G)_+ with orthogonal parts.
    """
    for row, y, _, rest, term, a in solvable(state):
        x, weight, kind = row.equation.variable, value_of(term.weight), row.equation.kind
        square = type(term.atom).__name__ == "quad_over_lin" and getattr(term.atom, "axis", None) is None
        below = value_of(term.atom.args[1]) if square and kind in ("PSD", "nonneg") else None
        shifts = [t for t in flattened(a) if t is not x]
        if (
            below is None
            or weight is None
            or len(flattened(a)) != len(shifts) + 1
            or not all(map(is_known, shifts))
        ):
            continue
        c = float(weight.flat[0]) / float(below.flat[0])
        M = sum((np.broadcast_to(value_of(t), x.shape) for t in shifts), start=np.zeros(x.shape))  # a = x + M
        G = symmetrised(x, scaled(-1.0, [cp.Constant(2 * c * M)] * bool(M.any()) + rest, x))
        part = cp.sum_squares(cp.pos(G))
        if kind == "PSD":
            part, above = positive_part_of(G, state.swept.new.name("P"))
            constraints = (*state.constraints, above.set_label("positive part"))
            state = replace(state, constraints=constraints, hidden={**state.hidden, part.P.id: part})
        value = [scaled(-1 / (4 * c), [part], x)]
        value += [scaled(c, [cp.sum_squares(cp.Constant(M))], x)] if M.any() else []
        return state.without(row).with_value(value, y)
    return None


def floor(state: Stated) -> Stated | None:
    """A variable v with the floor v >= e becomes e, where e is convex, not affine, and free of v.

    If all else stays convex by the rules of cvxpy with e in the place of v, it is monotone in v: these rules
    accept a convex e inside of a function only where the function does not decrease, and in a maximum does
    not increase. So no larger v is better, and v = e.
    """
    stated = [(c, c, None) for c in state.constraints]
    stated += [(row, row.stated(), row.equation.constraint.label) for row in state.rows]
    for gone, c, label in stated:
        for v, e in floors(c):
            rest = state.without(gone)
            cones = [q for q in rest.problem().constraints if not isinstance(q, Inequality | Equality | PSD)]
            if uses(cones, v) or (v.attributes["nonneg"] and not e.is_nonneg()):
                continue
            found = rest.with_variable(v, e, label)
            if all(p.is_concave() for p in found.value) and found.problem().is_dcp() and found.keeps_dpp():
                return found
    return None


def floors(c: Any) -> Iterator[tuple[cp.Variable, cp.Expression]]:
    """Yield (v, e) where a constraint says v >= e with a convex e that is not affine."""
    terms = [*flattened(c.args[0], -1.0), *flattened(c.args[1])] if isinstance(c, Inequality) else []
    for term in terms:
        k, v = variable_in(term)
        others = [t for t in terms if t is not term and (not is_known(t) or value_of(t).any())]
        if v is None or k <= 0 or v.shape != c.expr.shape or not others or uses(others, v):
            continue
        e = scaled(-1 / k, others, v)
        if e.shape == v.shape and e.is_convex() and not e.is_affine():
            yield v, e


def absorbed(state: Stated) -> Stated | None:
    """The multiplier Z of K >> 0 is absorbed into S.

    A risk of weight c has the term -c/2 <S, K> with S >> alpha alpha', and K >> 0 has -<Z, K> with Z >> 0.
    Both are -c/2 <S + 2 Z / c, K>, and S + 2 Z / c may be any matrix above alpha alpha'. So Z := 0 loses
    nothing, and an optimal Z may be read as c/2 (S - alpha alpha').
    """
    for multiplier in state.swept.lagrangian.multipliers:
        cone = multiplier.user and isinstance(multiplier.constraint, PSD) and len(multiplier.variables) == 1
        for term in (
            state.swept.lagrangian.terms if cone and multiplier.variables[0].id not in state.gone else ()
        ):
            (Z,), K, weight = multiplier.variables, multiplier.constraint.args[0], value_of(term.weight)
            kernels = term.atom.learner.kernels if isinstance(term.atom, Risk) and weight is not None else ()
            if any(implies(K, kernel) and implies(kernel, K) for kernel in kernels):
                S, alpha = (next(v for v in term.variables if v.name().startswith(n)) for n in ("S", "alpha"))
                more = K.shape[0] - alpha.size
                whole = cp.hstack([alpha, np.zeros(more)]) if more else alpha
                done = state.with_variable(Z, cp.Constant(np.zeros(Z.shape)))
                return replace(done, gone={**done.gone, Z.id: (Z, float(weight) / 2 * Excess(S, (S, whole)))})
    return None


RULES = (absorbed, floor, log_sum_exp, minus_rest, positive_part)


def on_the_board(swept: Swept) -> Iterator[tuple[Any, Stated]]:
    """Yield the rules in the order in which they apply, each with what is stated after it."""
    state: Stated | None = stated(swept)
    while state is not None:
        now = state
        for rule in RULES:
            state = rule(now)
            if state is not None:
                yield rule, state
                break

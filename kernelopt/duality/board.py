"""The six rules of the board: how the swept dual becomes what a lecturer writes, each with its proof.

A rule takes what is stated and returns an equivalent statement, or None where it does not apply. The rules
are `minus_rest`, `log_sum_exp`, `positive_part`, `floor` and `absorbed`; the sixth, the sum over i, is one of
writing alone (`rendering.gathered`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import cvxpy as cp
import numpy as np
from cvxpy.constraints import PSD, Equality, Inequality
from cvxpy.constraints.constraint import Constraint

from kernelopt.duality.adjoints import uniform, value_of
from kernelopt.duality.equations import Equation, Swept, is_symmetric
from kernelopt.duality.lagrangian import Multiplier, Term, total
from kernelopt.duality.squares import Excess, PositivePart, positive_part_of
from kernelopt.language.risk import Risk
from kernelopt.structure.structure import implies
from kernelopt.structure.trees import replaced

INSIDE = (
    "entr",
    "log",
    "log_det",
    "tr_inv",
    "Risk",
)  # atoms whose domain lies in the cone of a signed argument


@dataclass(frozen=True, eq=False)
class Row:
    """The gradient's equation of a variable: the sum of the parts is in the cone of its kind."""

    equation: Equation
    parts: tuple[cp.Expression, ...]
    kind: str

    @property
    def gradient(self) -> cp.Expression:
        """The sum of the parts, of which the symmetric part counts for a symmetric variable."""
        G = total(list(self.parts)) if self.parts else cp.Constant(np.zeros(self.equation.variable.shape))
        v = self.equation.variable
        if v.ndim == 2 and v.size > 1 and v.is_symmetric() and not is_symmetric(G):
            return (G + G.T) / 2
        return G

    def stated(self) -> Constraint:
        """Return the constraint."""
        if self.equation.special:
            return self.equation.constraint
        G, label = self.gradient, self.equation.constraint.label
        made = {
            "nonneg": lambda: G >= 0,
            "nonpos": lambda: G <= 0,
            "PSD": lambda: PSD(G),
            "NSD": lambda: PSD(-G),
        }
        return made.get(self.kind, lambda: G == 0)().set_label(label)


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
    gone: dict[int, tuple[cp.Variable, Any]]
    hidden: dict[int, PositivePart] = field(default_factory=dict)

    def problem(self) -> cp.Problem:
        """Return the maximum as a problem."""
        value = total(list(self.value)) if self.value else cp.Constant(0.0)
        return cp.Problem(cp.Maximize(value), [*self.constraints, *(row.stated() for row in self.rows)])

    def with_variable(self, v: cp.Variable, e: cp.Expression) -> Stated:
        """Return the dual with an expression in the place of a variable, and that it has its signs."""
        memo: dict[int, Any] = {id(v): e}
        value = tuple(replaced(part, memo) for part in self.value)
        rows = tuple(replace(r, parts=tuple(replaced(p, memo) for p in r.parts)) for r in self.rows)
        constraints = tuple(relabelled(c, memo) for c in self.constraints)
        gone = {key: (w, None if d is None else replaced(d, memo)) for key, (w, d) in self.gone.items()}
        return replace(self, value=value, rows=rows, constraints=constraints, gone={**gone, v.id: (v, e)})


def relabelled(c: Any, memo: dict[int, Any]) -> Any:
    """Return a constraint with nodes replaced and its label."""
    args = [replaced(arg, memo) for arg in c.args]
    if all(new is old for new, old in zip(args, c.args, strict=True)):
        return c
    copy = c.copy(args)
    return copy.set_label(c.label) if c.label else copy


def stated(swept: Swept) -> Stated:
    """Return the swept dual as it stands before the first rule."""
    found = swept.lagrangian
    rows = tuple(Row(e, tuple(flattened(total(e.parts))) if e.parts else (), e.kind) for e in swept.equations)
    constraints = [c for t in found.terms for c in t.domain] + found.cones
    return Stated(swept, tuple(swept.value), rows, tuple(constraints), {})


def flattened(e: Any, sign: float = 1.0) -> list[cp.Expression]:
    """Return the terms of a sum, with the sign inside."""
    kind = type(e).__name__
    if kind == "AddExpression" and all(a.shape == e.shape for a in e.args):
        return [term for a in e.args for term in flattened(a, sign)]
    if kind == "NegExpression":
        return flattened(e.args[0], -sign)
    return [e if sign > 0 else -e]


def coefficient(part: Any) -> tuple[float, Any]:
    """Return (k, e) with part = k e for a number k."""
    kind = type(part).__name__
    if kind == "NegExpression":
        k, e = coefficient(part.args[0])
        return -k, e
    if kind in ("multiply", "DivExpression"):
        for i, a in enumerate(part.args):
            value, other = value_of(a), part.args[1 - i]
            one = value is not None and value.any() and np.ptp(value) == 0 and other.shape == part.shape
            if one and (kind == "multiply" or i == 1):
                k, e = coefficient(other)
                c = float(value.flat[0])
                return (k * c if kind == "multiply" else k / c), e
    return 1.0, part


def uses(parts: Any, v: cp.Variable) -> int:
    """Return how many of some expressions or constraints have a variable."""
    return sum(any(w.id == v.id for w in part.variables()) for part in parts)


def owner(state: Stated, v: cp.Variable) -> tuple[Term, cp.Expression] | None:
    """Return the term that has brought a variable, and the argument that it is the weight of."""
    for term in state.swept.lagrangian.terms:
        for y, a in term.pairs:
            if coefficient(y)[1] is v:
                return term, a
    return None


def solved_for(state: Stated) -> Iterator[tuple[int, cp.Variable, float, list[cp.Expression], Term, Any]]:
    """Yield (row, y, k, rest, term, argument) where k y + rest is a gradient and no other row has y."""
    for i, row in enumerate(state.rows):
        if row.equation.special:
            continue
        for j, part in enumerate(row.parts):
            k, y = coefficient(part)
            if not isinstance(y, cp.Variable) or y.shape != row.equation.variable.shape:
                continue
            found = owner(state, y)
            others = [p for n, p in enumerate(row.parts) if n != j]
            rest_rows = [p for r in state.rows if r is not row for p in r.parts]
            if found is not None and not uses(others, y) and not uses(rest_rows, y):
                yield i, y, k, others, *found


def without_row(state: Stated, i: int) -> Stated:
    """Return the dual without one gradient's equation."""
    return replace(state, rows=tuple(r for n, r in enumerate(state.rows) if n != i))


def minus_rest(state: Stated) -> Stated | None:
    """Y := -rest, where the gradient by x is y + rest.

    For a free x the equation y + rest = 0 determines y, and y occurs in no other equation. For a symmetric
    x it
    determines the symmetric part, and y is symmetric by itself. For x in a cone the gradient need only be
    in the dual cone. But where the term of y has the argument x, and a domain that lies in the cone, x in the
    cone is
    said twice, and the problem without the second statement has the same optimum and the equation y + rest
    = 0. The signs of y become constraints.
    """
    for i, y, k, others, term, a in solved_for(state):
        row = state.rows[i]
        x = row.equation.variable
        within = type(term.atom).__name__ in INSIDE and a is x and value_of(term.weight) is not None
        if row.kind != "free" and not within:
            continue
        rest = total(others) if others else cp.Constant(np.zeros(x.shape))
        if x.ndim == 2 and x.size > 1 and x.is_symmetric() and not is_symmetric(rest):
            if not y.is_symmetric():
                continue
            rest = (rest + rest.T) / 2
        e = scaled(-1 / k, rest)
        found = without_row(state, i).with_variable(y, e)
        label = row.equation.constraint.label
        if not keeps_dpp(found):
            continue
        found = owned(found, state, y, label)
        if y.attributes["nonneg"] or y.attributes["PSD"]:
            sign = (e >= 0) if y.attributes["nonneg"] else PSD(e)
            if not implied_by_log(term):
                found = replace(found, constraints=(*found.constraints, sign.set_label(label)))
        return found
    return None


def keeps_dpp(state: Stated) -> bool:
    """Whether no product of parameters has come about, so that new values need no new dual."""
    problem = state.problem()
    return not problem.parameters() or bool(problem.is_dpp())


def implied_by_log(term: Term) -> bool:
    """Whether the cost of a term is finite only where its variable is positive."""
    return (
        type(term.atom).__name__ in ("log", "log1p", "log_det", "exp") and value_of(term.weight) is not None
    )


def owned(found: Stated, before: Stated, y: cp.Variable, label: str) -> Stated:
    """Return the dual in which the domain of a term whose y is gone has the label of x."""
    renamed = [
        new.copy(new.args).set_label(label) if new is not old and uses([old], y) else new
        for new, old in zip(found.constraints, before.constraints, strict=True)
    ]
    return replace(found, constraints=tuple(renamed))


def scaled(k: float, e: cp.Expression) -> cp.Expression:
    """Return k e, without a product by one or minus one, each term by itself."""
    terms = []
    for term in flattened(e):
        c, inner = coefficient(term)
        terms.append(inner if k * c == 1 else -inner if k * c == -1 else (k * c) * inner)
    return total(terms)


def log_sum_exp(state: Stated) -> Stated | None:
    """An entropy over 1'p = 1 becomes log sum exp.

    With the multiplier nu of 1'p = s > 0 the dual has -sum_i exp(e_i - nu - 1) - s nu, where e is minus
    the rest
    of the gradient. Its derivative by nu vanishes where exp(-nu - 1) sum_i exp(e_i) = s, and the value
    there is
    -s log sum_i exp(e_i) + s log s.
    """
    for i, y, k, others, term, a in solved_for(state):
        row = state.rows[i]
        if type(term.atom).__name__ != "entr" or a is not row.equation.variable or abs(k) != 1:
            continue
        weight = value_of(term.weight)
        if weight is None or np.any(weight != 1) or row.kind not in ("free", "nonneg"):
            continue
        for j, part in enumerate(others):
            c, w = coefficient(part)
            nu = uniform(w)
            scale, nu = (1.0, None) if nu is None else coefficient(nu)
            c *= scale
            if not isinstance(nu, cp.Variable) or not c or nu.attributes["nonneg"] or nu.size != 1:
                continue
            size = slope(state, nu)
            rest = [p for n, p in enumerate(others) if n != j]
            if (
                size is None
                or uses(rest, nu)
                or uses([p for r in state.rows if r is not row for p in r.parts], nu)
            ):
                continue
            s = -size / c
            if s <= 0 or uses(state.constraints, nu):
                continue
            e = scaled(-1.0, total(rest)) if rest else cp.Constant(np.zeros(y.shape))
            constant = [cp.Constant(s * np.log(s))] if s != 1 else []
            kept = [v for v in state.value if not uses([v], nu) and not uses([v], y)]
            new = -cp.log_sum_exp(e) if s == 1 else -s * cp.log_sum_exp(e)
            found = without_row(state, i)
            gone = {**state.gone, y.id: (y, None), nu.id: (nu, None)}
            return replace(found, value=(new, *constant, *kept), gone=gone)
    return None


def slope(state: Stated, nu: cp.Variable) -> float | None:
    """Return k where the value has k nu beside terms without nu; None where it has another function of nu."""
    parts = [v for v in state.value if uses([v], nu) and v.is_affine()]
    if len(parts) != 1 or any(v.id != nu.id for v in parts[0].variables()) or parts[0].parameters():
        return None
    old = nu.value
    values = []
    for at in (0.0, 1.0):
        nu.save_value(np.full(nu.shape, at))
        values.append(float(np.ravel(parts[0].value)[0]))
    nu.save_value(old)
    return values[1] - values[0] if values[0] == 0 else None


def positive_part(state: Stated) -> Stated | None:
    """A square over a cone becomes a positive part.

    The minimum of c |x - M|^2 + <rest, x> over x in the cone of non-negative vectors or PSD matrices is
    taken at
    the projection of G / (2 c) on it, with G = 2 c M - rest, and is c |M|^2 - |G_+|^2 / (4 c): the cone is
    its own dual, so that G = G_+ - (-G)_+ with orthogonal parts.
    """
    for i, y, _, others, term, a in solved_for(state):
        row = state.rows[i]
        x, atom, weight = row.equation.variable, term.atom, value_of(term.weight)
        square = type(atom).__name__ == "quad_over_lin" and row.kind in ("PSD", "nonneg")
        below = value_of(atom.args[1]) if square else None
        if below is None or weight is None or getattr(atom, "axis", None) is not None or a.parameters():
            continue
        c = float(weight.flat[0]) / float(below.flat[0])
        M = shift(a, x)
        if M is None or not isinstance(total([y]), cp.Variable):
            continue
        rest = total(others) if others else cp.Constant(np.zeros(x.shape))
        G = scaled(-1.0, rest) if others else rest
        if M.any():
            G = cp.Constant(2 * c * M) + G if others else cp.Constant(2 * c * M)
        if x.ndim == 2 and x.is_symmetric() and not is_symmetric(G):
            G = (G + G.T) / 2
        part = cp.sum_squares(cp.pos(G))
        if row.kind == "PSD":
            part, above = positive_part_of(G, state.swept.new.name("P"))
            constraints = (*state.constraints, above.set_label("positive part"))
            state = replace(state, constraints=constraints, hidden={**state.hidden, part.P.id: part})
        value = [-part / (4 * c) if c != 0.25 else -part]
        value += [c * cp.sum_squares(cp.Constant(M))] if M.any() else []
        kept = [v for v in state.value if not uses([v], y)]
        found = without_row(state, i)
        return replace(found, value=(*value, *kept), gone={**state.gone, y.id: (y, None)})
    return None


def shift(a: cp.Expression, x: cp.Variable) -> Any:
    """Return M where a = x - M, None where a is another function."""
    terms = flattened(a)
    if sum(term is x for term in terms) != 1 or any(not t.is_constant() for t in terms if t is not x):
        return None
    M = np.zeros(x.shape)
    for t in terms:
        if t is not x:
            M = M - np.broadcast_to(value_of(t), x.shape)
    return M


def floor(state: Stated) -> Stated | None:
    """A variable v with the floor v >= e becomes e, where e is convex, not affine, and free of v.

    If all else stays convex by the rules of cvxpy with e in the place of v, it is monotone in v: these rules
    accept a convex e inside of a function only where the function does not decrease, and in a maximum does
    not increase. So no larger v is better, and v = e.
    """
    everything = [*state.constraints, *(row.stated() for row in state.rows)]
    memory = {id(c): n for n, c in enumerate(everything)}
    for c in everything:
        for v, e in floors(c):
            conic = [q for q in everything if not isinstance(q, Inequality | Equality | PSD)]
            if uses(conic, v) or (v.attributes["nonneg"] and not e.is_nonneg()):
                continue
            n = memory[id(c)]
            count = len(state.constraints)
            rest = (
                replace(state, constraints=state.constraints[:n] + state.constraints[n + 1 :])
                if n < count
                else without_row(state, n - count)
            )
            found = rest.with_variable(v, e)
            if all(p.is_concave() for p in found.value) and found.problem().is_dcp() and keeps_dpp(found):
                label = c.label if n >= count else None
                return owned(found, rest, v, label) if label else found
    return None


def floors(c: Any) -> Iterator[tuple[cp.Variable, cp.Expression]]:
    """Yield (v, e) where a constraint says v >= e with a convex e that is not affine."""
    if not isinstance(c, Inequality):
        return
    terms = [*flattened(c.args[0], -1.0), *flattened(c.args[1])]
    for j, term in enumerate(terms):
        k, v = coefficient(term)
        v = uniform(v) if not isinstance(v, cp.Variable) else v
        if not isinstance(v, cp.Variable) or k <= 0 or v.shape != c.expr.shape:
            continue
        others = [t for n, t in enumerate(terms) if n != j and not is_zero(t)]
        if not others or uses(others, v):
            continue
        e = scaled(-1 / k, total(others))
        if e.shape == v.shape and e.is_convex() and not e.is_affine():
            yield v, e


def is_zero(e: cp.Expression) -> bool:
    """Whether an expression is the constant zero."""
    value = value_of(e)
    return value is not None and not value.any()


def absorbed(state: Stated) -> Stated | None:
    """The multiplier Z of K >> 0 is absorbed into S.

    A risk of weight c has the term -c/2 <S, K> with S >> alpha alpha', and K >> 0 has -<Z, K> with Z >> 0.
    Both are -c/2 <S + 2 Z / c, K>, and S + 2 Z / c may be any matrix above alpha alpha'. So Z := 0 loses
    nothing, and an optimal Z may be read as c/2 (S - alpha alpha').
    """
    found = state.swept.lagrangian
    for multiplier in found.multipliers:
        if (
            not multiplier.user
            or type(multiplier.constraint).__name__ != "PSD"
            or len(multiplier.variables) != 1
        ):
            continue
        (Z,) = multiplier.variables
        if Z.id in state.gone:
            continue
        pair = risk_of(multiplier, found.terms)
        if pair is None:
            continue
        zero = cp.Constant(np.zeros(Z.shape))
        done = state.with_variable(Z, zero)
        return replace(done, gone={**done.gone, Z.id: (Z, pair)})
    return None


def risk_of(multiplier: Multiplier, terms: list[Term]) -> cp.Expression | None:
    """Return c/2 (S - alpha alpha') for a risk whose kernel is the K of K >> 0; None where there is none."""
    K = multiplier.constraint.args[0]
    for term in terms:
        weight = value_of(term.weight)
        if not isinstance(term.atom, Risk) or weight is None:
            continue
        for kernel in term.atom.learner.kernels:
            if not (implies(K, kernel) and implies(kernel, K)):
                continue
            S = next(v for v in term.variables if v.name().startswith("S"))
            alpha: Any = next(v for v in term.variables if v.name().startswith("alpha"))
            more = K.shape[0] - alpha.size
            return float(weight) / 2 * Excess(S, (S, cp.hstack([alpha, np.zeros(more)]) if more else alpha))
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

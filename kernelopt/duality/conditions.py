"""The conditions of Karush, Kuhn and Tucker of a problem that was swept, at the values of its variables.

The sweep takes the Lagrangian apart. So at all values the objective less the dual function is the sum of

* u g(a) + cost - <y, a> over the terms,
* minus what a constraint adds to the Lagrangian, <multiplier, slack>, over the constraints,
* <gradient, x> over the variables.

At feasible points no part is negative, and all are zero where the gap is. `Dual.check` has the largest
residual of each kind, `kkt_table` all of them, and `derive` the sum.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from operator import add
from typing import Any, NamedTuple

import cvxpy as cp
import numpy as np
from cvxpy.atoms.affine.add_expr import AddExpression
from cvxpy.atoms.affine.affine_atom import AffAtom
from cvxpy.atoms.affine.promote import Promote
from cvxpy.atoms.affine.sum import Sum
from cvxpy.atoms.affine.unary_operators import NegExpression
from cvxpy.atoms.atom import Atom
from cvxpy.constraints import PSD
from cvxpy.constraints.constraint import Constraint

from kernelopt.duality.adjoints import dense
from kernelopt.duality.equations import CONES, Equation, kind_of
from kernelopt.duality.lagrangian import Term, pairing
from kernelopt.duality.solving import ACCURATE
from kernelopt.duality.statement import SIGNS
from kernelopt.duality.sweep import Swept, term_name
from kernelopt.language.risk import Risk
from kernelopt.structure.affine import affine, flat
from kernelopt.structure.enclosure import violation
from kernelopt.structure.structure import ENTRYWISE
from kernelopt.structure.trees import nodes, replaced, with_args
from kernelopt.structure.zero_weights import ROUNDING_SHARE, senses, sizes_of_terms

KINDS = ("primal feasibility", "dual feasibility", "stationarity", "complementarity", "subgradient", "gap")
FAR = 1e-2  # of the largest entry, or of one: a point is no solution where a constraint is further away


def largest(value: Any) -> float:
    """Return the largest absolute entry, zero of no entries."""
    return float(np.max(np.abs(dense(value)), initial=0.0))


def violated(constraint: Constraint) -> float:
    """Return the largest violation of an entry, or a cone, of a constraint."""
    return largest(violation(constraint))


def magnitude(node: Any) -> float:
    """Return the largest entry of an expression; of a sum or a constraint the largest of its parts."""
    if isinstance(node, AddExpression | NegExpression | Sum | Promote | Constraint):
        return max((magnitude(arg) for arg in node.args), default=0.0)
    return 0.0 if node.value is None else largest(node.value)


def measured(e: cp.Expression) -> float:
    """Return the value of a scalar expression inside of its domain, nan where a variable has none."""
    return float(np.sum(dense(inside(e).value)))


@np.errstate(all="ignore")  # cvxpy evaluates atoms outside of their domains
def inside(root: Any) -> Any:
    """Return an expression, or a constraint, with atoms whose arguments are inside of their domains.

    Solvers place points in cones up to a tolerance, and an entropy at -1e-10 is infinite. So arguments that
    are outside of the domain of an atom by at most `ACCURATE` of the largest entry, or of one, are moved
    inside by as much; of a matrix, its eigenvalues are. A risk has its value.
    """
    memo: dict[int, Any] = {}
    for node in reversed(list(nodes(root))):  # arguments first
        if isinstance(node, Risk):
            memo[id(node)] = cp.Constant(node.value)
        elif isinstance(node, Atom) and not isinstance(node, AffAtom):
            here = replaced(node, memo)
            domain, size = here._domain(), max(1.0, *(largest(a.value) for a in here.args))
            off, matrix = max(map(violated, domain), default=0.0), any(isinstance(c, PSD) for c in domain)
            if 0 < off <= ACCURATE * size:
                by = [2 * off * (np.eye(*a.shape) if matrix and a.ndim == 2 else 1.0) for a in here.args]
                memo[id(node)] = with_args(here, list(map(add, here.args, by)))
    return replaced(root, memo)


def off_by(constraint: Any) -> float:
    """Return the violation of a constraint, or its distance where no point near by meets it and the signs.

    The violation of 1e-9 x <= 1e-9 at x = 2 is 1e-9, and the distance is 1. It counts where it is above
    `FAR` of the largest entry, or of one. Non-negative variables stay so. Coefficients that are rounding
    errors of a difference do not count.
    """
    found = violated(inside(constraint))
    read = affine(constraint.expr) if isinstance(constraint, ENTRYWISE) else None
    if read is None or not read.matrices:
        return found
    step = FAR * max(1.0, *(largest(v.value) for v in read.matrices))
    terms = sizes_of_terms(constraint.expr)
    for sense in senses(constraint):
        least, slope = sense * read.constant, np.finfo(float).tiny
        for v, matrix in read.matrices.items():
            exact = sense * matrix.multiply(abs(matrix) > ROUNDING_SHARE * terms.get(v, 0 * matrix))
            up, down, low = exact.maximum(0), exact.minimum(0), flat(v.value) - step
            room = np.maximum(low, 0.0) if v.is_nonneg() else low
            least = least + up @ room + down @ (low + 2 * step)
            slope = slope + up @ (room == low) - down @ np.ones(v.size)
        found = float(np.max((step + least / slope)[least > 0], initial=found))
    return found


class Condition(NamedTuple):
    """A condition of optimality with its residual.

    Attributes
    ----------
    kind : str
        "primal feasibility", "dual feasibility", "stationarity", "complementarity", "subgradient" or "gap".
    where : str
        The constraint, the variable or the term.
    residual : float
        How far from true the condition is, in the units of the problem; nan where it was not measured.
    scale : float
        The size of the numbers that the residual is the rest of.
    why_not : str
        Why it was not measured.
    """

    kind: str
    where: str
    residual: float
    scale: float = 1.0
    why_not: str = ""

    @property
    def relative(self) -> float:
        """The residual over the scale."""
        return self.residual / max(self.scale, np.finfo(float).tiny)


class Check(NamedTuple):
    """How well a pair of points satisfies the conditions of Karush, Kuhn and Tucker.

    Attributes
    ----------
    primal, dual : float
        The values of the two problems at the recovered point and at the dual one. At the border of the domain
        of an atom the recovered point is judged inside of it, up to 1e-6 of its largest entry, or of one.
    gap : float
        |primal - dual| / max(1, |primal|, |dual|).
    feasibility : float
        The largest violation of a constraint of the primal at the recovered point. It is the distance where a
        linear constraint, however small its coefficients, holds only if an entry moves by more than 0.01, or
        by a hundredth of the largest one.
    stationarity : float
        The largest violation of a constraint of the dual: that the gradient of the Lagrangian is zero or in a
        cone, and that multipliers are in theirs.
    complementarity : float
        The largest |<multiplier, slack>| over the constraints of the primal and the signs of its variables.
    """

    primal: float
    dual: float
    gap: float
    feasibility: float
    stationarity: float
    complementarity: float

    @property
    def error(self) -> float:
        """The largest of the gap, the feasibility and the relative product; infinite where one is nan."""
        priced = self.complementarity / max(1.0, abs(self.primal), abs(self.dual))
        return float(np.nan_to_num(np.max([self.gap, self.feasibility, priced]), nan=np.inf))


def checked(swept: Swept, dual: float) -> Check:
    """Return the largest residual of each kind; `dual` is the value of the dual of the minimisation."""
    primal, worst = objective(swept), dict.fromkeys(KINDS, 0.0)
    for c in conditions(swept, dual):
        worst[c.kind] = float(np.maximum(worst[c.kind], c.residual))  # nan where one is
    feasibility, domains, gradients, products, _, gap = worst.values()
    gap /= max(1.0, abs(primal), abs(dual))
    return Check(swept.sign * primal, swept.sign * dual, gap, feasibility, max(domains, gradients), products)


def conditions(swept: Swept, dual: float, size: float = 1.0, why_not: str = "") -> Iterator[Condition]:
    """Yield the conditions at the present values of all variables and multipliers.

    Parameters
    ----------
    swept : Swept
    dual : float
        The value of the dual function.
    size : float
        The scale of the numbers in the units of the objective.
    why_not : str
        Why there are no multipliers, empty where there are.
    """
    stated = [(m.name, m.constraint) for m in swept.stated]
    for name, c in [*stated, *signs(e.variable for e in swept.own)]:
        yield Condition("primal feasibility", name, off_by(c), magnitude(c))
    if why_not:
        yield from (Condition(kind, "all", np.nan, why_not=why_not) for kind in KINDS[1:])
        return
    own = {id(e.constraint) for e in swept.own}
    cones = [(c.label or "dual cone", c) for c in swept.problem.constraints if id(c) not in own]
    for name, c in [*cones, *signs(swept.problem.variables())]:
        yield Condition("dual feasibility", name, violated(c), magnitude(c))
    for e in swept.own:
        yield Condition("stationarity", name_of(e), violated(e.constraint), max(map(magnitude, e.parts)))
    for part in parts_of_gap(swept):
        if np.isfinite(part.residual) and part.kind != "stationarity":
            yield part._replace(residual=abs(part.residual), scale=size)
    yield Condition("gap", "objective - dual function", abs(objective(swept) - dual), size)


def objective(swept: Swept) -> float:
    """Return the objective of the minimisation at the present values."""
    return swept.sign * measured(swept.primal.objective.args[0])


def parts_of_gap(swept: Swept) -> list[Condition]:
    """Return the parts of the objective less the dual function, each with its sign.

    The cones of an atom without an entry, and the constraints inside of a risk, are no parts.
    """
    parts = [
        Condition("complementarity", m.name, -sum(measured(pairing(W, e)) for W, e in m.terms))
        for m in swept.stated
    ]
    for e in swept.own:
        product = float(np.sum(dense(e.gradient.value) * dense(e.variable.value)))
        kind = "stationarity" if e.kind == "free" else "complementarity"
        parts.append(Condition(kind, f"gradient by {name_of(e)}", product))
    for term in swept.terms:
        parts.append(Condition("subgradient", term_name(term.atom), weighed(term) - measured(term.bound)))
    return parts


def name_of(equation: Equation) -> str:
    """Return the name in print of the variable of a gradient's equation."""
    return str(equation.constraint.label).removeprefix("d/d ")


def weighed(term: Term) -> float:
    """Return u g(a) at the present values, zero where u is."""
    u, g = dense(term.weight.value), term.sign * dense(inside(term.atom).value)
    return float(np.sum(np.where(u == 0, 0.0, u * g)))


def signs(variables: Iterable[cp.Variable]) -> Iterator[tuple[str, Any]]:
    """Yield the cones in which variables are by their attributes."""
    for v in variables:
        if (kind := kind_of(v)) != "free":
            yield f"{v.name()} {SIGNS[kind][0]}", CONES[kind](v)

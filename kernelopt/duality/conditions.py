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
from typing import Any, NamedTuple

import cvxpy as cp
import numpy as np

from kernelopt.duality.equations import CONES, Equation, Swept, kind_of
from kernelopt.duality.lagrangian import Term, pairing
from kernelopt.duality.residuals import inside, magnitude, measured, off_by, violated
from kernelopt.duality.statement import SIGNS
from kernelopt.duality.sweep import term_name
from kernelopt.duality.symbols import dense

KINDS = ("primal feasibility", "dual feasibility", "stationarity", "complementarity", "subgradient", "gap")


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
    for term in swept.lagrangian.terms:
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

"""The steps from a problem to its dual, each with a check at a random point, or by solving."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import cvxpy as cp
import numpy as np
from cvxpy.constraints import Equality, Inequality

from kernelopt.duality.board import Stated
from kernelopt.duality.check import largest_violation, set_value
from kernelopt.duality.dual import Dual
from kernelopt.duality.naming import multiplier_tags, notation_of, stated_dual
from kernelopt.duality.primal import ExplicitRisk, primal_of
from kernelopt.duality.rendering import enumerated, listed
from kernelopt.duality.statement import Statement, constraint_lines, sign_lines
from kernelopt.duality.sweep import Multiplier, Term, pairing, total
from kernelopt.duality.symbols import dense
from kernelopt.duality.trials import (
    near_random,
    objective_at,
    pairing_at,
    residual,
    risk_residual,
    solved,
    value_at,
)
from kernelopt.duality.written import (
    PRODUCT,
    SUM,
    UNIT,
    Written,
    added,
    filled,
    inside,
    multiplied,
    name_of,
    negated,
)
from kernelopt.errors import KerneloptError
from kernelopt.structure.structure import Structure
from kernelopt.structure.trees import replaced

DRAWS = 10  # of random dual points, until the value of one is moderate
MODERATE = 1e3  # a value up to this multiple of the optimum
LONGEST = 50  # characters of a function in a title
RULES = {
    "minus_rest": "A gradient's equation is solved",
    "log_sum_exp": "An entropy over the simplex",
    "positive_part": "A square over a cone",
    "floor": "A variable is at its floor",
    "absorbed": "The multiplier of K >> 0 is absorbed",
}
WORDS = {
    "log_sum_exp": "the maximum over the multiplier of the sum is a log sum exp",
    "positive_part": "the minimum of a square over a cone is at a projection",
}
Parts = tuple[Statement, Statement, "tuple[Step, ...]", tuple[tuple[str, str], ...]]


@dataclass(frozen=True)
class Step:
    """A step of a derivation.

    Attributes
    ----------
    title : str
    lines : tuple of Written
        Formulas, and words in brackets.
    check : str
        What was computed.
    residual : float
        How far from true it was, relative to the size of the numbers; nan where it was not computed.
    why_not : str
        Why the step was not checked, empty where it was.
    """

    title: str
    lines: tuple[Written, ...]
    check: str
    residual: float
    why_not: str = ""

    @property
    def checked(self) -> str:
        """What was computed and how far from true it was, or why it was not computed."""
        if self.why_not:
            return f"not checked numerically, since {self.why_not}"
        return f"{self.check}: {self.residual:.1e}"


class Derivative:
    """The state of a derivation: a dual of a problem whose variables may be set, and its notation."""

    def __init__(self, dual: Dual) -> None:
        self.dual, self.made = dual, dual.made
        self.structure: Structure = dual.made.structure
        self.swept = dual.made.swept
        self.notation = notation_of(self.structure, dual)
        self.titles: dict[int, str] = {}
        self.notation.symbols.taken |= {v.name() for v in self.swept.problem.variables()}

    def parts(self, rng: np.random.Generator) -> Parts:
        """Return the primal, the dual, the steps with their checks, and the legend."""
        primal, explicit = primal_of(self.structure, self.notation, multiplier_tags(self.made))
        self.set_point(rng)
        steps = [self.first_step(explicit)]
        for risk, term in zip(explicit, self.structure.risks, strict=True):
            self.notation.substitute(term.node, least(risk))
            self.titles[id(term.node)] = "The minimum over " + listed(names_of(risk)).text
        steps += [self.term_step(term) for term in self.swept.lagrangian.terms]
        if self.swept.equations:
            steps.append(self.gradient_step())
        steps += [*self.rule_steps(), self.last_step()]
        stated = stated_dual(self.dual, self.notation, self.made)
        return primal, stated, tuple(steps), tuple(self.notation.symbols.printed().items())

    def set_point(self, rng: np.random.Generator) -> None:
        """Set random feasible points of the primal and the swept dual, or note why that is not possible."""
        self.why_not = ""
        try:
            self.optimum = self.dual.check()
            self.best = self.own_optimum()
            self.set_primal(rng)
            self.P = objective_at(self.structure)
            self.D = self.set_dual(rng, MODERATE * max(1.0, abs(self.optimum.dual)))
        except KerneloptError as error:
            self.why_not = str(error).rstrip(".")
            return
        self.L = self.structure.sign * value_at(self.structure.problem.objective.args[0])
        self.L += sum(
            pairing_at(W, e)
            for m in self.swept.lagrangian.multipliers
            for W, e in m.terms
            if m.user or own(m, self)
        )
        self.size = max(1.0, abs(self.P), abs(self.D), abs(self.L))

    def own_optimum(self) -> tuple[float, float]:
        """Return the optimum of the primal, solved by itself, and the violation of its point."""
        explicit = self.structure.explicit
        constraints = [*explicit.constraints, *self.structure.domains]
        sign = self.structure.sign
        value = solved(cp.Problem(cp.Minimize(sign * explicit.objective.args[0]), constraints))
        return value, largest_violation(constraints) if explicit.variables() else 0.0

    def set_primal(self, rng: np.random.Generator) -> None:
        """Set the variables of the problem, and the structure's copies, to a random feasible point."""
        structure = self.structure
        point = self.dual.recover_primal(assign=False)
        for variable, copy in zip(structure.user_variables, structure.variables, strict=True):
            set_value(copy, point[variable])
        if structure.variables:
            whole = cp.Problem(cp.Minimize(cp.sum([cp.sum(v) for v in structure.variables])))
            constraints = [*structure.explicit.constraints, *structure.domains]
            constraints += [c for c in structure.atom_domains if c.is_dcp()]
            near_random(whole, constraints, rng)
        for variable, copy in zip(structure.user_variables, structure.variables, strict=True):
            set_value(variable, dense(copy.value))

    def set_dual(self, rng: np.random.Generator, limit: float) -> float:
        """Set the multipliers to a random feasible point, and return its value as a minimisation.

        Near the border of the domain of a quotient |alpha|^2 / u the value is huge, and no check is accurate.
        There another point is drawn; after some draws the last one is taken.
        """
        problem = self.swept.problem
        optimum = [(variable, dense(variable.value)) for variable in problem.variables()]
        domain = [*problem.constraints, *(c for c in problem.objective.args[0].domain if c.is_dcp())]
        found = float(self.optimum.dual)
        for _ in range(DRAWS if optimum else 0):
            for variable, value in optimum:
                set_value(variable, value)
            near_random(problem, domain, rng)
            found = value_at(problem.objective.args[0])
            if abs(found) <= limit:
                break
        return found

    def step(self, title: str, lines: Sequence[Written], check: Callable[[], tuple[str, float]]) -> Step:
        """Return a step with its check, a function that returns the words and the residual.

        A check that no solver can compute says nothing of the step, which is returned with the reason.
        """
        why_not = self.why_not
        if not why_not:
            try:
                words, rest = check()
                if np.isfinite(rest):
                    return Step(title, tuple(lines), words, rest)
                why_not = f"its numbers are not finite ({words})"
            except KerneloptError as error:
                why_not = str(error).rstrip(".")
        return Step(title, tuple(lines), "", np.nan, why_not)

    def first_step(self, explicit: list[ExplicitRisk]) -> Step:
        """Return the step that states the Lagrangian."""

        def check() -> tuple[str, float]:
            words = f"at random feasible points it is {self.L:.6g}, at most the objective {self.P:.6g}"
            return words, max(0.0, self.L - self.P) / self.size

        return self.step("The Lagrangian", [filled("L = @0", "L = @0", self.lagrangian())], check)

    def lagrangian(self) -> Written:
        """Return the Lagrangian as written: the objective, and every multiplier times its constraint."""
        whole = self.notation(self.structure.lifted.objective.args[0])
        parts = [negated(whole) if self.structure.maximize else whole]
        lifted = self.structure.lifted.constraints
        for constraint, multiplier in zip(lifted, self.swept.lagrangian.multipliers, strict=False):
            parts += constraint_products(constraint, multiplier, self.notation)
        return added(parts)

    def term_step(self, term: Term) -> Step:
        """Return the step that states one term as a maximum over its dual variables."""
        given = {v.id for v in term.weight.variables()}
        variables = [v for v in term.variables if v.id not in given]
        name = self.notation(term.atom)
        factor = self.notation(cp.sum(term.weight) if term.weight.size == 1 else term.weight)
        whole = multiplied(factor, negated(name) if term.sign < 0 else name, *joint(term))
        parts = [pairing(y, a) for y, a in term.pairs]
        value = self.notation(
            total(
                [*parts, *([-term.cost] if isinstance(term.cost, cp.Expression) else [])]
                or [cp.Constant(0.0)]
            )
        )
        over = listed(enumerated([self.notation(v) for v in variables]))
        lines = [whole, filled("  = max over @0 of @1", r"\quad = \max_{@0}\ @1", over, value)]
        conditions = [line.whole for line in constraint_lines(term.domain, self.notation, {})]
        conditions += [line.whole for line in sign_lines(variables, self.notation)]
        lines += [filled("  where @0", r"\quad\mathrm{where}\ @0", listed(conditions))] if conditions else []
        shown = name.text if len(name.text) <= LONGEST else name.text[:LONGEST] + "..."
        title = self.titles.get(id(term.atom), f"The conjugate of {shown}")

        def check() -> tuple[str, float]:
            fixed = {v.id: cp.Constant(v.value) for v in term.weight.variables()}
            best = maximum_of(term, fixed)
            exact = residual(term) - (value_at(term.cost) if isinstance(term.cost, cp.Expression) else 0.0)
            exact += sum(pairing_at(y, a) for y, a in term.pairs)
            words = f"the maximum by a solver, {best:.6g}, against the value, {exact:.6g}"
            rest = abs(best - exact) / max(1.0, abs(exact))
            if id(term.atom) in self.titles:
                words += ", and the minimum of the loss against its conjugate"
                rest = max(
                    rest,
                    risk_residual(term, next(v.value for v in variables if v.name().startswith("alpha"))),
                )
            return words, rest

        return self.step(title, lines, check)

    def gradient_step(self) -> Step:
        """Return the step that collects the gradient by every variable."""
        lines, users = [], {v.id for v in self.structure.user_variables}
        for equation in self.swept.equations:
            if equation.variable.id in users:
                self.notation.symbols.label = equation.constraint.label
                chain = self.notation.constraint(equation.constraint)
                text, tex = (" ".join(getattr(p, s) for p in chain) for s in ("signed_text", "signed_tex"))
                by = self.notation(equation.variable)
                lines.append(filled("by @0: @1", r"\mathrm{by}\ @0:\ @1", by, Written(text, tex, SUM)))

        def check() -> tuple[str, float]:
            equations = [e for e in self.swept.equations if e.variable.id in users]
            inner = sum(float(np.vdot(dense(e.gradient.value), dense(e.variable.value))) for e in equations)
            terms = sum(residual(term) for term in self.swept.lagrangian.terms)
            rest = self.L - (self.D + inner) - terms
            words = f"L less the sum of the terms and <gradient, x>, at random points, is {rest:.1e}"
            if self.swept.lagrangian.fresh:  # what the cones of an atom leave is not negative
                return words, max(0.0, -rest) / self.size
            return words, abs(rest) / self.size

        return self.step("The gradient's equation", lines, check)

    def rule_steps(self) -> Iterator[Step]:
        """Yield a step for each rule of the board, which is checked by solving both statements."""
        before = self.made.states[0][1]
        for rule, after in self.made.states[1:]:
            name = rule.__name__
            new = [pair for key, pair in after.gone.items() if key not in before.gone]
            lines = [
                filled("@0 = @1", "@0 = @1", self.notation(v), self.notation(e))
                for v, e in new
                if e is not None
            ]
            if name in WORDS or not lines:
                words = WORDS.get(name, "the multiplier is zero, since the other one may be larger")
                lines.append(
                    Written(f"({words})", name_of(f"x[{words}]").tex.removeprefix("x_{").removesuffix("}"))
                )

            def check(before: Stated = before, after: Stated = after) -> tuple[str, float]:
                one, other = kept_values(before.problem()), kept_values(after.problem())
                words = f"the optimum by a solver, {other:.6g}, against {one:.6g} before"
                return words, abs(one - other) / max(1.0, abs(one))

            yield self.step(RULES[name], lines, check)
            before = after

    def last_step(self) -> Step:
        """Return the step that compares the values of both problems."""

        def check() -> tuple[str, float]:
            value, violation = self.best
            words = (
                f"dual {self.D:.6g} <= primal {self.P:.6g} at the random points; the primal, solved by "
                f"itself to a violation of {violation:.1e}, and the dual, {value:.6g} and "
                f"{self.structure.sign * self.optimum.dual:.6g}, differ by"
            )
            gap = abs(value - self.structure.sign * self.optimum.dual) / max(1.0, abs(value))
            return words, max(max(0.0, self.D - self.P) / self.size, gap)

        return self.step("Weak and strong duality", self.weak_duality(), check)

    def weak_duality(self) -> tuple[Written, ...]:
        """Return that the dual function is at most L, and L at most the objective, at feasible points."""
        objective = Written("objective", r"\mathrm{objective}", UNIT, self.structure.maximize)
        over = listed(
            enumerated(
                [self.notation(v) for v in self.dual.variables() if v.id not in self.made.state.hidden]
            )
        )
        equal = r"\max_{@1}\,\min L = \min\,@0\ \mathrm{if\ there\ is\ a\ strictly\ feasible\ point}"
        text = "max over @1 of min L = min @0, if there is a strictly feasible point"
        if not over.text:
            equal, text = equal.replace("_{@1}", ""), text.replace(" over @1", "")
        return (
            filled("min L <= L <= @0", r"\min L \leq L \leq @0", objective),
            filled(text, equal, inside(objective, PRODUCT), over),
        )


def own(multiplier: Multiplier, derivative: Derivative) -> bool:
    """Whether a multiplier belongs to a bound of a variable, and not to the cones of an atom."""
    known = {v.id for v in derivative.structure.user_variables}
    return all(v.id in known for _, e in multiplier.terms for v in e.variables())


def least(risk: ExplicitRisk) -> Written:
    """Return a risk as the minimum that it is."""
    fit = " ".join(part.signed_text for part in risk.fit), " ".join(part.signed_tex for part in risk.fit)
    whole = filled("min over @0 of @1", r"\min_{@0}\ @1", listed(names_of(risk)), risk.value)
    return Written(f"{whole.text}, {fit[0]}", rf"{whole.tex},\ {fit[1]}", SUM)


def names_of(risk: ExplicitRisk) -> list[Written]:
    """Return f, z and b."""
    return [*risk.functions, risk.z, *([risk.bias] if risk.bias else [])]


def joint(term: Term) -> tuple[str, str]:
    """Return the sign between a weight and its atom: none for a number, * for weights of the entries."""
    return (" ", r"\,") if term.weight.size == 1 or term.atom.size == 1 else (" * ", r" \odot ")


def maximum_of(term: Term, fixed: dict[int, Any]) -> float:
    """Return the maximum over the variables of a term of <y, a> - cost, at the values of its arguments."""
    memo = {id(v): fixed[v.id] for v in term.weight.variables()}
    value: Any = sum(pairing(y, cp.Constant(dense(a.value))) for y, a in term.pairs)
    value = value - term.cost if isinstance(term.cost, cp.Expression) else value
    constraints = [c.copy([replaced(a, memo) for a in c.args]) for c in term.domain]
    return kept_values(
        cp.Problem(cp.Maximize(replaced(value, memo)), [c for c in constraints if c.variables()])
    )


def kept_values(problem: cp.Problem) -> float:
    """Return the optimum of a problem, and leave its variables the values that they have."""
    old = [(v, v.value) for v in problem.variables()]
    try:
        return solved(problem)
    finally:
        for v, value in old:
            v.save_value(value)


def constraint_products(constraint: Any, multiplier: Multiplier, notation: Any) -> list[Written]:
    """Return <multiplier, constraint> for every argument of a constraint."""
    names = [name_of(v.name()) for v in multiplier.variables]
    if isinstance(constraint, Equality | Inequality) and len(names) == 1:
        left, right = (notation(arg) for arg in constraint.args)
        return [product_of(names[0], added([left, negated(right)]), constraint.expr)]
    return [
        negated(product_of(name, notation(arg), arg))
        for name, arg in zip(names, constraint.args, strict=False)
    ]


def product_of(name: Written, slack: Written, expression: Any) -> Written:
    """Return y g, y'g or <Y, G>."""
    if expression.size == 1:
        return multiplied(name, slack)
    if expression.ndim == 2:
        return filled("<@0, @1>", r"\langle @0, @1\rangle", name, slack)
    return filled("@0'@1", r"@0^\top @1", name, inside(slack, UNIT), binds=PRODUCT)

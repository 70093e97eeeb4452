"""The steps from a problem to its dual, each with a check at a random point, or by solving."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import cvxpy as cp
import numpy as np
from cvxpy.constraints import Equality, Inequality, NonPos, Zero

from kernelopt.duality.board import Stated
from kernelopt.duality.cones import slacks
from kernelopt.duality.dual import Dual
from kernelopt.duality.lagrangian import Term, pairing, times
from kernelopt.duality.naming import multiplier_tags, notation_of, stated_dual
from kernelopt.duality.operations import added
from kernelopt.duality.primal import ExplicitRisk, primal_of
from kernelopt.duality.reading import Reader
from kernelopt.duality.residuals import (
    alphas,
    largest_violation,
    maximum_of,
    near_random,
    objective_at,
    present,
    residual,
    risk_residual,
    set_value,
    value_apart,
    weighed,
)
from kernelopt.duality.solving import solved
from kernelopt.duality.statement import Statement, constraint_lines, sign_lines
from kernelopt.duality.symbols import dense
from kernelopt.duality.tree import Tree, enumerated, formula, leaf, listed
from kernelopt.duality.written import SUM, word
from kernelopt.errors import KerneloptError
from kernelopt.structure.structure import Structure
from kernelopt.structure.trees import number

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
    lines : tuple of Tree
        Formulas, and words in brackets.
    check : str
        What was computed.
    residual : float
        How far from true it was, relative to the size of the numbers; nan where it was not computed.
    why_not : str
        Why the step was not checked, empty where it was.
    """

    title: str
    lines: tuple[Tree, ...]
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
        self.dual, self.made, self.swept = dual, dual.made, dual.made.swept
        self.structure: Structure = dual.made.structure
        self.notation = notation_of(self.structure, dual)
        self.notation.symbols.taken |= {v.name() for v in self.swept.problem.variables()}
        self.users = {v.id for v in self.structure.user_variables}
        self.equations = [e for e in self.swept.equations if e.variable.id in self.users]

    def parts(self, rng: np.random.Generator) -> Parts:
        """Return the primal, the dual, the steps with their checks, and the legend."""
        primal, explicit = primal_of(self.structure, self.notation, multiplier_tags(self.made))
        self.why_not = ""
        try:
            self.set_point(rng)
        except KerneloptError as error:
            self.why_not = str(error).rstrip(".")
        steps = [self.first_step()]
        titles = {}
        for risk, term in zip(explicit, self.structure.risks, strict=True):
            self.notation.substitutes[id(term.node)] = least(risk, self.notation)
            over = listed([self.notation(v) for v in risk.variables])
            titles[id(term.node)] = f"The minimum over {over.text}"
        steps += [self.term_step(term, titles.get(id(term.atom))) for term in self.swept.lagrangian.terms]
        steps += [self.gradient_step()] if self.swept.equations else []
        steps += [*self.rule_steps(), self.last_step()]
        stated = stated_dual(self.dual, self.notation, self.made)
        return primal, stated, tuple(steps), tuple(self.notation.symbols.printed().items())

    def set_point(self, rng: np.random.Generator) -> None:
        """Set random feasible points of the primal, which is solved by itself, and of the swept dual."""
        structure, problem = self.structure, self.swept.problem
        explicit, sign = structure.explicit, structure.sign
        constraints = [*explicit.constraints, *structure.domains]
        self.optimum = sign * self.dual.check().dual
        self.best = solved(cp.Problem(cp.Minimize(sign * explicit.objective.args[0]), constraints))
        self.off = largest_violation(constraints)
        domains = [c for c in structure.atom_domains if c.is_dcp()]
        near_random(structure.variables, [*constraints, *domains], rng)
        point = {v.id: v.value for v in structure.variables}
        for variable in structure.user_variables:
            set_value(variable, point[variable.id])
        self.P = objective_at(structure, point)
        dual = problem.objective.args[0]
        near_random(problem.variables(), [*problem.constraints, *(c for c in dual.domain if c.is_dcp())], rng)
        self.D = number(present(dual))
        self.L = sign * number(present(structure.problem.objective.args[0]))
        for m in self.swept.lagrangian.multipliers:
            if m.user or self.users >= {v.id for _, e in m.terms for v in e.variables()}:
                self.L += sum(number(present(pairing(W, e))) for W, e in m.terms)
        self.size = max(1.0, abs(self.P), abs(self.D), abs(self.L))

    def step(self, title: str, lines: Sequence[Tree], check: Callable[[], tuple[str, float]]) -> Step:
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

    def first_step(self) -> Step:
        """Return the step that states the Lagrangian: the objective, and multipliers times constraints."""
        lifted = self.structure.lifted
        whole = self.notation(lifted.objective.args[0])
        parts = [whole.times(self.structure.sign)]
        for constraint, m in zip(lifted.constraints, self.swept.lagrangian.multipliers, strict=False):
            for y, e in zip(m.variables, slacks(constraint), strict=False):
                term = self.notation(y @ e if e.ndim == y.ndim == 1 else pairing(y, e))
                plus = isinstance(constraint, Equality | Inequality | Zero | NonPos)
                parts.append(term if plus else term.times(-1.0))

        def check() -> tuple[str, float]:
            words = f"at random feasible points it is {self.L:.6g}, at most the objective {self.P:.6g}"
            return words, max(0.0, self.L - self.P) / self.size

        return self.step("The Lagrangian", [formula("L = @0", "L = @0", added(parts))], check)

    def term_step(self, term: Term, title: str | None) -> Step:
        """Return the step that states one term as a maximum over its dual variables."""
        variables, name = term.variables, self.notation(term.atom)
        over = listed(enumerated([self.notation(v) for v in variables]))
        whole = self.notation(times(term.weight, term.atom if term.sign > 0 else -term.atom))
        lines = [
            whole,
            formula("  = max over @0 of @1", r"\quad = \max_{@0}\ @1", over, self.notation(term.bound)),
        ]
        conditions = [
            *constraint_lines(term.domain, self.notation, {}),
            *sign_lines(variables, self.notation),
        ]
        if conditions:
            stated = listed([line.whole for line in conditions])
            lines.append(formula("  where @0", r"\quad\mathrm{where}\ @0", stated))
        shown = name.text if len(name.text) <= LONGEST else name.text[:LONGEST] + "..."

        def check() -> tuple[str, float]:
            best, exact = maximum_of(term), weighed(term)
            words = f"the maximum by a solver, {best:.6g}, against the value, {exact:.6g}"
            rest = abs(best - exact) / max(1.0, abs(exact))
            if title:
                words += ", and the minimum of the loss against its conjugate"
                (alpha,) = (v.value for t, v in alphas(self.swept) if t is term)
                rest = max(rest, risk_residual(term, alpha))
            return words, rest

        return self.step(title or f"The conjugate of {shown}", lines, check)

    def gradient_step(self) -> Step:
        """Return the step that collects the gradient by every variable."""
        lines = []
        for equation in self.equations:
            self.notation.symbols.place = equation.constraint.label
            chain = self.notation.constraint(equation.constraint)
            by = self.notation(equation.variable)
            lines.append(formula("by @0: @1", r"\mathrm{by}\ @0:\ @1", by, listed(chain, " ", " ")))

        def check() -> tuple[str, float]:
            rest = self.L - self.D - sum(residual(term) for term in self.swept.lagrangian.terms)
            rest -= sum(np.sum(dense(e.gradient.value) * dense(e.variable.value)) for e in self.equations)
            words = f"L less the sum of the terms and <gradient, x>, at random points, is {rest:.1e}"
            if len(self.equations) < len(self.swept.equations):  # what the cones of an atom leave is >= 0
                rest = min(0.0, rest)
            return words, abs(rest) / self.size

        return self.step("The gradient's equation", lines, check)

    def rule_steps(self) -> Iterator[Step]:
        """Yield a step for each rule of the board, which is checked by solving both statements."""
        for (_, before), (rule, after) in pairwise(self.made.states):
            name = rule.__name__
            new = [pair for key, pair in after.gone.items() if key not in before.gone and pair[1] is not None]
            lines = [formula("@0 = @1", "@0 = @1", self.notation(v), self.notation(e)) for v, e in new]
            if name in WORDS or not lines:
                words = WORDS.get(name, "the multiplier is zero, since the other one may be larger")
                lines.append(leaf(f"({words})", tex=word(words)))

            def check(before: Stated = before, after: Stated = after) -> tuple[str, float]:
                one, other = (value_apart(state.problem()) for state in (before, after))
                words = f"the optimum by a solver, {other:.6g}, against {one:.6g} before"
                return words, abs(one - other) / max(1.0, abs(one))

            yield self.step(RULES[name], lines, check)

    def last_step(self) -> Step:
        """Return the step that compares the values of both problems."""

        def check() -> tuple[str, float]:
            words = (
                f"dual {self.D:.6g} <= primal {self.P:.6g} at the random points; the primal, solved by "
                f"itself to a violation of {self.off:.1e}, and the dual, {self.best:.6g} and "
                f"{self.optimum:.6g}, differ by"
            )
            gap = abs(self.best - self.optimum) / max(1.0, abs(self.best))
            return words, max((self.D - self.P) / self.size, gap)

        objective = leaf("objective").times(self.structure.sign)
        shown = [v for v in self.dual.variables() if v.id not in self.made.state.hidden]
        over = listed(enumerated([self.notation(v) for v in shown]))
        equal = r"\max_{@1}\,\min L = \min\,~0\ \mathrm{if\ there\ is\ a\ strictly\ feasible\ point}"
        text = "max over @1 of min L = min ~0, if there is a strictly feasible point"
        if not shown:
            equal, text = equal.replace("_{@1}", ""), text.replace(" over @1", "")
        lines = [
            formula("min L <= L <= @0", r"\min L \leq L \leq @0", objective),
            formula(text, equal, objective, over),
        ]
        return self.step("Weak and strong duality", lines, check)


def least(risk: ExplicitRisk, notation: Reader) -> Tree:
    """Return a risk as the minimum that it is."""
    over, fit = listed([notation(v) for v in risk.variables]), listed(notation.constraint(risk.fit), " ", " ")
    return formula("min over @0 of @1, @2", r"\min_{@0}\ @1,\ @2", over, notation(risk.value), fit, binds=SUM)

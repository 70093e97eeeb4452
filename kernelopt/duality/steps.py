"""The steps from a problem to its dual, each with a check at a random point."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import cvxpy as cp
import numpy as np
from cvxpy.constraints import Equality, Inequality

from kernelopt.duality.check import set_value
from kernelopt.duality.dual import Dual
from kernelopt.duality.forms import Multiplier
from kernelopt.duality.lagrangian import Read, read_lagrangian
from kernelopt.duality.minima import variable_minima
from kernelopt.duality.minimum import minimum_lines, risk_minima, shrinkage_line
from kernelopt.duality.naming import eliminated, equations, multiplier_tags, notation_of
from kernelopt.duality.notation import Notation
from kernelopt.duality.primal import ExplicitRisk, primal_of
from kernelopt.duality.statement import Statement, constraint_lines, statement_of
from kernelopt.duality.symbols import dense
from kernelopt.duality.trials import (
    domains,
    lagrangian_at,
    least_value,
    maximized,
    names_of_constraints,
    near_random,
    objective_at,
    risk_residual,
    values_of,
)
from kernelopt.duality.written import (
    PRODUCT,
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
from kernelopt.structure.structure import RiskTerm, Structure

DRAWS = 10  # of random dual points, until the value of one is moderate
MODERATE = 1e3  # a value up to this multiple of the optimum

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
        What was computed at the random point.
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
    """The state of a derivation: the two readings of the problem, and its notation."""

    def __init__(self, dual: Dual) -> None:
        self.dual, self.read = dual, dual.read
        self.structure = dual.read.structure
        self.raw: Read = read_lagrangian(Structure(dual.primal))  # before multipliers are eliminated
        self.notation = notation_of(self.structure, dual)

    def parts(self, rng: np.random.Generator) -> Parts:
        """Return the primal, the dual, the steps with their checks at a random point, and the legend."""
        primal, explicit = primal_of(self.structure, self.notation, multiplier_tags(self.read))
        self.set_point(rng)
        steps = [self.first_step(explicit), *self.risk_steps(explicit, rng)]
        if self.structure.variables:  # a risk of constant kernels may have none
            steps.append(self.minimum_step())
        steps += [*self.elimination_step(), self.last_step()]
        stated = statement_of(self.dual, self.notation)
        return primal, stated, tuple(steps), tuple(self.notation.symbols.printed().items())

    def weak_duality(self) -> tuple[Written, ...]:
        """Return that the dual function is at most L, and L at most the objective, at feasible points."""
        objective = Written("objective", r"\mathrm{objective}", UNIT, self.structure.maximize)
        names = [name_of(v.name()) for v in self.dual.variables()]
        over = Written(", ".join(n.text for n in names), ", ".join(n.tex for n in names))
        equal = r"\max_{@1}\,\min L = \min\,@0\ \mathrm{if\ there\ is\ a\ strictly\ feasible\ point}"
        text = "max over @1 of min L = min @0, if there is a strictly feasible point"
        return (
            filled("min L <= L <= @0", r"\min L \leq L \leq @0", objective),
            filled(text, equal, inside(objective, PRODUCT), over),
        )

    def set_point(self, rng: np.random.Generator) -> None:
        """Compute what the checks use at random feasible points, or note why that is not possible."""
        self.why_not = ""
        try:
            self.optimum = self.dual.check()
            self.set_primal(rng)
            self.P = objective_at(self.structure)
            self.D = self.set_dual(rng, MODERATE * max(1.0, abs(self.optimum.dual)))
        except KerneloptError as error:
            self.why_not = in_words(error)
            return
        self.values = values_of(self.read.model)
        self.expression = lagrangian_at(self.read, self.values)
        self.L = float(np.ravel(self.expression.value)[0])
        self.size = max(1.0, abs(self.P), abs(self.D), abs(self.L))

    def step(self, title: str, lines: Sequence[Written], check: Callable[[], tuple[str, float]]) -> Step:
        """Return a step with its check, a function that returns the words and the residual.

        A check that no solver can compute says nothing of the step, which is returned with the reason.
        """
        why_not = self.why_not
        if not why_not:
            try:
                words, residual = check()
                if np.isfinite(residual):
                    return Step(title, tuple(lines), words, residual)
                why_not = f"its numbers are not finite ({words})"
            except KerneloptError as error:
                why_not = in_words(error)
        return Step(title, tuple(lines), "", np.nan, why_not)

    def first_step(self, explicit: list[ExplicitRisk]) -> Step:
        """Return the step that states the Lagrangian."""

        def check() -> tuple[str, float]:
            words = f"at random feasible points it is {self.L:.6g}, at most the objective {self.P:.6g}"
            return words, max(0.0, self.L - self.P) / self.size

        return self.step("The Lagrangian", [filled("L = @0", "L = @0", self.lagrangian(explicit))], check)

    def last_step(self) -> Step:
        """Return the step that compares the values of both problems."""

        def check() -> tuple[str, float]:
            best = self.optimum
            words = (
                f"dual {self.D:.6g} <= primal {self.P:.6g} at the random points; at the optimum "
                f"{best.dual:.6g} and {best.primal:.6g} differ by"
            )
            return words, max(max(0.0, self.D - self.P) / self.size, best.gap)

        return self.step("Weak and strong duality", self.weak_duality(), check)

    def set_dual(self, rng: np.random.Generator, limit: float) -> float:
        """Set the dual's variables to a random feasible point, and return its value as a minimisation.

        Near the border of the domain of a quotient |alpha|^2 / u the value is huge, and no check is accurate.
        There another point is drawn; after some draws the last one is taken.
        """
        optimum = [(variable, dense(variable.value)) for variable in self.dual.variables()]
        domain = [*self.dual.constraints, *self.dual.objective.args[0].domain]
        for _ in range(DRAWS):
            for variable, value in optimum:
                set_value(variable, value)
            near_random(self.dual, domain, rng)
            found = self.structure.sign * float(self.dual.objective.value)
            if abs(found) <= limit:
                break
        return found

    def set_primal(self, rng: np.random.Generator) -> None:
        """Set the structure's variables to a random feasible point."""
        structure = self.structure
        point = self.dual.recover_primal(assign=False)
        for variable, copy in zip(structure.user_variables, structure.variables, strict=True):
            set_value(copy, point[variable])
        whole = cp.Problem(cp.Minimize(cp.sum([cp.sum(v) for v in structure.variables])))
        constraints = [*structure.explicit.constraints, *structure.domains, *structure.atom_domains]
        near_random(whole, constraints, rng)

    def lagrangian(self, explicit: list[ExplicitRisk]) -> Written:
        """Return the Lagrangian as written: the objective, and every multiplier times its constraint."""
        notation, structure = self.notation, self.structure
        parts = []
        for risk, term in zip(explicit, structure.risks, strict=True):
            gap = added(
                [risk.z, *(negated(f) for f in risk.functions), *([negated(risk.bias)] if risk.bias else [])]
            )
            fit = filled("@0'@1", r"@0^\top @1", risk.alpha, inside(gap, UNIT), binds=PRODUCT)
            price = next((w for known, _, w in self.read.alphas if known is term), None)
            if isinstance(price, Multiplier):
                stand_in = notation.substitutes[id(term.stand_in)]
                over = added([risk.value, negated(stand_in)])
                parts += [multiplied(name_of(price.variable.name()), over), fit]
            else:
                notation.substitutes[id(term.stand_in)] = added([risk.value, fit])
        whole = notation(structure.lifted.objective.args[0])
        parts = [negated(whole) if structure.maximize else whole, *parts]
        for i, constraint in enumerate(structure.lifted.constraints):
            names = [
                m for m in self.read.model.multipliers if m.of == f"the constraint {constraint.label or i}"
            ]
            parts += constraint_products(constraint, names, notation)
        return added(parts)

    def risk_steps(self, explicit: list[ExplicitRisk], rng: np.random.Generator) -> list[Step]:
        """Return the step that minimises over f, z and b, for every risk that is written by its conjugate."""
        steps = []
        for risk, term in zip(explicit, self.structure.risks, strict=True):
            known = next(((a, w) for other, a, w in self.read.alphas if other is term), None)
            if known is None:
                continue
            learner = term.learner
            variable = cp.Variable(learner.n, name=risk.alpha.text)
            self.notation.names[variable.id] = risk.alpha.text
            stated = learner.loss.dual_perspective(variable, learner.y) or learner.loss.dual_expression(
                variable, learner.y
            )
            domain = [list(line.chain) for line in constraint_lines(stated[1], self.notation, {})]
            minima = risk_minima(risk, self.notation(stated[0]), domain)
            title = "The minimum over " + ", ".join(m.variable.text for m in minima)
            lines = [line for m in minima for line in minimum_lines(m)]
            steps.append(self.step(title, lines, partial(self.risk_check, term, *known, rng)))
        return steps

    def risk_check(
        self, term: RiskTerm, multiplier: Multiplier, weight: Any, rng: np.random.Generator
    ) -> tuple[str, float]:
        """Return how far the minima over z and f of a risk are from their formulas, at its alpha."""
        learner, alpha = term.learner, self.values[multiplier.variable.name()]
        if isinstance(weight, Multiplier):
            alpha = alpha / float(self.values[weight.variable.name()])
        alpha = learner.loss.project(alpha, learner.y, learner.bias is not None)
        words = "the minimum over z by a solver against the formula, and f = K alpha against random f"
        return words, risk_residual(term, alpha, rng)

    def minimum_step(self) -> Step:
        """Return the step that minimises over the variables of the problem."""

        def check() -> tuple[str, float]:
            names = names_of_constraints(self.raw)
            best, _ = maximized(self.raw.model, {k: v for k, v in self.values.items() if k in names})
            least = least_value(self.expression, domains(self.read, names))
            words = f"the minimum of L by a solver, {least:.6g}, against the dual function, {best:.6g}"
            return words, abs(best - least) / max(1.0, abs(least))

        minima = variable_minima(self.dual, self.raw.model, self.notation)
        title = "The minimum over " + ", ".join(self.notation(v).text for v in self.structure.variables)
        return self.step(title, [line for m in minima for line in minimum_lines(m)], check)

    def elimination_step(self) -> list[Step]:
        """Return the step that eliminates multipliers, none where all are variables of the dual."""
        where = eliminated(self.read, self.notation)
        model = self.read.model
        gone = [m for m in model.multipliers if m.definition is not None]
        if not gone and not model.shrinkages:
            return []

        def check() -> tuple[str, float]:
            known = {variable.name() for variable in self.dual.variables()}
            best, _ = maximized(self.raw.model, {k: v for k, v in self.values.items() if k in known})
            words = f"their maximum by a solver, {best:.6g}, against the formula, {self.D:.6g}"
            return words, abs(best - self.D) / max(1.0, abs(self.D))

        equal = where or equations(gone, self.notation)
        lines = [filled("@0 = @1", "@0 = @1", name, value) for name, value in equal]
        lines += [shrinkage_line(found, self.notation) for found in model.shrinkages]
        return [self.step("The maximum over the multipliers that the others determine", lines, check)]


def in_words(error: Exception) -> str:
    """Return the message of an error as the end of a sentence."""
    return str(error).rstrip(".")


def constraint_products(constraint: Any, multipliers: list[Multiplier], notation: Notation) -> list[Written]:
    """Return <multiplier, constraint> for every argument of a constraint."""
    names = [name_of(m.variable.name()) for m in multipliers]
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

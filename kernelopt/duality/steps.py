"""The steps from a problem to its dual, each with a check at random points, or by solving."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise

import cvxpy as cp
import numpy as np
from cvxpy.constraints.constraint import Constraint

from kernelopt.duality.adjoints import dense
from kernelopt.duality.conditions import largest, measured, objective, parts_of_gap, weighed
from kernelopt.duality.dualize import dualize
from kernelopt.duality.lagrangian import Term, pairing, times, total
from kernelopt.duality.naming import multiplier_tags, notation_of, stated_dual
from kernelopt.duality.reading import Reader
from kernelopt.duality.solving import kept, solved
from kernelopt.duality.statement import ExplicitRisk, Statement, constraint_lines, primal_of, statement_of
from kernelopt.duality.tree import Tree, formula, leaf, listed
from kernelopt.duality.written import SUM
from kernelopt.errors import KerneloptError
from kernelopt.language.risk import Risk
from kernelopt.structure.structure import Structure
from kernelopt.structure.trees import copied_problem, visible_variables

LONGEST = 50  # characters of a function in a title
UNKNOWN = "its numbers are not finite, or not known as those inside of a risk"
RULES = {
    "minus_rest": "A gradient's equation is solved",
    "log_sum_exp": "The maximum of an entropy over the simplex is a log sum exp",
    "positive_part": "The minimum of a square over a cone is at a projection",
    "floor": "A variable is at its floor",
    "absorbed": "The multiplier of K >> 0 is absorbed",
}
Numbers = Callable[[], Iterable[float]]
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
    """The state of a derivation: a dual of a problem whose variables may be set, and how it is written."""

    def __init__(self, given: Structure, rng: np.random.Generator) -> None:
        self.given, self.dual = given, dualize(given.explicit)  # on copies of the variables
        self.swept, self.why_not = self.dual.swept, ""
        self.write = notation_of(self.swept.structure, self.dual)
        self.write.symbols.taken |= {v.name() for v in self.swept.problem.variables()}
        try:
            self.set_point(rng)
        except KerneloptError as error:
            self.why_not = str(error).rstrip(".")

    def set_point(self, rng: np.random.Generator) -> None:
        """Set random feasible points of the primal, which is solved by itself, and of the swept dual."""
        given, problem, sign = self.given, self.swept.problem, self.given.sign
        stated, value = [*given.explicit.constraints, *given.domains], problem.objective.args[0]
        self.optima = [sign * self.dual.check().dual]
        self.optima.append(solved(cp.Problem(cp.Minimize(sign * given.explicit.objective.args[0]), stated)))
        near_random(given.variables, [*stated, *given.atom_domains], rng)
        for v in {*given.explicit.variables()} - {*given.variables}:  # inside of a risk
            v.save_value(None)
        near_random(problem.variables(), [*problem.constraints, *value.domain], rng)
        losses = [part.residual for part in parts_of_gap(self.swept)]
        self.products = losses[: len(self.swept.stated)]
        self.sums = [measured(value) + sum(losses), objective(self.swept)]
        if len(self.swept.own) < len(self.swept.equations):  # what the cones of an atom leave is >= 0
            self.sums[0] = max(self.sums)

    def parts(self) -> Parts:
        """Return the primal, the dual, the steps with their checks, and the legend."""
        primal, explicit = primal_of(self.swept.structure, self.write, multiplier_tags(self.dual.state))
        steps = tuple(self.checked(*given) for given in self.steps(explicit))
        stated = stated_dual(self.dual, self.write, self.dual.state)
        return primal, stated, steps, tuple(self.write.symbols.printed().items())

    def checked(self, title: str, lines: Sequence[Tree], words: str, check: Numbers) -> Step:
        """Return a step with its check, a function that returns two numbers that are to be one.

        A check that no solver can compute says nothing of the step, which is returned with the reason.
        """
        why_not = self.why_not
        try:
            one, other = (np.nan, np.nan) if why_not else check()
            rest = abs(one - other) / max(1.0, abs(one), abs(other))
            if np.isfinite(rest):
                return Step(title, tuple(lines), f"{words}, {one:.6g} and {other:.6g}", rest)
        except KerneloptError as error:
            why_not = str(error).rstrip(".")
        return Step(title, tuple(lines), "", np.nan, why_not or UNKNOWN)

    def steps(self, explicit: Sequence[ExplicitRisk]) -> Iterator[tuple[str, list[Tree], str, Numbers]]:
        """Yield the steps: the Lagrangian, its terms, the gradient's equation, the rules, and duality."""
        write, swept, risks, titles = self.write, self.swept, self.swept.structure.risks, dict[int, str]()
        for known in risks:
            write.substitutes[id(known.node)] = write(known.stand_in)
        found = [pair for m in swept.stated if m.user for pair in m.terms]
        products = [W @ e if W.ndim == 1 else pairing(W, e) for W, e in found]
        L = formula(
            "L = @0", "L = @0", write(total([swept.sign * swept.primal.objective.args[0], *products]))
        )
        words = "<multiplier, slack> at random feasible points and its absolute value, each summed"
        yield "The Lagrangian", [L], words, lambda: (sum(self.products), sum(map(abs, self.products)))
        for risk, known in zip(explicit, risks, strict=True):
            over = listed([write(v) for v in risk.variables])
            write.substitutes[id(known.node)] = least(risk, over, write)
            titles[id(known.node)] = f"The minimum over {over.text}"
        for term in swept.terms:
            name = write(term.atom).text
            title = f"The conjugate of {name[:LONGEST]}{'...' * (len(name) > LONGEST)}"
            words, check = "the maximum by a solver and the value", partial(maximum_and_value, term)
            yield titles.get(id(term.atom), title), conjugate_lines(term, write), words, check
        if swept.equations:
            lines = []
            for e in swept.own:
                (line,) = constraint_lines([e.constraint], write, {})
                lines.append(formula("by @0: @1", r"\mathrm{by}\ @0:\ @1", write(e.variable), line.whole))
            words = "the dual function with all parts of the gap and the objective, at random points"
            yield "The gradient's equation", lines, words, lambda: self.sums
        for (_, before), (rule, after) in pairwise(self.dual.states):
            new = [pair for key, pair in after.gone.items() if key not in before.gone]
            lines = [formula("@0 = @1", "@0 = @1", write(v), write(e)) for v, e in new if e is not None]
            both = partial(map, value_apart, (after.problem(), before.problem()))
            yield RULES[rule.__name__], lines, "the optimum after and before", both
        goal = leaf("objective").times(self.given.sign)
        equal = r"\max\,\min L = \min\,~0\ \mathrm{if\ there\ is\ a\ strictly\ feasible\ point}"
        text = "max min L = min ~0, if there is a strictly feasible point"
        weak = formula("min L <= L <= @0", r"\min L \leq L \leq @0", goal)
        words = "the optima of the dual and of the primal, solved by itself"
        lines = [weak, formula(text, equal, goal)]
        yield "Weak and strong duality", lines, words, lambda: self.optima


def conjugate_lines(term: Term, write: Reader) -> list[Tree]:
    """Return a term as a maximum over its dual variables."""
    domain = constraint_lines(term.domain, write, {})
    stated = statement_of(True, write(term.bound), domain, term.variables, write)
    over, where = listed(stated.variables), listed([line.whole for line in stated.lines])
    return [
        write(times(term.weight, term.atom if term.sign > 0 else -term.atom)),
        formula("  = max over @0 of @1", r"\quad = \max_{@0}\ @1", over, stated.value),
        *[formula("  where @0", r"\quad\mathrm{where}\ @0", where)][: len(stated.lines)],
    ]


def least(risk: ExplicitRisk, over: Tree, write: Reader) -> Tree:
    """Return a risk as the minimum that it is."""
    fit = listed(write.constraint(risk.fit), " ", " ")
    return formula("min over @0 of @1, @2", r"\min_{@0}\ @1,\ @2", over, write(risk.value), fit, binds=SUM)


def near_random(
    variables: Sequence[cp.Variable], constraints: Sequence[Constraint], rng: np.random.Generator
) -> None:
    """Set variables, which hold a feasible point, to a random one: half way to one near to random values.

    The other point is the projection of random values, of the size of the first one's, on the constraints;
    all points between the two are feasible.
    """
    now = [dense(v.value) for v in variables]
    noise = [rng.normal(scale=largest(value) or 1.0, size=value.shape) for value in now]
    distance = sum(cp.sum_squares(v - value) for v, value in zip(variables, noise, strict=True))
    solved(cp.Problem(cp.Minimize(distance), [c for c in constraints if c.is_dcp()]))
    for v, value in zip(variables, now, strict=True):
        v.save_value((value + dense(v.value)) / 2)


def value_apart(problem: cp.Problem) -> float:
    """Return the optimum of a problem, and leave its variables the values that they have."""
    with kept(problem.variables()):
        return solved(problem)


def maximum_and_value(term: Term) -> tuple[float, float]:
    """Return the maximum of <y, a> - cost over the variables of a term by a solver, and u g(a).

    The value of a risk is the minimum over its machines by a solver.
    """
    exact = weighed(term)
    if not np.isfinite(exact):  # inside of a risk variables have no values
        return np.nan, exact
    given = [*term.weight.variables(), *(a for _, a in term.pairs)]
    fixed = {id(e): cp.Constant(dense(e.value)) for e in given}
    best = value_apart(copied_problem(cp.Problem(cp.Maximize(term.bound), term.domain), fixed))
    if not isinstance(term.atom, Risk):
        return best, exact
    risk = cp.Problem(cp.Minimize(term.atom))
    point = [v == dense(v.value) for v in visible_variables(risk)]
    return best, float(np.sum(term.weight.value)) * value_apart(cp.Problem(risk.objective, point))

"""`Structure`: the parts of a cvxpy problem (risks, variables, sets), each read once."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, wraps
from typing import Any, TypeVar

import cvxpy as cp
import numpy as np
from cvxpy.atoms.affine.add_expr import AddExpression
from cvxpy.constraints import Equality, Inequality, NonNeg, NonPos, Zero

from kernelopt.grams import Grams
from kernelopt.language.learner import Learner, on_labelled
from kernelopt.language.penalty import Form
from kernelopt.language.risk import Risk, risk
from kernelopt.language.terms import terms
from kernelopt.losses import Loss
from kernelopt.numerics.ball import Ball
from kernelopt.structure.affine import Affine, affine, total, weighted_sum
from kernelopt.structure.attributes import copied_loss, copied_parameter, copied_variable
from kernelopt.structure.gate import assumptions, check_is_problem
from kernelopt.structure.parts import Budget, trivially_true
from kernelopt.structure.powers import LpBall
from kernelopt.structure.trees import (
    copied_problem,
    nodes,
    replaced,
    risks,
    visible_variables,
    weighted_terms,
)
from kernelopt.threads import COMPILING
from kernelopt.validation import Array

Point = dict[int, Array]  # values by variable id
WeightedTerm = tuple[Array, cp.Expression]  # (w, e) states w'vec(e)
WeightedStack = tuple[Affine | None, Grams | None]  # weights, and the matrices that they weigh
T = TypeVar("T")


@dataclass(frozen=True, eq=False)
class RiskTerm:
    """A risk of a problem, on the structure's own copies of the variables.

    Attributes
    ----------
    node : Risk
        The node in the user's problem.
    kernels : tuple of cvxpy expressions
        The kernels, on the copies.
    stand_in : cp.Variable
        The variable t >= 0 that replaces the risk in `Structure.lifted`.
    loss : Loss
        The user's loss, with copies of its parameters.
    """

    node: Risk
    kernels: tuple[cp.Expression, ...]
    stand_in: cp.Variable
    loss: Loss

    @cached_property
    def learner(self) -> Learner:
        """The data, the loss and the norm of the risk."""
        return self.node.learner

    @cached_property
    def forms(self) -> tuple[Form, ...]:
        """The cone of each kernel: "fixed", "second-order cone" or "semidefinite"."""
        return self.learner.forms

    @cached_property
    def weighted(self) -> tuple[list[WeightedStack], ...]:
        """For each kernel its terms on the labelled points: the weights as an affine map, and the stack.

        A term that is no sum of weighted matrices has no stack, and its entries by columns as weights. The
        map is None where it is not affine, or where a parameter has no value.
        """
        n, found = self.learner.n, list[list[WeightedStack]]()
        for K in self.kernels:
            parts = list[WeightedStack]()
            for arg in K.args if isinstance(K, AddExpression) else [K]:
                read = terms(arg)
                if read is None:
                    parts.append((affine(cp.vec(arg[:n, :n], order="F")), None))
                for w, grams in read or []:
                    parts.append((affine(w), grams.block(slice(0, n))))
            found.append(parts)
        return tuple(found)

    def kernels_at(self, point: Point) -> list[Array]:
        """Return the kernels on the labelled points at values of the variables, which are set."""
        for variable in (v for K in self.kernels for v in K.variables()):
            variable.save_value(point[variable.id])
        return on_labelled(self.kernels, self.learner.n)

    def rebuilt(self) -> Risk:
        """Return a new risk of the copied kernels, with auxiliary variables of its own."""
        return risk_on(self.learner, self.kernels, self.loss)


def risk_on(learner: Learner, kernels: Sequence[cp.Expression], loss: Loss) -> Risk:
    """Return the risk of a learner with other kernels and another loss."""
    given = list(kernels) if len(kernels) > 1 else kernels[0]
    return risk(given, learner.y, loss, learner.has_intercept, learner.norm)


ENTRYWISE = (Equality, Zero, Inequality, NonNeg, NonPos)  # cvxpy's constraints of one expression


@dataclass(frozen=True, eq=False)
class Objective:
    """The objective of the minimisation: sum_k factors_k risks_k + an affine function + other terms.

    Attributes
    ----------
    risks : tuple of RiskTerm
    exact_factors : tuple of Ball, one per risk
        They contain the factors of exact arithmetic.
    exact_terms : tuple of pairs (w, e) of a Ball and an affine expression
        Each states w'vec(e), for the w of exact arithmetic in the ball. No e contains a risk.
    terms : tuple of pairs (w, e) of an array and an expression that is not affine
        Each states w'vec(e). No e contains a risk.
    """

    risks: tuple[RiskTerm, ...]
    exact_factors: tuple[Ball, ...]
    exact_terms: tuple[tuple[Ball, cp.Expression], ...]
    terms: tuple[WeightedTerm, ...]

    @cached_property
    def factors(self) -> tuple[float, ...]:
        """The factors of the risks as computed."""
        return tuple(float(factor.mid) for factor in self.exact_factors)

    @property
    def affine_terms(self) -> list[WeightedTerm]:
        """The affine terms with their weights as computed."""
        return [(w.mid, e) for w, e in self.exact_terms]

    @cached_property
    def affine_maps(self) -> list[Affine | None]:
        """The expressions of the affine terms, read."""
        with COMPILING:
            return [affine(e) for _, e in self.exact_terms]

    @cached_property
    def linear(self) -> Affine:
        """The sum of the affine terms."""
        pairs = zip(self.affine_terms, self.affine_maps, strict=True)
        return total([weighted_sum(read, w) for (w, _), read in pairs if read is not None])

    @property
    def risk(self) -> RiskTerm:
        """The only risk."""
        (only,) = self.risks
        return only

    @property
    def factor(self) -> float:
        """The factor of the only risk."""
        (only,) = self.factors
        return only

    @property
    def offset(self) -> float:
        """The constant of the affine function."""
        return float(self.linear.constant[0])


def kept_in_structure(reader: Callable[[Structure], T]) -> Callable[[Structure], T]:
    """Decorate a function of a structure: its result is computed at the first call and kept in the structure.

    It is computed under the lock `COMPILING`, which protects cvxpy's counter of variable ids: new variables
    and expressions increase it.
    """

    @wraps(reader)
    def read(structure: Structure) -> T:
        if reader not in structure.readings:
            with COMPILING:
                structure.readings[reader] = reader(structure)
        found: T = structure.readings[reader]
        return found

    return read


def reading(reader: Callable[[Structure], T]) -> cached_property[T]:
    """Make a property of a structure that is computed at first use, under the lock of `kept_in_structure`."""

    @wraps(reader)
    def locked(structure: Structure) -> T:
        with COMPILING:
            return reader(structure)

    return cached_property(locked)


class Structure:
    """The parts of a problem, each read at first use and then kept.

    All expressions are copies, on variables with the ids, the names and the attributes of the user's
    variables. The user's variables are neither read nor written. Parameters are copied with their values.
    The reason is that cvxpy stores compiled forms in the leaves of the problems it compiles, and that a deep
    copy of the user's problem would share those forms. A structure is used for one solve, in one thread.

    Parameters
    ----------
    problem : cp.Problem
        The user's problem.

    Attributes
    ----------
    readings : dict
        The results of the functions decorated with `kept_in_structure`.
    """

    def __init__(self, problem: cp.Problem) -> None:
        check_is_problem(problem)
        self.problem = problem
        self.readings: dict[Callable[[Structure], Any], Any] = {}

    @reading
    def user_variables(self) -> tuple[cp.Variable, ...]:
        """The user's variables, without the auxiliary variables inside the risks."""
        return tuple(visible_variables(self.problem))

    @reading
    def variables(self) -> tuple[cp.Variable, ...]:
        """Copies of the user's variables, in the same order."""
        return tuple(copied_variable(variable) for variable in self.user_variables)

    @reading
    def risks(self) -> tuple[RiskTerm, ...]:
        """The risks, each one once, in order of appearance."""
        memo = self._copies
        terms_found = []
        for k, node in enumerate(risks(self.problem)):
            kernels = tuple(replaced(K, memo) for K in node.learner.kernels)
            stand_in = cp.Variable(nonneg=True, name=f"risk {k}")
            terms_found.append(RiskTerm(node, kernels, stand_in, copied_loss(node.learner.loss, memo)))
        return tuple(terms_found)

    @reading
    def lifted(self) -> cp.Problem:
        """The problem with every risk replaced by its variable `stand_in`."""
        self._copies.update((id(term.node), term.stand_in) for term in self.risks)
        return copied_problem(self.problem, self._copies)

    @reading
    def explicit(self) -> cp.Problem:
        """The problem with its risks, on the copied variables."""
        rebuilt = {id(term.stand_in): term.rebuilt() for term in self.risks}
        return copied_problem(self.lifted, rebuilt) if self.risks else self.lifted

    @reading
    def _copies(self) -> dict[int, Any]:
        """The copies of the user's nodes, by the id of the node."""
        pairs = zip(self.user_variables, self.variables, strict=True)
        copies: dict[int, Any] = {id(variable): copy for variable, copy in pairs}
        copies.update((id(p), copied_parameter(p)) for p in self.problem.parameters())
        return copies

    @reading
    def assumes(self) -> tuple[str, ...]:
        """What bounds of the problem assume of its kernels and matrices, as sentences."""
        return assumptions(self.problem)

    @property
    def maximize(self) -> bool:
        """Whether the problem is a maximisation."""
        return isinstance(self.problem.objective, cp.Maximize)

    @property
    def sign(self) -> float:
        """1.0 for a minimisation and -1.0 for a maximisation: sign * objective is minimised."""
        return -1.0 if self.maximize else 1.0

    @reading
    def unset(self) -> str:
        """A sentence that lists the parameters without a value; empty if there are none."""
        names = [parameter.name() for parameter in self.problem.parameters() if parameter.value is None]
        return f"the parameters {', '.join(names)} have no values" if names else ""

    @reading
    def constrained(self) -> tuple[bool, ...]:
        """For each risk, whether it occurs in a constraint."""
        inside = {id(node) for c in self.lifted.constraints if self.risks for node in nodes(c)}
        return tuple(id(term.stand_in) in inside for term in self.risks)

    @reading
    def affines(self) -> tuple[Affine | None, ...]:
        """For each constraint on entries its expression as an affine map; None for others."""
        return tuple(affine(c.expr) if isinstance(c, ENTRYWISE) else None for c in self.lifted.constraints)

    @reading
    def atom_domains(self) -> tuple[cp.Constraint, ...]:
        """The domains of the atoms, as constraints: outside of them cvxpy's values are wrong.

        An example is inv_pos(-1), whose value in cvxpy is -1. Domains that repeat an attribute of a variable
        are left out.
        """
        parts = [self.lifted.objective.args[0], *(arg for c in self.lifted.constraints for arg in c.args)]
        found = (domain for part in parts for domain in part.domain)
        with_sign = {id(v) for v in self.variables if v.attributes["PSD"] or v.is_nonneg()}
        return tuple(c for c in found if not any(id(arg) in with_sign for arg in c.args))

    @reading
    def sets(self) -> tuple[Budget | LpBall | None, ...]:
        """For each constraint the budget or the norm ball that it states, without risks; or None."""
        own = set(self.variables)
        return tuple(
            Budget.stated(c, read, i) or LpBall.recognise({i: c}) if set(c.variables()) <= own else None
            for i, (c, read) in enumerate(zip(self.lifted.constraints, self.affines, strict=True))
        )

    @reading
    def active(self) -> tuple[int, ...]:
        """The positions of the constraints that do not follow from the signs of the variables."""
        return tuple(i for i, c in enumerate(self.lifted.constraints) if not trivially_true(c))

    @reading
    def objective(self) -> Objective | None:
        """The objective of the minimisation, read into its terms.

        It is None where it is not linear in the risks, or where a parameter has no value.
        """
        if self.unset:
            return None
        factors = {id(term.stand_in): Ball(0.0) for term in self.risks}
        found: tuple[list[tuple[Ball, cp.Expression]], ...] = [], []
        for weights, e in weighted_terms(self.lifted.objective.args[0], Ball(np.full(1, self.sign))):
            if id(e) in factors:
                factors[id(e)] = factors[id(e)] + weights[0]
            elif any(id(node) in factors for node in nodes(e)):
                return None
            else:
                found[e.is_affine()].append((weights, e))
        other, exact_terms = found
        terms = tuple((w.mid, e) for w, e in other)
        return Objective(self.risks, tuple(factors.values()), tuple(exact_terms), terms)

    @reading
    def domains(self) -> tuple[cp.Constraint, ...]:
        """The constraints K >> 0 that define where the risks are finite.

        They are stated for kernels in the semidefinite form. A constraint is left out where it follows from
        the problem: where cvxpy knows that K is PSD, or where K is the sum of a matrix that is constrained
        to be PSD and of non-negative terms.
        """
        known = [c.args[0] for c in self.lifted.constraints if isinstance(c, cp.constraints.PSD)]
        found: list[cp.Constraint] = []
        for term in self.risks:
            n = term.learner.n
            for K, form in zip(term.kernels, term.forms, strict=True):
                if form != "semidefinite" or K.is_psd() or any(implies(other, K) for other in known):
                    continue
                found.append(K[:n, :n] >> 0)
        return tuple(found)


def every_multiplier(structure: Structure, known: Mapping[int, Any]) -> list[list[Any]]:
    """Return the multipliers of all constraints: those at the positions in `known`, and zero for others."""
    constraints = enumerate(structure.lifted.constraints)
    return [[np.full(dual.shape, known.get(i, 0.0)) for dual in c.dual_variables] for i, c in constraints]


def implies(known: cp.Expression, K: cp.Expression) -> bool:
    """Whether `known` >> 0 makes K PSD because K is `known` plus non-negative terms.

    cvxpy writes `K >> 0` as `K + (-0) >> 0`: constant terms that are zero do not count.
    """
    if known is K:
        return True
    parts, given = terms(K), terms(known)
    if parts is None or given is None:
        return False
    pairs = {(id(term.weights), id(term.grams)) for term in given if not term.vanishes}
    return pairs <= {(id(w), id(g)) for w, g in parts} and all(
        w.is_nonneg() for w, g in parts if (id(w), id(g)) not in pairs
    )

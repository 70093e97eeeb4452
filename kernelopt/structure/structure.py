"""`Structure`: a cvxpy problem, read once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property, wraps
from typing import Any, NamedTuple, TypeVar

import cvxpy as cp

from kernelopt.grams import Grams
from kernelopt.language.penalty import Form
from kernelopt.language.risk import Learner, Risk, on_labelled, risk
from kernelopt.language.terms import FixedGrams, terms
from kernelopt.losses import Loss
from kernelopt.structure.affine import Affine, affine
from kernelopt.structure.corners import read_corner
from kernelopt.structure.gate import check_is_problem
from kernelopt.structure.sizes import Edge, Sphere, read_edge, read_sphere, trivially_true
from kernelopt.structure.trees import (
    coefficient,
    copied_problem,
    nodes,
    number,
    replaced,
    risks,
    visible_variables,
)
from kernelopt.threads import COMPILING
from kernelopt.validation import Array

Point = dict[int, Array]  # values by variable id
T = TypeVar("T")


@dataclass(frozen=True, eq=False)
class RiskTerm:
    """A risk of a problem, on the structure's own copies of the variables.

    Attributes
    ----------
    node : Risk
        The user's.
    kernels : tuple of cvxpy expressions
    stand_in : cp.Variable
        The variable that takes the place of the risk in `Structure.lifted`.
    loss : Loss
        The user's, on copies of its parameters.
    """

    node: Risk
    kernels: tuple[cp.Expression, ...]
    stand_in: cp.Variable
    loss: Loss

    @property
    def learner(self) -> Learner:
        """The data, the loss and the norm of the risk."""
        return self.node.learner

    @property
    def forms(self) -> tuple[Form, ...]:
        """The cone in which each kernel enters."""
        return self.learner.forms

    def values(self) -> list[Array] | None:
        """Return the kernels on the labelled points at the current values of the copies."""
        return on_labelled(self.kernels, self.learner.n)

    def rebuilt(self) -> Risk:
        """Return the risk of the copied kernels, with hidden variables of its own."""
        learner = self.learner
        kernels = list(self.kernels) if len(self.kernels) > 1 else self.kernels[0]
        return risk(kernels, learner.y, self.loss, learner.bias is not None, learner.norm)


class Objective(NamedTuple):
    """The minimised objective as sum of share * risk + rest; None where it is no such sum, or not known."""

    shares: tuple[float, ...] | None
    rest: cp.Expression | None


class read_once(cached_property[T]):
    """A property that is computed once, under the lock on cvxpy: what it builds numbers new variables."""

    def __get__(self, instance: object, owner: type | None = None) -> T:  # type: ignore[override]
        with COMPILING:
            return super().__get__(instance, owner)


class Structure:
    """What a problem says, each thing read when it is first asked for, and once.

    All expressions are copies on variables of the structure's own, with the ids, names and attributes of
    the user's: the user's variables are neither written nor asked for their values. Parameters are copied
    with their values. So cvxpy, which keeps compiled forms in the leaves of what it compiles, leaves none
    in the user's, where a deep copy would take them over with the ids of the original. A structure serves
    one solve, in one thread.

    Attributes
    ----------
    problem : cp.Problem
        The user's.
    """

    def __init__(self, problem: cp.Problem) -> None:
        check_is_problem(problem)
        self.problem = problem
        self.readings: dict[Callable[[Structure], Any], Any] = {}  # by the function that read

    @read_once
    def user_variables(self) -> tuple[cp.Variable, ...]:
        """The user's variables, without those inside the risks."""
        return tuple(visible_variables(self.problem))

    @read_once
    def variables(self) -> tuple[cp.Variable, ...]:
        """Copies of the user's variables, in the same order."""
        return tuple(copied_variable(variable) for variable in self.user_variables)

    @read_once
    def risks(self) -> tuple[RiskTerm, ...]:
        """The risks, each once, in order of appearance."""
        memo = self._copies
        terms_found = []
        for k, node in enumerate(risks(self.problem)):
            kernels = tuple(replaced(K, memo) for K in node.learner.kernels)
            stand_in = cp.Variable(nonneg=True, name=f"risk {k + 1}")
            terms_found.append(RiskTerm(node, kernels, stand_in, copied_loss(node.learner.loss, memo)))
        return tuple(terms_found)

    @read_once
    def lifted(self) -> cp.Problem:
        """The problem with a variable in the place of every risk."""
        self._copies.update((id(term.node), term.stand_in) for term in self.risks)
        return copied_problem(self.problem, self._copies)

    @read_once
    def explicit(self) -> cp.Problem:
        """The problem with its risks, on the copied variables."""
        rebuilt = {id(term.stand_in): term.rebuilt() for term in self.risks}
        return copied_problem(self.lifted, rebuilt) if self.risks else self.lifted

    @read_once
    def _copies(self) -> dict[int, Any]:
        """The copy of every node of the user's that was copied, by id."""
        pairs = zip(self.user_variables, self.variables, strict=True)
        copies: dict[int, Any] = {id(variable): copy for variable, copy in pairs}
        copies.update((id(p), copied_parameter(p)) for p in self.problem.parameters())
        return copies

    @property
    def maximize(self) -> bool:
        """Whether the problem is a maximisation."""
        return isinstance(self.problem.objective, cp.Maximize)

    @property
    def sign(self) -> float:
        """-1 for a maximisation: the sign that makes it a minimisation."""
        return -1.0 if self.maximize else 1.0

    @read_once
    def unset(self) -> str:
        """Which parameters have no value, in words; empty if all have one."""
        names = [parameter.name() for parameter in self.problem.parameters() if parameter.value is None]
        return f"the parameters {', '.join(names)} have no values" if names else ""

    @read_once
    def constrained(self) -> tuple[bool, ...]:
        """Of each risk, whether it stands in a constraint."""
        inside = {id(node) for c in self.lifted.constraints for node in nodes(c)}
        return tuple(id(term.stand_in) in inside for term in self.risks)

    @read_once
    def affines(self) -> tuple[Affine | None, ...]:
        """Of each scalar or vector constraint its expression, where that is affine in the variables."""
        return tuple(
            affine(c.expr) if hasattr(c, "expr") and not isinstance(c, cp.constraints.PSD) else None
            for c in self.lifted.constraints
        )

    @read_once
    def atom_domains(self) -> tuple[cp.Constraint, ...]:
        """The domains of the atoms of the problem; cvxpy gives values outside of them: inv_pos(-1) = -1."""
        parts = [self.lifted.objective.args[0], *(arg for c in self.lifted.constraints for arg in c.args)]
        found = (domain for part in parts for domain in part.domain)
        own = {id(v) for v in self.variables if v.attributes["PSD"] or v.is_nonneg()}  # these say so already
        return tuple(c for c in found if not any(id(arg) in own for arg in c.args))

    @read_once
    def corners(self) -> tuple[Affine | None, ...]:
        """Of each matrix inequality the entries that it makes zero, None where there are none."""
        return tuple(read_corner(c) for c in self.lifted.constraints)

    @read_once
    def edges(self) -> tuple[Edge | None, ...]:
        """Of each constraint the `Edge` that it is, None for others; risks have no place in it."""
        own = set(self.variables)
        reads = zip(self.lifted.constraints, self.affines, strict=True)
        return tuple(
            read_edge(c, read) if read is not None and set(read.matrices) <= own else None
            for c, read in reads
        )

    @read_once
    def spheres(self) -> tuple[Sphere | None, ...]:
        """Of each constraint the norm ball that it is, None for others."""
        return tuple(read_sphere(c) for c in self.lifted.constraints)

    @read_once
    def active(self) -> tuple[int, ...]:
        """The positions of the constraints that say more than signs of variables do."""
        return tuple(i for i, c in enumerate(self.lifted.constraints) if not trivially_true(c))

    @read_once
    def objective(self) -> Objective:
        """The minimised objective, taken apart."""
        if self.unset:
            return Objective(None, None)
        expression = self.lifted.objective.args[0]
        found = [coefficient(expression, term.stand_in) for term in self.risks]
        if any(share is None for share in found):
            return Objective(None, None)
        zeros: dict[int, Any] = {id(term.stand_in): cp.Constant(0.0) for term in self.risks}
        rest = replaced(expression, zeros)
        shares = tuple(self.sign * number(share) for share in found)
        return Objective(shares, -rest if self.maximize else rest)

    @read_once
    def rest(self) -> Affine | None:
        """The minimised objective without its risks, where that is affine; None if it is not."""
        return None if self.objective.rest is None else affine(self.objective.rest)

    @read_once
    def domains(self) -> tuple[cp.Constraint, ...]:
        """K >> 0 for the kernels of unknown sign, without which a risk is infinite.

        Left out where the problem says so already: by an attribute, or by a constraint on the same
        combination (to which non-negative terms may be added).
        """
        said = [c.args[0] for c in self.lifted.constraints if isinstance(c, cp.constraints.PSD)]
        found: list[cp.Constraint] = []
        for term in self.risks:
            n = term.learner.n
            for K, form in zip(term.kernels, term.forms, strict=True):
                if form != "semidefinite" or K.is_psd() or any(implies(other, K) for other in said):
                    continue
                found.append(K[:n, :n] >> 0)
        return tuple(found)


def once(reader: Callable[[Structure], T]) -> Callable[[Structure], T]:
    """Make a function of a structure read it once: the structure keeps what was read."""

    @wraps(reader)
    def read(structure: Structure) -> T:
        if reader not in structure.readings:
            with COMPILING:
                structure.readings[reader] = reader(structure)
        found: T = structure.readings[reader]
        return found

    return read


def copied_variable(variable: cp.Variable) -> cp.Variable:
    """Return a variable with the id, the name and the attributes of another, without its value."""
    attributes = {k: v for k, v in variable.attributes.items() if v is not None and v is not False}
    return cp.Variable(variable.shape, name=variable.name(), var_id=variable.id, **attributes)


def copied_parameter(parameter: cp.Parameter) -> cp.Parameter:
    """Return a parameter with the id, the name, the attributes and the value of another."""
    attributes = {k: v for k, v in parameter.attributes.items() if v is not None and v is not False}
    name, value = parameter.name(), parameter.value
    return cp.Parameter(parameter.shape, name=name, value=value, id=parameter.id, **attributes)


def copied_loss(loss: Loss, copies: dict[int, Any]) -> Loss:
    """Return a loss with its parameters replaced by their copies."""
    found = {name: copies[id(value)] for name, value in vars(loss).items() if id(value) in copies}
    return replace(loss, **found) if found else loss  # type: ignore[type-var]


def implies(known: cp.Expression, K: cp.Expression) -> bool:
    """Whether `known` >> 0 makes K PSD because K is `known` plus non-negative terms.

    cvxpy writes `K >> 0` as `K + (-0) >> 0`: constant terms that are zero do not count.
    """
    if known is K:
        return True
    parts, given = terms(K), terms(known)
    if parts is None or given is None:
        return False
    pairs = {(id(w), id(grams)) for w, grams in given if not is_zero(grams)}
    return pairs <= {(id(w), id(g)) for w, g in parts} and all(
        w.is_nonneg() for w, g in parts if (id(w), id(g)) not in pairs
    )


def is_zero(grams: Grams) -> bool:
    """Whether a stack is one constant matrix that is zero."""
    return isinstance(grams, FixedGrams) and not grams.gram(0).any()

"""The Lagrangian of a cvxpy problem: risks and fidelities by their conjugates, the rest by cones."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import cvxpy as cp
import numpy as np
import scipy.sparse as sp
from cvxpy.constraints import PSD
from cvxpy.constraints.constraint import Constraint

from kernelopt.duality.blocks import add_cones, add_squares
from kernelopt.duality.canonical import cone_form
from kernelopt.duality.forms import Multiplier
from kernelopt.duality.functions import Support, without_supports
from kernelopt.duality.model import Model, kind_of
from kernelopt.duality.products import positive_factor
from kernelopt.duality.risks import add_risk, by_conjugate
from kernelopt.duality.supports import add_fidelity, add_support
from kernelopt.language.faces import facial_reduction
from kernelopt.language.fidelity import Distance
from kernelopt.structure.structure import RiskTerm, Structure, implies
from kernelopt.structure.trees import coefficient, nodes, replaced
from kernelopt.structure.zero_weights import zero_equations
from kernelopt.validation import Array


@dataclass(frozen=True, eq=False)
class Read:
    """A problem as its Lagrangian.

    Attributes
    ----------
    structure : Structure
    model : Model
    alphas : tuple of (RiskTerm, Multiplier, weight)
        The multiplier of each risk that is written by its conjugate.
    names : list of str
        The name of each constraint of the problem.
    bounds : dict from int to (str, constraint)
        The bounds and the signs of variables that are constraints of the Lagrangian, with their names, by the
        key of their multipliers in `model.of_constraints`.
    """

    structure: Structure
    model: Model
    alphas: tuple[tuple[RiskTerm, Multiplier, Any], ...]
    names: list[str]
    bounds: dict[int, tuple[str, Constraint]]


class Reader:
    """The state of a reading: the objective and the constraints, from which known terms are taken out."""

    def __init__(self, structure: Structure) -> None:
        self.structure, self.model = structure, Model(dpp=structure.problem.is_dpp())
        leaves = (*structure.variables, *structure.problem.parameters())
        self.model.names |= {leaf.name() for leaf in leaves}  # no multiplier has the name of a variable
        lifted = structure.lifted
        objective = lifted.objective.args[0]
        self.objective: cp.Expression = -objective if structure.maximize else objective
        self.constraints: list[Constraint] = list(lifted.constraints)
        self.names = [c.label or str(i) for i, c in enumerate(self.constraints)]
        self.parameters = {p.id: p for p in structure.problem.parameters()}
        self.positions: list[int | None] = list(range(len(self.constraints)))
        self.inside = {id(node) for c in self.constraints for node in nodes(c)}
        self.signs: set[int] = set()  # where self.constraints has the sign of a semidefinite variable
        self.taken: dict[int, Any] = {}

    def read(self) -> Read:
        """Return the Lagrangian."""
        for variable in self.structure.variables:
            self.model.row_of(variable, user=True)
        alphas = self.take_risks()
        bases = self.reduce_faces()
        self.take_distances()
        self.objective = replaced(self.objective, self.taken)
        self.constraints = [self.with_args(c, self.taken) for c in self.constraints]
        self.add_bounds()
        self.add_zero_weights()
        supports: list[Support] = []
        memo: dict[int, Any] = {}
        self.objective = without_supports(self.objective, supports, memo, True)
        inner: dict[int, Any] = {}
        for i, constraint in enumerate(self.constraints):
            args = [without_supports(arg, supports, inner, False) for arg in constraint.args]
            if any(new is not old for new, old in zip(args, constraint.args, strict=True)):
                self.constraints[i] = constraint.copy(args)
        if (
            any(True for _ in self.objective.variables())
            or self.constraints
            or not self.objective.is_constant()
        ):
            form = cone_form(self.objective, self.constraints)
            add_cones(self.model, form, self.names, self.parameters, self.signs)
            of_bounds = {
                f"the constraint {self.names[at]}" for at, p in enumerate(self.positions) if p is None
            }
            for multiplier in self.model.multipliers:
                multiplier.bound = multiplier.of in of_bounds
            self.locate(bases)
            for support in supports:
                add_support(self.model, support)
            add_squares(self.model, form)
        elif np.any(self.objective.value):
            self.model.linear.add_given(np.ravel(self.objective.value))
        self.model.add_shifts()
        bounds = {
            -1 - at: (name, constraint)
            for at, (position, name, constraint) in enumerate(
                zip(self.positions, self.names, self.constraints, strict=True)
            )
            if position is None
        }
        return Read(self.structure, self.model, tuple(alphas), self.names, bounds)

    def with_args(self, constraint: Constraint, substitutes: dict[int, Any]) -> Constraint:
        """Return a constraint with nodes replaced, itself where nothing changes."""
        args = [replaced(arg, substitutes) for arg in constraint.args]
        changed = any(new is not old for new, old in zip(args, constraint.args, strict=True))
        return constraint.copy(args) if changed else constraint

    def constant_weight(self, node: Any) -> Any:
        """Return the weight of a term of the objective, a number or an expression of the user's parameters.

        None where the term does not enter linearly with a constant weight, or occurs in a constraint.
        """
        found = None if id(node) in self.inside else coefficient(self.objective, node)
        if not isinstance(found, cp.Expression):
            return found
        parameters = {id(p): self.parameters[p.id] for p in found.parameters()}
        if parameters:
            factor, rest = positive_factor(replaced(found, parameters))
            return rest if factor == 1 else factor * rest
        return float(np.ravel(found.value)[0])

    def take_risks(self) -> list[tuple[RiskTerm, Multiplier, Any]]:
        """Add every risk by its conjugate where that is possible; the others become explicit."""
        alphas = []
        terms = self.structure.risks
        for k, term in enumerate(terms):
            suffix = str(k + 1) if len(terms) > 1 else ""
            weight = self.constant_weight(term.stand_in)
            if isinstance(weight, float | int) and weight == 0:
                self.taken[id(term.stand_in)] = cp.Constant(0.0)
            elif not by_conjugate(term, weight is None):
                self.taken[id(term.stand_in)] = term.rebuilt()
            elif weight is None:
                price = self.model.multiplier(
                    f"lambda{suffix}", (), f"the value of risk {suffix}".strip(), auxiliary=True, nonneg=True
                )
                row = self.model.row_of(term.stand_in)
                row.kind = "free"
                row.form.add(-sp.eye_array(1), price)
                covered = self.cover(term)
                alphas.append((term, add_risk(self.model, term, price, suffix, covered), price))
            else:
                self.taken[id(term.stand_in)] = cp.Constant(0.0)
                covered = {} if isinstance(weight, cp.Expression) else self.cover(term)
                alphas.append((term, add_risk(self.model, term, weight, suffix, covered), weight))
        return alphas

    def cover(self, term: RiskTerm) -> dict[int, int]:
        """Take out the constraints K >> 0 of a risk's kernels, and return their positions by kernel."""
        found: dict[int, int] = {}
        for m, K in enumerate(term.kernels):
            for at, constraint in enumerate(self.constraints):
                position = self.positions[at]
                if position is None or not isinstance(constraint, PSD) or term.forms[m] != "semidefinite":
                    continue
                if implies(constraint.args[0], K) and implies(K, constraint.args[0]):
                    found[m] = position
                    self.take_out(at)
                    break
        return found

    def take_out(self, at: int) -> None:
        """Take out a constraint."""
        for parts in (self.constraints, self.positions, self.names):
            del parts[at]

    def reduce_faces(self) -> dict[int, Array]:
        """Restrict matrix inequalities of low rank to their ranges, and return the bases by position."""
        bases: dict[int, Array] = {}
        for at, constraint in enumerate(self.constraints):
            position = self.positions[at]
            smaller, basis = facial_reduction(constraint)
            if basis is not None and position is not None:
                self.constraints[at], bases[position] = smaller, basis
        return bases

    def locate(self, bases: dict[int, Array]) -> None:
        """Give the multipliers of constraints the positions of these in the problem, and their full order."""
        found = self.model.of_constraints
        moved = {position: found.pop(-1 - at) for at, position in enumerate(self.positions)
                 if -1 - at in found and position is not None}  # fmt: skip
        found.update(moved)
        for position, Q in bases.items():
            found[position] = on_range(found[position], Q)

    def take_distances(self) -> None:
        """Add every fidelity of constant price by its conjugate."""
        found = {id(node): node for node in nodes(self.objective) if isinstance(node, Distance)}
        count = 0
        for node in found.values():
            price = self.constant_weight(node)
            probe = cp.Variable(node.difference.shape, symmetric=node.difference.ndim == 2)
            if price is None or node.is_constant() or node.difference.parameters():
                continue
            if node.fidelity.conjugate_expression(probe) is None:
                continue
            self.taken[id(node)] = cp.Constant(0.0)
            if not (isinstance(price, float | int) and price == 0):
                add_fidelity(self.model, node.fidelity, node.difference, price, count)
                count += 1

    def add_signs(self, variable: cp.Variable) -> None:
        """Add the sign of a semidefinite variable: its row states that it is semidefinite."""
        if kind_of(variable) in ("psd", "nsd"):
            attributes = variable.attributes
            for names, sign in ((("nonneg", "pos"), 1.0), (("nonpos", "neg"), -1.0)):
                if any(attributes[name] for name in names):
                    self.signs.add(len(self.constraints))
                    self.constraints.append(sign * variable >= 0)
                    self.positions.append(None)
                    self.names.append(f"{variable.name()} sign")

    def add_bounds(self) -> None:
        """Add the bounds of the variables, other than signs, as constraints."""
        for variable in self.structure.variables:
            self.add_signs(variable)
            bounds = variable.attributes.get("bounds")
            if bounds is None:
                continue
            for side, value in enumerate(bounds):
                word = ("lower", "upper")[side]
                if isinstance(value, cp.Expression):
                    constraint = variable >= value if side == 0 else variable <= value
                else:
                    full = np.broadcast_to(dense(value), variable.shape).ravel(order="F")
                    finite = np.flatnonzero(np.isfinite(full))
                    sign = ("nonneg", "nonpos")[side] == kind_of(variable)
                    if not finite.size or (sign and not full.any()):
                        continue
                    flat = variable if finite.size == variable.size else cp.vec(variable, order="F")[finite]
                    limit = full[finite].reshape(flat.shape, order="F")
                    constraint = flat >= limit if side == 0 else flat <= limit
                self.constraints.append(constraint)
                self.positions.append(None)
                self.names.append(f"{variable.name()} {word}")

    def add_zero_weights(self) -> None:
        """Add x_j = 0 for the weights that signs force to zero, whatever the values of the parameters.

        These equations follow from the other constraints. Without them the multiplier of a'x <= 0 may have to
        be as large as 1 / a_j, and no solver finds it.
        """
        for equation in zero_equations(self.structure, whatever_parameters=self.model.dpp):
            self.constraints.append(equation)
            self.positions.append(None)
            self.names.append(f"{equation.variables()[0].name()} zero")


def on_range(values: Any, Q: Array) -> Any:
    """Return a function that returns Q V Q' for the matrix V that another one returns."""
    return lambda: [Q @ V @ Q.T for V in values()]


def dense(value: Any) -> Array:
    """Return a bound as a dense array."""
    return np.asarray(value.toarray() if sp.issparse(value) else value, dtype=float)


def read_lagrangian(structure: Structure) -> Read:
    """Return the Lagrangian of the minimisation that a structure holds."""
    return Reader(structure).read()

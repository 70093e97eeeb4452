"""Reading a cvxpy problem: its risks, their weights, and the explicit problem behind it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import cvxpy as cp
import numpy as np
from cvxpy.atoms.affine.add_expr import AddExpression
from cvxpy.atoms.affine.binary_operators import DivExpression, MulExpression, multiply
from cvxpy.atoms.affine.promote import Promote
from cvxpy.atoms.affine.sum import Sum
from cvxpy.atoms.affine.unary_operators import NegExpression

from kernelopt.errors import ParameterError
from kernelopt.language.faces import faced, faced_penalty
from kernelopt.language.risk import Risk, half_square
from kernelopt.validation import Array


def risks(problem: cp.Problem) -> list[Risk]:
    """Return the risk nodes of a problem, each once, in order of appearance."""
    found: dict[int, Risk] = {}
    for root in (problem.objective, *problem.constraints):
        found.update((id(node), node) for node in nodes(root) if isinstance(node, Risk))
    return list(found.values())


def nodes(root: Any) -> Iterator[Any]:
    """Walk a cvxpy tree from the root, not entering the hidden expression of a risk."""
    stack = [root]
    while stack:
        node = stack.pop()
        yield node
        if not isinstance(node, Risk):
            stack.extend(reversed(getattr(node, "args", [])))


def visible_variables(problem: cp.Problem) -> list[cp.Variable]:
    """Return the user's own variables: those outside the hidden expressions of the risks."""
    found: dict[int, cp.Variable] = {}

    def visit(root: Any) -> None:
        for node in nodes(root):
            if isinstance(node, Risk):
                for K in node.learner.kernels:
                    visit(K)
            elif isinstance(node, cp.Variable):
                found[node.id] = node

    for root in (problem.objective, *problem.constraints):
        visit(root)
    return list(found.values())


def coefficient(expression: Any, node: Any) -> cp.Expression | float | None:
    """Return c with expression = c * node + (terms without node), None if there is no such constant."""
    if expression is node:
        return 1.0
    if not any(inner is node for inner in nodes(expression)):
        return 0.0
    if isinstance(expression, AddExpression):
        parts = [coefficient(arg, node) for arg in expression.args]
        known = [part for part in parts if part is not None]
        return sum(known[1:], known[0]) if len(known) == len(parts) else None
    if isinstance(expression, NegExpression):
        part = coefficient(expression.args[0], node)
        return None if part is None else -part
    if isinstance(expression, Promote | Sum) and expression.args[0].size == 1:
        return coefficient(expression.args[0], node)
    if isinstance(expression, DivExpression) and expression.args[1].is_constant():
        part = coefficient(expression.args[0], node)
        return None if part is None else part / expression.args[1]
    if isinstance(expression, multiply | MulExpression):
        left, right = expression.args
        if right.is_constant():
            left, right = right, left
        if left.is_constant() and left.size == 1:
            part = coefficient(right, node)
            return None if part is None else part * left
    return None


def summands(expression: cp.Expression) -> list[tuple[Any, cp.Expression]]:
    """Return pairs (c, e) with expression = sum of c * e, for a scalar: constants c, and e as they stand."""
    if isinstance(expression, AddExpression):
        return [pair for arg in expression.args for pair in summands(arg)]
    if isinstance(expression, NegExpression):
        return [(-c, e) for c, e in summands(expression.args[0])]
    if isinstance(expression, Promote | Sum) and expression.args[0].size == 1:
        return summands(expression.args[0])
    if isinstance(expression, DivExpression) and expression.args[1].is_constant():
        return [(c / expression.args[1], e) for c, e in summands(expression.args[0])]
    if isinstance(expression, multiply | MulExpression) and all(a.size == 1 for a in expression.args):
        left, right = expression.args
        if right.is_constant():
            left, right = right, left
        if left.is_constant():
            return [(c * left, e) for c, e in summands(right)]
    return [(1.0, expression)]


def unset(problem: cp.Problem) -> str:
    """Return which parameters have no value, in words; empty if all have one."""
    names = [parameter.name() for parameter in problem.parameters() if parameter.value is None]
    return f"the parameters {', '.join(names)} have no values" if names else ""


def short(node: Any) -> str:
    """Return the text of an expression or a constraint, on one line and cut to 60 characters."""
    text = " ".join(str(node).split())
    return text if len(text) < 60 else text[:57] + "..."


def number(value: Any) -> float:
    """Return the current value of a number or a constant scalar expression."""
    return float(np.ravel(value.value if isinstance(value, cp.Expression) else value)[0])


@dataclass(frozen=True)
class ExpandedRisk:
    """One risk written out: its fit constraint, and where its weight in the optimum stands."""

    risk: Risk
    fit: cp.Constraint
    bound: cp.Constraint | None  # t >= risk, where the risk does not enter linearly
    coefficient: Any

    def weight(self) -> float:
        """Return the weight of the risk at the solution: its coefficient or its multiplier."""
        if self.bound is None:
            return number(self.coefficient)
        return float(np.ravel(self.bound.dual_value)[0])

    def alpha(self) -> Array | None:
        """Return alpha = multiplier of the fit / weight, None where the risk is inactive."""
        if self.bound is not None and self.bound.dual_value is None:
            return None
        weight = self.weight()
        if self.fit.dual_value is None or not weight > 1e-7:
            return None
        alpha = np.ravel(self.fit.dual_value) / weight
        return alpha if np.isfinite(alpha).all() else None


@dataclass(frozen=True)
class Copied:
    """A constraint of the user, its copy in the explicit problem, and the face it was restricted to."""

    original: cp.Constraint
    copy: cp.Constraint
    basis: Array | None = None

    def bring_back(self) -> None:
        """Give the original the multiplier of the copy."""
        for variable, dual in zip(self.original.dual_variables, self.copy.dual_variables, strict=True):
            value = dual.value
            if self.basis is not None and value is not None and np.isfinite(value).all():
                value = self.basis @ value @ self.basis.T
            variable.save_value(value)


@dataclass(frozen=True)
class Expansion:
    """The explicit problem behind one with risks, sharing its variables."""

    problem: cp.Problem
    risks: tuple[ExpandedRisk, ...]
    constraints: tuple[Copied, ...]
    hidden: tuple[tuple[cp.Variable, cp.Expression], ...]  # variables inside the risks, and their values here

    def bring_back(self) -> None:
        """Give the user's constraints their multipliers, and the risks' own variables their values."""
        for copied in self.constraints:
            copied.bring_back()
        with np.errstate(all="ignore"):  # a failed solver may have left anything
            for variable, here in self.hidden:
                variable.save_value(here.value)


def expand(problem: cp.Problem) -> Expansion:
    """Write every risk of a problem out as its explicit primal.

    Each risk becomes 1/2 |f|_K^2 + loss(z) with a constraint `z == f + b` labelled "fit" (numbered
    where there are several). A risk that enters the objective with a constant coefficient is
    substituted; any other becomes a variable t with `t >= 1/2 |f|_K^2 + loss(z)`, labelled "risk".

    Parameters
    ----------
    problem : cp.Problem

    Returns
    -------
    Expansion
        `.problem` is an ordinary `cp.Problem`; `.risks[k].alpha()` is, after a solve, the multiplier
        of the k-th fit divided by the weight of that risk; `.bring_back()` gives the user's constraints
        their multipliers.
    """
    check_problem(problem)
    found = risks(problem)
    sign = -1.0 if isinstance(problem.objective, cp.Maximize) else 1.0
    substitutes: dict[int, Any] = {}
    added: list[cp.Constraint] = []
    written: list[ExpandedRisk] = []
    hidden: list[tuple[cp.Variable, cp.Expression]] = []
    for k, node in enumerate(found):
        suffix = f" {k + 1}" if len(found) > 1 else ""
        learner = node.learner
        z = cp.Variable(learner.n, name=f"z{suffix}".replace(" ", ""))
        predictions, square, ranges = on_faces(node)
        fit = (z == predictions).set_label("fit" + suffix)
        # Written anew and not copied: cvxpy's indicator, which the hard margin needs, cannot be copied.
        summed = learner.loss.expression(z, learner.y)
        hidden += ranges
        hidden += zip(
            loss_variables(learner.summed_loss, learner.fit), loss_variables(summed, z), strict=True
        )
        explicit = square + summed
        inside = any(inner is node for c in problem.constraints for inner in nodes(c))
        share = None if inside else coefficient(problem.objective.args[0], node)
        bound = None
        if share is None:
            t = cp.Variable(name=f"t{suffix}".replace(" ", ""), nonneg=True)
            bound = (t >= explicit).set_label("risk" + suffix)
            added.append(bound)
            substitutes[id(node)] = t
        else:
            substitutes[id(node)] = explicit
        added.append(fit)
        written.append(ExpandedRisk(node, fit, bound, None if share is None else sign * share))
    copies = [copied(c, substitutes) for c in problem.constraints]
    if not found and all(c.basis is None for c in copies):
        return Expansion(problem, (), tuple(Copied(c, c) for c in problem.constraints), ())
    objective = problem.objective.tree_copy(substitutes)
    explicit_problem = cp.Problem(objective, [c.copy for c in copies] + added)
    return Expansion(explicit_problem, tuple(written), tuple(copies), tuple(hidden))


def on_faces(node: Risk) -> tuple[cp.Expression, cp.Expression, list[tuple[cp.Variable, cp.Expression]]]:
    """Return the predictions and 1/2 |f|^2 of a risk, kernels of low rank on their ranges."""
    learner = node.learner
    faces = [faced_penalty(p, K, learner.n) for p, K in zip(learner.penalties, learner.kernels, strict=True)]
    moved = [(p.f, f) for p, (_, f) in zip(learner.penalties, faces, strict=True) if f is not None]
    if not moved:
        return learner.fit, learner.half_square, []
    predictions = cp.sum([part.f for part, _ in faces])
    if learner.bias is not None:
        predictions = predictions + learner.bias
    return predictions, half_square(tuple(part for part, _ in faces), learner.norm), moved


def loss_variables(summed: cp.Expression, fit: cp.Expression) -> list[cp.Variable]:
    """Return the variables of a summed loss that are not those of its predictions."""
    return [v for v in summed.variables() if not any(v is w for w in fit.variables())]


def copied(constraint: cp.Constraint, substitutes: dict[int, Any]) -> Copied:
    """Copy a constraint with nodes replaced, with its label, which cvxpy drops, and on its face."""
    smaller, basis = faced(constraint)
    copy = smaller.tree_copy(substitutes)
    if constraint.label is not None:
        copy.set_label(constraint.label)
    return Copied(constraint, copy, basis)


def check_is_problem(problem: Any) -> None:
    """Raise unless `problem` is a cp.Problem."""
    if not isinstance(problem, cp.Problem):
        if hasattr(problem, "words"):
            raise ParameterError(
                f"problem must be a cvxpy.Problem, got a {type(problem).__name__}. Call its solve(), or pass "
                "its .words, the same learning problem in the words of the language."
            )
        raise ParameterError(
            f"problem must be a cvxpy.Problem, got {type(problem).__name__}. "
            "Wrap an expression as cp.Problem(cp.Minimize(expression))."
        )


def check_problem(problem: Any) -> None:
    """Raise unless `problem` is a convex cp.Problem with real continuous variables."""
    check_is_problem(problem)
    if not problem.is_dcp():  # before a risk is replaced by a variable, which would hide what is wrong
        raise cp.DCPError(
            "the problem does not follow the rules of disciplined convex programming. A risk is convex and "
            "decreasing in its kernel: minimise it, or bound it from above.\n" + str(problem)
        )
    if any(v.is_complex() for v in problem.variables()):
        raise ParameterError("problem must have real variables, got complex ones. Split them into two parts.")
    for v in problem.variables():
        if v.attributes["diag"] or v.attributes["sparsity"]:
            raise ParameterError(
                f"variables must be dense, got {v.name()} with a diag or sparsity attribute. "
                "Use a vector and cp.diag(vector), or write the zeros as constraints."
            )
    if problem.is_mixed_integer():
        raise ParameterError(
            "problem must have continuous variables, got boolean or integer ones. "
            "Relax them: certificates rest on convex duality."
        )

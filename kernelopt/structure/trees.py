"""The expression trees of cvxpy: traversal, substitution, and the linear terms of an expression."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import cvxpy as cp
import numpy as np
from cvxpy.atoms.affine.add_expr import AddExpression
from cvxpy.atoms.affine.binary_operators import DivExpression, MulExpression, multiply
from cvxpy.atoms.affine.promote import Promote
from cvxpy.atoms.affine.sum import Sum
from cvxpy.atoms.affine.unary_operators import NegExpression
from cvxpy.transforms.indicator import indicator

from kernelopt.language.risk import Risk
from kernelopt.structure.affine import flat

LONGEST = 60  # characters of an expression in a message
PRIVATE = ("SuppFuncAtom",)  # atoms whose own `copy` fails
MATRIX = "[["  # how the text of a constant matrix starts


def risks(problem: cp.Problem) -> list[Risk]:
    """Return the risk nodes of a problem, each once, in order of appearance."""
    found: dict[int, Risk] = {}
    for root in (problem.objective, *problem.constraints):
        found.update((id(node), node) for node in nodes(root) if isinstance(node, Risk))
    return list(found.values())


def nodes(root: Any) -> Iterator[Any]:
    """Yield the nodes of a cvxpy tree in preorder, without those inside a risk."""
    stack = [root]
    while stack:
        node = stack.pop()
        yield node
        if not isinstance(node, Risk):
            stack.extend(reversed(getattr(node, "args", [])))


def visible_variables(problem: cp.Problem) -> list[cp.Variable]:
    """Return the user's variables: those outside the risks, and those in the kernels of the risks."""
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


def replaced(node: Any, substitutes: dict[int, Any]) -> Any:
    """Return a tree with the nodes in `substitutes` replaced. Subtrees without such nodes are not copied.

    `substitutes` maps the id of a node to its replacement. The copies are added to it, so that a node which
    occurs twice is copied once. cvxpy's own `tree_copy` visits the arguments of a node before it replaces
    the node, and would copy the expression inside a risk.
    """
    if id(node) in substitutes:
        return substitutes[id(node)]
    if isinstance(node, list):
        return [replaced(part, substitutes) for part in node]
    args = getattr(node, "args", [])
    copies = [replaced(arg, substitutes) for arg in args]
    changed = any(copy is not arg for copy, arg in zip(copies, args, strict=True))
    if changed and isinstance(node, indicator):  # its own `copy` takes the list for one constraint
        substitutes[id(node)] = indicator(copies, node.err_tol)
    elif (
        changed and type(node).__name__ == "perspective"
    ):  # its arguments are the variables of another function
        substitutes[id(node)] = type(node)(replaced(node.f, substitutes), copies[0], node.f_recession)
    elif changed and type(node).__name__ in PRIVATE:
        substitutes[id(node)] = with_args(node, copies)
    else:
        substitutes[id(node)] = node.copy(copies) if changed else node
    return substitutes[id(node)]


def with_args(node: Any, args: list[cp.Expression]) -> Any:
    """Return an atom with other arguments of the same shapes, whatever its constructor takes."""
    new = object.__new__(type(node))
    new.__dict__.update(node.__dict__, args=args)
    return new


def copied_problem(problem: cp.Problem, substitutes: dict[int, Any]) -> cp.Problem:
    """Return a problem with nodes replaced, and with constraints and multipliers of its own."""
    objective = type(problem.objective)(replaced(problem.objective.args[0], substitutes))
    return cp.Problem(objective, [copied_constraint(c, substitutes) for c in problem.constraints])


def copied_constraint(constraint: cp.Constraint, substitutes: dict[int, Any]) -> cp.Constraint:
    """Return a constraint with nodes replaced. The label is set again, since cvxpy does not copy it."""
    copy = constraint.copy([replaced(arg, substitutes) for arg in constraint.args])
    return copy if constraint.label is None else copy.set_label(constraint.label)


def coefficient(expression: cp.Expression, node: Any) -> cp.Expression | float | None:
    """Return the constant c with expression = c * node + (terms without node), or None if there is none.

    The expression is scalar, and c may depend on parameters.
    """
    pairs = summands(expression)
    if any(inner is node for _, e in pairs if e is not node for inner in nodes(e)):
        return None
    found = [c for c, e in pairs if e is node]
    return sum(found[1:], found[0]) if found else 0.0


def summands(expression: cp.Expression) -> list[tuple[Any, cp.Expression]]:
    """Return pairs (c, e) with expression = sum of c * e, for a scalar expression and constants c."""
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


def short(node: Any) -> str:
    """Return the text of an expression or a constraint, on one line and cut to LONGEST characters."""
    text = " ".join(str(node).split())
    return text if len(text) <= LONGEST else text[: LONGEST - 3] + "..."


def constraint_name(position: int, constraint: cp.Constraint) -> str:
    """Return the label of the constraint at a position, its number and text where it has none.

    A text with the numbers of a matrix is left out, since they do not tell which constraint it is.
    """
    if constraint.label:
        return str(constraint.label)
    text = short(constraint)
    return f"constraint {position}" if MATRIX in text else f"constraint {position}: {text}"


def constraint_names(problem: cp.Problem) -> list[str]:
    """Return the names of all constraints."""
    return [constraint_name(i, c) for i, c in enumerate(problem.constraints)]


def number(value: Any) -> float:
    """Return the current value of a number or a constant scalar expression."""
    with np.errstate(over="ignore"):  # cvxpy's own product of two coefficients may be infinite
        return float(flat(value.value if isinstance(value, cp.Expression) else value)[0])


def times(factor: Any, expression: cp.Expression) -> cp.Expression:
    """Return factor * expression, for a number or one factor per entry; by ones, the expression itself."""
    if (np.asarray(factor) == 1).all():
        return expression
    return cp.multiply(factor, expression) if np.ndim(factor) else factor * expression

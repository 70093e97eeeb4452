"""The expression trees of cvxpy: traversal, substitution, and the linear terms of an expression."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypeVar

import cvxpy as cp
import numpy as np
from cvxpy.atoms.affine.add_expr import AddExpression
from cvxpy.atoms.affine.binary_operators import DivExpression, MulExpression, multiply
from cvxpy.atoms.affine.index import index
from cvxpy.atoms.affine.promote import Promote
from cvxpy.atoms.affine.sum import Sum
from cvxpy.atoms.affine.unary_operators import NegExpression
from cvxpy.transforms.indicator import indicator

from kernelopt.language.adapter import written_problem
from kernelopt.language.risk import Risk
from kernelopt.numerics.ball import Ball
from kernelopt.structure.affine import affine, entries_of, flat
from kernelopt.validation import Array

W = TypeVar("W", Array, Ball)

# The class of cvxpy's power with `approx=False`. It is read off an instance, since its name differs between
# versions of cvxpy.
POWER: Any = type(cp.power(cp.Variable(nonneg=True), 2.5, approx=False))
LONGEST = 60  # characters of an expression in a message
PRIVATE = ("SuppFuncAtom",)  # atoms whose own `copy` fails
MATRIX = "[["  # how the text of a constant matrix starts


def risks(problem: cp.Problem) -> list[Risk]:
    """Return the risk nodes of a problem, each once, in order of appearance."""
    return list({id(node): node for node in nodes(problem) if isinstance(node, Risk)}.values())


def visible_variables(problem: cp.Problem) -> list[cp.Variable]:
    """Return the user's variables: those outside the risks, and those in the kernels of the risks."""
    every = nodes(problem, kernels=True)
    return list({node.id: node for node in every if isinstance(node, cp.Variable)}.values())


def nodes(root: Any, kernels: bool = False) -> Iterator[Any]:
    """Yield the nodes of a cvxpy tree, or of a problem, in preorder.

    Of the nodes inside a risk only the `kernels` are visited, and only if they are wanted.
    """
    stack = [root.objective, *root.constraints][::-1] if isinstance(root, cp.Problem) else [root]
    while stack:
        node = stack.pop()
        yield node
        if isinstance(node, Risk):
            stack += node.learner.kernels[::-1] if kernels else ()
        else:
            stack += getattr(node, "args", [])[::-1]


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
    return written_problem(objective, [copied_constraint(c, substitutes) for c in problem.constraints])


def copied_constraint(constraint: cp.Constraint, substitutes: dict[int, Any]) -> cp.Constraint:
    """Return a constraint with nodes replaced. The label is set again, since cvxpy does not copy it."""
    copy = constraint.copy([replaced(arg, substitutes) for arg in constraint.args])
    return copy if constraint.label is None else copy.set_label(constraint.label)


def weighted_terms(e: cp.Expression, weights: W) -> list[tuple[W, cp.Expression]]:
    """Return pairs (w, f) with weights'vec(e) = sum of w'vec(f), where no f is a sum or a multiple.

    Weights that are a `Ball` contain the roundings of their sums and products. Parameters count with their
    present values.
    """
    args = e.args
    if isinstance(e, AddExpression) and all(arg.size in (1, e.size) for arg in args):
        sums = [(weights.sum(keepdims=True) if arg.size < e.size else weights, arg) for arg in args]
        return [pair for w, arg in sums for pair in weighted_terms(arg, w)]
    if isinstance(e, NegExpression):
        return weighted_terms(args[0], -weights)
    if isinstance(e, Promote):
        return weighted_terms(args[0], weights.sum(keepdims=True))
    if isinstance(e, Sum) and e.size == 1:
        return weighted_terms(args[0], weights[np.zeros(args[0].size, dtype=int)])
    if isinstance(e, DivExpression) and args[1].is_constant() and args[1].size in (1, e.size):
        return weighted_terms(args[0], weights / flat(args[1].value))
    if isinstance(e, multiply | MulExpression):
        factor, other = args if args[0].is_constant() else args[::-1]
        dot = type(e) is MulExpression and factor.ndim == other.ndim == 1
        entrywise = isinstance(e, multiply) or factor.size == e.size == 1
        entrywise = entrywise and factor.size in (1, e.size) and other.size == e.size
        if factor.is_constant() and (dot or entrywise):
            with np.errstate(over="ignore"):  # the product of two coefficients may be infinite
                return weighted_terms(other, weights * flat(factor.value))
    return [(weights, e)]


def rounds_coefficients(e: cp.Expression) -> bool:
    """Whether an expression states a coefficient or a constant as a sum of numbers that is rounded.

    The error can be large relative to the coefficient: 0.2 + 1e8 - 1e8 is 0.2000000030.
    """
    return any(is_rounded(node) for node in nodes(e) if isinstance(node, AddExpression))


def is_rounded(e: AddExpression) -> bool:
    """Whether adding the coefficients of the affine terms of a sum, or their constants, rounds one."""
    terms = [arg for arg in e.args if not arg.is_zero()]  # cvxpy writes M >> 0 as M + -0
    used = [entry for term in terms for entry in entries_in(term)]
    inner = any(isinstance(node, AddExpression) for term in terms for node in nodes(term))
    distinct = len({*used}) == len(used) and sum(term.is_constant() for term in terms) <= 1
    if len(terms) < 2 or (distinct and not inner):
        return False  # the frequent case: no coefficient need be read
    sums = dict[cp.Variable | None, Any]()  # of the constants for None
    for read in filter(None, map(affine, terms)):
        for variable, A in ((None, read.constant), *read.matrices.items()):
            if variable not in sums:
                sums[variable] = A
                continue
            before = sums[variable]
            sums[variable] = after = before + A
            kept = after - before  # the sum is exact where both differences are
            if abs(before - (after - kept)).sum() + abs(A - kept).sum() > 0:
                return True
    return False


def entries_in(e: Any) -> set[tuple[int, int]]:
    """Return the entries of variables that occur in an expression, as pairs of an id and a position."""
    args = getattr(e, "args", [])
    if isinstance(e, cp.Variable):
        return {(e.id, i) for i in range(e.size)}
    if isinstance(e, index) and isinstance(args[0], cp.Variable):
        return {(args[0].id, int(i)) for i in entries_of(e)}
    return set[tuple[int, int]]().union(*map(entries_in, args))


def linear_factor(expression: cp.Expression, node: Any) -> float | None:
    """Return the number c with expression = c * node + (terms without node), or None if there is none."""
    pairs = weighted_terms(expression, np.ones(expression.size))
    if any(inner is node for _, e in pairs if e is not node for inner in nodes(e)):
        return None
    return float(sum(w[0] for w, e in pairs if e is node))


def exponent_of(e: Any) -> float:
    """Return the exponent of cvxpy's power; NaN for a parameter without a value."""
    value = e.p.value if isinstance(e.p, cp.Expression) else e.p
    return float("nan") if value is None else float(value)


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

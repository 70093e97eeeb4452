"""The problems that are accepted: convex, in real, continuous and dense variables."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import cvxpy as cp
from cvxpy.atoms.affine.add_expr import AddExpression
from cvxpy.constraints import Inequality

from kernelopt.errors import ParameterError
from kernelopt.grams import Grams
from kernelopt.grams.written import leaves
from kernelopt.language.risk import Risk
from kernelopt.structure.trees import constraint_names, nodes, short

DCP_REMEDY = (
    "Minimise convex expressions, with prices that are not negative, and write constraints as "
    "convex <= concave or affine == affine."
)
RISK_REMEDY = "A risk is convex and decreasing in its kernel: minimise it, or bound it from above."


def check_is_problem(problem: Any) -> None:
    """Raise unless `problem` is a cp.Problem."""
    if not isinstance(problem, cp.Problem):
        if hasattr(problem, "programmes"):
            raise ParameterError(
                f"problem must be a cvxpy.Problem, got a {type(problem).__name__}. Call its solve(), or pass "
                "its .problem, the learning problem as a cvxpy problem."
            )
        raise ParameterError(
            f"problem must be a cvxpy.Problem, got {type(problem).__name__}. "
            "Wrap an expression as cp.Problem(cp.Minimize(expression)). A Solution is certified already: "
            "read its .certificate."
        )


def check_values(problem: cp.Problem) -> None:
    """Raise unless every parameter of a problem has a value."""
    names = [parameter.name() for parameter in problem.parameters() if parameter.value is None]
    if names:
        raise ParameterError(
            f"the parameters of a problem must have values, got None for {', '.join(names)}. "
            "Set the .value of each before solving."
        )


def violations(problem: cp.Problem) -> list[tuple[str, Any]]:
    """Return the objective and the constraints that are not DCP, each with its name."""
    found = (
        []
        if problem.objective.is_dcp()
        else [(f"the objective {short(problem.objective)}", problem.objective)]
    )
    pairs = zip(constraint_names(problem), problem.constraints, strict=True)
    return found + [(name, constraint) for name, constraint in pairs if not constraint.is_dcp()]


def offending_terms(root: Any) -> list[cp.Expression]:
    """Return the terms of the sums in an objective or an inequality that make it violate the rules."""
    if isinstance(root, cp.Minimize | cp.Maximize):
        sides = [(root.args[0], isinstance(root, cp.Minimize))]
    elif isinstance(root, Inequality):
        sides = [(root.args[0], True), (root.args[1], False)]
    else:
        return []
    return [term for side, convex in sides for term in of_other_curvature(side, convex) if term is not side]


def of_other_curvature(expression: cp.Expression, convex: bool) -> Iterator[cp.Expression]:
    """Yield the terms of a sum that are not convex, or not concave if `convex` is false."""
    if isinstance(expression, AddExpression):
        for term in expression.args:
            yield from of_other_curvature(term, convex)
    elif not (expression.is_convex() if convex else expression.is_concave()):
        yield expression


def terms_text(terms: list[cp.Expression]) -> str:
    """Return the terms with their curvatures, as the end of a sentence."""
    each = [f"{short(term)} is {curvature(term)}" for term in terms]
    return f", whose term {' and '.join(each)}" if each else ""


def curvature(term: cp.Expression) -> str:
    """Return "convex", "concave" or "neither convex nor concave" for an expression that is not affine."""
    found = term.curvature.lower()
    return found if found in ("convex", "concave") else "neither convex nor concave"


def check_problem(problem: Any) -> None:
    """Raise unless `problem` is a convex cp.Problem with real continuous variables."""
    check_is_problem(problem)
    if not problem.is_dcp():  # checked with the risks: a variable in place of a risk may hide the violation
        broken = violations(problem)
        named = [name + terms_text(offending_terms(root)) for name, root in broken]
        roots = [term for _, root in broken for term in offending_terms(root) or [root]]
        with_risk = any(isinstance(node, Risk) for root in roots for node in nodes(root))
        remedy = RISK_REMEDY if with_risk else DCP_REMEDY
        raise cp.DCPError(
            "the problem must follow the rules of disciplined convex programming (DCP), got "
            f"{'; '.join(named)}. {remedy}"
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


def assumptions(problem: cp.Problem) -> tuple[str, ...]:
    """Return what bounds of a problem assume of its kernels and matrices, as sentences."""
    found = list[str]()
    for node in nodes(problem, kernels=True):
        found += getattr(node, "assumes", ())
        grams = getattr(node, "grams", None)
        if isinstance(grams, Grams):
            found += [text for leaf in leaves(grams.storage) for text in leaf.assumes]
    return tuple(dict.fromkeys(found))

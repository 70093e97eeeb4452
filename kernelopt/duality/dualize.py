"""`dualize`: the dual of a convex problem."""

from __future__ import annotations

from typing import Any

import cvxpy as cp
import numpy as np
from cvxpy.atoms.affine.affine_atom import AffAtom
from cvxpy.atoms.affine.wraps import Wrap

from kernelopt.duality.dual import Dual
from kernelopt.duality.equations import Swept, zero_entries
from kernelopt.errors import DualizationError
from kernelopt.language.risk import Risk, risk
from kernelopt.structure.copies import copied_loss
from kernelopt.structure.gate import check_is_problem, curvature, offending_terms
from kernelopt.structure.structure import Structure
from kernelopt.structure.trees import copied_problem, nodes, replaced, risks, short
from kernelopt.threads import COMPILING


def dualize(problem: cp.Problem) -> Dual:
    r"""The Lagrange dual of a convex problem, as a problem with readable names.

    .. math::

        \min_x\ F(x) + \sum_k w_k \mathrm{risk}(K_k(x))
        \quad\longleftrightarrow\quad
        \max_{\alpha, y}\ \sum_k w_k \ell_k(\alpha_k) - F^*(\dots)

    Every convex atom enters by its conjugate: norms by the dual norm, squares by squares, logarithms and
    exponentials by entropies, risks and fidelities by those that they state. What has no conjugate in the
    table is the cone of cvxpy with its name.

    Parameters
    ----------
    problem : cp.Problem
        Any convex problem with real continuous variables, with risks or without. Parameters stay parameters
        where the problem is DPP, and take their values elsewhere.

    Returns
    -------
    Dual
        A `cp.Problem`. Its variables are `alpha` for the risk, `U0`, ... for the fidelities, and `y[label]`
        for a constraint with a label (`lambda`, `nu` or `Z` without one). `.recover_primal()` returns the
        primal point, `.dual_values()` the multipliers of the primal's constraints, `.check()` the conditions
        of optimality.

    Raises
    ------
    DualizationError
        If the problem is not convex by cvxpy's rules, or has integer or complex variables, or a cone whose
        dual is not known. The message names the atom, the variable or the constraint.

    Notes
    -----
    The two values are equal where the primal has a strictly feasible point. Without one the dual may be below
    the primal, and neither solvers nor `check` can tell. Weights that constraints without parameters force to
    zero by their signs, as a'x <= 0 with a, x >= 0, are stated to be zero: otherwise the multipliers of these
    constraints may have to be as large as 1 / a_j.

    References
    ----------
    .. [1] Rockafellar, Convex Analysis (1970), section 31.
    .. [2] Dorn, Duality in quadratic programming, Quarterly of Applied Mathematics 18 (1960).

    Examples
    --------
    >>> import cvxpy as cp, kernelopt as ko
    >>> x = cp.Variable(2, nonneg=True, name="x")
    >>> problem = cp.Problem(cp.Minimize(x[0] + 2 * x[1]), [(cp.sum(x) >= 1).set_label("total")])
    >>> dual = ko.dualize(problem)
    >>> print(dual)
    maximize over y[total]
      y[total]
    subject to
      0 <= y[total] <= c  (x)
    <BLANKLINE>
    where
      c  (2,)  the costs of x
    >>> point = dual.recover_primal()[x]
    >>> [round(float(v), 6) + 0.0 for v in point], round(float(dual.dual_values()["total"]), 6)
    ([1.0, 0.0], 1.0)
    """
    check_is_problem(problem)
    check_treatable(problem)
    structure = Structure(problem)
    with COMPILING:
        return Dual.of(structure, *swept(structure))


def swept(structure: Structure) -> tuple[Swept, bool]:
    """Return a problem after its sweep, and whether its parameters stay parameters.

    They do where the problem is DPP. Elsewhere they are constants with their names and values. Variables of
    which signs force all entries to zero are constants too.
    """
    problem = structure.problem
    parametric = bool(problem.is_dpp())
    zero = zero_entries(structure, parametric)
    gone = [v for v in structure.user_variables if v.id in zero and zero[v.id].all()]
    constants: dict[int, Any] = {id(v): cp.Constant(np.zeros(v.shape)) for v in gone}
    numbers: dict[int, Any] = {}
    if not parametric:
        constants |= {id(p): cp.Constant(p.value, name=p.name()) for p in problem.parameters()}
        numbers |= {id(p): p.value for p in problem.parameters()}
    if constants:
        constants |= {id(node): with_numbers(node, constants, numbers) for node in risks(problem)}
        problem = copied_problem(problem, constants)
    return Swept(problem, structure, zero), parametric


def with_numbers(node: Risk, constants: dict[int, Any], numbers: dict[int, Any]) -> Risk:
    """Return a risk with constants in the place of parameters and variables."""
    learner = node.learner
    kernels = [replaced(K, constants) for K in learner.kernels]
    loss = copied_loss(learner.loss, numbers)
    given = kernels if len(kernels) > 1 else kernels[0]
    return risk(given, learner.y, loss, learner.bias is not None, learner.norm)


def check_treatable(problem: cp.Problem) -> None:
    """Raise unless the problem is convex, with real continuous variables, and its parameters have values."""
    for variable in problem.variables():
        attributes = variable.attributes
        for name in ("boolean", "integer"):
            if attributes[name]:
                raise DualizationError(
                    f"variables must be continuous, got {variable.name()} with {name}=True in dualize. "
                    "Relax it: a "
                    "problem with integers has no dual of the same value."
                )
        if variable.is_complex():
            raise DualizationError(
                f"variables must be real, got the complex {variable.name()} in dualize. Split it into a "
                "real and "
                "an imaginary part."
            )
    if not problem.is_dcp():
        raise DualizationError(
            f"the problem must follow the rules of disciplined convex programming, got {culprit(problem)} in "
            "dualize. Rewrite that expression; a risk is convex and is minimised or bounded from above."
        )
    for constant in problem.constants():
        value = constant.value
        if np.isnan(value.data if hasattr(value, "toarray") else value).any():
            raise DualizationError(
                f"the data of a problem must be numbers, got nan in the constant {short(constant)} "
                "in dualize. Remove or replace the entries that are missing."
            )
    unset = [p.name() for p in problem.parameters() if p.value is None]
    if unset and not (problem.is_dpp()):
        raise DualizationError(
            "the parameters of a problem that is not DPP must have values, got None for "
            f"{', '.join(unset)} in dualize. Set the .value of each."
        )


def culprit(problem: cp.Problem) -> str:
    """Return the smallest part of a problem that violates the rules, in words."""
    for root in (problem.objective, *problem.constraints):
        for term in offending_terms(root):
            if term.is_dcp():
                return f"the {curvature(term)} term {short(term)}"
    roots: list[Any] = [problem.objective.args[0], *problem.constraints]
    for root in roots:
        for node in nodes(root):
            if node.is_dcp() or not all(arg.is_dcp() for arg in node.args):
                continue
            if isinstance(node, cp.Expression):
                return f"the atom {type(node).__name__} in {short(node)}"
            return f"the constraint {node.label or short(node)}"
    expression = problem.objective.args[0]
    wanted = "convex" if isinstance(problem.objective, cp.Minimize) else "concave"
    atom = expression
    while isinstance(atom, AffAtom) and not isinstance(atom, Wrap):
        atom = next(arg for arg in atom.args if not arg.is_affine())
    return f"an objective that is not {wanted}, with the atom {type(atom).__name__}: {short(expression)}"

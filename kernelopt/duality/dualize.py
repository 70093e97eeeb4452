"""`dualize`: the dual of a convex problem."""

from __future__ import annotations

from typing import Any

import cvxpy as cp
import numpy as np

from kernelopt.duality.dual import Dual
from kernelopt.duality.sweep import Swept
from kernelopt.errors import DualizationError
from kernelopt.structure.attributes import copied_loss
from kernelopt.structure.gate import check_is_problem, offending_terms, terms_text, violations
from kernelopt.structure.structure import Structure, risk_on
from kernelopt.structure.trees import copied_problem, replaced, risks, short
from kernelopt.structure.zero_weights import all_zero_weights, lasting_zeros
from kernelopt.threads import COMPILING


def dualize(problem: cp.Problem) -> Dual:
    r"""The Lagrange dual of a convex problem, as a problem with readable names.

    .. math::

        \min_x\ F(x) + \sum_k w_k \mathrm{risk}(K_k(x))
        \quad\longleftrightarrow\quad
        \max_{\alpha, y}\ \sum_k w_k \ell_k(\alpha_k) - F^*(\dots)

    Every convex atom enters by its conjugate: norms by the dual norm, squares by squares, logarithms and
    exponentials by entropies, risks and fidelities by those that they state. What has no conjugate in the
    table is swept through cvxpy's cone form of that atom alone, whose name stands beside its lines.

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
    zero by their signs, as :math:`a'x \le 0` with :math:`a, x \ge 0`, are stated to be
    zero: otherwise the multipliers of these constraints may have to be as large as 1 / a_j.

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
        return Dual.of(swept(structure))


def swept(structure: Structure) -> Swept:
    """Return a problem after its sweep.

    Parameters stay parameters where the problem is DPP. Elsewhere they are constants with their names and
    values. Variables whose entries are all forced to zero by signs are constants too.
    """
    problem = structure.problem
    parametric = bool(problem.is_dpp())
    entries = lasting_zeros(structure) if parametric else all_zero_weights(structure)
    zero = {v.id: mask for v, mask in entries.items()}
    given = [] if parametric else problem.parameters()
    gone = [v for v in structure.user_variables if v.id in zero and zero[v.id].all()]
    constants: dict[int, Any] = {id(p): cp.Constant(p.value, name=p.name()) for p in given}
    constants |= {id(v): cp.Constant(np.zeros(v.shape)) for v in gone}
    if constants:
        for node in risks(problem):
            kernels = [replaced(K, constants) for K in node.learner.kernels]
            loss = copied_loss(node.learner.loss, {id(p): p.value for p in given})
            constants[id(node)] = risk_on(node.learner, kernels, loss)
        problem = copied_problem(problem, constants)
    return Swept(problem, structure, zero)


def check_treatable(problem: cp.Problem) -> None:
    """Raise unless the problem is convex, with real continuous variables, and its parameters have values."""
    others = ("boolean", "integer", "complex", "imag", "hermitian")
    for v in problem.variables():
        other = [name for name in others if v.attributes[name]]
        if other:
            raise DualizationError(
                f"variables must be real and continuous, got {v.name()} with {other[0]}=True in dualize. "
                "Relax integers, which have no dual of the same value; split complex variables into their "
                "real and imaginary parts."
            )
    if not problem.is_dcp():
        named = (name + terms_text(offending_terms(root)) for name, root in violations(problem))
        raise DualizationError(
            "the problem must be convex by the rules of disciplined convex programming, got "
            f"{'; '.join(named)} in dualize. Rewrite it. Risks are convex: they are minimised or bounded "
            "from above."
        )
    for constant in problem.constants():
        value = constant.value
        if np.isnan(value.data if hasattr(value, "toarray") else value).any():
            raise DualizationError(
                f"the data of a problem must be numbers, got nan in the constant {short(constant)} "
                "in dualize. Remove or replace the entries that are missing."
            )
    unset = [p.name() for p in problem.parameters() if p.value is None]
    if unset and not problem.is_dpp():
        raise DualizationError(
            "the parameters of a problem that is not DPP must have values, got None for "
            f"{', '.join(unset)} in dualize. Set the .value of each."
        )

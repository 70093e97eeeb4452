"""`show`: a problem beside its dual, as text and as LaTeX."""

from __future__ import annotations

import cvxpy as cp

from kernelopt.duality.dual import Dual
from kernelopt.duality.dualize import dualize
from kernelopt.duality.layout import latex_problem
from kernelopt.duality.naming import Shown, notation_of, shown_pair
from kernelopt.duality.statement import primal_of
from kernelopt.errors import ParameterError
from kernelopt.structure.gate import check_is_problem
from kernelopt.structure.structure import Structure
from kernelopt.threads import COMPILING
from kernelopt.validation import shown


def show(problem: cp.Problem, dual: cp.Problem | None = None) -> Shown:
    r"""A problem beside its dual, with every multiplier next to its constraint.

    A risk is written as its primal problem, :math:`\min \tfrac12 f'K^+ f + \mathrm{loss}(z)` with z == f + b,
    whose multiplier is alpha. Data have names: K_m for Gram matrices, y for labels, S0, S1, ... for
    similarities, t for traces. Others have that of their `cp.Constant`, or a letter from where they stand: A1
    and a1 for factors, c for the costs, B1 and b1 for what is added. A line for each gives its shape and its
    constraint. The name at the right of a constraint is that of its multiplier, and beside a constraint of
    the dual that of a primal variable, or else the label.

    Parameters
    ----------
    problem : cp.Problem
        Any convex problem that `dualize` takes.
    dual : cp.Problem, optional
        The dual to show; by default `dualize(problem)`. Only that one knows which multiplier belongs to which
        constraint; beside a dual by hand the constraints have their labels.

    Returns
    -------
    Shown
        It prints as text of at most 80 columns, the two problems side by side where they are narrow enough,
        else one below the other. In a notebook it is LaTeX.

    Raises
    ------
    DualizationError
        If there is no dual given, and the problem has none that is known.
    ParameterError
        If `problem` or `dual` is no problem.

    Examples
    --------
    >>> import cvxpy as cp, numpy as np, kernelopt as ko
    >>> grams = np.array([[[2.0, 0], [0, 2]], [[2, -2], [-2, 2]]])
    >>> theta = cp.Variable(2, nonneg=True, name="theta")
    >>> value = ko.risk(ko.combine(theta, grams), [1, -1], ko.hinge(1.0))
    >>> print(ko.show(cp.Problem(cp.Minimize(value), ko.lp_ball(theta, 2))))
    minimize over theta, f, b, z           | maximize over alpha
      1/2 f' K(theta)^+ f                  |   y'alpha
          + sum((1 - y * z)_+)             |       - 1/2 |(alpha' K_m alpha)_m|_2
    subject to                             | subject to
      z == f + b                   (alpha) |   0 <= y * alpha <= 1            (box)
      |theta|_2 <= 1             (y[ball]) |   sum(alpha) == 0                  (b)
      theta >= 0                           |
    <BLANKLINE>
    where
      y[ball]   = 1/2 |(alpha' K_m alpha)_m|_2
      K_m       (2, 2, 2)  Gram matrices, m = 1, ..., 2
      K(theta)  = sum_m theta_m K_m
      y         (2,)  labels
    """
    check_is_problem(problem)
    if dual is not None and not isinstance(dual, cp.Problem):
        raise ParameterError(
            f"dual must be a cvxpy.Problem or None, got {shown(dual)} in show. Leave it out for "
            "dualize(problem), or pass a dual by hand."
        )
    with COMPILING:
        dual = dualize(problem) if dual is None else dual
        own = dual.state if isinstance(dual, Dual) and dual.primal is problem else None
        return shown_pair(own.swept.structure if own else Structure(problem), dual, own)


def latex_of(problem: cp.Problem) -> str:
    """Return a problem as LaTeX, with every risk as its primal problem."""
    with COMPILING:
        structure = Structure(problem)
        notation = notation_of(structure)
        statement, _ = primal_of(structure, notation, {})
    return latex_problem(statement, equations=tuple(notation.symbols.sums.values()))

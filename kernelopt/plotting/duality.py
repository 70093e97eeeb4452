"""`plot_duality`: primal and dual values along a path of dual variables."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import cvxpy as cp
import numpy as np
from scipy.interpolate import make_interp_spline

from kernelopt.duality.conditions import objective
from kernelopt.duality.dualize import dualize
from kernelopt.duality.solving import kept, solved_at
from kernelopt.errors import InputError
from kernelopt.figures import draw_bounds, new_axes
from kernelopt.plotting.arguments import drawn
from kernelopt.threads import COMPILING, quietly
from kernelopt.validation import Array, as_vector, whole


def plot_duality(
    problem: cp.Problem, path: Sequence[Any] | Array, *, points: int = 41, ax: Any = None
) -> Any:
    r"""Draw the primal and the dual value along a path of dual variables, with the gap shaded.

    At every alpha of the path the dual value is

    .. math::

        d(\alpha) = \min_x\ F(x) + w \big(\ell(\alpha) - \tfrac12 \langle \alpha\alpha', K(x) \rangle\big),

    and the primal value is F(x) + w risk(K(x)). Between solutions x is on the segment of their points, so
    that the two values meet at an optimal corner. If a corner is an array, x is a minimiser x(alpha), the
    best response, everywhere. At an optimal alpha with several minimisers it need not be optimal.

    Parameters
    ----------
    problem : cp.Problem
        With one risk.
    path : sequence of Solution, fitted estimator or array of shape (n,), at least two
        Its corners, which straight segments join. Each is projected on the domain of the dual. The problem of
        a fitted estimator is ``model.solution_.problem``. What `kernelopt.load` returns has dual variables
        and no point, as an array.
    points : int >= 2, default 41
        Points of each segment.
    ax : matplotlib axes, optional
        Where to draw; by default a new figure.

    Returns
    -------
    matplotlib axes
        What was drawn on.

    Raises
    ------
    InputError
        If the problem has no risk or several, or the path fewer than two corners or ones of another length.

    Examples
    --------
    >>> import numpy as np
    >>> import kernelopt as ko
    >>> from formulations import lp_norm
    >>> K = [np.eye(2), np.array([[1.0, -1], [-1, 1]])]
    >>> solution = lp_norm.primal(K, [1, -1]).solve("exact")
    >>> ax = ko.plotting.plot_duality(solution.problem, [np.zeros(2), solution.alpha], points=5)
    >>> [line.get_label() for line in ax.lines]
    ['primal at the best response', 'dual']
    """
    dual, points = dualize(problem), whole(points, "points", 2)
    swept, structure = dual.swept, dual.swept.structure
    known = [(term, alpha) for term in swept.terms for alpha in term.alphas]
    if len(structure.risks) != 1 or len(known) != 1:
        raise InputError(
            f"a path of dual variables needs a problem with one risk, got {len(structure.risks)} in "
            "plot_duality. Draw solution.plot_history() instead."
        )
    given: object = path
    listed = isinstance(given, Sequence) or (isinstance(given, np.ndarray) and given.ndim > 0)
    if not listed or len(path) < 2:
        raise InputError(
            "path must be at least two solutions or arrays of shape (n,), got fewer in plot_duality. Pass "
            "[first, last]."
        )
    ((term, alpha),), learner, users = known, structure.risks[0].learner, structure.user_variables
    found = [corner_of(each, learner.n) for each in path]
    bias, last = learner.has_intercept, len(path) - 1
    corners = along([learner.loss.project(given, learner.y, bias) for given, _ in found])
    joined = all(v.id in point for v in users for _, point in found)
    ends = {v.id: along([point[v.id] for _, point in found]) for v in users} if joined else {}
    position, pairs = np.linspace(0, last, last * (points - 1) + 1), []
    with COMPILING, quietly(), np.errstate(all="ignore"), kept(users):
        for t in position:
            lower = solved_at(swept, {id(term.atom): corners(t)})
            if [v.id for v in dual.variables()] == [alpha.id]:  # in closed form
                lower = structure.sign * float(dual.objective.value)
            response = swept.point()
            for v in users:
                v.save_value(ends[v.id](t) if joined else response[v.id])
            pairs.append((lower, objective(swept)))
    (lower, upper), primal = np.transpose(pairs), "primal" if joined else "primal at the best response"
    if structure.maximize:
        (lower, upper), names = (-upper, -lower), ("dual", primal)
    else:
        names = (primal, "dual")
    ax = new_axes(ax)
    draw_bounds(ax, position, lower, upper, names)
    for corner in range(1, last):
        ax.axvline(corner, color="0.5", linewidth=0.8, linestyle=":")
    ax.set_xticks(range(last + 1), [rf"$\alpha_{{{i}}}$" for i in range(last + 1)])
    ax.set(xlim=(0, last), xlabel="dual variables on the path", ylabel="value", title="Weak duality")
    ax.legend(loc="best", frameon=False)
    return ax


def corner_of(given: Any, n: int) -> tuple[Array, dict[int, Array]]:
    """Return the dual variables of a corner, shape (n,), and its point by the ids of variables.

    A corner is a solution, a fitted estimator, or an array, which has no point.
    """
    if hasattr(given, "fit"):
        given = drawn(given, "a corner of the path", "plot_duality").solution
    if not hasattr(given, "certificate"):
        return as_vector(given, "path", size=n), {}
    if not given.certificate.alphas:
        raise InputError(
            "a corner of the path must have dual variables, got a solution without a risk in plot_duality. "
            "Pass solutions of the problem."
        )
    point = {v.id: np.asarray(value, dtype=float) for v, value in given.certificate.point.items()}
    return as_vector(given.certificate.alphas[0], "path", size=n), point


def along(corners: list[Array]) -> Any:
    """Return the path of straight segments through corners as a function; corner i is at i."""
    return make_interp_spline(np.arange(len(corners)), np.array(corners), k=1)

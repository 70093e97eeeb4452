"""`plot_duality`: primal and dual values along a path of dual variables."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import cvxpy as cp

from kernelopt.figures import draw_bounds, new_axes
from kernelopt.plotting.arguments import drawn
from kernelopt.plotting.paths import bounds_along
from kernelopt.validation import whole


def plot_duality(problem: cp.Problem, path: Sequence[Any], *, points: int = 41, ax: Any = None) -> Any:
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

    Returns
    -------
    matplotlib axes

    Raises
    ------
    InputError
        If the problem has no risk or several, or the path fewer than two corners or ones of another length.
    """
    corners = [corner_of(each) for each in path] if isinstance(path, Sequence) else path
    along = bounds_along(problem, corners, whole(points, "points", 2))
    ax = new_axes(ax)
    primal = "primal at the best response" if along.response else "primal"
    labels = ("dual", primal) if isinstance(problem.objective, cp.Maximize) else (primal, "dual")
    draw_bounds(ax, along.position, along.lower, along.upper, labels)
    for corner in range(1, len(along.corners) - 1):
        ax.axvline(corner, color="0.5", linewidth=0.8, linestyle=":")
    ax.set_xticks(range(len(along.corners)), [rf"$\alpha_{{{i}}}$" for i in range(len(along.corners))])
    ax.set_xlim(0, len(along.corners) - 1)
    ax.set_xlabel("dual variables on the path")
    ax.set_ylabel("value")
    ax.set_title("Weak duality")
    ax.legend(loc="best", frameon=False)
    return ax


def corner_of(given: Any) -> Any:
    """Return a corner of the path: an array as it is, and the solution of an estimator."""
    return drawn(given, "a corner of the path", "plot_duality").solution if hasattr(given, "fit") else given

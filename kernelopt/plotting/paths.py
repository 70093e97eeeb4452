"""Primal and dual values along a path of dual variables."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import cvxpy as cp
import numpy as np

from kernelopt.duality.conditions import objective
from kernelopt.duality.dualize import dualize
from kernelopt.duality.solving import kept, solved_at
from kernelopt.errors import InputError
from kernelopt.threads import COMPILING, quietly
from kernelopt.validation import Array, as_vector


class Along(NamedTuple):
    """The values along a path.

    Attributes
    ----------
    position : array of shape (T,)
        Corner i of the path is at i.
    lower, upper : arrays of shape (T,)
        The smaller and the larger of the two values: the dual and the primal one of a minimisation.
    corners : array of shape (k, n)
    response : bool
        Whether the primal points are best responses, and not those between the points of solutions.
    """

    position: Array
    lower: Array
    upper: Array
    corners: Array
    response: bool


def bounds_along(problem: cp.Problem, path: Sequence[Any], points: int) -> Along:
    """Return the primal and the dual values on the segments between dual variables."""
    dual = dualize(problem)
    structure, terms = dual.swept.structure, dual.swept.terms
    known = [(term, alpha) for term in terms for alpha in term.alphas]
    if len(structure.risks) != 1 or len(known) != 1:
        raise InputError(
            f"a path of dual variables needs a problem with one risk, got {len(structure.risks)} in "
            "plot_duality. Draw solution.plot_history() instead."
        )
    learner = structure.risks[0].learner
    listed = isinstance(path, Sequence) or (isinstance(path, np.ndarray) and path.ndim > 0)
    if not listed or len(path) < 2:
        raise InputError(
            "path must be at least two solutions or arrays of shape (n,), got fewer in plot_duality. Pass "
            "[first, last]."
        )
    bias = learner.bias is not None
    corners = np.array([learner.loss.project(alpha_of(p, learner.n), learner.y, bias) for p in path])
    position = np.concatenate(
        [i + np.linspace(0, 1, points)[1 if i else 0 :] for i in range(len(corners) - 1)]
    )
    users = structure.user_variables
    ids = [v.id for v in users]
    points_of = [points_by_id(corner, ids) for corner in path]
    with COMPILING, quietly(), np.errstate(all="ignore"), kept(users):
        pairs = []
        for t in position:
            lower = solved_at(dual.swept, {id(known[0][0].atom): at(corners, t)})
            response = dual.swept.point()
            if [v.id for v in dual.variables()] == [known[0][1].id]:  # in closed form
                lower = structure.sign * float(dual.objective.value)
            joined = [np.array([p[id_] for p in points_of if p is not None]) for id_ in ids]
            if all(p is not None for p in points_of):
                response = {id_: at(values, t) for id_, values in zip(ids, joined, strict=True)}
            for v in users:
                v.save_value(response[v.id])
            pairs.append((lower, objective(dual.swept)))
    lower, upper = np.array(pairs).T
    if structure.maximize:
        lower, upper = -upper, -lower
    return Along(position, lower, upper, corners, any(p is None for p in points_of))


def alpha_of(corner: Any, n: int) -> Array:
    """Return the dual variables of a solution, or an array of them, shape (n,)."""
    if hasattr(corner, "certificate"):
        if not corner.certificate.alphas:
            raise InputError(
                "a corner of the path must have dual variables, got a solution without a risk in "
                "plot_duality. Pass solutions of the problem."
            )
        corner = corner.certificate.alphas[0]
    return as_vector(corner, "path", size=n)


def at(corners: Array, t: float) -> Array:
    """Return the point of the path at position t."""
    i = min(int(t), len(corners) - 2)
    return np.asarray((i + 1 - t) * corners[i] + (t - i) * corners[i + 1])


def points_by_id(corner: Any, ids: Sequence[int]) -> dict[int, Array] | None:
    """Return the point of a solution by the ids of variables; None where it is none of this problem."""
    if not hasattr(corner, "certificate"):
        return None
    found = {v.id: np.asarray(value, dtype=float) for v, value in corner.certificate.point.items()}
    return found if set(ids) <= set(found) else None

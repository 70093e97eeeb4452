"""The problems that pages and examples build while they run, and the values of their duals.

Pages and examples are run by tests of their own, which say what they print. The problems are collected in
the same run.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from sys import _getframe
from typing import Any
from unittest import mock

import cvxpy as cp
import numpy as np
import pytest

import kernelopt as ko
from kernelopt.structure.structure import Structure
from kernelopt.structure.trees import nodes

FOLDERS = ("examples", "formulations")
ACCURATE = 1e-6  # relative: the value of a dual against that of its primal
LARGEST_ORDER = 30  # of a matrix that is a variable: its dual takes a minute at 60
QUICK = 1000  # variables: problems with fewer come first, and of these the solved ones
MOST_VARIABLES = 3000
MOST_POINTS = 100  # of a risk
SEEN: set[tuple[Any, ...]] = set()  # structures whose dual has been checked in this process


class Built:
    """Problems in the order in which they were built, and the certified values of those that were solved.

    `unclosed` has those whose certified gap is above the tolerance. A page that shows one, because it has no
    multiplier or a duality gap, catches the warning that `ko.solve` gives; elsewhere that is an error.
    """

    def __init__(self) -> None:
        self.problems: list[cp.Problem] = []
        self.bounds: dict[int, tuple[float, float]] = {}
        self.unclosed: set[int] = set()

    def check_duals(self) -> list[cp.Problem]:
        """Check the dual of one problem of each structure, and return those that are too large for that."""
        known = sorted(self.problems, key=lambda p: (size_of(p) > QUICK, id(p) not in self.bounds))
        large = []
        for problem in known:
            kind = structure_of(problem)
            if is_large(problem):
                large.append(problem)
            elif kind not in SEEN and id(problem) not in self.unclosed:
                SEEN.add(kind)
                check_dual(problem, self.bounds.get(id(problem)))
        return large


@contextmanager
def problems_built(page: str) -> Iterator[Built]:
    """Collect the problems that a page builds, or an example, or a formulation for one of them."""
    built = Built()
    init, init_solution = cp.Problem.__init__, ko.Solution.__init__

    def recorded(self: cp.Problem, *args: Any, **options: Any) -> None:
        init(self, *args, **options)
        file = Path(_getframe(1).f_code.co_filename)
        if not isinstance(self, ko.Dual) and (file.name == page or set(file.parts) & set(FOLDERS)):
            built.problems.append(self)

    def solved(found: ko.Solution, *args: Any, **options: Any) -> None:
        init_solution(found, *args, **options)
        built.bounds[id(found.problem)] = (found.lower, found.upper)
        if found.status != cp.OPTIMAL:
            built.unclosed.add(id(found.problem))

    with (
        mock.patch.object(cp.Problem, "__init__", recorded),
        mock.patch.object(ko.Solution, "__init__", solved),
    ):
        yield built


def structure_of(problem: cp.Problem) -> tuple[Any, ...]:
    """The kinds of the nodes of a problem with the exponents of norms, of whatever size they are."""
    roots = [problem.objective.args[0], *problem.constraints]
    kinds = [
        tuple((type(node).__name__, str(getattr(node, "p", ""))) for node in nodes(root)) for root in roots
    ]
    signs = [tuple(k for k, v in x.attributes.items() if v is not None) for x in problem.variables()]
    return type(problem.objective).__name__, *kinds, *signs


def size_of(problem: cp.Problem) -> int:
    """The number of scalar variables."""
    return sum(variable.size for variable in problem.variables())


def is_large(problem: cp.Problem) -> bool:
    """Whether the dual of a problem would take more than some seconds."""
    orders = [v.shape[0] for v in problem.variables() if v.ndim == 2 and v.is_symmetric()]
    points = [term.learner.n for term in Structure(problem).risks]
    wide = size_of(problem) > MOST_VARIABLES
    return wide or max(orders, default=0) > LARGEST_ORDER or max(points, default=0) > MOST_POINTS


def check_dual(problem: cp.Problem, bounds: tuple[float, float] | None) -> None:
    """Check that the dual has the value of the primal at a feasible point, within the certified bounds.

    An unbounded dual is that of a problem which is proved to be infeasible.
    """
    try:
        found = ko.dualize(problem).check()
    except ko.UnboundedError:
        with pytest.raises(ko.InfeasibleError) as raised:
            ko.solve(problem)
        assert raised.value.proof is not None, problem
        return
    size = max(1.0, abs(found.primal))
    assert found.gap <= ACCURATE, (problem, found)
    assert max(found.feasibility, found.stationarity) <= ACCURATE * size, (problem, found)
    assert found.complementarity <= 10 * ACCURATE * size, (problem, found)
    if bounds is not None and np.isfinite(bounds).all():
        lower, upper = bounds
        assert lower - ACCURATE * size <= found.dual <= upper + ACCURATE * size, (problem, found, bounds)

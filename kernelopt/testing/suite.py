"""The conformance suite: problems with known optima, and two on which solvers have returned wrong answers."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Literal, TypeAlias

import cvxpy as cp
import numpy as np

from kernelopt.catalog import Entry, catalogue
from kernelopt.errors import ParameterError
from kernelopt.methods.exact.programme import Programme
from kernelopt.structure.expansion import expand
from kernelopt.structure.structure import Structure
from kernelopt.testing.residuals import finite
from kernelopt.validation import Array

SEED = 2004  # of the problems: any other seed would do, and a fixed one makes runs comparable
KINDS: dict[str, dict[str, Any]] = {  # endings of names, and knobs; all that makes a planted problem hard
    "": {},
    ", harsh": {"degenerate": True, "duplicates": 2, "condition": 1e4},
    ", infeasible": {"infeasible": True},
}
INFEASIBLE = (cp.INFEASIBLE, cp.INFEASIBLE_INACCURATE)
UNBOUNDED = (cp.UNBOUNDED, cp.UNBOUNDED_INACCURATE)
Claim = Literal["value", "infeasible", "unbounded", "none"]


class ConicForm:
    """A conic problem with the optimum of a learning problem: a programme of its paper, or its explicit form.

    Parameters
    ----------
    problem : cp.Problem
        The learning problem.
    programme : Programme, optional
        By default the conic problem is `expand(problem)`, the learning problem with its risks written out.
    """

    def __init__(self, problem: cp.Problem, programme: Programme | None = None) -> None:
        self.problem, self.programme = problem, programme
        self.expansion = expand(problem) if programme is None else None
        self.conic: cp.Problem = (programme or self.expansion).problem  # type: ignore[union-attr]

    @property
    def is_dual(self) -> bool:
        """Whether the conic problem maximises and the learning problem minimises, or the reverse."""
        return type(self.conic.objective) is not type(self.problem.objective)

    def claim(self, status: str) -> Claim:
        """Return what a status of the conic problem says of the learning problem.

        By weak duality a learning problem is infeasible if its dual is unbounded.
        """
        if status in INFEASIBLE or status in UNBOUNDED:
            return "infeasible" if (status in INFEASIBLE) != self.is_dual else "unbounded"
        return "none" if status in ("failed", cp.SOLVER_ERROR) else "value"

    def clear(self) -> None:
        """Delete all values and multipliers, so that none of an earlier solve is taken for an answer."""
        duals = [dual for constraint in self.conic.constraints for dual in constraint.dual_variables]
        for variable in (*self.conic.variables(), *self.problem.variables(), *duals):
            variable.save_value(None)

    def proposed(self) -> tuple[dict[cp.Variable, Any] | None, list[Array] | None]:
        """Return the point of the learning problem and one alpha per risk, None where they are not finite."""
        if not finite([v.value for v in self.conic.variables()]):
            return None, None
        if self.expansion is None:
            point, alphas = self.programme.recover()  # type: ignore[union-attr]
        else:
            point = {v: v.value for v in Structure(self.problem).user_variables}
            alphas = [risk.alpha() for risk in self.expansion.risks]
        usable = bool(alphas) and finite(alphas)
        return (dict(point) if finite(point.values()) else None), (list(alphas) if usable else None)


Case: TypeAlias = Callable[[], tuple[ConicForm, float]]
"""A problem of the suite: it makes its conic form and returns its true optimal value too."""


def cases(size: int = 10, entries: dict[str, Entry] | None = None) -> dict[str, Case]:
    """Return the problems of the suite by name: all that formulations plant, and the pathological ones.

    Parameters
    ----------
    size : int >= 6, even, default 10
        Labelled points of the planted problems.
    entries : dict from name to Entry, optional
        By default the catalogue of installed formulations.
    """
    found: dict[str, Case] = {}
    for name, entry in (catalogue() if entries is None else entries).items():
        for kind, knobs in KINDS.items():
            if entry.planted and (kind != ", infeasible" or can_be_infeasible(entry)):
                found[name + kind] = partial(planted_form, entry, {"n": size, **knobs})
    return found | {
        "no strong duality": no_strong_duality,
        "unbounded log-determinant": unbounded_log_determinant,
    }


def can_be_infeasible(entry: Entry) -> bool:
    """Whether the entry plants infeasible problems; an entry that does not raises ParameterError."""
    make: Any = entry.planted
    try:
        return bool(make(np.random.default_rng(SEED), infeasible=True).infeasible)
    except ParameterError:
        return False


def planted_form(entry: Entry, knobs: dict[str, Any]) -> tuple[ConicForm, float]:
    """Return the conic form of a planted problem, by its first programme if it has one, and its optimum."""
    make: Any = entry.planted
    found = make(np.random.default_rng(SEED), **knobs)
    problem, programmes = found.formulation.problem, [*found.formulation.programmes.values()]
    form = ConicForm(problem, programmes[0]() if programmes else None)
    maximize = isinstance(problem.objective, cp.Maximize)
    return form, -np.inf if maximize and found.infeasible else found.value


def no_strong_duality() -> tuple[ConicForm, float]:
    """Return min x over [[0, x, 0], [x, z, 0], [0, 0, x + 1]] >> 0: its value is 0, and its dual has -1.

    The zero in the corner forces x = 0. There is no Slater point, and no dual point proves a bound above -1.
    """
    x, z = cp.Variable(name="x"), cp.Variable(name="z")
    matrix = cp.bmat([[0, x, 0], [x, z, 0], [0, 0, x + 1]])
    return ConicForm(cp.Problem(cp.Minimize(x), [(matrix >> 0).set_label("matrix")])), 0.0


def unbounded_log_determinant() -> tuple[ConicForm, float]:
    """Return min 4 / R - log R over R > 0, which tends to minus infinity as R grows.

    With one point, K = 1 / R and y = 2 it is log det K + y'Ky. A paper prints this in place of
    log det K + y'K^-1 y, which has a minimum.
    """
    R = cp.Variable(nonneg=True, name="R")
    return ConicForm(cp.Problem(cp.Minimize(4 * cp.inv_pos(R) - cp.log(R)))), -np.inf

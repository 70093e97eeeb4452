"""The conformance suite: problems with known optima, and two on which solvers have returned wrong answers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import cvxpy as cp
import numpy as np

from kernelopt.catalog import Entry, catalogue
from kernelopt.errors import ParameterError
from kernelopt.testing.conic_form import ConicForm

SEED = 2004  # of the default problems: any other seed would do, and a fixed one makes runs comparable
HARSH = {"degenerate": True, "duplicates": 2, "condition": 1e4}  # all that makes a planted problem hard


@dataclass(frozen=True)
class Case:
    """A problem of the suite.

    Attributes
    ----------
    name : str
    make : function without arguments
        Returns the conic form of the problem and its true optimal value.
    """

    name: str
    make: Callable[[], tuple[ConicForm, float]]


def cases(size: int = 10, entries: dict[str, Entry] | None = None, seed: int = SEED) -> Iterator[Case]:
    """Yield the problems of the suite: every formulation that plants optima, and the pathological ones.

    Parameters
    ----------
    size : int >= 6, even, default 10
        Labelled points of the planted problems.
    entries : dict from name to Entry, optional
        By default the catalogue of installed formulations.
    seed : int, default 2004
    """
    for name, entry in (catalogue() if entries is None else entries).items():
        if entry.planted is None:
            continue
        yield Case(name, partial(planted_form, entry, seed, {"n": size}))
        yield Case(f"{name}, harsh", partial(planted_form, entry, seed, {"n": size, **HARSH}))
        if can_be_infeasible(entry, seed):
            yield Case(
                f"{name}, infeasible", partial(planted_form, entry, seed, {"n": size, "infeasible": True})
            )
    yield Case("no strong duality", no_strong_duality)
    yield Case("unbounded log-determinant", unbounded_log_determinant)


def can_be_infeasible(entry: Entry, seed: int) -> bool:
    """Whether the entry plants infeasible problems; an entry that does not raises ParameterError."""
    make: Any = entry.planted
    try:
        return bool(make(np.random.default_rng(seed), infeasible=True).infeasible)
    except ParameterError:
        return False


def planted_form(entry: Entry, seed: int, knobs: dict[str, Any]) -> tuple[ConicForm, float]:
    """Return the conic form of a planted problem, by its first programme if it has one, and its optimum."""
    make: Any = entry.planted
    found = make(np.random.default_rng(seed), **knobs)
    first = next(iter(found.formulation.programmes.values()), None)
    form = ConicForm(found.formulation.problem, None if first is None else first())
    maximize = isinstance(found.formulation.problem.objective, cp.Maximize)
    return form, -np.inf if maximize and found.infeasible else found.value


def no_strong_duality() -> tuple[ConicForm, float]:
    """Return min x over [[0, x, 0], [x, z, 0], [0, 0, x + 1]] >> 0: its value is 0, that of its dual -1.

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

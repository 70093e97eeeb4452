"""The conformance suite: problems whose optimum is known, among them some on which solvers are wrong."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import cvxpy as cp
import numpy as np

from kernelopt.catalog import Entry, catalogue
from kernelopt.errors import ParameterError
from kernelopt.testing.answers import Form

SEED = 2004
HARSH = {"degenerate": True, "duplicates": 2, "condition": 1e4}
INFEASIBLE = ("lanckriet.hard_margin", "lanckriet.sdp", "lp_norm.primal")


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
    make: Callable[[], tuple[Form, float]]


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
        yield Case(name, partial(planted, entry, seed, {"n": size}))
        yield Case(f"{name}, harsh", partial(planted, entry, seed, {"n": size, **HARSH}))
        if can_be_infeasible(entry, seed):
            yield Case(f"{name}, infeasible", partial(planted, entry, seed, {"n": size, "infeasible": True}))
    yield Case("no strong duality", no_strong_duality)
    yield Case("unbounded log-determinant", unbounded_log_determinant)


def can_be_infeasible(entry: Entry, seed: int) -> bool:
    """Whether the entry makes infeasible problems; those that cannot refuse."""
    make: Any = entry.planted
    try:
        return bool(make(np.random.default_rng(seed), infeasible=True).infeasible)
    except ParameterError:
        return False


def planted(entry: Entry, seed: int, knobs: dict[str, Any]) -> tuple[Form, float]:
    """Return a planted problem in the form that "exact" solves: the first programme, or in words."""
    make: Any = entry.planted
    found = make(np.random.default_rng(seed), **knobs)
    first = next(iter(found.formulation.programmes.values()), None)
    form = Form(found.formulation.problem, None if first is None else first())
    maximize = isinstance(found.formulation.problem.objective, cp.Maximize)
    return form, -np.inf if maximize and found.infeasible else found.value


def no_strong_duality() -> tuple[Form, float]:
    """Return min x over [[0, x, 0], [x, z, 0], [0, 0, x + 1]] >> 0: its value is 0, that of its dual -1.

    The corner forces x = 0. There is no Slater point, so nothing proves the value.
    """
    x, z = cp.Variable(name="x"), cp.Variable(name="z")
    matrix = cp.bmat([[0, x, 0], [x, z, 0], [0, 0, x + 1]])
    return Form(cp.Problem(cp.Minimize(x), [(matrix >> 0).set_label("matrix")])), 0.0


def unbounded_log_determinant() -> tuple[Form, float]:
    """Return min 4 / R - log R over R > 0, with R the inverse of a kernel of one point: it falls for ever.

    It is log det K + y'Ky, which the paper prints, where y'K^-1 y is meant.
    """
    R = cp.Variable(nonneg=True, name="R")
    return Form(cp.Problem(cp.Minimize(4 * cp.inv_pos(R) - cp.log(R)))), -np.inf

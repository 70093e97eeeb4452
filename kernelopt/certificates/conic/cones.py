"""The standard cone form of a cvxpy problem."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from copy import copy
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import groupby
from typing import Any

import cvxpy as cp
import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components

from kernelopt.certificates.conic.exponential_cones import Exponential, Power
from kernelopt.certificates.conic.symmetric_cones import (
    Cone,
    Orthant,
    SecondOrder,
    Semidefinite,
    verified_semidefinite,
)
from kernelopt.conic.calls import call
from kernelopt.conic.compiled import Compiled, compiled
from kernelopt.errors import KerneloptError, Stopped
from kernelopt.numerics.ball import Ball
from kernelopt.validation import Array

MAX_DENSE = 1000  # columns of a program whose matrices A'HA are dense
TOO_LONG = "not started"  # a status: the set-up of the solver would exceed the time left


@dataclass(frozen=True)
class ConeProgram:
    """min 1/2 x'Px + c'x + offset subject to b - Ax in K, as cvxpy compiles it for a solver."""

    P: sp.csc_array
    c: Array
    A: sp.csc_array
    b: Array
    offset: float
    dims: Any
    cones: tuple[Cone, ...]
    columns: dict[int, int]  # variable id -> first column
    solver: str
    form: Compiled

    def solve(self, **options: Any) -> tuple[str, Array | None, Array | None]:
        """Return (status, x, z) of the solver.

        Nothing is assumed of the result. Solvers stop at absolute tolerances, so the objective is divided by
        the largest entry of c. The running call may end the solve, as in `run_solver`.
        """
        size = float(np.abs(self.c).max(initial=0.0)) or 1.0
        data = {**self.form.data, "A": self.A, "b": self.b, "c": self.c / size, "dims": self.dims}
        if self.P.nnz or "P" in data:
            data["P"] = self.P / size
        solver = self.form.chain.solver
        try:
            raw = call(
                solver,
                data,
                lambda: solver.solve_via_data(data, False, False, dict(options), None),
                options,
            )
        except TimeoutError:
            return TOO_LONG, None, None
        except Stopped:
            raise
        except BaseException as error:  # of any class: the solver returned no multiplier
            panic = type(error).__name__ == "PanicException"  # Clarabel's, a BaseException
            if not (panic or isinstance(error, Exception)):
                raise
            return "failed", None, None
        if isinstance(raw, dict):  # SCS
            return str(raw["info"]["status"]), usable(raw["x"]), usable(raw["y"], size)
        return str(raw.status), usable(raw.x), usable(raw.z, size)

    def terms(self, x: Array) -> float:
        """Return |c|'|x| + |offset|, the sum of the absolute values of the linear terms of the objective."""
        return float(np.abs(self.c) @ np.abs(x)) + abs(self.offset)

    def with_rows(self, rows: sp.csc_array, right: Array) -> ConeProgram:
        """Return the program with `rows @ x <= right` added, at the end of the non-negative cone."""
        at = self.dims.zero + self.dims.nonneg
        A = sp.vstack([self.A[:at], rows, self.A[at:]], format="csc")
        b = np.concatenate([self.b[:at], right, self.b[at:]])
        dims = copy(self.dims)
        dims.nonneg += right.size
        cones = cones_of(dims, self.solver == "CLARABEL", self.c.size <= MAX_DENSE)
        return replace(self, A=A, b=b, dims=dims, cones=cones)

    def by_cone(self, rule: Callable[[Cone], Any]) -> Array:
        """Return what a rule gives for the rows of each cone."""
        found = np.zeros(self.b.size)
        for cone in self.cones:
            cone.of(found)[:] = rule(cone)
        return found

    @cached_property
    def curvature(self) -> Array:
        """The diagonal of a diagonal D for which P - D is verified to be positive semidefinite."""
        return curvature(self.P)

    def by_column(self, values: Iterable[tuple[cp.Variable, Array]], missing: float) -> Array:
        """Return the given entries of variables by column, and a number for the auxiliary columns."""
        found = np.full(self.c.size, missing)
        for variable, entries in values:
            start = self.columns.get(variable.id)
            if start is not None:
                found[start : start + variable.size] = entries
        return found


def curvature(P: sp.csc_array) -> Array:
    """Return the diagonal of a D for which S - D is verified to be positive semidefinite, S = (P + P') / 2.

    S is block diagonal over the connected components of its graph. A component of one column has its entry
    of S; the columns of a larger one have a verified lower bound of the smallest eigenvalue of its block,
    which may be negative.
    """
    d: Array = P.diagonal()
    count, label = connected_components(P, directed=False)
    order = np.argsort(label, kind="stable")
    for columns in np.split(order, np.cumsum(np.bincount(label, minlength=count))[:-1]):
        if columns.size > 1:
            block = P[columns][:, columns].toarray()
            d[columns] = least_eigenvalue((Ball(block) + Ball(block.T)) * 0.5)
    return d


def least_eigenvalue(S: Ball) -> float:
    """Return a verified lower bound of the smallest eigenvalue of the symmetric matrices in a ball.

    It is half of the computed smallest eigenvalue where that is positive and verified, else the computed one
    lowered by its rounding error, which is doubled until the bound is verified. The bound -|S|_1 always
    holds.
    """
    lowest = -float(Ball(S.size).sum(axis=0).above.max(initial=0.0))
    if not np.isfinite(lowest):
        return -np.inf
    try:
        smallest = float(np.linalg.eigvalsh(S.mid)[0])
    except np.linalg.LinAlgError:
        return lowest
    if smallest > 0 and verified_semidefinite(S, smallest / 2):
        return smallest / 2
    extra = 2 * len(S.mid) * float(np.spacing(-lowest))
    while min(smallest, 0.0) - extra > lowest:
        if verified_semidefinite(S, min(smallest, 0.0) - extra):
            return min(smallest, 0.0) - extra
        extra *= 2
    return lowest


def usable(values: Any, size: float = 1.0) -> Array | None:
    """Return `values` times `size` as an array, None where they are missing, empty or not finite."""
    if values is None:
        return None
    array = size * np.asarray(values, dtype=float)
    return array if array.size and np.isfinite(array).all() else None


def cones_of(dims: Any, upper_triangle: bool, dense: bool) -> tuple[Cone, ...]:
    """Return the cones in cvxpy's order of the rows, equal ones that follow each other together."""
    found: list[Cone] = []

    def add(kind: type[Cone], rows: int, parameter: Any = None) -> None:
        start = found[-1].rows.stop if found else 0
        if rows:
            found.append(kind(slice(start, start + rows), parameter, upper_triangle, dense))

    add(Cone, dims.zero)
    add(Orthant, dims.nonneg)
    for size, group in groupby(dims.soc):
        add(SecondOrder, size * len(list(group)), size)
    for order, group in groupby(dims.psd):
        add(Semidefinite, order * (order + 1) // 2 * len(list(group)), order)
    add(Exponential, 3 * dims.exp)
    exponents = np.array([np.ravel(exponent)[0] for exponent in dims.p3d], dtype=float)
    add(Power, 3 * exponents.size, exponents)
    return tuple(found)


def cone_program(problem: cp.Problem, solver: str = "CLARABEL") -> ConeProgram | None:
    """Return the cone form that cvxpy compiles for Clarabel or SCS, None if it has none in doubles.

    The problem's variables must have no attributes (`boxes.plain`): then every entry of a variable is one
    column.
    """
    try:
        form = compiled(problem, solver)
    except KerneloptError:
        raise
    except (cp.SolverError, ValueError):
        return None
    data = form.data
    dims = data["dims"]
    if getattr(dims, "pnd", None):
        return None
    n = data["c"].size
    A = sp.csc_array(data["A"])
    if not np.isfinite(A.data).all():  # a product of constants overflows
        return None
    P = sp.csc_array(data["P"]) if "P" in data else sp.csc_array((n, n))
    offset, columns = float(form.inverse[-1]["offset"]), dict(data["param_prob"].var_id_to_col)
    # Semidefinite blocks hold the upper triangle for Clarabel, and the lower one for SCS.
    cones = cones_of(dims, solver == "CLARABEL", n <= MAX_DENSE)
    return ConeProgram(P, data["c"], A, data["b"], offset, dims, cones, columns, solver, form)

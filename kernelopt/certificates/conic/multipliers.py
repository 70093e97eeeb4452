"""A lower bound of any cvxpy problem by weak duality, from the approximate multipliers of solvers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain
from types import MappingProxyType
from typing import Any

import cvxpy as cp
import numpy as np

from kernelopt.certificates.boxes import Box, Boxes
from kernelopt.certificates.conic.cones import ConeProgram, cone_program
from kernelopt.certificates.conic.equilibration import equilibrated
from kernelopt.certificates.conic.lagrangian import gradient
from kernelopt.certificates.conic.proofs import (
    column_choices,
    completed,
    completed_point,
    farkas,
    repaired_bound,
    suggests_ray,
)
from kernelopt.certificates.conic.settings import SETTINGS
from kernelopt.certificates.conic.stated import WithoutAttributes, entries
from kernelopt.certificates.conic.tightening import tightened
from kernelopt.certificates.gap import Bound, relative_gap
from kernelopt.conic.compiled import dual_rows
from kernelopt.conic.costs import cone_sizes
from kernelopt.conic.ladder import ACCURATE_TOLERANCE, QUICK_ITERATIONS, QUICK_TOLERANCE, scs_options
from kernelopt.numerics.rounding import SMALLEST_DIVISOR
from kernelopt.validation import Array, Index


def conic_bound(
    stripped: WithoutAttributes,
    variables: Sequence[cp.Variable],
    boxes: Boxes,
    found: list[Bound] | None = None,
    units: Mapping[int, Array] = MappingProxyType({}),
    left: Sequence[Array | None] = (),
    attained: float = np.inf,
    tol: float | None = None,
) -> Bound:
    """Return a lower bound of a minimisation problem in standard cone form.

    With z in the dual cone, any x, and r = c + Px + A'z,

        lower = offset - b'z - 1/2 x'Px + sum_j min(r_j lo_j, r_j hi_j),

    where a column without bounds needs r_j = 0. z is the approximate multiplier of a solver. Its residual
    in such columns is removed by a change of least local norm at z + t e, e in the interior of the dual cone.

    `units` are the units of the variables by id, powers of two; the program is scaled to them. `left` has the
    dual values of the first constraints, None where one is not known. The problem is solved only where the
    gap between their bound and `attained`, a value of the objective, exceeds `tol`. Without a `tol` that is
    where the dual values do not determine z and the bound is not close. Where the bound from a solver is
    poor, the next solver is tried.

    Every improved bound is appended to `found` as soon as it is known, so that the caller has the best one
    even where `Stopped` ends a solve, which is passed on.
    """
    copies, best = stripped.variables, Bound(-np.inf, "no solver returned a multiplier")
    names = {copies[v.id].id: v.name() for v in variables}
    interior = stripped.program
    candidates = [(interior, None)] if interior is not None and any(z is not None for z in left) else []
    for program, options in chain(candidates, attempts(stripped.problem, interior)):

        def by_column(values: Callable[[cp.Variable], Any], missing: float, program: Any = program) -> Array:
            found: Array = program.by_column([(copies[v.id], values(v)) for v in variables], missing)
            return found

        scaled = equilibrated(program, by_column(lambda v: units.get(v.id, np.ones(())), np.nan))
        lower = by_column(lambda v: entries(v, boxes[v.id].lower.reshape(v.shape, order="F")), -np.inf)
        upper = by_column(lambda v: entries(v, boxes[v.id].upper.reshape(v.shape, order="F")), np.inf)
        known = Box(lower / scaled[1], upper / scaled[1])
        x = by_column(lambda v: value_of(v), np.nan) / scaled[1]
        with np.errstate(all="ignore"):  # a bound that overflows is -inf in the end
            search = Search(scaled, known, np.nan_to_num(np.abs(x)), names, found)
            if options is not None:
                solve_next = search.run(options)
            else:
                z = multiplier(stripped.problem, program, left)
                solve_next = not search.from_dual_values(z, x, attained, tol)
        if search.best.value > best.value or best.value == -np.inf:
            best = search.best
        stuck = options is None and tol is None and search.needs_bounds  # `tol` asks for another solve
        if stuck or (best.value > -np.inf and not solve_next):
            break
    return best


def multiplier(problem: cp.Problem, program: ConeProgram, left: Sequence[Array | None]) -> Array:
    """Return the multiplier of a program from the dual values of constraints, NaN where unknown."""
    total, count = np.zeros((2, program.b.size))
    for found, values in zip(dual_rows(problem, program.form), left, strict=False):
        if found is None or values is None or values.size != found[0].size:
            continue
        row, scale = found
        known = row >= 0
        np.add.at(total, row[known], values[known] / scale[known])
        np.add.at(count, row[known], 1.0)
    return np.where(count > 0, total / np.maximum(count, 1.0), np.nan)


def attempts(
    problem: cp.Problem, interior: ConeProgram | None
) -> Iterator[tuple[ConeProgram, dict[str, Any]]]:
    """Yield the cone forms of a problem whose solvers are to compute a multiplier, the cheaper first.

    The costs are predicted from the cone form for Clarabel.
    """
    accurate = scs_options(ACCURATE_TOLERANCE, SETTINGS.accurate_iterations)
    sizes = None if interior is None else cone_sizes(interior.dims, interior.A)
    first_order = sizes is not None and sizes.first_order_first
    if interior is not None and not first_order:
        yield interior, {}
    other = cone_program(cp.Problem(problem.objective, problem.constraints), "SCS")  # cvxpy keeps one form
    if other is not None:
        yield other, scs_options(QUICK_TOLERANCE, QUICK_ITERATIONS) if first_order else accurate
    if interior is not None and sizes is not None and first_order and not sizes.intractable:
        yield interior, {}


def value_of(variable: cp.Variable) -> Array:
    """Return the entries of a variable's value, zero where there is no finite value."""
    value = np.zeros(variable.shape) if variable.value is None else np.asarray(variable.value, dtype=float)
    return entries(variable, np.nan_to_num(value, posinf=0.0, neginf=0.0))


class Search:
    """The best bound from the multipliers that solvers have returned so far.

    The columns are in `box` under the assumption that the objective is at most `objective_bound`. Let v be a
    lower bound that was computed with it. Either some feasible point meets the assumption, and v holds for
    all such points, or none does, and `objective_bound` itself is a lower bound. Hence
    min(v, objective_bound) is a lower bound in any case.

    `scaled` is what `equilibrated` returns. `sizes` are the absolute values of the columns at a known point;
    the limits that a bound may assume hold there. Every improved bound is appended to `found`.
    """

    def __init__(
        self,
        scaled: tuple[ConeProgram, Array, Array],
        known: Box,
        sizes: Array,
        names: dict[int, str],
        found: list[Bound] | None,
    ) -> None:
        self.program, self.columns, self.rows = scaled
        self.known, self.sizes, self.names, self.found = known, sizes, names, found
        self.choices = column_choices(known)
        self.objective_bound, self.box = -np.inf, known
        self.dependent: Index | None = None  # columns; None while it is not known whether there are any
        self.best, self.needs_bounds = Bound(-np.inf, "no multiplier could be repaired"), False

    def run(self, options: dict[str, Any]) -> bool:
        """Keep the bound of the solver's multiplier, or its ray; return whether the bound is poor."""
        program = self.program
        status, x, z = program.solve(**options)
        infeasible = "nfeasible" in status and "Dual" not in status
        ray = farkas(program, z, self.known) if infeasible and z is not None else None
        if ray is not None:
            self.best = Bound(np.inf, "infeasible", self.rows * ray)
        elif x is not None and ("Dual" in status or "unbounded" in status):
            why = f"{owner(program, self.names, x)} is unbounded in the relaxation: it needs bounds"
            self.best = Bound(-np.inf, why)
        elif x is not None and z is not None:
            primal = self.primal(x)
            self.repair_and_keep(x, z, primal)
            return self.best.value < primal - SETTINGS.poor_gap * max(abs(primal), program.terms(x))
        return False

    def from_dual_values(self, z: Array, x: Array, attained: float, tol: float | None) -> bool:
        """Bound from dual values that a solve has left; return whether no solve is needed.

        NaN stands for the unknown entries of z, and for the auxiliary columns of x.
        """
        program, z = self.program, z / self.rows
        determined = not np.isnan(z).any()
        if not np.isfinite(attained) and not np.isnan(x).any():
            attained = self.primal(x)
        x = completed_point(program, x)
        if not determined:
            z = completed(program, x, z)
        ray = farkas(program, z, self.known) if suggests_ray(program, z) else None
        if ray is not None:
            self.best = Bound(np.inf, "infeasible", self.rows * ray)
            return True
        close = self.repair_and_keep(x, z, attained)
        self.needs_bounds = self.needs_bounds and determined  # completed entries may be the cause
        if tol is None:
            return determined or (close and np.isfinite(attained))
        return relative_gap(self.best.value, attained, program.terms(x)) <= tol

    def primal(self, x: Array) -> float:
        """Return the objective at x."""
        return float((self.program.c + self.program.P @ x / 2) @ x + self.program.offset)

    def repair_and_keep(self, x: Array, z: Array, primal: float) -> bool:
        """Correct a multiplier and keep a better bound; return whether it is close to `primal`.

        It is assumed that the optimum exceeds `primal`, about the objective at x, by less than a margin.
        """
        program = self.program
        terms = program.terms(x)
        if not primal < self.objective_bound:
            self.objective_bound = primal + abs(primal) + SETTINGS.objective_margin * terms
            self.box = tightened(program, self.known, self.objective_bound)
        for columns in self.choices:
            negligible = SETTINGS.negligible_gap * abs(primal)
            if self.best.value > -np.inf and primal - self.best.value <= negligible:
                break
            repaired = repaired_bound(program, self.box, x, z, columns)
            close = primal - repaired.value <= SETTINGS.poor_gap * max(abs(primal), terms)
            if not close and self.restrict_dependent(x):
                repaired = repaired_bound(program, self.box, x, z, columns)
            value = min(repaired.value, self.objective_bound)
            if value > self.best.value:
                self.best = Bound(value, self.condition())
                if self.found is not None and not (self.found and self.found[-1].value >= value):
                    self.found.append(self.best)
            elif self.best.value == -np.inf and repaired.unbounded_slopes.any():
                self.best = Bound(-np.inf, self.without_minimum(x, z, repaired.unbounded_slopes))
        size = max(abs(primal), SETTINGS.cancellation * terms)
        return primal - self.best.value <= SETTINGS.sufficient_gap * size

    def without_minimum(self, x: Array, z: Array, unbounded: Array) -> str:
        """Return why a multiplier gives no bound, where slopes of the `unbounded` columns are not zero.

        If z meets the equations of these columns up to a solver's error, the dual has no interior point near.
        """
        program, name = self.program, owner(self.program, self.names, unbounded)
        slopes = np.abs(gradient(program, x).mid + program.A.T @ z)
        sizes = np.abs(program.c) + abs(program.A).T @ np.abs(z)
        met = slopes <= SETTINGS.slope_error * sizes.max(initial=0.0)
        self.needs_bounds = bool(met[unbounded != 0].all())
        if not self.needs_bounds:
            return f"the multipliers are far from the dual constraint of {name}"
        given = f"bounds={{{name.removeprefix('variable ')}: (-R, R)}}"
        return (
            f"the dual has no interior point near: give {given}, R a bound of the entries at an optimum, or "
            "tol for another solve"
        )

    def restrict_dependent(self, x: Array) -> bool:
        """Assume limits for columns that are dependent up to rounding; return whether there are new ones.

        A column is limited to `max_ratio` times the largest of the entries of |x| and the sizes of such
        columns.
        """
        if self.dependent is not None:
            return False
        x = np.maximum(np.abs(x), self.sizes)
        largest = SETTINGS.max_ratio * max(float(x.max(initial=0.0)), SMALLEST_DIVISOR)
        wide = np.flatnonzero(~(self.box.max_abs <= largest) & (self.program.curvature <= 0))
        self.dependent = dependent_columns(self.program, wide)
        if not self.dependent.size:
            return False
        radius = np.full(x.size, np.inf)
        radius[self.dependent] = SETTINGS.max_ratio * max(float(x[self.dependent].max()), SMALLEST_DIVISOR)
        self.known = Box(np.maximum(self.box.lower, -radius), np.minimum(self.box.upper, radius))
        self.box = tightened(self.program, self.known, self.objective_bound)
        return True

    def condition(self) -> str:
        """Return a sentence that names the limits that a bound assumes, empty where it assumes none."""
        if self.dependent is None or not self.dependent.size:
            return ""
        column = int(self.dependent[0])
        radius = float(self.known.max_abs[column] * self.columns[column])
        name = owner(self.program, self.names, np.arange(self.sizes.size) == column)
        return (
            f"it holds for entries of {name} up to {radius:.0e}: their matrices "
            "are linearly dependent but for rounding, and larger weights would use rounding errors as kernels"
        )


def dependent_columns(program: ConeProgram, columns: Index) -> Index:
    """Return which `columns` are linearly dependent up to rounding; none where there are too many columns.

    Let d be a direction with A d and c'd of the size of rounding. Along d the program of the stored numbers
    is determined by their rounding errors alone: at weights of 1e15 its optimum may differ from the one
    that is meant.
    """
    none: Index = columns[:0]
    if not 1 < columns.size <= SETTINGS.max_columns:
        return none
    A = program.A[:, columns].toarray()
    length = np.sqrt((A**2).sum(axis=0))
    if not (np.isfinite(length).all() and (length > 0).all()):
        return none
    try:
        R = np.linalg.qr(A / length, mode="r")  # of a tall matrix: the same singular values, and no large U
        _, values, directions = np.linalg.svd(R, full_matrices=True)
    except np.linalg.LinAlgError:
        return none
    values = np.concatenate([values, np.zeros(columns.size - values.size)])
    null = directions[values <= SETTINGS.dependent * float(values[0])]
    cost = program.c[columns] / length
    null = null[np.abs(null @ cost) <= SETTINGS.dependent * np.abs(null) @ np.abs(cost)]
    found: Index = columns[np.abs(null).max(axis=0, initial=0.0) > np.sqrt(SETTINGS.dependent)]
    return found


def owner(program: ConeProgram, names: dict[int, str], columns: Array) -> str:
    """Return the name of the user's variable to which the largest entry of `columns` belongs."""
    column = int(np.abs(columns).argmax())
    starts = sorted((start, key) for key, start in program.columns.items())
    key = [key for start, key in starts if start <= column][-1]
    return f"variable {names[key]}" if key in names else "an auxiliary variable"

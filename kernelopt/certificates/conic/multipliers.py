"""A lower bound of any cvxpy problem by weak duality, from the approximate multipliers of solvers."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

import cvxpy as cp
import numpy as np

from kernelopt.certificates.boxes import Boxes, without_attributes
from kernelopt.certificates.conic.cones import ConeProgram, cone_program
from kernelopt.certificates.conic.dependence import restricted_box
from kernelopt.certificates.conic.dual_cones import interior_point
from kernelopt.certificates.conic.equilibration import Scaled, column_units, equilibrated
from kernelopt.certificates.conic.farkas import farkas
from kernelopt.certificates.conic.least_norm import LeastNormCorrection
from kernelopt.certificates.conic.proofs import repaired_bound
from kernelopt.certificates.conic.tightening import Interval, tightened
from kernelopt.conic.ladder import ACCURATE_TOLERANCE, QUICK_ITERATIONS, QUICK_TOLERANCE, scs_options
from kernelopt.structure.affine import flat
from kernelopt.threads import quietly
from kernelopt.validation import Array, Index, Mask

ACCURATE_ITERATIONS = 10_000  # of SCS after Clarabel failed: a bound should not take as long as a solve
SUFFICIENT_GAP = 1e-6  # of the primal value: a bound this close ends the search
ACCEPTED_LOSS = 1e-8  # of the primal value: a larger loss is reduced by a multiplier further inside the cone
NEGLIGIBLE_GAP = 1e-9  # of the primal value: a bound this close is not worth another correction
POOR_GAP = 1e-3  # of the objective's terms: with a larger gap, dependent columns are looked for
OBJECTIVE_MARGIN = 1e-3  # of the objective's terms: by how much the optimum may exceed a solver's value
CANCELLATION = 1e-3  # of the objective's terms: a smaller primal value is one of terms that cancel
TILTS = (0.0, 1e-8, 1e-7, 1e-6, 1e-4)  # of the largest entry of c: from the solvers' tolerances upward


class Bound(NamedTuple):
    """A lower bound of a minimisation problem.

    `reason` says why the bound is -inf, or what a finite bound assumes.
    """

    value: float
    reason: str = ""
    ray: Array | None = None  # a Farkas ray, where the problem is infeasible
    rounding: float = 0.0  # the bound of the rounding errors by which the value was lowered


def conic_bound(
    problem: cp.Problem,
    variables: list[cp.Variable],
    boxes: Boxes,
    found: list[Bound] | None = None,
    units: Mapping[int, Array] = MappingProxyType({}),
) -> Bound:
    """Return a lower bound of a minimisation problem in standard cone form.

    With z in the dual cone, any x, and r = c + Px + A'z,

        lower = offset - b'z - 1/2 x'Px + sum_j min(r_j lo_j, r_j hi_j),

    where a column without bounds needs r_j = 0. z is the approximate multiplier of a solver. Its residual
    in such columns is removed by a least-norm change, which may leave the dual cone. Therefore the problem
    is also solved with the objective tilted by t A'e, e in the interior of the dual cone: its multiplier z
    gives A'(z + t e) = -c - Px, and z + t e is inside the cone.

    `units` are the units of the variables by id, powers of two; the program is scaled to them.

    Every improved bound is appended to `found` as soon as it is known, so that the caller has the best one
    even where `Stopped` ends a solve, which is passed on.
    """
    with quietly():
        stripped = without_attributes(problem, variables, boxes)
    names = {stripped.variables[v.id].id: v.name() for v in variables}
    best = Bound(-np.inf, "no solver returned a multiplier")
    compiled_for: dict[str, ConeProgram | None] = {}
    for solver, options in multiplier_solvers(stripped.problem, compiled_for):
        program = compiled_for.get(solver) or cone_program(stripped.problem, solver)
        if program is None:
            continue
        lower, upper = column_box(program, stripped.variables.values(), stripped.boxes)
        sizes = column_sizes(program, variables, stripped.variables)
        measured = [(stripped.variables[v.id], units.get(v.id, np.ones(()))) for v in variables]
        scaled = equilibrated(program, column_units(program, measured))
        best = program_bound(scaled, lower, upper, options, names, found, sizes)
        if best.value > -np.inf:
            break
    return best


def multiplier_solvers(
    problem: cp.Problem, compiled_for: dict[str, ConeProgram | None]
) -> list[tuple[str, dict[str, Any]]]:
    """Return the solvers that are to compute a multiplier with their options, the cheaper first.

    The costs are predicted from the cone form for Clarabel, which is stored in `compiled_for`.
    """
    program = compiled_for["CLARABEL"] = cone_program(problem, "CLARABEL")
    interior_point: tuple[str, dict[str, Any]] = ("CLARABEL", {})
    accurate = scs_options(ACCURATE_TOLERANCE, ACCURATE_ITERATIONS)
    if program is None:
        return [("SCS", accurate)]
    cones = program.cones()
    if not cones.first_order_first:
        return [interior_point, ("SCS", accurate)]
    quick = ("SCS", scs_options(QUICK_TOLERANCE, QUICK_ITERATIONS))
    return [quick] if cones.intractable else [quick, interior_point]


def column_box(program: ConeProgram, variables: object, boxes: Boxes) -> tuple[Array, Array]:
    """Return the bounds of every column, infinite for auxiliary columns."""
    lower, upper = np.full(program.c.size, -np.inf), np.full(program.c.size, np.inf)
    for variable in variables:  # type: ignore[attr-defined]
        start = program.columns.get(variable.id)
        if start is not None:
            lower[start : start + variable.size] = boxes[variable.id].lower
            upper[start : start + variable.size] = boxes[variable.id].upper
    return lower, upper


def column_sizes(program: ConeProgram, variables: list[cp.Variable], copies: dict[int, cp.Variable]) -> Array:
    """Return the absolute value of every column at the variables' values, zero where there is none."""
    sizes = np.zeros(program.c.size)
    for variable in variables:
        copy = copies[variable.id]
        start = program.columns.get(copy.id)
        if start is not None and variable.value is not None:
            values = np.abs(flat(variable.value))  # the copy of a symmetric variable holds a triangle
            sizes[start : start + copy.size] = values if values.size == copy.size else values.max()
    return np.where(np.isfinite(sizes), sizes, 0.0)


@np.errstate(all="ignore")  # a bound that overflows is -inf in the end
def program_bound(
    scaled: Scaled,
    lower: Array,
    upper: Array,
    options: dict[str, Any],
    names: dict[int, str],
    found: list[Bound] | None = None,
    sizes: Array | None = None,
) -> Bound:
    """Return the best bound over tilts and corrections; the first that is close to the primal value ends it.

    Where none is, the program is solved again in coordinates in which A has orthonormal columns. `sizes` are
    the absolute values of the columns at a known point; the limits that a bound may assume hold there.
    """
    program, unit = scaled.program, scaled.columns
    sizes = None if sizes is None else sizes / unit
    search = Search(scaled, Interval(lower / unit, upper / unit), names, found, sizes)
    if search.solve_tilted(program, options):
        return search.best
    orthogonal = program.orthogonal()
    if orthogonal is not None:
        search.solve_tilted(orthogonal, options)
    return search.best


class Search:
    """The best bound from the multipliers that solvers have returned so far."""

    def __init__(
        self,
        scaled: Scaled,
        known: Interval,
        names: dict[int, str],
        found: list[Bound] | None,
        sizes: Array | None,
    ) -> None:
        program = scaled.program
        self.scaled, self.program, self.known, self.names, self.found = scaled, program, known, names, found
        free = ~known.bounded
        all_columns: Mask = np.ones(free.size, dtype=bool)
        self.choices = (all_columns,) if free.all() else (all_columns, free)
        self.corrections: dict[int, LeastNormCorrection] = {}  # by choice, factored when first needed
        self.assumed = Assumptions(program, known, np.zeros(free.size) if sizes is None else sizes)
        self.scale = float(np.abs(program.c).max(initial=0.0)) or 1.0
        self.best, self.loss = Bound(-np.inf, "no multiplier could be repaired"), np.inf

    def solve_tilted(self, solved: ConeProgram, options: dict[str, Any]) -> bool:
        """Solve a program for all tilts and bound from every multiplier; return whether the search is over.

        `solved` is the program in its own or in orthogonal coordinates. The search is over where a bound is
        close to the primal value, or where the problem is infeasible or unbounded.
        """
        program = self.program
        for tilt in TILTS:
            shift = tilt * self.scale * interior_point(program)
            status, x, z = solved.solve(solved.A.T @ shift if tilt else None, **options)
            if "nfeasible" in status and "Dual" not in status and z is not None:
                ray = farkas(program, z, self.known)
                if ray is not None:
                    self.best = Bound(np.inf, "infeasible", self.scaled.rows * ray)
                    return True
            if x is not None and ("Dual" in status or "unbounded" in status):
                if tilt:  # the tilted problem is unbounded, the given one need not be
                    return False
                why = f"{owner(program, self.names, x)} is unbounded in the relaxation: it needs bounds"
                self.best = Bound(-np.inf, why)
                return True
            if x is not None and z is not None and self.repair_and_keep(x, z, shift, bool(tilt)):
                return True
        return False

    def repair_and_keep(self, x: Array, z: Array, shift: Array, tilted: bool) -> bool:
        """Correct a multiplier and keep a better bound; return whether it is close to the primal value."""
        program, assumed = self.program, self.assumed
        primal = assumed.at(x)
        for k, columns in enumerate(self.choices):
            if self.best.value > -np.inf and primal - self.best.value <= NEGLIGIBLE_GAP * abs(primal):
                break
            correction = self.corrections.get(k) or LeastNormCorrection(program.A, columns)
            self.corrections[k] = correction
            repaired = repaired_bound(program, assumed.box, x, z, shift, correction)
            close = primal - repaired.value <= POOR_GAP * max(abs(primal), program.terms(x))
            if not close and assumed.restrict_dependent(x):
                repaired = repaired_bound(program, assumed.box, x, z, shift, correction)
            value = min(repaired.value, assumed.objective_bound)
            if value > self.best.value:
                self.best, self.loss = Bound(value, assumed.condition(self.scaled, self.names)), repaired.loss
                if self.found is not None and not (self.found and self.found[-1].value >= value):
                    self.found.append(self.best)
            elif self.best.value == -np.inf and repaired.unbounded_slopes.any():
                name = owner(program, self.names, repaired.unbounded_slopes)
                why = f"the dual constraint of {name} cannot be met exactly: it needs bounds"
                self.best = Bound(-np.inf, why)
        size = max(abs(primal), CANCELLATION * program.terms(x))
        close = primal - self.best.value <= SUFFICIENT_GAP * size
        return close and (tilted or self.loss <= ACCEPTED_LOSS * size)


class Assumptions:
    """Bounds of the columns under the assumption that the objective is at most `objective_bound`.

    Let v be a lower bound that was computed with them. Either some feasible point meets the assumption, and v
    holds for all such points, or none does, and `objective_bound` itself is a lower bound. Hence
    min(v, objective_bound) is a lower bound in any case.
    """

    def __init__(self, program: ConeProgram, known: Interval, sizes: Array) -> None:
        self.program, self.known, self.sizes = program, known, sizes
        self.objective_bound, self.box = -np.inf, known
        self.dependent: Index | None = None  # columns; None while it is not known whether there are any

    def at(self, x: Array) -> float:
        """Return the objective at x, and assume that the optimum exceeds it by less than a margin."""
        program = self.program
        primal = float((program.c + program.P @ x / 2) @ x + program.offset)
        if not primal < self.objective_bound:
            self.objective_bound = primal + abs(primal) + OBJECTIVE_MARGIN * program.terms(x)
            self.box = tightened(program, self.known, self.objective_bound)
        return primal

    def restrict_dependent(self, x: Array) -> bool:
        """Assume limits for columns that are dependent up to rounding; return whether there are new ones."""
        if self.dependent is not None:
            return False
        found = restricted_box(self.program, self.box, np.maximum(np.abs(x), self.sizes))
        self.dependent = np.zeros(0, dtype=int) if found is None else found[1]
        if found is not None:
            self.known = found[0]
            self.box = tightened(self.program, self.known, self.objective_bound)
        return found is not None

    def condition(self, scaled: Scaled, names: dict[int, str]) -> str:
        """Return a sentence that names the limits that a bound assumes, empty where it assumes none."""
        program = scaled.program
        if self.dependent is None or not self.dependent.size:
            return ""
        column = int(self.dependent[0])
        radius = float(max(-self.known.lower[column], self.known.upper[column]) * scaled.columns[column])
        columns = np.zeros(program.c.size)
        columns[column] = 1.0
        return (
            f"it holds for entries of {owner(program, names, columns)} up to {radius:.0e}: their matrices "
            "are linearly dependent but for rounding, and larger weights would use rounding errors as kernels"
        )


def owner(program: ConeProgram, names: dict[int, str], columns: Array) -> str:
    """Return the name of the user's variable to which the largest entry of `columns` belongs."""
    column = int(np.abs(columns).argmax())
    starts = sorted((start, key) for key, start in program.columns.items())
    key = [key for start, key in starts if start <= column][-1]
    return f"variable {names[key]}" if key in names else "an auxiliary variable"

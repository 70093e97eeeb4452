"""A lower bound of any cvxpy problem from an approximate multiplier, repaired, by weak duality."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

import cvxpy as cp
import numpy as np

from kernelopt.certificates.boxes import Boxes, plain
from kernelopt.certificates.conic.balance import Repair
from kernelopt.certificates.conic.cones import ConeProgram, cone_program
from kernelopt.certificates.conic.dependence import restricted
from kernelopt.certificates.conic.dual_cones import interior
from kernelopt.certificates.conic.equilibration import Scaled, column_units, equilibrated
from kernelopt.certificates.conic.farkas import farkas
from kernelopt.certificates.conic.proofs import proof_near
from kernelopt.certificates.conic.tightening import Interval, tightened
from kernelopt.structure.affine import flat
from kernelopt.threads import Watch, quietly
from kernelopt.validation import Array, Index, Mask

CLOSE = 1e-6
DEAR = 1e-8  # a price that a multiplier further inside the cone may save
NEAR = 1e-9  # a bound that no other repair could raise by much
POOR = 1e-3  # of the objective's terms: a bound further away is tried again for bounded weights
SHARE = 1e-3  # of the objective's terms, by which the optimum may be above what a solver says
SMALL = 1e-3  # of the terms: a goal smaller than that is one that cancels
TILTS = (0.0, 1e-8, 1e-7, 1e-6, 1e-4)


class Bound(NamedTuple):
    """A lower bound of a minimisation problem; `reason` says what is missing where it is -inf.

    Of a finite bound it says what the bound supposes.
    """

    value: float
    reason: str = ""
    ray: Array | None = None  # a Farkas ray, where the problem is infeasible
    rounding: float = 0.0  # by how much the value was moved down for its rounding errors


def conic_bound(
    problem: cp.Problem,
    variables: list[cp.Variable],
    boxes: Boxes,
    watch: Watch | None = None,
    found: list[Bound] | None = None,
    units: Mapping[int, Array] = MappingProxyType({}),
) -> Bound:
    """Return a lower bound of a minimisation problem in standard cone form.

    With z in the dual cone, any x, and r = c + Px + A'z,

        lower = offset - b'z - 1/2 x'Px + sum_j min(r_j lo_j, r_j hi_j),

    where a column without bounds needs r_j = 0. A solver proposes z; its residual in such columns is
    removed by least squares, and where that leaves the cone, the problem tilted by A'e with e inside
    the dual cone proposes another z, which e then moves inside.

    All this is done in the units of the variables, by id, powers of two.

    `watch` is called while solvers work, as in `run_solver`. What it raises goes on to the caller, who
    finds the best bound so far at the end of `found`: every better one is appended as soon as it is known.
    """
    with quietly(watch):
        stripped = plain(problem, variables, boxes)
    names = {stripped.variables[v.id].id: v.name() for v in variables}
    best = Bound(-np.inf, "no solver proposed a multiplier")
    compiled_for: dict[str, ConeProgram | None] = {}
    for solver, options in proposers(stripped.problem, compiled_for, watch):
        program = compiled_for.get(solver) or cone_program(stripped.problem, solver, watch)
        if program is None:
            continue
        lower, upper = column_box(program, stripped.variables.values(), stripped.boxes)
        sizes = column_sizes(program, variables, stripped.variables)
        measured = [(stripped.variables[v.id], units.get(v.id, np.ones(()))) for v in variables]
        scaled = equilibrated(program, column_units(program, measured))
        best = program_bound(scaled, lower, upper, options, names, watch, found, sizes)
        if best.value > -np.inf:
            break
    return best


def proposers(
    problem: cp.Problem, compiled_for: dict[str, ConeProgram | None], watch: Watch | None
) -> list[tuple[str, dict[str, Any]]]:
    """Return the solvers to ask for a multiplier with their options, the cheaper first.

    The problem is compiled for Clarabel to see its cones, and left in `compiled_for`.
    """
    program = compiled_for["CLARABEL"] = cone_program(problem, "CLARABEL", watch)
    interior: tuple[str, dict[str, Any]] = ("CLARABEL", {})
    exact = {"eps_abs": 1e-9, "eps_rel": 1e-9, "max_iters": 10000}
    if program is None:
        return [("SCS", exact)]
    cones = program.cones()
    if not cones.first_order_first:
        return [interior, ("SCS", exact)]
    quick = ("SCS", {"eps_abs": 1e-7, "eps_rel": 1e-7, "max_iters": 20000})
    return [quick] if cones.intractable else [quick, interior]


def column_box(program: ConeProgram, variables: object, boxes: Boxes) -> tuple[Array, Array]:
    """Return the bounds of every column; auxiliary columns have none."""
    lower, upper = np.full(program.c.size, -np.inf), np.full(program.c.size, np.inf)
    for variable in variables:  # type: ignore[attr-defined]
        start = program.columns.get(variable.id)
        if start is not None:
            lower[start : start + variable.size] = boxes[variable.id].lower
            upper[start : start + variable.size] = boxes[variable.id].upper
    return lower, upper


def column_sizes(program: ConeProgram, variables: list[cp.Variable], copies: dict[int, cp.Variable]) -> Array:
    """Return the absolute values of every column at the variables' values; zero where there is none."""
    sizes = np.zeros(program.c.size)
    for variable in variables:
        copy = copies[variable.id]
        start = program.columns.get(copy.id)
        if start is not None and variable.value is not None:
            values = np.abs(flat(variable.value))  # of a symmetric variable its copy holds a triangle
            sizes[start : start + copy.size] = values if values.size == copy.size else values.max()
    return np.where(np.isfinite(sizes), sizes, 0.0)


@np.errstate(all="ignore")  # what is not finite proves nothing, and is found in the end
def program_bound(
    scaled: Scaled,
    lower: Array,
    upper: Array,
    options: dict[str, Any],
    names: dict[int, str],
    watch: Watch | None = None,
    found: list[Bound] | None = None,
    sizes: Array | None = None,
) -> Bound:
    """Return the best bound over tilts and repairs, stopping at the first that meets the primal value.

    Where none does, the solver is asked again in coordinates in which A has orthonormal columns. `sizes`
    are those of the columns at a point that is known; whatever a bound supposes holds there.
    """
    program, unit = scaled.program, scaled.columns
    sizes = None if sizes is None else sizes / unit
    search = Search(scaled, Interval(lower / unit, upper / unit), names, found, sizes)
    if search.ask(program, options, watch):
        return search.best
    turned = program.orthogonal()
    if turned is not None:
        search.ask(turned, options, watch)
    return search.best


class Search:
    """The best bound from the multipliers that solvers have proposed so far."""

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
        every: Mask = np.ones(free.size, dtype=bool)
        self.choices = (every,) if free.all() else (every, free)
        self.repairs: dict[int, Repair] = {}  # by choice, factored when first needed
        self.supposed = Supposed(program, known, np.zeros(free.size) if sizes is None else sizes)
        self.scale = float(np.abs(program.c).max(initial=0.0)) or 1.0
        self.best, self.price = Bound(-np.inf, "no multiplier could be repaired"), np.inf

    def ask(self, asked: ConeProgram, options: dict[str, Any], watch: Watch | None) -> bool:
        """Ask the solver of a program, the own one in any coordinates, over all tilts; whether that is final.

        It is where a bound meets the primal value, or the problem is infeasible or unbounded.
        """
        program = self.program
        for tilt in TILTS:
            shift = tilt * self.scale * interior(program)
            status, x, z = asked.solve(asked.A.T @ shift if tilt else None, watch, **options)
            if "nfeasible" in status and "Dual" not in status and z is not None:
                ray = farkas(program, z, self.known)
                if ray is not None:
                    self.best = Bound(np.inf, "infeasible", self.scaled.rows * ray)
                    return True
            if x is not None and ("Dual" in status or "unbounded" in status):
                if tilt:  # it is the tilt that is too large, not the problem
                    return False
                self.best = Bound(-np.inf, f"{owner(program, self.names, x)} can run away: it needs bounds")
                return True
            if x is not None and z is not None and self.try_near(x, z, shift, bool(tilt)):
                return True
        return False

    def try_near(self, x: Array, z: Array, shift: Array, tilted: bool) -> bool:
        """Repair a multiplier, keep the bound if it is better; whether it meets the primal value."""
        program, supposed = self.program, self.supposed
        goal = supposed.at(x)
        for k, columns in enumerate(self.choices):
            if self.best.value > -np.inf and goal - self.best.value <= NEAR * abs(goal):
                break
            repair = self.repairs[k] = self.repairs.get(k) or Repair(program.A, columns)
            proof = proof_near(program, supposed.box, x, z, shift, repair)
            if not goal - proof.value <= POOR * max(abs(goal), program.terms(x)) and supposed.restrict(x):
                proof = proof_near(program, supposed.box, x, z, shift, repair)
            value = min(proof.value, supposed.most)
            if value > self.best.value:
                self.best, self.price = Bound(value, supposed.condition(self.scaled, self.names)), proof.price
                if self.found is not None and not (self.found and self.found[-1].value >= value):
                    self.found.append(self.best)
            elif self.best.value == -np.inf and proof.open_slopes.any():
                culprit = owner(program, self.names, proof.open_slopes)
                why = f"the multiplier of {culprit} cannot be balanced: it needs bounds"
                self.best = Bound(-np.inf, why)
        size = max(abs(goal), SMALL * program.terms(x))
        return goal - self.best.value <= CLOSE * size and (tilted or self.price <= DEAR * size)


class Supposed:
    """Bounds of the columns where the objective is `most` or less.

    A bound found with them holds, or no feasible point has such an objective: then `most` is a lower bound.
    So the smaller of the two numbers is one in any case, whatever `most` is.
    """

    def __init__(self, program: ConeProgram, known: Interval, sizes: Array) -> None:
        self.program, self.known, self.sizes = program, known, sizes
        self.most, self.box = -np.inf, known
        self.dependent: Index | None = None  # columns; None while it is not known whether there are any

    def at(self, x: Array) -> float:
        """Return the objective at x, and suppose that the optimum is not far above it."""
        program = self.program
        goal = float((program.c + program.P @ x / 2) @ x + program.offset)
        if not goal < self.most:
            self.most = goal + abs(goal) + SHARE * program.terms(x)
            self.box = tightened(program, self.known, self.most)
        return goal

    def restrict(self, x: Array) -> bool:
        """Suppose bounds for columns that are dependent but for rounding; whether there are new ones."""
        if self.dependent is not None:
            return False
        found = restricted(self.program, self.box, np.maximum(np.abs(x), self.sizes))
        self.dependent = np.zeros(0, dtype=int) if found is None else found[1]
        if found is not None:
            self.known = found[0]
            self.box = tightened(self.program, self.known, self.most)
        return found is not None

    def condition(self, scaled: Scaled, names: dict[int, str]) -> str:
        """Return what a bound supposes beyond the program, as text; empty where it is nothing."""
        program = scaled.program
        if self.dependent is None or not self.dependent.size:
            return ""
        column = int(self.dependent[0])
        reach = float(max(-self.known.lower[column], self.known.upper[column]) * scaled.columns[column])
        columns = np.zeros(program.c.size)
        columns[column] = 1.0
        return (
            f"it holds for entries of {owner(program, names, columns)} up to {reach:.0e}: their matrices are "
            "linearly dependent but for rounding, and larger weights would use rounding errors as kernels"
        )


def owner(program: ConeProgram, names: dict[int, str], columns: Array) -> str:
    """Return the name of the user's variable with the largest entry, or of the problem's helpers."""
    column = int(np.abs(columns).argmax())
    starts = sorted((start, key) for key, start in program.columns.items())
    key = [key for start, key in starts if start <= column][-1]
    return f"variable {names[key]}" if key in names else "an auxiliary variable"

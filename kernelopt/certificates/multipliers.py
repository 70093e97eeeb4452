"""A lower bound of any cvxpy problem from an approximate multiplier, repaired, by weak duality."""

from __future__ import annotations

from typing import Any, NamedTuple

import cvxpy as cp
import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.sparse.linalg import splu

from kernelopt.certificates.boxes import Boxes, plain
from kernelopt.certificates.cones import ConeProgram, cone_program
from kernelopt.threads import Watch, quietly
from kernelopt.validation import Array

CLOSE = 1e-6
ROUND_OFF = 1e-12
ALTERNATIONS = 20
TILTS = (0.0, 1e-8, 1e-7, 1e-6, 1e-4)


class Bound(NamedTuple):
    """A lower bound of a minimisation problem; `reason` says what is missing where it is -inf."""

    value: float
    reason: str = ""
    ray: Array | None = None  # a Farkas ray, where the problem is infeasible


def conic_bound(
    problem: cp.Problem,
    variables: list[cp.Variable],
    boxes: Boxes,
    watch: Watch | None = None,
    found: list[Bound] | None = None,
) -> Bound:
    """Return a lower bound of a minimisation problem in standard cone form.

    With z in the dual cone, any x, and r = c + Px + A'z,

        lower = offset - b'z - 1/2 x'Px + sum_j min(r_j lo_j, r_j hi_j),

    where a column without bounds needs r_j = 0. A solver proposes z; its residual in such columns is
    removed by least squares, and where that leaves the cone, the problem tilted by A'e with e inside
    the dual cone proposes another z, which e then moves inside.

    `watch` is called while solvers work, as in `conic.attempt`. What it raises goes on to the caller, who
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
        best = program_bound(program, lower, upper, options, names, watch, found)
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
    return [quick] if cones.hopeless else [quick, interior]


def column_box(program: ConeProgram, variables: object, boxes: Boxes) -> tuple[Array, Array]:
    """Return the bounds of every column; auxiliary columns have none."""
    lower, upper = np.full(program.c.size, -np.inf), np.full(program.c.size, np.inf)
    for variable in variables:  # type: ignore[attr-defined]
        start = program.columns.get(variable.id)
        if start is not None:
            lower[start : start + variable.size] = boxes[variable.id].lower
            upper[start : start + variable.size] = boxes[variable.id].upper
    return lower, upper


def program_bound(
    program: ConeProgram,
    lower: Array,
    upper: Array,
    options: dict[str, Any],
    names: dict[int, str],
    watch: Watch | None = None,
    found: list[Bound] | None = None,
) -> Bound:
    """Return the best bound over tilts and repairs, stopping at the first that meets the primal value.

    Where none does, the solver is asked again in coordinates in which A has orthonormal columns.
    """
    best, final = tilted_bound(program, program, lower, upper, options, names, watch, found)
    turned = None if final else program.orthogonal()
    if turned is None:
        return best
    second, final = tilted_bound(program, turned, lower, upper, options, names, watch, found)
    return second if final or second.value > best.value else best


def tilted_bound(
    program: ConeProgram,
    asked: ConeProgram,
    lower: Array,
    upper: Array,
    options: dict[str, Any],
    names: dict[int, str],
    watch: Watch | None = None,
    found: list[Bound] | None = None,
) -> tuple[Bound, bool]:
    """Return the best bound from solutions of `asked`, the program in any coordinates, over all tilts.

    And whether it is final: it meets the primal value, or the problem is infeasible or unbounded.
    """
    free = ~(np.isfinite(lower) & np.isfinite(upper))
    e = program.interior()
    repairs = [Repair(program.A, np.ones_like(free)), Repair(program.A, free)]
    scale = float(np.abs(program.c).max(initial=0.0)) or 1.0
    best = Bound(-np.inf, "no multiplier could be repaired")
    for tilt in TILTS:
        shift = tilt * scale * e
        status, x, z = asked.solve(asked.A.T @ shift if tilt else None, watch, **options)
        if "nfeasible" in status and "Dual" not in status and z is not None:
            proof = farkas(program, z, lower, upper, repairs)
            if proof is not None:
                return Bound(np.inf, "infeasible", proof), True
        if x is not None and ("Dual" in status or "unbounded" in status):
            if tilt:  # it is the tilt that is too large, not the problem
                break
            return Bound(-np.inf, f"{owner(program, names, x)} can run away: it needs bounds"), True
        if x is None or z is None:
            continue
        slope = program.c + program.P @ x
        for repair in repairs:
            mended = repair(program.push(z) + shift, -slope)
            if mended is None or not program.holds(mended, 1e-13 * scale):
                continue
            r = slope + program.A.T @ mended
            terms = np.abs(slope) + abs(program.A).T @ np.abs(mended)
            if (np.abs(r) > ROUND_OFF * terms + 1e-16 * scale)[free].any():
                if best.value == -np.inf:
                    culprit = owner(program, names, np.where(free, r, 0.0))
                    best = Bound(-np.inf, f"the multiplier of {culprit} cannot be balanced: it needs bounds")
                continue
            bound = Bound(dual_value(program, x, mended, r, lower, upper))
            if bound.value > best.value:
                best = bound
                if found is not None and not (found and found[-1].value >= bound.value):
                    found.append(bound)
        goal = float((program.c + program.P @ x / 2) @ x + program.offset)
        if goal - best.value <= CLOSE * max(1.0, abs(goal)):
            return best, True
    return best, False


def dual_value(program: ConeProgram, x: Array, z: Array, r: Array, lower: Array, upper: Array) -> float:
    """Return offset - b'z - 1/2 x'Px + the least of r'x over the box."""
    boxed = np.isfinite(lower) & np.isfinite(upper)
    least = np.minimum(r[boxed] * lower[boxed], r[boxed] * upper[boxed]).sum()
    return float(program.offset - program.b @ z - x @ (program.P @ x) / 2 + least)


def farkas(program: ConeProgram, z: Array, lower: Array, upper: Array, repairs: list[Repair]) -> Array | None:
    """Return a ray near z that proves infeasibility, if one is found.

    It is in the dual cone, A'z vanishes in the unbounded columns to round-off, and -b'z exceeds what
    A'z can take back over the box.
    """
    z = program.push(z / max(float(np.abs(z).max()), 1e-300))
    boxed = np.isfinite(lower) & np.isfinite(upper)
    largest = np.asarray(abs(program.A).max(axis=0).todense()).ravel()
    rays = [z]
    for repair in repairs:
        ray = z
        for _ in range(ALTERNATIONS):
            mended = repair(ray, np.zeros(program.c.size))
            ray = ray if mended is None else program.push(mended)
        rays.append(ray)
    for ray in rays:
        r = program.A.T @ ray
        gain = -float(program.b @ ray)
        gain += float(np.minimum(r[boxed] * lower[boxed], r[boxed] * upper[boxed]).sum())
        if gain > 1e-9 and (np.abs(r) <= 1e-13 * largest)[~boxed].all():
            return ray
    return None


def owner(program: ConeProgram, names: dict[int, str], columns: Array) -> str:
    """Return the name of the user's variable with the largest entry, or of the problem's helpers."""
    column = int(np.abs(columns).argmax())
    starts = sorted((start, key) for key, start in program.columns.items())
    key = [key for start, key in starts if start <= column][-1]
    return f"variable {names[key]}" if key in names else "an auxiliary variable"


class Repair:
    """The least change of z that gives A'z a wanted value in chosen columns."""

    def __init__(self, A: sp.csc_array, columns: NDArray[np.bool_]) -> None:
        self.columns = np.flatnonzero(columns)
        self.A = A[:, self.columns]
        if self.columns.size:
            normal = sp.csc_array(self.A.T @ self.A)
            ridge = 1e-14 * max(float(normal.diagonal().max()), 1e-300)
            self.solver = splu(sp.csc_array(normal + ridge * sp.eye_array(self.columns.size)))

    def __call__(self, z: Array, wanted: Array) -> Array | None:
        if not self.columns.size:
            return z
        for _ in range(4):
            z = z + self.A @ self.solver.solve(wanted[self.columns] - self.A.T @ z)
        return z if np.isfinite(z).all() else None

"""A feasible point near a candidate: equalities by projection, the rest by mixing with an interior point."""

from __future__ import annotations

from typing import Any, NamedTuple

import cvxpy as cp
import numpy as np
import scipy.sparse as sp
from cvxpy.constraints import SOC, ExpCone, Inequality, NonNeg, NonPos, PowCone3D, Zero
from cvxpy.constraints.zero import Equality

from kernelopt.certificates.boxes import attribute_box
from kernelopt.conic.ladder import ladder, run_solver
from kernelopt.language.faces import facial_reduction
from kernelopt.structure.affine import Affine, flat
from kernelopt.structure.evaluation import Evaluator
from kernelopt.structure.structure import Point
from kernelopt.structure.trees import short
from kernelopt.threads import Watch, quietly
from kernelopt.validation import Array

ROUND_OFF = 1e-14  # of the terms of a constraint; an eigenvalue decomposition gets 1e-13
VANISHED = 1e-30  # of the largest entry: what is left of one that equalities make zero
NEARLY_ZERO = (1e-9, 1e-6, 1e-4)


class Violation(NamedTuple):
    """How far a constraint is from holding, and what it is called."""

    size: float
    name: str


class FeasibleSet:
    """The points that meet the constraints of a problem.

    With a `watch` the conic solves can be ended; without `conic` there are none.
    """

    def __init__(self, evaluator: Evaluator, watch: Watch | None = None, conic: bool = True) -> None:
        self.structure, self.evaluator = evaluator.structure, evaluator
        self.watch, self.conic = watch, conic
        self.variables = self.structure.variables

    def violations(self) -> list[Violation]:
        """Return the constraints that the current values violate beyond round-off, worst first."""
        if any(self.structure.constrained):
            self.evaluator.machines()
        found = []
        structure = self.structure
        reads = zip(structure.lifted.constraints, structure.affines, structure.forced_zeros, strict=True)
        for i, (constraint, read, corner) in enumerate(reads):
            with np.errstate(over="ignore", invalid="ignore"):  # of values that have no square
                size = excess(constraint, read)
            if corner is not None and size < np.inf:
                size = max(size, share_of_nonzero(corner))
            if not size <= ROUND_OFF:
                found.append(Violation(size, constraint.label or f"constraint {i}: {short(constraint)}"))
        for domain in structure.atom_domains:
            with np.errstate(over="ignore", invalid="ignore"):
                size = excess(domain, None)
            if not size <= ROUND_OFF:
                found.append(Violation(size, f"the domain {short(domain)}"))
        for variable in self.variables:
            size = attribute_excess(variable)
            if not size <= ROUND_OFF:
                found.append(Violation(size, f"the attributes of {variable.name()}"))
        return sorted(found, key=lambda v: -np.nan_to_num(v.size, nan=np.inf))

    def at(self, point: Point) -> list[Violation]:
        """Return the violations at a point."""
        self.evaluator.write(point)
        return self.violations()

    def nearest(self, point: Point | None) -> tuple[Point | None, list[Violation]]:
        """Return a feasible point near `point`, or None and the constraints that stay violated.

        The values are projected on the attributes and on the affine equalities; what is still violated
        is mended by the smallest step towards a strictly feasible point, found by one conic solve. Where
        there is none, weights that are nearly zero are set to zero, and at last all of them.
        """
        if point is not None:
            self.evaluator.write({v.id: np.asarray(v.project(point[v.id])) for v in self.variables})
            self._project_on_equalities()
            left = self.violations()
            if not left:
                return self._read(), []
            point = self._read()
            if self._snapped():
                return self._read(), []
        inner = self._interior_point() if self.conic else None
        if inner is None:
            self.evaluator.write({v.id: np.asarray(v.project(np.zeros(v.shape))) for v in self.variables})
            self._project_on_equalities()
            if not self.violations():
                return self._read(), []
            return None, left if point is not None else [Violation(np.inf, "no feasible point was found")]
        if point is None:
            return inner, []
        return self._mixed(point, inner)

    def _read(self) -> Point | None:
        """Return the values of the variables, None unless all are present and finite."""
        if any(v.value is None or not np.isfinite(flat(v.value)).all() for v in self.variables):
            return None
        return {v.id: np.array(v.value, dtype=float) for v in self.variables}

    def _snapped(self) -> bool:
        """Set entries of non-negative variables that are nearly zero to zero; whether that is feasible.

        Where constraints force weights to zero there is no strictly feasible point to move towards.
        """
        values = {v.id: np.asarray(v.value, dtype=float) for v in self.variables}
        for least in NEARLY_ZERO:
            for variable in self.variables:
                value = values[variable.id]
                if variable.is_nonneg() and variable.size:
                    value = np.where(value <= least * float(value.max()), 0.0, value)
                variable.save_value(value)
            self._project_on_equalities()
            if not self.violations():
                return True
        return False

    def _mixed(self, point: Point, inner: Point) -> tuple[Point | None, list[Violation]]:
        """Return the first feasible point on the way from `point` to the interior point `inner`."""

        def feasible(share: float) -> bool:
            return not self.at({k: (1 - share) * point[k] + share * inner[k] for k in point})

        share = 1e-13
        while not feasible(share):
            share *= 4
            if share > 1:
                left = self.at(inner)
                return (None, left) if left else (inner, [])
        low, high = share / 4, share
        for _ in range(3):
            middle = np.sqrt(low * high)
            low, high = (low, middle) if feasible(middle) else (middle, high)
        feasible(high)
        return self._read(), []

    def _project_on_equalities(self) -> None:
        """Move the values onto the affine equalities; a non-negative entry moves in proportion to itself."""
        pairs = zip(self.structure.lifted.constraints, self.structure.affines, strict=True)
        own = set(self.variables)
        equations = [read for c, read in pairs if isinstance(c, Equality | Zero) and read is not None]
        equations += [corner for corner in self.structure.forced_zeros if corner is not None]
        systems = [read for read in equations if set(read.matrices) <= own]
        if not systems:
            return
        blocks = []
        for variable in self.variables:
            empty = [sp.csr_array((read.constant.size, variable.size)) for read in systems]
            blocks.append(
                sp.vstack([r.matrices.get(variable, e) for r, e in zip(systems, empty, strict=True)])
            )
        A, constant = sp.hstack(blocks).toarray(), np.concatenate([read.constant for read in systems])
        signed = np.concatenate([np.full(v.size, v.is_nonneg()) for v in self.variables])
        for _ in range(2):
            x = np.concatenate([flat(v.value) for v in self.variables])
            D = np.where(signed, np.maximum(x, 0.0), 1.0)
            if not np.any(A * D, axis=1).all():  # an equation in zeros alone: they have to move
                D = np.where(signed, np.maximum(x, 1e-12 * (float(np.abs(x).max(initial=0.0)) or 1.0)), 1.0)
            D = D / D.max(initial=1e-300)  # the step is the same
            missed = constant + A @ x
            if not (np.isfinite(missed).all() and np.isfinite(D).all()):
                return
            x = x - D * (A.T @ np.linalg.lstsq((A * D) @ A.T, missed, rcond=1e-14)[0])
            x = np.where(np.abs(x) <= VANISHED * np.abs(x).max(initial=0.0), 0.0, x)
            start = 0
            for variable in self.variables:
                value = x[start : start + variable.size].reshape(variable.shape, order="F")
                # A weight below zero by rounding may weigh a kernel of any size: signs hold exactly.
                size = float(np.abs(value).max(initial=0.0))
                nearly = variable.is_nonneg() and float(value.min(initial=0.0)) >= -ROUND_OFF * max(size, 1.0)
                variable.save_value(np.maximum(value, 0.0) if nearly else value)
                start += variable.size

    def _interior_point(self) -> Point | None:
        """Return a point that meets the constraints with the largest slack (at most one), or None."""
        with quietly(self.watch):
            slack = cp.Variable(name="slack")
            constraints: list[Any] = [slack <= 1]
            problem = self.structure.explicit if any(self.structure.constrained) else self.structure.lifted
            for constraint in (*problem.constraints, *self.structure.atom_domains):
                constraints += slackened(facial_reduction(constraint)[0], slack)
            for variable in self.variables:
                attributes = variable.attributes
                if attributes["nonneg"] or attributes["pos"]:
                    constraints.append(variable >= slack)
                elif attributes["nonpos"] or attributes["neg"]:
                    constraints.append(-variable >= slack)
                elif attributes["PSD"]:
                    constraints.append(variable - slack * np.eye(variable.shape[0]) >> 0)
            phase_one = cp.Problem(cp.Maximize(slack), constraints)
        order = max((v.shape[0] for v in self.variables if v.attributes["PSD"]), default=0)
        cones = [c for c in problem.constraints if isinstance(c, cp.constraints.PSD)]
        order = max([order, *(c.shape[0] for c in cones)])
        for attempt in ladder(linear=False, order=order)[:3]:
            run_solver(phase_one, attempt, watch=self.watch)
            if slack.value is None or not np.isfinite(slack.value) or self._read() is None:
                continue
            self._project_on_equalities()
            if not self.violations() or self._snapped():
                return self._read()
        return None


def excess(constraint: Any, read: Affine | None) -> float:
    """Return the violation of a constraint at the current values, relative to the size of its sides."""
    if any(arg.value is None for arg in constraint.args):
        return np.inf
    if isinstance(constraint, cp.constraints.PSD):
        M = np.asarray(constraint.args[0].value)
        eigenvalues = np.linalg.eigvalsh((M + M.T) / 2)
        return negative_part(eigenvalues)
    scale = float(np.max([np.abs(flat(arg.value)).max(initial=0.0) for arg in constraint.args]))  # NaN stays
    if isinstance(constraint, Equality | Zero | Inequality):
        scale = max(scale, magnitude(read))
    if not np.isfinite(scale):
        return np.inf
    violation = constraint.residual if hasattr(constraint, "residual") else constraint.violation()
    worst = float(np.max(np.nan_to_num(violation, nan=np.inf), initial=0.0))
    return worst / scale if worst else 0.0


def share_of_nonzero(corner: Affine) -> float:
    """Return the largest entry that is to be zero, relative to its terms at the current values."""
    value = corner.at({v.id: v.value for v in corner.matrices})
    return float(np.abs(value).max()) / magnitude(corner) if value.any() else 0.0


def negative_part(eigenvalues: Array) -> float:
    """Return the most negative eigenvalue relative to the largest, counting 1e-13 as one round-off."""
    return max(0.0, -float(eigenvalues[0])) / max(float(np.abs(eigenvalues).max()), 1e-300) / 10


def magnitude(read: Affine | None) -> float:
    """Return what the rounding of an affine expression scales with.

    It is the largest row of |constant| + |coefficients| |x|.
    """
    if read is None or not read.matrices:
        return 0.0
    total = np.abs(read.constant) + sum(abs(M) @ np.abs(flat(v.value)) for v, M in read.matrices.items())
    return float(np.max(total, initial=0.0))


def attribute_excess(variable: cp.Variable) -> float:
    """Return how far the value of a variable is from its attributes."""
    if variable.value is None:
        return np.inf
    value = np.asarray(variable.value)
    box = attribute_box(variable)
    outside = float(np.maximum(box.lower - flat(value), flat(value) - box.upper).max(initial=0.0))
    outside = outside / float(np.abs(value).max(initial=0.0)) if outside > 0 and value.any() else outside
    if variable.attributes["PSD"]:
        eigenvalues = np.linalg.eigvalsh(value)
        return max(negative_part(eigenvalues), outside)
    if np.isfinite(box.lower).any() or np.isfinite(box.upper).any():
        return outside
    if any(v for v in variable.attributes.values() if v is not None and v is not False):
        return float(np.abs(value - variable.project(value)).max(initial=0.0))
    return 0.0


def slackened(constraint: Any, slack: cp.Variable) -> list[Any]:
    """Return a constraint made stricter by `slack`; equalities stay."""
    if isinstance(constraint, Inequality):
        return [constraint.args[0] + slack <= constraint.args[1]]
    if isinstance(constraint, cp.constraints.PSD):
        return [constraint.args[0] - slack * np.eye(constraint.shape[0]) >> 0]
    if isinstance(constraint, NonNeg):
        return [constraint.args[0] >= slack]
    if isinstance(constraint, NonPos):
        return [constraint.args[0] + slack <= 0]
    if isinstance(constraint, SOC):
        return [SOC(constraint.args[0] - slack, constraint.args[1], axis=constraint.axis)]
    if isinstance(constraint, ExpCone):
        x, y, z = constraint.args
        return [ExpCone(x, y, z - slack)]
    if isinstance(constraint, PowCone3D):
        x, y, z = constraint.args
        return [PowCone3D(x - slack, y - slack, z, constraint.alpha)]
    return [constraint.copy()]  # not itself: phase one would overwrite its multiplier

"""A feasible point near a candidate.

Affine equalities are met by projection, other constraints by a step towards a strictly feasible point.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator

import cvxpy as cp
import numpy as np
import scipy.sparse as sp
from cvxpy.constraints import Zero
from cvxpy.constraints.zero import Equality

from kernelopt.certificates.upper.interior import phase_one, points_inward
from kernelopt.certificates.upper.violations import (
    ROUND_OFF,
    attribute_violation,
    beyond_rounding,
    negative_part,
    relative_nonzero,
    relative_violation,
)
from kernelopt.conic.ladder import ladder, run_solver
from kernelopt.numerics.decompositions import eigenvalues, shortest_solution
from kernelopt.numerics.rounding import SMALLEST_DIVISOR
from kernelopt.running import check
from kernelopt.structure.affine import flat
from kernelopt.structure.attributes import projected
from kernelopt.structure.combined.coordinates import read_coordinates
from kernelopt.structure.evaluation import Evaluator
from kernelopt.structure.relaxed_cones import RelaxedCones
from kernelopt.structure.structure import Point
from kernelopt.structure.trees import constraint_name, short
from kernelopt.structure.zero_weights import all_zero_weights, forced_zeros
from kernelopt.threads import quietly

NEGLIGIBLE = 1e-30  # of the largest entry: a smaller entry is set to zero, since equalities may require it
ZERO_THRESHOLDS = (1e-9, 1e-6, 1e-4)  # of the largest entry: the tolerances of solvers, from tight to loose
RELATIVE_MINIMUM = 1e-12  # of the largest entry: D_j for smaller entries, since D_j = 0 would keep them fixed
DEPENDENT = 1e-14  # relative: smaller singular values belong to dependent equations and count as zero
ATTEMPTS = 3  # largest number of solvers that are tried for a strictly feasible point
GROWTHS = 40  # of relaxed cones at most, in phase one
STEPS = (*np.exp2(np.arange(-43, 0, 0.25)), 1.0)
"""Steps towards an interior point, from ten times `ROUND_OFF` on, the largest violation that is rounding."""


class FeasibleSet:
    """The points that satisfy the constraints of a problem.

    Without `conic` there are no conic solves. With `cones` they hold a relaxation of
    the large matrix inequalities, which grows until their point is feasible.
    """

    def __init__(
        self,
        evaluator: Evaluator,
        conic: bool = True,
        cones: RelaxedCones | None = None,
    ) -> None:
        self.structure, self.evaluator = evaluator.structure, evaluator
        self.conic, self.cones = conic, cones
        self.inner: Point | None = None  # a strictly feasible point, found when first needed
        self.remark = ""  # what the last test for feasibility has assumed
        self.variables = self.structure.variables

    def violations(self) -> dict[str, float]:
        """Return the relative violations beyond round-off at the current values by name, largest first."""
        return dict(sorted(self._violations(), key=lambda pair: -np.nan_to_num(pair[1], nan=np.inf)))

    def _feasible(self) -> bool:
        """Whether the current values violate no constraint; the first violated one ends the test."""
        return next(self._violations(), None) is None

    def _violations(self) -> Iterator[tuple[str, float]]:
        """Yield the constraints that the current values violate beyond round-off."""
        if any(self.structure.constrained):
            self.evaluator.machines()
        structure, self.remark = self.structure, ""
        readings = zip(structure.lifted.constraints, structure.affines, forced_zeros(structure), strict=True)
        for i, (constraint, read, corner) in enumerate(readings):
            check()
            with np.errstate(over="ignore", invalid="ignore"):  # values may have no finite square
                size = relative_violation(constraint, read, self.variables)
            if corner is not None and size < np.inf:
                size = max(size, relative_nonzero(corner))
            if size and isinstance(constraint, cp.constraints.PSD):
                size = min(size, self._violation_when_centred())
            if size:
                yield constraint_name(i, constraint), size
        for domain in structure.atom_domains:
            with np.errstate(over="ignore", invalid="ignore"):
                size = relative_violation(domain, None, self.variables)
            if size:
                yield f"the domain {short(domain)}", size
        for variable in self.variables:
            size = attribute_violation(variable)
            if size:
                yield f"the attributes of {variable.name()}", size

    def _violation_when_centred(self) -> float:
        """Return the relative violation of H K(mu) H >> 0 over a `Centring`, infinite without one."""
        coordinates = read_coordinates(self.structure)
        values = {v.id: v.value for v in self.variables}
        if isinstance(coordinates, str) or coordinates.centring is None:
            return np.inf
        if any(value is None or not np.isfinite(value).all() for value in values.values()):
            return np.inf
        K = coordinates.accepted_kernel(coordinates.cone.weights(values))
        size = beyond_rounding(negative_part(eigenvalues(K)))
        if not size:
            self.remark = coordinates.centring.remark
        return size

    def at(self, point: Point) -> dict[str, float]:
        """Return the violations at a point."""
        self.evaluator.write(point)
        return self.violations()

    def nearest(
        self, point: Point | None, violations: dict[str, float] | None = None
    ) -> tuple[Point | None, dict[str, float]]:
        """Return a feasible point near `point`, or None and the constraints that stay violated.

        `violations` are those at the point, where they are known.

        There are five steps. The first step that gives a feasible point is the last one.

        1. The values are projected on the attributes. Entries that a constraint forces to zero are set to
           zero. Then the values are projected on the affine equalities.
        2. Weights that are nearly zero are set to zero.
        3. Steps in the local metric lead to a strictly feasible point near (`points_inward`). The given point
           is moved towards it by about the smallest step that makes it feasible.
        4. A conic solve finds a strictly feasible point, and the given point is moved towards that.
        5. If there is no strictly feasible point, all variables are set to zero.
        """
        if point is not None:
            self.evaluator.write({v.id: projected(v, point[v.id]) for v in self.variables})
            self._clear_zero_weights()
            self._project_on_equalities()
            same = all(np.array_equal(v.value, point[v.id]) for v in self.variables)
            remaining = self.violations() if violations is None or not same else violations
            if not remaining:
                return self._read(), {}
            point = self._read()
            if self._round_to_zero():
                return self._read(), {}
            near = self._local_interior(point)
            if point is not None and near is not None:
                return self._towards_interior(point, *near)
        if self.inner is None:
            self.inner = self._combined_interior() or (self._interior_point() if self.conic else None)
        inner = self.inner
        if inner is None:
            self.evaluator.write({v.id: projected(v, np.zeros(v.shape)) for v in self.variables})
            self._project_on_equalities()
            if self._feasible():
                return self._read(), {}
            return None, remaining if point is not None else {"no feasible point was found": np.inf}
        if point is None:
            return inner, {}
        return self._towards_interior(point, inner)

    def _read(self) -> Point | None:
        """Return the values of the variables, None unless all are present and finite."""
        if any(v.value is None or not np.isfinite(flat(v.value)).all() for v in self.variables):
            return None
        return {v.id: np.array(v.value, dtype=float) for v in self.variables}

    def _clear_zero_weights(self) -> None:
        """Set the entries that a constraint forces to zero to exactly zero."""
        for variable, zero in all_zero_weights(self.structure).items():
            value = np.where(zero, 0.0, flat(variable.value))
            variable.save_value(value.reshape(variable.shape, order="F"))

    def _round_to_zero(self) -> bool:
        """Set nearly zero entries of non-negative variables to zero; return whether that is feasible.

        Where constraints force weights to be zero there is no strictly feasible point to move towards.
        """
        values = {v.id: np.asarray(v.value, dtype=float) for v in self.variables}
        zeros = {v.id: np.zeros(v.shape, dtype=bool) for v in self.variables}
        for threshold in ZERO_THRESHOLDS:
            before = zeros
            zeros = {
                v.id: v.is_nonneg() & (values[v.id] <= threshold * np.max(values[v.id], initial=0.0))
                for v in self.variables
            }
            if all(np.array_equal(zeros[key], before[key]) for key in zeros):
                continue
            for variable in self.variables:
                variable.save_value(np.where(zeros[variable.id], 0.0, values[variable.id]))
            self._project_on_equalities()
            if self._feasible():
                return True
        return False

    def _towards_interior(
        self, point: Point, inner: Point, inside: Callable[[float], bool] | None = None
    ) -> tuple[Point | None, dict[str, float]]:
        """Return a feasible point (1 - t) point + t inner with about the smallest t.

        The feasible t are an interval that ends at one: its start is found by bisection on a grid. The t for
        which the point is `inside` the compiled cones are found in less time, and the first is tried before.
        """

        def mixed(t: float) -> Point:
            return {k: (1 - t) * point[k] + t * inner[k] for k in point}

        def feasible(t: float) -> bool:
            self.evaluator.write(mixed(t))
            return self._feasible()

        last = len(STEPS) - 1
        if inside is not None and feasible(STEPS[bisect_left(STEPS, True, hi=last, key=inside)]):
            return self._read(), {}
        t = STEPS[bisect_left(STEPS, True, hi=last, key=feasible)]
        remaining = self.at(mixed(t))
        return (None, remaining) if remaining else (self._read(), {})

    def _project_on_equalities(self) -> None:
        """Project the values on the affine equalities A x + constant = 0, in the norm |D^(-1/2) dx|.

        For entries of non-negative variables D_j = x_j. The change of such an entry is proportional to the
        entry, so that small entries keep their sign. For all other entries D_j = 1. The projection is made
        twice, since the second one removes the rounding error of the first.
        """
        pairs = zip(self.structure.lifted.constraints, self.structure.affines, strict=True)
        own = set(self.variables)
        equations = [read for c, read in pairs if isinstance(c, Equality | Zero) and read is not None]
        equations += [corner for corner in forced_zeros(self.structure) if corner is not None]
        systems = [read for read in equations if set(read.matrices) <= own]
        if not systems:
            return
        A = sp.vstack([read.over(self.variables) for read in systems]).toarray()
        constant = np.concatenate([read.constant for read in systems])
        nonnegative = np.concatenate([np.full(v.size, v.is_nonneg()) for v in self.variables])
        for _ in range(2):
            x = np.concatenate([flat(v.value) for v in self.variables])
            D = np.where(nonnegative, np.maximum(x, 0.0), 1.0)
            if not np.any(A * D, axis=1).all():  # the variables of an equation are all zero: let them change
                smallest = RELATIVE_MINIMUM * (float(np.abs(x).max(initial=0.0)) or 1.0)
                D = np.where(nonnegative, np.maximum(x, smallest), 1.0)
            D = D / D.max(initial=SMALLEST_DIVISOR)  # a factor of D does not change the step
            residual = constant + A @ x
            if not (np.isfinite(residual).all() and np.isfinite(D).all()):
                return
            x = x - D * (A.T @ shortest_solution(A * D, A, residual, DEPENDENT))
            x = np.where(np.abs(x) <= NEGLIGIBLE * np.abs(x).max(initial=0.0), 0.0, x)
            start = 0
            for variable in self.variables:
                value = x[start : start + variable.size].reshape(variable.shape, order="F")
                # Signs must hold exactly, since even a weight of -1e-16 counts if its kernel is huge.
                size = float(np.abs(value).max(initial=0.0))
                lowest = float(value.min(initial=0.0))
                is_rounding = variable.is_nonneg() and lowest >= -ROUND_OFF * max(size, 1.0)
                variable.save_value(np.maximum(value, 0.0) if is_rounding else value)
                start += variable.size

    def _combined_interior(self) -> Point | None:
        """Return a point inside the set of PSD combinations of given trace; None for any other problem."""
        coordinates = read_coordinates(self.structure)
        if isinstance(coordinates, str):
            return None
        self.evaluator.write(coordinates.cone.point(coordinates.centre))
        self._project_on_equalities()
        return self._read() if self._feasible() else None

    def _local_interior(self, point: Point | None) -> tuple[Point, Callable[[float], bool]] | None:
        """Return what `points_inward` yields for a strictly feasible point near, or None."""
        if point is None or not self.conic or self.cones is not None or any(self.structure.constrained):
            return None
        for near, inside in points_inward(self.structure, point):
            self.evaluator.write(near)
            self._project_on_equalities()
            inner = self._read() if self._feasible() else None
            if inner is not None:
                return inner, inside
        return None

    def _interior_point(self) -> Point | None:
        """Return a strictly feasible point by phase one, or None."""
        found = self._largest_slack()
        for _ in range(GROWTHS if self.cones is not None else 0):
            if found is not None or self._read() is None or self.cones is None or not self.cones.grow():
                break
            found = self._largest_slack()
        return found

    def _largest_slack(self) -> Point | None:
        """Return the point with the largest slack, at most one, in all inequalities, if it is feasible."""
        with quietly():
            problem, slack = phase_one(self.structure, self.cones)
        order = max((v.shape[0] for v in self.variables if v.attributes["PSD"]), default=0)
        cones = [c for c in problem.constraints if isinstance(c, cp.constraints.PSD)]
        order = max([order, *(c.shape[0] for c in cones)])
        for attempt in ladder(linear=False, order=order)[:ATTEMPTS]:
            run_solver(problem, attempt)
            if slack.value is None or not np.isfinite(slack.value) or self._read() is None:
                continue
            self._project_on_equalities()
            if self._feasible() or self._round_to_zero():
                return self._read()
        return None

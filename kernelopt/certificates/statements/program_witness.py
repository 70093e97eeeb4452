"""Exact witnesses of linear, second-order and semidefinite programmes, near the numbers of a solver."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from fractions import Fraction
from typing import Any

import cvxpy as cp
import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components

from kernelopt.certificates.statements.columns import BeyondFractionsError
from kernelopt.certificates.statements.lifting import DEPENDENT, LARGE_STEPS
from kernelopt.certificates.statements.statement import Statement
from kernelopt.certificates.statements.witness import (
    SLACKS,
    checker,
    exact_solution,
    fractions,
    verified_factor,
)
from kernelopt.conic.ladder import ladder, run_solver
from kernelopt.threads import quietly
from kernelopt.validation import Array, Mask

LARGEST_SYSTEM = 60  # equations that are solved together in fractions: 3 s


class Witness:
    """The search for multipliers and for a point of a statement that satisfy all equations exactly.

    A solver's numbers satisfy them up to its tolerance. They are therefore moved by a share t towards numbers
    inside the cones, with t as small as possible, and then changed by the least-norm solution of the
    equations, in fractions. At t = 0 inequalities that are active up to rounding count as equations, which
    gives linear programmes their exact optimum.
    """

    def __init__(self, statement: Statement) -> None:
        self.statement = statement
        self.A = statement.matrix
        self.right = np.array([row[3] for row in statement.rows])
        self.equal = np.array([row[4] for row in statement.rows])
        self.signs = np.array(statement.signs)
        self.G: list[Array] = [statement.arrays[f"G{k}"] for k in range(len(statement.cones))]
        # The equations of the dual are M z = -cost for z = (u, Z_0, Z_1, ...).
        self.M = sp.csr_array(sp.hstack([self.A.T, *(-sp.csr_array(G.reshape(len(G), -1)) for G in self.G)]))

    def find(self) -> None:
        """Set the witnesses that are found."""
        solved = self.solve_primal()
        if solved is None:
            return
        x, z = solved
        value = float(self.statement.cost @ x)
        reach = max(abs(value), 1e-3 * float(np.abs(self.statement.cost) @ np.abs(x)), 1e-3)
        u, rest, slack = z[: len(self.equal)], self.statement.cost + self.M @ z, self.right - self.A @ x
        # Strict complementarity decides which inequalities are active.
        largest = np.max(abs(self.A) @ np.abs(x) + np.abs(self.right))
        rows = self.equal | (u * largest > slack * np.abs(u).max())
        columns = ~self.signs | (x * np.abs(self.statement.cost).max() > rest * np.abs(x).max())
        searches: list[tuple[Array, Callable[[], Array | None], Callable[..., bool]]] = [
            (z, lambda: self.inner_multipliers(value - reach), self.set_multipliers),
            (x, lambda: self.inner_point(value + reach), self.set_point),
        ]
        for near, inside, apply in searches:
            centre = None
            for t in (0.0, *SLACKS, *LARGE_STEPS):
                centre = inside() if t and centre is None else centre
                if t and centre is None:
                    break
                moved = near if centre is None else (1 - t) * near + t * centre
                with suppress(BeyondFractionsError):
                    if apply(moved, rows, columns, t > 0):
                        break

    def solve_primal(self) -> tuple[Array, Array] | None:
        """Return a solver's x and z."""
        x = cp.Variable(len(self.signs))
        with quietly():
            rows, *rest = constraints = self.constraints(x, 0.0)
            problem = cp.Problem(cp.Minimize(self.statement.cost @ x), constraints)
        if not self.run(problem):
            return None
        u = np.zeros(len(self.equal))
        u[self.equal], u[~self.equal] = rows.dual_value, rest[0].dual_value
        return x.value, np.concatenate([u, *(np.ravel(cone.dual_value) for cone in rest[2:])])

    def inner_point(self, most: float) -> Array | None:
        """Return a point deep inside with an objective of at most `most`."""
        x, depth = cp.Variable(len(self.signs)), cp.Variable()
        with quietly():
            limits = [self.statement.cost @ x <= most, depth <= 1]
            problem = cp.Problem(cp.Maximize(depth), [*self.constraints(x, depth), *limits])
        return x.value if self.run(problem) and depth.value > 0 else None

    def constraints(self, x: Any, depth: Any) -> list[cp.Constraint]:
        """Return equations, inequalities, signs and cones, all but the first with a depth."""
        excess = self.A @ x - self.right
        return [
            excess[self.equal] == 0,
            excess[~self.equal] + depth <= 0,
            x[self.signs] >= depth,
            *(
                cp.reshape(sp.csr_array(G.reshape(len(G), -1).T) @ x, G.shape[1:], order="C")
                >> depth * np.eye(len(G[0]))
                for G in self.G
            ),
        ]

    def inner_multipliers(self, least: float) -> Array | None:
        """Return multipliers deep inside with a bound of at least `least`, without the offset."""
        u, depth = cp.Variable(len(self.equal)), cp.Variable()
        with quietly():
            Z = [cp.Variable(G.shape[1:], symmetric=True) for G in self.G]
            z = cp.hstack([u, *(cp.vec(part, order="C") for part in Z)])
            rest = self.statement.cost + self.M @ z
            constraints = [
                u[~self.equal] >= depth,
                rest[~self.signs] == 0,
                rest[self.signs] >= depth,
                depth <= 1,
            ]
            constraints += [part >> depth * np.eye(len(G[0])) for part, G in zip(Z, self.G, strict=True)]
            problem = cp.Problem(cp.Maximize(depth), [*constraints, -self.right @ u >= least])
        return z.value if self.run(problem) and depth.value > 0 else None

    def run(self, problem: cp.Problem) -> bool:
        """Solve a problem; return whether there is a point."""
        order = max((len(G[0]) for G in self.G), default=1)
        for attempt in ladder(linear=False, order=order):
            run_solver(problem, attempt)
            if problem.status in cp.settings.SOLUTION_PRESENT:
                return True
        return False

    def set_multipliers(self, z: Array, rows: Mask, columns: Mask, inside: bool) -> bool:
        """Set the multipliers near z; return whether they prove a bound."""
        statement, size = self.statement, len(self.equal)
        free = np.flatnonzero((~self.signs if inside else columns)[:-1])
        moving = np.concatenate([rows, np.ones(z.size - size, dtype=bool)])
        z = np.where(moving | inside, z, 0.0)
        M, right = sp.csr_array(self.M[free]), -statement.cost[free]
        z = z + moving * (M.T @ solved_by_parts(M[:, moving], right - M @ z, np.float64))
        Z = self.blocks(z)
        if not all(positive(part) for part in Z):
            return False
        z = np.concatenate([z[:size], *(np.ravel(part) for part in Z)])
        w = np.full(len(self.signs), Fraction(0))
        w[free] = solved_by_parts(M[:, moving], missing(M, z, right), Fraction)
        u = fractions(z[:size])
        u[rows] -= missing(sp.csr_array(self.A[rows]), w, np.zeros(int(rows.sum())))
        u[0] = Fraction(0)  # of the column that is one, which meets its equation by itself
        for k, (part, G) in enumerate(zip(Z, self.G, strict=True)):
            statement.mix[k] = (-w).tolist()
            exact = checker().product([Fraction(1), *-w], [part, *G])
            if not self.set_factor(k, "S", exact):
                return False
            statement.set_witness(k, Y=part)
            u[0] += checker().product(exact, G[-1], 2)
        statement.u = u.tolist()
        return self.proves(0)

    def set_point(self, x: Array, rows: Mask, columns: Mask, inside: bool) -> bool:
        """Set a feasible point near x; return whether it proves a bound."""
        tight = np.flatnonzero(self.equal if inside else rows)
        x = np.where(columns | inside, x, 0.0)
        A, right = sp.csr_array(self.A[tight]), self.right[tight]
        x = x + columns * (A.T @ solved_by_parts(A[:, columns], right - A @ x, np.float64))
        if not all(positive(np.tensordot(x, G, 1)) for G in self.G):
            return False
        w = np.full(tight.size, Fraction(0))
        w[:] = solved_by_parts(A[:, columns], missing(A, x, right), Fraction)
        exact = fractions(x)
        exact[columns] -= missing(sp.csr_array(A[:, columns].T), w, np.zeros(int(columns.sum())))
        self.statement.x = exact.tolist()
        cones = enumerate(self.G)
        return all(self.set_factor(k, "T", checker().product(exact, G)) for k, G in cones) and self.proves(1)

    def set_factor(self, k: int, name: str, M: Any) -> bool:
        """Set the factor of cone k that shows M >> 0 exactly; return whether there is one."""
        found = verified_factor(M.astype(float), M, ridges=False)
        if found is not None:
            self.statement.set_witness(k, **{name: found[1]})
        return found is not None

    def proves(self, side: int) -> bool:
        """Whether the lower (0) or the upper bound (1) of the minimisation is proved."""
        bounds = self.statement.bounds()[:: self.statement.sense]
        return abs(float(bounds[side])) < np.inf

    def blocks(self, z: Array) -> list[Array]:
        """Return the symmetric multipliers of the cones."""
        ends = np.cumsum([len(self.equal), *(G[0].size for G in self.G)])
        parts = [
            part.reshape(G.shape[1:]) for part, G in zip(np.split(z, ends[:-1])[1:], self.G, strict=True)
        ]
        return [(part + part.T) / 2 for part in parts]


def positive(M: Array) -> bool:
    """Whether a matrix seems to be positive definite, or is zero."""
    return not M.any() or float(np.linalg.eigvalsh(M)[0]) > 0


def missing(M: sp.csr_array, v: Any, right: Any) -> Any:
    """Return right - M v in fractions."""
    entries, found = fractions(v), fractions(right)
    rows = np.repeat(np.arange(len(found)), np.diff(M.indptr))
    for i, j, value in zip(rows, M.indices, M.data.tolist(), strict=True):
        found[i] -= Fraction(value) * entries[j]
    return found


def solved_by_parts(M: sp.csr_array, right: Any, number: Any) -> Any:
    """Return w with M M'w = right, in doubles or in fractions, for every connected part of M M' by itself.

    Raises
    ------
    BeyondFractionsError
        If a part has more than `LARGEST_SYSTEM` equations, or no solution.
    """
    M = sp.csr_array(M)
    M.eliminate_zeros()
    exact = number is Fraction
    found = np.full(M.shape[0], number(0))
    pattern = abs(sp.csr_array(M != 0).astype(float))
    count, label = connected_components(pattern @ pattern.T, directed=False)
    order = np.argsort(label, kind="stable")
    for part in np.split(order, np.cumsum(np.bincount(label, minlength=count))[:-1]):
        wanted = [right[i] for i in part]
        if not any(wanted):
            continue
        if part.size > LARGEST_SYSTEM:
            raise BeyondFractionsError(
                f"a file in fractions needs at most {LARGEST_SYSTEM} equations in common unknowns, got "
                f"{part.size}."
            )
        dense = M[part].toarray()
        dense = dense[:, dense.any(axis=0)]
        if exact:
            solution = exact_solution(checker().product(dense, dense.T).tolist(), wanted)
            if solution is None:
                raise BeyondFractionsError("equations of the problem are dependent up to rounding only.")
        else:
            solution = np.linalg.lstsq(dense @ dense.T, wanted, rcond=DEPENDENT)[0]
        found[part] = solution
    return found

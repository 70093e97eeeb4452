"""The master problem of the cutting planes: the user's problem with every risk replaced by its cuts."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import cvxpy as cp
import numpy as np
import scipy.sparse as sp

from kernelopt.certificates.conic.cones import TOO_LONG, ConeProgram
from kernelopt.certificates.conic.equilibration import equilibrated
from kernelopt.certificates.conic.stated import (
    duplication,
    entries,
    is_triangular,
    substituted,
    whole,
    without_attributes,
)
from kernelopt.certificates.lower.minorants import minorant
from kernelopt.errors import SolverError, Stopped
from kernelopt.language.adapter import written_problem
from kernelopt.language.terms import Term, terms
from kernelopt.structure.affine import affine
from kernelopt.structure.relaxed_cones import RelaxedCones
from kernelopt.structure.structure import Point, Structure
from kernelopt.structure.units import units
from kernelopt.threads import quietly
from kernelopt.validation import Array

# A solution of the master problem: its point, its value, and the multiplier of every cut.
MasterSolution = tuple[Point, float, Array]


class Master:
    """min v subject to the user's constraints, objective(t) <= v, and the cuts below each t_k.

    The cone form is compiled once, and every cut appends a row to it. With `cones` large matrix inequalities
    are relaxed, and the form is compiled again where their spaces have grown.

    The columns of t and v are in their units (`structure.units`): a coefficient between a value of 1e-177 and
    one of 1e183 is no double.
    """

    def __init__(self, structure: Structure, cones: RelaxedCones | None = None) -> None:
        self.structure, self.cones = structure, cones
        self.risks = structure.risks
        self.variables = list(structure.variables)
        sizes = units(structure)
        self.values, self.value = [unit.value for unit in sizes.risks], sizes.objective  # units of t and v
        t = [term.stand_in for term in structure.risks]
        with quietly():
            v = cp.Variable(name="v")
            in_units = {id(t_k): unit * t_k for t_k, unit in zip(t, self.values, strict=True)}
            lifted = substituted(structure, in_units, cones)
            objective = lifted.objective.args[0] / self.value
            constraints = [objective <= v, *map(of_size_one, lifted.constraints)]
            epigraph = written_problem(cp.Minimize(v), constraints)
            everything = [*self.variables, *t, v]
            stripped = without_attributes(epigraph, everything)
        program = stripped.program
        if program is None:
            raise SolverError("the master problem must compile for Clarabel. Use method='exact'.")
        self.program: ConeProgram = program
        start = {x.id: program.columns.get(stripped.variables[x.id].id) for x in everything}
        self.columns = {x.id: program.columns[stripped.variables[x.id].id] for x in self.variables}
        self.epigraphs = [start[t_k.id] for t_k in t]
        self.objective = start[v.id]
        self.cuts: list[tuple[int, Array]] = []  # the risk and the alpha of every cut
        self.rows: list[sp.csr_array] = []  # of every cut, in the columns of the cone form
        self.right: list[float] = []
        measured = [*((x, sizes.of(x)) for x in self.variables), *((x, np.ones(())) for x in (*t, v))]
        self.units = program.by_column([(stripped.variables[x.id], unit) for x, unit in measured], np.nan)

    def rebuilt(self) -> Master:
        """Return the master with the same cuts of the risks, on the spaces that the cones have now."""
        new = Master(self.structure, self.cones)
        for k, alpha in self.cuts:
            new.add(k, alpha)
        return new

    def add(self, k: int, alpha: Array) -> None:
        """Add the cut of risk k at alpha, which must be in the domain of the dual."""
        column, below = self.epigraphs[k], minorant(self.risks[k], alpha)
        row = sp.lil_array((1, self.program.c.size))
        self.cuts.append((k, alpha))
        if column is None:  # a risk of weight zero
            self.rows.append(sp.csr_array(row))
            self.right.append(0.0)
            return
        row[0, column] = -1.0
        for variable, slope in below.slopes.items():
            first, mid = self.columns[variable.id], slope.mid
            entries = duplication(variable.shape[0]).T @ mid if is_triangular(variable) else mid
            row[0, first : first + entries.size] = entries / self.values[k]
        self.rows.append(sp.csr_array(row))
        self.right.append(-float(below.constant.mid) / self.values[k])

    def start(self) -> Point:
        """Return a feasible point in the interior, which an interior-point solver finds without objective."""
        return self._point(self._solve(replace(self.program, **self._no_objective()))[0])

    def solve(self) -> MasterSolution:
        """Minimise the model.

        Raises
        ------
        MasterFailure
            If the solver returns no point.
        """
        objective = self._no_objective()
        objective["c"][self.objective] = 1.0
        first = self.program.dims.zero + self.program.dims.nonneg
        own = slice(first, first + len(self.cuts))
        try:
            x, z = self._solve(replace(self._with_cuts(), **objective))
        except MasterFailure as failure:
            if failure.ray is not None:
                failure.ray = np.maximum(failure.ray[own], 0.0)
            raise
        multipliers = np.maximum(z[own], 0.0)
        return self._point(x), self.value * float(x[self.objective]), multipliers

    def nearest(self, centre: Point, level: float) -> Point:
        """Return the projection of `centre` on the level set {model <= level}, in the metric of the units."""
        c = np.zeros(self.program.c.size)
        diagonal = np.zeros(c.size)
        for variable in self.variables:
            first = self.columns[variable.id]
            columns = entries(variable, centre[variable.id])
            own = slice(first, first + columns.size)
            diagonal[own] = self.units[own] ** -2
            c[own] = -columns * diagonal[own]
        row = sp.csr_array(([1.0], ([0], [self.objective])), shape=(1, c.size))
        program = self._with_cuts().with_rows(row, np.array([level / self.value]))
        return self._point(self._solve(replace(program, P=sp.csc_array(sp.diags_array(diagonal)), c=c))[0])

    def averaged_alphas(self, multipliers: Array) -> list[Array]:
        """Return for every risk the average of the alphas of its cuts, weighted by their multipliers.

        The dual objective is concave in alpha. Hence the bound at the average is at least the master's value.
        """
        found = []
        for k in range(len(self.risks)):
            own = [i for i, (risk, _) in enumerate(self.cuts) if risk == k]
            found.append(averaged_alphas([self.cuts[i][1] for i in own], multipliers[own]))
        return found

    def _no_objective(self) -> dict[str, Any]:
        size = self.program.c.size
        return {"P": sp.csc_array((size, size)), "c": np.zeros(size)}

    def _with_cuts(self) -> ConeProgram:
        if not self.cuts:
            return self.program
        return self.program.with_rows(sp.vstack(self.rows, format="csc"), np.array(self.right))

    def _solve(self, program: ConeProgram) -> tuple[Array, Array]:
        scaled, columns, rows = equilibrated(program, self.units)
        status, x, z = scaled.solve()
        if status == TOO_LONG:
            raise Stopped
        if x is None or z is None or "nfeasible" in status:
            ray = rows * z if z is not None and "PrimalInfeasible" in status else None
            raise MasterFailure(status, ray)
        return columns * x, rows * z

    def _point(self, x: Array) -> Point:
        point = {}
        for variable in self.variables:
            first, size = self.columns[variable.id], entries(variable, np.empty(variable.shape)).size
            point[variable.id] = whole(variable, x[first : first + size])
        return point


def averaged_alphas(alphas: list[Array], multipliers: Array) -> Array:
    """Return the weighted average of alphas, or the last one where all multipliers vanish."""
    total = float(multipliers.sum())
    if not total > 1e-12:  # rounding
        return alphas[-1]
    mean: Array = multipliers @ np.array(alphas) / total
    return mean


class MasterFailure(Exception):
    """The solver returned no point; the status says whether the master is infeasible or unbounded.

    `ray` holds the multipliers of the cuts in a certificate of infeasibility, where there is one.
    """

    def __init__(self, status: str, ray: Array | None = None) -> None:
        super().__init__(status)
        self.ray = ray


def of_size_one(constraint: cp.Constraint) -> cp.Constraint:
    """Return a semidefinite constraint with its matrices divided by their largest entry."""
    parts = terms(constraint.args[0]) if isinstance(constraint, cp.constraints.PSD) else None
    size = max(map(largest_coefficient, parts or []), default=0.0)
    return constraint.args[0] / size >> 0 if size > 0 else constraint


def largest_coefficient(term: Term) -> float:
    """Return the largest entry of a term's matrices, each times the largest coefficient of its weight."""
    read = affine(term.weights)
    factors = np.ones(len(term.grams))
    if read is not None:
        rows = [np.ravel(abs(M).max(axis=1).toarray()) for M in read.matrices.values()]
        factors = np.max([np.abs(read.constant), *rows], axis=0)
    return max(float(f * np.abs(K).max()) for f, K in zip(factors, term.grams, strict=True))

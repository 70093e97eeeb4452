"""Units in which a problem has variables, kernels, targets and values of size one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import cvxpy as cp
import numpy as np
from cvxpy.constraints import SOC, ExpCone, Inequality, NonNeg, NonPos, PowCone3D, Zero
from cvxpy.constraints.zero import Equality

from kernelopt.language.terms import terms
from kernelopt.structure.affine import Affine, affine, flat
from kernelopt.structure.evaluation import magnitude
from kernelopt.structure.structure import RiskTerm, Structure, once
from kernelopt.validation import Array

HOMOGENEOUS = (Equality, Inequality, Zero, NonNeg, NonPos, cp.constraints.PSD, SOC, ExpCone, PowCone3D)


class RiskUnits(NamedTuple):
    """A risk is value * risk', with kernels K = kernel * K' and targets y = targets * y'."""

    kernel: float = 1.0
    targets: float = 1.0
    value: float = 1.0


@dataclass(frozen=True)
class Units:
    """x = variables[x.id] * x' for every variable, objective = objective * objective'.

    Both sides of the k-th constraint are divided by constraints[k]. The units of variables, constraints
    and values are powers of two: a number in other units is the same double but for its exponent.
    """

    variables: dict[int, Array] = field(default_factory=dict)
    risks: tuple[RiskUnits, ...] = ()
    constraints: tuple[float, ...] = ()
    objective: float = 1.0

    def of(self, variable: cp.Variable) -> Array:
        """Return the unit of a variable, one number or one per entry."""
        return self.variables.get(variable.id, np.ones(()))

    def of_risk(self, k: int) -> RiskUnits:
        """Return the units of the k-th risk."""
        return self.risks[k] if self.risks else RiskUnits()

    def of_constraint(self, i: int) -> float:
        """Return the unit of the i-th constraint."""
        return self.constraints[i] if self.constraints else 1.0


@once
def units(structure: Structure) -> Units:
    """Return units in which the numbers of a problem, and those of its solution, are of size one.

    * A variable is measured by what bounds it: the radius of a ball, the most that a trace leaves to it.
      Where nothing does its unit is one.
    * Targets are measured by their standard deviation t, a risk by its value at simple predictors with such
      weights, and its kernels by n t^2 / (2 value): so the value is that of a fit of n targets by a kernel
      of mean diagonal one.

    Hence the problem in these units is the same for kernels c K with weights C / c, for theta / c in a ball
    of radius r / c, and for targets in any unit.
    """
    held = [*structure.variables, *(term.stand_in for term in structure.risks)]
    before = [leaf.value for leaf in held]
    try:
        with np.errstate(all="ignore"):  # an objective may be infinite where weights are zero
            return measured(structure)
    finally:
        for leaf, value in zip(held, before, strict=True):
            leaf.save_value(value)


def measured(structure: Structure) -> Units:
    """Return the units, with the structure's variables at theirs."""
    sizes = {variable.id: variable_unit(structure, variable) for variable in structure.variables}
    write(structure, sizes)
    risks = tuple(risk_units(term, sizes) for term in structure.risks)
    for term, unit in zip(structure.risks, risks, strict=True):
        term.stand_in.save_value(np.asarray(unit.value))
    constraints = tuple(
        power_of_two(largest([arg.value for arg in c.args])) if isinstance(c, HOMOGENEOUS) else 1.0
        for c in structure.lifted.constraints
    )
    return Units(sizes, risks, constraints, objective_unit(structure, sizes, risks))


def write(structure: Structure, sizes: dict[int, Array]) -> None:
    """Set the variables to their units, a matrix to a multiple of I."""
    for variable in structure.variables:
        size = sizes[variable.id]
        square = variable.ndim == 2 and variable.shape[0] == variable.shape[1]
        variable.save_value(size * np.eye(variable.shape[0]) if square else size * np.ones(variable.shape))


def variable_unit(structure: Structure, variable: cp.Variable) -> Array:
    """Return the unit of a variable: one per entry of a vector, one number for a matrix."""
    sizes = np.full(variable.size, np.inf)
    for reach in reaches(structure, variable):
        sizes = np.fmin(sizes, np.where(reach > 0, reach, np.inf))
    finite = np.isfinite(sizes)
    if not finite.any():
        return np.ones(())
    if variable.ndim != 1:
        return np.asarray(power_of_two(float(sizes[finite].min())))
    sizes = np.where(finite, sizes, sizes[finite].max())
    scales = None if variable.is_nonneg() else kernel_scales(structure, variable)
    if scales is not None:  # an equation bounds no entry of free sign: all x_m K_m are of the smallest size
        sizes = float((sizes * scales).min()) / scales
    return np.array([power_of_two(size) for size in sizes])


def kernel_scales(structure: Structure, variable: cp.Variable) -> Array | None:
    """Return the largest entry of the matrix that each entry of a variable weighs, None unless all do."""
    scales = np.zeros(variable.size)
    for K in (K for term in structure.risks for K in term.kernels):
        for weights, grams in terms(K) or ():
            read = affine(weights)
            if read is not None and variable in read.matrices:
                sizes = np.array([np.abs(G).max() for G in grams])
                weighed = abs(read.matrices[variable]).T.multiply(sizes)
                scales = np.maximum(scales, np.ravel(weighed.max(axis=1).toarray()))
    return scales if (scales > 0).all() else None


def reaches(structure: Structure, variable: cp.Variable) -> Iterator[Array]:
    """Yield how large the entries of a variable may be by each constraint alone, infinite where any."""
    bounds = variable.attributes.get("bounds")
    if bounds is not None:
        yield flat(np.maximum(*(np.abs(np.broadcast_to(side, variable.shape)) for side in bounds)))
    for sphere in structure.spheres:
        if sphere is not None and sphere.variable is variable:
            yield np.full(variable.size, sphere.radius)
    reads = list(zip(structure.lifted.constraints, structure.affines, structure.edges, strict=True))
    for constraint, read, edge in reads:
        if edge is not None and variable in edge.rows:
            share = variable.shape[0] if variable.attributes["PSD"] else 1
            yield np.broadcast_to(edge.reach(variable) / share, (variable.size,))
        elif edge is None and read is not None and variable in read.matrices:
            yield from affine_reaches(constraint, read, variable)


def affine_reaches(constraint: Any, read: Affine, variable: cp.Variable) -> Iterator[Array]:
    """Yield |constant / coefficient| of the entries in equations, and in inequalities of one entry each."""
    single = sum(np.diff(matrix.indptr) for matrix in read.matrices.values()) == 1
    equation = isinstance(constraint, Equality | Zero)
    entries = read.matrices[variable].tocoo()
    sizes = np.full(variable.size, np.inf)
    for row, column, value in zip(entries.row, entries.col, entries.data, strict=True):
        if value and read.constant[row] and (equation or single[row]):
            sizes[column] = min(sizes[column], abs(read.constant[row] / value))
    yield sizes


def risk_units(term: RiskTerm, sizes: dict[int, Array]) -> RiskUnits:
    """Return the units of a risk, where its variables have these sizes.

    The value is the least of f = 0 and of one predictor K_m (y - mean(y)) for each kernel, of the targets'
    size. A fit of n targets of size t by a kernel of mean diagonal s has 1/2 |f|^2 of about n t^2 / (2 s).
    """
    learner, y, bias = term.learner, term.learner.y, term.learner.bias is not None
    targets = 1.0
    if term.loss.dilated(1.0) is not None:
        targets = length(y - y.mean() if bias else y) or 1.0
    shape = y - y.mean() if bias and np.ptp(y) else y
    values = [term.loss.primal(np.zeros(y.size), 0.0, y, bias).value]
    for K in term.kernels:
        for f in images(K, shape, sizes):
            reach = length(f - f.mean() if bias else f)
            if reach > 0:
                scale = targets / reach
                square = scale**2 * float(shape @ f) / 2
                values.append(term.loss.primal(scale * f, square, y, bias).value)
    value = min((v for v in values if 0 < v < np.inf), default=1.0)
    kernel = learner.n * targets**2 / value / 2
    if "semidefinite" in term.forms:
        kernel = max((mean_diagonal(K, y.size) for K in term.kernels), default=0.0) or kernel
    return RiskUnits(kernel, targets, power_of_two(value))


def mean_diagonal(K: cp.Expression, n: int) -> float:
    """Return the mean diagonal of the current value of a kernel on its first n points."""
    return float(np.mean(np.abs(np.diag(K.value)[:n])))


def length(v: Array) -> float:
    """Return the root mean square of a vector."""
    return float(np.sqrt(np.mean(v**2)))


def images(K: cp.Expression, a: Array, sizes: dict[int, Array]) -> list[Array]:
    """Return K_m a for every summand of a kernel, with its weight where the variables have these sizes."""
    parts, n = terms(K), a.size
    if parts is None:
        return [K.value[:n, :n] @ a]
    found: list[Array] = []
    for weights, grams in parts:
        read = affine(weights)
        block = grams.block(slice(0, n)) if n < grams.n_points else grams
        if read is not None:
            found.extend(reached(read, sizes)[:, None] * block.apply(a))
    return found


def reached(read: Affine, sizes: dict[int, Array]) -> Array:
    """Return the size of affine expressions where the variables have these sizes."""
    total = np.abs(read.constant)
    for variable, matrix in read.matrices.items():
        total = total + abs(matrix) @ np.broadcast_to(sizes.get(variable.id, np.ones(())), (variable.size,))
    return np.asarray(total)


def objective_unit(structure: Structure, sizes: dict[int, Array], risks: tuple[RiskUnits, ...]) -> float:
    """Return by how much the risks change the objective, or without risks the size of its terms."""
    expression = structure.lifted.objective.args[0]
    terms_at_units = magnitude(expression) if expression.value is not None else 0.0
    if risks:
        for variable in structure.variables:
            variable.save_value(np.asarray(variable.project(np.zeros(variable.shape))))
        changed = expression.value
        for term in structure.risks:
            term.stand_in.save_value(np.zeros(()))
        unchanged = expression.value
        if changed is not None and unchanged is not None:
            found = power_of_two(largest([changed - unchanged]), otherwise=0.0)
            if found:
                return found
    return power_of_two(terms_at_units)


def largest(values: list[Any]) -> float:
    """Return the largest absolute entry, zero where there is none and NaN where it is not known."""
    return max(
        (float(np.abs(flat(value)).max(initial=0.0)) if value is not None else np.nan) for value in values
    )


def power_of_two(number: float, otherwise: float = 1.0) -> float:
    """Return the power of two nearest to a positive number, `otherwise` where there is none."""
    if not 0 < number < np.inf:
        return otherwise
    return float(2.0 ** np.clip(np.round(np.log2(number)), -500, 500))

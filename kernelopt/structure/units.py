"""Scaling: units in which the variables, kernels, targets and values of a problem are of size one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import cvxpy as cp
import numpy as np
from cvxpy.constraints import SOC, ExpCone, Inequality, NonNeg, NonPos, PowCone3D, Zero
from cvxpy.constraints.zero import Equality

from kernelopt.language.learner import on_labelled
from kernelopt.numerics.norms import length_of_positive
from kernelopt.running import check
from kernelopt.structure.affine import flat
from kernelopt.structure.attributes import projected, stated_bounds
from kernelopt.structure.enclosure import violation
from kernelopt.structure.evaluation import sum_of_magnitudes
from kernelopt.structure.structure import RiskTerm, Structure, kept_in_structure
from kernelopt.validation import Array

HOMOGENEOUS = (Equality, Inequality, Zero, NonNeg, NonPos, cp.constraints.PSD, SOC, ExpCone, PowCone3D)
"""Constraints in a cone, which stay the same when all arguments are divided by a positive number."""
SMALL_STEP = 2.0**-26  # relative, of a difference quotient: the square root of the unit round-off
LARGEST_LOG2 = 500  # units lie in [2^-500, 2^500]: products of two neither overflow nor vanish


class RiskUnits(NamedTuple):
    """The units of a risk: risk = value * risk', kernels K = kernel * K' and targets y = targets * y'."""

    kernel: float = 1.0
    targets: float = 1.0
    value: float = 1.0


@dataclass(frozen=True)
class Units:
    """The units of a problem.

    A variable is x = variables[x.id] * x', where x' is the variable of the scaled problem. The units of the
    k-th risk are risks[k]. Both sides of the i-th constraint are divided by constraints[i], and the objective
    by `objective`. The units of variables, constraints and values are powers of two, so that scaling makes no
    rounding error.
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


@kept_in_structure
def units(structure: Structure) -> Units:
    """Return units in which the data of a problem, and the numbers of its solution, are of size one.

    * The unit of a variable is the smallest bound that the constraints imply for it, such as the radius of a
      ball or the bound of a trace. It is one where no constraint implies a bound.
    * The unit of the targets is their standard deviation t, for losses that can be rescaled.
    * The unit v of a risk is the smallest of its values at the predictors that `risk_units` describes.
    * The unit of the kernels is n t^2 / (2 v). A predictor that fits n targets of size t, by a kernel whose
      mean diagonal is this unit, has 1/2 |f|^2 of about v.

    The problem in these units does not change, up to the rounding of units, in three cases: if the kernels
    are multiplied by c and the weight C of the loss is divided by c; if the kernels are multiplied by c, and
    theta and the radius of its ball are divided by c; and if the targets are in another unit.
    """
    leaves = [*structure.variables, *(term.stand_in for term in structure.risks)]
    before = [leaf.value for leaf in leaves]
    try:
        with np.errstate(all="ignore"):  # an objective may be infinite where weights are zero
            sizes = variable_units(structure)
            set_to_units(structure, sizes)
            risks = tuple(risk_units(term) for term in structure.risks)
            for term, unit in zip(structure.risks, risks, strict=True):
                term.stand_in.save_value(np.asarray(unit.value))
            constraints = tuple(
                power_of_two(largest([arg.value for arg in c.args])) if isinstance(c, HOMOGENEOUS) else 1.0
                for c in structure.lifted.constraints
            )
            return Units(sizes, risks, constraints, objective_unit(structure, sizes))
    finally:
        for leaf, value in zip(leaves, before, strict=True):
            leaf.save_value(value)


@kept_in_structure
def variable_units(structure: Structure) -> dict[int, Array]:
    """Return the units of the variables by id."""
    return {variable.id: variable_unit(structure, variable) for variable in structure.variables}


def set_to_units(structure: Structure, sizes: dict[int, Array]) -> None:
    """Set each vector to its units and each matrix to its unit times I."""
    for variable in structure.variables:
        size = sizes[variable.id]
        square = variable.ndim == 2 and variable.shape[0] == variable.shape[1]
        variable.save_value(size * np.eye(variable.shape[0]) if square else size * np.ones(variable.shape))


def variable_unit(structure: Structure, variable: cp.Variable) -> Array:
    """Return the unit of a variable: one number for each entry of a vector, one number for a matrix.

    The unit of an entry is its smallest positive bound, rounded to a power of two. The unit of an entry
    without a bound is the largest bound of the other entries. There is another rule for a vector x that
    weighs kernels K_m and has entries of any sign, since a constraint such as sum(x) = 1 bounds none of them.
    With b_m the bound and k_m the largest entry of K_m, the unit of x_m is min_l(b_l k_l) / k_m, so that all
    x_m K_m have one size.
    """
    sizes = np.full(variable.size, np.inf)
    for bound in magnitude_bounds(structure, variable):
        sizes = np.fmin(sizes, np.where(bound > 0, bound, np.inf))
    finite = np.isfinite(sizes)
    if not finite.any():
        return np.ones(())
    if variable.ndim != 1:
        return np.asarray(power_of_two(float(sizes[finite].min())))
    sizes = np.where(finite, sizes, sizes[finite].max())
    scales = None if variable.is_nonneg() else kernel_scales(structure, variable)
    if scales is not None:
        sizes = float((sizes * scales).min()) / scales
    return np.array([power_of_two(size) for size in sizes])


def kernel_scales(structure: Structure, variable: cp.Variable) -> Array | None:
    """Return the largest entry of the matrices that each entry of a variable multiplies in the risks.

    Returns
    -------
    array, or None
        None where some entry multiplies no matrix, or only zero matrices.
    """
    scales = np.zeros(variable.size)
    for parts in (parts for term in structure.risks for parts in term.weighted):
        for read, grams in parts:
            if read is not None and grams is not None and variable in read.matrices:
                sizes = np.array([np.abs(G).max() for G in grams])
                weighed = abs(read.matrices[variable]).T.multiply(sizes)
                scales = np.maximum(scales, np.ravel(weighed.max(axis=1).toarray()))
    return scales if (scales > 0).all() else None


def magnitude_bounds(structure: Structure, variable: cp.Variable) -> Iterator[Array]:
    """Yield bounds of the absolute values of the entries of a variable, from one constraint at a time.

    An entry that a constraint does not bound has the bound infinity. From a row a'x + constant = 0 or <= 0
    the bound of an entry x_j is |constant / a_j|, its value if the other entries are zero. It is used for
    every entry in an equation, and for the entry of an inequality that has only one.
    """
    stated = stated_bounds(variable)
    if stated is not None:
        yield flat(np.maximum(np.abs(stated[0]), np.abs(stated[1])))
    for constraint, read, part in zip(
        structure.lifted.constraints, structure.affines, structure.sets, strict=True
    ):
        if part is not None and variable in {*part.variables}:
            reach = part.reach(variable)
            order = variable.shape[0] if reach.ndim == 0 else 1  # the mean eigenvalue is tr X / n
            yield np.broadcast_to(reach / order, (variable.size,))
        elif read is not None and variable in read.matrices:
            single = sum(np.diff(matrix.indptr) for matrix in read.matrices.values()) == 1
            A = read.matrices[variable].tocoo()
            used = (A.data != 0) & (read.constant[A.row] != 0)
            used &= isinstance(constraint, Equality | Zero) | single[A.row]
            sizes = np.full(variable.size, np.inf)
            np.minimum.at(sizes, A.col[used], np.abs(read.constant[A.row[used]] / A.data[used]))
            yield sizes


def risk_units(term: RiskTerm) -> RiskUnits:
    """Return the units of a risk at the present values of its variables.

    The unit v of the value is the smallest value among f = 0 and f = c K (y - mean(y)) for each kernel K at
    its present value, where c scales f to the size t of the targets. A fit of n targets of size t by a kernel
    of mean diagonal s has 1/2 |f|^2 of about n t^2 / (2 s). The unit of the kernels is the s for which that
    is v. Kernels in the semidefinite form are divided by their mean diagonal instead.
    """
    learner, y, bias = term.learner, term.learner.y, term.learner.has_intercept
    targets = 1.0
    if term.loss.dilated(1.0) is not None:
        targets = root_mean_square(y - y.mean() if bias else y) or 1.0
    shape = y - y.mean() if bias and np.ptp(y) else y
    values, diagonals = [term.loss.primal(np.zeros(y.size), 0.0, y, bias).value], [0.0]
    for K in on_labelled(term.kernels, y.size):
        check()
        f = K @ shape
        spread = root_mean_square(f - f.mean() if bias else f)
        if spread > 0:
            scale = targets / spread
            square = scale * (scale * float(shape @ f)) / 2  # scale**2 alone may overflow
            values.append(term.loss.primal(scale * f, square, y, bias).value)
        diagonals.append(float(np.abs(np.diag(K)).mean()))
    value = min((v for v in values if 0 < v < np.inf), default=1.0)
    kernel = learner.n * targets * (targets / value) / 2
    if "semidefinite" in term.forms:
        kernel = max(diagonals) or kernel
    return RiskUnits(kernel, targets, power_of_two(value))


def root_mean_square(v: Array) -> float:
    """Return the root mean square of a vector."""
    return length_of_positive(np.abs(v), 2.0) / float(np.sqrt(v.size))


def objective_unit(structure: Structure, sizes: dict[int, Array]) -> float:
    """Return the unit of the objective.

    It is the difference of the objective between risks equal to their units and risks equal to zero, at
    variables equal to zero. If there are no risks or this difference is zero, it is the sum of the absolute
    values of the terms at variables and risks equal to their units, or `value_by_slope` where that is less.
    """
    expression = structure.lifted.objective.args[0]
    terms_at_units = sum_of_magnitudes(expression) if expression.value is not None else 0.0
    if not structure.risks:
        return power_of_two(min(terms_at_units, value_by_slope(structure, sizes)) or terms_at_units)
    for variable in structure.variables:
        variable.save_value(projected(variable, np.zeros(variable.shape)))
    changed = expression.value
    for term in structure.risks:
        term.stand_in.save_value(np.zeros(()))
    unchanged = expression.value
    known = changed is not None and unchanged is not None
    found = power_of_two(largest([changed - unchanged]), otherwise=0.0) if known else 0.0
    return found or power_of_two(terms_at_units)


def value_by_slope(structure: Structure, sizes: dict[int, Array]) -> float:
    """Return |f(0)| + |f'(0; u)| for the objective f and variables u equal to their units.

    Zero must be feasible; else infinity is returned. By convexity the optimum f(x) lies between f(0) and
    f(0) + f'(0; x). A quadratic term can be far larger at u: the form u'Ku of a vector of ones counts all
    entries of K, where the entries of a solution cancel. Both parts are sums of the absolute values of the
    terms.
    """
    expression, sums = structure.lifted.objective.args[0], []
    for share in (0.0, SMALL_STEP):
        set_to_units(structure, {id_: share * size for id_, size in sizes.items()})
        try:
            sums.append(sum_of_magnitudes(expression) if expression.value is not None else np.inf)
        except np.linalg.LinAlgError:  # a fraction x'P^-1 x at P = 0
            return np.inf
        for constraint in structure.lifted.constraints if share == 0 else ():
            if any(arg.value is None for arg in constraint.args) or np.any(violation(constraint) > 0):
                return np.inf
    return sums[0] + abs(sums[1] - sums[0]) / SMALL_STEP if np.isfinite(sums).all() else np.inf


def largest(values: list[Any]) -> float:
    """Return the largest absolute entry of some arrays; zero if they are empty, NaN if one has no value."""
    return max(
        (float(np.abs(flat(value)).max(initial=0.0)) if value is not None else np.nan) for value in values
    )


def power_of_two(number: float, otherwise: float = 1.0) -> float:
    """Return the power of two nearest to a number on a log scale; `otherwise` unless 0 < number < inf."""
    if not 0 < number < np.inf:
        return otherwise
    return float(2.0 ** np.clip(np.round(np.log2(number)), -LARGEST_LOG2, LARGEST_LOG2))

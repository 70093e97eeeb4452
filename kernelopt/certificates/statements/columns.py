"""The columns of a statement, one for every entry of the variables, and the sets of these weights."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import cvxpy as cp
import numpy as np
from cvxpy.constraints import Inequality
from cvxpy.constraints.zero import Equality
from scipy.optimize import lsq_linear

from kernelopt.certificates.statements.lifting import DEPENDENT
from kernelopt.certificates.statements.statement import Statement
from kernelopt.certificates.statements.witness import SLACKS, checker, fractions, into_ball
from kernelopt.errors import KerneloptError
from kernelopt.grams import Grams, join
from kernelopt.language.measures import FrobeniusNorm
from kernelopt.structure.ball import kernels_by_variable
from kernelopt.structure.powers import LpBall
from kernelopt.structure.structure import Structure
from kernelopt.structure.trees import short
from kernelopt.validation import Array, Mask

Cone = tuple[tuple[int, Grams], ...]  # stacks of matrices G_j, each with the column of its first matrix


class BeyondFractionsError(KerneloptError):
    """No bound of a problem is proved in fractions at an acceptable cost."""


class Source(ABC):
    """A problem in a form that can be stated with the witness of a certificate. It can be pickled."""

    @property
    @abstractmethod
    def seconds(self) -> float:
        """The predicted seconds of a statement and of its bounds in fractions."""

    @abstractmethod
    def statement(self) -> Statement:
        """Return the problem in plain numbers, without a witness."""

    @abstractmethod
    def prove(self, statement: Statement, certificate: Any) -> None:
        """Set a witness near the point and the dual variables of a certificate."""


def read_columns(structure: Structure) -> tuple[list[str], list[bool]]:
    """Return the names of all entries of the variables, and whether they are non-negative."""
    names = [f"{v.name()}[{i}]" for v in structure.variables for i in range(v.size)]
    return names, [bool(v.is_nonneg()) for v in structure.variables for _ in range(v.size)]


def first_columns(structure: Structure) -> dict[cp.Variable, int]:
    """Return the column of the first entry of every variable."""
    sizes = [v.size for v in structure.variables]
    return {v: sum(sizes[:i]) for i, v in enumerate(structure.variables)}


def read_cone(structure: Structure) -> Cone | str:
    """Return the matrices of K >> 0, none without this cone, or the reason why it cannot be stated."""
    cones = [c for c in structure.lifted.constraints if isinstance(c, cp.constraints.PSD)]
    cones = [c for c in [*cones, *structure.domains] if not c.args[0].is_psd()]
    free = {v for v in structure.variables if not v.is_nonneg()}
    if not cones:
        return "weights of free sign need the constraint K >> 0" if free else ()
    found = kernels_by_variable(cones[0].args[0]) if len(cones) == 1 else None
    if found is None or not set(found) <= free:
        return "its semidefinite constraint must be one combination of kernels with weights of free sign"
    if set(found) != free:
        return "all weights of free sign must occur in K >> 0"
    starts = first_columns(structure)
    return tuple((starts[v], grams) for v, grams in found.items())


def matrices_by_column(cone: Cone, size: int) -> Array:
    """Return one matrix for every column, zero for columns outside the cone."""
    G = np.zeros((size, *cone[0][1].shape[1:]))
    for start, grams in cone:
        G[start : start + len(grams)] = np.asarray(grams)
    return G


@dataclass(frozen=True, eq=False)
class Trace:
    """The constraint row'x == total or row'x <= total on the weights x, with row > 0."""

    name: str
    row: Array
    total: float
    equal: bool

    def state(self, statement: Statement) -> None:
        """Add the constraint."""
        statement.row(self.name, range(self.row.size), self.row.tolist(), self.total, self.equal)

    def cover(self, statement: Statement, v: Array, signed: Mask) -> Array:
        """Set the multiplier u for which u row is near v, and return u row.

        It is at least v in the columns with a sign, exactly so for v in fractions.
        """
        row, free = fractions(self.row), ~signed
        least = [*(v / row)[signed], *([] if self.equal else [0])]
        if free.any():
            least.append(float(row[free] @ v[free] / (row[free] @ row[free])))
        statement.u[0] = Fraction(max(least))
        return np.asarray(statement.u[0] * row)

    def constraints(self, x: Any) -> list[cp.Constraint]:
        """Return the constraint on an expression x."""
        return [self.row @ x == self.total if self.equal else self.row @ x <= self.total]

    def centre(self, size: int) -> Array:
        """Return equal weights in the set."""
        return np.full(size, self.total / self.row.sum())

    def inside(self, statement: Statement, x: Array) -> Any:
        """Return a point near x that is exactly in the set, in fractions."""
        point = fractions(x)
        size = point @ fractions(self.row)
        return point * (Fraction(self.total) / size) if self.equal or size > self.total else point


@dataclass(frozen=True, eq=False)
class Ball:
    """The ball |x|_p <= radius, or |sum_j x_j K_j|_F <= radius for some kernels, where p is 2."""

    radius: float
    p: float = 2.0
    kernels: Grams | None = None

    def matrix(self, size: int) -> Array:
        """Return B in |B x|_p <= radius: the identity, or the kernels as columns."""
        return np.eye(size) if self.kernels is None else np.asarray(self.kernels).reshape(size, -1).T

    def state(self, statement: Statement) -> None:
        """Add the constraint."""
        statement.ball(self.matrix(len(statement.columns)), self.radius, self.p)

    def cover(self, statement: Statement, v: Array, signed: Mask) -> Array:
        """Set the multiplier y of least norm for which B'y is near v, and return B'y.

        It is at least v in the columns with a sign, exactly so for v in fractions.
        """
        B, w = statement.arrays["B0"], v.astype(float)
        if self.kernels is None:
            y = np.where(signed, np.maximum(w, 0.0), w)
        elif signed.any():  # min |root nu|^2 / 2 - w'nu over nu >= 0, as least squares
            root: Any = np.linalg.qr(B, mode="r")
            y = B @ lsq_linear(root, np.linalg.lstsq(root.T, w)[0], (0.0, np.inf), method="bvls").x
        else:
            y = B @ np.linalg.lstsq(B.T @ B, w, rcond=DEPENDENT)[0]
        for slack in (0.0, *SLACKS):
            nearby = y * (1 + slack)
            if self.kernels is None:
                values = fractions(nearby)
            else:
                values = checker().product(B.T, nearby) if v.dtype == object else B.T @ nearby
            if (values >= v)[signed].all():
                break
        statement.set_witness(0, y=nearby)
        return np.asarray(values)

    def constraints(self, x: Any) -> list[cp.Constraint]:
        """Return the constraint on an expression x."""
        B = self.matrix(x.size)
        root: Any = B if self.kernels is None else np.linalg.qr(B, mode="r")
        return [cp.norm(root @ x, self.p) <= self.radius]

    def centre(self, size: int) -> Array:
        """Return equal weights in the set."""
        return np.full(size, self.radius / np.linalg.norm(self.matrix(size).sum(axis=1), self.p))

    def inside(self, statement: Statement, x: Array) -> Any:
        """Return a point near x that is exactly in the set, in fractions, and set its witness."""
        nearby, s = into_ball(x, statement.arrays["B0"], self.radius, statement.balls[0]["p"])
        statement.set_witness(0, s=s)
        return fractions(nearby)


def read_weight_set(structure: Structure) -> Trace | Ball | str:
    """Return the one constraint that bounds the weights, or the reason why there is none."""
    constraints, variables = structure.lifted.constraints, structure.variables
    chosen = [i for i in structure.active if not isinstance(constraints[i], cp.constraints.PSD)]
    if len(chosen) != 1:
        return f"it needs one constraint that bounds the weights, the problem has {len(chosen)}"
    (at,) = chosen
    constraint, read, part = constraints[at], structure.affines[at], structure.sets[at]
    name = constraint.label or short(constraint)
    if isinstance(part, LpBall) and part.is_unit and part.level > 0 and variables == part.variables:
        if part.p == 1:
            return Trace(name, np.ones(variables[0].size), part.level, False)
        return Ball(part.level, part.p)
    if isinstance(constraint, Inequality) and isinstance(constraint.args[0], FrobeniusNorm):
        norm, radius = constraint.args
        stacks = {v.id: grams for v, grams in (kernels_by_variable(norm.kernel) or {}).items()}
        if stacks.keys() == {v.id for v in variables} and radius.is_constant() and radius.value > 0:
            return Ball(float(radius.value), kernels=join([(1.0, stacks[v.id]) for v in variables]))
        return "its kernel must be a combination whose weights are the entries of its variables"
    if not isinstance(constraint, Equality | Inequality) or read is None or read.constant.size != 1:
        return f"the constraint {name} is not an l_p ball or a trace"
    row = read.over(variables).toarray()[0]
    total, equal = -float(read.constant[0]), isinstance(constraint, Equality)
    if equal and total < 0:
        row, total = -row, -total
    if not (total > 0 and (row > 0).all()):
        return f"the constraint {name} is not an l_p ball or a trace of all weights"
    return Trace(name, row, total, equal)

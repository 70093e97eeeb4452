"""The columns of a statement, one for every entry of the variables, and the cone that their kernels form."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import cvxpy as cp
import numpy as np

from kernelopt.certificates.statements.statement import Statement
from kernelopt.errors import KerneloptError
from kernelopt.grams import Grams
from kernelopt.structure.ball import kernels_by_variable
from kernelopt.structure.structure import Structure
from kernelopt.validation import Array

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

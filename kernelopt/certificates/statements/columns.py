"""The columns of a statement, one for every entry of the variables, with their kernels and cones."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import cvxpy as cp
import numpy as np

from kernelopt.certificates.statements.statement import Statement
from kernelopt.certificates.statements.witness import exact_seconds
from kernelopt.errors import KerneloptError
from kernelopt.grams import Grams
from kernelopt.language.terms import terms
from kernelopt.structure.ball import kernels_by_variable
from kernelopt.structure.structure import Structure
from kernelopt.validation import Array

Variables = tuple[tuple[str, int, bool], ...]  # name, number of entries, whether they are non-negative
Cone = tuple[tuple[int, Grams], ...]  # columns j, each with its matrix G_j


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


@dataclass(frozen=True, eq=False)
class KernelSource(Source):
    """A problem over combinations of kernels.

    Attributes
    ----------
    variables : tuple
        The variables whose entries are x, in this order.
    kernels : Grams
        The kernels K_j, one for each x_j; of a risk on the labelled points.
    cone : tuple
        The matrices G_j of sum_j x_j G_j >> 0 on all points, empty where there is no cone.
    """

    variables: Variables
    kernels: Grams
    cone: Cone

    @property
    def seconds(self) -> float:
        points = self.cone[0][1].n_points if self.cone else 0
        return exact_seconds(len(self.kernels), self.kernels.n_points) + exact_seconds(len(self.cone), points)


def read_variables(structure: Structure) -> Variables:
    """Return name, size and sign of the variables, which a pickled source keeps."""
    return tuple((v.name(), v.size, bool(v.is_nonneg())) for v in structure.variables)


def column_names(variables: Variables) -> tuple[list[str], list[bool]]:
    """Return the names of all entries, and whether they are non-negative."""
    names = [f"{name}[{i}]" for name, entries, _ in variables for i in range(entries)]
    return names, [sign for _, entries, sign in variables for _ in range(entries)]


def read_cone(structure: Structure) -> Cone | str:
    """Return the columns and matrices of K >> 0, empty without one, or the reason why it cannot be stated."""
    cones = [c for c in structure.lifted.constraints if isinstance(c, cp.constraints.PSD)]
    cones = [c for c in [*cones, *structure.domains] if not c.args[0].is_psd()]
    if not cones:
        return ()
    found = kernels_by_variable(terms(cones[0].args[0])) if len(cones) == 1 else None
    if found is None or any(v.is_nonneg() for v in found):
        return "its semidefinite constraint must be one combination of kernels with weights of free sign"
    starts = first_columns(structure)
    if any(not v.is_nonneg() and v not in found for v in structure.variables):
        return "all weights of free sign must occur in K >> 0"
    return tuple((starts[v.id] + i, grams.subset([i])) for v, grams in found.items() for i in range(v.size))


def first_columns(structure: Structure) -> dict[int, int]:
    """Return the column of the first entry of every variable, by id."""
    ends = np.cumsum([v.size for v in structure.variables])
    return {v.id: int(end) - v.size for v, end in zip(structure.variables, ends, strict=True)}


def matrices_by_column(cone: Cone, size: int) -> Array:
    """Return one matrix for every column, zero for columns outside the cone."""
    order = cone[0][1].n_points
    G = np.zeros((size, order, order))
    for j, gram in cone:
        G[j] = gram.gram(0)
    return G

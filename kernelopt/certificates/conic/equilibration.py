"""A cone program with rows and auxiliary columns of size one, in given units of its variables."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import cvxpy as cp
import numpy as np
import scipy.sparse as sp

from kernelopt.certificates.conic.cones import ConeProgram
from kernelopt.certificates.conic.correction import powers_of_two
from kernelopt.validation import Array

SWEEPS = 8  # from the variables through the rows to the auxiliary columns, and back


class Scaled(NamedTuple):
    """The program of x' = x / columns with the rows of A and b times `rows`; z = rows * z'."""

    program: ConeProgram
    columns: Array
    rows: Array


def column_units(program: ConeProgram, variables: Iterable[tuple[cp.Variable, Array]]) -> Array:
    """Return the unit of every column of these variables, NaN of auxiliary columns."""
    found = np.full(program.c.size, np.nan)
    for variable, unit in variables:
        start = program.columns.get(variable.id)
        if start is not None:
            found[start : start + variable.size] = np.broadcast_to(unit, (variable.size,))
    return found


def equilibrated(program: ConeProgram, units: Array) -> Scaled:
    """Return a program in units of its columns, which are chosen where they are NaN.

    Each row, and each cone of several rows as a whole, is divided by its largest entry, and each auxiliary
    column by that of its own. All factors are powers of two: the numbers of the scaled program are exact.
    """
    columns, rows = units.copy(), np.full(program.b.size, np.nan)
    entries = abs(sp.coo_array(program.A))
    first = np.array([block.start for block in cones_of(program)], dtype=int)
    sizes = np.diff(np.append(first, program.b.size))
    for _ in range(SWEEPS):
        known = columns[entries.col]
        largest = np.abs(program.b)
        np.fmax.at(largest, entries.row, entries.data * known)
        if first.size:
            largest = np.repeat(np.fmax.reduceat(largest, first), sizes)
        rows = np.where(largest > 0, 1 / np.where(largest > 0, largest, 1.0), np.nan)
        heights = np.full(columns.size, np.nan)
        np.fmax.at(heights, entries.col, entries.data * rows[entries.row])
        with np.errstate(divide="ignore"):
            columns = np.where(np.isnan(units), 1 / heights, units)
        columns = np.where(np.isinf(columns), np.nan, columns)
    columns, rows = powers_of_two(columns), powers_of_two(rows)
    found = multiplied(program, columns, rows)
    if not same(multiplied(found, 1 / columns, 1 / rows), program):  # it has overflowed, or underflowed
        return Scaled(program, np.ones(columns.size), np.ones(rows.size))
    return Scaled(found, columns, rows)


def multiplied(program: ConeProgram, columns: Array, rows: Array) -> ConeProgram:
    """Return the program of x' = x / columns with its rows multiplied."""
    D, E = sp.diags_array(columns), sp.diags_array(rows)
    P, A = sp.csc_array(D @ program.P @ D), sp.csc_array(E @ program.A @ D)
    return program.with_data(P, columns * program.c, A, rows * program.b)


def same(one: ConeProgram, other: ConeProgram) -> bool:
    """Whether two programs have the same numbers."""
    vectors = np.array_equal(one.b, other.b) and np.array_equal(one.c, other.c)
    return vectors and not (one.A != other.A).nnz and not (one.P != other.P).nnz


def cones_of(program: ConeProgram) -> list[slice]:
    """Return the rows of every cone; those of the linear cones one by one."""
    found: list[slice] = []
    for kind, rows, _ in program.blocks():
        single = kind in ("zero", "nonneg")
        found += [slice(i, i + 1) for i in range(rows.start, rows.stop)] if single else [rows]
    return found

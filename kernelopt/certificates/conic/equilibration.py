"""Equilibration: a cone program scaled by powers of two, in given units of its variables."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import scipy.sparse as sp

from kernelopt.certificates.conic.cones import ConeProgram
from kernelopt.certificates.conic.lagrangian import powers_of_two_below
from kernelopt.validation import Array

# A sweep passes units on from columns that have one to the columns in the same rows. In 474 cone programs of
# the tests the factors were final after at most three sweeps.
SWEEPS = 8


def equilibrated(program: ConeProgram, units: Array) -> tuple[ConeProgram, Array, Array]:
    """Return the program in units of its columns, with the units. A unit that is given as NaN is computed.

    The results are `scaled_program(program, columns, rows)`, columns and rows: x = columns * x' and
    z = rows * z'.

    A sweep has two steps. The first step divides every row of (A, b) by its largest absolute entry. The rows
    of one second-order, semidefinite, exponential or power cone are divided by one number, since the cone is
    not invariant under different factors. The second step computes the units that were given as NaN: each is
    one over the largest absolute entry of its column. The given units are not changed, in contrast to the
    equilibration of Ruiz (2001). After the last sweep all factors are rounded to powers of two. Hence scaling
    makes no rounding error.

    If scaling overflows or underflows, the program is returned unchanged.
    """
    columns, rows = units.copy(), np.full(program.b.size, np.nan)
    entries = abs(sp.coo_array(program.A))
    blocks = [np.arange(k.rows.start, k.rows.stop, k.length) for k in program.cones]
    starts = np.concatenate([np.zeros(0, dtype=int), *blocks])
    sizes = np.diff(np.append(starts, program.b.size))
    for _ in range(SWEEPS):
        before, known = columns, columns[entries.col]
        largest_in_rows = np.abs(program.b)
        np.fmax.at(largest_in_rows, entries.row, entries.data * known)
        if starts.size:
            largest_in_rows = np.repeat(np.fmax.reduceat(largest_in_rows, starts), sizes)
        rows = np.where(largest_in_rows > 0, 1 / np.where(largest_in_rows > 0, largest_in_rows, 1.0), np.nan)
        largest_in_columns = np.full(columns.size, np.nan)
        np.fmax.at(largest_in_columns, entries.col, entries.data * rows[entries.row])
        with np.errstate(divide="ignore"):
            columns = np.where(np.isnan(units), 1 / largest_in_columns, units)
        columns = np.where(np.isinf(columns), np.nan, columns)
        if np.array_equal(columns, before, equal_nan=True):
            break
    columns, rows = powers_of_two_below(columns), powers_of_two_below(rows)
    scaled = scaled_program(program, columns, rows)
    if not same_numbers(scaled_program(scaled, 1 / columns, 1 / rows), program):  # overflow or underflow
        return program, np.ones(columns.size), np.ones(rows.size)
    return scaled, columns, rows


def scaled_program(program: ConeProgram, columns: Array, rows: Array) -> ConeProgram:
    """Return the program in x' = x / columns with the rows of A and b multiplied by `rows`."""
    P, A = scaled_matrix(program.P, columns, columns), scaled_matrix(program.A, columns, rows)
    return replace(program, P=P, c=columns * program.c, A=A, b=rows * program.b)


def scaled_matrix(matrix: sp.csc_array, columns: Array, rows: Array) -> sp.csc_array:
    """Return diag(rows) matrix diag(columns), with the same stored entries in the same order."""
    with np.errstate(over="ignore", invalid="ignore"):  # `equilibrated` looks for both afterwards
        data = matrix.data * rows[matrix.indices] * np.repeat(columns, np.diff(matrix.indptr))
    return sp.csc_array((data, matrix.indices, matrix.indptr), shape=matrix.shape)


def same_numbers(one: ConeProgram, other: ConeProgram) -> bool:
    """Whether two programs of the same stored entries have the same P, c, A and b."""
    pairs = ((one.b, other.b), (one.c, other.c), (one.A.data, other.A.data), (one.P.data, other.P.data))
    return all(np.array_equal(first, second) for first, second in pairs)

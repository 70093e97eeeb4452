"""Statements of linear, second-order and semidefinite programmes, as cvxpy reduces problems to them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import cvxpy as cp
import numpy as np
import scipy.sparse as sp
from cvxpy.reductions.chain import Chain
from cvxpy.reductions.cvx_attr2constr import CvxAttr2Constr
from cvxpy.reductions.dcp2cone.cone_matrix_stuffing import ConeMatrixStuffing
from cvxpy.reductions.dcp2cone.dcp2cone import Dcp2Cone

from kernelopt.certificates.conic.stated import without_attributes
from kernelopt.certificates.statements.columns import BeyondFractionsError, Source
from kernelopt.certificates.statements.program_witness import Witness
from kernelopt.certificates.statements.statement import Statement
from kernelopt.language.adapter import written_problem
from kernelopt.structure.structure import Structure
from kernelopt.threads import quietly
from kernelopt.validation import Array

LARGEST_BLOCK = 60  # order of a cone
SECONDS = 4e-5  # times n^3 for a cone of order n, mostly of three solves; measured at n = 30 and 60
LARGEST_DATA = 500_000  # entries of all matrices: 2 s


@dataclass(frozen=True, eq=False)
class Programme(Source):
    """A problem without risks that cvxpy reduces to linear, second-order and semidefinite cones.

    `problem` is the minimisation on copied variables. A second-order cone |v| <= t is stated as the
    semidefinite matrix [[t, v'], [v, t I]], and a constant matrix as the matrix of a column that is one.
    """

    problem: cp.Problem
    sense: int

    @property
    def seconds(self) -> float:
        size = min(sum(v.size for v in self.problem.variables()), LARGEST_BLOCK)
        return SECONDS * float(size) ** 3

    def statement(self) -> Statement:
        """Return the statement of the problem, without a witness.

        Raises
        ------
        BeyondFractionsError
            If the problem has another cone, or is too large.
        """
        variables = self.problem.variables()
        with quietly():
            plain = without_attributes(self.problem, variables)
            reductions = [Dcp2Cone(), CvxAttr2Constr(reduce_bounds=True), ConeMatrixStuffing()]
            try:
                form: Any = Chain(reductions=reductions).apply(plain.problem)[0]
            except (cp.SolverError, ValueError) as error:
                raise BeyondFractionsError(f"cvxpy reduces the problem to no cones: {error}") from None
            cost, offset, A, b = form.apply_parameters()
        A, names = sp.csr_array(A), ["auxiliary"] * cost.size
        for v in form.variables:
            start = form.var_id_to_col[v.id]
            names[start : start + v.size] = [f"{v.name()}[{i}]" for i in range(v.size)]
        statement = Statement([*names, "one"], [False] * (cost.size + 1), self.sense, float(offset))
        statement.cost[:-1] = cost
        statement.row("one", [cost.size], [1.0], 1.0, equal=True)
        start, cones, data = 0, list[Array](), 0
        for constraint in form.constraints:
            rows = slice(start, start + constraint.size)
            start = rows.stop
            kind, part, right = type(constraint).__name__, sp.csr_array(A[rows]), b[rows]
            if kind in ("Zero", "NonNeg"):
                add_rows(statement, part, right, kind == "Zero")
                continue
            places = list(matrices_of(constraint)) if kind in ("SOC", "PSD") else []
            data += sum(place.size for place in places) * (cost.size + 1)
            if not places or max(map(len, places)) > LARGEST_BLOCK or data > LARGEST_DATA:
                raise BeyondFractionsError(
                    f"a file in fractions needs linear, second-order and semidefinite cones of order at most "
                    f"{LARGEST_BLOCK} with {LARGEST_DATA:,} entries, got more or a cone {kind}."
                )
            every = np.vstack([part.toarray().T, right])
            every = np.hstack([every, np.zeros((len(every), 1))])  # place -1 is zero
            for place in places:
                G = every[:, place]
                cones.append((G + G.transpose(0, 2, 1)) / 2)
        for G in cones:
            statement.cone(G)
        return statement

    def prove(self, statement: Statement, certificate: Any) -> None:
        """Set the witnesses of both bounds, from solutions of the stated problem.

        Raises
        ------
        BeyondFractionsError
            If no bound is proved.
        """
        Witness(statement).find()
        if not np.isfinite([float(v) for v in statement.bounds()]).any():
            raise BeyondFractionsError("no bound of the problem is proved in fractions.")


def read_programme(structure: Structure) -> Programme | str:
    """Return the problem as a programme, or the reason why it is none."""
    if structure.risks or structure.unset:
        return structure.unset or "it has risks"
    objective = cp.Minimize(structure.sign * structure.lifted.objective.args[0])
    return Programme(written_problem(objective, structure.lifted.constraints), int(structure.sign))


def add_rows(statement: Statement, A: sp.csr_array, b: Array, equal: bool) -> None:
    """Add A x + b == 0, or A x + b >= 0, where x_j >= 0 becomes a sign."""
    sign = (np.diff(A.indptr) == 1) & (A.sum(axis=1) > 0) & (b == 0) & (not equal)
    for j in A[sign].indices:
        statement.signs[j] = True
    names = [f"row {len(statement.rows) + i}" for i in range(int((~sign).sum()))]
    statement.add_rows(names, -A[~sign], b[~sign], equal)


def matrices_of(constraint: Any) -> Iterator[Any]:
    """Yield the matrices of a cone constraint, as numbers of its rows; -1 stands for zero."""
    if isinstance(constraint, cp.constraints.PSD):
        order = constraint.args[0].shape[0]
        yield np.arange(order**2).reshape(order, order, order="F")
        return
    count = constraint.args[0].size
    vectors = np.arange(count, constraint.size).reshape(constraint.args[1].shape, order="F")
    vectors = vectors.reshape(-1, count, order="F") if constraint.axis == 0 else vectors.reshape(count, -1).T
    for t in range(count):
        place = np.full((len(vectors) + 1,) * 2, -1)
        np.fill_diagonal(place, t)
        place[0, 1:] = place[1:, 0] = vectors[:, t]
        yield place

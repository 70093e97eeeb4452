"""The cones of the conic form of a problem, counted on its expressions without compiling or evaluating."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import cvxpy as cp
import numpy as np
import scipy.sparse as sp
from cvxpy.atoms.affine.affine_atom import AffAtom
from cvxpy.atoms.affine.binary_operators import MulExpression
from cvxpy.atoms.atom import Atom
from cvxpy.constraints import SOC, ExpCone, PowCone3D

from kernelopt.conic.costs import DENSE_RATE, SPARSE_RATE, Cones
from kernelopt.grams import ArrayStorage, Grams
from kernelopt.language.combination import Combination
from kernelopt.language.penalty import weighted
from kernelopt.language.risk import Risk
from kernelopt.language.terms import ExpressionStorage, terms
from kernelopt.language.triplets import TripletGains
from kernelopt.losses import logistic
from kernelopt.numerics.rounding import SMALLEST_DIVISOR
from kernelopt.structure.trees import nodes

SAMPLE = 32  # points of the principal submatrix on which the rank of a given matrix is estimated
RANK_TOLERANCE = 1e-11  # eigenvalues below this share of the largest one count as zero in that estimate
EXPONENTIAL = {
    "exp": 1,
    "log": 1,
    "entr": 1,
    "log1p": 1,
    "kl_div": 1,
    "rel_entr": 1,
    "xexp": 1,
    "logistic": 2,
}
"""Number of exponential cones of each entry of an atom."""
SPECTRAL = {"lambda_max", "lambda_sum_largest", "sigma_max", "normNuc", "log_det", "tr_inv"}
"""Atoms that cvxpy writes with a semidefinite cone."""


@dataclass
class Count:
    """The running totals of the fields of `Cones`."""

    semidefinite: list[int] = field(default_factory=list)
    second_order: int = 0
    exponential: int = 0
    power: int = 0
    rows: int = 0
    columns: int = 0
    nonzeros: int = 0
    fill: float = 0.0

    def cones(self) -> Cones:
        """Return the totals."""
        three_dimensional = self.exponential + self.power  # each has three rows and one auxiliary variable
        return Cones(
            tuple(self.semidefinite), self.second_order, self.exponential, self.power,
            self.rows + 3 * three_dimensional, self.columns + three_dimensional,
            int(self.nonzeros), float(self.fill),
        )  # fmt: skip

    def dense(self, rows: int, columns: int, nonzeros: float) -> None:
        """Count a block of the constraint matrix and the fill-in that it causes in the factorisation.

        If the factorisation eliminates a column first, all rows with an entry in it are coupled. If it
        eliminates a row first, all columns with an entry in it are. The cheaper order is counted. It takes
        2 nnz min(nnz / columns, nnz / rows) operations.
        """
        self.nonzeros += int(nonzeros)
        self.fill += 2 * nonzeros * min(nonzeros / max(columns, 1), nonzeros / max(rows, 1))

    def matrix(self, order: int, dense_columns: int) -> None:
        """Count a semidefinite cone, each of whose entries depends on `dense_columns` weights."""
        triangle = order * (order + 1) // 2
        self.semidefinite.append(order)
        self.rows += triangle
        self.nonzeros += triangle * max(dense_columns, 1)
        # The factorisation eliminates these columns together with the dense block of the cone. Its operations
        # run at the rate of dense matrices, whereas `fill` counts operations at the rate of sparse ones.
        self.fill += triangle**2 * dense_columns * SPARSE_RATE / DENSE_RATE

    def risk(self, risk: Risk, stacks: list[list[tuple[int, int]]]) -> None:
        """Count the explicit form of a risk, given its `risk_stacks`."""
        learner = risk.learner
        n = learner.n
        self.rows += 3 * n
        self.columns += 2 * n
        self.nonzeros += 4 * n
        if isinstance(learner.loss, logistic):
            self.exponential += 2 * n
        for stack in stacks:
            self.factors(n, stack)
        for K, form in zip(learner.kernels, learner.forms, strict=True):
            if form == "semidefinite":
                order, weights = order_on_range(K, n)
                self.matrix(order + 1, weights)
                self.columns += order

    def factors(self, n: int, stack: list[tuple[int, int]]) -> None:
        """Count the second-order cones of a stack of kernels K_i = L_i L_i', given (columns, rank) of L_i."""
        bounds, ranks = [bound for bound, _ in stack], [rank for _, rank in stack]
        total = sum(ranks)
        self.second_order += len(stack)
        self.columns += sum(bounds)
        self.rows += sum(bound + 2 for bound in bounds)
        # A Cholesky factor with pivoting is a permuted trapezoid: its column j has n - j entries.
        self.nonzeros += int(sum(rank * n - rank**2 / 2 for rank in ranks)) + 2 * sum(bounds)
        by_columns = 2 * sum(n**3 - (n - rank) ** 3 for rank in ranks) / 3 + n**3 / 3
        if 2 * max(ranks, default=0) > n:
            self.fill += by_columns
        else:
            # The alternative is to eliminate the rows of the points first. Operations on the short columns of
            # the factors are about three times slower.
            self.fill += min(3 * by_columns, 2 * n * total**2 + 2 * total**3)

    def constraint(self, constraint: Any) -> None:
        """Count the cone of a constraint of the user, without the cones of the atoms in it."""
        if isinstance(constraint, cp.constraints.PSD):
            self.matrix(*order_on_range(constraint.args[0], constraint.shape[0]))
        elif isinstance(constraint, SOC):
            self.second_order += constraint.args[0].size
            self.rows += constraint.size
        elif isinstance(constraint, ExpCone):
            self.exponential += constraint.args[0].size
        elif isinstance(constraint, PowCone3D):
            self.power += constraint.args[0].size
        else:
            self.rows += constraint.size
            self.nonzeros += constraint.size

    def atom(self, node: Any) -> None:
        """Count the cones, rows and columns of the conic form of an atom outside the risks."""
        name, inner = type(node).__name__, sum(arg.size for arg in node.args)
        if isinstance(node, AffAtom):
            self.affine(node)
        elif name in SPECTRAL:
            shape = node.args[0].shape
            self.matrix(sum(shape) if name in ("sigma_max", "normNuc") else shape[0], 0)
        elif name == "MatrixFrac":
            self.matrix(node.args[1].shape[0] + 1, 0)
        elif name in EXPONENTIAL:
            self.exponential += EXPONENTIAL[name] * node.size
        elif name == "log_sum_exp":
            self.exponential += inner
        elif name in ("Pnorm", "PnormApprox", "geo_mean") and getattr(node, "p", 0) != 2:
            self.power += inner
        elif name in ("quad_over_lin", "Pnorm", "PnormApprox"):
            self.second_order += 1
            self.rows += inner + 2
            self.columns += 1
            self.nonzeros += inner + 2
        else:  # polyhedral atoms such as maxima and absolute values: linear rows
            self.rows += 2 * inner
            self.columns += inner + node.size
            self.nonzeros += 3 * inner

    def affine(self, node: Any) -> None:
        """Count the entries of a constant matrix that multiplies variables, without evaluating a kernel."""
        if isinstance(node, MulExpression):
            left, right = node.args
            constant, other = (left, right) if left.is_constant() else (right, left)
            if constant.is_constant() and not other.is_constant() and constant.ndim == 2:
                entries = entry_count(constant)
                rows, columns = constant.shape
                self.dense(rows, columns, entries * max(1, other.size // max(columns, 1)))
        elif isinstance(node, TripletGains):
            weights = sum(v.size for v in node.variables())
            self.dense(node.size, weights, node.size * weights)


def entry_count(matrix: cp.Expression) -> int:
    """Return the number of non-zero entries of a constant matrix, or its size if it is not a literal."""
    if not isinstance(matrix, cp.Constant):
        return int(matrix.size)
    return int(matrix.value.nnz if sp.issparse(matrix.value) else np.count_nonzero(matrix.value))


def order_on_range(K: cp.Expression, n: int) -> tuple[int, int]:
    """Return (order, weights) of the inequality K >> 0, restricted to the joint range of its base kernels.

    The joint range is the sum of the ranges. Its dimension is at most min(n, sum of the ranks), which is
    returned as the order. `weights` is the number of variable weights on which an entry of K depends.
    """
    parts = terms(K)
    if parts is None:
        return n, 0
    parts = [part for part in parts if not vanishes(part.grams)]
    weights = sum(len(grams) for w, grams in parts if not w.is_constant())
    return min(n, sum(sum(ranks(grams, n)) for _, grams in parts)), weights


def vanishes(grams: Grams) -> bool:
    """Whether a stack is a constant matrix of zeros, as in `K >> 0`, which cvxpy writes as K - 0."""
    given = grams.storage
    if not isinstance(given, ExpressionStorage):
        return False
    return not any(isinstance(n, Combination) for n in nodes(given.expression)) and not given.gram(0).any()


def ranks(grams: Grams, n: int) -> list[int]:
    """Return upper bounds of the ranks on the first n points.

    The rank of a matrix given by numbers is estimated on a principal submatrix of `SAMPLE` random points.
    """
    bounds = [min(bound, n) for bound in grams.rank_bounds]
    if not isinstance(grams.storage, ArrayStorage) or grams.n_points <= 2 * SAMPLE:
        return bounds
    points = np.random.default_rng(0).choice(grams.n_points, SAMPLE, replace=False)
    eigenvalues = np.abs(np.linalg.eigvalsh(np.asarray(grams.block(points))))
    largest = eigenvalues.max(axis=1, keepdims=True).clip(SMALLEST_DIVISOR)
    sampled = (eigenvalues > RANK_TOLERANCE * largest).sum(axis=1)
    # If the rank on the sample is at most half its size, it is the rank of the matrix with high probability.
    return [int(s) if s <= SAMPLE // 2 else bound for s, bound in zip(sampled, bounds, strict=True)]


def risk_stacks(risk: Risk) -> list[list[tuple[int, int]]]:
    """Return (columns of L_i, rank of L_i) of the kernels that are factorised as K_i = L_i L_i'.

    There is one list for each stack of kernels.
    """
    n, found = risk.learner.n, []
    for K, form in zip(risk.learner.kernels, risk.learner.forms, strict=True):
        if form == "fixed":
            found.append([(n, n)])
        elif form == "second-order cone":
            for _, grams in weighted(K) or []:
                bounds = [min(bound, n) for bound in grams.rank_bounds]
                found.append(list(zip(bounds, ranks(grams, n), strict=True)))
    return found


def count_user(problem: cp.Problem, variables: Iterable[cp.Variable]) -> Count:
    """Return the count of the variables, the constraints and the atoms outside the risks."""
    count = Count()
    for variable in variables:
        count.columns += variable.size
        if variable.attributes["PSD"] or variable.attributes["NSD"]:
            count.matrix(variable.shape[0], 0)
        elif variable.is_nonneg():
            count.rows += variable.size
            count.nonzeros += variable.size
    for constraint in problem.constraints:
        count.constraint(constraint)
    for root in (problem.objective, *problem.constraints):
        for node in nodes(root):
            if isinstance(node, Atom) and not isinstance(node, Risk | Combination) and node.variables():
                count.atom(node)
    return count

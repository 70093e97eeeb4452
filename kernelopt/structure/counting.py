"""The cones of the conic form of a problem, counted on its expressions without compiling or evaluating."""

from __future__ import annotations

from collections.abc import Iterable
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
from kernelopt.language.terms import terms
from kernelopt.language.triplets import TripletGains
from kernelopt.losses import logistic
from kernelopt.numerics.rounding import SMALLEST_DIVISOR
from kernelopt.structure.trees import nodes

SAMPLE = 32  # points of the principal submatrix on which the rank of a given matrix is estimated
RANK_TOLERANCE = 1e-11  # eigenvalues below this share of the largest one count as zero in that estimate
EXPONENTIAL = dict.fromkeys(["exp", "log", "entr", "log1p", "kl_div", "rel_entr", "xexp"], 1) | {
    "logistic": 2
}
"""Number of exponential cones of each entry of an atom."""
SPECTRAL = {"lambda_max", "lambda_sum_largest", "sigma_max", "normNuc", "log_det", "tr_inv"}
"""Atoms that cvxpy writes with a semidefinite cone."""


def blocks(rows: int, columns: int, nonzeros: float) -> Cones:
    """Count a block of the constraint matrix and the fill-in that it causes in the factorisation.

    If the factorisation eliminates a column first, all rows with an entry in it are coupled. If it eliminates
    a row first, all columns with an entry in it are. The cheaper order is counted. It takes 2 nnz min(nnz /
    columns, nnz / rows) operations.
    """
    fill = 2 * nonzeros * min(nonzeros / max(columns, 1), nonzeros / max(rows, 1))
    return Cones(nonzeros=int(nonzeros), fill=fill)


def semidefinite(order: int, dense_columns: int) -> Cones:
    """Count a semidefinite cone, each of whose entries depends on `dense_columns` weights.

    The factorisation eliminates these columns together with the dense block of the cone. Its operations run
    at the rate of dense matrices, whereas `fill` counts operations at the rate of sparse ones.
    """
    triangle = order * (order + 1) // 2
    fill = triangle**2 * dense_columns * SPARSE_RATE / DENSE_RATE
    return Cones((order,), rows=triangle, nonzeros=triangle * max(dense_columns, 1), fill=fill)


def exponential(count: int) -> Cones:
    """Count exponential cones, each with three rows and one auxiliary variable."""
    return Cones(exponential=count, rows=3 * count, columns=count)


def power(count: int) -> Cones:
    """Count power cones, each with three rows and one auxiliary variable."""
    return Cones(power=count, rows=3 * count, columns=count)


def of_risk(risk: Risk, stacks: list[list[tuple[int, int]]]) -> Cones:
    """Count the explicit form of a risk, given its `risk_stacks`."""
    learner = risk.learner
    n = learner.n
    found = Cones(rows=3 * n, columns=2 * n, nonzeros=4 * n)
    if isinstance(learner.loss, logistic):
        found += exponential(2 * n)
    for stack in stacks:
        found += of_factors(n, stack)
    for K, form in zip(learner.kernels, learner.forms, strict=True):
        if form == "semidefinite":
            order, weights = order_on_range(K, n)
            found += semidefinite(order + 1, weights) + Cones(columns=order)
    return found


def of_factors(n: int, stack: list[tuple[int, int]]) -> Cones:
    """Count the second-order cones of a stack of kernels K_i = L_i L_i', given (columns, rank) of L_i."""
    bounds, ranks = [bound for bound, _ in stack], [rank for _, rank in stack]
    total = sum(ranks)
    # A Cholesky factor with pivoting is a permuted trapezoid: its column j has n - j entries.
    nonzeros = int(sum(rank * n - rank**2 / 2 for rank in ranks)) + 2 * sum(bounds)
    fill = 2 * sum(n**3 - (n - rank) ** 3 for rank in ranks) / 3 + n**3 / 3
    if 2 * max(ranks, default=0) <= n:
        # The alternative is to eliminate the rows of the points first. Operations on the short columns of the
        # factors are about three times slower.
        fill = min(3 * fill, 2 * n * total**2 + 2 * total**3)
    rows = sum(bounds) + 2 * len(stack)
    return Cones((), len(stack), rows=rows, columns=sum(bounds), nonzeros=nonzeros, fill=fill)


def of_constraint(constraint: Any) -> Cones:
    """Count the cone of a constraint of the user, without the cones of the atoms in it."""
    if isinstance(constraint, cp.constraints.PSD):
        return semidefinite(*order_on_range(constraint.args[0], constraint.shape[0]))
    if isinstance(constraint, SOC):
        return Cones((), constraint.args[0].size, rows=constraint.size)
    if isinstance(constraint, ExpCone):
        return exponential(constraint.args[0].size)
    if isinstance(constraint, PowCone3D):
        return power(constraint.args[0].size)
    return Cones(rows=constraint.size, nonzeros=constraint.size)


def of_atom(node: Any) -> Cones:
    """Count the cones, rows and columns of the conic form of an atom outside the risks."""
    name, inner = type(node).__name__, sum(arg.size for arg in node.args)
    if isinstance(node, AffAtom):
        return of_affine(node)
    if name in SPECTRAL:
        shape = node.args[0].shape
        return semidefinite(sum(shape) if name in ("sigma_max", "normNuc") else shape[0], 0)
    if name == "MatrixFrac":
        return semidefinite(node.args[1].shape[0] + 1, 0)
    if name in EXPONENTIAL:
        return exponential(EXPONENTIAL[name] * node.size)
    if name == "log_sum_exp":
        return exponential(inner)
    if name in ("Pnorm", "PnormApprox", "geo_mean") and getattr(node, "p", 0) != 2:
        return power(inner)
    if name in ("quad_over_lin", "Pnorm", "PnormApprox"):
        return Cones((), 1, rows=inner + 2, columns=1, nonzeros=inner + 2)
    # The others are polyhedral atoms such as maxima and absolute values: linear rows.
    return Cones(rows=2 * inner, columns=inner + node.size, nonzeros=3 * inner)


def of_affine(node: Any) -> Cones:
    """Count the entries of a constant matrix that multiplies variables, without evaluating a kernel."""
    if isinstance(node, TripletGains):
        weights = sum(v.size for v in node.variables())
        return blocks(node.size, weights, node.size * weights)
    if isinstance(node, MulExpression):
        constant, other = node.args if node.args[0].is_constant() else node.args[::-1]
        if constant.is_constant() and not other.is_constant() and constant.ndim == 2:
            rows, columns = constant.shape
            return blocks(rows, columns, entry_count(constant) * max(1, other.size // max(columns, 1)))
    return Cones()


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
    parts = [part for part in parts if not part.vanishes]
    weights = sum(len(grams) for w, grams in parts if not w.is_constant())
    return min(n, sum(sum(ranks(grams, n)) for _, grams in parts)), weights


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


def of_user(problem: cp.Problem, variables: Iterable[cp.Variable]) -> Cones:
    """Count the variables, the constraints and the atoms outside the risks."""
    found = Cones()
    for variable in variables:
        found += Cones(columns=variable.size)
        if variable.attributes["PSD"] or variable.attributes["NSD"]:
            found += semidefinite(variable.shape[0], 0)
        elif variable.is_nonneg():
            found += Cones(rows=variable.size, nonzeros=variable.size)
    for constraint in problem.constraints:
        found += of_constraint(constraint)
    for node in nodes(problem):
        if isinstance(node, Atom) and not isinstance(node, Risk | Combination) and node.variables():
            found += of_atom(node)
    return found

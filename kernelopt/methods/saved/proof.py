"""`Proof`: a learning problem without its data, and the point and dual variables that prove its bounds."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import cvxpy as cp
import numpy as np

from kernelopt.certificates import Certificate
from kernelopt.certificates.certify import certificate_at
from kernelopt.certificates.upper.candidates import as_alphas
from kernelopt.errors import InputError
from kernelopt.files import reading
from kernelopt.grams import Grams, Storage, as_grams
from kernelopt.grams.evaluated import is_numeric
from kernelopt.grams.written import Description, StackReader, domain_of
from kernelopt.kernels import as_points
from kernelopt.language import combine, lp_ball, risk
from kernelopt.losses import Loss
from kernelopt.structure.structure import Structure
from kernelopt.validation import Array, Index, as_indices, as_list, as_vector

Sparse = tuple[Index, Array]  # the rows and the values of the entries that are not zero
RETURN = "Pass those that it was solved with, in the same order."


@dataclass(frozen=True, eq=False)
class SavedRisk:
    """A risk without its data: coefficient * risk(sum_j theta_j K_j, y, loss).

    Attributes
    ----------
    coefficient : float > 0
    loss : Loss
    bias : bool
    checksum : str
        That of y.
    stack : dict
        The description of the kernels K_j.
    """

    coefficient: float
    loss: Loss
    bias: bool
    checksum: str
    stack: Description


@dataclass(frozen=True, eq=False)
class Proof:
    """min sum_k coefficient_k risk_k + prices'theta + offset over theta >= 0 with one more constraint.

    Attributes
    ----------
    constraint : "ball", "at most" or "equal"
        |theta|_p <= total, or row'theta <= total, or row'theta == total.
    p, total, offset : float
    row, prices, theta : arrays of shape (m,)
        The candidate is theta.
    of_points : bool
        Whether the kernels are evaluated at points, and not given as a stack of matrices.
    checksum : str
        That of the points or of the stack.
    risks : tuple of SavedRisk
    arrays : dict of arrays
        What the descriptions of the kernels refer to.
    """

    constraint: Literal["ball", "at most", "equal"]
    p: float
    total: float
    offset: float
    row: Array
    prices: Array
    theta: Array
    of_points: bool
    checksum: str
    risks: tuple[SavedRisk, ...]
    arrays: Mapping[str, Any]

    def certificate(self, reader: StackReader, n_points: int, y: Any, saved: Certificate) -> Certificate:
        """Return the certificate at the stored point, computed from the training data.

        Parameters
        ----------
        reader : StackReader
            That of `reader`, with the points or the stack.
        n_points : int
        y : array of shape (n,), or one for each risk
        saved : Certificate
            Its alphas are the dual variables of the lower bound, its machines those of the upper bound.

        Raises
        ------
        InputError
            If the labels are not those that the problem was solved with.
        """
        given = [y] if len(self.risks) == 1 else as_list(y, "y", "a list of the labels of each risk")
        if len(given) != len(self.risks):
            raise InputError(
                f"y must hold the labels of each of {len(self.risks)} risks, got {len(given)} in certify. "
                f"{RETURN}"
            )
        labels = [each.loss.targets(values, n_points) for each, values in zip(self.risks, given, strict=True)]
        for each, values in zip(self.risks, labels, strict=True):
            check_same(values_checksum(values), each.checksum, "y", f"{values.size} values")
        with reading("the saved problem"):
            structure = Structure(self._problem(reader, n_points, labels))
            alphas, _ = as_alphas(structure, list(saved.alphas))
            trained, _ = as_alphas(structure, [machine.alpha for machine in saved.machines] or None)
        start = {structure.variables[0].id: self.theta}
        machines = [(alpha, None) for alpha in trained or []]
        return certificate_at(structure, start, [alphas or []], given=machines or None)

    def reader(self, X: Any) -> tuple[StackReader, int]:
        """Return the reader of the kernels at the training data, after a check, and the number of points."""
        if self.of_points:
            with reading("the saved problem"):
                domain = domain_of(self.risks[0].stack) or as_points
            points = domain(X, "X", None)
            check_same(points_checksum(points), self.checksum, "X", f"points of shape {points.shape}")
            return StackReader(self.arrays, X=points), len(points)
        grams = as_grams(X, "X")
        check_same(stack_checksum(grams.storage), self.checksum, "X", f"a stack of shape {grams.shape}")
        return StackReader(self.arrays, given=[grams.storage]), grams.n_points

    def _problem(self, reader: StackReader, n_points: int, labels: Sequence[Array]) -> cp.Problem:
        """Return the problem on the training data."""
        theta, stacks = cp.Variable(self.theta.size, nonneg=True, name="theta"), dict[str, Grams]()
        objective: cp.Expression = cp.Constant(self.offset)
        if self.prices.any():
            objective += self.prices @ theta
        for each, y in zip(self.risks, labels, strict=True):
            key = repr(each.stack)  # risks of one stack share its matrices
            if key not in stacks:
                stacks[key] = Grams(reader.storage(each.stack, np.arange(n_points)))
            objective += each.coefficient * risk(combine(theta, stacks[key]), y, each.loss, bias=each.bias)
        if self.constraint == "ball":
            limits = lp_ball(theta, self.p, self.total)
        else:
            size = self.row @ theta
            limits = [size == self.total if self.constraint == "equal" else size <= self.total]
        return cp.Problem(cp.Minimize(objective), limits)


def check_same(found: str, stored: str, what: str, got: str) -> None:
    """Raise unless data have the checksum of those that the problem was solved with."""
    if found != stored:
        raise InputError(
            f"{what} must be the data that the saved problem was solved with, got {got} with other numbers "
            f"in certify. {RETURN}"
        )


def full(sparse: Sparse, n: int) -> Array:
    """Return a vector of n entries from those that are not zero."""
    rows, values = sparse
    alpha = np.zeros(n)
    if rows.size:
        alpha[as_indices(rows, n, "the rows of alpha", unique=True)] = as_vector(values, "alpha", rows.size)
    return alpha


def values_checksum(values: Array) -> str:
    """Return a checksum of an array of doubles."""
    array = np.ascontiguousarray(values, dtype="<f8")
    return hashlib.sha256(repr(array.shape).encode() + array.tobytes()).hexdigest()


def points_checksum(points: Any) -> str:
    """Return a checksum of points: rows of numbers, or strings."""
    if is_numeric(points):
        return values_checksum(points)
    return hashlib.sha256(repr(points.tolist()).encode("utf-8", "surrogatepass")).hexdigest()


def stack_checksum(storage: Storage) -> str:
    """Return a checksum of all matrices of a stack."""
    digest = hashlib.sha256()
    for K in storage:
        digest.update(values_checksum(K).encode())
    return digest.hexdigest()

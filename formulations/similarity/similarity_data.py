"""The checked data of a learning problem with similarities, and the problem that they pose."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

import cvxpy as cp
import numpy as np
from numpy.typing import ArrayLike

import kernelopt as ko
from formulations.machines import as_loss
from kernelopt.extend import Array, as_fidelity, as_float_array, as_grams, positive, shown

Function: TypeAlias = Callable[[cp.Expression], cp.Expression]
Fidelity: TypeAlias = Literal["l1", "frobenius", "squared_frobenius"] | ko.Fidelity | Function

PAPER = "Kundu et al. (2010)"


LARGEST_SIMILARITY = 1e150  # squares of larger ones are no doubles


@dataclass(frozen=True, eq=False)
class SimilarityData:
    """Checked data of one learning problem.

    Attributes
    ----------
    S : array of shape (m, N, N), symmetric, of any signature
    y : array of shape (n,), labels or targets of the first n points
    loss : Loss
    rho : price of the fidelities
    trace : trace of each kernel over all N points, None where it is free
    fidelity : kernelopt.Fidelity, or a function that maps the expression K - S to a convex one
    """

    S: Array
    y: Array
    loss: ko.Loss
    rho: float
    trace: float | None
    fidelity: ko.Fidelity | Function

    @property
    def m(self) -> int:
        """The number of similarities."""
        return len(self.S)

    @property
    def N(self) -> int:
        """The number of points."""
        return int(self.S.shape[1])

    @property
    def n(self) -> int:
        """The number of labelled points."""
        return self.y.size

    def risk(self, kernels: Sequence[cp.Expression]) -> ko.Risk:
        """Return the risk at one kernel, or the Omega of (10) at several."""
        return ko.risk(list(kernels), self.y, self.loss, norm=np.inf)

    def learn(
        self, risk: ko.Risk, traces: Sequence[cp.Expression], pairs: Iterable[tuple[cp.Expression, Array]]
    ) -> cp.Problem:
        """Return the minimisation of the risk plus rho times the fidelities of the pairs (K, S).

        All `traces` are equal to tau, where there is one.
        """
        objective: cp.Expression = risk
        if self.rho > 0:
            objective = objective + self.rho * cp.sum([self.distance(K, S) for K, S in pairs])
        if self.trace is None:
            return cp.Problem(cp.Minimize(objective))
        labels = [f"trace {i}" if len(traces) > 1 else "trace" for i in range(len(traces))]
        fixed = [(t == self.trace).set_label(label) for t, label in zip(traces, labels, strict=True)]
        return cp.Problem(cp.Minimize(objective), fixed)

    def distance(self, K: cp.Expression, S: Array) -> cp.Expression:
        """Return the fidelity of K to S. What a function returns is checked: convex, with one entry."""
        if isinstance(self.fidelity, ko.Fidelity):
            return ko.fidelity(K, S, self.fidelity)
        try:
            value = self.fidelity(K - S)
        except Exception as error:  # whatever a stranger's function raises on an expression
            raise ko.errors.ParameterError(
                f"fidelity must be a function of a cvxpy expression, got {shown(self.fidelity)}, which "
                f"fails: {str(error).rstrip('. ')}. Pass one such as lambda X: cp.sum(cp.abs(X))."
            ) from error
        if not (isinstance(value, cp.Expression) and value.size == 1 and value.is_convex()):
            raise ko.errors.ParameterError(
                f"fidelity must return a convex cvxpy expression of one entry, got {value!r:.80}. Pass one "
                "such as lambda X: cp.sum(cp.multiply(W, cp.abs(X))) with W >= 0."
            )
        return value


def similarity_data(
    similarities: ko.Grams | ArrayLike,
    y: ArrayLike | None,
    C: float,
    rho: float,
    trace: float | None,
    fidelity: Fidelity,
    loss: ko.Loss | None,
) -> SimilarityData:
    """Return the data of a learning problem after checking them."""
    S = as_similarities(similarities)
    loss = ko.hinge(C) if loss is None else own_loss(loss, C)
    rho = positive(rho, "rho", allow_zero=True)
    tau = None if trace is None else positive(trace, "trace")
    if tau is None and rho == 0:
        raise ko.errors.ParameterError(
            "trace must be given where rho is 0, got None: the kernel would grow without bound. Pass "
            "default_trace(similarities), or rho > 0."
        )
    is_class = isinstance(fidelity, type) and issubclass(fidelity, ko.Fidelity)  # others are functions
    if isinstance(fidelity, ko.Fidelity) or is_class or not callable(fidelity):
        fidelity = as_fidelity(fidelity, "fidelity")
    return SimilarityData(S, loss.targets(y, S.shape[1]), loss, rho, tau, fidelity)


def own_loss(loss: ko.Loss, C: object) -> ko.Loss:
    """Return a loss that is given, beside which C must have its default value."""
    loss = as_loss(loss)
    if not isinstance(C, int | float) or C != 1.0:
        raise ko.errors.ParameterError(
            f"C belongs to the default loss hinge(C), got C = {shown(C)} beside loss = {loss!r}. "
            "Write it into the loss, such as kernelopt.logistic(C)."
        )
    return loss


def as_similarities(similarities: ko.Grams | ArrayLike) -> Array:
    """Return similarities of any signature as an array of shape (m, N, N); one matrix counts as m = 1."""
    if isinstance(similarities, ko.Grams):
        S = np.array(similarities)
    else:
        try:
            array = as_float_array(similarities, "similarities")
        except ko.errors.ShapeError as error:
            raise ko.errors.ShapeError(
                f"similarities must be real matrices of one size, got {type(similarities).__name__}: {error} "
                "Stack them with numpy.stack."
            ) from error
        S = np.array(as_grams(array[None] if array.ndim == 2 else array, "similarities"))
    if np.abs(S).max() > LARGEST_SIMILARITY:
        raise ko.errors.NotFiniteError(
            f"similarities must be at most {LARGEST_SIMILARITY:g} in size, since their squares are summed, "
            f"got {np.abs(S).max():g}. Divide them by a unit."
        )
    return S

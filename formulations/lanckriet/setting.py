"""What the programmes of the paper share: checked data, and the learning problem in words."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal

import cvxpy as cp
import numpy as np
from numpy.typing import ArrayLike, NDArray

import kernelopt as ko

Trace = float | Literal["sum"]
Ridge = float | Literal["learned"]
Weights = Literal["nonnegative", "free"]
Array = NDArray[np.float64]
Point = dict[cp.Variable, Any]  # values of the learning problem's variables


@dataclass(frozen=True, eq=False)
class Setting:
    """Checked data of one learning problem, and its kernel in words.

    Attributes
    ----------
    grams : Grams, all m kernels on N points
    y : array of shape (n,), labels of the first n points
    used : indices of the kernels that are not zero
    r : traces of the used kernels over all N points
    c : trace of the learned kernel (with tau I where tau is learned)
    C : largest dual variable, or infinity
    tau : ridge of the criterion; 0 where it is learned
    mu : weights of the used kernels
    ridge : weight of the identity, None where tau is fixed
    """

    grams: ko.Grams
    y: NDArray[np.float64]
    used: NDArray[np.intp]
    r: NDArray[np.float64]
    c: float
    C: float
    tau: float
    mu: cp.Variable
    ridge: cp.Variable | None
    signed: bool

    @property
    def n(self) -> int:
        """The number of labelled points."""
        return self.y.size

    @property
    def N(self) -> int:
        """The number of points."""
        return self.grams.n_points

    @property
    def weights(self) -> cp.Expression:
        """The weights of all m kernels: zero for zero kernels."""
        if self.used.size == len(self.grams):
            return self.mu
        return np.eye(len(self.grams))[:, self.used] @ self.mu

    @property
    def kernel(self) -> cp.Expression:
        """K(mu), without the ridge."""
        return ko.combine(self.weights, self.grams)

    @property
    def criterion(self) -> ko.Loss:
        """The loss of which omega is twice the risk (sections 4.1 to 4.4)."""
        if np.isinf(self.C):
            return ko.squared_hinge(1 / self.tau) if self.tau > 0 else ko.hard_margin()
        return ko.huberized_hinge(self.C, self.tau) if self.tau > 0 else ko.hinge(self.C)

    def words(self) -> cp.Problem:
        """Return min 2 risk(K(mu) + tau I) over the kernel set, in the words of the language."""
        K = self.kernel
        learned = K if self.ridge is None else K + self.ridge * np.eye(self.N)
        total = self.r @ self.mu if self.ridge is None else self.r @ self.mu + self.N * self.ridge
        constraints = [(total == self.c).set_label("trace")]
        if self.signed:
            constraints.append((K >> 0).set_label("K >> 0"))
        return cp.Problem(cp.Minimize(2 * ko.risk(learned, self.y, self.criterion)), constraints)

    def fresh(self) -> Setting:
        """Return the same data with weights of its own."""
        mu = cp.Variable(self.used.size, nonneg=not self.signed, name="mu")
        ridge = None if self.ridge is None else cp.Variable(nonneg=True, name="tau")
        return replace(self, mu=mu, ridge=ridge)

    def point(self, mu: Array, ridge: float | None = None) -> Point:
        """Return the weights, and tau where it is learned, as values of their variables."""
        return {self.mu: mu} if self.ridge is None else {self.mu: mu, self.ridge: ridge}

    def check_psd(self) -> None:
        """Raise unless the used kernels are positive semidefinite, on all points and not only the first."""
        for i in self.used:
            self.grams.factor(int(i))

    def factors(self) -> list[NDArray[np.float64]]:
        """Return F_i with K_i = F_i F_i' on the labelled points, for the used kernels."""
        labelled = self.grams.block(slice(0, self.n)) if self.n < self.N else self.grams
        return [labelled.factor(int(i)) for i in self.used]


def setting(
    grams: ko.Grams | ArrayLike,
    y: ArrayLike,
    C: float = np.inf,
    tau: Ridge = 0.0,
    trace: Trace = "sum",
    weights: Weights = "nonnegative",
) -> Setting:
    """Check the inputs that all programmes share."""
    stack = ko.as_grams(grams)
    labels = ko.hard_margin().targets(y, stack.n_points)
    ko.one_of(weights, "weights", ("nonnegative", "free"))
    learned = isinstance(tau, str) and tau == "learned"
    fixed_tau = 0.0 if learned else ko.positive(tau, "tau", allow_zero=True)
    traces = stack.traces
    used = np.flatnonzero([abs(t) > 0 or np.any(stack.gram(i)) for i, t in enumerate(traces)])
    if not used.size:
        raise ko.InputError(
            f"at least one kernel must be different from zero, got {len(stack)} zero kernels. Check the data."
        )
    if used.size < len(stack):
        stack = ko.Grams.from_array(np.asarray(stack), stack.names)  # zero kernels are then seen to be zero
    if not isinstance(trace, str):
        c = ko.positive(trace, "trace")
    elif trace == "sum":
        c = float(traces.sum()) + (stack.n_points if learned else 0)
    else:
        raise ko.ParameterError(f"trace must be 'sum' or a positive number, got {trace!r}. Choose one.")
    if not c > 0:
        raise ko.ParameterError(
            f"the sum of the traces must be positive, got {c:g}. Pass trace= as a positive number."
        )
    signed = weights == "free"
    mu = cp.Variable(used.size, nonneg=not signed, name="mu")
    ridge = cp.Variable(nonneg=True, name="tau") if learned else None
    bound = ko.positive(C, "C", allow_inf=True)
    return Setting(stack, labels, used, traces[used], c, bound, fixed_tau, mu, ridge, signed)

"""The checked data of a learning problem, with its variables, and the problem that they pose."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

import cvxpy as cp
import numpy as np
from numpy.typing import ArrayLike, NDArray

import kernelopt as ko
from kernelopt.extend import Array, Programme, as_grams, one_of, positive

Trace = float | Literal["sum"]
Ridge = float | Literal["learned"]
Weights = Literal["nonnegative", "free"]
Point = dict[cp.Variable, Any]  # values of the learning problem's variables


@dataclass(frozen=True, eq=False)
class TransductionData:
    """Checked data of one learning problem, with its variables.

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
    signed : whether weights may be negative, so that K(mu) >> 0 is a constraint
    """

    grams: ko.Grams
    y: Array
    used: NDArray[np.intp]
    r: Array
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
        """The loss whose risk is half of omega."""
        return criterion(self.C, self.tau)

    def problem(self) -> cp.Problem:
        """Return min 2 risk(K(mu) + tau I) over the kernel set, the learning problem."""
        K = self.kernel
        learned = K if self.ridge is None else K + self.ridge * np.eye(self.N)
        risk = ko.risk(learned, self.y, self.criterion)
        return cp.Problem(cp.Minimize(2 * risk), self.kernel_set())

    def formulation(
        self,
        name: str,
        theorem: str,
        dual: Callable[[], cp.Problem],
        programmes: dict[str, Callable[[], Programme]],
    ) -> ko.Formulation:
        """Return the formulation of the learning problem with a dual and programmes of its own."""
        return ko.Formulation(
            name=f"lanckriet.{name}",
            problem=self.problem(),
            kernel=self.kernel,
            weights=self.weights,
            dual=dual,
            claim="equal",
            reference=f"Lanckriet et al. (2004), {theorem}",
            programmes=programmes,
        )

    def kernel_set(self) -> list[cp.Constraint]:
        """Return r'mu (+ N tau) = c and, for weights of free sign, K(mu) >> 0 on all N points."""
        total = self.r @ self.mu if self.ridge is None else self.r @ self.mu + self.N * self.ridge
        constraints: list[cp.Constraint] = [(total == self.c).set_label("trace")]
        return [*constraints, (self.kernel >> 0).set_label("K >> 0")] if self.signed else constraints

    def dual_domain(self, alpha: cp.Variable) -> list[cp.Constraint]:
        """Return y'alpha = 0 and alpha <= C; alpha >= 0 is an attribute of the variable."""
        domain: list[cp.Constraint] = [(self.y @ alpha == 0).set_label("bias")]
        return domain if np.isinf(self.C) else [*domain, (alpha <= self.C).set_label("box")]

    def minus_ridge(self, objective: cp.Expression, alpha: cp.Variable) -> cp.Expression:
        """Return the objective of a dual less tau alpha'alpha, which is zero where tau is learned."""
        return objective - self.tau * cp.sum_squares(alpha) if self.tau else objective

    def lagrangian(self) -> tuple[cp.Expression, cp.Expression, cp.Expression]:
        """Return the three terms of the Lagrangian of omega, in the multipliers lambda, nu and delta.

        They are the matrix G(K) + tau I, the vector q = e + nu - delta + lambda y and the number 2 C e'delta,
        without delta where C is infinite. The maximum over alpha is q'(G(K) + tau I)^+ q plus the number.
        """
        lam, nu = cp.Variable(name="lambda"), cp.Variable(self.n, nonneg=True, name="nu")
        vector, number = 1 + nu + lam * self.y, cp.Constant(0.0)
        if not np.isinf(self.C):
            delta = cp.Variable(self.n, nonneg=True, name="delta")
            vector, number = vector - delta, 2 * self.C * cp.sum(delta)
        tau = self.tau if self.ridge is None else self.ridge
        labels = np.outer(self.y, self.y)
        G = cp.multiply(labels, self.kernel[: self.n, : self.n]) + tau * np.eye(self.n)
        return G, vector, number

    def fresh(self) -> TransductionData:
        """Return the same data with new weights."""
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

    def factors(self) -> list[Array]:
        """Return F_i with K_i = F_i F_i' on the labelled points, for the used kernels."""
        labelled = self.grams.block(slice(0, self.n))
        return [labelled.factor(int(i)) for i in self.used]


def criterion(C: float, tau: float) -> ko.Loss:
    """Return the loss whose risk is half of omega (sections 4.1 to 4.4 of the paper)."""
    if np.isinf(C):
        return ko.squared_hinge(1 / tau) if tau > 0 else ko.hard_margin()
    return ko.huberized_hinge(C, tau) if tau > 0 else ko.hinge(C)


def transduction_data(
    grams: ko.Grams | ArrayLike,
    y: ArrayLike,
    C: float = np.inf,
    tau: Ridge = 0.0,
    trace: Trace = "sum",
    weights: Weights = "nonnegative",
) -> TransductionData:
    """Return the data of a learning problem, with new variables, after checking them."""
    stack = as_grams(grams)
    labels = ko.hard_margin().targets(y, stack.n_points)
    one_of(weights, "weights", get_args(Weights))
    learned = isinstance(tau, str) and tau == "learned"
    fixed_tau = 0.0 if learned else positive(tau, "tau", allow_zero=True)
    traces = stack.traces
    used = np.flatnonzero([abs(t) > 0 or np.any(stack.gram(i)) for i, t in enumerate(traces)])
    if not used.size:
        raise ko.InputError(
            f"at least one kernel must be different from zero, got {len(stack)} zero kernels. Check the data."
        )
    if used.size < len(stack):
        stack = ko.Grams.from_array(np.asarray(stack), stack.names)  # zero kernels are then seen to be zero
    if not isinstance(trace, str):
        c = positive(trace, "trace")
    elif trace == "sum":
        c = float(traces.sum()) + (stack.n_points if learned else 0)
    else:
        raise ko.errors.ParameterError(
            f"trace must be 'sum' or a positive number, got {trace!r}. Choose one."
        )
    if not c > 0:
        raise ko.errors.ParameterError(
            f"the sum of the traces must be positive, got {c:g}. Pass trace= as a positive number."
        )
    signed = weights == "free"
    mu = cp.Variable(used.size, nonneg=not signed, name="mu")
    ridge = cp.Variable(nonneg=True, name="tau") if learned else None
    bound = positive(C, "C", allow_inf=True)
    return TransductionData(stack, labels, used, traces[used], c, bound, fixed_tau, mu, ridge, signed)

"""The inner problem of the first-order dual methods, and what is known after each of their iterations."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np

from kernelopt.certificates.lower.near import Proof
from kernelopt.methods.checkpoint import State
from kernelopt.methods.control import Control
from kernelopt.methods.similarity.spectra import Ascent
from kernelopt.numerics.decompositions import eigenpairs
from kernelopt.running import check
from kernelopt.structure.nearness import Nearness
from kernelopt.validation import Array


@dataclass(frozen=True, eq=False)
class Iterate:
    """The result of one iteration: bounds of the optimum, a primal point and a dual point.

    The bounds are those of risk + price * fidelities, without the factor and the offset of the problem.

    Attributes
    ----------
    lower, upper : float
    X : function without arguments
        Computes the values of the variables. They cost a decomposition, and are not always needed.
    alpha : array of shape (n,)
    gamma : array of shape (m,)
        The upper bound is that of the machine f = sum_i K_i z / gamma_i + b; z is alpha, with zeros at the
        points without a label.
    proof : Proof
        The dual point of the lower bound.
    state : function without arguments
        Returns the arrays from which the scheme can go on.
    """

    lower: float
    upper: float
    X: Callable[[], list[Array]]
    alpha: Array
    gamma: Array
    proof: Proof
    state: Callable[[], State]


def inner_problem(problem: Nearness, resumed: State) -> Ascent:
    """Return the inner problem over alpha and gamma, starting at those of a resumed state.

    Its matrices B_i are to be set by `set_matrix`.
    """
    learner = problem.risk.learner
    totals = [block.total for block in problem.blocks]
    diagonal = problem.blocks[0].V is not None
    inner = Ascent(learner.loss, learner.y, learner.bias is not None, problem.n_points, totals, diagonal)
    if resumed:
        inner.alpha[:], inner.gamma[:] = resumed["alpha"], resumed["gamma"]
    return inner


def set_matrix(inner: Ascent, problem: Nearness, i: int, B: Array) -> None:
    """Set B_i of the inner problem. A matrix is decomposed; a spectrum belongs to the basis of its block."""
    V = problem.blocks[i].V
    check()
    if V is None:
        eigenvalues, Q = eigenpairs(B)
        inner.set_spectrum(i, Q, eigenvalues)
    else:
        inner.set_spectrum(i, V, B)


def primal_point(inner: Ascent, problem: Nearness) -> list[Array]:
    """Return the values of the variables at the last point of the inner problem."""
    return [value() for value in present_values(inner, problem)]


def present_values(inner: Ascent, problem: Nearness) -> list[Callable[[], Array]]:
    """Return functions that compute the values of the variables at the present point of the inner problem.

    They keep what they need of that point: the inner problem may move on before they are called.
    """
    if problem.blocks[0].V is None:
        return [inner.kept_kernel(i) for i in range(len(problem.blocks))]
    return [partial(np.copy, inner.spectrum(i)) for i in range(len(problem.blocks))]


@dataclass(frozen=True, eq=False)
class BestResponse:
    """The minimisers X_i of the inner problem at its present point, and the subgradients U_ik there.

    X_i minimises -z'K_i z / (2 gamma_i) + W_i |X_i - B_i|_F^2 over its feasible set.

    U_ik = kappa (X_i - S_ik) / s_ik. For kappa = 1 it is the gradient of the square |X_i - S_ik|^2 / (2 s_ik)
    that replaces the fidelity.

    Parameters
    ----------
    minimisers : list of functions without arguments
        Each computes an X_i by products of its eigenvectors: `present_values`.
    """

    problem: Nearness
    minimisers: list[Callable[[], Array]]
    s: list[Array]
    kappa: float = 1.0

    def X(self) -> list[Array]:
        """Return the X_i. The first call computes them."""
        return self._X

    @cached_property
    def _X(self) -> list[Array]:
        return [minimiser() for minimiser in self.minimisers]

    def U(self) -> list[list[Array]]:
        """Return the U_ik of every fidelity k of every block i."""
        return [
            [self.kappa * (x - f.target) / scale for f, scale in zip(block.fidelities, s, strict=True)]
            for block, x, s in zip(self.problem.blocks, self._X, self.s, strict=True)
        ]


def risk_upper_bound(inner: Ascent, problem: Nearness, gap: float) -> float:
    """Return loss(f + b) + 1/2 max_i |f_i|^2, an upper bound of the risk at the kernels of the inner problem.

    It is the inner gap plus l(alpha) - 1/2 sum_i z'K_i z / gamma_i, by the definition of the gap.
    """
    learner = problem.risk.learner
    dual = learner.loss.dual_value(inner.alpha, learner.y) - float((inner.forms / inner.gamma).sum()) / 2
    return gap + dual


def allowed_gap(problem: Nearness, control: Control, upper: float) -> float:
    """Return the gap that meets the tolerance, in the units of `Iterate`; `upper` is in these units too."""
    value = problem.factor * upper + problem.offset
    return control.tol * max(abs(value), control.floor) / problem.factor

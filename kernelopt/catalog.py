"""The Formulation record, and the catalogue of formulations that are installed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from importlib.metadata import entry_points
from typing import Any, Literal

import cvxpy as cp
import numpy as np

from kernelopt.certificates import Certificate
from kernelopt.errors import InputError
from kernelopt.language.risk import Risk
from kernelopt.language.terms import terms
from kernelopt.reading import risks
from kernelopt.solvers.exact import Reading
from kernelopt.solvers.solution import Learned, Part, Solution
from kernelopt.solvers.solve import solve
from kernelopt.validation import Array

GROUP = "kernelopt.formulations"
Claim = Literal["equal", "upper", "lower", "relaxation"]
Takes = Literal["labels", "targets", "triplets", "similarities", "none"]


@dataclass(frozen=True, eq=False, repr=False)
class Formulation:
    """A theorem as an object: a programme, its dual, and how the learned kernel is read from it.

    Attributes
    ----------
    name : str
    problem : cp.Problem
        The programme as the paper states it, solved by `solve`.
    kernel : cvxpy expression of shape (N, N)
        The learned kernel.
    weights : cvxpy expression of shape (m,), or None
        Its weights, filled by `solve`.
    dual : function without arguments
        Builds the hand-written dual as a `cp.Problem`.
    claim : "equal", "upper", "lower" or "relaxation"
        How the optimum of `dual()` relates to that of `problem`.
    reference : str
        The paper and its theorem.
    words : cp.Problem
        The same learning problem in the words of the language: compose, certify and re-solve it. It is
        `problem` itself where that has risk nodes.
    recover : function without arguments, optional
        For a programme without risk nodes: sets the weights from its multipliers and returns alpha.
    predictor : function of (kernel on the labelled points) -> (alpha, intercept), optional
        For formulations that learn a kernel without a machine.
    coefficients : function without arguments -> (array of shape (m, n), intercept), optional
        For formulations whose machine is a sum of functions, f = sum_i weights_i K_i coefficients_i +
        intercept, at the current values; it predicts at new points with weights of any sign.
    certificate : function without arguments, optional
        For a programme without risk nodes that has bounds of its own: a `Certificate` at the values and
        multipliers that a solver left.
    route : function without arguments, optional
        With `certificate`: a way to the optimum that needs no conic solver, tried first. It sets the values
        of the variables and the multipliers of the constraints, and returns the number of iterations.
    """

    name: str
    problem: cp.Problem
    kernel: cp.Expression
    weights: cp.Expression | None
    dual: Callable[[], cp.Problem]
    claim: Claim
    reference: str
    words: cp.Problem
    recover: Callable[[], Array] | None = None
    predictor: Callable[[Array], tuple[Array, float]] | None = None
    coefficients: Callable[[], tuple[Array, float]] | None = None
    certificate: Callable[[], Certificate] | None = None
    route: Callable[[], int] | None = None

    def __repr__(self) -> str:
        constraints = len(self.problem.constraints)
        sense = "maximise" if isinstance(self.problem.objective, cp.Maximize) else "minimise"
        return (
            f"<Formulation {self.name}: {sense}, {constraints} constraint(s), claim {self.claim!r}, "
            f"{self.reference}>"
        )

    @property
    def risks(self) -> tuple[Risk, ...]:
        """The risks of `words`."""
        return tuple(risks(self.words))

    def solve(self, method: str = "auto", **options: Any) -> Solution:
        """Solve the programme and certify the learned kernel; options as for `kernelopt.solve`."""
        recover = self.recover
        if recover is not None:
            options["reading"] = Reading(self.words, lambda: [recover()])
        elif self.certificate is not None:
            options["reading"] = Reading(self.words, certify=self.certificate, route=self.route)
        solution = solve(self.problem, method, **options)
        if solution.learned or self.weights is None:
            return solution
        return replace(solution, weights=np.asarray(self.weights.value), learned=(self._machine(),))

    def _machine(self) -> Learned:
        """Return the learned kernel, with the machine of `coefficients` or `predictor`, if there is one."""
        alpha, intercept = np.zeros(0), np.nan
        if self.coefficients is not None:
            alpha, intercept = self.coefficients()
        elif self.predictor is not None:
            alpha, intercept = self.predictor(np.asarray(self.kernel.value))
        parts = tuple(Part(np.ravel(w.value), grams, alpha) for w, grams in terms(self.kernel) or [])
        extends = alpha.ndim == 2 or (self.weights is not None and bool(self.weights.is_nonneg()))
        return Learned(alpha, intercept, parts, True, extends)


@dataclass(frozen=True)
class Entry:
    """A formulation in the catalogue.

    Attributes
    ----------
    name : str
        Such as "lanckriet.hard_margin".
    build : function
        The builder, returning a `Formulation`.
    takes : "labels", "targets", "triplets", "similarities" or "none"
        What the builder takes beside kernels.
    example : function of a numpy Generator
        Returns a small `Formulation`; tests and benchmarks of the catalogue are driven by it.
    """

    name: str
    build: Callable[..., Formulation]
    takes: Takes
    example: Callable[[np.random.Generator], Formulation]


def catalogue() -> dict[str, Entry]:
    """Return the formulations of all installed packages, by name.

    A package adds its own through the entry-point group "kernelopt.formulations", whose entries are
    modules with a list `CATALOGUE` of `Entry` records.

    Raises
    ------
    InputError
        If two packages use one name.
    """
    found: dict[str, Entry] = {}
    for point in sorted(entry_points(group=GROUP), key=lambda p: p.name):
        for entry in point.load().CATALOGUE:
            if entry.name in found:
                raise InputError(f"formulation names must be unique, got {entry.name!r} twice. Rename one.")
            found[entry.name] = entry
    return found

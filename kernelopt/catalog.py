"""The records `Formulation`, `Entry` and `Planted`, and the catalogue of what is installed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, Unpack, get_args

import cvxpy as cp
import numpy as np

from kernelopt.duality.show import latex_of
from kernelopt.entry_points import FORMULATIONS, leave_out, loaded
from kernelopt.errors import ParameterError
from kernelopt.grams import Grams
from kernelopt.language.adapter import without_compiled
from kernelopt.language.risk import Risk
from kernelopt.language.terms import terms
from kernelopt.methods.exact.programme import Claim, Programme
from kernelopt.methods.method import Method
from kernelopt.methods.solution import Learned, Part, Solution
from kernelopt.methods.solve import SolveOptions, solve_with, with_options
from kernelopt.structure.trees import risks
from kernelopt.validation import Array, one_of, shown

Takes = Literal["labels", "targets", "triplets", "similarities", "none"]
EXPLICIT_FORM = "words"  # the name in the place of a programme's: "exact" solves the problem itself


@dataclass(frozen=True, eq=False, repr=False)
class Formulation:
    """A learning problem with its dual, the theorem that relates them, and the programmes of its paper.

    Parameters
    ----------
    name : str
        Of the builder, such as "lanckriet.hard_margin".
    problem : cp.Problem
        The learning problem, written with the risks and terms of `kernelopt`. It is solved by every method
        that applies, and certified like any other problem.
    kernel : cvxpy expression of shape (N, N)
        The learned kernel.
    weights : cvxpy expression of shape (m,), or None
        The weights of the base kernels. They have values after `solve`.
    dual : function without arguments
        Builds the hand-written dual as a `cp.Problem`.
    claim : "equal", "upper", "lower" or "relaxation"
        How the optimum of `dual()` relates to that of `problem`.
    reference : str
        The paper and its theorem.
    programmes : dict from name to function without arguments, default empty
        The programmes as the paper prints them: each function makes a `Programme`. The method "exact"
        solves the first of them, and the explicit form of `problem` where there is none.
    predictor : function of the formulation, or None
        Where a kernel is learned without a risk, it returns the result of `machine`.
    """

    name: str
    problem: cp.Problem
    kernel: cp.Expression
    weights: cp.Expression | None
    dual: Callable[[], cp.Problem]
    claim: Claim
    reference: str
    programmes: Mapping[str, Callable[[], Programme]] = field(default_factory=dict)
    predictor: Callable[[Any], tuple[Array, float] | None] | None = None

    def __post_init__(self) -> None:
        check_instance(self.problem, cp.Problem, "problem", "a cp.Problem, the learning problem")
        check_instance(self.kernel, cp.Expression, "kernel", "a cvxpy expression")
        check_instance(self.weights, cp.Expression | None, "weights", "a cvxpy expression or None")
        check_instance(self.dual, Callable, "dual", "a function that builds the dual, without arguments")
        check_instance(self.predictor, Callable | None, "predictor", "a function of the formulation, or None")
        one_of(self.claim, "claim", get_args(Claim), "Choose the one that holds.")
        check_instance(self.programmes, Mapping, "programmes", "a dict from name to function")
        for name, make in self.programmes.items():
            check_instance(make, Callable, f"programmes[{name!r}]", "a function that makes a Programme")

    def __repr__(self) -> str:
        constraints = len(self.problem.constraints)
        sense = "maximise" if isinstance(self.problem.objective, cp.Maximize) else "minimise"
        return (
            f"<Formulation {self.name}: {sense}, {constraints} constraint(s), claim {self.claim!r}, "
            f"{self.reference}>"
        )

    def _repr_latex_(self) -> str:
        return latex_of(self.problem)

    def __getstate__(self) -> dict[str, Any]:
        """Return the state for pickle and copy.deepcopy, without what cvxpy caches of a solve."""
        return {**vars(self), "problem": without_compiled(self.problem)}

    def __copy__(self) -> Formulation:
        return replace(self)

    @property
    def risks(self) -> tuple[Risk, ...]:
        """The risks of the problem."""
        return tuple(risks(self.problem))

    @with_options
    def solve(
        self,
        method: str | Method = "auto",
        *,
        programme: str | None = None,
        **options: Unpack[SolveOptions],
    ) -> Solution:
        """Solve the learning problem and certify the learned kernel; options as for `kernelopt.solve`.

        Parameters
        ----------
        method : str or Method, default "auto"
            As for `kernelopt.solve`.
        programme : str, optional
            For "exact", which is then what "auto" takes: the name of the programme to solve, or "words" for
            the explicit form of the learning problem; by default the first of `programmes`.
        **options
            As for `kernelopt.solve`.

        Returns
        -------
        Solution
            The solution of the learning problem, whichever programme was solved.

        Raises
        ------
        TypeError
            If there is no such option.
        ParameterError
            If there is no such programme, or another method than "exact" is to solve it.
        """
        if programme is not None:
            method = "exact" if isinstance(method, str) and method == "auto" else method
            name: object = getattr(method, "name", method)
            if not isinstance(name, str) or name != "exact":
                raise ParameterError(
                    f"a programme must be solved by the method 'exact', got programme={shown(programme)} and "
                    f"method={shown(method)}. Leave one of them out."
                )
        chosen = self._programme(programme)
        solution = solve_with(chosen, self.problem, method, also=("programme",), **options)
        for node, machine in zip(self.risks, solution.certificate.machines, strict=False):
            if len(node.learner.kernels) > 1:  # `weights` may depend on the machine: on the certified one
                node.remember(machine)
        if solution.learned:
            return solution
        weights = None if self.weights is None else np.asarray(self.weights.value)
        return replace(solution, weights=weights, learned=(self._learned(),))

    def machine(self) -> tuple[Array, float] | None:
        r"""Return alpha and the intercept at the current values, for a problem without a risk that predicts.

        alpha has shape (n,), or (m, n) for a sum of functions,
        :math:`f = \sum_i \mathrm{weights}_i K_i \alpha_i + b`. The result is None where the solution has a
        kernel and does not predict.
        """
        return None if self.predictor is None else self.predictor(self)

    def _programme(self, name: object) -> Programme | None:
        if name is None:
            name = next(iter(self.programmes), EXPLICIT_FORM)
        if isinstance(name, str) and name == EXPLICIT_FORM:
            return None
        if not isinstance(name, str) or name not in self.programmes:
            names = ", ".join(map(repr, (*self.programmes, EXPLICIT_FORM)))
            raise ParameterError(f"programme must be one of {names}, got {shown(name)}. Choose one of these.")
        return self.programmes[name]()

    def _learned(self) -> Learned:
        """Return the learned kernel, with the machine of `machine()` if there is one."""
        alpha, intercept = self.machine() or (np.zeros(0), np.nan)
        if self.weights is None:  # a matrix of its own, which is no kernel at new points
            whole = Part(np.ones(1), Grams.from_array(np.asarray(self.kernel.value)[None]), alpha)
            return Learned(alpha, intercept, (whole,), False, False)
        parts = tuple(Part(np.ravel(w.value), grams, alpha) for w, grams in terms(self.kernel) or [])
        inductive = alpha.ndim == 2 or bool(self.weights.is_nonneg())
        return Learned(alpha, intercept, parts, True, inductive)


@dataclass(frozen=True, eq=False)
class Planted:
    """A formulation whose data were made so that its optimum is known in closed form.

    Parameters
    ----------
    formulation : Formulation
        The problem with its dual.
    value : float
        The optimal value of its problem, exact up to the rounding of the data; inf where a minimisation is
        infeasible.
    point : dict from cvxpy variable to value
        An optimal point; empty where there is none, or where it is only known up to hidden variables.
    alphas : tuple of arrays
        Optimal dual variables, one per risk; empty where there is no risk.
    """

    formulation: Formulation
    value: float
    point: Mapping[cp.Variable, Any] = field(default_factory=dict, repr=False)
    alphas: tuple[Array, ...] = field(default=(), repr=False)

    @property
    def infeasible(self) -> bool:
        """Whether the problem was made without a feasible point."""
        return not np.isfinite(self.value)


@dataclass(frozen=True)
class Entry:
    """A formulation in the catalogue.

    Parameters
    ----------
    name : str
        Such as "lanckriet.hard_margin".
    build : function
        The builder, returning a `Formulation`.
    takes : "labels", "targets", "triplets", "similarities" or "none"
        The data that the builder takes beside kernels.
    example : function of a numpy Generator
        Returns a small `Formulation`, for the tests and benchmarks of the catalogue.
    planted : function of a numpy Generator and of knobs, or None
        Returns a `Planted` problem with a known optimum. The knobs are keywords with defaults: n, m,
        unlabelled, condition, degenerate, duplicates, infeasible. docs/testing.md has their meaning.
    """

    name: str
    build: Callable[..., Formulation]
    takes: Takes
    example: Callable[[np.random.Generator], Formulation]
    planted: Callable[..., Planted] | None = None

    def __post_init__(self) -> None:
        check_instance(self.name, str, "name", "text such as 'package.builder'")
        if not all(self.name.partition(".")):
            raise ParameterError(
                f"name must be of the form 'package.builder', got {self.name!r}. Put the package "
                "before a dot."
            )
        check_instance(self.build, Callable, "build", "a function that returns a Formulation")
        one_of(self.takes, "takes", get_args(Takes))
        check_instance(self.example, Callable, "example", "a function of a numpy Generator")
        check_instance(self.planted, Callable | None, "planted", "a function of a numpy Generator, or None")


def check_instance(value: object, kind: Any, what: str, wanted: str) -> None:
    """Raise `ParameterError` unless a field of a record is an instance of its class, or can be called."""
    if not isinstance(value, kind):
        raise ParameterError(
            f"{what} must be {wanted}, got {type(value).__name__}: {value!r:.60}. Correct the record."
        )


def catalogue() -> dict[str, Entry]:
    """Return the formulations of all installed packages, by name.

    A package adds its own through the entry-point group "kernelopt.formulations", whose entries are
    modules with a list `CATALOGUE` of `Entry` records.

    Warns
    -----
    PackageWarning
        If a package cannot be imported, has no such list, or uses a name of another package. Its entries
        with this defect are left out.

    Examples
    --------
    >>> import kernelopt as ko
    >>> entry = ko.catalogue()["lanckriet.hard_margin"]
    >>> entry.takes, entry.build.__module__
    ('labels', 'formulations.lanckriet.hard_margin')
    """
    found: dict[str, Entry] = {}
    for point, module in loaded(FORMULATIONS):
        listed = getattr(module, "CATALOGUE", None)
        if not isinstance(listed, list | tuple) or not all(isinstance(entry, Entry) for entry in listed):
            leave_out(point, "a module with a list CATALOGUE of Entry records", shown(listed))
            continue
        for entry in listed:
            if found.setdefault(entry.name, entry) is not entry:
                other = found[entry.name].build
                what = f"{entry.name!r}, which is one of {other.__module__}"
                leave_out(point, "a module whose formulations have names of their own", what)
    return found

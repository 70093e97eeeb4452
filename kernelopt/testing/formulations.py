"""`check_formulation`: a formulation on its examples, by the tests that kernelopt's own formulations pass."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import cvxpy as cp
import numpy as np

from kernelopt.catalog import Entry, Formulation
from kernelopt.certificates import certify
from kernelopt.methods.selection import applicable
from kernelopt.methods.solution import Solution
from kernelopt.methods.solve import solve
from kernelopt.structure.structure import Structure
from kernelopt.testing.findings import Findings, planted_between, require

RTOL = 1e-5  # what conic solvers reach on small problems
DUAL_FACTOR = 10  # a dual by hand may be solved less accurately than the problem
SMALLEST_SIZE = 1e-3  # of a value that tolerances are relative to


def check_formulation(
    entry: Entry, *, seeds: Sequence[int] = (0, 1, 2), rtol: float = RTOL, methods: bool = True
) -> Findings:
    """Check a formulation on its examples: certified, compared with its dual, its programmes and all methods.

    The problem may have several risks, shared weights, no weights, no risk, and be a minimisation or a
    maximisation. It is checked that

    * the problem, the dual and the programmes are DCP, and the last two are new problems at every call;
    * the gap of `solve()` is at most rtol, and the variables have values with the value of the solution;
    * `certify` at the values of the solution has a gap of at most rtol, and bounds that overlap
      with the bounds of the solution;
    * the certified optima of the dual and of the problem relate as `claim` says;
    * every programme leads to a point of the learning problem with the same optimum;
    * kernels and predictions are finite and have the shapes of the points;
    * every method that applies has bounds that contain the same optimum;
    * a planted optimum, if the entry has one, lies between the bounds, and is attained.

    Parameters
    ----------
    entry : Entry
        Its record, as in the catalogue.
    seeds : sequence of int, default (0, 1, 2)
        The seeds of the examples.
    rtol : float > 0, default 1e-5
        The tolerance of gaps, and of differences between optima.
    methods : bool, default True
        Whether every method is tried, on the first seed.

    Returns
    -------
    Findings
        `print` lists the statements that hold.

    Raises
    ------
    AssertionError
        With every statement that fails.
    ParameterError
        If it is not given an `Entry`.

    Examples
    --------
    >>> import kernelopt as ko
    >>> from kernelopt.testing import check_formulation
    >>> entry = ko.catalogue()["lp_norm.primal"]
    >>> len(check_formulation(entry, seeds=[0], methods=False).stated)
    16
    """
    cure = "Make one: extend.Entry('package.builder', builder, 'labels', example); example(rng) returns a "
    require(entry, Entry, "check_formulation", f"{cure}Formulation.")
    findings = Findings(entry.name)
    for seed in seeds:
        with findings.part(f"seed {seed}"):
            check_example(findings, entry, seed, rtol)
    with findings.part("methods"):
        for seed in list(seeds)[: int(methods)]:
            expected = example(entry, seed).solve(tol=rtol)
            for candidate in applicable(Structure(example(entry, seed).problem)):
                with findings.part(repr(candidate.method.name)):
                    found = example(entry, seed).solve(candidate.method.name, tol=rtol)
                    findings.state("has bounds around the same optimum", *overlap(found, expected, rtol))
    if entry.planted is not None:
        with findings.part("the planted value"):
            planted = entry.planted(np.random.default_rng(0))
            found, value = planted.formulation.solve(tol=rtol), planted.value
            inside = planted_between(found.lower, found.upper, value)
            findings.state("is between the bounds", inside, f"{value!r} and {found.certificate}")
            close = abs(found.value - value) <= 2 * rtol * abs(value)
            findings.state("is reached", close, f"{found.value!r} for {value!r}")
    return findings.done()


def example(entry: Entry, seed: int) -> Formulation:
    """Return the example of a seed, which must be a `Formulation`."""
    made = entry.example(np.random.default_rng(seed))
    require(made, Formulation, f"the check of example(rng) of {entry.name}", "Return one.")
    return made


def check_example(findings: Findings, entry: Entry, seed: int, rtol: float) -> None:
    """Check the example of one seed, but for methods and planted optima."""
    state, formulation = findings.state, example(entry, seed)
    problem, weights = formulation.problem, formulation.weights
    state("the problem is DCP", problem.is_dcp())
    solution = formulation.solve(tol=rtol)
    state(f"the certified gap is at most {rtol:g}", solution.gap <= rtol, solution.certificate)

    def is_optimal(value: Any, factor: int = 1) -> tuple[bool, Any]:
        slack = factor * rtol * size(solution)
        return value is not None and abs(value - solution.value) <= slack, value

    state("the variables hold the value", *is_optimal(problem.value))
    again = certify(problem, solution)
    state("the point is certified again", again.gap <= rtol, again)
    state("both intervals of bounds overlap", *overlap(again, solution, rtol))
    with findings.part("the dual"):
        check_dual(findings, formulation, solution, rtol)
    for name, make in formulation.programmes.items():
        with findings.part(f"the programme {name!r}"):
            one = make()
            state("is DCP", one.problem.is_dcp())
            state("is a new one at every call", make().problem is not one.problem)
            other = example(entry, seed).solve("exact", programme=name, tol=rtol)
            state("has the same optimum", *is_optimal(other.value, 2))
    for k, learned in enumerate(solution.learned):
        with findings.part(f"risk {k}"):
            shape = (learned.n_points,)
            state("the kernel is finite", *filled(learned.kernel, shape * 2))
            if learned.n:
                state("predictions are finite", *filled(solution.decision_function(risk=k), shape))
    if weights is not None:
        state("the weights are finite", *filled(weights.value, weights.shape))
    twin = example(entry, seed).solve(tol=rtol)
    state("the example is the same at every call with its seed", *is_optimal(twin.value))


def check_dual(findings: Findings, formulation: Formulation, solution: Solution, rtol: float) -> None:
    """Check that the dual is a new problem, and that both problems' bounds admit the claim."""
    state, dual = findings.state, formulation.dual()
    is_problem = isinstance(dual, cp.Problem)
    state("is a cp.Problem", is_problem, type(dual).__name__)
    state("is DCP", is_problem and dual.is_dcp())
    state("is a new problem at every call", formulation.dual() is not dual)
    found = solve(dual, tol=rtol)
    state("is certified", found.gap <= DUAL_FACTOR * rtol, found.certificate)
    slack = rtol * max(size(solution), size(found))
    above = found.upper >= solution.lower - slack  # the optimum of the dual can be the larger one
    below = found.lower <= solution.upper + slack
    minimises = isinstance(formulation.problem.objective, cp.Minimize)
    holds = {
        "equal": above and below,
        "upper": above,
        "lower": below,
        "relaxation": below if minimises else above,
    }[formulation.claim]
    state(f"is {formulation.claim!r}", holds, between(found, solution))


def filled(values: Any, shape: tuple[int, ...]) -> tuple[bool, str]:
    """Return whether an array has a shape and finite entries, and what to report if it has not."""
    fits = values is not None and np.shape(values) == shape and bool(np.isfinite(values).all())
    return fits, f"shape {np.shape(values)} for {shape}"


def overlap(one: Any, two: Any, rtol: float) -> tuple[bool, str]:
    """Return whether two intervals of bounds overlap, and what to report if they do not."""
    slack = rtol * size(two)
    return one.lower <= two.upper + slack and two.lower <= one.upper + slack, between(one, two)


def between(one: Any, two: Any) -> str:
    """Return two intervals of bounds as text."""
    return f"[{one.lower:.9g}, {one.upper:.9g}] against [{two.lower:.9g}, {two.upper:.9g}]"


def size(bounds: Any) -> float:
    """Return the size of the optimum, to which tolerances are relative."""
    return float(max(abs(bounds.lower), abs(bounds.upper), SMALLEST_SIZE))

"""`check_formulation`: a formulation on its examples, by the tests that those of kernelopt pass."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import cvxpy as cp
import numpy as np

from kernelopt.catalog import Entry, Formulation
from kernelopt.certificates import certify
from kernelopt.errors import ParameterError
from kernelopt.methods.selection import applicable
from kernelopt.methods.solution import Solution
from kernelopt.methods.solve import solve
from kernelopt.structure.structure import Structure
from kernelopt.testing.findings import Findings

RTOL = 1e-5  # what conic solvers reach on small problems
DUAL_FACTOR = 10  # a dual by hand may be solved less accurately than the problem
PLANTED_ROUNDING = 1e-9  # relative: a planted value differs so much from that of its rounded data, at most
SMALLEST_SIZE = 1e-3  # of a value that tolerances are relative to


def check_formulation(
    entry: Entry, *, seeds: Sequence[int] = (0, 1, 2), rtol: float = RTOL, methods: bool = True
) -> Findings:
    """Check a formulation on its examples: certified, compared with its dual, its programmes and all methods.

    The problem may have several risks, shared weights, no weights, no risk, and be a minimisation or a
    maximisation. It is checked that

    * the problem, the dual and the programmes are DCP, and the last two are new problems at every call;
    * the gap of `solve()` is at most rtol, and the variables have values with the value of the solution;
    * `certify` at the values of the solution has a gap of at most rtol, and bounds that overlap with its own;
    * the certified optimum of the dual relates to that of the problem as `claim` says;
    * every programme leads to a point of the learning problem with the same optimum;
    * kernels and predictions are finite and have the shapes of the points;
    * every method that applies has bounds that contain the same optimum;
    * a planted optimum, if the entry has one, lies between the bounds, and is attained.

    Parameters
    ----------
    entry : Entry
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
    """
    if not isinstance(entry, Entry):
        raise ParameterError(
            f"check_formulation takes an Entry, got {type(entry).__name__}. Make one: "
            "extend.Entry('package.builder', builder, 'labels', example); example(rng) returns a Formulation."
        )
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
        make: Any = entry.planted
        with findings.part("the planted value"):
            planted = make(np.random.default_rng(0))
            found, value = planted.formulation.solve(tol=rtol), planted.value
            slack = PLANTED_ROUNDING * abs(value)
            inside = found.lower - slack <= value <= found.upper + slack
            findings.state("is between the bounds", inside, f"{value!r} and {found.certificate}")
            close = abs(found.value - value) <= 2 * rtol * abs(value)
            findings.state("is reached", close, f"{found.value!r} for {value!r}")
    findings.raise_if_wrong()
    return findings


def example(entry: Entry, seed: int) -> Formulation:
    """Return the example of a seed, which must be a `Formulation`."""
    made = entry.example(np.random.default_rng(seed))
    if not isinstance(made, Formulation):
        raise ParameterError(f"example(rng) must return a Formulation, got {type(made).__name__}.")
    return made


def check_example(findings: Findings, entry: Entry, seed: int, rtol: float) -> None:
    """Check the example of one seed, but for methods and planted optima."""
    formulation = example(entry, seed)
    findings.state("the problem is DCP", formulation.problem.is_dcp())
    solution = formulation.solve(tol=rtol)
    findings.state(f"the certified gap is at most {rtol:g}", solution.gap <= rtol, solution.certificate)
    slack = rtol * size(solution)
    value = formulation.problem.value
    held = value is not None and abs(value - solution.value) <= slack
    findings.state("the variables hold the value", held, value)
    again = certify(formulation.problem, solution)
    findings.state("the point is certified again", again.gap <= rtol, again)
    findings.state("both intervals of bounds overlap", *overlap(again, solution, rtol))
    with findings.part("the dual"):
        check_dual(findings, formulation, solution, rtol)
    for name, make in formulation.programmes.items():
        with findings.part(f"the programme {name!r}"):
            one = make()
            findings.state("is DCP", one.problem.is_dcp())
            findings.state("is a new one at every call", make().problem is not one.problem)
            other = example(entry, seed).solve("exact", programme=name, tol=rtol)
            findings.state(
                "has the same optimum", abs(other.value - solution.value) <= 2 * slack, other.value
            )
    for k, learned in enumerate(solution.learned):
        with findings.part(f"risk {k}"):
            shape = (learned.n_points,)
            findings.state("the kernel is finite", *filled(learned.kernel, shape * 2))
            if learned.n:
                findings.state("predictions are finite", *filled(solution.decision_function(risk=k), shape))
    if formulation.weights is not None:
        findings.state(
            "the weights are finite", *filled(formulation.weights.value, formulation.weights.shape)
        )
    twin = example(entry, seed).solve(tol=rtol)
    same = abs(twin.value - solution.value) <= slack
    findings.state("the example is the same at every call with its seed", same, twin.value)


def check_dual(findings: Findings, formulation: Formulation, solution: Solution, rtol: float) -> None:
    """Check that the dual is a new problem, and that its bounds and those of the problem admit the claim."""
    dual = formulation.dual()
    is_problem = isinstance(dual, cp.Problem)
    findings.state("is a cp.Problem", is_problem, type(dual).__name__)
    findings.state("is DCP", is_problem and dual.is_dcp())
    findings.state("is a new problem at every call", formulation.dual() is not dual)
    found = solve(dual, tol=rtol)
    findings.state("is certified", found.gap <= DUAL_FACTOR * rtol, found.certificate)
    slack = rtol * max(size(solution), size(found))
    above = found.upper >= solution.lower - slack  # the dual's optimum can be at least that of the problem
    below = found.lower <= solution.upper + slack
    minimises = isinstance(formulation.problem.objective, cp.Minimize)
    holds = {
        "equal": above and below,
        "upper": above,
        "lower": below,
        "relaxation": below if minimises else above,
    }[formulation.claim]
    brackets = f"[{found.lower:.9g}, {found.upper:.9g}] against [{solution.lower:.9g}, {solution.upper:.9g}]"
    findings.state(f"is {formulation.claim!r}", holds, brackets)


def filled(values: Any, shape: tuple[int, ...]) -> tuple[bool, str]:
    """Return whether an array has a shape and finite entries, and what to report if it has not."""
    fits = values is not None and np.shape(values) == shape and bool(np.isfinite(values).all())
    return fits, f"shape {np.shape(values)} for {shape}"


def overlap(one: Any, two: Any, rtol: float) -> tuple[bool, str]:
    """Return whether two intervals of bounds overlap, and what to report if they do not."""
    slack = rtol * size(two)
    fits = one.lower <= two.upper + slack and two.lower <= one.upper + slack
    return fits, f"[{one.lower:.9g}, {one.upper:.9g}] against [{two.lower:.9g}, {two.upper:.9g}]"


def size(bounds: Any) -> float:
    """Return the size of the optimum, to which tolerances are relative."""
    return float(max(abs(bounds.lower), abs(bounds.upper), SMALLEST_SIZE))

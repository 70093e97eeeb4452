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
        with findings.part(f"example {seed}"):
            check_example(findings, entry, seed, rtol)
    if methods and seeds:
        with findings.part("methods"):
            check_methods(findings, entry, seeds[0], rtol)
    if entry.planted is not None:
        with findings.part("planted"):
            check_planted(findings, entry, rtol)
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
    formulation, at = example(entry, seed), f"seed {seed}"
    check_record(findings, formulation, at)
    solution = formulation.solve(tol=rtol)
    certificate = solution.certificate
    findings.state(f"{at}: the certified gap is at most {rtol:g}", solution.gap <= rtol, certificate)
    slack = rtol * size(solution)
    value = formulation.problem.value
    findings.state(
        f"{at}: the variables hold the value",
        value is not None and abs(value - solution.value) <= slack,
        value,
    )
    again = certify(formulation.problem, solution)
    findings.state(f"{at}: the point is certified again", again.gap <= rtol, again)
    overlaps = again.lower <= solution.upper + slack and solution.lower <= again.upper + slack
    findings.state(f"{at}: both intervals of bounds overlap", overlaps, again)
    with findings.part(f"{at}: the dual"):
        check_dual(findings, formulation, solution, at, rtol)
    for name in formulation.programmes:
        with findings.part(f"{at}: the programme {name!r}"):
            other = example(entry, seed).solve("exact", programme=name, tol=rtol)
            agrees = abs(other.value - solution.value) <= 2 * slack
            findings.state(f"{at}: the programme {name!r} has the same optimum", agrees, other.value)
    with findings.part(f"{at}: the machines"):
        check_machines(findings, formulation, solution, at)
    twin = example(entry, seed).solve(tol=rtol)
    same = abs(twin.value - solution.value) <= slack
    findings.state(f"{at}: the example is the same at every call with its seed", same, twin.value)


def check_record(findings: Findings, formulation: Formulation, at: str) -> None:
    """Check that the problem, the dual and the programmes are DCP, and the last two new at every call."""
    findings.state(f"{at}: the problem is DCP", formulation.problem.is_dcp())
    with findings.part(f"{at}: dual()"):
        dual = formulation.dual()
        is_problem = isinstance(dual, cp.Problem)
        findings.state(f"{at}: dual() returns a cp.Problem", is_problem, type(dual).__name__)
        findings.state(f"{at}: the dual is DCP", is_problem and dual.is_dcp())
        findings.state(f"{at}: dual() makes a new problem", formulation.dual() is not dual)
    for name, make in formulation.programmes.items():
        with findings.part(f"{at}: programmes[{name!r}]"):
            one = make()
            findings.state(f"{at}: the programme {name!r} is DCP", one.problem.is_dcp())
            findings.state(f"{at}: programmes[{name!r}] makes a new one", make().problem is not one.problem)


def check_dual(
    findings: Findings, formulation: Formulation, solution: Solution, at: str, rtol: float
) -> None:
    """Check that the bounds of the dual and those of the problem admit the claim."""
    found = solve(formulation.dual(), tol=rtol)
    findings.state(f"{at}: the dual is certified", found.gap <= DUAL_FACTOR * rtol, found.certificate)
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
    findings.state(f"{at}: the dual is {formulation.claim!r}", holds, brackets)


def check_machines(findings: Findings, formulation: Formulation, solution: Solution, at: str) -> None:
    """Check the kernels, and the predictions of those that have a machine."""
    for k, learned in enumerate(solution.learned):
        which = f"{at}: " + (f"risk {k}: " if len(solution.learned) > 1 else "")
        N, K = learned.n_points, learned.kernel
        fits = K.shape == (N, N) and np.isfinite(K).all()
        findings.state(f"{which}the kernel is finite, of shape {(N, N)}", fits, K.shape)
        if not learned.n:
            continue
        values = solution.decision_function(risk=k)
        fits = values.shape == (N,) and np.isfinite(values).all()
        findings.state(f"{which}predictions are finite, of shape {(N,)}", fits, values.shape)
    if formulation.weights is not None:
        weights = formulation.weights.value
        filled = weights is not None and np.isfinite(np.asarray(weights)).all()
        findings.state(f"{at}: the weights are filled in", filled, weights)


def check_methods(findings: Findings, entry: Entry, seed: int, rtol: float) -> None:
    """Check that the bounds of every method that applies overlap with those of "auto"."""
    expected = example(entry, seed).solve(tol=rtol)
    slack = rtol * size(expected)
    for candidate in applicable(Structure(example(entry, seed).problem)):
        name = candidate.method.name
        with findings.part(f"the method {name!r}"):
            found = example(entry, seed).solve(name, tol=rtol)
            overlaps = found.lower <= expected.upper + slack and expected.lower <= found.upper + slack
            findings.state(f"{name!r} has bounds around the same optimum", overlaps, found.certificate)


def check_planted(findings: Findings, entry: Entry, rtol: float) -> None:
    """Check that the planted value lies between the certified bounds, and is attained."""
    make: Any = entry.planted
    planted = make(np.random.default_rng(0))
    found = planted.formulation.solve(tol=rtol)
    slack = rtol * abs(planted.value)
    inside = (
        found.lower - PLANTED_ROUNDING * abs(planted.value)
        <= planted.value
        <= found.upper + PLANTED_ROUNDING * abs(planted.value)
    )
    findings.state(
        "the planted value is between the bounds", inside, f"{planted.value!r} and {found.certificate}"
    )
    close = abs(found.value - planted.value) <= 2 * slack
    findings.state("the planted value is reached", close, f"{found.value!r} for {planted.value!r}")


def size(solution: Solution) -> float:
    """Return the size of the optimum, to which tolerances are relative."""
    return max(abs(solution.lower), abs(solution.upper), SMALLEST_SIZE)

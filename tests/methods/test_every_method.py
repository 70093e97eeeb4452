"""Every formulation of the catalogue by every registered method: what applies, and that all agree.

The problem of a formulation is the learning problem in words, so that any method that takes such a problem
takes the formulation. Which do is pinned in the table of docs/methods.md: a method that begins to refuse too
much is noticed.
"""

from __future__ import annotations

import re
import runpy
import warnings
from functools import cache
from pathlib import Path

import numpy as np
import pytest

import kernelopt as ko
from formulations import lp_norm
from kernelopt.methods.selection import METHODS
from tests.collected import problems_built
from tests.formulations.test_formulations import ENTRIES, KERNEL_ONLY
from tests.pages import printed_by, python_blocks

ROOT = Path(__file__).parents[2]
TOLERANCE = 1e-5
NEAR = (
    2 * TOLERANCE**0.5
)  # of kernels, relative to their largest entry, and of predictions: the root of the gap

REACHABLE = {  # gaps that a method may leave where it does not reach the tolerance, and why
    # The update (17) converges for p > 1; at p = 1 it is sublinear where a curved loss keeps kernels in use
    # that have nearly equal forms. The 1000 iterations end first.
    ("lanckriet.soft_margin_squared", "block-descent"): 1e-3,
    ("lanckriet.margin", "block-descent"): 1e-3,
    # A subgradient method on an l1 norm of a matrix: 1 / sqrt(iterations).
    ("similarity.single_kernel", "mirror-descent"): 1e-2,
}
ITERATIONS = {  # of those methods, where the gap moves no more: 1.5e-4, 1.6e-4, and 6e-3 (2.5e-3 after 1000)
    ("lanckriet.soft_margin_squared", "block-descent"): 200,
    ("lanckriet.margin", "block-descent"): 200,
    ("similarity.single_kernel", "mirror-descent"): 250,
}
FLAT = {"similarity.single_kernel"}  # the l1 fidelity: kernels far apart have nearly one value

BALL = ("exact", "newton", "interleaved", "block-descent", "cutting-plane")
PAIRS = [(name, method) for name in ENTRIES for method in METHODS]
SECONDS_EACH = {  # many steps: the same two methods are quicker with restricted_spectral and hard_margin
    ("similarity.single_kernel", "cutting-plane"),
    ("similarity.single_kernel", "mirror-descent"),
    ("similarity.kernel_per_similarity", "mirror-descent"),
    ("lanckriet.soft_margin", "mirror-descent"),
    ("lanckriet.soft_margin_squared", "mirror-descent"),
    ("lanckriet.qcqp", "mirror-descent"),
    ("lanckriet.block_norm", "mirror-descent"),
    ("lanckriet.margin", "mirror-descent"),
    ("lanckriet.rank_one", "mirror-descent"),
    ("similarity.kernel_per_similarity", "cutting-plane"),
}
pairs = pytest.mark.parametrize(
    ("name", "method"),
    [
        pytest.param(*pair, marks=[pytest.mark.slow] if pair in SECONDS_EACH else [], id="-".join(pair))
        for pair in PAIRS
    ],
)


def example(name):
    return ENTRIES[name].example(np.random.default_rng(0))


@cache
def matches(name):
    """What each method reads of the example, or why it does not apply."""
    structure = ko.Structure(example(name).problem)
    return {method.name: method.match(structure) for method in METHODS.values()}


@cache
def by(name, method):
    """The solution of the example by a method; a gap above the tolerance warns."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        options = {"max_iterations": n} if (n := ITERATIONS.get((name, method))) else {}
        solution = example(name).solve(method, **options)
    assert {w.category for w in caught} <= {ko.ConvergenceWarning}
    assert bool(caught) == (solution.status == "inaccurate")
    return solution


def predictions(solution):
    """The predictions, None where no machine is learned."""
    try:
        return solution.decision_function()
    except ko.InputError:
        return None


@pytest.mark.parametrize("exponent", [1.0, 4 / 3, 2.0])
def test_the_norms_of_mkl_are_taken_whatever_the_exponent(exponent):
    rng = np.random.default_rng(0)
    grams, y = ko.Grams.from_kernels([ko.gaussian(1.0), ko.linear()], rng.normal(size=(6, 2))), [1, -1] * 3
    for p in (exponent, np.inf):
        for built in (lp_norm.primal(grams, y, p=p), lp_norm.block_norm(grams, y, r=exponent)):
            structure = ko.Structure(built.problem)
            assert not [
                METHODS[m].match(structure) for m in BALL if isinstance(METHODS[m].match(structure), str)
            ]


@pairs
def test_a_method_agrees_with_the_exact_one_or_says_why_it_does_not_apply(name, method):
    reason = matches(name)[method]
    if isinstance(reason, str):
        with pytest.raises(ko.errors.MethodError, match=re.escape(f"{method!r} does not apply: {reason}")):
            example(name).solve(method)
        return
    solution, exact = by(name, method), by(name, "exact")
    assert solution.method == method
    limit = REACHABLE.get((name, method), TOLERANCE)
    assert solution.gap <= limit and (solution.status == "optimal") == (solution.gap <= TOLERANCE)
    digits = 1e-14 * max(1.0, abs(exact.value))  # closed forms leave brackets of no width at all
    assert solution.lower <= exact.upper + digits and exact.lower <= solution.upper + digits
    assert solution.lower <= solution.value <= solution.upper
    values, expected = predictions(solution), predictions(exact)
    assert (values is None) == (expected is None) == (name in KERNEL_ONLY)
    assert solution.kernel.shape == exact.kernel.shape
    if name not in FLAT:
        assert solution.kernel == pytest.approx(exact.kernel, abs=NEAR * np.abs(exact.kernel).max())
        assert values is None or values == pytest.approx(expected, abs=NEAR)


@pytest.mark.parametrize("name", ENTRIES)
def test_auto_takes_a_method_that_applies_and_meets_the_tolerance(name):
    solution = by(name, "auto")
    assert not isinstance(matches(name)[solution.method], str) and solution.gap <= TOLERANCE
    assert solution.lower <= by(name, "exact").upper + 1e-12 * abs(solution.value)


def test_the_tables_of_the_documentation_are_up_to_date():
    """What applies to the formulations, and all numbers and choices with their defaults."""
    script = runpy.run_path(str(ROOT / "docs" / "make_methods.py"))
    assert script["main"](["--check"]) == 0
    page = (ROOT / "docs" / "methods.md").read_text(encoding="utf-8")
    assert f"| `tol` | {ko.extend.DEFAULT_TOL:g} |" in page


def test_the_page_on_methods_runs_and_prints_what_it_says():
    with problems_built("methods.md") as built:
        for source, said in python_blocks((ROOT / "docs" / "methods.md").read_text(encoding="utf-8")):
            assert printed_by(source, "methods.md", {}) == said
    assert not built.check_duals()


def test_the_method_of_the_contributing_page_is_one():
    (source, _), *more = python_blocks((ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8"))
    assert not more and len(source.splitlines()) <= 60
    try:
        printed_by(source, "CONTRIBUTING.md", {})
        solution = example("lanckriet.soft_margin").solve("frank-wolfe", tol=1e-2)
        assert solution.status == "optimal" and solution.method == "frank-wolfe"
        assert solution.upper >= by("lanckriet.soft_margin", "exact").lower
        assert "frank-wolfe" in str(ko.explain(example("lanckriet.soft_margin").problem))
        with pytest.raises(ko.errors.MethodError, match="must lie on a simplex, p = 1, got p = 1.33"):
            example("lp_norm.primal").solve("frank-wolfe")
    finally:
        METHODS.pop("frank-wolfe", None)

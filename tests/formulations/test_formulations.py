"""Every formulation of the catalogue, by one harness: a new entry is tested on arrival.

Each example is solved and certified; its hand-written dual is solved on its own and compared as the claim
word says; the learned machine predicts (or, where only a kernel is learned, says so); and every programme
of the paper has the optimum of the problem in words.
"""

from __future__ import annotations

import copy
import pickle
import warnings
from functools import cache
from inspect import isfunction, signature

import cvxpy as cp
import numpy as np
import pytest

import kernelopt as ko
from formulations import lanckriet, linear_functional, lp_norm, similarity, triplet_lp
from kernelopt.extend import Programme
from kernelopt.language.terms import terms
from kernelopt.testing import check_formulation
from tests.every import every
from tests.problems import CLARABEL_RUNGS, SCS_RUNGS, solved

MODULES = (lanckriet, linear_functional, lp_norm, similarity, triplet_lp)
# Without an installed distribution there are no entry points: then the packages of this repository.
ENTRIES = ko.catalogue() or {entry.name: entry for module in MODULES for entry in module.CATALOGUE}
TOLERANCE = 1e-5
KERNEL_ONLY = {  # no machine
    name: entry
    for name, entry in ENTRIES.items()
    if entry.takes == "triplets" or name in ("lanckriet.gaussian_process", "lanckriet.completion")
}
MACHINES = {name: entry for name, entry in ENTRIES.items() if name not in KERNEL_ONLY}
entries = pytest.mark.parametrize("entry", ENTRIES.values(), ids=ENTRIES)
machines = pytest.mark.parametrize("entry", MACHINES.values(), ids=MACHINES)
kernels = pytest.mark.parametrize("entry", KERNEL_ONLY.values(), ids=KERNEL_ONLY)
seeds = pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.slow)])  # what needs one solve


def example(entry, seed):
    return entry.example(np.random.default_rng(seed))


@cache
def learned(name, seed):
    """An example and its solution. Several tests read them: one that writes makes an example of its own."""
    formulation = example(ENTRIES[name], seed)
    return formulation, formulation.solve()


@cache
def exactly(name, seed, programme):
    """The solution of an example by the exact method, from one of its programmes."""
    return example(ENTRIES[name], seed).solve("exact", programme=programme)


def by_default(name):
    """The solution of the first example by the programme that the exact method takes where none is named."""
    return exactly(name, 0, next(iter(example(ENTRIES[name], 0).programmes), "words"))


def slack(value):
    return TOLERANCE * max(1e-3, abs(value))


def test_there_are_entries():
    assert len(lanckriet.CATALOGUE) >= 10 and len(lp_norm.CATALOGUE) >= 6 and len(triplet_lp.CATALOGUE) >= 2
    assert {entry.name for module in MODULES for entry in module.CATALOGUE} <= set(ENTRIES)


@entries
def test_an_entry_is_complete(entry):
    formulation = example(entry, 0)
    package, _, name = entry.name.partition(".")
    assert package and name and entry.build.__name__ == name
    assert isinstance(formulation, ko.Formulation) and formulation.name == entry.name
    assert entry.takes in ("labels", "targets", "triplets", "similarities", "none")
    assert formulation.claim == "equal" and any(c.isdigit() for c in formulation.reference)
    card = entry.build.__doc__
    assert ".. [1]" in card and all(part in card for part in ("Parameters", "Returns", "References"))
    assert formulation.problem.is_dcp() and formulation.dual().is_dcp()
    for name, make in formulation.programmes.items():
        programme = make()
        assert isinstance(name, str) and isinstance(programme, Programme)


def test_every_formulation_stands_in_the_file_of_its_name():
    """And its card has its own display and example, which the doctests run."""
    for name, entry in ENTRIES.items():
        assert entry.build.__module__ == f"formulations.{name}"
        assert ".. math::" in entry.build.__doc__ and ">>> " in entry.build.__doc__, name


def test_every_dual_is_a_function_of_the_checked_data():
    """The arguments are listed and validated once, by the builder: the dual takes what came out of that."""
    for module in MODULES:
        for entry in module.CATALOGUE:
            dual = example(entry, 0).dual
            assert dual.func.__name__ == "dual" and not dual.keywords, entry.name
            assert dual.func.__module__.startswith(module.__name__) and dual.func.__doc__, entry.name
            assert type(dual.args[0]).__module__.startswith(module.__name__), entry.name


@entries
@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.slow)])
def test_an_entry_passes_the_checks_of_a_formulation(entry, seed):
    """Certified, with the claimed dual, programmes that lead to the optimum, and the planted value."""
    formulation, solution = learned(entry.name, seed)
    assert not check_formulation(entry, seeds=(seed,), methods=False).wrong
    assert solution.status == "optimal" and formulation.problem.status == cp.OPTIMAL
    if formulation.weights is None:  # a kernel that is no combination
        assert solution.weights is None
        assert formulation.kernel.value == pytest.approx(solution.kernel, rel=1e-9, abs=1e-12)
    else:
        assert formulation.weights.value == pytest.approx(solution.weights, rel=1e-9, abs=1e-12)
    if formulation.risks:  # the alpha of the machine proves less: weights are known to the root of the gap
        given = ko.certify(formulation.problem, alpha=solution.alpha)
        assert given.lower <= solution.upper and given.upper >= solution.lower


@entries
def test_the_two_solvers_agree_on_the_dual(entry):
    dual = example(entry, 0).dual()
    value = solved(dual, CLARABEL_RUNGS)
    linear = dual.is_lp()
    other = dual.solve(solver=cp.HIGHS, warm_start=False) if linear else solved(dual, SCS_RUNGS)
    assert abs(value - other) <= slack(value)


@machines
@seeds
def test_the_machine_predicts_all_points(entry, seed):
    formulation, solution = learned(entry.name, seed)
    N = formulation.kernel.shape[0]
    values = solution.decision_function()
    assert values.shape == (N,) and np.isfinite(values).all() and np.ptp(values) > 0
    n = solution.alpha.shape[-1]
    assert n <= N and solution.kernel.shape == (N, N)
    if solution.alpha.ndim == 2:  # a sum of functions, whose kernel need not be positive semidefinite
        grams = terms(formulation.kernel)[0].grams
        parts = zip(solution.weights, grams, solution.alpha, strict=True)
        expected = sum(w * (K[:, :n] @ a) for w, K, a in parts)
        assert values == pytest.approx(expected + solution.intercept, abs=1e-12)
        return
    assert values == pytest.approx(solution.kernel[:, :n] @ solution.alpha + solution.intercept, abs=1e-12)
    assert np.linalg.eigvalsh(solution.kernel)[0] >= -1e-8 * np.linalg.eigvalsh(solution.kernel)[-1]


@kernels
@seeds
def test_without_a_machine_there_is_the_kernel(entry, seed):
    formulation, solution = learned(entry.name, seed)
    assert formulation.risks == () and solution.alpha.size == 0
    K = solution.kernel
    assert K.shape == formulation.kernel.shape and np.isfinite(K).all() and np.ptp(K) > 0
    assert np.asarray(formulation.kernel.value) == pytest.approx(K, abs=1e-12)
    spectrum = np.linalg.eigvalsh(K)
    assert solution.is_psd == (spectrum[0] >= -1e-8 * np.abs(spectrum).max())
    with pytest.raises(ko.InputError, match="no machine was learned"):
        solution.decision_function()


COPIES = {
    "pickle": lambda formulation: pickle.loads(pickle.dumps(formulation)),  # noqa: S301 - our own
    "deepcopy": copy.deepcopy,
}


@cache
def solved_by_cvxpy(name):
    """An example that cvxpy solved, without this library."""
    formulation = example(ENTRIES[name], 0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Clarabel's opinion on the accuracy
        formulation.problem.solve(solver=cp.CLARABEL)
    return formulation


FIRST = [next(iter(module.CATALOGUE)).name for module in MODULES]  # one formulation of each paper
STATES = {
    "unsolved": lambda name: example(ENTRIES[name], 0),
    "solved": lambda name: learned(name, 0)[0],
    "solved by cvxpy": solved_by_cvxpy,
}


@every("duplicate", COPIES.values(), ids=COPIES)
@entries
def test_a_formulation_is_duplicated_with_its_values_and_shares_nothing(entry, duplicate):
    """A solved problem of cvxpy holds its solver, which does not pickle; a duplicate leaves it behind."""
    for name, state in STATES.items():
        if name != "solved by cvxpy" or entry.name in FIRST:  # what cvxpy leaves is in its problem
            check_duplicate(state(entry.name), duplicate)


def check_duplicate(one, duplicate):
    two = duplicate(one)
    assert type(two) is type(one) and type(two.problem) is type(one.problem)
    assert (two.problem.status, two.problem.value) == (one.problem.status, one.problem.value)
    mine, theirs = ({id(v) for v in f.problem.variables()} for f in (one, two))
    assert not mine & theirs
    for v, w in zip(one.problem.variables(), two.problem.variables(), strict=True):
        assert v.name() == w.name() and np.array_equal(v.value, w.value)


@entries
def test_a_duplicate_is_solved_like_the_original(entry):
    two = COPIES["pickle"](example(entry, 0))
    expected, solution = by_default(entry.name), two.solve("exact")
    assert solution.value == pytest.approx(expected.value, rel=1e-9)
    assert solution.kernel == pytest.approx(expected.kernel, abs=1e-6 * np.abs(expected.kernel).max())
    assert np.asarray(two.kernel.value) == pytest.approx(solution.kernel, abs=1e-12)
    if two.weights is not None:  # expressions of the duplicate's own variables
        assert two.weights.value == pytest.approx(solution.weights, abs=1e-12)
    assert solved(two.dual()) == pytest.approx(expected.value, rel=TOLERANCE, abs=slack(0.0))


@entries
def test_a_copy_shares_the_problem(entry):
    formulation = example(entry, 0)
    other = copy.copy(formulation)
    assert type(other) is type(formulation) and other is not formulation
    assert vars(other) == vars(formulation) and other.problem is formulation.problem


@entries
def test_a_solution_is_duplicated(entry):
    _, solution = learned(entry.name, 0)
    for duplicate in (*COPIES.values(), copy.copy):
        other = duplicate(solution)
        assert other is not solution and str(other) == str(solution)
        assert (other.value, other.lower, other.upper) == (solution.value, solution.lower, solution.upper)
        # kernels are evaluated anew, where the original may have their matrices: sums in another order
        K = solution.kernel
        np.testing.assert_allclose(other.kernel, K, rtol=1e-13, atol=1e-13 * np.abs(K).max())
        if entry.name not in KERNEL_ONLY:
            f = solution.decision_function()
            np.testing.assert_allclose(other.decision_function(), f, rtol=1e-12, atol=1e-12 * np.abs(f).max())


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.__name__)
def test_every_builder_is_in_the_catalogue(module):
    public = [getattr(module, name) for name in module.__all__]
    kinds = ("ko.Formulation", "Strategy")  # the latter is one, with routes of its own
    builders = {f for f in public if isfunction(f) and signature(f).return_annotation in kinds}
    assert builders == {entry.build for entry in module.CATALOGUE}

"""Every formulation of the catalogue, by one harness: a new entry is tested on arrival.

Each example is solved and certified; its hand-written dual is solved on its own and compared as the claim
word says; the learned machine predicts (or, where only a kernel is learned, says so); and the same problem
in words has the same optimum.
"""

from __future__ import annotations

from inspect import isfunction, signature

import cvxpy as cp
import numpy as np
import pytest

import kernelopt as ko
import kernelopt.catalog
from formulations import lanckriet, linear_functional, lp_norm, similarity, triplet_lp
from kernelopt.language.terms import terms
from tests.problems import solved

MODULES = (lanckriet, linear_functional, lp_norm, similarity, triplet_lp)
# Without an installed distribution there are no entry points: then the packages of this repository.
ENTRIES = ko.catalogue() or {entry.name: entry for module in MODULES for entry in module.CATALOGUE}
SEEDS = (0, 1, 2)
TOLERANCE = 1e-5
CLAIMS = {  # how the optimum of the dual, d, relates to that of the programme, p; sign = -1 for Maximize
    "equal": lambda d, p, sign, slack: abs(d - p) <= slack,
    "upper": lambda d, p, sign, slack: d >= p - slack,
    "lower": lambda d, p, sign, slack: d <= p + slack,
    "relaxation": lambda d, p, sign, slack: sign * d <= sign * p + slack,
}
KERNEL_ONLY = {name: entry for name, entry in ENTRIES.items() if entry.takes == "triplets"}  # no machine
MACHINES = {name: entry for name, entry in ENTRIES.items() if name not in KERNEL_ONLY}
entries = pytest.mark.parametrize("entry", ENTRIES.values(), ids=ENTRIES)
machines = pytest.mark.parametrize("entry", MACHINES.values(), ids=MACHINES)
kernels = pytest.mark.parametrize("entry", KERNEL_ONLY.values(), ids=KERNEL_ONLY)
seeds = pytest.mark.parametrize("seed", SEEDS)


def example(entry, seed):
    return entry.example(np.random.default_rng(seed))


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
    assert isinstance(formulation, ko.Formulation) and formulation.name.startswith(f"{package}.")
    assert entry.takes in ("labels", "targets", "triplets", "similarities", "none")
    assert formulation.claim in CLAIMS and any(c.isdigit() for c in formulation.reference)
    assert ".. [1]" in entry.build.__doc__  # a theorem card
    assert formulation.problem.is_dcp() and formulation.words.is_dcp() and formulation.dual().is_dcp()


@entries
@seeds
def test_the_example_is_solved_and_certified(entry, seed):
    formulation = example(entry, seed)
    solution = formulation.solve()
    assert solution.status == "optimal" and solution.gap <= TOLERANCE
    assert solution.lower <= solution.value <= solution.upper
    assert formulation.problem.status == cp.OPTIMAL
    # the programme's own number, at the solver's own point
    assert abs(float(formulation.problem.value) - solution.value) <= slack(solution.value)
    if formulation.weights is None:  # a kernel that is no combination
        assert solution.weights is None
        assert formulation.kernel.value == pytest.approx(solution.kernel, rel=1e-9, abs=1e-12)
    else:
        assert formulation.weights.value == pytest.approx(solution.weights, rel=1e-9, abs=1e-12)
    # certified again from what came out alone
    given = ko.certify(formulation.words, alpha=solution.alpha if formulation.risks else None)
    assert given.gap <= TOLERANCE and given.lower <= solution.upper and given.upper >= solution.lower


@entries
@seeds
def test_the_dual_keeps_its_claim(entry, seed):
    formulation = example(entry, seed)
    bound = solved(formulation.dual())  # by Clarabel, by SCS where it gives up
    solution = formulation.solve()
    sign = -1 if isinstance(formulation.problem.objective, cp.Maximize) else 1
    assert CLAIMS[formulation.claim](bound, solution.value, sign, slack(solution.value))


@entries
@seeds
def test_weak_duality_at_the_returned_point(entry, seed):
    formulation = example(entry, seed)
    solution = formulation.solve()
    dual = formulation.dual()
    bound = solved(dual)
    if formulation.claim in ("equal", "relaxation"):
        sides = [formulation.problem, dual]
        low, high = sorted(sides, key=lambda p: isinstance(p.objective, cp.Minimize))
        assert isinstance(low.objective, cp.Maximize) and isinstance(high.objective, cp.Minimize)
        assert float(low.value) <= float(high.value) + slack(bound)
    if formulation.claim == "equal":  # no dual point is beyond a certified bound
        assert solution.lower - slack(bound) <= bound <= solution.upper + slack(bound)


@entries
def test_the_two_solvers_agree_on_the_dual(entry):
    dual = example(entry, 0).dual()
    values = []
    other = (cp.HIGHS, {}) if dual.is_lp() else (cp.SCS, {"eps": 1e-9, "max_iters": 100_000})
    for solver, options in ((cp.CLARABEL, {}), other):
        dual.solve(solver=solver, warm_start=False, **options)
        assert dual.status == cp.OPTIMAL
        values.append(float(dual.value))
    assert abs(values[0] - values[1]) <= slack(values[0])


@machines
@seeds
def test_the_machine_predicts_all_points(entry, seed):
    formulation = example(entry, seed)
    solution = formulation.solve()
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
    formulation = example(entry, seed)
    solution = formulation.solve()
    assert formulation.risks == () and solution.alpha.size == 0
    K = solution.kernel
    assert K.shape == formulation.kernel.shape and np.isfinite(K).all() and np.ptp(K) > 0
    assert np.asarray(formulation.kernel.value) == pytest.approx(K, abs=1e-12)
    spectrum = np.linalg.eigvalsh(K)
    assert solution.is_psd == (spectrum[0] >= -1e-8 * np.abs(spectrum).max())
    with pytest.raises(ko.InputError, match="no machine was learned"):
        solution.decision_function()


@entries
@seeds
def test_the_words_have_the_same_optimum(entry, seed):
    solution = example(entry, seed).solve()
    words = example(entry, seed).words
    said = ko.solve(words)
    assert said.gap <= TOLERANCE
    assert abs(said.value - solution.value) <= slack(solution.value)
    digits = 1e-14 * max(1.0, abs(solution.value))  # closed forms leave brackets of no width at all
    assert said.lower <= solution.upper + digits and solution.lower <= said.upper + digits  # they overlap


@entries
def test_an_example_is_reproducible(entry):
    one, two = (example(entry, 3).solve() for _ in range(2))
    assert one.value == two.value and (one.kernel == two.kernel).all()
    assert one.weights is two.weights is None or (one.weights == two.weights).all()
    assert example(entry, 4).solve().value != one.value


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.__name__)
def test_every_builder_is_in_the_catalogue(module):
    public = [getattr(module, name) for name in module.__all__]
    kinds = ("ko.Formulation", "Strategy")  # the latter is one, with routes of its own
    builders = {f for f in public if isfunction(f) and signature(f).return_annotation in kinds}
    assert builders == {entry.build for entry in module.CATALOGUE}


def test_a_name_is_used_once(monkeypatch):
    class Point:
        name = "one"

        @staticmethod
        def load():
            return lanckriet

    monkeypatch.setattr(kernelopt.catalog, "entry_points", lambda group: [Point])
    assert list(ko.catalogue()) == [entry.name for entry in lanckriet.CATALOGUE]
    monkeypatch.setattr(kernelopt.catalog, "entry_points", lambda group: [Point, Point])
    with pytest.raises(ko.InputError, match="formulation names must be unique, got .* twice. Rename one"):
        ko.catalogue()

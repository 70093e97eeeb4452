"""Planted optima: the closed form of the value, against certificates and exact solves, over all knobs."""

from __future__ import annotations

import cvxpy as cp
import numpy as np
import pytest

import kernelopt as ko
from kernelopt.language.terms import terms
from tests.formulations.test_formulations import ENTRIES
from tests.problems import solved

KNOBS = {
    "degenerate, with duplicates": {"degenerate": True, "duplicates": 2},
    "one kernel, all labelled": {"n": 8, "m": 1, "unlabelled": 0},
    "ill-conditioned": {"n": 12, "m": 4, "condition": 1e4},
}
HARD = ("lanckriet.hard_margin", "lanckriet.sdp", "lp_norm.primal")  # those that can be infeasible
entries = pytest.mark.parametrize("entry", ENTRIES.values(), ids=ENTRIES)
# Each entry with one knob, in turn; slow: with the others.
with_knob = pytest.mark.parametrize(("entry", "knob"), [
    pytest.param(
        entry, knob, id=f"{name}, {knob}", marks=() if k % len(KNOBS) == at else pytest.mark.slow
    )
    for k, (name, entry) in enumerate(ENTRIES.items())
    for at, knob in enumerate(KNOBS)
])  # fmt: skip


def plant(entry, seed=0, **knobs):
    entry = ENTRIES[entry] if isinstance(entry, str) else entry
    return entry.planted(np.random.default_rng(seed), **knobs)


# What conic solvers leave of a log det of precisions of condition 1e4, with the routines of some processors:
# the bounds hold, and are far apart.
ROUGH = {("lanckriet.gaussian_process", "ill-conditioned"): 0.1}


def size(value):
    return max(abs(value), 1e-3)


@with_knob
def test_the_value_is_attained_and_no_point_is_better(entry, knob):
    """The planted point has the planted value, and the bound by duality meets it."""
    planted = plant(entry, **KNOBS[knob])
    assert not planted.infeasible
    problem, value = planted.formulation.problem, planted.value
    if planted.point:
        found = ko.certify(problem, dict(planted.point), alpha=list(planted.alphas) or None)
        attained = found.lower if isinstance(problem.objective, cp.Maximize) else found.upper
        assert attained == pytest.approx(value, rel=1e-10, abs=1e-14)
    else:
        found = planted.formulation.solve("exact")
    assert found.lower <= value + 1e-12 * size(value) and value - 1e-12 * size(value) <= found.upper
    assert found.upper - found.lower <= ROUGH.get((entry.name, knob), 2e-6) * size(value)


@with_knob
def test_the_dual_by_hand_has_the_planted_value(entry, knob):
    planted = plant(entry, seed=1, **KNOBS[knob])
    assert solved(planted.formulation.dual()) == pytest.approx(planted.value, rel=2e-6, abs=1e-7)


@entries
def test_a_seed_gives_one_problem_and_another_seed_another(entry):
    one, two, three = plant(entry), plant(entry), plant(entry, seed=5)
    assert one.value == two.value != three.value


@entries
def test_duplicates_and_unlabelled_points_are_in_the_problem(entry):
    few, many = plant(entry, duplicates=0), plant(entry, duplicates=2, unlabelled=0)
    points = [p.formulation.kernel.shape[0] for p in (few, many)]
    assert points[1] == 10 and points[0] in (10, 12)
    assert many.formulation.problem.is_dcp()


@entries
def test_infeasible_data_are_proved_so_or_refused(entry):
    if entry.name not in HARD:
        with pytest.raises(ko.errors.ParameterError, match="has a feasible point for all data"):
            plant(entry, infeasible=True)
        return
    planted = plant(entry, infeasible=True)
    assert planted.infeasible and planted.value == np.inf and not planted.point
    with pytest.raises(ko.InfeasibleError):
        planted.formulation.solve()


@pytest.mark.parametrize("p", [1, 1.5, 2, 7, np.inf])
def test_every_ball_is_planted(p):
    for knobs in KNOBS.values():
        planted = plant("lp_norm.primal", 2, p=p, loss=ko.squared_hinge(2.0), **knobs)
        found = ko.certify(planted.formulation.problem, dict(planted.point), alpha=list(planted.alphas))
        assert found.lower == pytest.approx(planted.value, rel=1e-9)
        assert found.upper == pytest.approx(planted.value, rel=1e-9)


@pytest.mark.parametrize("r", [1, 1.2, 2, 3, np.inf])
def test_every_block_norm_is_planted(r):
    planted = plant("lp_norm.block_norm", 3, r=r, duplicates=1)
    assert solved(planted.formulation.dual()) == pytest.approx(planted.value, rel=1e-6)
    assert ko.certify(planted.formulation.problem).lower <= planted.value * (1 + 1e-12)


LOSSES = {
    "hinge": ko.hinge(2.0),
    "squared_hinge": ko.squared_hinge(3.0),
    "huberized_hinge": ko.huberized_hinge(1.0, 0.5),
    "logistic": ko.logistic(1.5),
    "hard_margin": ko.hard_margin(),
    "squared": ko.squared(0.7),
    "epsilon_insensitive": ko.epsilon_insensitive(1.0, 0.1),
}


@pytest.mark.parametrize("loss", LOSSES.values(), ids=LOSSES)
@pytest.mark.parametrize("degenerate", [False, True])
def test_every_loss_is_planted(loss, degenerate):
    for name in ("lp_norm.primal", "lp_norm.tikhonov"):
        planted = plant(name, 4, p=2.0, loss=loss, degenerate=degenerate)
        found = ko.certify(planted.formulation.problem, dict(planted.point), alpha=list(planted.alphas))
        assert found.upper == pytest.approx(planted.value, rel=1e-9)
        assert found.lower == pytest.approx(planted.value, rel=1e-6)


@pytest.mark.parametrize("fidelity", ["l1", "frobenius", "squared_frobenius"])
def test_every_fidelity_is_planted(fidelity):
    for name in ["single_kernel", "kernel_per_similarity"][: 1 if fidelity == "l1" else 2]:
        planted = plant(f"similarity.{name}", 5, fidelity=fidelity)
        found = ko.certify(planted.formulation.problem, dict(planted.point), alpha=list(planted.alphas))
        assert found.upper == pytest.approx(planted.value, rel=1e-9)
        assert found.lower == pytest.approx(planted.value, rel=1e-6)


@pytest.mark.parametrize("condition", [10.0, 1e6])
def test_the_spectrum_follows_the_condition(condition):
    planted = plant(ENTRIES["lp_norm.primal"], condition=condition, unlabelled=0)
    (term,) = terms(planted.formulation.kernel)
    for K in term.grams:
        spectrum = np.linalg.eigvalsh(K)  # of R and one more: they interlace
        assert condition / 10 <= spectrum[-1] / spectrum[0] <= 100 * condition


def test_degenerate_kernels_have_low_rank():
    planted = plant(ENTRIES["lp_norm.primal"], degenerate=True)
    (term,) = terms(planted.formulation.kernel)
    assert [np.linalg.matrix_rank(K, tol=1e-9) for K in term.grams] == [3, 3, 3]


WRONG_KNOBS = {
    "odd": ({"n": 7}, "n must be even"),
    "few": ({"n": 4}, "n must be an integer from 6 on"),
    "no kernel": ({"m": 0}, "m must be an integer from 1 on"),
    "bool": ({"m": True}, "m must be an integer"),
    "many duplicates": ({"duplicates": 9}, "duplicates must be at most m = 3"),
    "condition": ({"condition": 0.5}, "condition must be at least 1"),
    "word": ({"degenerate": "no"}, "degenerate must be True or False"),
}


@pytest.mark.parametrize(("asked", "said"), WRONG_KNOBS.values(), ids=WRONG_KNOBS)
def test_wrong_knobs_are_refused(asked, said):
    with pytest.raises(ko.errors.ParameterError, match=said):
        plant(ENTRIES["lanckriet.qcqp"], **asked)

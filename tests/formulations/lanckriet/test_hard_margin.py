"""Lanckriet et al. (2004): hard margins."""

from __future__ import annotations

import cvxpy as cp
import numpy as np
import pytest

import kernelopt as ko
from formulations import lanckriet
from tests.formulations.lanckriet.cases import KS, Y, both_signs, close, n
from tests.formulations.lanckriet.test_measure import fixed
from tests.problems import solved


def inseparable(seed):
    """Ten noisy labels in the plane, two unlabelled points, and kernels that stay in the plane."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(12, 2))
    y = np.where(rng.normal(size=10) > 0, 1.0, -1.0)
    y[:2] = 1.0, -1.0
    return np.array([X @ X.T, np.outer(X[:, 0], X[:, 0])]), y


def check_proof(error, Ks, y):
    """The proof in the words of the message: y a >= 0, sum |a| = 2, sum a = 0, and K_i a = 0."""
    alpha = error.proof["alpha"]
    assert (y * alpha >= 0).all() and np.abs(alpha).sum() == close(2) and abs(alpha.sum()) <= 1e-9
    labelled = Ks[:, : y.size, : y.size]
    assert np.abs(labelled @ alpha).max() <= 1e-4 * np.abs(labelled).max()
    assert max(alpha @ K @ alpha for K in labelled) <= 1e-9 * np.abs(labelled).max()


@both_signs
@pytest.mark.parametrize("seed", [0, 10, 11])
def test_a_hard_margin_that_no_kernel_can_meet(weights, seed):
    Ks, y = inseparable(seed)
    for written in (
        lanckriet.hard_margin(Ks, y, weights=weights),
        lanckriet.margin(Ks, y, weights=weights),
        lanckriet.sdp(Ks, y, weights=weights),
        lanckriet.block_norm(Ks, y),
    ):
        with pytest.raises(
            ko.InfeasibleError, match="got none in the set.*Use soft_margin, soft_margin_squared or"
        ) as e:
            written.solve()
        check_proof(e.value, Ks, y)
    with pytest.raises(ko.InfeasibleError, match="got none in the set"):
        ko.solve(lanckriet.hard_margin(Ks, y, weights=weights).problem)
    with pytest.raises(ko.InfeasibleError, match="got none in the set"):
        lanckriet.rank_one(np.random.default_rng(seed).normal(size=(12, 2)), y).solve()


@both_signs
@pytest.mark.parametrize("points", [[0, 0, 1, 2, 3, 4, 5], [3, 1, 2, 5, 3, 0]])
def test_a_point_with_both_labels(weights, points):
    Ks = KS[:, points][:, :, points]
    twin = points.index(points[0], 1)
    y = np.array([1.0, -1, 1, -1, 1, -1])[: len(points)]
    y[0], y[twin] = 1.0, -1.0
    with pytest.raises(ko.InfeasibleError, match="got none in the set.*Use soft_margin") as caught:
        lanckriet.hard_margin(Ks, y, weights=weights).solve()
    check_proof(caught.value, Ks, y)


@pytest.mark.parametrize("seed", range(4))
def test_hulls_that_touch(seed):
    # a kernel of full rank but one, where a point of one class is a mean of points of the other
    rng = np.random.default_rng(seed)
    F = rng.normal(size=(10, 13))
    y = np.where(rng.normal(size=10) > 0, 1.0, -1.0)
    y[0], y[1:4] = 1.0, -1.0
    F[0] = rng.dirichlet(np.ones(3)) @ F[1:4]
    Ks = (F @ F.T)[None]
    with pytest.raises(ko.InfeasibleError, match="got none in the set") as caught:
        lanckriet.hard_margin(Ks, y).solve()
    check_proof(caught.value, Ks, y)


@both_signs
@pytest.mark.parametrize("criterion", [{"C": 0.6}, {"tau": 0.5}, {"C": 0.6, "tau": 0.5}, {"tau": "learned"}])
def test_soft_criteria_are_always_attained(weights, criterion):
    Ks, y = inseparable(0)
    solution = lanckriet.margin(Ks, y, weights=weights, **criterion).solve()
    assert solution.gap <= 1e-5 and 0 < solution.value < 100


@pytest.mark.parametrize("kappa", [0.1, 1.0, 30.0])
def test_the_separability_test_is_one_over_omega(kappa):
    K = kappa * KS[0][:n, :n]
    a = cp.Variable(n, nonneg=True)
    form = cp.quad_form(cp.multiply(Y, a), cp.psd_wrap(K))
    least = solved(cp.Problem(cp.Minimize(form), [cp.sum(a) == 1, Y @ a == 0]))
    assert 1 / least == close(fixed(K, Y).value)


def test_statuses_of_solvers_are_not_proofs():
    # Interior-point solves of the LMI on inseparable data have come back "optimal" at 1e7, or failed;
    # the QCQP is unbounded, and says so. `solve` does not ask them.
    seen = []
    for seed in (0, 10, 11):
        Ks, y = inseparable(seed)
        qcqp = lanckriet.qcqp(Ks, y).programmes["qcqp"]().problem
        qcqp.solve(solver=cp.CLARABEL, warm_start=False)
        assert qcqp.status == cp.UNBOUNDED
        for weights in ("nonnegative", "free"):
            lmi = lanckriet.sdp(Ks, y, weights=weights).programmes["sdp"]().problem
            try:
                lmi.solve(solver=cp.CLARABEL, warm_start=False)
            except (cp.SolverError, UserWarning):
                continue
            seen.append((lmi.status, float(lmi.value)))
    assert all(status == cp.INFEASIBLE or value > 1e6 for status, value in seen)


def test_a_tiny_margin_warns():
    # two points of opposite labels at distance 1e-3 of unit kernels: omega is about 4e6
    X = np.array([0.0, 1e-3, 2.0, 3.0])
    K = np.exp(-((X[:, None] - X) ** 2) / 2)
    with pytest.warns(ko.errors.ConditionWarning, match="squared distance of only.*Prefer a soft margin"):
        solution = lanckriet.hard_margin(K[None], [1, -1, 1, -1]).solve()
    assert solution.value > 1e6

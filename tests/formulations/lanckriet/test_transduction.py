"""Lanckriet et al. (2004): transduction and induction."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

import kernelopt as ko
from formulations import lanckriet
from tests.every import every
from tests.formulations.lanckriet.cases import (
    CRITERIA,
    KS,
    N,
    Y,
    alternating,
    both_signs,
    close,
    criteria,
    learned,
    n,
    omega,
    on_data,
    random_kernels,
    with_learned,
)
from tests.formulations.lanckriet.test_measure import fixed
from tests.formulations.lanckriet.test_sdp import small_case


@with_learned
@both_signs
def test_the_svm_at_the_learned_kernel_has_the_learned_value(criterion, weights):
    _, solution = on_data(weights, **criterion)
    tau = solution.tau if criterion["tau"] == "learned" else criterion["tau"]
    assert omega(solution.kernel, Y, criterion.get("C", np.inf), tau) == close(solution.value)
    machine = fixed(solution.kernel[:n, :n], Y, C=criterion.get("C", np.inf), tau=tau)
    values = solution.kernel[:, :n] @ machine.alpha + machine.intercept
    found = solution.decision_function()
    assert found == pytest.approx(values, abs=1e-3)
    others = np.tensordot(solution.weights, KS, 1)[n:, :n]
    assert found[n:] == pytest.approx(others @ solution.alpha + solution.intercept, abs=1e-12)


def other_unlabelled_points():
    """The same labelled blocks and traces, all else about the unlabelled points different."""
    Ks = np.zeros_like(KS)
    Ks[:, :n, :n] = KS[:, :n, :n]
    rest = KS[:, n:, n:].trace(axis1=1, axis2=2)
    shares = np.random.default_rng(0).dirichlet(np.ones(N - n), size=3)
    Ks[:, range(n, N), range(n, N)] = rest[:, None] * shares
    return Ks


@with_learned
def test_unlabelled_points_enter_through_traces_alone(criterion):
    _, one = on_data(**criterion)
    two = learned(lanckriet.margin(other_unlabelled_points(), Y, **criterion))
    assert one.value == close(two.value)
    assert one.weights == pytest.approx(two.weights, abs=1e-6)
    assert one.decision_function()[:n] == pytest.approx(two.decision_function()[:n], abs=1e-5)


@pytest.mark.parametrize("criterion", [{}, {"tau": 0.05}])
def test_unlabelled_points_bound_free_signs(criterion):
    # The same labelled blocks and traces: where the unlabelled points are like nothing else, K(mu) >> 0
    # asks less, and a more negative weight is allowed.
    Ks, y = small_case(15)
    apart = np.zeros_like(Ks)
    apart[:, :6, :6] = Ks[:, :6, :6]
    apart[:, 6, 6] = Ks[:, 6, 6] + Ks[:, 7, 7]
    tied = [learned(lanckriet.margin(K, y, **criterion, trace=8.0)).value for K in (Ks, apart)]
    assert tied[0] == close(tied[1])
    close_by, far = (learned(lanckriet.sdp(K, y, **criterion, trace=8.0)) for K in (Ks, apart))
    assert far.upper < close_by.lower * 0.99
    assert far.weights.min() < close_by.weights.min() - 1e-3 < -1e-3


KERNELS = [ko.normalized(ko.gaussian(1.0)), ko.normalized(ko.polynomial(2)), ko.normalized(ko.linear())]
RAW = [ko.gaussian(1.0), 0.3 * ko.polynomial(2), ko.linear()]


def cloud(unlabelled, kernels=KERNELS, seed=16):
    """Kernels on 14 fixed labelled points and the first of 40 others, the labels, and all points."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n + 40, 3))
    y = np.sign(X[:n, 0] + X[:n, 1] * X[:n, 2] + 0.4 * rng.normal(size=n))
    y[:2] = 1.0, -1.0
    return ko.Grams.from_kernels(kernels, X[: n + unlabelled]), y, X


def test_normalised_kernels_have_trace_N():
    grams, _, X = cloud(7)
    assert grams.traces == pytest.approx(np.full(3, n + 7.0))
    raw = ko.Grams.from_kernels([ko.polynomial(2)], X[:5])
    d = np.sqrt(np.diag(raw.gram(0)))
    assert ko.normalized(ko.polynomial(2))(X[:5]) == pytest.approx(raw.gram(0) / np.outer(d, d))
    with pytest.raises(ko.InputError, match="must be positive between a point and itself.*Drop that point"):
        ko.Grams.from_kernels([ko.normalized(ko.linear())], np.zeros((2, 3))).gram(0)


@every(("criterion", "unlabelled"), alternating((1, 10, 40)))
def test_weights_do_not_depend_on_the_number_of_others(criterion, unlabelled):
    grams, y, _ = cloud(0)
    first = learned(lanckriet.margin(grams, y, **criterion))
    assert (first.weights > 1e-2).sum() > 1
    grams, y, _ = cloud(unlabelled)
    other = learned(lanckriet.margin(grams, y, **criterion))
    assert other.value == close(first.value)
    assert other.weights == pytest.approx(first.weights, abs=1e-6)
    assert other.decision_function()[:n] == pytest.approx(first.decision_function(), abs=1e-5)
    if criterion["tau"] == "learned":
        assert other.tau == pytest.approx(first.tau, abs=1e-6)


@criteria
def test_a_fixed_trace_leaves_the_hard_margin_alone(criterion):
    c = 20.0
    (near, y, _), (far, _, _) = cloud(2), cloud(40)
    one = learned(lanckriet.margin(near, y, **criterion, trace=c))
    two = learned(lanckriet.margin(far, y, **criterion, trace=c))
    shares = [s.weights / s.weights.sum() for s in (one, two)]
    if criterion == CRITERIA["hard margin"]:
        assert two.weights * (n + 40) / (n + 2) == pytest.approx(one.weights, abs=1e-3)
        assert shares[0] == pytest.approx(shares[1], abs=1e-3)
        assert two.decision_function()[:n] == pytest.approx(one.decision_function()[:n], abs=1e-3)
        assert two.value == close(one.value * (n + 40) / (n + 2))
    else:
        assert np.abs(shares[0] - shares[1]).max() > 1e-2


@with_learned
def test_new_points_are_predicted_as_if_they_had_been_there(criterion):
    grams, y, X = cloud(6)
    inductive = learned(lanckriet.margin(grams, y, **criterion))
    new = X[n + 6 :]
    predicted = inductive.decision_function(grams.cross(new))
    assert predicted.shape == (34,)
    transductive = learned(lanckriet.margin(cloud(40)[0], y, **criterion)).decision_function()[n + 6 :]
    assert predicted == pytest.approx(transductive, abs=1e-5)
    assert inductive.decision_function(grams.cross(new)[:, :, :n]) == pytest.approx(predicted, abs=1e-12)
    K = np.tensordot(inductive.weights, np.stack([k(new, X[:n]) for k in KERNELS]), 1)
    assert predicted == pytest.approx(K @ inductive.alpha + inductive.intercept, abs=1e-12)


@with_learned
def test_raw_kernels_predict_alike_where_all_traces_grow_alike(criterion):
    # What the QCQP sees is c / r_i. The new points are the labelled ones, turned around the origin: raw
    # kernels have the same diagonal there, so that every r_i doubles, and with it the default budget.
    grams, y, X = cloud(0, RAW)
    turn = np.linalg.qr(np.random.default_rng(1).normal(size=(3, 3)))[0]
    new = X[:n] @ turn
    inductive = learned(lanckriet.margin(grams, y, **criterion))
    both = ko.Grams.from_kernels(RAW, np.vstack([X[:n], new]))
    assert both.traces == pytest.approx(2 * grams.traces) and np.ptp(grams.traces) > 10
    transductive = learned(lanckriet.margin(both, y, **criterion))
    assert inductive.value == close(transductive.value)
    assert inductive.weights == pytest.approx(transductive.weights, abs=1e-6)
    assert inductive.decision_function(grams.cross(new)) == pytest.approx(
        transductive.decision_function()[n:], abs=1e-4
    )
    # one kernel function, any points: the budget in proportion to its trace
    (few, _, _), (many, _, _) = cloud(6, RAW[1:2]), cloud(40, RAW[1:2])
    ratio = float(many.traces[0] / few.traces[0])
    if criterion["tau"] != "learned":
        one = learned(lanckriet.margin(few, y, **criterion, trace=5.0))
        two = learned(lanckriet.margin(many, y, **criterion, trace=5.0 * ratio))
        assert one.weights == pytest.approx(two.weights)
        assert one.decision_function(few.cross(X[n + 6 :])) == pytest.approx(
            two.decision_function()[n + 6 :], abs=1e-6
        )


@both_signs
def test_free_signs_are_refused_at_new_points(weights):
    grams, y, X = cloud(6)
    solution = learned(lanckriet.soft_margin(grams, y, C=0.6, weights=weights))
    cross = grams.cross(X[n + 6 :])
    if weights == "nonnegative":
        assert solution.decision_function(cross).shape == (34,)
        return
    message = (
        "got a kernel with free signs.*Learn with the new points among the N.*call decision_function\\(\\)"
    )
    with pytest.raises(ko.InputError, match=message):
        solution.decision_function(cross)
    assert solution.decision_function().shape == (n + 6,)


@pytest.mark.parametrize("norm", ["full", "train"])
def test_prediction_after_alignment(norm):
    grams, y, X = cloud(6)
    solution = learned(lanckriet.alignment(grams, y, norm=norm))
    K = np.tensordot(solution.weights, np.asarray(grams), 1)
    means = K[:, :n][:, y > 0].mean(axis=1) - K[:, :n][:, y < 0].mean(axis=1)
    assert solution.decision_function() == pytest.approx(means, abs=1e-12)
    cross = np.tensordot(solution.weights, grams.cross(X[n + 6 :]), 1)[:, :n]
    means = cross[:, y > 0].mean(axis=1) - cross[:, y < 0].mean(axis=1)
    assert solution.decision_function(grams.cross(X[n + 6 :])) == pytest.approx(means, abs=1e-12)
    machine = lanckriet.alignment(grams, y, norm=norm, prediction="svm").solve(tol=1e-6)
    assert machine.value == close(solution.value)
    svm = fixed(K * (n + 6) / np.trace(K), y, C=1.0)  # at a mean diagonal of one
    assert machine.decision_function() == pytest.approx(svm.decision_function(), abs=1e-4)
    free = lanckriet.alignment(grams, y, norm=norm, weights="free").solve(tol=1e-6)
    with pytest.raises(ko.InputError, match="got a kernel with free signs"):
        free.decision_function(grams.cross(X[n + 6 :]))


@both_signs
def test_the_margin_is_the_distance_of_the_nearest_point(weights):
    _, solution = on_data(weights, **CRITERIA["hard margin"])
    K = solution.kernel[:n, :n]
    length = np.sqrt(solution.alpha @ K @ solution.alpha)
    nearest = (Y * solution.decision_function()[:n]).min() / length
    # alpha is known to the root of the gap; the plain SVM at the learned kernel is known better
    assert solution.margin == close(nearest, 3e-4) and solution.margin == close(solution.value**-0.5)
    polished = fixed(K, Y)
    length = np.sqrt(polished.alpha @ K @ polished.alpha)
    assert solution.margin == close((Y * polished.decision_function()).min() / length)


@with_learned
def test_the_margin_of_every_criterion(criterion):
    _, solution = on_data(**criterion)
    assert solution.margin == close(solution.value**-0.5)


def halves(size, seed=0, m=3):
    """As many unlabelled points as labelled ones."""
    y = np.where(np.arange(size // 2) % 2 == 0, 1.0, -1.0)
    return random_kernels(size, m, size // 2, seed), y


def mean_over_signs(Ks):
    """E max_i sigma'K_i sigma / r_i over all signs, one at a time."""
    r = np.trace(Ks, axis1=1, axis2=2)
    signs = [np.array(s) for s in product((-1.0, 1.0), repeat=Ks.shape[1])]
    return float(np.mean([max(s @ K @ s / ri for K, ri in zip(Ks, r, strict=True)) for s in signs]))


@pytest.mark.parametrize("size", [6, 8, 12])
@pytest.mark.parametrize("tau", [0.5, "learned"])
def test_the_complexity_is_the_mean_over_all_signs(size, tau):
    Ks, y = halves(size)
    solution = learned(lanckriet.margin(Ks, y, tau=tau, trace=float(size)))
    found, other = (lanckriet.transduction_bound(solution, y=y, random_state=seed) for seed in (0, 1))
    # a learned ridge is one more kernel of the set, I
    whole = np.concatenate([Ks, [np.eye(size)]]) if tau == "learned" else Ks
    assert found.complexity == other.complexity == pytest.approx(size * mean_over_signs(whole), rel=1e-9)
    r = np.trace(whole, axis1=1, axis2=2)
    largest = max(np.linalg.eigvalsh(K)[-1] / ri for K, ri in zip(whole, r, strict=True))
    assert found.complexity_bound == pytest.approx(size * min(len(whole), size * largest), rel=1e-9)
    assert found.complexity <= found.complexity_bound


def test_the_complexity_is_sampled_beyond_twelve_points():
    Ks, y = halves(14)
    solution = learned(lanckriet.soft_margin(Ks, y, C=0.6, trace=14.0))
    signs = np.array(list(product((-1.0, 1.0), repeat=14)))
    forms = np.stack([((signs @ K) * signs).sum(axis=1) / np.trace(K) for K in Ks]).max(axis=0)
    found = lanckriet.transduction_bound(solution, y=y, samples=4000)
    assert found.complexity == pytest.approx(14 * forms.mean(), abs=14 * 5 * forms.std() / np.sqrt(4000))
    assert found.complexity == lanckriet.transduction_bound(solution, y=y, samples=4000).complexity
    other = lanckriet.transduction_bound(solution, y=y, samples=4000, random_state=1)
    assert other.complexity != found.complexity


def test_a_full_set_of_rank_one_kernels_attains_c_N():
    # N = 4 and all sigma sigma' / N: max_i (sigma'sigma_i)^2 / N = N for every sigma, so 4 c; printed: 2 c
    signs = np.array(list(product((-1.0, 1.0), repeat=4)))
    Ks, y, c = np.einsum("si,sj->sij", signs, signs) / 4, np.array([1.0, -1.0]), 3.0
    solution = learned(lanckriet.soft_margin(Ks, y, C=0.6, trace=c))
    found = lanckriet.transduction_bound(solution, y=y)
    assert found.complexity == close(4 * c) and found.complexity_bound == close(4 * c)


def test_free_signs_have_complexity_c_N():
    Ks, y = halves(8)
    solution = learned(lanckriet.soft_margin(Ks, y, C=0.6, weights="free", trace=8.0))
    found = lanckriet.transduction_bound(solution, y=y)
    assert found.complexity == found.complexity_bound == close(64)


@with_learned
@every("delta", [0.05, 0.5])
def test_the_bound_is_the_sum_of_its_parts(criterion, delta):
    Ks, y = halves(12, seed=2)
    solution = learned(lanckriet.margin(Ks, y, **criterion, trace=12.0))
    found = lanckriet.transduction_bound(solution, delta, y=y)
    half = y.size
    error = np.maximum(1 - y * solution.decision_function()[:half], 0).mean()
    square = solution.alpha @ solution.kernel[:half, :half] @ solution.alpha  # |w|^2 = 1 / gamma^2
    capacity = np.sqrt(found.complexity * square / half)
    assert found.margin_error == pytest.approx(error, abs=1e-12)
    assert found.confidence == pytest.approx(np.sqrt(2 * np.log(1 / delta)), rel=1e-12)
    assert found.capacity == pytest.approx(capacity, rel=1e-9)
    assert found.bound == pytest.approx(
        error + (4 + np.sqrt(2 * np.log(1 / delta)) + capacity) / np.sqrt(half), rel=1e-9
    )
    if criterion == CRITERIA["hard margin"]:  # then |w|^2 = omega
        assert found.capacity == pytest.approx(np.sqrt(found.complexity * solution.value / half), rel=1e-3)


def test_the_bound_needs_equal_halves():
    solution = lanckriet.soft_margin(KS, Y).solve()
    with pytest.raises(ko.errors.ParameterError, match="got 14 labelled of 18.*Learn with n further points"):
        lanckriet.transduction_bound(solution, y=Y)
    Ks, y = halves(8)
    solution = lanckriet.soft_margin(Ks, y).solve()
    with pytest.raises(ko.errors.ParameterError, match="and 3 labels"):
        lanckriet.transduction_bound(solution, y=y[:3])
    for delta in (0.0, -1.0, 1.0, 2.0, np.nan):
        with pytest.raises(ko.errors.ParameterError, match="delta must be"):
            lanckriet.transduction_bound(solution, delta, y=y)

"""C="loo": the closed form of leave-one-out values, and the C that they choose."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import make_friedman1
from sklearn.svm import SVC

import kernelopt as ko
from kernelopt.errors import ParameterError
from kernelopt.estimators import KernelStack, MKLClassifier, MKLRegressor
from kernelopt.estimators.default_c import LOO_VALUES, SLOPES, leave_one_out_C, left_out
from tests.every import every

rng = np.random.default_rng(0)
X = rng.normal(size=(60, 3))
NOISE = rng.normal(size=60)
KERNELS = ["gaussian(1.0)", "linear()"]


def test_residuals_of_samples_that_are_left_out_are_those_without_them():
    K = ko.gaussian(1.5)(X[:15])
    weights, y = rng.uniform(0.3, 2.0, 15), rng.normal(size=(15, 2))
    shares = weights / weights.sum()
    Cs = np.array([0.05, 2.0])
    found = left_out(K, y, shares, Cs)
    for C, residuals in zip(Cs, found, strict=True):
        for i in range(15):
            rest = np.delete(np.arange(15), i)
            # f = K a + b with a_i / (15 C shares_i) = y_i - f_i and sum a = 0
            system = np.ones((15, 15))
            system[:14, :14] = K[np.ix_(rest, rest)] + np.diag(1 / (15 * C * shares[rest]))
            system[14, 14] = 0
            solution = np.linalg.solve(system, np.vstack([y[rest], np.zeros((1, 2))]))
            assert residuals[i] == pytest.approx(y[i] - K[i, rest] @ solution[:14] - solution[14])


def test_noise_makes_C_small_and_its_absence_large():
    Cs = [MKLRegressor(KERNELS).fit(X, X[:, 0] + s * NOISE).C_ for s in (0.01, 0.5, 2.0)]
    assert Cs[0] > 10 * Cs[1] and Cs[1] > 2 * Cs[2]
    labels = [np.sign(X[:, 0] + s * NOISE + 1e-3) for s in (0.0, 1.0)]
    clean, noisy = (MKLClassifier(KERNELS).fit(X, y).C_ for y in labels)
    assert clean > 2 * noisy


@every("loss", list(SLOPES))
def test_the_slope_of_a_loss_is_its_derivative_at_the_error(loss):
    kind = getattr(ko, loss)
    made = kind(1.0, 0.0) if loss == "epsilon_insensitive" else kind(1.0)
    y, step = np.ones(1), 1e-6
    for e in (0.3, 0.9):
        ahead, behind = (made.value(y - e + s, y) for s in (step, -step))
        assert (behind - ahead) / (2 * step) == pytest.approx(SLOPES[loss](e), rel=1e-5)


def test_the_units_of_points_and_targets_and_the_order_of_samples_do_not_count():
    data, y = make_friedman1(80, noise=1.0, random_state=0)
    model = MKLRegressor().fit(data, y)
    assert model.C_ in LOO_VALUES
    assert MKLRegressor().fit(-3 * data, 1e3 * y + 7).C_ == pytest.approx(model.C_)
    order = np.random.default_rng(1).permutation(80)
    assert MKLRegressor().fit(data[order], y[order]).C_ == pytest.approx(model.C_)
    copies = np.random.default_rng(2).integers(1, 4, 80)
    weighted = MKLRegressor().fit(data, y, sample_weight=copies)
    assert MKLRegressor().fit(data.repeat(copies, axis=0), y.repeat(copies)).C_ == weighted.C_
    own = MKLRegressor(target_scale="none", loss="epsilon_insensitive").fit(data, y).C_
    assert MKLRegressor(target_scale="none", loss="epsilon_insensitive").fit(data, 8 * y).C_ == (
        pytest.approx(8 * own)
    )


def test_many_samples_are_drawn_and_precomputed_kernels_are_taken():
    data, y = make_friedman1(700, noise=1.0, random_state=0)
    grams = ko.Grams.from_kernels([ko.linear(), ko.gaussian(1.0)], data).normalize("multiplicative")
    z, w = (y - y.mean()) / y.std(), np.ones(700)
    first, again, other = (leave_one_out_C(grams, [z], w, 2.0, "squared", seed) for seed in (0, 0, 1))
    assert first == again and 1 / 4 < first / other < 4
    chosen = np.sort(np.random.default_rng(0).choice(700, 500, replace=False))
    part = leave_one_out_C(grams.block(chosen), [z[chosen]], w[chosen], 2.0, "squared")
    assert part == first
    stack = KernelStack(ko.Grams.from_kernels([ko.linear(), ko.gaussian(1.0)], X))
    given = MKLClassifier().fit(stack, X[:, 0] > 0)
    assert given.C_ == pytest.approx(MKLClassifier(KERNELS[::-1]).fit(X, X[:, 0] > 0).C_)


def test_the_machine_is_that_of_the_chosen_C_and_errors_name_C():
    y = np.where(X[:, 0] + 0.3 * NOISE > 0, 1, -1)
    model = MKLClassifier("gaussian(1.0)", normalize="none", tol=1e-8).fit(X, y)
    theirs = SVC(C=model.C_, gamma=0.5, tol=1e-10).fit(X, y)
    assert model.decision_function(X) == pytest.approx(theirs.decision_function(X), abs=1e-5)
    assert clone(model).set_params(C=0.25).fit(X, y).C_ == 0.25
    for wrong in ("auto", 0.0, -1.0, None):
        for each in (MKLClassifier(KERNELS, C=wrong), MKLRegressor(KERNELS, C=wrong)):
            with pytest.raises(ParameterError, match="C must be"):
                each.fit(X, y)


def test_constant_targets_and_single_samples():
    assert MKLRegressor(KERNELS).fit(X, np.full(60, 3.0)).predict(X[:2]).tolist() == [3.0, 3.0]
    assert leave_one_out_C(ko.Grams.from_array(np.ones((1, 1, 1))), [np.zeros(1)], np.ones(1), 1.0, "hinge")

"""What bounds assume travels in the certificate, is printed with it and saved with it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import cvxpy as cp
import numpy as np
import pytest

import kernelopt as ko
from kernelopt import Kernel
from kernelopt.extend import Profile
from kernelopt.grams.interpolation import MOST_ROUNDINGS
from tests.every import every

N = MOST_ROUNDINGS + 300  # images of 300 points are interpolated
rng = np.random.default_rng(0)
X = rng.normal(size=(N, 2))
Y = np.where(X[:, 0] + 0.3 * rng.normal(size=N) > 0, 1.0, -1.0)


@dataclass(frozen=True)
class radial(Kernel):
    """A function of the squared distance that claims complete monotonicity."""

    power: float = 2.0

    def value(self, d):
        return (1 + d) ** -self.power

    def gram(self, X, Z=None):
        Z = X if Z is None else Z
        return self.value(np.maximum((X**2).sum(1)[:, None] + (Z**2).sum(1) - 2 * X @ Z.T, 0))

    def profile(self):
        return Profile("sqeuclidean", self.value, 1.0, completely_monotone=True)


@dataclass(frozen=True)
class bent(radial):
    """Convex and decreasing, but with a bend."""

    power: float = 1.0

    def value(self, d):
        return np.maximum(0.0, 1 - d / 3.7)


@dataclass(frozen=True)
class wavy(radial):
    """Completely monotone, up to waves of 1e-7."""

    power: float = 1.0

    def value(self, d):
        return np.exp(-d) + 1e-7 * np.sin(30 * d)


def problem(kernels, points=X, y=Y):
    theta = cp.Variable(len(kernels), nonneg=True, name="theta")
    K = ko.combine(theta, ko.Grams.from_kernels(kernels, points) if isinstance(kernels, list) else kernels)
    return cp.Problem(cp.Minimize(ko.risk(K, y, ko.hinge())), ko.lp_ball(theta, 2))


def certified(kernels, points=X, y=Y):
    alpha = np.zeros(len(y))
    alpha[:300] = y[:300] / 300
    return ko.certify(
        problem(kernels, points, y), weights=np.ones(len(kernels)) / 2, alpha=alpha, retrain=False
    )


def test_the_claims_of_other_classes_are_named_and_theorems_are_not():
    claim = "the kernel radial is completely monotone, as its class claims"
    for kernel in (
        radial(),
        2.0 * radial() + ko.gaussian(1.0),
        ko.on_columns(radial(), [0]),
        ko.gaussian(1.0),
    ):
        found = certified([kernel, ko.gaussian(2.0)])
        assert found.assumes == (() if kernel == ko.gaussian(1.0) else (claim,))
        assert (f"; assumes: {claim}" in str(found)) == bool(found.assumes)
        assert (claim in found._repr_html_()) == bool(found.assumes)
        assert claim not in found.reason
    few = certified([radial(), ko.gaussian(2.0)], X[:300], Y[:300])
    assert not few.assumes  # every entry is evaluated


@every(("kernel", "size"), [(bent(), r"differs by \S+e-04"), (wavy(), r"differs by \S+e-07")])
def test_a_false_claim_is_found_on_the_distances_of_the_call(kernel, size):
    name = type(kernel).__name__
    said = rf"{name}\(.*must be completely monotone, as its profile says, got .* {size}.*check_kernel"
    for each in (kernel, 0.5 * kernel + ko.gaussian(3.0)):
        storage = ko.Grams.from_kernels([each, ko.gaussian(1.0)], X).storage
        alpha = np.zeros(N)
        alpha[:300] = 1.0
        with pytest.raises(ko.InputError, match=said):
            storage._images(alpha, np.arange(300))


@pytest.mark.parametrize("power", [0.25, 2.0, 30.0])
def test_a_true_claim_passes_at_any_scale(power):
    for scale in (1e-6, 1.0, 1e6):
        storage = ko.Grams.from_kernels([radial(power), radial(power) * ko.gaussian(1.0)], scale * X).storage
        alpha = np.zeros(N)
        alpha[:300] = rng.normal(size=300)
        found = storage._images(alpha, np.arange(300))
        expected = storage.between(np.arange(300), np.arange(300)) @ alpha[:300]
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12 * np.abs(alpha).sum())


@cache
def nearly_symmetric():
    K = np.array([ko.gaussian(w)(X[:40]) for w in (0.5, 1.0, 2.0)])
    K[1, 3, 5] += 3e-10
    return K


def test_matrices_that_are_symmetric_up_to_rounding_are_named():
    said = "grams[1]: K is taken as (K + K') / 2, and differs from K' by up to 3e-10 of its largest entry"
    grams = ko.Grams.from_array(nearly_symmetric())
    assert certified(grams, y=Y[:40]).assumes == (said,)
    for part in (
        grams.subset([0, 1]),
        grams.normalize("trace"),
        grams.center(),
        grams.normalize("spherical"),
    ):
        assert certified(part, y=Y[:40]).assumes == (said,)
    assert certified(grams.block(np.arange(30)), y=Y[:30]).assumes == (said,)
    assert not certified(ko.Grams.from_array(nearly_symmetric()[[0, 2]]), y=Y[:40]).assumes
    rounded = nearly_symmetric().copy()
    rounded[1, 3, 5] = rounded[1, 5, 3] * (1 + 1e-15)
    assert not certified(ko.Grams.from_array(rounded), y=Y[:40]).assumes  # the rounding of any product
    solution = ko.solve(problem(grams, y=Y[:40]))
    assert solution.certificate.assumes == (said,) and f"assumes: {said}" in str(solution)


def test_given_matrices_outside_of_stacks_are_named():
    S = nearly_symmetric()[1].copy()
    kernel = cp.Variable((40, 40), PSD=True)
    near = cp.Problem(cp.Minimize(ko.fidelity(kernel, S)), [cp.trace(kernel) == 1])
    kernel.value = np.eye(40) / 40
    assert ko.certify(near).assumes == (
        "S: K is taken as (K + K') / 2, and differs from K' by up to 3e-10 of its largest entry",
    )
    fixed = cp.Problem(cp.Minimize(ko.risk(S, Y[:40], ko.hinge())))
    (said,) = ko.certify(fixed).assumes
    assert said.startswith("K: K is taken as (K + K') / 2")


def test_assumptions_are_saved_with_a_solution_and_stated_matrices_need_none(tmp_path):
    solution = ko.solve(problem(ko.Grams.from_array(nearly_symmetric()), y=Y[:40]))
    saved = ko.load(solution.save(tmp_path / "solution.npz"))
    assert saved.certificate.assumes == solution.certificate.assumes != ()
    assert f"assumes: {saved.certificate.assumes[0]}" in str(saved)
    assert saved.certificate.assumes[0].replace("'", "&#x27;") in solution._repr_html_()
    with np.load(solution.certificate.save(tmp_path / "proof.npz")) as stated:
        arrays = [np.asarray(stated[name]) for name in stated.files]
    stacks = [array for array in arrays if array.shape == (3, 40, 40)]
    assert len(stacks) == 1
    given = nearly_symmetric()
    np.testing.assert_array_equal(stacks[0], (given + given.transpose(0, 2, 1)) / 2)

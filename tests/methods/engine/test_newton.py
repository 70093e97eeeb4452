"""`method="newton"` against the conic optimum, on degenerate data too."""

from dataclasses import replace

import cvxpy as cp
import numpy as np
import pytest
from sklearn.datasets import load_digits
from sklearn.metrics import euclidean_distances

import kernelopt as ko
from formulations import lp_norm
from kernelopt.estimators import MKLClassifier
from kernelopt.methods.engine import method, search
from kernelopt.methods.engine.panels import Panels
from kernelopt.methods.selection import applicable
from kernelopt.structure.structure import Structure
from tests.every import every
from tests.problems import overlap

PS = [1, 1.1, 4 / 3, 2, 4, np.inf]


def stack(rng, n, m=4):
    """Return Gaussian, linear and low-rank kernels, two that are equal, and one that is zero."""
    X = rng.standard_normal((n, 3))
    D = ((X[:, None] - X[None]) ** 2).sum(-1)
    Ks = [np.exp(-g * D) for g in np.geomspace(0.05, 3, m - 2)] + [X @ X.T, np.outer(X[:, 0], X[:, 0])]
    return np.array([*Ks, Ks[0], np.zeros((n, n))]), X


def labels(rng, X, share=0.5):
    score = X[:, 0] + 0.7 * rng.standard_normal(len(X))
    y = np.where(score > np.quantile(score, 1 - share), 1.0, -1.0)
    y[0], y[1] = 1.0, -1.0
    return y


def agrees(Ks, y, p, loss, bias=None, tol=1e-6):
    """Solve by the method and by a conic programme: the bounds of each enclose the other's optimum."""
    built = lp_norm.primal(Ks, y, p=p, loss=loss, bias=bias)
    found = built.solve("newton", tol=tol)
    assert found.status == "optimal" and found.method == "newton"
    assert overlap(found, built.solve("exact", tol=1e-6))
    return found


def test_the_same_random_state_gives_the_same_solution():
    rng = np.random.default_rng(1)
    Ks, X = stack(rng, 520)
    y = labels(rng, X)
    built = lp_norm.primal(Ks, y, p=4 / 3)
    one, two = (built.solve("newton", tol=1e-4) for _ in range(2))
    assert (one.weights == two.weights).all() and (one.alpha == two.alpha).all()
    assert one.lower == two.lower and one.upper == two.upper


REGRESSION = ("squared", "epsilon_insensitive")


LOSSES = (
    ko.hinge,
    ko.squared_hinge,
    ko.huberized_hinge,
    ko.logistic,
    ko.hard_margin,
    ko.squared,
    ko.epsilon_insensitive,
)
SETTINGS = ((1e-4, 0.5), (1.0, 0.1), (1e4, 0.3))  # C, and the share of one class


# Every loss with every exponent, each pair with one of the settings in turn.
@pytest.mark.slow
@every(
    "loss, p, setting",
    [(loss, p, SETTINGS[(i + j) % 3]) for i, loss in enumerate(LOSSES) for j, p in enumerate(PS)],
)
def test_every_loss_on_degenerate_kernels_and_points(loss, p, setting):
    (C, share), rng = setting, np.random.default_rng(2)
    Ks, X = stack(rng, 15)
    twice = np.r_[np.arange(15), 3, 4]
    y = labels(rng, X, share)[twice]
    if loss.__name__ in REGRESSION:
        y = X[twice, 0] + 0.1 * rng.standard_normal(17)
    elif loss is not ko.hard_margin:
        y[-1] = -y[-1]  # one point with both labels
    agrees(Ks[:, twice][:, :, twice], y, p, loss() if loss is ko.hard_margin else loss(C))


def flat(rng, n):
    """Return kernels of low rank, exactly or numerically, of several scales; a quarter of points twice."""
    X = rng.standard_normal((n, 3))
    X[-(n // 4) :] = X[: n // 4]
    D, Z = ((X[:, None] - X[None]) ** 2).sum(-1), rng.standard_normal((n, 4))
    Ks = [np.exp(-1e-4 * D), np.exp(-1e-2 * D), X @ X.T, 1e3 * Z @ Z.T, np.zeros((n, n)), 10 * X @ X.T]
    return np.array(Ks), X


def flat_problem(loss, C, p, seed):
    """Return the parts of a problem in which C is large and the ranks are low."""
    rng = np.random.default_rng(seed)
    Ks, X = flat(rng, 24)
    y = rng.choice([-1.0, 1.0], 24)
    if loss.__name__ in REGRESSION:
        y = X[:, 0] + rng.standard_normal(24)
    return Ks, y, p, loss(C)


# Rounding to float32, SMO that does not end, and weights near zero, where the risk rises as 1 / w.
@every(
    "loss, C, p, seed",
    [(ko.squared_hinge, 1e4, 4, 0), (ko.squared, 1e4, 1, 0), (ko.logistic, 1e6, 4, 0)],
)
def test_single_precision_is_left_where_it_limits_the_gap(loss, C, p, seed):
    found = agrees(*flat_problem(loss, C, p, seed), tol=1e-5)
    assert found.details["provider"] == "float64"


@pytest.mark.slow
@every(
    "loss, p", [(loss, p) for loss in LOSSES[1:] if loss is not ko.hard_margin for p in (1, 4 / 3, 4, np.inf)]
)
def test_every_loss_at_large_C_on_kernels_of_low_rank(loss, p):
    for seed, C in ((0, 1e2), (1, 1e4), (2, 1e4)):
        agrees(*flat_problem(loss, C, p, seed), tol=1e-5)


def family(n, m=20):
    """Return Gaussian kernels of m widths on two noisy classes, and their labels."""
    rng = np.random.default_rng(3)
    X = rng.standard_normal((n, 5))
    y = np.where(np.sin(2 * X[:, 0]) + X[:, 1] + 0.5 * rng.standard_normal(n) > 0, 1.0, -1.0)
    D = ((X[:, None] - X[None]) ** 2).sum(-1)
    return np.array([np.exp(-g * D) for g in np.geomspace(0.01, 2, m)]), y


def test_two_points_and_one_kernel():
    """K = I, y = (1, -1), C = 10: alpha = (1, -1) has f = y, and the value is 1/2 alpha'alpha = 1."""
    for p in PS:
        found = lp_norm.primal(np.eye(2)[None], [1, -1], p=p, loss=ko.hinge(10.0)).solve("newton", tol=1e-9)
        assert abs(found.value - 1) < 1e-8 and abs(found.weights[0] - 1) < 1e-12
    curve = ko.squared_hinge(1.0).curve(np.ones(3))
    for size in (1e-12, 1.0, 1e12):  # of an alpha without an upper bound, every positive entry is free
        assert curve.free(size * np.array([1, 0, 0.5])).tolist() == [True, False, True]
    assert ko.hinge(2.0).curve(np.ones(3)).free(np.array([0.0, 1.0, 2.0])).tolist() == [False, True, False]


@pytest.mark.slow
def test_few_trainings_and_few_passes():
    """Counts, not times: trainings at fixed weights, and entries read divided by m n^2."""
    X, digit = load_digits(return_X_y=True)
    X, y = X[:1000] / 16, np.where(digit[:1000] % 2 == 0, 1.0, -1.0)
    D = euclidean_distances(X, squared=True)
    Ks = np.array([np.exp(-g * D) for g in 1.2 ** -np.linspace(0, 49, 20)])
    for p in PS:
        seen = []
        found = lp_norm.primal(Ks, y, p=p).solve("newton", tol=1e-3, callback=seen.append)
        assert found.status == "optimal" and seen[-1]["provider"] == "precomputed"
        assert seen[-1]["passes"] <= 1.9
        assert seen[-1]["solves"] <= 9


def test_bounds_at_every_report_enclose_the_optimum():
    Ks, y = family(520, 6)
    for p in PS:
        seen = []
        built = lp_norm.primal(Ks, y, p=p)
        found = built.solve("newton", tol=1e-7, callback=seen.append)
        other = built.solve("newton", tol=1e-4, random_state=5)
        assert found.status == other.status == "optimal"
        assert all(r["lower"] <= found.upper and found.lower <= r["upper"] for r in seen)
        assert other.lower <= found.upper and found.lower <= other.upper
    # Its gap at p = 1 is of first order in the error of alpha: training must be far more exact than the gap.
    curved = lp_norm.primal(Ks, y, p=1, loss=ko.squared_hinge(1.0)).solve("newton", tol=1e-6)
    assert curved.status == "optimal" and curved.details["solves"] <= 30
    # Here full steps run in a circle of three points, if they are not shortened towards the least value.
    X, digit = load_digits(return_X_y=True)
    some = np.random.default_rng(0).permutation(len(X))[:600]
    circle = MKLClassifier(p=1, method="newton").fit(X[some], digit[some] == 8).solution_
    assert circle.status == "optimal" and circle.details["solves"] <= 40


def priced(built, prices):
    """Return the problem of a formulation with prices'theta added to its objective."""
    theta = next(v for v in built.problem.variables() if v.is_nonneg())
    objective = cp.Minimize(built.problem.objective.args[0] + prices @ theta)
    return cp.Problem(objective, built.problem.constraints)


@pytest.mark.slow
@every("p", [1, 4 / 3, 4, np.inf])
def test_prices_of_the_weights(p):
    """Prices of both signs, and prices at which the weights are zero."""
    rng = np.random.default_rng(6)
    Ks, X = stack(rng, 16)
    y = labels(rng, X)
    mixed = np.array([1.0, -0.5, 3.0, 0.0, 0.2, 0.1])
    for loss, prices in (
        (ko.hinge(1.0), mixed),
        (ko.hinge(1.0), -mixed),
        (ko.hinge(1.0), np.full(6, 1e3)),
        (ko.logistic(1.0), 0.1 * mixed),
        (ko.hard_margin(), mixed + 1),
    ):
        problem = priced(lp_norm.primal(Ks, y, p=p, loss=loss), prices)
        found, exact = (ko.solve(problem, method, tol=1e-6) for method in ("newton", "exact"))
        assert found.status == exact.status == "optimal" and overlap(found, exact)
    # Without a machine the hinge is 1 at each of the points, and these prices exceed what a kernel can gain.
    dear = priced(lp_norm.primal(Ks, y, p=p, loss=ko.hinge(1.0)), np.full(6, 1e3))
    assert ko.solve(dear, "newton").value == pytest.approx(2 * min((y > 0).sum(), (y < 0).sum()), rel=1e-4)


def classes_of(Ks, digits, p, losses, factors=None, prices=0.0):
    """Return the problem of one machine for each class against the rest, with common weights."""
    theta = cp.Variable(len(Ks), nonneg=True, name="theta")
    K = ko.combine(theta, ko.Grams.from_array(Ks))
    risks = [
        ko.risk(K, np.where(digits == k, 1.0, -1.0), loss)
        for k, loss in zip(np.unique(digits), losses, strict=True)
    ]
    total = sum(c * each for c, each in zip(factors or np.ones(len(risks)), risks, strict=True))
    return cp.Problem(cp.Minimize(total + np.broadcast_to(prices, len(Ks)) @ theta), ko.lp_ball(theta, p))


@every("p, priced", [(1, False), (1, True), (4 / 3, False), (2, True), (4, False), (np.inf, True)])
def test_several_risks_with_common_weights(p, priced):
    """Three classes, one of them of two points: one loss and prices, or three losses with factors."""
    rng = np.random.default_rng(12)
    Ks, _ = stack(rng, 15)
    digits = np.r_[2, 2, 0, 1, rng.integers(0, 2, 11)]
    if priced:
        problem = classes_of(Ks, digits, p, 3 * [ko.hinge(1.0)], prices=0.1 * rng.standard_normal(6))
    else:
        mixed = ko.hinge(1.0), ko.logistic(1.0), ko.squared(1.0)
        problem = classes_of(Ks, digits, p, mixed, factors=[0.5, 3.0, 1e-2])
    found, exact = (ko.solve(problem, method, tol=1e-6) for method in ("newton", "exact"))
    assert found.status == exact.status == "optimal" and overlap(found, exact)
    if 1 < p < np.inf and not priced:  # the weights are unique, also where a kernel occurs twice
        assert np.abs(found.weights - exact.weights).max() < 2e-2


def test_several_risks_on_a_working_set_against_cutting_planes(monkeypatch):
    X, y = load_digits(n_class=4, return_X_y=True)
    X, y = X[:450] / 16, y[:450]
    D = euclidean_distances(X, squared=True)
    Ks = np.array([np.exp(-g * D) for g in (0.01, 0.05, 0.2)])
    problem = classes_of(Ks, y, 4 / 3, 4 * [ko.hinge(1.0)])
    assert applicable(Structure(problem))[0].method.name == "newton"
    found, cuts = ko.solve(problem), ko.solve(problem, "cutting-plane")
    assert found.method == "newton" and found.details["solves"] <= 40
    assert found.lower <= cuts.upper and cuts.lower <= found.upper
    again = ko.solve(problem, "newton", start=found)
    assert again.details["solves"] <= 16 and again.lower <= found.upper and found.lower <= again.upper
    monkeypatch.setattr(
        search, "SETTINGS", replace(search.SETTINGS, grown=100)
    )  # the working set grows before all points are checked
    grown = ko.solve(problem, "newton", tol=1e-5)
    assert grown.status == "optimal" and grown.lower <= found.upper and found.lower <= grown.upper
    theta = problem.constraints[0].variables()[0]
    one, two = (ko.combine(theta, ko.Grams.from_array(K)) for K in (Ks, 2 * Ks))
    other = cp.Minimize(
        ko.risk(one, np.sign(y - 1.5), ko.hinge()) + ko.risk(two, np.sign(y - 0.5), ko.hinge())
    )
    with pytest.raises(ko.errors.MethodError, match="its risks must have one kernel"):
        ko.solve(cp.Problem(other, problem.constraints), "newton")


def test_a_working_set_that_grows_leads_to_the_same_optimum(monkeypatch):
    X, digit = load_digits(return_X_y=True)
    X, y = X[:900] / 16, np.where(digit[:900] % 2 == 0, 1.0, -1.0)
    grams = ko.Grams.from_kernels([ko.gaussian(s) for s in (0.3, 0.7, 1.5)], X)
    problems = [lp_norm.primal(kernels, y, p=1.5) for kernels in (grams, np.asarray(grams))]
    whole = problems[0].solve("newton")
    monkeypatch.setattr(search, "SETTINGS", replace(search.SETTINGS, grown=100))
    for built in problems:
        seen = []
        grown = built.solve("newton", callback=seen.append)
        assert grown.status == "optimal" and grown.details["solves"] <= 30
        assert seen[0]["gap"] <= 0.05  # the set has met every point before the first check of all
        assert grown.lower <= whole.upper and whole.lower <= grown.upper


def test_second_derivatives_serve_the_first_step_of_the_next_solve(monkeypatch):
    """They are those of another working set, so that the steps after it must have their own."""
    X, digit = load_digits(return_X_y=True)
    X, y = X[:600] / 16, np.where(digit[:600] % 2 == 0, 1.0, -1.0)
    kernels = [ko.gaussian(s) for s in (0.3, 0.7, 1.5)]
    factored, made = search.second_derivatives, []
    monkeypatch.setattr(search, "second_derivatives", lambda *given: made.append(0) or factored(*given))
    minimum, steps = search.minimum_on_ball, []
    monkeypatch.setattr(search, "minimum_on_ball", lambda *given: steps.append(0) or minimum(*given))
    found = []
    for many in (np.inf, 1):
        monkeypatch.setattr(search, "SETTINGS", replace(search.SETTINGS, many_points=many))
        made.clear(), steps.clear()
        found.append(lp_norm.primal(ko.Grams.from_kernels(kernels, X), y, p=1.5).solve("newton", tol=1e-5))
        assert found[-1].status == "optimal"
        assert 0 < len(made) < len(steps) if many == 1 else len(made) == len(steps)
    assert found[0].lower <= found[1].upper and found[1].lower <= found[0].upper


@pytest.mark.parametrize("fails", [False, True])
def test_second_derivatives_are_from_factors_in_single_precision_where_these_end(fails, monkeypatch):
    X, digit = load_digits(return_X_y=True)
    X, y = X[:600] / 16, np.where(digit[:600] % 2 == 0, 1.0, -1.0)
    kernels, factored, made = [ko.gaussian(s) for s in (0.3, 0.7, 1.5)], search.second_derivatives, []

    def watched(M, unit, images, *rest):
        exact = factored(M.astype(float), unit, images, *rest)
        found = None if fails and M.dtype == np.float32 else factored(M, unit, images, *rest)
        made.append((M.dtype.itemsize, None if found is None else np.abs(found - exact).max() / exact.max()))
        return found

    monkeypatch.setattr(search, "second_derivatives", watched)
    monkeypatch.setattr(search, "SETTINGS", replace(search.SETTINGS, many_free=1))
    found = lp_norm.primal(ko.Grams.from_kernels(kernels, X), y, p=1.5).solve("newton", tol=1e-5)
    assert found.status == "optimal"
    assert [size for size, _ in made] == ([4, 8] * (len(made) // 2) if fails else [4] * len(made))
    assert made and all(error is None or error < 1e-3 for _, error in made)


def test_other_methods_of_the_ball_refuse_prices_in_words():
    Ks, X = stack(np.random.default_rng(7), 12)
    problem = priced(lp_norm.primal(Ks, labels(np.random.default_rng(8), X), p=2), np.ones(6))
    for name in ("block-descent", "interleaved", "smooth-dual"):
        with pytest.raises(ko.errors.MethodError, match="plus a constant, got prices of the weights"):
            ko.solve(problem, name)


class Erring(Panels):
    """A provider whose predictions err by as much as it says, each towards its label."""

    error = 1e-2
    flattery = None

    def prediction_error(self, w):
        return self.error * float(w @ self.sizes)

    def predict(self, w, support, c, points):
        error = self.prediction_error(w) * np.abs(c).sum()
        return super().predict(w, support, c, points) + error * self.flattery[points]


def test_bounds_are_true_where_predictions_are_inexact(monkeypatch):
    """Flattering predictions have a smaller loss, at which the upper bound would be below the optimum."""
    rng = np.random.default_rng(9)
    Ks, X = stack(rng, 30)
    monkeypatch.setattr(Erring, "flattery", labels(rng, X))
    for error in (1e-2, 1e-4, 1e-7):
        monkeypatch.setattr(Erring, "error", error)
        monkeypatch.setattr(
            method, "choose_provider", lambda read, *_: Erring(read.whole, read.reach, read.y.size)
        )
        for loss in (ko.hinge(1.0), ko.logistic(1.0)):
            built, seen = lp_norm.primal(Ks, Erring.flattery, p=4 / 3, loss=loss), []
            found = built.solve("newton", tol=1e-5, callback=seen.append)
            exact = built.solve("exact", tol=1e-6)
            assert found.status == "optimal"
            assert all(r["lower"] <= exact.upper and exact.lower <= r["upper"] for r in seen)


def test_a_wide_bound_of_the_error_of_predictions_does_not_steer_the_search(monkeypatch):
    """Predictions may be far better than their bound, by which no check before the last narrows the gap."""
    rng = np.random.default_rng(3)
    Ks, X = stack(rng, 600)
    y = labels(rng, X)
    monkeypatch.setattr(Erring, "flattery", np.zeros(600))
    monkeypatch.setattr(Erring, "error", 0.05)
    monkeypatch.setattr(
        method, "choose_provider", lambda read, *_: Erring(read.whole, read.reach, read.y.size)
    )
    for p in (1, 2):
        assert lp_norm.primal(Ks, y, p=p, loss=ko.hinge(1.0)).solve("newton", tol=1e-4).status == "optimal"


def test_the_provider_the_passes_and_the_trainings_are_shown(capsys):
    Ks, X = stack(np.random.default_rng(10), 20)
    built = lp_norm.primal(Ks, labels(np.random.default_rng(11), X), p=2)
    found = built.solve("newton", verbose=True)
    printed = "".join(capsys.readouterr())
    assert found.details["provider"] == "precomputed" and found.details["solves"] >= 1
    ending = f", provider precomputed, passes {found.details['passes']:.3g}, solves {found.details['solves']}"
    assert ending in printed and str(found).endswith(ending) and ending[2:] in found._repr_html_()
    (line,) = [line for line in str(ko.explain(built.problem)).splitlines() if "'newton'" in line]
    assert "applies" in line and line.endswith("it reads the kernels by the provider 'precomputed'")


def test_auto_takes_it_before_block_descent_where_that_was_measured_to_be_slower():
    """From 150 points on it was faster at every p on two cores, by a factor of 1.04 to 4."""
    for n, m in ((150, 4), (300, 4), (600, 20)):
        Ks, y = family(n, m)
        for p in (4 / 3, 2, 4):
            names = [c.method.name for c in applicable(Structure(lp_norm.primal(Ks, y, p=p).problem))]
            assert names.index("newton") < names.index("block-descent")

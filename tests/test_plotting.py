"""Figures: they draw on the given axes what the solutions say."""

from __future__ import annotations

import builtins
from copy import copy
from dataclasses import replace

import cvxpy as cp
import matplotlib as mpl
import numpy as np
import pytest

import kernelopt as ko
from formulations import lanckriet, lp_norm
from kernelopt.estimators import MKLClassifier, MKLRegressor
from kernelopt.figures import CARETLEFT, CARETRIGHT
from kernelopt.methods.learned import Learned, Part
from kernelopt.plotting import (
    plot_bounds,
    plot_comparisons,
    plot_duality,
    plot_history,
    plot_kernels,
    plot_kkt,
    plot_weights,
)

mpl.use("Agg")
from matplotlib import pyplot

from tests.figures import apart, axes, boxes, within, words

K = np.array([[[2.0, 0], [0, 2]], [[2, -2], [-2, 2]]])


@pytest.fixture(scope="module")
def solutions():
    return {
        "hard": lanckriet.hard_margin(K, [1, -1]).solve(),
        "soft": lanckriet.soft_margin(K, [1, -1]).solve(),
    }


def test_weights_are_drawn_as_shares_of_the_largest(solutions):
    ax = axes()
    assert plot_weights(solutions, ["I", "yy'"], ax=ax) is ax
    assert np.abs(ax.images[0].get_array() - [[0, 1], [0, 1]]).max() < 1e-6
    assert words(ax.get_xticklabels()) == ["I", "yy'"]
    assert words(ax.get_yticklabels()) == [
        "hard\nthe optimum determines the weights",
        "soft\nthe optimum determines the weights",
    ]


def test_bounds_are_drawn_at_their_values(solutions):
    ax = axes()
    assert plot_bounds(solutions, {"single": 3.0}, ax=ax) is ax
    assert [bar.get_width() for bar in ax.patches] == pytest.approx([s.upper for s in solutions.values()])
    ends = [(bound, row) for row, s in enumerate(solutions.values()) for bound in (s.lower, s.upper)]
    arrows = [line for line in ax.lines if line.get_marker() in (CARETLEFT, CARETRIGHT)]
    assert [tuple(line.get_xydata()[0]) for line in arrows] == ends
    names = words(ax.get_legend().get_texts())
    assert names == ["certified lower bound", "certified upper bound", "single: 3"]


def test_the_current_axes_stay_current_and_an_error_opens_no_figure(solutions):
    opened, solution = pyplot.get_fignums(), solutions["hard"]
    figure, (current, other) = pyplot.subplots(1, 2)
    try:
        pyplot.sca(current)
        plot_weights({"a": solution}, ax=other)
        plot_kernels(solution, ax=other)
        plot_comparisons([[0, 1, 2]], ax=other)
        assert pyplot.gca() is current
        with pytest.raises(ko.InputError, match="names must be"):
            plot_kernels(solution, names=["one"])
        assert pyplot.get_fignums() == [*opened, figure.number]
    finally:
        pyplot.close(figure)


def test_without_axes_new_ones_are_made(solutions):
    assert plot_bounds(solutions).figure is not plot_weights(solutions, ["a", "b"]).figure


def test_without_names_the_kernels_have_those_of_their_stack_or_numbers(solutions):
    named = lanckriet.soft_margin(ko.Grams.from_array(K, ["I", "yy'"]), [1, -1]).solve()
    machines = dict(enumerate(named.learned * 2))  # a machine is not told to be unique
    for rows, names in (
        (solutions, ["K[0]", "K[1]"]),
        ({"n": named, "m": named}, ["I", "yy'"]),
        (machines, ["I", "yy'"]),
    ):
        ax = plot_weights(rows, ax=axes())
        assert words(ax.get_xticklabels()) == names
    assert words(ax.get_yticklabels()) == ["0", "1"]
    assert words(plot_weights(named, ax=axes()).get_yticklabels()) == ["I", "yy'"]
    unnamed = replace(named, learned=(replace(named.learned[0], parts=()),))
    assert words(plot_weights(unnamed, ["a", "b"], ax=axes()).get_yticklabels()) == ["a", "b"]
    ax = plot_weights({"n": named, **solutions}, ax=axes())  # their stacks disagree
    assert words(ax.get_xticklabels()) == ["0", "1"] and ax.get_xlabel() == "kernel"


def many(weights, unique=None):
    """A solution with the given weights and long names."""
    m = len(weights)
    names = [f"gaussian(width={np.pi * 2**i!r}) on columns 1, 2, 3, 4" for i in range(m)]
    part = Part(np.asarray(weights), ko.Grams.from_array([np.eye(2)] * m, names), np.zeros(2))
    machine = Learned(np.zeros(2), 0.0, (part,), combined=True, inductive=True)
    exact = lanckriet.soft_margin(K[:1], [1, -1]).solve()
    return replace(exact, weights=machine.weights, learned=(machine,), weights_unique=unique)


def test_many_kernels_have_colours_hatched_signs_and_names_that_fit():
    ax, weights = axes(), np.linspace(-1, 0.5, 60)
    figure = ax.figure
    plot_weights({f"row {i}": many(weights, unique) for i, unique in enumerate([True, False, None])}, ax=ax)
    assert ax.images[0].get_array().shape == (3, 60) and not ax.texts
    assert len(ax.collections) == 3 * (weights < -0.005).sum()  # the hatched cells
    labels = words(ax.get_yticklabels())
    assert labels == [
        "row 0\nthe optimum determines the weights",
        "row 1\nother weights are optimal too",
        "row 2\nother weights may be optimal too",
    ]
    figure.draw_without_rendering()
    assert apart(boxes(ax.get_yticklabels()))
    ticks = ax.get_xticks()
    assert ticks[0] == 0 and np.unique(np.diff(ticks)).size == 1  # every second name, say
    names = ax.get_xticklabels()
    gaps = np.diff(ax.transData.transform([(tick, 0) for tick in ticks])[:, 0]) * 72 / figure.dpi  # points
    across = gaps * np.sin(np.radians(names[0].get_rotation()))
    assert across.min() > names[0].get_fontsize()  # the lines of two names are apart
    assert max(len(text.get_text()) for text in ax.get_xticklabels()) <= 28


def test_weights_that_are_equal_or_zero_or_one_are_drawn():
    for weights, shares in (([2.0, 2.0], [1, 1]), ([0.0, 0.0], [0, 0]), ([3.0], [1])):
        ax = plot_weights({"a": many(weights), "b": many(weights)}, ax=axes())
        assert ax.images[0].get_array().tolist() == [shares] * 2
        one = plot_weights(many(weights), ax=axes())
        assert [bar.get_width() for bar in one.patches] == weights and not one.images
        one.figure.draw_without_rendering()


def test_one_solution_is_drawn_as_bars_of_its_weights(solutions):
    hard = solutions["hard"]
    for given, label in ((hard, "exact"), ([hard], "exact"), ({"hard": hard}, "hard")):
        ax = axes()
        assert plot_weights(given, ["I", "yy'"], ax=ax) is ax
        assert [bar.get_width() for bar in ax.patches] == hard.weights.tolist()
        assert words(ax.get_yticklabels()) == ["I", "yy'"] and ax.get_ylim() == (1.5, -0.5)
        assert ax.get_title().endswith("\nthe optimum determines the weights") and label in ax.get_title()
        assert words(ax.texts) == [f"{w:.3g}" for w in hard.weights]
    weights = np.linspace(-1, 0.5, 60)
    ax = plot_weights(many(weights, False), ax=axes())
    assert [bar.get_width() for bar in ax.patches] == weights.tolist() and not ax.texts
    assert ax.get_title() == "Kernel weights, exact (CLARABEL)\nother weights are optimal too"
    assert ax.patches[0].get_facecolor() != ax.patches[-1].get_facecolor()  # of other signs
    ax.figure.draw_without_rendering()
    assert apart(boxes(ax.get_yticklabels()))
    left, right = plot_weights(many([-1.0, 0.5]), ax=axes()).get_xlim()
    assert left < -1 and 0.5 < right


def test_without_labels_solutions_have_the_names_of_their_methods_or_numbers(solutions):
    hard = solutions["hard"]
    other = replace(hard, method="newton", solver="newton")
    for draw in (plot_weights, plot_bounds):
        ax = draw([hard, other], ax=axes())
        assert [label.split("\n")[0] for label in words(ax.get_yticklabels())] == [
            hard.method_and_solver, "newton",
        ]  # fmt: skip
        ax = draw((hard, hard), ax=axes())
        assert [label.split("\n")[0] for label in words(ax.get_yticklabels())] == ["0", "1"]
    assert words(plot_history([hard, other], ax=axes()).get_legend().get_texts())[1] == "newton"
    assert words(plot_bounds(hard, ax=axes()).get_yticklabels()) == [hard.method_and_solver]


def test_an_estimator_whose_classes_or_targets_have_their_own_weights_has_a_row_for_each():
    X = np.random.default_rng(0).normal(size=(18, 2))
    y = np.array(["a", "b", "c"])[np.digitize(X[:, 0], [-0.5, 0.5])]
    model = MKLClassifier(["gaussian(1.0)", "linear()"], multiclass="per-class").fit(X, y)
    ax = plot_weights(model, ax=axes())
    shares = model.weights_ / model.weights_.max(axis=1, keepdims=True)
    np.testing.assert_allclose(ax.images[0].get_array(), shares)
    assert [label.split("\n")[0] for label in words(ax.get_yticklabels())] == ["a", "b", "c"]
    assert len(plot_history(model, ax=axes()).lines) == 3
    targets = MKLRegressor(["gaussian(1.0)", "linear()"], multioutput="per-target").fit(X, X)
    labels = words(plot_weights(targets, ax=axes()).get_yticklabels())
    assert [label.split("\n")[0] for label in labels] == ["target 0", "target 1"]


def test_infinite_and_negative_bounds_are_drawn():
    solution = lanckriet.soft_margin(K, [1, -1]).solve()

    def bounded(lower, upper):
        return replace(solution, certificate=replace(solution.certificate, lower=lower, upper=upper))

    inf = np.inf
    pairs = {"a": (-3.0, -2.0), "b": (1.0, inf), "c": (-inf, 2.0), "d": (-inf, inf)}
    ax = plot_bounds({k: bounded(*ends) for k, ends in pairs.items()}, ax=axes())
    texts = words(ax.texts)
    assert texts == ["gap 3e-01", "no upper bound", "no lower bound", "no finite bound"]
    assert [bar.get_width() for bar in ax.patches] == [-2.0, 2.0]
    left, right = ax.get_xlim()
    assert left < -3 and right > 2
    ax.figure.draw_without_rendering()
    assert within(ax.get_window_extent(), boxes(ax.texts))
    assert plot_bounds({"d": bounded(-inf, inf)}, ax=axes()).get_xlim()[1] > 0


@pytest.fixture(scope="module")
def fitted(tmp_path_factory):
    """An estimator, its solution, and both as they are loaded."""
    X = np.random.default_rng(0).normal(size=(16, 2))
    kernels = {"near": "gaussian(0.5)", "a line": "linear()"}
    model = MKLClassifier(kernels, C=2.0).fit(X, X[:, 0] + X[:, 1] ** 2 > 0.5)
    folder = tmp_path_factory.mktemp("saved")
    solution = lp_norm.primal(ko.Grams.from_kernels([ko.gaussian(1.0), ko.linear()], X), X[:, 0], p=2,
                              loss=ko.squared()).solve("cutting-plane")  # fmt: skip
    loaded = {name: ko.load(each.save(folder / f"{name}.npz")) for name, each in
              {"model": model, "solution": solution}.items()}  # fmt: skip
    return {"model": model, "solution": solution}, loaded


def test_figures_take_fitted_estimators_and_what_was_loaded(fitted):
    """They draw the same of an estimator, of its solution and of what comes out of the file."""
    new, loaded = fitted
    model = new["model"]
    assert model.solution_.learned[0].names == model.kernel_names_ == ("near", "a line")
    for given, names, weights in (
        ({"m": model, "l": loaded["model"], "s": model.solution_}, model.kernel_names_, model.weights_),
        ({"s": new["solution"], "l": loaded["solution"]}, ("gaussian(width=1.0)", "linear()"),
         new["solution"].weights),
    ):  # fmt: skip
        ax = plot_weights(given, ax=axes())
        assert words(ax.get_xticklabels()) == list(names)
        np.testing.assert_allclose(ax.images[0].get_array(), [weights / weights.max()] * len(given))
        bars = plot_bounds(given, ax=axes()).patches
        assert [bar.get_width() for bar in bars] == [bars[0].get_width()] * len(given)
        lines = plot_history(given, ax=axes()).lines
        assert all(np.array_equal(line.get_xydata(), lines[0].get_xydata()) for line in lines[1:])
    for sort_by in ("labels", "clusters"):
        ax = plot_kernels(model, sort_by, ax=axes())
        titles = {panel.get_title().split("\n")[0] for panel in ax.child_axes}
        assert titles == {"learned", *model.kernel_names_}
    first = plot_kernels(model, ax=axes()).child_axes[0]
    assert words(first.get_yticklabels()) == model.classes_.astype(str).tolist()
    X, y = np.random.default_rng(0).normal(size=(16, 2)), np.array(["c", "a", "b", "a"] * 4)
    shared = MKLClassifier({"near": "gaussian(0.5)", "a line": "linear()"}).fit(X, y)  # three risks, a kernel
    first = plot_kernels(shared, ax=axes()).child_axes[0]
    assert words(first.get_yticklabels()) == ["a", "b", "c"]
    order = np.argsort(y[shared._rows], kind="stable")
    kernel = shared.solution_.learned[2].kernel[np.ix_(order, order)]
    np.testing.assert_allclose(first.images[0].get_array(), kernel)
    assert "by cluster" in plot_kernels(shared.solution_, ax=axes()).get_title()
    one, _, three = shared.solution_.learned
    parts = tuple(replace(part, weights=2 * part.weights) for part in three.parts)
    two_kernels = replace(shared.solution_, learned=(one, replace(three, parts=parts)))
    with pytest.raises(ko.InputError, match=r"one learned kernel, got 2. Pass solution.learned\[i\]"):
        plot_kernels(two_kernels)
    problem, zero = model.solution_.problem, np.zeros(16)
    ends = (model, model.solution_, loaded["model"])
    paths = [plot_duality(problem, [zero, end], points=3, ax=axes()) for end in ends]
    drawn = [[line.get_ydata() for line in curves(ax)] for ax in paths]
    np.testing.assert_allclose(drawn, drawn[:1] * 3, rtol=1e-12)
    found, again = ko.kkt_table(model.solution_), ko.kkt_table(loaded["model"].solution_, problem)
    stationary = [c.relative for c in found.conditions if c.kind == "stationarity"]
    assert [c.relative for c in again.conditions if c.kind == "stationarity"] == pytest.approx(stationary)


def test_what_figures_cannot_draw_of_estimators_and_files_is_said(fitted):
    new, loaded = fitted
    model, several = new["model"], copy(new["model"])
    several.solution_ = (model.solution_,) * 3
    for draw in (plot_weights, plot_bounds, plot_history):
        for wrong, message in (
            (several, r"which has 3, one for each class or target. Pass model.solution_\[0\]"),
            (MKLClassifier(), "Call its fit first"),
            ([model.solution_], r"Pass one of them, such as path\[0\]"),
            (None, r"got None in plot_\w+. Pass what solve\(\) returns, or an estimator"),
        ):
            with pytest.raises(
                ko.InputError, match=r"solutions\['a'\] must be (a Solution|one solution).*" + message
            ):
                draw({"a": wrong})
    for wrong, message in (
        (several, r"model.solution_\[0\]"),
        (loaded["model"], "was loaded: files hold no matrices"),
        (loaded["solution"], "was loaded: files hold no matrices"),
    ):
        with pytest.raises(ko.InputError, match=message):
            plot_kernels(wrong)
    with pytest.raises(ko.InputError, match="the estimator has the weights. Pass the loaded estimator"):
        plot_weights({"a": loaded["model"].solution_})
    with pytest.raises(ko.InputError, match=r"Pass kernelopt.kkt_table\(model.solution_\)"):
        plot_kkt(model)
    with pytest.raises(ko.InputError, match=r"Pass model.solution_\[0\]"):
        ko.kkt_table(several)
    with pytest.raises(ko.InputError, match=r"references\['b'\] must be a finite number, got 'c'"):
        plot_bounds({"a": model}, {"b": "c"})


Y, SQUARES = np.array([1.0, -1.0]), np.array([0.5, 2.0])


def two_risks(shared):
    mu = cp.Variable(2, nonneg=True)
    nu = mu if shared else cp.Variable(2, nonneg=True)
    risks = ko.risk(ko.combine(mu, K), Y, ko.hinge()), ko.risk(ko.combine(nu, K), SQUARES, ko.squared())
    return ko.solve(cp.Problem(cp.Minimize(risks[0] + risks[1]), [cp.sum(mu) <= 1, cp.sum(nu) <= 1]))


def test_risks_over_the_same_weights_are_one_row(solutions):
    ax, both = axes(), two_risks(shared=True)
    plot_weights({"both": both, **solutions}, ["I", "yy'"], ax=ax)
    (weights, _) = (machine.weights for machine in both.learned)
    np.testing.assert_allclose(ax.images[0].get_array()[0], weights / weights.max())
    assert [t.get_text().split("\n")[0] for t in ax.get_yticklabels()] == ["both", "hard", "soft"]


def test_risks_over_other_weights_are_told_how_to_be_drawn():
    apart = two_risks(shared=False)
    with pytest.raises(ko.InputError, match=r"'apart' has different weights for each of 2 risks") as error:
        plot_weights({"apart": apart}, ["I", "yy'"])
    assert "Pass one row per risk" in str(error.value) and "solution.learned" in str(error.value)
    ax = axes()
    rows = {f"risk {i}": machine for i, machine in enumerate(apart.learned)}
    shares = plot_weights(rows, ax=ax).images[0].get_array()
    np.testing.assert_allclose(shares, [m.weights / m.weights.max() for m in apart.learned])


def test_a_solution_without_weights_is_told_so():
    variable = cp.Variable((2, 2), PSD=True)
    problem = cp.Problem(cp.Minimize(ko.risk(variable, [1, -1], ko.hinge())), [cp.trace(variable) <= 2])
    with pytest.raises(ko.InputError, match=r"'free' has none.*Leave it out"):
        plot_weights({"free": ko.solve(problem)})


def test_solutions_of_other_numbers_of_kernels_are_told_apart(solutions):
    one = lanckriet.soft_margin(K[:1], [1, -1]).solve()
    with pytest.raises(ko.InputError, match=r"as many weights.*'one': 1") as error:
        plot_weights({**solutions, "one": one})
    assert "'hard': 2" in str(error.value) and "Draw" in str(error.value)
    with pytest.raises(ko.InputError, match=r"one name per kernel \(2\), got 3 names.*Pass"):
        plot_weights(solutions, ["a", "b", "c"])


@pytest.mark.parametrize(
    "draw",
    [lambda s: plot_weights(s, ["only one"]), lambda s: plot_weights({}, []), lambda s: plot_bounds({})],
)
def test_wrong_use_is_said(draw, solutions):
    with pytest.raises(ko.InputError, match="Pass"):
        draw(solutions)


def test_without_matplotlib_the_way_out_is_named(monkeypatch, solutions):
    real = builtins.__import__

    def without(name, *rest):
        if name.startswith("matplotlib"):
            raise ImportError(name)
        return real(name, *rest)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(ko.KerneloptError, match=r"kernelopt\[plot\]"):
        plot_bounds(solutions)


# ---------------------------------------------------------------------------------------- duality

GRAMS = np.array([[[2.0, 0, 0], [0, 2, 1], [0, 1, 2]], [[2, -2, 0], [-2, 2, 0], [0, 0, 1]]])
LABELS = np.array([1.0, -1.0, 1.0])


def ball_problem(sense=cp.Minimize):
    theta = cp.Variable(2, nonneg=True, name="theta")
    risk = ko.risk(ko.combine(theta, GRAMS), LABELS, ko.squared_hinge(1.0))
    return cp.Problem(sense(risk if sense is cp.Minimize else -risk), ko.lp_ball(theta, 2))


def curves(ax):
    """The upper and the lower curve of a figure."""
    return (line for line in ax.lines if len(line.get_xdata()) > 2)


def test_the_dual_is_below_the_primal_on_a_path_and_meets_it_at_the_optimum():
    problem = ball_problem()
    solution = ko.solve(problem, "exact", tol=1e-8)
    ax = axes()
    assert plot_duality(problem, [np.zeros(3), solution, 3 * LABELS], points=5, ax=ax) is ax
    upper, lower = (line.get_ydata() for line in curves(ax))
    assert (upper >= lower - 1e-9).all() and (upper >= solution.lower - 1e-9).all()
    assert (lower <= solution.upper + 1e-9).all()
    assert upper[4] == pytest.approx(solution.value, rel=1e-5) == lower[4]
    assert lower[0] == 0 and upper[0] - lower[0] > 0.1  # alpha = 0 proves that the value is not negative
    last = ko.squared_hinge(1.0).project(3 * LABELS, LABELS, True)
    assert lower[6] == pytest.approx(value_half_way(solution.certificate.alphas[0], last), rel=1e-9)


def value_half_way(first, last):
    """The dual (D) of Kloft et al. half way between two points, by hand."""
    alpha = (first + last) / 2
    s = np.array([alpha @ K @ alpha for K in GRAMS])
    return LABELS @ alpha - alpha @ alpha / 2 - np.linalg.norm(s) / 2


@pytest.mark.parametrize("size", [10, 18])
def test_the_legend_has_the_font_of_the_style(size):
    """A lecture sets font.size, and every text of the figure follows it."""
    with mpl.rc_context({"font.size": size}):
        ax = axes()
        plot_duality(ball_problem(), [np.zeros(3), LABELS], points=3, ax=ax)
        assert {text.get_fontsize() for text in ax.get_legend().get_texts()} == {size}


def test_between_solutions_the_primal_is_that_of_the_points_between():
    problem = ball_problem()
    first, last = ko.solve(problem, "exact", tol=1e-3), ko.solve(problem, "exact", tol=1e-8)
    ax = axes()
    plot_duality(problem, [first, last], points=3, ax=ax)
    upper, lower = (line.get_ydata() for line in curves(ax))
    assert upper[-1] == pytest.approx(last.value, rel=1e-7) and upper[-1] >= lower[-1] - 1e-9
    assert words(ax.get_legend().get_texts()) == ["primal", "dual"]


def test_of_a_maximisation_the_dual_is_above():
    problem = ball_problem(cp.Maximize)
    ax = axes()
    plot_duality(problem, [np.zeros(3), LABELS], points=4, ax=ax)
    upper, lower = (line.get_ydata() for line in curves(ax))
    assert upper[0] == 0 and (upper >= lower - 1e-9).all()
    assert ax.get_legend().get_texts()[0].get_text() == "dual"


@pytest.mark.parametrize("path", [[], [LABELS], 3, "ab"], ids=["none", "one", "number", "text"])
def test_a_path_has_two_corners(path):
    with pytest.raises(ko.InputError):
        plot_duality(ball_problem(), path)


def test_a_path_needs_one_risk():
    x = cp.Variable(2, nonneg=True)
    with pytest.raises(ko.InputError, match="needs a problem with one risk, got 0"):
        plot_duality(cp.Problem(cp.Minimize(cp.sum(x))), [LABELS, LABELS])

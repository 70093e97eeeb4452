"""Paths: certified solutions along a parameter, each from the one before."""

from __future__ import annotations

import time
import warnings
from functools import cache
from itertools import pairwise

import cvxpy as cp
import numpy as np
import pytest
from matplotlib.figure import Figure

import kernelopt as ko
from formulations import lp_norm
from kernelopt.extend import DEFAULT_TOL
from kernelopt.figures import draw_weights_along, values_axis
from kernelopt.methods.describe import start_of
from kernelopt.structure import Structure
from tests.every import every
from tests.methods.cases import learning
from tests.problems import labels, points, stack, targets

N = 24
X, Y = points(N), labels(N)
WIDTHS = [0.4, 1.0, 3.0]
GRAMS = ko.Grams.from_kernels([ko.gaussian(w) for w in WIDTHS], X)
P = [1, 1.2, 2, 5, np.inf]
CURVED = [1.5, 1.7, 2, 5]  # where the block descent is quick


@cache
def exact_optimum(p):
    return lp_norm.primal(GRAMS, Y, p=p).solve("exact", tol=1e-7)


@every("method", ["interleaved", "cutting-plane", "newton", "auto"])
def test_a_path_over_p_has_the_certified_optimum_of_every_p(method):
    path = lp_norm.path(GRAMS, Y, p=P, method=method)
    assert path.complete and path.values == tuple(P) and path.name == "p"
    for p, solution in zip(P, path, strict=True):
        exact = exact_optimum(p)
        assert solution.gap <= DEFAULT_TOL
        assert solution.lower <= exact.upper and exact.lower <= solution.upper
    assert (path.upper[1:] >= path.lower[1:]).all() and (np.diff(path.lower) <= 1e-4).all()
    assert path.weights.shape == (len(P), len(WIDTHS))


@every(
    "loss, y",
    [(ko.hinge(1.0), Y), (ko.logistic(1.0), Y), (ko.epsilon_insensitive(1.0, 0.1), targets(N))],
)
def test_a_path_over_c_multiplies_the_loss(loss, y):
    path = lp_norm.path(GRAMS, y, C=[0.1, 1, 10], loss=loss)
    for C, solution in zip(path.values, path, strict=True):
        alone = lp_norm.primal(GRAMS, y, loss=loss.scaled(C)).solve()
        assert solution.lower <= alone.upper and alone.lower <= solution.upper
    assert (np.diff(path.upper) >= -1e-4).all()


def test_the_next_problem_starts_from_the_last_solution():
    first = lp_norm.primal(GRAMS, Y, p=1.3).solve("block-descent")
    second = lp_norm.primal(GRAMS, Y, p=1.3).solve("block-descent", start=first)
    assert first.iterations > 10 and second.iterations <= 5
    cold = lp_norm.primal(GRAMS, Y, p=1.25).solve("block-descent")
    warm = lp_norm.primal(GRAMS, Y, p=1.25).solve("block-descent", start=first)
    assert warm.iterations < cold.iterations
    for method in ("interleaved", "cutting-plane"):
        reports = []
        lp_norm.primal(GRAMS, Y, p=1.3).solve(method, start=first, callback=reports.append)
        assert reports[0]["upper"] <= first.upper * (1 + 1e-4)


def test_a_start_is_projected_on_the_domain_of_the_loss():
    start = lp_norm.primal(GRAMS, Y, loss=ko.hinge(10.0)).solve()
    structure = Structure(lp_norm.primal(GRAMS, Y, loss=ko.hinge(0.1)).problem)
    (alpha,) = start_of(structure, start).alphas
    assert np.abs(alpha).max() <= 0.1 and abs(alpha.sum()) <= 1e-14 and (alpha * Y >= 0).all()


@every("bad", [1.0, "last", np.ones(3)])
def test_a_start_is_a_solution(bad):
    with pytest.raises(ko.errors.ParameterError, match="start must be a Solution"):
        lp_norm.primal(GRAMS, Y).solve(start=bad)


def test_a_start_has_the_variables_and_the_samples_of_the_problem():
    start = lp_norm.primal(GRAMS, Y).solve("block-descent")
    with pytest.raises(ko.errors.ParameterError, match="same number of kernels"):
        lp_norm.primal(GRAMS.subset([0, 1]), Y).solve(start=start)
    with pytest.raises(ko.errors.ParameterError, match="same samples"):
        lp_norm.primal(GRAMS, Y[:-1]).solve(start=start)


def test_a_path_of_problems_in_words_and_of_other_values():
    def at(budget):
        theta = cp.Variable(3, nonneg=True)
        risk = ko.risk(ko.combine(theta, stack(N)), Y, ko.hinge())
        return cp.Problem(cp.Minimize(risk), ko.lp_ball(theta, 2, budget))

    path = ko.path(at, [1.0, 2.0], "block-descent", name="budget")
    assert path.upper[1] < path.upper[0] and path.name == "budget"
    labelled = ko.path(lambda word: learning(trace={"small": 5, "large": 10}[word])[0], ["small", "large"])
    assert labelled.values == ("small", "large") and "small" in str(labelled)


def test_the_callback_hears_of_every_value_and_may_end_the_path():
    heard = []

    def until_two(report):
        heard.append(report["value"])
        if report["value"] == 2:
            raise StopIteration

    with pytest.warns(ko.ConvergenceWarning, match="callback"):
        path = lp_norm.path(GRAMS, Y, p=CURVED, method="block-descent", callback=until_two)
    assert path.values == (1.5, 1.7, 2) and not path.complete and set(heard) == {1.5, 1.7, 2}
    assert path[-1].ended_by_caller and not path[0].ended_by_caller
    assert (path.lower <= path.upper).all() and "ended" in repr(path)


def test_ctrl_c_returns_the_points_so_far():
    def pressed(report):
        if report["value"] == 2:
            raise KeyboardInterrupt

    with pytest.warns(ko.ConvergenceWarning, match="interrupted"):
        path = lp_norm.path(GRAMS, Y, p=CURVED, method="block-descent", callback=pressed)
    assert path.values == (1.5, 1.7, 2)

    def between(p):
        if p == 2:
            raise KeyboardInterrupt
        return lp_norm.primal(GRAMS, Y, p=p)

    assert ko.path(between, CURVED, "block-descent").values == (1.5, 1.7)
    with pytest.raises(KeyboardInterrupt):
        ko.path(between, [2])


def test_the_time_limit_is_that_of_the_whole_path():
    def slowly(p):
        time.sleep(0.2)
        return lp_norm.primal(GRAMS, Y, p=p)

    began = time.perf_counter()
    with warnings.catch_warnings():  # the last point may be above the tolerance
        warnings.simplefilter("ignore", ko.ConvergenceWarning)
        path = ko.path(slowly, np.linspace(1.5, 3, 50), "block-descent", time_limit=0.5)
    assert 1 <= len(path) <= 4 and not path.complete and time.perf_counter() - began < 5


@every(
    "arguments, words",
    [
        ({"p": 2}, "list of exponents without C"),
        ({"p": [1, 2], "C": [1, 2]}, "p must"),
        ({"p": []}, "at least one value"),
        ({"p": [0.5]}, "exponent|p must"),
        ({"C": [-1]}, "C must be"),
        ({"C": 1.0}, "list"),
        ({"p": [1, 2], "checkpoint": "a.npz"}, "checkpoint"),
    ],
)
def test_wrong_arguments_of_a_path(arguments, words):
    with pytest.raises(ko.InputError, match=words):
        lp_norm.path(GRAMS, Y, **arguments)


def test_a_path_is_a_sequence_with_a_table():
    path = lp_norm.path(GRAMS, Y, p=[1.5, 2, np.inf], method="block-descent")
    assert len(path) == 3 and path[1] is list(path)[1] and path[:2] == path.solutions[:2]
    assert [line.split()[0] for line in str(path).splitlines()] == ["p", "1.5", "2", "inf"]
    assert path._repr_html_().startswith("<table>") and "3 solutions" in repr(path)
    with pytest.raises(TypeError, match="tolerance|tol"):
        lp_norm.path(GRAMS, Y, p=[1, 2], tolerance=1e-3)


def test_the_figure_of_a_path_has_a_line_per_kernel():
    paths = {
        "linear": lp_norm.path(GRAMS, Y, p=[2, 3, 4], method="block-descent"),
        "log": lp_norm.path(GRAMS, Y, C=[0.1, 1, 10], method="block-descent"),
        "names": lp_norm.path(GRAMS, Y, p=[2, np.inf], method="block-descent"),
    }
    for scale, path in paths.items():
        ax = path.plot(Figure().subplots())
        assert np.allclose([line.get_ydata() for line in ax.get_lines()], path.weights.T)
        assert ax.get_xscale() == ("log" if scale == "log" else "linear")
        assert [text.get_text() for text in ax.get_legend().get_texts()] == list(path[0].learned[0].names)
    assert [text.get_text() for text in ax.get_xticklabels()] == ["2", "inf"]
    m = path.weights.shape[1]
    ax = path.plot(Figure().subplots(), names=map(str, range(m)))
    assert [text.get_text() for text in ax.get_legend().get_texts()] == [str(k) for k in range(m)]
    with pytest.raises(ko.InputError, match=rf"one name per kernel \({m}\), got 1 names"):
        path.plot(names=["a"])
    bounds = paths["log"].plot_bounds(Figure().subplots())
    above, below = bounds.get_lines()
    assert np.array_equal(above.get_ydata(), paths["log"].upper) and bounds.get_xscale() == "log"
    assert np.array_equal(below.get_ydata(), paths["log"].lower)


def test_texts_of_values_do_not_touch_each_other():
    figure = Figure(layout="constrained")
    ax = figure.subplots()
    values = [*np.linspace(1, 2, 39), np.inf]
    assert values_axis(ax, "p", values, [f"{v:.3f}" for v in values]).tolist() == list(range(40))
    figure.draw_without_rendering()
    boxes = [label.get_window_extent() for label in ax.get_xticklabels()]
    assert len(boxes) > 5 and not any(a.overlaps(b) for a, b in pairwise(boxes))


def test_of_many_kernels_the_largest_have_names():
    ax = Figure().subplots()
    weights = np.outer([1.0, 2.0], np.arange(60.0))
    draw_weights_along(ax, np.array([1.0, 2.0]), weights, [f"kernel {k}" for k in range(60)])
    names = [text.get_text() for text in ax.get_legend().get_texts()]
    assert names == ["others", *(f"kernel {k}" for k in range(48, 60))] and len(ax.lines) == 60
    looks = {(line.get_color(), line.get_linestyle()) for line in ax.lines[48:]}
    assert len(looks) == 12
    ax = Figure().subplots()
    draw_weights_along(ax, np.array([1.0, 2.0]), np.array([[1.0], [1.0 + 1e-12]]), ["one"])
    assert ax.get_ylim()[0] < 0 < 1 < ax.get_ylim()[1] < 1.2  # rounding errors do not fill the figure

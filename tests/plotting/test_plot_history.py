"""Bounds and gaps against the time, of one solution and of several."""

from __future__ import annotations

from dataclasses import replace

import matplotlib as mpl
import numpy as np
import pytest

import kernelopt as ko
from formulations import lp_norm
from kernelopt.plotting import plot_history

mpl.use("Agg")
from matplotlib import pyplot

from tests.figures import axes, boxes, within, words

rng = np.random.default_rng(0)
X = rng.normal(size=(16, 2))
Y = np.where(X[:, 0] + X[:, 1] ** 2 > 0.5, 1.0, -1.0)
GRAMS = ko.Grams.from_kernels([ko.gaussian(1.0), ko.linear()], X)


@pytest.fixture(scope="module")
def solution():
    return lp_norm.primal(GRAMS, Y, p=2).solve("cutting-plane")


def with_history(solution, *rows):
    return replace(solution, history=rows)


def with_bounds(solution, lower, upper):
    return replace(solution, certificate=replace(solution.certificate, lower=lower, upper=upper))


def end_of(solution):
    return solution.build_time + solution.solve_time + solution.certify_time


def test_the_history_is_drawn_as_it_was_reported_and_ends_at_the_certificate(solution):
    ax = axes()
    assert solution.plot_history(ax=ax) is ax
    end = (end_of(solution), solution.lower, solution.upper)
    seconds, lower, upper = np.array([*solution.history, end]).T
    above, below = ax.lines
    assert np.array_equal(above.get_ydata(), upper[np.isfinite(upper)])
    assert np.array_equal(below.get_xdata(), seconds[np.isfinite(lower)])
    assert ax.get_title() == "Certified bounds, cutting-plane"
    assert (np.diff(seconds) >= 0).all()


def test_the_bounds_of_one_solution_have_a_second_axis_with_the_gap(solution):
    gaps = solution.certified_history(True)
    for ax in (solution.plot_history(axes()), plot_history(solution, ax=axes())):
        (beside,) = [other for other in ax.figure.axes if other is not ax]
        assert beside.get_yscale() == "log" and ax.get_yscale() == "linear"
        (line,) = beside.lines
        known = np.isfinite(gaps[:, 3])
        np.testing.assert_allclose(line.get_xdata(), gaps[known, 0])
        np.testing.assert_allclose(line.get_ydata(), np.maximum(gaps[known, 3], 1e-16))
        assert line.get_ydata()[-1] == pytest.approx(max(solution.gap, 1e-16))
        ax.figure.draw_without_rendering()
        label = beside.yaxis.label
        assert within(ax.figure.bbox, boxes([label])) and not boxes([label])[0].overlaps(boxes([ax.patch])[0])
    half = with_bounds(with_history(solution, (0.1, -np.inf, 3.0)), -np.inf, 3.0)
    assert half.plot_history(axes()).figure.axes[1:] == []  # no gap is finite
    for several in (
        plot_history([solution] * 2, gap=False, ax=axes()),
        solution.plot_history(axes(), gap=True),
    ):
        assert several.figure.axes == [several]


def test_several_solutions_are_compared_by_their_gaps(solution):
    floor = solution.certificate.floor
    other = with_history(solution, (1e-3, -np.inf, 9.0), (2e-3, 1.0, 4.0))
    ax = plot_history({"own": solution, "other": other}, ax=axes())
    assert ax.get_yscale() == "log" and ax.get_ylabel() == "certified relative gap"
    own, drawn = ax.lines
    assert drawn.get_ydata() == pytest.approx([3.0 / max(4.0, floor), max(solution.gap, 1e-16)], rel=1e-12)
    assert own.get_ydata()[-1] == pytest.approx(max(solution.gap, 1e-16))
    assert own.get_linestyle() != drawn.get_linestyle() and own.get_marker() != drawn.get_marker()
    assert words(ax.get_legend().get_texts()) == ["own", "other"]
    one = solution.plot_history(axes(7, 5))
    names = words(one.get_legend().get_texts())
    assert names == ["certified upper bound", "certified lower bound"]  # the gap may be too small to be seen
    for drawn_on in (one, plot_history({f"method {i}": other for i in range(24)}, ax=axes(7, 5))):
        drawn_on.figure.draw_without_rendering()
        legend, *others = boxes([drawn_on.get_legend(), drawn_on.patch, drawn_on.xaxis.label])
        assert not any(legend.overlaps(box) for box in others) and within(drawn_on.figure.bbox, [legend])


def test_bounds_of_several_solutions_are_drawn_on_request(solution):
    ax = plot_history({"a": solution, "b": solution}, gap=False, ax=axes())
    assert len(ax.lines) == 4 and ax.get_ylabel() == "value" and ax.get_yscale() == "linear"
    assert ax.lines[0].get_color() == ax.lines[1].get_color() != ax.lines[2].get_color()


def test_times_of_different_magnitude_have_a_logarithmic_axis(solution):
    slow = replace(solution, solve_time=100 * solution.solve_time + 1)
    ax = plot_history({"fast": solution, "slow": slow}, ax=axes())
    assert ax.get_xscale() == "log"
    assert plot_history({"fast": solution}, ax=axes()).get_xscale() == "linear"


def test_a_method_without_reports_has_the_point_of_its_certificate(solution):
    for gap in (False, True):
        ax = with_history(solution).plot_history(axes(), gap=gap)
        assert all(line.get_xdata().tolist() == [end_of(solution)] for line in ax.lines)
        left, right = ax.get_xlim()
        assert left == 0 < end_of(solution) < right
        ax.figure.draw_without_rendering()


def test_a_gap_of_zero_is_drawn_at_the_rounding_error(solution):
    exact = with_bounds(with_history(solution), 1.0, 1.0)
    ax = exact.plot_history(axes(), gap=True)
    assert ax.lines[0].get_ydata().tolist() == [1e-16]


def test_a_history_without_bounds_is_refused(solution):
    none = with_bounds(with_history(solution), -np.inf, np.inf)
    half = with_bounds(with_history(solution, (0.1, -np.inf, 3.0)), -np.inf, 3.0)
    opened = pyplot.get_fignums()
    for draw in (none.plot_history, lambda: plot_history({"fine": solution, "none": none})):
        with pytest.raises(ko.InputError, match=r"finite (bound|gap), got 0 reports.*the end. Solve"):
            draw()
    with pytest.raises(ko.InputError, match="finite gap, got 1 reports"):
        half.plot_history(gap=True)
    assert pyplot.get_fignums() == opened  # an error opens no figure
    half.plot_history(axes())


def test_wrong_arguments_of_a_history(solution):
    for wrong in ("solution", 3, None, solution.weights):
        with pytest.raises(
            ko.InputError, match="a list of them or a dict from label to solution, got .*Pass"
        ):
            plot_history(wrong)
    with pytest.raises(ko.InputError, match="at least one solution"):
        plot_history({})
    with pytest.raises(ko.InputError, match="gap must be"):
        plot_history({"a": solution}, gap="log")
    with pytest.raises(ko.InputError, match="ax must be matplotlib axes, got a ndarray. Pass one axes"):
        solution.plot_history(np.array([1, 2]))

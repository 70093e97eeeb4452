"""Figures: they draw on the given axes what the solutions say."""

from __future__ import annotations

import builtins

import matplotlib as mpl
import numpy as np
import pytest

import kernelopt as ko
from formulations import lanckriet
from kernelopt.plotting import plot_bounds, plot_weights

mpl.use("Agg")
from matplotlib.figure import Figure

K = np.array([[[2.0, 0], [0, 2]], [[2, -2], [-2, 2]]])


@pytest.fixture(scope="module")
def solutions():
    return {
        "hard": lanckriet.hard_margin(K, [1, -1]).solve(),
        "soft": lanckriet.soft_margin(K, [1, -1]).solve(),
    }


def test_weights_are_drawn_as_shares_of_the_largest(solutions):
    ax = Figure().subplots()
    assert plot_weights(solutions, ["I", "yy'"], ax=ax) is ax
    assert np.abs(ax.images[0].get_array() - [[0, 1], [0, 1]]).max() < 1e-6
    assert [t.get_text() for t in ax.get_xticklabels()] == ["I", "yy'"]
    assert [t.get_text() for t in ax.get_yticklabels()] == ["hard", "soft"]


def test_bounds_are_drawn_at_their_values(solutions):
    ax = Figure().subplots()
    assert plot_bounds(solutions, {"single": 3.0}, ax=ax) is ax
    assert [bar.get_width() for bar in ax.patches] == pytest.approx([s.upper for s in solutions.values()])
    assert any("single" in text.get_text() for text in ax.get_legend().get_texts())


def test_without_axes_new_ones_are_made(solutions):
    assert plot_bounds(solutions).figure is not plot_weights(solutions, ["a", "b"]).figure


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

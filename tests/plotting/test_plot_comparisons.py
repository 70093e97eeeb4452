"""The graph of relative comparisons on a circle, with its contradictions."""

from __future__ import annotations

from itertools import pairwise

import matplotlib as mpl
import numpy as np
import pytest

import kernelopt as ko
from kernelopt.plotting import plot_comparisons

mpl.use("Agg")
from matplotlib.colors import to_hex

from tests.figures import axes, boxes, within

CYCLE = [[0, 1, 2], [1, 2, 0], [2, 0, 1], [0, 1, 2], [3, 4, 5]]
FORWARD, INSIDE, REMOVED = "#8c8c8c", "#08306b", "#d55e00"  # 0.55 is 8c


def arcs(ax):
    """The number of arcs of each colour."""
    colours = [to_hex(patch.get_edgecolor()) for patch in ax.patches]
    return {colour: colours.count(colour) for colour in set(colours)}


def positions(ax):
    """The place of each label's pair on the circle."""
    return {text.get_text(): np.array(text.xy) for text in ax.texts}


def test_arcs_in_contradictions_are_told_apart():
    compared = ko.comparisons(CYCLE)
    ax = axes()
    assert plot_comparisons(compared, ax=ax) is ax
    assert arcs(ax) == {FORWARD: 1, INSIDE: 2, REMOVED: 1}
    styles = {to_hex(patch.get_edgecolor()): patch.get_linestyle() for patch in ax.patches}
    assert styles[REMOVED] != styles[INSIDE] == styles[FORWARD]
    assert set(positions(ax)) == {"0–1", "0–2", "1–2", "3–4", "3–5"}
    circles, squares = (line for line in ax.lines if line.get_marker() in "os")
    assert (len(circles.get_xdata()), len(squares.get_xdata())) == (2, 3)
    assert ax.get_title() == "Comparisons of 5 pairs, 1 group with contradictions"


def test_arcs_lead_clockwise_where_nothing_contradicts():
    triplets = [[0, j, j + 1] for j in range(1, 8)]  # 0-8, 0-7, ..., 0-1: ever more similar
    ax = plot_comparisons(triplets, names=list("abcdefghi"), ax=axes())
    assert arcs(ax) == {FORWARD: 7} and ax.get_title().endswith("no contradiction")
    places = positions(ax)
    order = [places[f"a–{name}"] for name in "ihgfedcb"]
    turns = [np.cross([*p, 0.0], [*q, 0.0])[2] for p, q in pairwise(order)]
    assert all(turn < 0 for turn in turns)
    assert order[0][1] > 0.9 < order[-1][1]  # from the top to the top
    assert np.allclose([np.linalg.norm(p) for p in order], 1)


def test_sixty_pairs_with_long_names_do_not_overlap():
    names = [f"point {i} of the data" for i in range(61)]
    ax = plot_comparisons([[0, j, j + 1] for j in range(1, 60)], names, ax=axes(6.4, 6.4))
    figure = ax.figure
    figure.draw_without_rendering()
    assert len(ax.texts) == 60
    size, radius = ax.texts[0].get_fontsize(), np.diff(ax.transData.transform([[0, 0], [1, 0]])[:, 0])[0]
    assert 2 * np.pi * radius * 72 / figure.dpi / 60 > size  # the arc between two labels is a line of text
    assert within(figure.bbox, boxes(ax.texts))


def test_arcs_are_bent_away_from_the_other_pairs():
    """Also opposite arcs and arcs between neighbours, which would lie on the circle otherwise."""
    triplets = [[0, 1, 2], [0, 2, 1], *([0, j, j + 1] for j in range(3, 12))]
    ax = plot_comparisons(triplets, ax=axes())
    nodes = np.array(list(positions(ax).values()))
    curves = []
    for patch in ax.patches:
        start, control, end = patch.get_path().vertices[:3]
        t = np.linspace(0.2, 0.8, 7)[:, None]
        curves.append((1 - t) ** 2 * start + 2 * t * (1 - t) * control + t**2 * end)
        assert np.linalg.norm(control) < np.linalg.norm((start + end) / 2)
        assert np.linalg.norm(curves[-1][:, None] - nodes, axis=2).min() > 0.05
    assert len(curves) == 11
    two = [curve for curve, patch in zip(curves, ax.patches, strict=True) if patch.get_linewidth() > 1]
    assert np.linalg.norm(two[0] - two[1][::-1], axis=1).max() > 0.02


def test_one_comparison_is_drawn():
    ax = plot_comparisons([[0, 1, 2]], ax=axes())
    assert arcs(ax) == {FORWARD: 1} and len(ax.texts) == 2


def test_wrong_arguments_of_comparisons():
    many = [[0, j, j + 1] for j in range(1, 62)]
    with pytest.raises(ko.InputError, match=r"at most 60 pairs of points, got 62 pairs in 61 .*Draw"):
        plot_comparisons(many)
    with pytest.raises(ko.InputError, match=r"at least 6\), got 2 names"):
        plot_comparisons(CYCLE, ["a", "b"])
    with pytest.raises(ko.InputError, match="triplets must have shape"):
        plot_comparisons([1, 2, 3])

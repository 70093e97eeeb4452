"""Heat maps of the learned kernel and of the base kernels, sorted."""

from __future__ import annotations

import numpy as np
import pytest

import kernelopt as ko
from formulations import lp_norm
from kernelopt.extend import as_grams
from kernelopt.methods.learned import Learned, Part
from kernelopt.plotting import plot_kernels
from tests.figures import apart, axes, boxes, words

rng = np.random.default_rng(1)
X = np.vstack([rng.normal(0, 0.3, (6, 2)), rng.normal(3, 0.3, (8, 2))])[rng.permutation(14)]
NEAR = X[:, 0] < 1.5
Y = np.where(NEAR, 1.0, -1.0)
GRAMS = ko.Grams.from_kernels([ko.gaussian(1.0), ko.linear(), ko.gaussian(3.0)], X)


@pytest.fixture(scope="module")
def solution():
    return lp_norm.primal(GRAMS, Y, p=2).solve("exact")


def machine(weights, y=None, grams=GRAMS):
    part = Part(np.asarray(weights), grams, np.zeros(0))
    return Learned(np.zeros(0), 0.0, (part,), combined=True, inductive=True, y=y)


def images(ax):
    """The matrices of the panels, with their titles."""
    return {panel.get_title(): panel.images[0].get_array() for panel in ax.child_axes}


def test_the_kernels_are_sorted_by_label_and_each_has_its_own_scale_of_colours(solution):
    ax = axes()
    assert plot_kernels(solution, ax=ax) is ax
    order = np.argsort(Y, kind="stable")
    drawn = list(images(ax).items())
    learned = solution.kernel[np.ix_(order, order)]
    np.testing.assert_allclose(drawn[0][1], learned)
    assert (
        drawn[0][0] == "learned" and ax.get_title() == "Learned kernel and 3 base kernels,\npoints by label"
    )
    for rank, k in enumerate(np.argsort(-solution.weights)):
        K = GRAMS[k][np.ix_(order, order)]
        np.testing.assert_allclose(drawn[rank + 1][1], K)
        off = [K[i, j] for i in range(14) for j in range(14) if i != j]
        limits = ax.child_axes[rank + 1].images[0].get_clim()
        assert limits == pytest.approx(np.percentile(off, [2, 98]))
        assert drawn[rank + 1][0].endswith(f"weight {solution.weights[k]:.3g}")
    first = ax.child_axes[0]
    assert words(first.get_yticklabels()) == ["-1", "1"]
    assert [line.get_xdata()[0] for line in first.lines[1::2]] == pytest.approx([8 / 14])


def test_the_largest_weights_are_drawn_and_the_title_says_how_many_there_are():
    ax = plot_kernels(machine([0.1, -3.0, 1.0]), "none", most=2, names=["a", "b", "c"], ax=axes())
    assert list(images(ax)) == ["learned", "b\nweight -3", "c\nweight 1"]
    assert "2 of 3 base kernels" in ax.get_title() and "in their order" in ax.get_title()
    np.testing.assert_allclose(images(ax)["c\nweight 1"], GRAMS[2])


def test_clusters_are_found_and_groups_are_named():
    learned = machine([0.0, 0.0, 1.0])
    for sort_by in ("clusters", None):  # without labels
        ax = plot_kernels(learned, sort_by, most=1, ax=axes())
        signs = np.sign(images(ax)["learned"][0] - images(ax)["learned"].mean())
        assert (np.diff(signs) != 0).sum() == 1  # each cluster is one block
    ax = plot_kernels(learned, np.where(NEAR, "near", "far"), ax=axes())
    assert words(ax.child_axes[0].get_yticklabels()) == ["far", "near"]


def test_unlabelled_points_are_last():
    y = Y[:10]
    ax = plot_kernels(machine([0.0, 0.0, 1.0], y), ax=axes())
    order = [*np.argsort(y, kind="stable"), *range(10, 14)]
    assert words(ax.child_axes[0].get_yticklabels()) == ["-1", "1", "unlabelled"]
    np.testing.assert_allclose(images(ax)["learned"], GRAMS[2][np.ix_(order, order)])


def test_one_kernel_one_point_zero_kernels_and_large_ones_are_drawn():
    nearly_one = np.eye(4) + 1e-9 * np.arange(16).reshape(4, 4)
    ax = plot_kernels(machine([1.0], grams=as_grams([nearly_one + nearly_one.T])), ax=axes())
    lowest, highest = ax.child_axes[0].images[0].get_clim()
    assert highest - lowest == pytest.approx(0.05 * 2)  # no colours for errors of rounding
    for K in (np.ones((1, 1, 1)), np.zeros((1, 2, 2))):
        ax = plot_kernels(machine([1.0], grams=as_grams(K)), ax=axes())
        assert len(ax.child_axes) == 2
    V = np.arange(1.0, 1002.0)
    ax = plot_kernels(machine([1.0], grams=ko.Grams.rank_one(V[:, None])), "none", ax=axes())
    image = images(ax)["learned"]
    assert image.shape == (400, 400)
    means = np.array([part.mean() for part in np.split(V, np.linspace(0, 1001, 401).astype(int)[1:-1])])
    np.testing.assert_allclose(image, np.outer(means, means))


def test_nothing_overlaps_in_a_figure_of_many_panels():
    grams = ko.Grams.from_kernels([ko.gaussian(np.pi * 2.0**k) for k in range(19)], X)
    ax = plot_kernels(machine(np.ones(19), grams=grams), "none", most=19, ax=axes(9, 7))
    ax.figure.draw_without_rendering()
    parts = [part for panel in ax.child_axes for part in (panel.title, panel.patch)]
    assert apart([box.padded(-1) for box in boxes([*parts, ax.title])])


def test_wrong_arguments_of_kernels(solution):
    for wrong, said in (
        ({"solution": GRAMS}, "solution must be a Solution or a fitted estimator, got .*Pass what solve"),
        ({"sort_by": "label"}, 'must be "labels", "clusters", "none" or .*got .label.'),
        ({"sort_by": Y[:5]}, r"sort_by must have shape \(14,\).*got \(5,\)"),
        ({"solution": machine([1.0, 1, 1]), "sort_by": "labels"}, "learned from labels, got one without"),
        ({"names": ["a"]}, r"one name per kernel \(3\), got 1 names"),
        ({"most": 0}, "most must be"),
    ):
        with pytest.raises(ko.InputError, match=said):
            plot_kernels(**{"solution": solution, **wrong})

"""The figure of `kernelopt demo`: the weights, and what learning a kernel changes on test points."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from kernelopt.cli.demo.rows import Row
from kernelopt.methods.solution import Solution
from kernelopt.plotting import plot_weights


def save_figure(rows: Mapping[str, Row], names: Sequence[str], path: Path) -> None:
    """Save a figure of the weights and the scores of the learned kernels."""
    found = {title: (row, row.solution) for title, row in rows.items() if row.solution is not None}
    figure = Figure(figsize=(13, 4.6), layout="constrained")
    left, right = figure.subplots(1, 2, width_ratios=(1.25, 1))
    weighted = {paper(title): s for title, (_, s) in found.items() if np.size(s.weights) == len(names)}
    plot_weights(weighted, names, ax=left)
    draw_scores(right, found, rows["RBF SVM, 5-fold CV"].score)
    figure.suptitle("Breast cancer data: a kernel by a formulation of each paper")
    figure.savefig(path, dpi=130)


def paper(title: str) -> str:
    """Return the authors, which the title of a row begins with."""
    return title.partition(":")[0]


def draw_scores(ax: Any, rows: Mapping[str, tuple[Row, Solution]], reference: float) -> None:
    """Draw the scores with and without learning, a line per formulation, with its certified gap."""
    places = range(len(rows))
    scores, plain = [row.score for row, _ in rows.values()], [row.plain for row, _ in rows.values()]
    ax.hlines(places, plain, scores, color="0.6", linewidth=1.5, zorder=1)
    ax.plot(plain, places, "o", mfc="white", color="0.3", label="without learning the kernel")
    ax.plot(scores, places, "o", color="#08306b", label="with the learned kernel")
    ax.axvline(reference, color="0.3", linestyle="--", linewidth=1, label="RBF SVM, 5-fold CV")
    labels = [f"{paper(title)}\ngap {solution.gap:.0e}" for title, (row, solution) in rows.items()]
    ax.set_yticks(places, labels, fontsize=8)
    ax.set_ylim(len(rows) - 0.5, -0.5)
    ax.locator_params(axis="x", nbins=4)
    ax.set_xlabel("accuracy on test points")
    ax.set_title("Scores")
    ax.legend(fontsize=8, loc="best", frameon=False)

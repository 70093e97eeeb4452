"""The figure of `kernelopt demo`: the weights, and what learning a kernel changes on test points."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from kernelopt.cli.demo.rows import Row
from kernelopt.figures import STYLE, legend_below
from kernelopt.plotting import plot_weights


def save_figure(rows: Mapping[str, Row], names: Sequence[str], path: Path) -> None:
    """Save a figure of the weights and the scores of the learned kernels, a line per formulation."""
    figure = Figure(figsize=(13, 4.6), layout="constrained")
    left, right = figure.subplots(1, 2, width_ratios=(1.25, 1))
    found = {title.partition(":")[0]: row for title, row in rows.items() if row.solution is not None}
    solutions: dict[str, Any] = {authors: row.solution for authors, row in found.items()}
    weighted = {authors: s for authors, s in solutions.items() if np.size(s.weights) == len(names)}
    plot_weights(weighted, names, ax=left)
    places, scores, plain = range(len(found)), *np.array([[r.score, r.plain] for r in found.values()]).T
    right.hlines(places, plain, scores, color="0.6", linewidth=1.5, zorder=1)
    right.plot(plain, places, "o", mfc="white", color="0.3", label="without learning the kernel")
    right.plot(scores, places, "o", color=STYLE.dark, label="with the learned kernel")
    tuned = "RBF SVM, 5-fold CV"
    right.axvline(rows[tuned].score, color="0.3", linestyle="--", linewidth=1, label=tuned)
    right.set_yticks(places, [f"{a}\ngap {s.gap:.0e}" for a, s in solutions.items()], fontsize=8)
    right.set(ylim=(len(found) - 0.5, -0.5), xlabel="accuracy on test points", title="Scores")
    right.locator_params(axis="x", nbins=4)
    legend_below(right)
    figure.suptitle("Breast cancer data: a kernel by a formulation of each paper")
    figure.savefig(path, dpi=130)

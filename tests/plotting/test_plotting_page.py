"""docs/plotting.md prints what it says, and opens no figure of pyplot."""

from __future__ import annotations

from pathlib import Path

import matplotlib as mpl
import numpy as np
import pytest

import kernelopt as ko
from formulations import lp_norm
from kernelopt.extend import as_grams
from kernelopt.plotting import plot_comparisons, plot_kernels, plot_weights
from tests.pages import printed_by, python_blocks

mpl.use("Agg")
from matplotlib import pyplot

ROOT = Path(__file__).resolve()
while not (ROOT / "pyproject.toml").exists():
    ROOT = ROOT.parent


def test_the_current_axes_stay_current():
    grams = as_grams([np.eye(2), [[1.0, -1.0], [-1.0, 1.0]]])
    solution = lp_norm.primal(grams, [1, -1], p=2).solve()
    opened = pyplot.get_fignums()
    figure, (current, other) = pyplot.subplots(1, 2)
    try:
        pyplot.sca(current)
        plot_weights({"a": solution}, ax=other)
        plot_kernels(solution, ax=other)
        plot_comparisons([[0, 1, 2]], ax=other)
        assert pyplot.gca() is current
        with pytest.raises(ko.InputError, match="names must be"):
            plot_kernels(solution, names=["one"])
        assert pyplot.get_fignums() == [*opened, figure.number]  # an error opens no figure
    finally:
        pyplot.close(figure)


def test_the_page_on_figures_prints_what_it_says():
    namespace, opened = {}, pyplot.get_fignums()
    blocks = python_blocks((ROOT / "docs" / "plotting.md").read_text(encoding="utf-8"))
    assert len(blocks) == 6
    for source, said in blocks:
        assert printed_by(source, "plotting.md", namespace) == said
    assert pyplot.get_fignums() == opened

"""docs/plotting.md prints what it says, and opens no figure of pyplot."""

from __future__ import annotations

from pathlib import Path

import matplotlib as mpl

from tests.pages import printed_by, python_blocks

mpl.use("Agg")
from matplotlib import pyplot

ROOT = Path(__file__).resolve()
while not (ROOT / "pyproject.toml").exists():
    ROOT = ROOT.parent


def test_the_page_on_figures_prints_what_it_says():
    namespace, opened = {}, pyplot.get_fignums()
    blocks = python_blocks((ROOT / "docs" / "plotting.md").read_text(encoding="utf-8"))
    assert len(blocks) == 6
    for source, said in blocks:
        assert printed_by(source, "plotting.md", namespace) == said
    assert pyplot.get_fignums() == opened

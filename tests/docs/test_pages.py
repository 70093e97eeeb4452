"""The Python blocks of the README and of docs run, page by page, and print what the pages say.

The site runs them too, and shows what they print and draw there.
"""

from __future__ import annotations

from pathlib import Path

import matplotlib as mpl
import pytest

from tests.collected import problems_built
from tests.pages import ROOT, printed_by, python_blocks

mpl.use("Agg")
from matplotlib import pyplot

COMMANDS = [
    'pip install -e ".[plot]" && kernelopt demo',
    'pip install -e ".[test]" && pytest',
    'pip install -e ".[docs]" && sphinx-build -W --keep-going -j 2 docs build/docs',
]
BLOCKS = {  # how many, and how many figures they open
    "docs/testing.md": (2, 0),
    "docs/solvers.md": (2, 0),
    "docs/plotting.md": (6, 6),
    "docs/kernels.md": (6, 1),
    "docs/scale.md": (1, 0),
    "README.md": (3, 0),
    "docs/tour.md": (10, 1),
    "docs/write_your_own.md": (1, 0),
}
LARGE = {"docs/tour.md": 2, "docs/scale.md": 1}  # tests.duality.test_large has their duals


@pytest.mark.parametrize("page", BLOCKS)
def test_a_page_prints_what_it_says_draws_its_figures_and_its_duals_have_the_same_values(page):
    text, namespace = (ROOT / page).read_text(encoding="utf-8"), {}
    blocks, (count, figures) = python_blocks(text), BLOCKS[page]
    assert len(blocks) == count and "<!-- output -->" not in text
    pyplot.close("all")  # figures of other tests
    with problems_built(Path(page).name) as built:
        for source, said in blocks:
            printed = printed_by(source, Path(page).name, namespace)
            assert printed == said or (said is None and not printed)
    assert len(pyplot.get_fignums()) == figures
    assert len(built.check_duals()) == LARGE.get(page, 0)


@pytest.mark.parametrize("command", COMMANDS)
def test_command_stands_on_a_line_of_its_own(command):
    assert f"    {command}" in (ROOT / "README.md").read_text(encoding="utf-8").splitlines()

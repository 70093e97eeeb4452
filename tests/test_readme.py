"""The README's Python blocks run, in order and in one namespace, and print what it says they print."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.collected import problems_built
from tests.pages import printed_by, python_blocks

README = (Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8")
COMMANDS = ['pip install -e ".[plot]" && kernelopt demo', 'pip install -e ".[test]" && pytest']


def test_blocks_run_and_print_what_the_readme_says_and_the_duals_have_the_same_values():
    namespace = {}
    blocks = python_blocks(README)
    assert blocks
    with problems_built("README.md") as built:
        for source, said in blocks:
            printed = printed_by(source, "README.md", namespace)
            assert said is None or printed == said
    large = built.check_duals()
    assert len(large) == 2  # tests.duality.test_large has their duals


@pytest.mark.parametrize("command", COMMANDS)
def test_command_stands_on_a_line_of_its_own(command):
    assert f"    {command}" in README.splitlines()


def test_every_output_is_filled_in():
    assert "<!-- output -->" not in README

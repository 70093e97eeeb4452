"""The README's Python blocks run, in order and in one namespace, and print what it says they print."""

from __future__ import annotations

import io
import re
from contextlib import redirect_stdout
from pathlib import Path

import pytest

README = (Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8")
FENCED = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
COMMANDS = ['pip install -e ".[plot]" && kernelopt demo', 'pip install -e ".[test]" && pytest']


def printed_by(source, namespace):
    out = io.StringIO()
    with redirect_stdout(out):
        exec(compile(source, "README.md", "exec"), namespace)  # noqa: S102
    return out.getvalue()


def test_blocks_run_and_print_what_the_readme_says():
    blocks = FENCED.findall(README)
    following = [*blocks[1:], ("", "")]
    namespace = {"__name__": "readme"}
    ran = 0
    for (language, source), (next_language, expected) in zip(blocks, following, strict=True):
        if language == "python":
            printed = printed_by(source, namespace)
            ran += 1
            if next_language == "text":
                assert printed.rstrip() == expected.rstrip()
    assert ran > 0


@pytest.mark.parametrize("command", COMMANDS)
def test_command_stands_on_a_line_of_its_own(command):
    assert f"    {command}" in README.splitlines()


def test_every_output_is_filled_in():
    assert "<!-- output -->" not in README

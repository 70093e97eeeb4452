"""The page on kernels runs, and prints what it says."""

from __future__ import annotations

from pathlib import Path

from tests.pages import printed_by, python_blocks

PAGE = Path(__file__).parents[2] / "docs" / "kernels.md"


def test_blocks_print_what_the_page_says():
    namespace = {}
    for source, said in python_blocks(PAGE.read_text(encoding="utf-8")):
        assert printed_by(source, "kernels.md", namespace) == (said or "")

"""The blocks of docs/estimators.md print what it says."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.pages import printed_by, python_blocks

PAGE = Path(__file__).parents[2] / "docs" / "estimators.md"


@pytest.mark.slow
def test_the_page_prints_what_it_says():
    namespace = {}
    blocks = python_blocks(PAGE.read_text(encoding="utf-8"))
    assert len(blocks) == 11
    for source, said in blocks:
        assert printed_by(source, PAGE.name, namespace) == said

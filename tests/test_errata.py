"""docs/errata.md: every counterexample prints what the page says, and every correction has its erratum."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.collected import problems_built
from tests.pages import printed_by, python_blocks
from tests.test_theory import PAGES, facts_of, name_of

DOCS = Path(__file__).parents[1] / "docs"
PAGE = (DOCS / "errata.md").read_text(encoding="utf-8")
SECTION = re.compile(r"^## (\w+)[^\n]*\n(.*?)(?=^## |\Z)", re.MULTILINE | re.DOTALL)
SECTIONS = dict(SECTION.findall(PAGE))  # by the word by which facts and errata are cited
ERRATUM = re.compile(r"^### ((?:Errata|Note) \w+ \d+)\n(.*?)(?=^##|\Z)", re.MULTILINE | re.DOTALL)
ERRATA = dict(ERRATUM.findall(PAGE))  # and the notes on a lost text, which come last
LONGEST = 15


def slug(name):
    """The anchor of the heading of an erratum: "errata-kloft-2" of "Errata Kloft 2"."""
    return name.lower().replace(" ", "-")


@pytest.mark.parametrize("cited", SECTIONS)
def test_counterexamples_print_what_the_page_says(cited):
    namespace = {}
    with problems_built("errata.md") as built:
        for source, said in python_blocks(SECTIONS[cited]):
            assert printed_by(source, "errata.md", namespace) == (said or "")
    assert not built.check_duals()


@pytest.mark.parametrize("cited", SECTIONS)
def test_a_section_has_one_short_counterexample_an_erratum(cited):
    common, *errata = SECTIONS[cited].split("\n### ")
    assert errata
    assert len(python_blocks(common)) <= 1
    for erratum in errata:
        ((_, said),) = python_blocks(erratum)
        assert said and re.search(r"\d", said), f"{erratum.splitlines()[0]} prints no numbers"
    for source, _ in python_blocks(SECTIONS[cited]):
        assert len(source.splitlines()) <= LONGEST, source


def test_errata_are_numbered_in_order():
    for cited, body in SECTIONS.items():
        names = [name.split() for name, _ in ERRATUM.findall(body)]
        assert [number for _, _, number in names] == [str(k + 1) for k in range(len(names))], cited
        assert {name for _, name, _ in names} == {cited}
    assert PAGE.count("\n### ") == len(ERRATA) >= 20


@pytest.mark.parametrize("name", ERRATA)
def test_every_erratum_has_all_its_parts(name):
    source = "*Printed" if name.startswith("Errata") else "*Reconstructed"
    for part in (source, "*True:*", "*Why:*", "*In kernelopt:*"):
        assert ERRATA[name].count(f"\n{part}") == 1, f"{name} has not one paragraph {part}"


def test_where_the_formulas_are_lost_there_are_notes_and_they_come_last():
    notes = [name for name in ERRATA if not name.startswith("Errata")]
    assert notes == list(ERRATA)[-2:] == ["Note Fung 1", "Note Fung 2"]


def test_every_correction_of_the_theory_has_an_erratum_and_they_link_to_each_other():
    linked, corrections = set(), 0
    for page in PAGES:
        for number, text in facts_of(page):
            fact = f"{name_of(page)} {number}"
            links = re.findall(r"\[((?:Errata|Note) \w+ \d+)\]\(\.\./errata\.md#([\w-]+)\)", text)
            assert text.count("**Correction.**") <= len(links), f"{fact} has a correction without an erratum"
            for name, anchor in links:
                assert anchor == slug(name), f"{fact} links to {anchor}"
                assert f"[{fact}](theory/{page.name})" in ERRATA[name], f"{name} does not link to {fact}"
            linked.update(name for name, _ in links)
            corrections += text.count("**Correction.**")
    assert linked == set(ERRATA)
    assert corrections == sum(page.read_text(encoding="utf-8").count("**Correction.**") for page in PAGES)

"""The pages of docs/theory: their facts are numbered, sourced and tested, and what is cited exists."""

from __future__ import annotations

import ast
import re
from functools import cache
from itertools import pairwise

import pytest

from tests.pages import ROOT

PAGES = sorted((ROOT / "docs" / "theory").glob("*.md"))
TITLE = re.compile(r"\A# (\w+): ")
FACT = re.compile(r"^\*\*(\d+\.\d+) [^*]+\*\*", re.MULTILINE)
NUMBERS = r"\d+\.\d+(?:(?:, | and | to )\d+\.\d+)*"
LINK = re.compile(r"\]\(([^)#\s]+)[^)]*\)")
FOLDERS = ("tests", "formulations", "kernelopt")

pages = pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)


def name_of(page):
    """The word before the colon of the title, by which facts are cited: "Lanckriet" of "Lanckriet 1.3"."""
    title = TITLE.match(page.read_text(encoding="utf-8"))
    assert title, f"{page.name} has no title of the form '# Name: what it is about'"
    return title[1]


def facts_of(page):
    """The text of each fact, by its number; a fact ends where the next one or a section begins."""
    text = re.sub(r"^## .*$", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE)
    found = list(FACT.finditer(text))
    ends = [fact.start() for fact in found[1:]] + [len(text)]
    return [
        (fact[1], " ".join(text[fact.end() : end].split())) for fact, end in zip(found, ends, strict=True)
    ]


@cache
def stated():
    """The numbers of the facts, by the name under which they are cited."""
    numbers: dict[str, list[str]] = {}
    for page in PAGES:
        numbers.setdefault(name_of(page), []).extend(number for number, _ in facts_of(page))
    return numbers


@cache
def documents():
    """The text of each page in the root and in docs."""
    found = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]
    return {page: page.read_text(encoding="utf-8") for page in found}


@cache
def sources():
    """The text of each Python file of the packages and of the tests."""
    return {
        path: path.read_text(encoding="utf-8")
        for folder in FOLDERS
        for path in sorted((ROOT / folder).rglob("*.py"))
    }


@cache
def names_of_tests():
    """The names of all test functions of the repository."""
    trees = [ast.parse(text) for path, text in sources().items() if path.name.startswith("test_")]
    return {
        node.name
        for tree in trees
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")
    }


def citations(text):
    """The pairs (name, number) of the facts that a text cites, such as "Lanckriet 1.3 and 2.1"."""
    names = "|".join(stated())
    for name, numbers in re.findall(rf"\b({names}) ({NUMBERS})", " ".join(text.split())):
        yield from ((name, number) for number in re.findall(r"\d+\.\d+", numbers))


def test_facts_are_numbered_in_order_and_once():
    assert len(PAGES) >= 6
    for name, numbers in stated().items():
        order = [tuple(map(int, number.split("."))) for number in numbers]
        for (section, fact), (next_section, next_fact) in pairwise(order):
            follows = next_section == section and next_fact == fact + 1
            begins = next_section == section + 1 and next_fact == 1
            assert follows or begins, f"{name} {section}.{fact} is followed by {next_section}.{next_fact}"
        assert order[0] == (1, 1)


@pages
def test_every_fact_has_a_source_and_a_test_that_exists(page):
    for number, text in facts_of(page):
        source, _, tests = text.partition("*Source:* ")[2].partition("*Tests:* ")
        assert len(source) >= 4, f"{page.name} {number} does not say where it comes from"
        named = re.findall(r"`(test_\w+)`", tests)
        assert named, f"{page.name} {number} names no test"
        missing = set(named) - names_of_tests()
        assert not missing, f"{page.name} {number} names tests that do not exist: {sorted(missing)}"


@pages
def test_facts_on_a_page_refer_to_facts_that_exist(page):
    """Bare numbers in the sources of facts are those of the same name; numbers of the paper have a word."""
    own = set(stated()[name_of(page)])
    for number, text in facts_of(page):
        source = text.partition("*Source:* ")[2].partition("*Tests:* ")[0]
        of_the_paper = r"(sections?|Sections?|equations?) [\d.]+(?:(?:, | and | to )[\d.]+\d)*"
        bare = re.findall(r"(?<![\w.(])\d+\.\d+", re.sub(of_the_paper, "", source))
        assert set(bare) <= own, f"{page.name} {number} refers to {sorted(set(bare) - own)}"


def test_every_number_that_is_cited_is_a_fact():
    found = 0
    for path, text in (sources() | documents()).items():
        for name, number in citations(text):
            assert number in stated()[name], f"{path.relative_to(ROOT)} cites {name} {number}"
            found += 1
    assert found >= 20


def test_no_file_outside_the_repository_is_cited():
    known = {page.name for page in documents()}
    for path, text in sources().items():
        for cited in re.findall(r"[\w./-]*\w\.md\b", text):
            inside = (ROOT / cited).exists() if "/" in cited else cited in known
            assert inside, f"{path.relative_to(ROOT)} cites {cited}"


def test_links_of_the_documentation_lead_to_files():
    for page, text in documents().items():
        for link in LINK.findall(text):
            if "://" not in link:
                assert (page.parent / link).exists(), f"{page.relative_to(ROOT)} links to {link}"

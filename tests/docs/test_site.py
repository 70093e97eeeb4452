"""The site: what the check of built pages finds, the pages of formulations, and the form of the gallery."""

from __future__ import annotations

import ast
import runpy

import pytest

import kernelopt as ko
from tests.pages import ROOT

GALLERY = sorted((ROOT / "examples").glob("plot_*.py"))
faults = runpy.run_path(str(ROOT / "docs" / "check_pages.py"))["faults"]
card = runpy.run_path(str(ROOT / "docs" / "extensions" / "cards.py"))["card"]


def found_in(tmp_path, body):
    (tmp_path / "page.html").write_text(f"<html><body>{body}</body></html>", encoding="utf-8")
    (tmp_path / "other.html").write_text('<h1 id="here">Other</h1>', encoding="utf-8")
    return faults(tmp_path)


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("<script src='https://example.org/a.js'></script>", "loads https://example.org/a.js"),
        ("<img src='//example.org/a.png'>", "loads //example.org/a.png"),
        ("<a href='missing.html'>x</a>", "missing.html does not exist"),
        ("<a href='other.html#there'>x</a>", "has no such place"),
        (r"<p>so that \(\alpha = 0\)</p>", "is not set"),
    ],
)
def test_a_fault_of_a_page_is_named(tmp_path, body, words):
    (fault,) = found_in(tmp_path, body)
    assert fault.startswith("page.html: ") and words in fault


def test_a_style_sheet_that_loads_from_another_host_is_named(tmp_path):
    (tmp_path / "a.css").write_text("@font-face { src: url(https://example.org/f.woff) }", encoding="utf-8")
    (fault,) = found_in(tmp_path, "")
    assert "a.css" in fault


def test_links_to_other_hosts_places_on_pages_and_code_are_no_faults(tmp_path):
    formula = r"<span class='math'><span>\(x\)</span></span><pre>\alpha</pre>"
    links = "<a href='https://example.org'>x</a><a href='other.html#here'>y</a>"
    assert found_in(tmp_path, formula + links) == []


def test_a_page_of_a_formulation_has_its_dual_its_bounds_and_its_methods():
    page = card(ko.catalogue()["lp_norm.primal"])
    for part in (".. autofunction:: formulations.lp_norm.primal", "y'alpha - 1/2 |(alpha' K_m alpha)_m|_4"):
        assert part in page
    assert "<= optimum <=" in page and '``"newton"``' in page and "Optimization Problems (P) and (D)" in page


def test_the_gallery_asks_twelve_questions():
    assert len(GALLERY) >= 12
    for script in GALLERY:
        title = ast.get_docstring(ast.parse(script.read_text(encoding="utf-8"))).splitlines()[0]
        assert title.endswith("?"), script.name

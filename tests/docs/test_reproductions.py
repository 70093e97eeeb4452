"""The scripts of benchmarks/reproductions: their quick runs, and the pages that their results stand on."""

from __future__ import annotations

import json
import os
import re
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "benchmarks" / "reproductions"
SCRIPTS = ("pereverzyev", "fung", "lanckriet", "kundu", "kloft")
DRAWINGS = {"fung": 1, "lanckriet": 1, "kloft": 2}  # figures of the papers
FAILING = 2  # what argparse ends with
GAP = 0.1  # no number of a quick run is known worse than this
RESULTS = {
    path.stem: json.loads(path.read_text(encoding="utf-8")) for path in (FOLDER / "results").glob("*.json")
}
ROW = re.compile(  # paper, page, table, outcome, and the figure between its marks
    r"^\| \[.+\]\((\w+)\.md\) \| (.+?) \| (.+?) \| <!-- (\w+): (.+?) -->(.+)<!-- end --> \|$", re.MULTILINE
)


def script(name, *options):
    """Run a script, on one thread; the folder of the repository comes first, as in a checkout."""
    paths = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
    return subprocess.run(  # noqa: S603 - our own file
        [sys.executable, str(FOLDER / f"{name}.py"), *options],
        env=os.environ | {"PYTHONPATH": paths, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.slow
@pytest.mark.parametrize("name", SCRIPTS)
def test_a_quick_run_has_tables_certified_numbers_and_goes_on_where_it_ended(name, tmp_path):
    output = tmp_path / "found.json"
    ended = script(name, "--quick", "--repetitions", "1", "--output", str(output))
    assert not ended.returncode, ended.stderr
    results = json.loads(output.read_text(encoding="utf-8"))
    assert results["quick"] and results["commit"] and results["machine"] and results["date"]
    assert results["tables"] and results["figures"]
    for table in results["tables"]:
        assert table["title"] in ended.stdout
        assert table["rows"] and all(len(row) == len(table["head"]) for row in table["rows"])
    assert all(0 <= cell["gap"] <= GAP and cell["seconds"] > 0 for cell in results["cells"])
    assert all(cell.get("ordered", True) for cell in results["cells"])  # Lanckriet's theorems
    drawn = script(name, "--results", str(output), "--figure", str(tmp_path / "drawn.png"))
    assert not drawn.returncode and not drawn.stderr
    assert json.loads(output.read_text(encoding="utf-8")) == results  # the circumstances are the run's
    assert len(list(tmp_path.glob("drawn*.png"))) == DRAWINGS.get(name, 0)
    again = script(name, "--quick", "--repetitions", "1", "--output", str(output))
    assert not again.returncode and not again.stderr  # no cell is computed again
    assert json.loads(output.read_text(encoding="utf-8"))["cells"] == results["cells"]


def test_the_pages_have_the_numbers_of_the_results(monkeypatch):
    maker = ROOT / "docs" / "make_reproductions.py"
    monkeypatch.setattr(sys, "argv", [str(maker), "--check"])
    runpy.run_path(str(maker), run_name="__main__")


def test_the_index_has_a_row_for_every_table_of_the_results():
    rows = ROW.findall((ROOT / "docs" / "reproductions" / "index.md").read_text(encoding="utf-8"))
    assert {outcome for _, _, outcome, *_ in rows} <= {"reproduced", "in part", "not"}
    told = {(study, key): text for page, _, _, study, key, text in rows if page == study}
    assert told == {
        (name, key): text for name, one in RESULTS.items() for key, text in one["figures"].items()
    }
    for one in RESULTS.values():
        assert not one["quick"] and one["commit"] != "unknown"
        assert all("gap" in cell for cell in one["cells"])


@pytest.mark.parametrize("name", SCRIPTS[:1])
def test_without_a_folder_the_data_sets_are_named(name):
    ended = script(name)
    assert ended.returncode == FAILING and "pass --data FOLDER with liver, wpbc" in ended.stderr

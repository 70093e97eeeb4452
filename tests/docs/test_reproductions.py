"""The scripts of benchmarks/reproductions: their quick runs, and the pages that their results stand on."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "benchmarks" / "reproductions"
SCRIPTS = ("pereverzyev", "fung", "lanckriet", "kundu", "kloft")
FAILING = 2  # what argparse ends with
GAP = 0.1  # no number of a quick run is known worse than this


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
    again = script(name, "--quick", "--repetitions", "1", "--output", str(output))
    assert not again.returncode and not again.stderr  # no cell is computed again
    assert json.loads(output.read_text(encoding="utf-8"))["cells"] == results["cells"]


@pytest.mark.parametrize("name", SCRIPTS[:1])
def test_without_a_folder_the_data_sets_are_named(name):
    ended = script(name)
    assert ended.returncode == FAILING and "pass --data FOLDER with liver, wpbc" in ended.stderr

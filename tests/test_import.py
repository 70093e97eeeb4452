"""What `import kernelopt` brings beside cvxpy: libraries that few calls need are imported by those calls."""

from __future__ import annotations

import json
import subprocess
import sys
import tomllib
from importlib.metadata import version
from pathlib import Path

import pytest

LATER = (
    "dask",
    "distributed",
    "clarabel",
    "highspy",
    "joblib",
    "matplotlib",
    "mosek",
    "networkx",
    "numba",
    "pandas",
    "rich",
    "scs",
    "sklearn",
)
BESIDE_CVXPY = """
import sys
import cvxpy
before = set(sys.modules)
import kernelopt
print(*sorted({name.partition(".")[0] for name in set(sys.modules) - before}))
import formulations.lp_norm
print(*sorted({name.partition(".")[0] for name in set(sys.modules) - before}))
"""


def test_libraries_are_imported_when_they_are_needed():
    call = [sys.executable, "-c", BESIDE_CVXPY]
    ran = subprocess.run(call, capture_output=True, text=True, check=True)  # noqa: S603
    for line in ran.stdout.splitlines():
        assert "kernelopt" in line.split()
        assert not set(LATER) & set(line.split()), line


VERSION = """
import sys
from importlib import import_module
sys.argv = ["kernelopt", "--version"]
module, _, function = {script!r}.partition(":")
assert getattr(import_module(module), function)() == 0
assert "cvxpy" not in sys.modules and "numpy" not in sys.modules
"""


def test_the_version_is_said_without_cvxpy():
    project = Path(__file__).parents[1] / "pyproject.toml"
    script = tomllib.loads(project.read_text(encoding="utf-8"))["project"]["scripts"]["kernelopt"]
    call = [sys.executable, "-c", VERSION.format(script=script)]
    ran = subprocess.run(call, capture_output=True, text=True, check=True)  # noqa: S603
    assert ran.stdout == f"kernelopt {version('kernelopt')}\n"


@pytest.mark.parametrize(
    ("broken", "installed"), [(False, False), (True, True)], ids=["folder", "distribution in Python 2"]
)
def test_another_package_named_formulations_is_named_and_not_imported(tmp_path, broken, installed):
    package = tmp_path / "formulations"
    package.mkdir()
    text = 'print "Python 2"' if broken else "raise SystemExit('imported')"
    (package / "__init__.py").write_text(text, encoding="utf-8")
    if installed:
        metadata = tmp_path / "recipes-1.0.dist-info"
        metadata.mkdir()
        (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: recipes\nVersion: 1.0\n")
        (metadata / "RECORD").write_text("formulations/__init__.py,,\n")
    call = [sys.executable, "-m", "kernelopt.cli", "list", "--json", "formulations"]
    ran = subprocess.run(call, capture_output=True, text=True, check=False, cwd=tmp_path)  # noqa: S603
    assert ran.returncode == 1 and json.loads(ran.stdout) == {"installed": []}
    at_import, listed = ran.stderr.split("PackageWarning: ")[1].splitlines()[0], ran.stderr.splitlines()[-1]
    assert at_import in listed
    for part in ("formulations` must be", str(package), "pip install --force-reinstall --no-deps"):
        assert part in listed
    assert ("Uninstall recipes" if installed else "Rename that package") in listed
    assert ran.stderr.count("formulations` must be") == 2

"""What `import kernelopt` brings beside cvxpy: libraries that few calls need are imported by those calls."""

from __future__ import annotations

import subprocess
import sys

LATER = (
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

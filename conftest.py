"""How pytest imports the modules whose examples it runs, and what it does after each of them."""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path

import pytest

ROOT = Path(__file__).parent


@pytest.fixture(autouse=True)
def figures_are_closed():
    """Close what an example has drawn: pyplot warns of many open figures."""
    yield
    if "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close("all")


def pytest_collect_file(file_path):
    """Import a module by its name, as the tests do, before pytest reads its file.

    pytest takes what has been imported under the name of a file, and reads the file otherwise. That would be
    a second copy of a module that its package has imported, or of one that is installed from a wheel.
    """
    if file_path.suffix == ".py" and ROOT in file_path.parents:
        name = file_path.relative_to(ROOT).with_suffix("").parts
        if name[0] in ("kernelopt", "formulations"):
            import_module(".".join(name[:-1] if name[-1] in ("__init__", "__main__") else name))

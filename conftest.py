"""How pytest imports the modules whose examples it runs."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

ROOT = Path(__file__).parent


def pytest_collect_file(file_path):
    """Import the package of a module before the module.

    pytest imports the file it is given a second time where the import of the package has read it already, and
    the second module replaces the function of its name: `lanckriet.sdp` would be a module.
    """
    if file_path.suffix == ".py" and ROOT in file_path.parents:
        package = file_path.relative_to(ROOT).parts[:-1]
        if package and package[0] in ("kernelopt", "formulations"):
            import_module(".".join(package))

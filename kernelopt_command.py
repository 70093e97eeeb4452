"""The script `kernelopt`: it says its version without the seconds that the import of cvxpy takes."""

from __future__ import annotations

import sys


def main() -> int:
    """Run the command line of `kernelopt.cli` and return its exit status."""
    if sys.argv[1:] == ["--version"]:
        from importlib.metadata import version

        print(f"kernelopt {version('kernelopt')}")
        return 0
    from kernelopt import cli

    return cli.main()

"""`kernelopt list`: what is installed."""

from __future__ import annotations

import argparse
import sys
import warnings
from typing import Any

from kernelopt.cli.output import Output
from kernelopt.errors import PackageWarning
from kernelopt.validation.messages import suggestion

COLUMNS = {  # headings and the fields of `Listed`, for formulations and for all else
    False: {"kind": "kind", "name": "name", "package": "package", "what it is": "summary"},
    True: {"formulation": "name", "takes": "takes", "reference": "reference", "what it is": "summary"},
}


def add(commands: Any, shared: argparse.ArgumentParser) -> None:
    """Add the parser of the command."""
    listing = commands.add_parser(
        "list",
        parents=[shared],
        help="list the losses, kernels, fidelities, methods and formulations that are installed",
        description="List the losses, kernels, fidelities and methods that are installed, and the "
        "formulations with the data that they take and their references, with those of other packages. "
        "Exit status: 0 if all can be used, 1 if a package names one that cannot be used, 2 on wrong use.",
    )
    listing.add_argument(
        "kind", nargs="*", help="losses, kernels, fidelities, methods or formulations (default: all)"
    )
    listing.set_defaults(run=run, parser=listing)


def run(options: argparse.Namespace) -> int:
    """Print what is installed of the given kinds."""
    from kernelopt.installed import KINDS, listed

    wrong = sorted(set(options.kind) - set(KINDS))
    if wrong:
        meant = suggestion(wrong[0], KINDS)
        options.parser.error(f"a kind must be one of {', '.join(KINDS)}, got {', '.join(wrong)}.{meant}")
    with warnings.catch_warnings(record=True) as left_out:
        warnings.simplefilter("always", PackageWarning)
        found = [line for kind in KINDS if kind in (options.kind or KINDS) for line in listed(kind)]
    output = Output(options.json)
    output.document({"installed": [line._asdict() for line in found]})
    for formulations, columns in COLUMNS.items():
        lines = [line for line in found if (line.kind == "formulations") == formulations]
        if lines:
            output.table(
                list(columns), [[getattr(line, name) for name in columns.values()] for line in lines]
            )
            output.line("")
    for warning in left_out:
        print(f"kernelopt: {warning.message}", file=sys.stderr)
    return 1 if left_out else 0

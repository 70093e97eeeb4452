"""List the losses, kernels, fidelities, parts, methods and formulations that are installed.

List the losses, kernels, fidelities, sets and prices of weights ("parts") and methods that are
installed, and the formulations with the data that they take and their references. Other packages may
bring some of all these. Exit status: 0 if all can be used, 1 if a package names one that cannot be
used, 2 on wrong use.
"""

from __future__ import annotations

import argparse
import warnings

from kernelopt.cli.output import Output, say
from kernelopt.cli.usage import Parser
from kernelopt.errors import PackageWarning
from kernelopt.validation.messages import suggestion

COLUMNS = {  # headings and the keys of a line, for formulations and for all else
    False: {"kind": "kind", "name": "name", "package": "package", "what it is": "summary"},
    True: {"formulation": "name", "takes": "takes", "reference": "reference", "what it is": "summary"},
}


def add_options(parser: Parser) -> None:
    """Add the options of the command."""
    kinds = "losses, kernels, fidelities, parts, methods or formulations (default: all)"
    parser.add_argument("kind", nargs="*", help=kinds)


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
    output.document({"installed": found})
    for formulations, columns in COLUMNS.items():
        lines = [line for line in found if (line["kind"] == "formulations") == formulations]
        if lines:
            output.table([*columns], [[line[field] for field in columns.values()] for line in lines])
            output.line("")
    for warning in left_out:
        say(warning.message)
    return 1 if left_out else 0

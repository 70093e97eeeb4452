"""Write the tables of docs/methods.md: which methods apply to which formulations, and the options of methods.

The rows of the first are the examples of the catalogue, the columns the registered methods, and a cell is
filled where `match` finds nothing in the way. The second lists the fields of the methods' classes with their
defaults, and what the docstrings say of them. Nothing is solved.

    python docs/make_methods.py            rewrite the tables
    python docs/make_methods.py --check    fail if one is stale
"""

from __future__ import annotations

import argparse
import inspect
import re
import sys
from pathlib import Path

import numpy as np

import kernelopt as ko
from kernelopt.methods.selection import METHODS

PAGE = Path(__file__).with_name("methods.md")


def applicable() -> str:
    """Return the table of methods and formulations in Markdown."""
    entries = sorted(ko.catalogue().items())
    examples = {name: entry.example(np.random.default_rng(0)) for name, entry in entries}
    names = sorted(METHODS, key=lambda name: (name != "exact", name))  # whatever the order of registration
    lines = ["| | " + " | ".join(f'"{name}"' for name in names) + " |", "|---" * (len(names) + 1) + "|"]
    for name, formulation in examples.items():
        structure = ko.Structure(formulation.problem)
        cells = ["" if isinstance(METHODS[method].match(structure), str) else "✓" for method in names]
        lines.append(f"| `{name}` | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def options() -> str:
    """Return the table of the options of all methods in Markdown, by option and method."""
    rows = []
    for name, method in METHODS.items():
        pattern = r"^(\w+) : [^\n]*\n((?:    [^\n]*\n?)+)"
        said = dict(re.findall(pattern, inspect.getdoc(type(method)) or "", re.MULTILINE))
        for option in set(method.options()) - {"programme"}:  # of Formulation.solve
            default = str(getattr(method, option)).replace("None", "none")
            meaning = " ".join(said[option].split()).rstrip(".")
            rows.append(f'| `{option}` | {default} | "{name}" | {meaning} |')
    return "\n".join(["| option | default | method | what it is |", "|---|---|---|---|", *sorted(rows)])


def main(arguments: list[str] | None = None) -> int:
    """Rewrite the page, or with --check return 1 if that would change it."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--check", action="store_true", help="change nothing, and fail if a table is stale")
    check = parser.parse_args(arguments).check
    page = made = PAGE.read_text(encoding="utf-8")
    for what, table in (("table", applicable()), ("options", options())):
        start, end = f"<!-- {what}: docs/make_methods.py -->", f"<!-- end of the {what} -->"
        before, _, rest = made.partition(start)
        made = f"{before}{start}\n\n{table}\n\n{end}{rest.partition(end)[2]}"
    if check and made != page:
        print(f"{PAGE} is stale. Run: python docs/make_methods.py", file=sys.stderr)
        return 1
    if not check:
        PAGE.write_text(made, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""Write the table of docs/methods.md: which methods apply to which formulations.

The rows are the examples of the catalogue, the columns the registered methods, and a cell is filled where
`match` finds nothing in the way. Nothing is solved.

    python docs/make_methods.py            rewrite the table
    python docs/make_methods.py --check    fail if it is stale
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import numpy as np

import kernelopt as ko
from kernelopt.methods.selection import METHODS

PAGE = Path(__file__).with_name("methods.md")
START, END = "<!-- table: docs/make_methods.py -->", "<!-- end of the table -->"


def table() -> str:
    """Return the table in Markdown."""
    entries = sorted(ko.catalogue().items())
    examples = {name: entry.example(np.random.default_rng(0)) for name, entry in entries}
    names = sorted(METHODS, key=lambda name: (name != "exact", name))  # whatever the order of registration
    lines = ["| | " + " | ".join(f'"{name}"' for name in names) + " |", "|---" * (len(names) + 1) + "|"]
    for name, formulation in examples.items():
        structure = ko.Structure(formulation.problem)
        cells = ["" if isinstance(METHODS[method].match(structure), str) else "✓" for method in names]
        lines.append(f"| `{name}` | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def main(arguments: list[str] | None = None) -> int:
    """Rewrite the page, or with --check return 1 if that would change it."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--check", action="store_true", help="change nothing, and fail if the table is stale")
    check = parser.parse_args(arguments).check
    page = PAGE.read_text(encoding="utf-8")
    before, _, rest = page.partition(START)
    _, _, after = rest.partition(END)
    made = f"{before}{START}\n\n{table()}\n\n{END}{after}"
    if check and made != page:
        print(f"{PAGE} is stale. Run: python docs/make_methods.py", file=sys.stderr)
        return 1
    if not check:
        PAGE.write_text(made, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())

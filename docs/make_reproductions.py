"""Write the tables and figures of docs/reproductions from the results of benchmarks/reproductions.

A page NAME.md has the tables of results/NAME.json between its marks. The index has, in each row, one figure
in words between marks that name the study and the table.

    python docs/make_reproductions.py            rewrite the pages
    python docs/make_reproductions.py --check    fail if one is stale

The figures are those of benchmarks/reproductions/NAME.py --results FILE --figure docs/reproductions/NAME.png.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from pathlib import Path
from typing import Any

PAGES = Path(__file__).with_name("reproductions")
RESULTS = Path(__file__).parents[1] / "benchmarks" / "reproductions" / "results"
TABLES = re.compile(r"(<!-- tables -->\n).*?(<!-- end of the tables -->)", re.DOTALL)
FIGURE = re.compile(r"(<!-- (\w+): ([^>]+?) -->).*?(<!-- end -->)")


def results() -> dict[str, dict[str, Any]]:
    """Return the results of all studies, by name."""
    files = sorted(RESULTS.glob("*.json"))
    return {file.stem: json.loads(file.read_text(encoding="utf-8")) for file in files}


def tables(found: dict[str, Any]) -> str:
    """Return the tables of a study in Markdown, below the circumstances of its run."""
    versions = ", ".join(f"{name} {version}" for name, version in found["versions"].items())
    text = (
        f"Run of {found['date']} at commit {found['commit'][:8]}, {found['repetitions']} repetition(s) at "
        f"most, {found['machine']}, {versions}.\n"
    )
    for table in found["tables"]:
        rows = [table["head"], ["---"] * len(table["head"]), *table["rows"]]
        lines = ["| " + " | ".join(map(str, row)) + " |" for row in rows]
        text += f"\n**{table['title']}.**\n\n" + "\n".join(lines) + "\n"
    return text


def rewritten(page: Path, known: dict[str, dict[str, Any]]) -> str:
    """Return the text of a page with its tables and figures written anew."""
    text = page.read_text(encoding="utf-8")
    if page.stem in known:
        text = TABLES.sub(lambda m: f"{m[1]}\n{tables(known[page.stem])}\n{m[2]}", text)
    return FIGURE.sub(lambda m: f"{m[1]}{known[m[2]]['figures'][m[3]]}{m[4]}", text)


def main() -> None:
    """Rewrite the pages, or check them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--check", action="store_true")
    check, known = parser.parse_args().check, results()
    for page in sorted(PAGES.glob("*.md")):
        text = rewritten(page, known)
        if check and text != page.read_text(encoding="utf-8"):
            sys.exit(f"{page} is stale. Run python docs/make_reproductions.py.")
        if not check:
            page.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()

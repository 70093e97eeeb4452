"""Check the pages that Sphinx has built: links lead somewhere, formulas are set, and no other host is asked.

    python docs/check_pages.py build/docs

Links to other hosts are for the reader to follow: they are counted, and not opened.
"""

from __future__ import annotations

import re
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

LOADED = {"link": "href", "script": "src", "img": "src", "source": "src", "iframe": "src"}
TEXTLESS = {"pre", "code", "script", "style", "annotation", "math", "title"}  # where a formula may stand raw
OTHER_HOST = re.compile(r"""(?:url\(\s*['"]?|@import\s+['"]?)(?:https?:)?//[^'")\s]+""")


class Page(HTMLParser):
    """What a page loads and links to, its anchors, and its formulas that were left as text."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.path = path
        self.loads: list[str] = []
        self.links: list[str] = []
        self.anchors: set[str] = set()
        self.raw: list[str] = []
        self.inside: list[str] = []
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        named = dict(attrs)
        self.anchors.update(value for value in (named.get("id"), named.get("name")) if value)
        address = named.get(LOADED.get(tag, ""))
        if address and not (tag == "link" and named.get("rel") in ("canonical", "next", "prev")):
            self.loads.append(address)
        if tag == "a" and named.get("href"):
            self.links.append(named["href"] or "")
        if tag in TEXTLESS or "math" in (named.get("class") or "").split():
            self.inside.append(tag)
        elif self.inside and tag == self.inside[-1]:
            self.inside.append(tag)  # a <span> in a <span class="math">

    def handle_endtag(self, tag: str) -> None:
        if self.inside and tag == self.inside[-1]:
            self.inside.pop()

    def handle_data(self, data: str) -> None:
        if not self.inside and re.search(r"\\[(\[]|\$\$|\\(?:tfrac|alpha|sum|min|max)\b", data):
            self.raw.append(data.strip()[:60])


def faults(folder: Path) -> list[str]:
    """Return what is wrong with the pages of a folder, one line each."""
    pages = {path: Page(path) for path in sorted(folder.rglob("*.html")) if "_static" not in path.parts}
    found = []
    for path, page in pages.items():
        name = path.relative_to(folder)
        found += [f"{name}: the formula {text!r} is not set" for text in page.raw]
        for address in [*page.loads, *page.links]:
            parts = urlsplit(address)
            if parts.scheme in ("data", "mailto", "javascript"):
                continue
            if parts.netloc:
                if address in page.loads:
                    found.append(f"{name}: loads {address} from another host")
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path.resolve()
            if not target.exists():
                found.append(f"{name}: {address} does not exist")
            elif parts.fragment and target in pages and unquote(parts.fragment) not in pages[target].anchors:
                found.append(f"{name}: {address} has no such place")
    for sheet in sorted(folder.rglob("*.css")):
        loaded = OTHER_HOST.findall(sheet.read_text(encoding="utf-8"))
        found += [f"{sheet.relative_to(folder)}: loads {address}" for address in loaded]
    return found


if __name__ == "__main__":
    wrong = faults(Path(sys.argv[1]).resolve())
    print("\n".join(wrong) or "links, formulas and hosts of all pages are in order")
    sys.exit(bool(wrong))

"""What the pages need beside Sphinx's own extensions: links out of docs/, and the files of KaTeX."""

from __future__ import annotations

import re
import shutil
import socket
import subprocess
import time
from pathlib import Path
from typing import Any

LINES = r"(?:(?!```)[^\n]*\n)*"
PRINTED = re.compile(rf"^(```\{{code-cell\}}[^\n]*\n{LINES}```\n)\n```text\n{LINES}```\n", re.MULTILINE)


def link_pages(app: Any, name: str, source: list[str]) -> None:
    """Put CONTRIBUTING.md in its page, and lead links to it, which hold in the repository, to this page."""
    if name == "contributing":
        page = Path(app.srcdir).parent.joinpath("CONTRIBUTING.md").read_text(encoding="utf-8")
        source[0] = re.sub(r"\[([^]]+)\]\((?!docs/|http)[^)]*\)", r"\1", page).replace("](docs/", "](")
    source[0] = source[0].replace("](../CONTRIBUTING.md", "](contributing.md")


def print_once(app: Any, name: str, source: list[str]) -> None:
    """Leave out the text block with what a cell prints: the site has what it has printed at the build."""
    source[0] = PRINTED.sub(r"\1", source[0])


def escape_bars(app: Any, what: str, name: str, thing: Any, options: Any, lines: list[str]) -> None:
    """Let reStructuredText find no substitution in |x| where a docstring has it as text."""
    paragraphs = re.split(r"(\n\s*\n)", "\n".join(lines))
    formula = 1000  # the indentation of the directive under which a paragraph stands
    for k, paragraph in enumerate(paragraphs[::2]):
        indent = len(paragraph) - len(paragraph.lstrip())
        if indent <= formula:
            formula = indent if ".. math::" in paragraph else 1000
            if formula == 1000 and not re.match(r"\s*(>>>|===)", paragraph):
                pieces = re.split(r"(:math:`[^`]*`|``[^`]*``)", paragraph)
                pieces[::2] = [piece.replace("|", r"\|") for piece in pieces[::2]]
                paragraphs[2 * k] = "".join(pieces)
    lines[:] = "".join(paragraphs).split("\n")


def write_alone(app: Any, env: Any) -> None:
    """Write the pages in one process, whose one process of KaTeX serves all formulas. `-j` is for reading."""
    app.parallel = 1


def start_katex(server: Any, folder: Path, timeout: float) -> tuple[subprocess.Popen[bytes], socket.socket]:
    """Start the process of KaTeX and connect to its Unix socket, which is there before the process listens.

    Over TCP each formula takes 90 ms, since both sides wait for acknowledgements of small packets.
    """
    path, pipe = folder / "katex.sock", subprocess.PIPE
    process = subprocess.Popen(server.build_command(socket=path), stdin=pipe, stdout=pipe, cwd=folder)  # noqa: S603
    connection = socket.socket(socket.AF_UNIX)
    for _ in range(int(timeout / 1e-3)):
        try:
            connection.connect(str(path))
            return process, connection
        except (FileNotFoundError, ConnectionRefusedError):
            time.sleep(1e-3)
    raise server.timeout_error(timeout)


def copy_katex(app: Any, error: Exception | None) -> None:
    """Copy the style sheet of KaTeX and its fonts beside the pages."""
    if error is None and app.config.katex_prerender:
        files, target = Path(app.srcdir).parent / "node_modules/katex/dist", Path(app.outdir, "_static/katex")
        shutil.copytree(files / "fonts", target / "fonts", dirs_exist_ok=True)
        shutil.copy(files / "katex.min.css", target)


def setup(app: Any) -> dict[str, bool]:
    """Connect the functions."""
    app.connect("source-read", link_pages)
    app.connect("source-read", print_once)
    app.connect("autodoc-process-docstring", escape_bars, priority=400)  # before numpydoc
    app.connect("env-updated", write_alone)
    app.connect("build-finished", copy_katex)
    return {"parallel_read_safe": True, "parallel_write_safe": True}

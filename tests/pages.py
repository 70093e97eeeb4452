"""The Python blocks of a Markdown page or a MyST notebook, and what they print."""

from __future__ import annotations

import io
import re
from contextlib import redirect_stdout
from itertools import pairwise
from pathlib import Path

ROOT = next(folder for folder in Path(__file__).resolve().parents if (folder / "pyproject.toml").exists())

# A code cell of a notebook is a block of its language. Its options, such as ":tags: [hide-cell]", are no
# part of the source.
FENCED = re.compile(r"^```(?:\{code-cell\} )?(\w*)\n(?::[^\n]*\n)*(.*?)^```$", re.MULTILINE | re.DOTALL)


def python_blocks(text):
    """The source of each Python block, with the text block that follows it, or None if none does."""
    pairs = pairwise([*FENCED.findall(text), ("", "")])
    return [
        (source, following if next_language == "text" else None)
        for (language, source), (next_language, following) in pairs
        if language == "python"
    ]


def printed_by(source, page, namespace):
    """What a block prints; `page` names it in tracebacks, and `namespace` is shared or empty."""
    namespace.setdefault("__name__", "builtins")  # dataclasses look for the module of that name
    out = io.StringIO()
    with redirect_stdout(out):
        exec(compile(source, page, "exec", dont_inherit=True), namespace)  # noqa: S102
    return out.getvalue()

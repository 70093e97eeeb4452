"""Tables of text and of HTML, without styles, scripts or anything from elsewhere."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape


def text_table(header: Sequence[str], rows: Sequence[Sequence[str]], numbers: int = 0) -> str:
    """Return a table of text, whose last `numbers` columns are aligned at the right.

    Examples
    --------
    >>> print(text_table(["where", "residual"], [["ball", "1e-09"], ["theta >= 0", "0"]], 1))
    where       residual
    ball           1e-09
    theta >= 0         0
    """
    whole = [list(header), *map(list, rows)]
    widths = [max(len(row[j]) for row in whole) for j in range(len(header))]
    first = len(header) - numbers
    lines = (
        "  ".join(
            f"{cell:>{width}}" if j >= first else f"{cell:<{width}}"
            for j, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        for row in whole
    )
    return "\n".join(line.rstrip() for line in lines)


def html_table(
    rows: Sequence[Sequence[str]], header: Sequence[str] = (), caption: str = "", numbers: int = 0
) -> str:
    """Return a table of HTML with everything escaped, whose last `numbers` columns are aligned at the right.

    Examples
    --------
    >>> html_table([["gap", "<1e-6"]])
    '<table><tr><td>gap</td><td>&lt;1e-6</td></tr></table>'
    """
    parts = [f"<caption>{escape(caption)}</caption>"] if caption else []
    if header:
        parts.append(html_row(header, "th", numbers))
    parts += [html_row(row, "td", numbers) for row in rows]
    return f"<table>{''.join(parts)}</table>"


def html_row(cells: Sequence[str], tag: str, numbers: int) -> str:
    """Return a row of a table."""
    first = len(cells) - numbers
    opened = [f'<{tag} align="right">' if j >= first else f"<{tag}>" for j in range(len(cells))]
    body = "".join(f"{start}{escape(cell)}</{tag}>" for start, cell in zip(opened, cells, strict=True))
    return f"<tr>{body}</tr>"

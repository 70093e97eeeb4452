"""Statements in columns of text, and as LaTeX."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import zip_longest
from textwrap import TextWrapper

from kernelopt.duality.statement import Statement
from kernelopt.duality.tree import Tree
from kernelopt.duality.written import latex_name, word

WIDTH = 80  # columns of a terminal
COLUMN = 38  # of a problem beside another: two of them, with " | " between, fill 79
GAP = 4  # columns between the longest constraint and its tag, and before it
TALL = 3  # lines that an entry may take in a column; where one takes more, the problems stand in rows
FREE = (
    r"(?<!,) (?![-+]|[=<>]{2})|(?<=[=<>]{2}) "  # the spaces that are neither before a sign nor after a comma
)
KEPT = (rf"{FREE}|\(.*?\)|\[.*?\]|\|.*?\|", FREE, "(?!)")  # what is not broken, less and less of it
Legend = Sequence[tuple[str, str]]


def beside(left: Statement, right: Statement) -> str:
    """Return two problems side by side, or one below the other where a column is too narrow for them."""
    columns = [entries(s, COLUMN, COLUMN) for s in (left, right)]
    if any(len(entry) > TALL or max(map(len, entry)) > COLUMN for column in columns for entry in column):
        return "\n\n".join(map(problem_text, (left, right)))
    rows = zip_longest(*([line for entry in column for line in entry] for column in columns), fillvalue="")
    return "\n".join(f"{x:<{COLUMN}} | {y}".rstrip() for x, y in rows)


def problem_text(statement: Statement, legend: Legend = ()) -> str:
    """Return a problem as text in one column, and its data below it."""
    widest = max((len(line.whole.text) + len(line.named.text) + GAP for line in statement.lines), default=0)
    lines = [line for entry in entries(statement, WIDTH, min(WIDTH, widest)) for line in entry]
    return "\n".join(lines) + legend_text(legend)


def entries(statement: Statement, width: int, margin: int) -> list[list[str]]:
    """Return the lines of each entry in a column; the tags of the constraints end at the margin."""
    over = ", ".join(v.text for v in statement.variables)
    head = f"{'maximize' if statement.maximize else 'minimize'}{' over ' * bool(over)}{over}"
    found = [broken(head, width, "", "    "), broken(statement.value.text, width)]
    found += [["subject to"]] * bool(statement.lines)
    for line in statement.lines:
        tag, lines = line.named.text, broken(line.whole.text, margin)
        lines += [""] * bool(tag and len(lines[-1]) + 2 + len(tag) > margin)
        lines[-1] += f"{tag:>{margin - len(lines[-1])}}" if tag else ""
        found.append(lines)
    return found


def broken(text: str, width: int = WIDTH, first: str = "  ", rest: str = "      ") -> list[str]:
    """Return a text in lines, broken before signs, and in brackets only where nothing else is left."""
    start = re.match(" *", text)[0]  # type: ignore[index]
    wrapper = TextWrapper(width, first + start, rest + start, break_long_words=False, break_on_hyphens=False)
    for kept in KEPT:
        held = re.sub(kept, lambda part: part[0].replace(" ", "\0"), text.strip())
        lines = wrapper.wrap(held)
        if max(map(len, lines)) <= width:
            break
    return [line.replace("\0", " ") for line in lines]


def legend_text(rows: Legend) -> str:
    """Return one line for each name, below the word "where"; nothing where there are none."""
    width = max((len(name) for name, _ in rows), default=0)
    lines = [broken(meaning, WIDTH, f"  {name:<{width}}  ", " " * (width + 6)) for name, meaning in rows]
    return "\n".join(["\n\nwhere" * bool(rows), *(line for parts in lines for line in parts)])


def table(columns: str, rows: Iterable[Sequence[str]]) -> str:
    """Return an array of LaTeX; empty cells at the end of a row are left out."""
    body = " \\\\\n".join(" & ".join(row).removesuffix(" & ") for row in rows)
    return f"\\begin{{array}}{{{columns}}}\n{body}\n\\end{{array}}"


def latex_array(statement: Statement) -> str:
    """Return a problem as an array of LaTeX: left part, formula, tag."""
    over = ", ".join(v.tex for v in statement.variables)
    head = (r"\max" if statement.maximize else r"\min") + (f"_{{{over}}}" if over else "")
    rows = [(r"\mathrm{s.t.}" * (not i), s.whole.tex, s.named.tex) for i, s in enumerate(statement.lines)]
    return table("lll", [(head, statement.value.tex), *rows])


def latex_problem(
    *statements: Statement, equations: Sequence[tuple[Tree, Tree]] = (), legend: Legend = ()
) -> str:
    """Return problems side by side as a displayed formula, with equations and the table of the data below it.

    Definitions are equations, and not in the table.
    """
    parts = ["\n\\qquad\n".join(map(latex_array, statements))]
    parts += [f"{name.tex} = {value.tex}" for name, value in equations]
    rows = [(latex_name(name), word(meaning)) for name, meaning in legend if not meaning.startswith("= ")]
    parts += [table("ll", rows)] * bool(rows)
    return "\n".join(f"$$\n{part}\n$$" for part in parts)

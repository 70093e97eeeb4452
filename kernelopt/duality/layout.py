"""Statements in columns of text, and as LaTeX."""

from __future__ import annotations

from collections.abc import Sequence

from kernelopt.duality.statement import Line, Statement
from kernelopt.duality.written import latex_name, word

WIDTH = 80  # columns of a terminal
COLUMN = 38  # of a problem beside another: two of them, with " | " between, fill 79
GAP = 4  # columns between the longest constraint and its tag, and before it
TALL = 3  # lines that an entry may take in a column; where one takes more, the problems stand in rows
SIGNS = ("==", "<=", ">=", ">>", "<<")  # of relations


def beside(left: Statement, right: Statement) -> str:
    """Return two problems side by side, or one below the other where a column is too narrow for them."""
    columns = [entries(s, COLUMN) for s in (left, right)]
    if any(column is None for column in columns):
        return "\n\n".join(map(problem_text, (left, right)))
    a, b = ([line for entry in column or [] for line in entry] for column in columns)
    rows = max(len(a), len(b))
    a, b = a + [""] * (rows - len(a)), b + [""] * (rows - len(b))
    return "\n".join(f"{x:<{COLUMN}} | {y}".rstrip() for x, y in zip(a, b, strict=True))


def problem_text(statement: Statement, legend: Sequence[tuple[str, str]] = ()) -> str:
    """Return a problem as text in one column, and its data below it."""
    widest = max((len(line.whole.text) + len(tag_text(line)) + GAP for line in statement.lines), default=0)
    rows = entries(statement, WIDTH, True, min(WIDTH, widest))
    text = "\n".join(line for entry in rows or [] for line in entry)
    return f"{text}\n\nwhere\n{legend_text(legend)}" if legend else text


def entries(
    statement: Statement, width: int, any_height: bool = False, margin: int = 0
) -> list[list[str]] | None:
    """Return the lines of each entry in a column; None where one does not fit.

    The tags of the constraints end at the `margin`, by default that of the column.
    """
    word = "maximize" if statement.maximize else "minimize"
    head = word + (" over " + ", ".join(v.text for v in statement.variables) if statement.variables else "")
    found = [broken(head, width, "", "    "), broken(statement.value.signed_text, width, "  ", "      ")]
    if statement.lines:
        found.append(["subject to"])
    found += [tagged(line, margin or width) for line in statement.lines]
    fits = all(len(line) <= width for entry in found for line in entry)
    return found if any_height or (fits and all(len(entry) <= TALL for entry in found)) else None


def tagged(line: Line, width: int) -> list[str]:
    """Return a constraint with its tag at the right margin."""
    tag = tag_text(line)
    lines = broken(line.whole.text, width, "  ", "      ")
    if not tag:
        return lines
    if len(lines[-1]) + 2 + len(tag) > width:
        lines.append("")
    lines[-1] = f"{lines[-1]}{tag:>{width - len(lines[-1])}}"
    return lines


def tag_text(line: Line) -> str:
    """Return the tag of a constraint in brackets."""
    return f"({', '.join(part.text for part in line.tag)})" if line.tag else ""


def broken(text: str, width: int, first: str, rest: str) -> list[str]:
    """Return a text in lines, broken before signs, and in brackets only where nothing else is left."""
    lines, indent = [], first
    text, start = text.lstrip(), len(text) - len(text.lstrip())
    indent, rest = indent + " " * start, rest + " " * start
    while len(indent) + len(text) > width:
        at = best_break(text, width - len(indent))
        if at is None:
            break
        lines.append(indent + text[:at])
        text, indent = text[at + 1 :], rest
    return [*lines, indent + text]


def best_break(text: str, width: int) -> int | None:
    """Return the space at which a text is broken: the last one of those in the fewest brackets."""
    depth, bars = 0, 0
    found: list[tuple[bool, int, int]] = []
    for at, letter in enumerate(text):
        opens = letter in "([" or (letter == "<" and text[at + 1 : at + 2] not in ("=", "<", " "))
        closes = letter in ")]" or (letter == ">" and text[at - 1] not in " >")
        depth += opens - closes
        if letter == "|":
            bars ^= 1
        if letter == " " and (at <= width or not found):
            nested = depth + bars
            sign = text[at + 1] in "+-" or text[at - 1] == "," or text[at + 1 : at + 3] in SIGNS
            joined = text[at - 1] in "+-*/" or text[at + 1] in "*/" or text[at - 2 : at] in SIGNS
            cost = 2 * nested + (0 if sign else 3) + (4 if joined else 0) + (2 if at < width / 3 else 0)
            found.append((at > width, cost, -at))
    return -min(found)[2] if found else None


def legend_text(rows: Sequence[tuple[str, str]]) -> str:
    """Return one line for each name."""
    width = max((len(name) for name, _ in rows), default=0)
    lines = [broken(meaning, WIDTH, f"  {name:<{width}}  ", " " * (width + 6)) for name, meaning in rows]
    return "\n".join(line for parts in lines for line in parts)


def latex_rows(statement: Statement) -> list[tuple[str, str, str]]:
    """Return the rows of a problem: left part, formula, tag."""
    word = r"\max" if statement.maximize else r"\min"
    over = ", ".join(v.tex for v in statement.variables)
    rows = [(f"{word}_{{{over}}}" if over else word, statement.value.signed_tex, "")]
    for i, line in enumerate(statement.lines):
        tag = ", ".join(part.tex for part in line.tag)
        rows.append(
            (r"\mathrm{s.t.}" if i == 0 else "", line.whole.tex, rf"\left({tag}\right)" if tag else "")
        )
    return rows


def latex_array(statement: Statement) -> str:
    """Return a problem as an array of LaTeX."""
    body = " \\\\\n".join(
        f"{left} & {formula}" + (f" & {tag}" if tag else "") for left, formula, tag in latex_rows(statement)
    )
    return f"\\begin{{array}}{{lll}}\n{body}\n\\end{{array}}"


Legend = Sequence[tuple[str, str]]


def latex_problem(statement: Statement, equations: Sequence[str] = (), legend: Legend = ()) -> str:
    """Return one problem as a displayed formula, with equations and the table of its data below it."""
    return f"$$\n{latex_array(statement)}\n$$" + displayed(equations) + latex_legend(legend)


def latex_pair(left: Statement, right: Statement, where: Sequence[str], legend: Legend) -> str:
    """Return two problems side by side as a displayed formula, with equations and their data below them."""
    whole = f"$$\n{latex_array(left)}\n\\qquad\n{latex_array(right)}\n$$"
    return whole + displayed(where) + latex_legend(legend)


def latex_legend(legend: Legend) -> str:
    """Return the table of the data: a name and what it is, without the definitions, which are equations."""
    rows = [(name, meaning) for name, meaning in legend if not meaning.startswith("= ")]
    if not rows:
        return ""
    body = " \\\\\n".join(f"{latex_name(name)} & {word(meaning)}" for name, meaning in rows)
    return f"\n$$\n\\begin{{array}}{{ll}}\n{body}\n\\end{{array}}\n$$"


def displayed(equations: Sequence[str]) -> str:
    """Return equations as displayed formulas, one below the other."""
    return "".join(f"\n$$\n{equation}\n$$" for equation in equations)
